"""Figures and GIF files. Importing this file does not import matplotlib."""

import io
import pathlib
import typing
from collections.abc import Iterable
from collections.abc import Mapping

import numpy as np

from keras_relational.file_io import write_atomically

if typing.TYPE_CHECKING:
    from matplotlib.figure import Figure
else:  # Importing matplotlib waits until a figure is drawn.
    Figure = typing.Any


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that pyplot does not keep in its list of figures.

    Args:
        width: Width in inches.
        height: Height in inches.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    try:
        import matplotlib.figure
    except ImportError as error:
        raise ImportError(
            "Figures are drawn with matplotlib, which is not installed. Run: "
            "pip install 'keras_relational[plots]'"
        ) from error
    figure_class = matplotlib.figure.Figure
    return figure_class(figsize=(width, height), layout="constrained")


def line_style(number: int) -> dict[str, str]:
    """The colour of line `number`, dashed after ten: then colours come again.

    Args:
        number: Non-negative integer.

    Returns:
        Dictionary of arguments for matplotlib.
    """
    return {"color": f"C{number}", "linestyle": "-" if number < 10 else "--"}


def legend_below(
    figure: Figure,
    names: Mapping[int, str],
    entry_width: float,
    **style: typing.Any,
) -> None:
    """Adds one legend for all panels, wrapped to the figure's width.

    Args:
        figure: The figure.
        names: Dictionary from numbers to names. Number i looks like
            `line_style(i)`.
        entry_width: Width of one entry in inches.
        **style: Style of the marks: arguments of `matplotlib.lines.Line2D`.
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


def save_figure_and_arrays(
    figure: Figure, path: pathlib.Path | str, **arrays: np.ndarray
) -> None:
    """Writes a figure to a PNG file, and what it shows to an NPZ file.

    Args:
        figure: `matplotlib.figure.Figure`.
        path: Path of both files, without an ending. Its folder is made.
        **arrays: Arrays, by name.

    Raises:
        OSError: If a file cannot be written; the error names it.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, path.with_name(f"{path.name}.png"), dpi=120)
    table = io.BytesIO()
    np.savez_compressed(table, **arrays)  # type: ignore[arg-type]
    write_atomically(path.with_name(f"{path.name}.npz"), table.getvalue())


def save_gif(
    pictures: Iterable[np.ndarray],
    path: pathlib.Path | str,
    milliseconds: float,
) -> None:
    """Writes pictures to an animated GIF file, all of it or nothing.

    Args:
        pictures: uint8 arrays of one shape, `(height, width)` or `(height,
            width, 3)`.
        path: Path of the file.
        milliseconds: Time that each picture is shown.

    Raises:
        ImportError: If Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "GIFs are written by Pillow, which is not installed. Run: "
            "pip install 'keras_relational[plots]'"
        ) from error
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
