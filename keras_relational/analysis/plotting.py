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

# All can be read on white and on a dark page: a contrast of 3.4 or more.
COLOURS = "#d06c10", "#3987d9", "#2b9a5a", "#a866d8", "#dd4f62"
GREY = "#808080"
_LABEL_GAP = 0.16  # Inches from one label at a line's end to the next.


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches, which pyplot does not keep.

    Raises an `ImportError` if matplotlib is not installed.
    """
    with needs_extra("plots", "Figures"):
        import matplotlib.figure
    figure_class = matplotlib.figure.Figure
    return figure_class(figsize=(width, height), layout="constrained")


def draw_line(
    panel: typing.Any,
    name: str,
    x: np.ndarray,
    mean: np.ndarray,
    spread: np.ndarray | None = None,
) -> None:
    """Draws one line more of a panel. The first five have a colour.

    They have a band, too, if there is a spread. The others are grey. All
    colours can be read on white and on a dark page. `label_ends` writes the
    names.
    """
    number = len(panel.lines)
    if number >= len(COLOURS):
        panel.plot(x, mean, color=GREY, lw=0.9, alpha=0.7, label=name, zorder=1)
        return
    colour = COLOURS[number]
    panel.plot(x, mean, color=colour, lw=1.8, label=name)
    if spread is not None:
        band = mean - spread, mean + spread
        panel.fill_between(x, *band, color=colour, alpha=0.15, lw=0)


def label_ends(figure: Figure) -> None:
    """Writes the names of all lines right of their panels, beside their ends.

    Frames, ticks and other labels become grey.
    """
    for panel in figure.axes:
        _soften(panel)
    figure.draw_without_rendering()  # Only then panels have their heights.
    for panel in figure.axes:
        named = [x for x in panel.lines if not x.get_label().startswith("_")]
        lines = sorted(named, key=_height_of_end)
        ends = np.array([_height_of_end(line) for line in lines])
        gap = _LABEL_GAP * figure.dpi / panel.get_window_extent().height
        for line, height in zip(lines, _apart(ends, gap), strict=True):
            panel.annotate(
                line.get_label(),
                xy=(line.get_xdata()[-1], line.get_ydata()[-1]),
                xytext=(1.04, height),
                textcoords=panel.transAxes,
                color=line.get_color(),
                fontsize=8.5,
                va="center",
                arrowprops={
                    "arrowstyle": "-",
                    "relpos": (0, 0.5),
                    "color": line.get_color(),
                    "lw": 0.5,
                    "alpha": 0.6,
                    "shrinkA": 1,
                    "shrinkB": 1,
                },
            )


def legend_below(
    figure: Figure,
    names: Mapping[int, str],
    entry_width: float,
    **style: typing.Any,
) -> None:
    """Adds one legend for all panels, wrapped to the figure's width.

    Entry `i` of `names` has the colour `C{i}`, changed by `style`, and is
    `entry_width` inches wide.
    """
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], **{"color": f"C{number}", "label": name, **style})
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
    """Writes a figure to a PNG or SVG file, all of it or nothing.

    An SVG file has no ground, its text stays text, and it has no date: a
    figure that is drawn again gives the same file.

    Args:
        figure: `matplotlib.figure.Figure`.
        path: Path of the file. Its ending says which of the two.
        **arguments: Arguments of `Figure.savefig`, such as `dpi`.
    """
    import matplotlib as mpl

    image, path = io.BytesIO(), pathlib.Path(path)
    arguments["format"] = path.suffix.removeprefix(".") or "png"
    if arguments["format"] == "svg":
        arguments |= {"transparent": True, "metadata": {"Date": None}}
    with mpl.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "keras_relational"}
    ):
        figure.savefig(image, **arguments)
    write_atomically(path, image.getvalue())


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


def _height_of_end(line):
    """Where a line ends, as a share of its panel's height."""
    end = line.get_xdata()[-1], line.get_ydata()[-1]
    to_panel = line.axes.transData - line.axes.transAxes
    return to_panel.transform(end)[1]


def _apart(heights, gap):
    """The sorted heights closest to these that are `gap` apart, in 0 to 1."""
    steps = gap * np.arange(len(heights))
    room = max(0, 1 - gap * (len(heights) - 1))
    groups = []  # Of labels that touch.
    for height in heights - steps:
        groups.append([height])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    shifted = [np.mean(group) for group in groups for _ in group]
    return np.clip(shifted, 0, room) + steps


def _soften(panel):
    """Makes frame, ticks and labels grey, on no ground."""
    panel.set_facecolor("none")
    panel.figure.patch.set_alpha(0)
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["bottom", "left"]].set_color(GREY)
    panel.tick_params(colors=GREY, labelsize=8.5)
    for text in (panel.title, panel.xaxis.label, panel.yaxis.label):
        text.set(color=GREY, fontsize=9.5)
    panel.grid(color=GREY, alpha=0.25, lw=0.6)
