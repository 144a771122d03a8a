"""Pictures of predicted frames."""

import pathlib
from collections.abc import Mapping

import keras
import numpy as np

from keras_relational.analysis.plotting import Figure
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.plotting import save_figure
from keras_relational.models.image_model import to_pixels


def plot_predicted_frames(
    sequence: np.ndarray, predictions: Mapping[str, np.ndarray], every: int = 3
) -> Figure:
    """Draws a sequence, and what models predicted.

    Args:
        sequence: uint8 array `(time, height, width, 1)`.
        predictions: Dictionary from the name of a model to an array `(time - 1,
            height, width, 1)`: its predictions of all frames but the first.
        every: Interval between drawn frames. The last frame is drawn.

    Returns:
        `matplotlib.figure.Figure` with the true frames in the first row, and a
        row of predicted frames for each model.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If predictions have another shape than the frames to
            predict.
    """
    frames = to_pixels(np.asarray(sequence)[None])[0, 1:] / 255
    for name, predicted in predictions.items():
        if np.shape(predicted) != frames.shape:
            raise ValueError(
                f"A sequence of {len(frames) + 1} frames has predictions of "
                f"shape {frames.shape}. Received: {name!r} of shape "
                f"{np.shape(predicted)}"
            )
    rows = {"true": frames, **predictions}
    shown = range(len(frames) - 1, -1, -every)[::-1]
    figure = new_figure(0.9 * len(shown) + 1, 0.95 * len(rows) + 0.4)
    grid = figure.subplots(len(rows), len(shown), squeeze=False)
    for panels, (name, images) in zip(grid, rows.items(), strict=True):
        for panel, number in zip(panels, shown, strict=True):
            panel.imshow(images[number], cmap="gray", vmin=0, vmax=1)
            panel.set(xticks=[], yticks=[])
        panels[0].set_ylabel(name.replace("_", "\n"), fontsize="small")
    for panel, number in zip(grid[0], shown, strict=True):
        panel.set_title(number + 2, fontsize="small")  # Counted from 1.
    return figure


def draw_predicted_frames(
    model: keras.Model, sequence: np.ndarray, directory: pathlib.Path
) -> None:
    """Draws a sequence and what a model predicts of it: `predicted.png`.

    Args:
        model: `keras.Model`, as `models.object_predictor` builds.
        sequence: uint8 array `(time, height, width, 1)`.
        directory: Folder to write to.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If the file cannot be written; the error names it.
    """
    predicted = model.predict(sequence[None, :-1], verbose=0)[0]
    figure = plot_predicted_frames(sequence, {"predicted": predicted})
    save_figure(figure, directory / "predicted.png")
