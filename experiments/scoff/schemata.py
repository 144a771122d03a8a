"""The information of schemata about true dynamics, with pictures of both.

Goyal et al., 2020, Figs. 3, 6, 13 and 15.
"""

import numpy as np

from keras_relational import analysis
from keras_relational.analysis.plotting import new_figure

BURN_IN = 5  # Steps until the schemata have settled (Figs. 3 and 15).


def schemata_in_use(found, share=0.01):
    """The number of schemata that a given share of all updates use."""
    num_schemata = found.schemata.shape[-1]
    taken = found.schemata.argmax(-1)[found.schemata.any(-1)]
    shares = np.bincount(taken, minlength=num_schemata) / len(taken)
    return int((shares >= share).sum())


def label_tables(found, labels, burn_in=BURN_IN, after_change=0):
    """How often each schema meets each label, a table an object file.

    `labels` are the true dynamics at each step `(n, time)`, or of each sequence
    `(n,)`. The first `burn_in` steps are not counted, nor are `after_change`
    steps from each change of the label on.
    """
    schemata = found.schemata.argmax(-1)
    labels = np.asarray(labels)
    if labels.ndim == 1:
        labels = np.repeat(labels[:, None], schemata.shape[1], axis=1)
    labels = labels[:, : schemata.shape[1]]
    is_counted = np.ones(labels.shape, bool)
    is_counted[:, :burn_in] = False
    is_changed = labels[:, 1:] != labels[:, :-1]
    for later in range(1, min(1 + after_change, labels.shape[1])):
        is_counted[:, later:] &= ~is_changed[:, : labels.shape[1] - later]
    if not is_counted.any():
        raise ValueError(
            "No step is left to be counted. Take longer sequences, or a "
            "smaller `burn_in` or `after_change`. Received: "
            f"found.schemata.shape={found.schemata.shape}, "
            f"burn_in={burn_in}, after_change={after_change}"
        )
    return [
        analysis.contingency(
            schemata[..., number][is_counted],
            labels[is_counted],
            found.schemata.shape[-1],
        )
        for number in range(schemata.shape[2])
    ]


def label_information(found, labels, burn_in=BURN_IN, after_change=0):
    """The `label_tables` as lists, and the information of each, from 0 to 1."""
    tables = label_tables(found, labels, burn_in, after_change)
    return {
        "contingency": [table.tolist() for table in tables],
        "information": [analysis.mutual_information(table) for table in tables],
    }


def schema_metrics(model, sequences, labels, directory):
    """The `label_information`, and as `settled` that of steps after changes."""
    found = analysis.object_files(model, sequences[:, :-1])
    metrics = label_information(found, labels)
    metrics["settled"] = label_information(found, labels, after_change=2)
    draw_object_files(found, directory, labels=labels[0])
    return metrics


def draw_object_files(found, directory, frames=None, labels=None):
    """Draws the first sequence: `schemata.png`, with frames `attention.png`."""
    if labels is not None:
        time = found.schemata.shape[1]
        labels = np.broadcast_to(np.atleast_1d(labels)[:time], time)
    figure = analysis.plot_schemata(found, labels=labels)
    analysis.save_figure(figure, directory / "schemata.png")
    if frames is not None:
        figure = plot_spatial_attention(frames, found)
        analysis.save_figure(figure, directory / "attention.png")


def plot_spatial_attention(frames, found, sequence=0, every=5):
    """Draws frames and where each object file looks, the mean over heads."""
    scores = found.inputs[sequence].mean(axis=1)
    time, files, positions = scores.shape
    side = round(positions**0.5)
    shown = range(0, time, every)
    figure = new_figure(0.9 * len(shown) + 1, 0.95 * (files + 1) + 0.4)
    grid = figure.subplots(files + 1, len(shown), squeeze=False)
    for column, step in zip(grid.T, shown, strict=True):
        column[0].imshow(frames[step].squeeze(), cmap="gray", vmin=0, vmax=255)
        column[0].set_title(step + 1, fontsize="small")
        for panel, score in zip(column[1:], scores[step], strict=True):
            panel.imshow(
                score.reshape(side, side), cmap="Blues", vmin=0, vmax=1
            )
    for panel in grid.flat:
        panel.set(xticks=[], yticks=[])
    for number, panel in enumerate(grid[1:, 0]):
        panel.set_ylabel(f"file {number + 1}")
    return figure
