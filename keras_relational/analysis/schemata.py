"""Which schema each object file uses at each step, and where it looks.

Goyal et al., 2020, *Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments*, Figs. 3, 6, 13 and 15.
"""

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
from keras_relational.analysis.single_layer import call_arguments
from keras_relational.analysis.single_layer import only_layer
from keras_relational.training.supervised import predictions


class ObjectFiles(typing.NamedTuple):
    """The scores of SCOFF for each sequence and step.

    A step that does not update an object file has zeros for it.

    Attributes:
        inputs: Array `(n, time, num_heads, num_object_files, positions)`,
            attention to the positions.
        schemata: Array `(n, time, num_object_files, num_schemata)`, score of
            each schema. The object file uses the schema with the largest score.
        messages: Array `(n, time, num_message_heads, num_object_files,
            num_object_files)`, attention between object files, the reader
            first.
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
    scores = predictions(scores_part(model), sequences, batch_size)
    return ObjectFiles(*(score.astype("float32") for score in scores))


@once_for_each_model
def scores_part(model):
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
