"""Which schema each object file uses at each step, and where it looks.

Labels of the true dynamics tell whether each dynamics gets a schema of its own.

Goyal et al., 2020, *Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments*, Figs. 3, 6, 13 and 15.
"""

import pathlib
import typing
from collections.abc import Sequence

import keras
import numpy as np

from keras_relational import layers
from keras_relational import models
from keras_relational.analysis.attention import as_float32
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.analysis.compiled_parts import once_for_each_model
from keras_relational.analysis.plotting import Figure
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.plotting import save_gif
from keras_relational.analysis.single_layer import call_arguments
from keras_relational.analysis.single_layer import only_layer
from keras_relational.training.supervised import predictions

BURN_IN = 5  # Steps until the schemata have settled.


class ObjectFiles(typing.NamedTuple):
    """The scores of SCOFF for each sequence and step.

    Attributes:
        inputs: Array `(n, time, num_heads, num_object_files, positions)`,
            attention to the positions.
        schemata: Array `(n, time, num_object_files, num_schemata)`, score of
            each schema. The object file uses the schema with the largest score.
            Zero if the step does not update the object file.
        messages: Array `(n, time, num_message_heads, num_object_files,
            num_object_files)`, attention between object files, the reader
            first. Zero if the step does not update the reader.
    """

    inputs: np.ndarray
    schemata: np.ndarray
    messages: np.ndarray


def object_files(
    model: keras.Model, sequences: np.ndarray, batch_size: int = 50
) -> ObjectFiles:
    """The scores of a model's `SCOFF` layer on sequences.

    Args:
        model: Functional or sequential `keras.Model` with exactly one layer
            `SCOFF`, such as a model of `models.video_predictor`.
        sequences: Array of the model's inputs.
        batch_size: Number of sequences in a batch of the computation.

    Returns:
        `ObjectFiles`.

    Raises:
        ValueError: If the model does not have exactly one layer `SCOFF`, or the
            layer is stateful.
    """
    scoff = only_layer(model, layers.SCOFF)
    if scoff.stateful:
        raise ValueError(
            f"{scoff.name} is stateful, and this would change its state. Build "
            "the model without `stateful`, and give it the weights of this one"
        )
    scores = predictions(_scores(model), sequences, batch_size)
    return ObjectFiles(*(score.astype("float32") for score in scores))


@once_for_each_model
def _scores(model):
    """A model from sequences to the fields of `ObjectFiles`."""
    scoff = only_layer(model, layers.SCOFF)
    arguments_for = call_arguments(model, scoff)

    def read(sequences):
        x, kwargs = arguments_for(sequences)
        return scoff(x, return_attention_scores=True, **kwargs)[1]

    return CompiledPart(model, read)


def episode_object_files(model: keras.Model, images: np.ndarray) -> ObjectFiles:
    """The scores of an agent's object files in one episode.

    Args:
        model: Agent of `models.boxworld_agent` with a `SCOFFCell`.
        images: uint8 array `(time, height, width, channels)`, such as the
            images of `record`.

    Returns:
        `ObjectFiles` of one sequence.

    Raises:
        ValueError: If the agent's cell is not a `SCOFFCell`.
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


def schemata_in_use(found: ObjectFiles, share: float = 0.01) -> int:
    """The number of schemata that a given share of all updates use.

    Args:
        found: `ObjectFiles`.
        share: Number between 0 and 1: the smallest share of updates for a
            schema to count.

    Returns:
        Number of schemata.
    """
    num_schemata = found.schemata.shape[-1]
    taken = found.schemata.argmax(-1)[found.schemata.any(-1)]
    shares = np.bincount(taken, minlength=num_schemata) / len(taken)
    return int((shares >= share).sum())


def contingency(
    schemata: np.ndarray, labels: np.ndarray, num_schemata: int | None = None
) -> np.ndarray:
    """Counts how often each schema occurs with each label.

    Args:
        schemata: Integer array of the schemata that are used.
        labels: Integer array of the same shape.
        num_schemata: Number of schemata. By default the largest one in
            `schemata` is the last.

    Returns:
        Integer array `(number of labels, number of schemata)` of counts.

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
            "There must be a label for each schema. Received: "
            f"schemata.shape={schemata.shape}, labels.shape={labels.shape}"
        )
    num_schemata = num_schemata or schemata.max() + 1
    table = np.zeros((labels.max() + 1, num_schemata), int)
    np.add.at(table, (labels.ravel(), schemata.ravel()), 1)
    return table


def mutual_information(table: np.ndarray) -> float:
    """Mutual information of rows and columns, divided by the rows' entropy.

    It is 1 if the column determines the row, and 0 if they are independent.

    Args:
        table: Array of counts, such as the result of `contingency`.

    Returns:
        Number between 0 and 1.

    Example:

    >>> mutual_information(np.array([[0, 2], [2, 0]]))
    1.0
    """
    joint = table / table.sum()
    rows, columns = joint.sum(1, keepdims=True), joint.sum(0, keepdims=True)
    occurs = joint > 0
    independent = (rows * columns)[occurs]
    information = (joint[occurs] * np.log(joint[occurs] / independent)).sum()
    rows = rows[rows > 0]
    entropy = -(rows * np.log(rows)).sum()
    return float(information / entropy) if entropy else 1.0


