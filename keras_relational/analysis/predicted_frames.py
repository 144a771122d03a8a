"""Predicted images beside true ones."""

import numpy as np

from keras_relational.analysis.plotting import new_figure


def plot_predicted_frames(sequence, predictions, every=3):
    """Draws a sequence and what models said would come next.

    Args:
        sequence: uint8 array `(time, height, width, 1)`.
        predictions: Dictionary from name to array `(time - 1, height, width,
            1)`, what was predicted after each frame but the last.
        every: Draws every so many frames, ending with the last.

    Returns:
        `matplotlib.figure.Figure`: the true frames in the first row, and one
        row for each of the predictions of the same frames.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If there are not as many predictions as frames to predict.
    """
    frames = np.asarray(sequence)[1:] / 255
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
