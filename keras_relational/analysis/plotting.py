"""Figures and GIF files. Importing this file does not import matplotlib."""

import io
import pathlib
import typing
from collections.abc import Iterable
from collections.abc import Mapping

import numpy as np

from keras_relational.file_io import write_atomically
from keras_relational.validation import needs_extra

if typing.TYPE_CHECKING:
    from matplotlib.figure import Figure
else:  # Importing matplotlib waits until a figure is drawn.
    Figure = typing.Any


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches, which pyplot does not keep.

    Raises an `ImportError` if matplotlib is not installed.
    """
    with needs_extra("plots", "Figures"):
        import matplotlib.figure
    figure_class = matplotlib.figure.Figure
    return figure_class(figsize=(width, height), layout="constrained")


def line_style(number: int) -> dict[str, str]:
    """The colour of line `number`, dashed from ten on."""
    return {"color": f"C{number}", "linestyle": "-" if number < 10 else "--"}


def legend_below(
    figure: Figure,
    names: Mapping[int, str],
    entry_width: float,
    **style: typing.Any,
) -> None:
    """Adds one legend for all panels, wrapped to the figure's width.

    Entry `i` of `names` looks like `line_style(i)`, changed by `style`, and is
    `entry_width` inches wide.
    """
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], **{**line_style(number), "label": name, **style})
        for number, name in names.items()
    ]
    across = int(figure.get_figwidth() / entry_width)
    figure.legend(
        handles=marks,
        loc="outside lower center",
        ncols=min(max(1, across), len(marks)),
    )


def save_figure(
    figure: Figure, path: pathlib.Path | str, **arguments: typing.Any
) -> None:
    """Writes a figure to a PNG file, all of it or nothing.

    Args:
        figure: `matplotlib.figure.Figure`.
        path: Path of the file.
        **arguments: Arguments of `Figure.savefig`, such as `dpi`.
    """
    image = io.BytesIO()
    figure.savefig(image, **arguments)
    write_atomically(pathlib.Path(path), image.getvalue())


def save_gif(
    pictures: Iterable[np.ndarray],
    path: pathlib.Path | str,
    milliseconds: float,
) -> None:
    """Writes pictures to an animated GIF file, all of it or nothing.

    Pictures are uint8 arrays of one shape, `(height, width[, 3])`.
    """
    with needs_extra("plots", "GIFs"):
        from PIL import Image
    first, *others = map(Image.fromarray, pictures)
    gif = io.BytesIO()
    first.save(
        gif,
        format="GIF",
        save_all=True,
        append_images=others,
        duration=milliseconds,
        loop=0,
    )
    write_atomically(pathlib.Path(path), gif.getvalue())
