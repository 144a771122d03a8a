"""Reads published PNG files."""

import io
import pathlib
import struct
import zlib

import numpy as np

from keras_relational.validation import needs_extra

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MAX_FILE_BYTES = 2**26
MAX_SIDE = 8192
MAX_PIXELS = 2**24
_PIECE = 2**20
# Other chunks, such as texts, colour profiles and further images of an
# animation, do not change the pixels.
_CHUNKS = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
# Allowed bits a channel, and number of channels, for each colour type: grey is
# 0, RGB 2, palette 3, and grey and RGB with transparency 4 and 6.
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16)}
_DEPTHS[6] = _DEPTHS[2]
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# First row, first column, and the steps to the next ones, of each pass.
_INTERLACED = (
    *((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4)),
    *((2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)),
)


def read_png(
    path: pathlib.Path | str, mode: str, size: int | None = None
) -> np.ndarray:
    """Reads one image.

    The file may be any PNG: grey, colour or palette, 1 to 16 bits, interlaced
    or not. 16 bits are cut to the upper 8. Fewer than 8 bits are scaled to
    0..255. Transparency, gamma and colour profile are ignored, so a transparent
    pixel has the colour that the file stores. Colour becomes grey as in ITU-R
    601: 0.299 red + 0.587 green + 0.114 blue. An animated PNG gives its still
    image.

    Args:
        path: Path of the file, of at most 64 MiB, 2²⁴ pixels, and 8192 pixels a
            side.
        mode: `"L"` for grey, `"RGB"` for colour.
        size: Height and width of the image that is returned, in pixels. A pixel
            is the mean of the pixels that it replaces. By default the image
            keeps its size.

    Returns:
        uint8 array `(height, width)`, or `(height, width, 3)`.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: If the file is not a PNG, is damaged, or is too large.
    """
    with needs_extra("plots", "PNG files"):
        from PIL import Image
    try:
        content, depth, colour = _checked(path)
        with Image.open(content, formats=["PNG"]) as image:
            if depth == 16 and colour == 0:
                # Pillow would clip at 255.
                pixels = (np.asarray(image) >> 8).astype("uint8")
                image = Image.fromarray(pixels)
            image = image.convert(mode)
            if size and image.size != (size, size):
                image = image.resize((size, size), Image.Resampling.BOX)
            return np.array(image)
    # For a damaged file Pillow raises exceptions of many classes.
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read as a PNG: {error or repr(error)}. Expected "
            "an intact PNG file."
        ) from error


def _checked(path):
    """Checks a file, and returns what Pillow reads, bits and colour type.

    Pillow itself accepts truncated files, and leaves the rest black.
    """
    content = io.BytesIO()
    kinds = []
    with open(path, "rb") as file:
        length = file.seek(0, io.SEEK_END)
        if length > MAX_FILE_BYTES:
            raise ValueError(
                f"it has {length:,} bytes, more than {MAX_FILE_BYTES:,}"
            )
        file.seek(0)
        if file.read(8) != SIGNATURE:
            raise ValueError("it does not begin as a PNG does")
        content.write(SIGNATURE)
        while kinds[-1:] != [b"IEND"]:
            kind, parts = _read_chunk(file)
            if kind not in _CHUNKS:
                continue
            data = parts[1]
            if (kind == b"IHDR") != (not kinds):
                raise ValueError("it does not begin with its one header")
            if kind == b"IHDR":
                depth, colour, remaining = _read_header(data)
                inflated = zlib.decompressobj()
            elif kind == b"PLTE" and kinds != [b"IHDR"]:
                raise ValueError("its palette is not before its pixels")
            elif kind == b"IDAT":
                if colour == 3 and b"PLTE" not in kinds:
                    raise ValueError("it has no palette before its pixels")
                remaining = _inflate(inflated, data, remaining)
            kinds.append(kind)
            for part in parts:
                content.write(part)
    if remaining or not inflated.eof:
        raise ValueError("it has fewer pixels than its header says")
    content.seek(0)
    return content, depth, colour


def _read_chunk(file):
    """Reads the next chunk: its kind, and its start, data and checksum.

    Other chunks than `_CHUNKS` are skipped, and have no parts.
    """
    start = file.read(8)
    length, kind = int.from_bytes(start[:4], "big"), start[4:]
    if len(start) < 8:
        raise ValueError("it is truncated")
    if kind not in _CHUNKS:
        file.seek(length + 4, io.SEEK_CUR)
        return kind, ()
    data, checksum = file.read(length), file.read(4)
    if len(data) < length or len(checksum) < 4:
        raise ValueError("it is truncated")
    expected = zlib.crc32(data, zlib.crc32(kind))
    if int.from_bytes(checksum, "big") != expected:
        raise ValueError(f"its {kind.decode()} has a wrong checksum")
    return kind, (start, data, checksum)


def _inflate(inflated, data, remaining):
    """Counts the bytes of the pixels that are still missing after a chunk."""
    for place in range(0, len(data), _PIECE):
        piece = data[place : place + _PIECE]
        while piece:
            remaining -= len(inflated.decompress(piece, _PIECE))
            piece = inflated.unconsumed_tail
            if remaining < 0:
                raise ValueError("it has more pixels than its header says")
    return remaining


def _read_header(header):
    """Bits a channel, the colour type, and the bytes of all rows."""
    width, height, depth, colour, *_, interlaced = struct.unpack(
        ">IIBBBBB", header
    )
    if not (
        1 <= width <= MAX_SIDE
        and 1 <= height <= MAX_SIDE
        and width * height <= MAX_PIXELS
    ):
        raise ValueError(
            f"it has {width} by {height} pixels, which are none, or more than "
            f"{MAX_SIDE:,} a side or {MAX_PIXELS:,} in all"
        )
    if depth not in _DEPTHS.get(colour, ()):
        raise ValueError(
            f"there is no PNG of colour type {colour} with {depth} bits"
        )
    passes = _INTERLACED if interlaced else ((0, 0, 1, 1),)
    bits, num_bytes = depth * _CHANNELS[colour], 0
    for top, left, down, right in passes:
        rows = len(range(top, height, down))
        columns = len(range(left, width, right))
        if columns:
            num_bytes += rows * (1 + (columns * bits + 7) // 8)
    return depth, colour, num_bytes
