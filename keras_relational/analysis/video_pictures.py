"""Pictures of a video predictor: its object files, and what it goes on with."""

import pathlib

import keras
import numpy as np

from keras_relational import models
from keras_relational.analysis.plotting import save_figure
from keras_relational.analysis.schemata import ObjectFiles
from keras_relational.analysis.schemata import plot_schemata
from keras_relational.analysis.schemata import plot_spatial_attention
from keras_relational.analysis.schemata import save_videos


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
    given = video[:num_given]
    rolling = models.roll_out_model(model, num_frames)
    rolled = rolling.predict(given[None], verbose=0)[0]
    videos = [
        video[: num_given + num_frames],
        np.concatenate([given / 255, rolled]),
    ]
    save_videos(videos, directory / "rolled_out.gif")
