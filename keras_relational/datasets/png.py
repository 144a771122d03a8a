"""Reading published PNG files."""

import io
import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MAX_FILE_BYTES = 2**26
MAX_SIDE = 8192
MAX_PIXELS = 2**24
_PIECE = 2**20
# All others, such as texts, colour profiles and further images of an
# animation, change no pixel's numbers.
_CHUNKS = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
# Bits that a channel may have, and channels, by the kind of colour: grey, red
# green and blue, from a palette, and the first two with transparency.
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16)}
_DEPTHS[6] = _DEPTHS[2]
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_INTERLACED = (
    *((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4)),
    *((2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)),
)


def read_png(path, mode, size=None):
    """Reads one image.

    Any kind of PNG is taken: grey, colour or with a palette, of 1 to 16 bits,
    interlaced or not. Of 16 bits the upper 8 are kept; fewer than 8 are spread
    over 0..255. Transparency, gamma and colour profile are left out: a pixel
    has the colour that the file tells, even where it is transparent. Colour is
    made grey as in ITU-R 601: 0.299 red, 0.587 green, 0.114 blue. An animated
    PNG gives its still image.

    Args:
        path: Path of the file: up to 64 MiB, 2²⁴ pixels, and 8192 pixels high
            and wide.
        mode: `"L"` for grey, `"RGB"` for colour.
        size: Height and width, in pixels, to bring it to, each pixel the mean
            of what it covers; its own by default.

    Returns:
        uint8 array `(height, width)`, or `(height, width, 3)`.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: If it is not a PNG, damaged, or too large.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "PNG files are read with Pillow, which is not installed. Run: "
            "pip install 'keras_relational[plots]'"
        ) from error
    try:
        content, depth, colour = _checked(path)
        with Image.open(content, formats=["PNG"]) as image:
            if depth == 16 and colour == 0:
                # Pillow would cut at 255.
                pixels = (np.asarray(image) >> 8).astype("uint8")
                image = Image.fromarray(pixels)
            image = image.convert(mode)
            if size and image.size != (size, size):
                image = image.resize((size, size), Image.Resampling.BOX)
            return np.array(image)
    # What Pillow raises of a damaged file is of any class.
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read as a PNG: {error or repr(error)}. Expected "
            "an intact PNG file."
        ) from error


def _checked(path):
    """Of a file what Pillow may see, its bits a channel, and kind of colour.

    Pillow takes a file that ends too early, lacks its palette or has wrong
    checksums, and leaves the rest black: all that is looked at here.
    """
    kept = io.BytesIO()
    with open(path, "rb") as file:
        length = file.seek(0, io.SEEK_END)
        if length > MAX_FILE_BYTES:
            raise ValueError(
                f"it has {length:,} bytes, more than {MAX_FILE_BYTES:,}"
            )
        file.seek(0)
        if file.read(8) != SIGNATURE:
            raise ValueError("it does not begin as a PNG does")
        kept.write(SIGNATURE)
        kinds = []
        while kinds[-1:] != [b"IEND"]:
            start = file.read(8)
            length, kind = int.from_bytes(start[:4], "big"), start[4:]
            if len(start) < 8:
                raise ValueError("it is truncated")
            if kind not in _CHUNKS:
                file.seek(length + 4, io.SEEK_CUR)
                continue
            content, checksum = file.read(length), file.read(4)
            if len(content) < length or len(checksum) < 4:
                raise ValueError("it is truncated")
            expected = zlib.crc32(content, zlib.crc32(kind))
            if int.from_bytes(checksum, "big") != expected:
                raise ValueError(f"its {kind.decode()} has a wrong checksum")
            if (kind == b"IHDR") != (not kinds):
                raise ValueError("it does not begin with its one header")
            if kind == b"IHDR":
                depth, colour, remaining = _read_header(content)
                inflated = zlib.decompressobj()
            elif kind == b"PLTE" and kinds != [b"IHDR"]:
                raise ValueError("its palette is not before its pixels")
            elif kind == b"IDAT":
                if colour == 3 and b"PLTE" not in kinds:
                    raise ValueError("it has no palette before its pixels")
                for place in range(0, length, _PIECE):
                    piece = content[place : place + _PIECE]
                    while piece:
                        remaining -= len(inflated.decompress(piece, _PIECE))
                        piece = inflated.unconsumed_tail
                        if remaining < 0:
                            raise ValueError("it has more pixels than it tells")
            kinds.append(kind)
            for part in (start, content, checksum):
                kept.write(part)
    if remaining or not inflated.eof:
        raise ValueError("it has fewer pixels than it tells")
    kept.seek(0)
    return kept, depth, colour


def _read_header(header):
    """Bits a channel, kind of colour, and how many bytes the pixels are."""
    width, height, depth, colour, *_, interlaced = struct.unpack(
        ">IIBBBBB", header
    )
    if not (
        1 <= width <= MAX_SIDE
        and 1 <= height <= MAX_SIDE
        and width * height <= MAX_PIXELS
    ):
        raise ValueError(
            f"it has {width} by {height} pixels, more than {MAX_SIDE:,} in a "
            f"line or {MAX_PIXELS:,} in all, or none"
        )
    if depth not in _DEPTHS.get(colour, ()):
        raise ValueError(
            f"there is no PNG of colour type {colour} with {depth} bits"
        )
    # Of each pass: the first row and column, and the steps between them.
    passes = _INTERLACED if interlaced else ((0, 0, 1, 1),)
    bits, num_bytes = depth * _CHANNELS[colour], 0
    for top, left, down, right in passes:
        rows = len(range(top, height, down))
        columns = len(range(left, width, right))
        if columns:
            num_bytes += rows * (1 + (columns * bits + 7) // 8)
    return depth, colour, num_bytes
