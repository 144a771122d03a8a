"""Files that are complete or absent, and plain errors for damaged ones."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any
from typing import BinaryIO

# The largest JSON file or table that is read. Python objects take up to 27
# times the space of their text, so reading takes at most about 200 MiB.
MAX_TEXT_BYTES = 8 * 2**20


def write_atomically(path: pathlib.Path | str, content: bytes) -> None:
    """Writes a whole file or nothing.

    If the process is killed while it writes, the old file is unchanged. After a
    power failure the file is either the old one or the new one. An `OSError`
    names the file.
    """
    with atomic_path(path) as partial:
        partial.write_bytes(content)


@contextlib.contextmanager
def atomic_file(path: pathlib.Path | str) -> Iterator[BinaryIO]:
    """Opens a binary file that appears under its name when it is complete."""
    with atomic_path(path) as partial, open(partial, "wb") as file:
        yield file


@contextlib.contextmanager
def atomic_path(path: pathlib.Path | str) -> Iterator[pathlib.Path]:
    """Yields a path to write to: `name.partial.suffix` in the same folder.

    If the block ends without an error, the file is renamed to `path`.
    """
    path = pathlib.Path(path)
    partial = path.with_name(f"{path.stem}.partial{path.suffix}")
    try:
        with errors_name(path):
            yield partial
            sync_to_disk(partial)
            os.replace(partial, path)
            sync_to_disk(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def is_partial(path: pathlib.Path) -> bool:
    """Tells whether this is the unfinished file of a killed process."""
    return ".partial" in path.suffixes[-2:]


@contextlib.contextmanager
def errors_name(path: pathlib.Path | str) -> Iterator[None]:
    """Adds the path of a file to errors that lack it, such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def read_json(path: pathlib.Path | str) -> Any:
    """Reads a JSON file of up to 8 MiB.

    A `ValueError` says if it is damaged, a `FileNotFoundError` if missing.
    """
    try:
        return json.loads(read_text(path))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Expected an intact JSON file."
        ) from error


def read_text(path: pathlib.Path | str) -> str:
    """Reads a text file in UTF-8; a `ValueError` says if it is above 8 MiB."""
    with open(path, "rb") as file:
        content = file.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise ValueError(f"it has more than {MAX_TEXT_BYTES:,} bytes")
    return content.decode("utf-8")


def sync_to_disk(path: pathlib.Path) -> None:
    """Makes the system write a file, or the list of a folder, to the disk."""
    if path.is_dir() and os.name == "nt":
        return  # Windows does not open folders.
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
