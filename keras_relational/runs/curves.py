"""Learning curves: a table with a row an epoch, in `curves.csv`."""

import csv
import io
import pathlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_relational.file_io import read_text
from keras_relational.file_io import write_atomically


def write_curves(
    path: pathlib.Path | str, curves: Mapping[str, Sequence[float]]
) -> None:
    """Writes learning curves, a column each.

    Args:
        path: Path of a `curves.csv`.
        curves: Dictionary of names and lists of numbers, all of one length.
    """
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(curves)
    writer.writerows(zip(*curves.values(), strict=True))
    write_atomically(path, table.getvalue().encode())


def read_curves(path: pathlib.Path | str) -> dict[str, list[float]]:
    """Reads learning curves, as `write_curves` writes them.

    Args:
        path: Path of a `curves.csv`, of up to 8 MiB.

    Returns:
        Dictionary of names and lists of numbers, all of one length: integers
        where the file has digits alone, else floats.

    Raises:
        ValueError: If the file cannot be read, is larger, or is no table of
            numbers below a line of names.
        FileNotFoundError: If the file does not exist.
    """
    try:
        rows = csv.reader(io.StringIO(read_text(path), newline=""))
        names = next(rows, [])
        if not names or len(set(names)) < len(names):
            raise ValueError(f"its first line should be names, not {names}")
        curves: dict[str, list[float]] = {name: [] for name in names}
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


def check_curves(curves: Any, unit: str) -> None:
    """Raises a `ValueError` unless these are the curves of a checkpoint.

    Args:
        curves: What the checkpoint holds.
        unit: Name of the curve that counts the progress, such as `"batches"`.
    """
    lengths = {len(np.array(x, "float64")) for x in curves.values()}
    if not {unit, "minutes"} <= set(curves) or len(lengths) != 1:
        raise ValueError("its curves are not of one length")
    if 0 in lengths:
        raise ValueError("its curves are empty")
