"""Which schema which object file takes, when, and where it looks.

Goyal et al., 2020, *Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments*, Figs. 3, 6, 13 and 15.
"""

import typing

import keras
import numpy as np

from keras_relational import layers
from keras_relational import models
from keras_relational.analysis.attention import as_float32
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.plotting import save_gif


class ObjectFiles(typing.NamedTuple):
    """What SCOFF does, sequence by sequence and step by step.

    `inputs` `(n, time, num_heads, num_object_files, positions)`, the scores of
    the positions; `schemata` `(n, time, num_object_files, num_schemata)`, how
    much each suits, the largest of which is taken; and `messages` `(n, time,
    num_message_heads, num_object_files, num_object_files)`, the reader first.
    The last two are zero for object files that are not updated in a step.
    """

    inputs: np.ndarray
    schemata: np.ndarray
    messages: np.ndarray


def object_files(model, sequences, batch_size=50):
    """What the `SCOFF` layer of a model does on sequences.

    Args:
        model: A functional or sequential `keras.Model` with one layer `SCOFF`,
            to which its inputs lead, such as `models.video_predictor` builds.
        sequences: Array of the model's inputs.
        batch_size: Number of sequences computed at once.

    Returns:
        `ObjectFiles`.

    Raises:
        ValueError: If the model has no such layer, or it is stateful.
    """
    found = [x for x in model.layers if isinstance(x, layers.SCOFF)]
    if len(found) != 1:
        names = [layer.name for layer in model.layers]
        raise ValueError(
            f"{model.name} has not one layer SCOFF but {len(found)}, among "
            f"its layers {names}"
        )
    (scoff,) = found
    if scoff.stateful:
        raise ValueError(
            f"{scoff.name} is stateful, and would not be as it was. Build the "
            "model without `stateful` and give it the weights of this one"
        )
    sequential = isinstance(model, keras.Sequential)
    first = model.inputs[0] if sequential else model.input
    # What it is called with: sequences, and there may be states and a mask.
    tensors = keras.tree.flatten(scoff.input)
    inputs = keras.Model(first, tensors)
    parts = []
    for i in range(0, len(sequences), batch_size):
        kwargs = {"return_attention_scores": True}
        x, *others = keras.tree.flatten(inputs(sequences[i : i + batch_size]))
        for tensor, value in zip(tensors[1:], others, strict=True):
            if tensor.dtype == "bool":
                kwargs["mask"] = value
            else:
                kwargs.setdefault("initial_state", []).append(value)
        _, scores = scoff(x, **kwargs)
        parts.append([as_float32(score) for score in scores])
    return ObjectFiles(*map(np.concatenate, zip(*parts, strict=True)))


def episode_object_files(model, images):
    """What the object files of an agent do in one episode.

    Args:
        model: As `models.boxworld_agent` builds, with a `SCOFFCell`.
        images: uint8 array `(time, height, width, channels)`, such as those of
            `record`.

    Returns:
        `ObjectFiles` of one sequence.

    Raises:
        ValueError: If the agent has no `SCOFFCell`.
    """
    has_core = "core" in models.roles(model).parts
    cell = models.part(model, "core").cell if has_core else None
    if not isinstance(cell, layers.SCOFFCell):
        raise ValueError(
            f"The memory of {model.name} is no SCOFFCell. Received: {cell!r}"
        )
    features = keras.Model(model.inputs[0], models.part(model, "core").input[0])
    states, steps = cell.get_initial_state(1), []
    for x in features(images[None]):
        _, states, scores = cell(x[None], states, return_attention_scores=True)
        steps.append([as_float32(score) for score in scores])
    scores = map(np.concatenate, zip(*steps, strict=True))
    return ObjectFiles(*(x[None] for x in scores))


def schemata_in_use(found, share=0.01):
    """How many schemata are taken in at least that share of all updates.

    Args:
        found: `ObjectFiles`.
        share: Number between 0 and 1.

    Returns:
        Integer.
    """
    num_schemata = found.schemata.shape[-1]
    taken = found.schemata.argmax(-1)[found.schemata.any(-1)]
    shares = np.bincount(taken, minlength=num_schemata) / len(taken)
    return int((shares >= share).sum())


def contingency(schemata, labels, num_schemata=None):
    """How often each schema meets each label.

    Args:
        schemata: Integer array, the schema taken at each place.
        labels: Integer array of the same shape.
        num_schemata: How many there are; by default the last is one that is
            taken.

    Returns:
        Integer array `(number of labels, number of schemata)`.

    Raises:
        ValueError: If the shapes differ.

    Example:

    >>> contingency(np.array([1, 1, 0]), np.array([0, 0, 1]))
    array([[0, 2],
           [1, 0]])
    """
    schemata, labels = np.asarray(schemata), np.asarray(labels)
    if schemata.shape != labels.shape:
        raise ValueError(
            "There must be a label for each schema taken. Received: "
            f"schemata.shape={schemata.shape}, labels.shape={labels.shape}"
        )
    num_schemata = num_schemata or schemata.max() + 1
    table = np.zeros((labels.max() + 1, num_schemata), int)
    np.add.at(table, (labels.ravel(), schemata.ravel()), 1)
    return table


