"""Tables of finished runs, in Markdown, from what each left behind."""

import pathlib

import numpy as np

from keras_relational.file_io import read_json


def finished_runs(directory):
    """The figures of all runs in a folder that have finished.

    Args:
        directory: Folder that holds folders of runs, at any depth.

    Returns:
        List of pairs, by path: the `pathlib.Path` of the run's folder, and what
        it kept by `training.save_result`, a dictionary.

    Raises:
        FileNotFoundError: If there is no such folder, or none of those.
        ValueError: If a `result.json` is damaged, or tells no name of a run.
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
            f"There are no finished runs in {directory}. Runs that the "
            "examples make leave a result.json there when they have finished"
        )
    return runs


def add_run(runs, seed, run, name):
    """Adds a run to those of one row of a table, one a seed.

    Args:
        runs: List of tuples that begin with a seed.
        seed: Seed of the run.
        run: Tuple of what else there is to it.
        name: Name of the run.

    Raises:
        ValueError: If there is one of that seed: a folder holds a run twice.
    """
    if seed in [other for other, *_ in runs]:
        raise ValueError(
            f"There are two runs {name} as long as each other. Give the "
            "folder of one of them"
        )
    runs.append((seed, *run))


def mean_text(values, digits=1, standard_error=False):
    """A mean and its spread over seeds, as text.

    Args:
        values: List of numbers, one a seed.
        digits: Number of digits after the point.
        standard_error: Whether the spread is the standard error of the mean,
            the standard deviation by default; of two values or more.

    Returns:
        String, an empty one if there are no values.

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


def markdown_table(columns, rows):
    """A table as Markdown has it.

    Args:
        columns: Sequence of names.
        rows: Sequence of rows, sequences of as many cells, of any kind.

    Returns:
        String of lines, without one at the end.

    Example:

    >>> print(markdown_table(["module", "accuracy"], [["mlp1", 72.5]]))
    | module | accuracy |
    |---|---|
    | mlp1 | 72.5 |
    """
    lines = [" | ".join(map(str, cells)) for cells in (columns, *rows)]
    lines = [f"| {line} |" for line in lines]
    return "\n".join([lines[0], len(columns) * "|---" + "|", *lines[1:]])
