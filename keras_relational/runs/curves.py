"""Learning curves in `curves.csv`: a table with one row for each epoch."""

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
    """Writes learning curves, one in each column.

    Args:
        path: Path of a `curves.csv`.
        curves: Dictionary of names and lists of numbers. All lists have the
            same length.
    """
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(curves)
    writer.writerows(zip(*curves.values(), strict=True))
    write_atomically(path, table.getvalue().encode())


def read_curves(path: pathlib.Path | str) -> dict[str, list[float]]:
    """Reads learning curves that `write_curves` wrote.

    Args:
        path: Path of a `curves.csv`, of up to 8 MiB.

    Returns:
        Dictionary of names and lists of numbers. All lists have the same
        length. A number that is written in digits only becomes an integer, any
        other number a float.

    Raises:
        ValueError: If the file cannot be read, is larger than 8 MiB, or is not
            a line of names above a table of numbers.
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
            "a run: a line of names, then lines with a number for each name."
        ) from error


def check_curves(curves: Any, unit: str) -> None:
    """Raises a `ValueError` unless a checkpoint holds valid curves.

    The curve `unit`, such as `"batches"`, counts the progress.
    """
    lengths = {len(np.array(x, "float64")) for x in curves.values()}
    if not {unit, "minutes"} <= set(curves) or len(lengths) != 1:
        raise ValueError("its curves differ in length")
    if 0 in lengths:
        raise ValueError("its curves are empty")