def mutual_information(table):
    """Mutual information of rows and columns, as a share of the rows' entropy.

    1 if the column tells the row, 0 if it tells nothing of it.

    Args:
        table: Array of counts, as `contingency` returns.

    Returns:
        Number between 0 and 1.

    Example:

    >>> mutual_information(np.array([[0, 2], [2, 0]]))
    1.0
    """
    joint = table / table.sum()
    rows, columns = joint.sum(1, keepdims=True), joint.sum(0, keepdims=True)
    there = joint > 0
    alone = (rows * columns)[there]
    information = (joint[there] * np.log(joint[there] / alone)).sum()
    rows = rows[rows > 0]
    entropy = -(rows * np.log(rows)).sum()
    return float(information / entropy) if entropy else 1.0


def plot_schemata(found, sequence=0, labels=None):
    """Draws which schema each object file takes at each step.

    Args:
        found: `ObjectFiles`.
        sequence: Number of the sequence.
        labels: Optional integers, one a step, drawn above.

    Returns:
        `matplotlib.figure.Figure`: a panel for each object file, schemata from
        top to bottom, steps from left to right; dark is what suits best, and
        the one taken is framed.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    scores = found.schemata[sequence]
    time, files, schemata = scores.shape
    above = int(labels is not None)
    figure = new_figure(
        1 + 0.16 * time, 0.4 + (0.3 + 0.22 * schemata) * files + 0.5 * above
    )
    panels = figure.subplots(files + above, 1, sharex=True, squeeze=False)[:, 0]
    if labels is not None:
        panels[0].imshow([labels], cmap="tab10", aspect="auto")
        panels[0].set(yticks=[], ylabel="label")
    for number, panel in enumerate(panels[above:]):
        panel.imshow(
            scores[:, number].T, cmap="Blues", vmin=0, vmax=1, aspect="auto"
        )
        (steps,) = np.nonzero(scores[:, number].any(-1))
        taken = scores[steps, number].argmax(-1)
        panel.plot(steps, taken, "s", mfc="none", mec="C3", ms=4)
        panel.set(
            ylabel=f"file {number + 1}",
            yticks=range(schemata),
            yticklabels=range(1, schemata + 1),
        )
    panels[-1].set_xlabel("step")
    return figure


def plot_spatial_attention(frames, found, sequence=0, every=5):
    """Draws where each object file looks.

    Args:
        frames: uint8 array `(time, height, width, channels)`.
        found: `ObjectFiles` of them, of a model whose positions are an image.
        sequence: Number of the sequence in `found`.
        every: Draws every so many frames.

    Returns:
        `matplotlib.figure.Figure`: the frames in the first row, and one row for
        each object file with its share of the attention, mean over heads.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the positions are no square image.
    """
    scores = found.inputs[sequence].mean(axis=1)
    time, files, positions = scores.shape
    side = round(positions**0.5)
    if side**2 != positions:
        raise ValueError(
            f"Attention to {positions} positions is no square image. Expected "
            "a model whose SCOFF layer sees the positions of one"
        )
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


def save_videos(videos, path, milliseconds=100, scale=3):
    """Keeps videos side by side as a GIF file: the whole of it, or none.

    Args:
        videos: List of arrays `(time, height, width, channels)` of one shape,
            the true one first, say, then what was predicted: uint8, or floats
            between 0 and 1.
        path: Path of the file, written aside and renamed.
        milliseconds: Time that a frame is shown.
        scale: Positive integer, width and height of a pixel.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: If the shapes differ.
    """
    shapes = [np.shape(video) for video in videos]
    if len(set(shapes)) != 1:
        raise ValueError(f"The videos must have one shape. Received: {shapes}")
    edges = [(0, 0), (1, 1), (1, 1), (0, 0)]
    rows = np.concatenate(
        [
            np.pad(_as_uint8(video), edges, constant_values=99)
            for video in videos
        ],
        axis=2,
    )
    rows = rows.repeat(scale, axis=1).repeat(scale, axis=2)
    if rows.shape[-1] == 1:
        rows = rows[..., 0]
    save_gif(rows, path, milliseconds)


def _as_uint8(video):
    if np.asarray(video).dtype == np.uint8:
        return video
    return np.rint(255 * np.clip(video, 0, 1)).astype("uint8")
