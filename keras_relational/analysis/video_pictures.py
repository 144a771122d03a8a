"""Pictures of predicted videos.

They show the object files of a predictor, and what it makes of the beginning of
a video.
"""

import pathlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_relational import models
from keras_relational import training
from keras_relational.analysis.plotting import Figure
from keras_relational.analysis.plotting import legend_below
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.plotting import save_figure
from keras_relational.analysis.schemata import ObjectFiles
from keras_relational.analysis.schemata import label_information
from keras_relational.analysis.schemata import object_files
from keras_relational.analysis.schemata import plot_schemata
from keras_relational.analysis.schemata import plot_spatial_attention
from keras_relational.analysis.schemata import save_videos
from keras_relational.analysis.schemata import schemata_in_use
from keras_relational.models.image_model import to_pixels


def draw_object_files(
    found: ObjectFiles,
    directory: pathlib.Path,
    frames: np.ndarray | None = None,
    labels: np.ndarray | int | None = None,
) -> None:
    """Draws the first sequence: `schemata.png`, and `attention.png`.

    Args:
        found: `ObjectFiles`, as `object_files` returns them.
        directory: Folder to write to.
        frames: The first sequence, uint8 `(time, height, width, channels)`. By
            default the attention is not drawn.
        labels: Optional integers, one a step, or one for all. They are drawn
            above the schemata.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If a file cannot be written; the error names it.
    """
    if labels is not None:
        time = found.schemata.shape[1]
        labels = (
            np.broadcast_to(labels, time) if np.ndim(labels) == 0 else labels
        )
        labels = np.asarray(labels)[:time]
    figure = plot_schemata(found, labels=labels)
    save_figure(figure, directory / "schemata.png")
    if frames is not None:
        figure = plot_spatial_attention(frames, found)
        save_figure(figure, directory / "attention.png")


def ball_figures(
    model: keras.Model,
    videos: np.ndarray,
    labels: np.ndarray,
    directory: pathlib.Path,
) -> dict[str, Any]:
    """Figures of a predictor of one ball, and a picture of its schemata.

    Writes `schemata.png`, the schemata of the first video.

    Args:
        model: Model of `models.single_ball_predictor`.
        videos: uint8 array `(n, time, height, width, 1)`.
        labels: Integers, the dynamics of each video `(n,)` or step `(n, time)`.
        directory: Folder to write to.

    Returns:
        Dictionary of

        - `contingency` and `information`, as `label_information` returns them,
        - `settled`, a dictionary of the same, without the step at which the
          dynamics change and the one after it,
        - `roll_out_error`, the mean squared error of the last two thirds of the
          first 200 videos, predicted from their first third.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If the file cannot be written; the error names it.
        ValueError: If the model does not have exactly one layer `SCOFF`, or if
            the videos have fewer than seven frames.
    """
    figures = coordinates_figures(model, videos, labels, directory)
    given = videos.shape[1] // 3
    lengths = given, videos.shape[1] - given
    errors = training.roll_out_errors(model, videos[:200], *lengths)
    figures["roll_out_error"] = float(errors.mean())
    return figures


def coordinates_figures(
    model: keras.Model,
    sequences: np.ndarray,
    labels: np.ndarray,
    directory: pathlib.Path,
) -> dict[str, Any]:
    """What the schemata of a predictor tell of the dynamics, with a picture.

    Writes `schemata.png`, the schemata of the first sequence.

    Args:
        model: Model of `models.coordinates_predictor`, or another one with a
            layer `SCOFF`.
        sequences: Array `(n, time, ...)`.
        labels: Integers, the dynamics of each sequence `(n,)` or step `(n,
            time)`.
        directory: Folder to write to.

    Returns:
        Dictionary of

        - `contingency` and `information`, as `label_information` returns them,
        - `settled`, a dictionary of the same, without the step at which the
          dynamics change and the one after it.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If the file cannot be written; the error names it.
        ValueError: If the model does not have exactly one layer `SCOFF`.
    """
    found = object_files(model, sequences[:, :-1])
    figures: dict[str, Any] = label_information(found, labels)
    figures["settled"] = label_information(found, labels, after_change=2)
    draw_object_files(found, directory, labels=labels[0])
    return figures


