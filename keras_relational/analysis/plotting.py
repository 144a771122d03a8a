"""What the figures share: matplotlib, and only once a figure is drawn."""

import io
import pathlib

from keras_relational.file_io import write_atomically


def new_figure(width, height):
    """An empty figure, in inches, apart from pyplot and its list of figures."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Figures are drawn with matplotlib, which is not installed. Run: "
            "pip install 'keras_relational[plots]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def legend_below(figure, names, entry_width, **style):
    """One legend for all panels, wrapped to the figure's width.

    Args:
        figure: The figure.
        names: Dictionary from number to name; number i has the colour `"Ci"`.
        entry_width: Room for one entry, in inches.
        **style: How the marks look, as `matplotlib.lines.Line2D` takes it.
    """
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color=f"C{number}", label=name, **style)
        for number, name in names.items()
    ]
    across = int(figure.get_figwidth() / entry_width)
    figure.legend(
        handles=marks,
        loc="outside lower center",
        ncols=min(max(1, across), len(marks)),
    )


def save_figure(figure, path, **arguments):
    """Keeps a figure as a PNG file: the whole of it, or none.

    Args:
        figure: `matplotlib.figure.Figure`.
        path: Path of the file, written aside and renamed.
        **arguments: As for `savefig`, such as `dpi`.
    """
    image = io.BytesIO()
    figure.savefig(image, **arguments)
    write_atomically(pathlib.Path(path), image.getvalue())


def save_gif(pictures, path, milliseconds):
    """Keeps pictures as an animated GIF: the whole of it, or none.

    Args:
        pictures: uint8 arrays of one shape, `(height, width)` or `(height,
            width, 3)`.
        path: Path of the file, written aside and renamed.
        milliseconds: Time that a picture is shown.

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