def plot_schemata(
    found: ObjectFiles,
    sequence: int = 0,
    labels: Sequence[int] | np.ndarray | None = None,
) -> Figure:
    """Draws which schema each object file uses at each step.

    Args:
        found: `ObjectFiles`.
        sequence: Number of the sequence.
        labels: Optional integers, one for each step, drawn above the panels.

    Returns:
        `matplotlib.figure.Figure` with a panel for each object file, schemata
        from top to bottom, and steps from left to right. High scores are dark,
        and a frame marks the schema in use.

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


def plot_spatial_attention(
    frames: np.ndarray, found: ObjectFiles, sequence: int = 0, every: int = 5
) -> Figure:
    """Draws where each object file looks.

    Args:
        frames: uint8 array `(time, height, width, channels)`.
        found: `ObjectFiles` of these frames, for a model whose positions form a
            square image.
        sequence: Number of the sequence in `found`.
        every: Interval between drawn frames.

    Returns:
        `matplotlib.figure.Figure` with the frames in the first row, and a row
        for each object file with its attention, the mean over heads.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the positions do not form a square image.
    """
    scores = found.inputs[sequence].mean(axis=1)
    time, files, positions = scores.shape
    side = round(positions**0.5)
    if side**2 != positions:
        raise ValueError(
            f"The {positions} positions do not form a square image. Expected a "
            "model whose SCOFF layer sees the positions of a square image"
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


def save_videos(
    videos: Sequence[np.ndarray],
    path: pathlib.Path | str,
    milliseconds: float = 100,
    scale: int = 3,
) -> None:
    """Writes videos beside each other to a GIF file, all of it or nothing.

    Args:
        videos: List of arrays `(time, height, width, channels)` of one shape,
            for example a true and a predicted video. Pixels are uint8, or
            floats between 0 and 1.
        path: Path of the file.
        milliseconds: Time that each frame is shown.
        scale: Positive integer, width and height of a pixel in the file.

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


def label_tables(
    found: ObjectFiles,
    labels: np.ndarray,
    burn_in: int = BURN_IN,
    after_change: int = 0,
) -> list[np.ndarray]:
    """How often each schema meets each label, for each object file.

    Goyal et al., 2020, Figs. 3 and 15: it takes some five frames until the
    schemata of a ball settle.

    Args:
        found: `ObjectFiles` of `n` sequences of `time` steps.
        labels: Integers `(n, time)`, the true dynamics at each step, or `(n,)`,
            the dynamics of each sequence. Labels of later steps are left out.
        burn_in: Number of steps that are left out at the beginning.
        after_change: Number of steps that are left out whenever the label
            changes, the step of the change included.

    Returns:
        List with an integer array `(number of labels, num_schemata)` for each
        object file, as `contingency` returns it.

    Raises:
        ValueError: If no step would be left, or the labels are of other
            sequences.
    """
    schemata = found.schemata.argmax(-1)
    labels = np.asarray(labels)
    if labels.ndim == 1:
        labels = np.repeat(labels[:, None], schemata.shape[1], axis=1)
    labels = labels[:, : schemata.shape[1]]
    if labels.shape != schemata.shape[:2]:
        raise ValueError(
            "There must be a label for each sequence, or for each of its "
            f"{schemata.shape[1]} steps. Received: found.schemata.shape="
            f"{found.schemata.shape}, labels.shape={labels.shape}"
        )
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
        contingency(
            schemata[..., number][is_counted],
            labels[is_counted],
            found.schemata.shape[-1],
        )
        for number in range(schemata.shape[2])
    ]


def label_information(
    found: ObjectFiles,
    labels: np.ndarray,
    burn_in: int = BURN_IN,
    after_change: int = 0,
) -> dict[str, list]:
    """What the schemata of each object file tell of the labels.

    Args:
        found: `ObjectFiles` of `n` sequences of `time` steps.
        labels: Integers `(n, time)` or `(n,)`, as for `label_tables`.
        burn_in: Number of steps that are left out at the beginning.
        after_change: Number of steps that are left out whenever the label
            changes, the step of the change included.

    Returns:
        Dictionary of `contingency`, the `label_tables` as lists, and
        `information`, for each of them a number between 0 (nothing) and 1 (the
        schema tells the label), as `mutual_information` returns it.

    Raises:
        ValueError: As for `label_tables`.
    """
    tables = label_tables(found, labels, burn_in, after_change)
    return {
        "contingency": [table.tolist() for table in tables],
        "information": [mutual_information(table) for table in tables],
    }
