"""Reads `.npz` files, and checks their headers before it reads the arrays.

An `.npz` is a zip of `.npy` files. Each has a header with the type and the
shape of its array. All headers are read first, and the caller checks them. Then
each array is read once in small pieces, to check that it is intact and has the
size in its header. Only then is it read into memory. So a damaged file takes
little memory, whatever size it claims. Pickles are never loaded.
"""

import io
import math
import pathlib
import warnings
import zipfile
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_PIECE = 2**20
# NumPy's limit for a header, and the bytes before it.
_MAX_HEADER_BYTES = 10_000 + 12


class Header(NamedTuple):
    """The header of an array: its shape, and its `np.dtype`."""

    shape: tuple[int, ...]
    dtype: np.dtype


def read_npz(
    path: pathlib.Path | str,
    names: Sequence[str] | None,
    kind: str,
    check: Callable[[dict[str, Header]], None],
    limits: Mapping[str, int] | None = None,
) -> dict[str, np.ndarray]:
    """Reads arrays from an `.npz` file, all of them if there are no `names`.

    `check` gets a dictionary from names to `Header`s before any array is read,
    and raises a `ValueError` if a shape or a dtype is wrong. The numbers of
    arrays in `limits` must be integers from 0 to below the limit, which is up
    to 256. They are returned as uint8. `kind` stands in error messages, such as
    `"a visual analogy"`.
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
    # The readers of headers and of zip files raise exceptions of many classes.
    except Exception as error:
        arrays = f" with the arrays {', '.join(map(repr, names or ()))}"
        raise ValueError(
            f"{path} cannot be read as {kind}: {error or repr(error)}. Expected"
            f" an intact .npz file{arrays if names else ''}."
        ) from error


class _File(io.FileIO):
    """A file that is never read in large pieces.

    `zipfile` reads the whole directory of an archive at once.
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
    """Opens an array, and returns the number of bytes that it claims."""
    info = archive.getinfo(f"{name}.npy")
    # NumPy writes these two. Python decompresses other methods without a limit.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name!r} is compressed in an unknown way")
    return archive.open(info), info.file_size


def _read_header(archive, name):
    """Returns a header, whether the order is Fortran's, and its length."""
    member, size = _open_member(archive, name)
    with member:
        start = io.BytesIO(member.read(_MAX_HEADER_BYTES))
    with warnings.catch_warnings():
        # Python 2's headers and old names of types give warnings.
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
    """Reads an array in pieces of numbers, or of bytes if it is text."""
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