def roll_out_figures(
    model: keras.Model, videos: np.ndarray, directory: pathlib.Path
) -> dict[str, Any]:
    """Figures of a predictor of bouncing balls, with pictures.

    Writes what `draw_roll_out` and, for a SCOFF core, `draw_object_files` make
    of the first video.

    Args:
        model: Model of `models.bouncing_balls_predictor`.
        videos: uint8 array `(n, time, height, width, channels)`, with 45 frames
            or more.
        directory: Folder to write to.

    Returns:
        Dictionary of

        - `error_10` and `error_30`, the mean squared errors of 10 and 30 frames
          predicted after 15, as `training.roll_out_errors` computes them,
        - `error_of_frames`, a list of the errors of the 30 frames,
        - `mean_image` and `last_frame`, dictionaries of the same for the two
          predictions of `training.simple_roll_out_errors`,
        - `schemata_in_use`, for a SCOFF core alone.

    Raises:
        ImportError: If matplotlib or Pillow is not installed.
        OSError: If a file cannot be written; the error names it.
        ValueError: If the videos are too short.
    """
    figures = _of_frames(training.roll_out_errors(model, videos))
    simple = training.simple_roll_out_errors(videos)
    figures |= {name: _of_frames(errors) for name, errors in simple.items()}
    draw_roll_out(model, videos[0], directory)
    if hasattr(models.part(model, "core"), "num_schemata"):
        found = object_files(model, videos[:200, :-1])
        figures["schemata_in_use"] = schemata_in_use(found)
        draw_object_files(found, directory, videos[0])
    return figures


def _of_frames(errors):
    figures = {f"error_{n}": float(errors[:n].mean()) for n in (10, 30)}
    return {**figures, "error_of_frames": errors.tolist()}


def plot_roll_out_errors(
    errors: Mapping[str, Mapping[str, Sequence]],
) -> Figure:
    """Draws how errors grow over the frames of roll-outs, a panel a task.

    Lines are means over runs. Bands reach one standard deviation to each side.

    Args:
        errors: Dictionary from the name of a task to one from the name of a
            line to a sequence of the errors of each run: mean squared errors of
            one frame after the other. All tasks have the same lines.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.

    Example:

    >>> figure = plot_roll_out_errors({"4balls": {"gru": [[0.02, 0.03]]}})
    >>> figure.axes[0].get_title()
    '4balls'
    """
    figure = new_figure(4 * len(errors), 4)
    panels = figure.subplots(1, len(errors), sharey=True, squeeze=False)[0]
    for panel, (task, lines) in zip(panels, errors.items(), strict=True):
        for number, runs in enumerate(lines.values()):
            mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0)
            frames, colour = np.arange(1, len(mean) + 1), f"C{number}"
            panel.plot(frames, mean, color=colour)
            band = mean - spread, mean + spread
            panel.fill_between(frames, *band, color=colour, alpha=0.2, lw=0)
        panel.set(title=task, xlabel="frame after the last true one")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("mean squared error")
    names = dict(enumerate(next(iter(errors.values()))))
    legend_below(figure, names, entry_width=1.8)
    return figure


def draw_roll_out(
    model: keras.Model,
    video: np.ndarray,
    directory: pathlib.Path,
    num_given: int = 15,
    num_frames: int = 30,
) -> None:
    """Saves a video beside what a model makes of its beginning.

    Args:
        model: `keras.Model`, as `models.video_predictor` builds.
        video: uint8 array `(time, height, width, channels)`.
        directory: Folder to write `rolled_out.gif` to.
        num_given: Number of true frames to begin with.
        num_frames: Number of frames to predict.

    Raises:
        ImportError: If Pillow is not installed.
        OSError: If the file cannot be written; the error names it.
    """
    video = to_pixels(video[None])[0]
    given = video[:num_given]
    rolling = models.roll_out_model(model, num_frames)
    rolled = rolling.predict(given[None], verbose=0)[0]
    videos = [
        video[: num_given + num_frames],
        np.concatenate([given / 255, rolled]),
    ]
    save_videos(videos, directory / "rolled_out.gif")
