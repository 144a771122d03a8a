"""Tables of figures, in Markdown."""

from collections.abc import Sequence

import numpy as np


def mean_text(
    values: Sequence[float], digits: int = 1, standard_error: bool = False
) -> str:
    """A mean and its spread over seeds, as text.

    Args:
        values: Sequence of numbers, one a seed.
        digits: Number of digits after the point.
        standard_error: Whether the spread is the standard error of the mean
            instead of the standard deviation. With one value there is no
            spread.

    Returns:
        String, empty if there are no values.

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


def markdown_table(columns: Sequence, rows: Sequence[Sequence]) -> str:
    """A table in Markdown.

    Args:
        columns: Sequence of names.
        rows: Sequence of rows, each a sequence of as many cells of any type.

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
