"""Reading `.npz` files whose content is checked before it is inflated.

An `.npz` is a zip of `.npy` files, each with a header that tells type and
shape. Of every array the header is read first, and shown to the caller; then
the array is read through once in pieces, which proves that it is intact and as
long as it claims; only then is it kept. So a damaged file costs little memory,
whatever size it claims. No pickle is ever loaded.
"""

import io
import math
import warnings
import zipfile
from typing import NamedTuple

import numpy as np

_PIECE = 2**20
# NumPy's own limit, and the bytes before a header.
_MAX_HEADER_BYTES = 10_000 + 12


class Header(NamedTuple):
    """What an `.npz` tells of one of its arrays."""

    shape: tuple
    dtype: np.dtype


def read_npz(path, names, kind, check, limits=None):
    """Reads plain arrays from an `.npz` file.

    Args:
        path: Path of the file.
        names: Names of the arrays; others are not read. `None` for all.
        kind: What the file should be, for errors, such as `"a visual analogy"`.
        check: Function of a dictionary of names and `Header`s, called before
            any array is read. It raises a `ValueError` for a shape or type that
            is not expected, or too large.
        limits: Dictionary of names and integers, up to 256, for arrays of whole
            numbers from 0 to below that. These come as uint8, whatever type of
            number the file has.

    Returns:
        Dictionary of the arrays by name.

    Raises:
        ValueError: If the file is truncated or not an `.npz`, lacks an array,
            holds a pickle in its place, or numbers that it should not.
        FileNotFoundError: If there is no such file.
    """
    limits = limits or {}
    try:
        with _File(path) as file, _open_zip(file) as archive:
            headers = {
                name: _read_header(archive, name)[0]
                for name in _found(archive, names)
            }
            check(headers)
            for name, (_, dtype) in headers.items():
                for numbers in _pieces(archive, name):
                    if name in limits:
                        _check_numbers(name, numbers, dtype, limits[name])
            return {
                name: _read_array(archive, name, name in limits)
                for name in headers
            }
    except FileNotFoundError:
        raise
    # Of any class, from a header that is read as Python and from zipfile.
    except Exception as error:
        arrays = f" with the arrays {', '.join(map(repr, names or ()))}"
        raise ValueError(
            f"{path} cannot be read as {kind}: {error or repr(error)}. Expected"
            f" an intact .npz file{arrays if names else ''}."
        ) from error


class _File(io.FileIO):
    """A file that is read in small pieces alone.

    `zipfile` reads a directory of any size at once, and makes of each of its
    entries an object some 20 times as large.
    """

    def read(self, size=-1):
        at_most = _PIECE + 1
        content = super().read(at_most if size < 0 else min(size, at_most))
        if len(content) == at_most:
            raise ValueError(f"its directory has more than {_PIECE:,} bytes")
        return content


def _open_zip(file):
    try:
        return zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        file.seek(0)
        if file.read(6) == b"\x93NUMPY":
            raise ValueError("it holds a single array") from None
        raise


def _found(archive, names):
    found = [
        name.removesuffix(".npy")
        for name in archive.namelist()
        if name.endswith(".npy")
    ]
    for name in found if names is None else names:
        if name not in found:
            raise ValueError(
                f"it lacks the array {name!r}; it holds {found[:20]}"
            )
    return found if names is None else names


def _open_member(archive, name):
    """The file of an array, and how many bytes it claims to have."""
    info = archive.getinfo(f"{name}.npy")
    # Those that NumPy writes; Python inflates others without a limit.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name!r} is compressed in an unknown way")
    return archive.open(info), info.file_size


def _read_header(archive, name):
    """The header of an array, whether in Fortran's order, and its length."""
    member, size = _open_member(archive, name)
    with member:
        start = io.BytesIO(member.read(_MAX_HEADER_BYTES))
    with warnings.catch_warnings():
        # Of headers as Python 2 wrote them, and of old names of types.
        warnings.simplefilter("ignore")
        version = np.lib.format.read_magic(start)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:
            raise ValueError(f"{name!r} has a header of version {version}")
        shape, fortran_order, dtype = readers[version](start)
    if dtype.hasobject:
        raise ValueError(
            f"{name!r} is a pickle of Python objects, which is never loaded"
        )
    if dtype.kind not in "biufcSU":
        raise ValueError(f"{name!r} holds neither numbers nor text: {dtype}")
    claimed = size - start.tell()
    expected = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or claimed != expected:
        raise ValueError(
            f"{name!r} of shape {shape} and type {dtype} should have {expected}"
            f" bytes. Received: {claimed}"
        )
    return Header(shape, dtype), fortran_order, start.tell()


def _pieces(archive, name):
    """An array in pieces: of its numbers, of its bytes if it is text."""
    (_, dtype), _, offset = _read_header(archive, name)
    if dtype.kind in "SU":
        dtype = np.dtype("uint8")
    member, size = _open_member(archive, name)
    remaining = size - offset
    with member:
        member.read(offset)
        while remaining:
            at_once = min(_PIECE // dtype.itemsize * dtype.itemsize, remaining)
            piece = member.read(at_once)
            if len(piece) != at_once:
                raise ValueError(f"{name!r} ends too early")
            remaining -= at_once  # At its end zipfile compares the checksum.
            yield np.frombuffer(piece, dtype)


def _check_numbers(name, numbers, dtype, limit):
    if dtype.kind not in "iuf":
        raise ValueError(f"{name!r} should hold numbers. Received: {dtype}")
    if not (numbers.min() >= 0 and numbers.max() < limit):
        raise ValueError(
            f"{name!r} should lie in 0..{limit - 1}. Received: "
            f"{numbers.min()}..{numbers.max()}"
        )
    if dtype.kind == "f" and (parts := numbers[numbers % 1 != 0]).size:
        raise ValueError(
            f"{name!r} should hold whole numbers. Received: {parts[0]}"
        )


def _read_array(archive, name, as_uint8):
    (shape, dtype), fortran_order, _ = _read_header(archive, name)
    pieces = _pieces(archive, name)
    if as_uint8:
        array = np.empty(math.prod(shape), "uint8")
    else:
        array = np.empty(math.prod(shape), dtype)
    content = array if as_uint8 else array.view("uint8")
    place = 0
    for piece in pieces:
        piece = piece if as_uint8 else piece.view("uint8")
        content[place : place + len(piece)] = piece
        place += len(piece)
    if fortran_order:
        return array.reshape(shape[::-1]).T
    return array.reshape(shape)
