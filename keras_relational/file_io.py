"""Files that are whole or not there, and plain errors for damaged ones."""

import csv
import io
import json
import os

# Of JSON, and of a table: Python's objects take up to 27 times the space of
# their text, so that no file takes more than some 200 MiB to refuse.
MAX_TEXT_BYTES = 8 * 2**20


def write_atomically(path, content):
    """Writes a whole file or none: beside its place, then into it."""
    aside = path.with_name(path.name + ".partial")
    aside.write_bytes(content)
    os.replace(aside, path)


def read_json(path):
    """Reads a JSON file.

    Args:
        path: Path of the file, of up to 8 MiB.

    Returns:
        What it holds.

    Raises:
        ValueError: If the file cannot be read, is larger, or is no JSON.
        FileNotFoundError: If there is no such file.
    """
    try:
        return json.loads(_read_text(path))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Expected an intact JSON file."
        ) from error


def read_curves(path):
    """Reads learning curves, as `training.save_curves` writes them.

    Args:
        path: Path of a `curves.csv`, of up to 8 MiB.

    Returns:
        Dictionary of names and lists of numbers, all of one length: integers
        where the file has digits alone, else floats.

    Raises:
        ValueError: If the file cannot be read, is larger, or is no table of
            numbers below a line of names.
        FileNotFoundError: If there is no such file.
    """
    try:
        rows = csv.reader(io.StringIO(_read_text(path), newline=""))
        names = next(rows, [])
        if not names or len(set(names)) < len(names):
            raise ValueError(f"its first line should be names, not {names}")
        curves = {name: [] for name in names}
        for row in rows:
            if len(row) != len(names):
                raise ValueError(
                    f"line {rows.line_num} has {len(row)} cells, the first "
                    f"{len(names)}"
                )
            for name, text in zip(names, row, strict=True):
                curves[name].append(
                    int(text) if text.isdecimal() else float(text)
                )
        return curves
    except FileNotFoundError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Expected the learning curves of "
            "a run: a line of names, and lines of as many numbers."
        ) from error


def _read_text(path):
    with open(path, "rb") as file:
        content = file.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise ValueError(f"it has more than {MAX_TEXT_BYTES:,} bytes")
    return content.decode("utf-8")
