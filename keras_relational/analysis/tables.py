"""Tables of finished runs in Markdown, from the results of the runs."""

import pathlib
import typing
from collections.abc import Iterable
from collections.abc import Sequence

import numpy as np

from keras_relational.file_io import read_json


def finished_runs(
    directory: pathlib.Path | str,
) -> list[tuple[pathlib.Path, dict[str, typing.Any]]]:
    """The results of all finished runs in a folder.

    Args:
        directory: Folder that contains folders of runs, at any depth.

    Returns:
        List of pairs, sorted by path: the folder of the run, and the dictionary
        in its `result.json`.

    Raises:
        FileNotFoundError: If the folder does not exist or has no finished run.
        ValueError: If a `result.json` is damaged or has no name of a run.
    """
    runs = []
    for path in sorted(pathlib.Path(directory).glob("**/result.json")):
        result = read_json(path)
        if not isinstance(result, dict) or "run" not in result:
            raise ValueError(
                f"{path} should hold the figures of a run, a dictionary with "
                f"its name as 'run'. Received: {str(result)[:80]}"
            )
        runs.append((path.parent, result))
    if not runs:
        raise FileNotFoundError(
            f"There are no finished runs in {directory}. A run of an example "
            "writes a result.json when it has finished"
        )
    return runs


def add_run(runs: list[tuple], seed: int, run: tuple, name: str) -> None:
    """Adds a run to the runs of one row of a table, one for each seed.

    Args:
        runs: List of tuples that begin with a seed.
        seed: Seed of the run.
        run: Tuple of the run's other values.
        name: Name of the run.

    Raises:
        ValueError: If `runs` has a run of that seed.
    """
    if seed in [other for other, *_ in runs]:
        raise ValueError(
            f"There are two runs {name} as long as each other. Give the "
            "folder of one of them"
        )
    runs.append((seed, *run))


def mean_text(
    values: Sequence[float], digits: int = 1, standard_error: bool = False
) -> str:
    """The mean and the spread of values over seeds, as text.

    Args:
        values: List of numbers, one for each seed.
        digits: Number of digits after the decimal point.
        standard_error: Whether the spread is the standard error of the mean.
            Otherwise it is the standard deviation. A single value has none.

    Returns:
        String. It is empty if there are no values.

    Example:

    >>> mean_text([98.5, 99.5]), mean_text([98.5])
    ('99.0 ± 0.7', '98.5')
    """
    if not values:
        return ""
    text = f"{np.mean(values):.{digits}f}"
    if len(values) < 2:
        return text
    spread = np.std(values, ddof=1)
    if standard_error:
        spread /= len(values) ** 0.5
    return f"{text} ± {spread:.{digits}f}"


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> str:
    """A table in Markdown.

    Args:
        columns: Sequence of names.
        rows: Sequence of rows. A row is a sequence with a cell for each column.

    Returns:
        String of lines, without a line break at the end.

    Example:

    >>> print(markdown_table(["module", "accuracy"], [["mlp1", 72.5]]))
    | module | accuracy |
    |---|---|
    | mlp1 | 72.5 |
    """
    lines = [" | ".join(map(str, cells)) for cells in (columns, *rows)]
    lines = [f"| {line} |" for line in lines]
    return "\n".join([lines[0], len(columns) * "|---" + "|", *lines[1:]])
