"""The memory of an ESBN: the keys it writes and the memories it reads.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*.
"""

import typing

import keras
import numpy as np

from keras_relational import models
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.analysis.compiled_parts import once_for_each_model
from keras_relational.analysis.plotting import Figure
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.single_layer import call_arguments
from keras_relational.analysis.single_layer import only_layer
from keras_relational.layers import ESBN
from keras_relational.training.supervised import predictions


class Bindings(typing.NamedTuple):
    """The keys and the attention of an ESBN's memory, for each problem.

    Attributes:
        keys: Array `(n, time, key_dim)`, key that each step writes.
        key_scores: Array `(n, steps, time)`, weight of each memory when a step
            reads a key. The extra step is one of the steps.
        value_scores: Array `(n, steps, time)`, weight of each memory when a
            step retrieves a value. `None` if the ESBN retrieves no values.
        confidence: Array `(n, steps)`, from 0 to 1: how well the value of a
            step matched those in memory. The weights do not tell this. `None`
            for an ESBN without `confidence`.
    """

    keys: np.ndarray
    key_scores: np.ndarray
    value_scores: np.ndarray | None
    confidence: np.ndarray | None = None


def bindings(
    model: keras.Model, sequences: np.ndarray, batch_size: int = 250
) -> Bindings:
    """The keys that an ESBN writes and the memories that it reads.

    Args:
        model: Functional or sequential `keras.Model` with exactly one layer
            `ESBN`, or model of `models.rule_learner` with `sequential="esbn"`.
        sequences: Array of the model's inputs.
        batch_size: Number of sequences in a batch of the computation.

    Returns:
        `Bindings`.

    Raises:
        ValueError: If the model is none of these.

    Example:

    >>> from keras_relational.layers import ESBN
    >>> model = keras.Sequential([keras.Input((5, 8)), ESBN(16, key_dim=4)])
    >>> bindings(model, np.zeros((2, 5, 8))).key_scores.shape
    (2, 6, 5)
    """
    found = predictions(memory_part(model), sequences, batch_size)
    found = {name: values.astype("float32") for name, values in found.items()}
    return Bindings(**({"value_scores": None} | found))


@once_for_each_model
def memory_part(model):
    """A model from sequences to the fields of `Bindings`."""
    if {"encoder", "reasoner", "esbn"} <= set(models.roles(model).parts):
        encoder, reasoner, esbn = (
            models.part(model, role) for role in ("encoder", "reasoner", "esbn")
        )
        # The reasoner may normalize the embeddings first.
        before = keras.Model(reasoner.input, esbn.input)

        def arguments_for(sequences):
            return before(encoder(sequences)), {}
    else:
        esbn = only_layer(model, ESBN)
        arguments_for = call_arguments(model, esbn)

    def read(sequences):
        z, kwargs = arguments_for(sequences)
        _, scores = esbn(z, return_attention_scores=True, **kwargs)
        found = {"keys": esbn.written_keys(z, **kwargs), "key_scores": scores}
        if esbn.return_retrieved:
            found["key_scores"], found["value_scores"] = scores
        if esbn.confidence:
            found["confidence"] = esbn.read_confidence(z, **kwargs)
        return found

    return CompiledPart(model, read)


def plot_retrieval(found: Bindings, problem: int = 0) -> Figure:
    """Draws which memory each step of a problem reads.

    If the ESBN has a confidence, it multiplies the weights of the keys. A step
    whose value is not in memory is then pale.

    Args:
        found: `Bindings`.
        problem: Number of the problem.

    Returns:
        `matplotlib.figure.Figure` with a panel for keys and, if the ESBN
        retrieves values, a panel for values.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    panels = {"keys read": found.key_scores}
    if found.confidence is not None:
        panels = {
            "keys read, times confidence": found.key_scores
            * found.confidence[..., None]
        }
    if found.value_scores is not None:
        panels["values retrieved"] = found.value_scores
    figure = new_figure(3.4 * len(panels) + 0.6, 3.4)
    row = figure.subplots(1, len(panels), squeeze=False)[0]
    for panel, (title, scores) in zip(row, panels.items(), strict=True):
        image = panel.imshow(scores[problem], vmin=0, vmax=1, cmap="Blues")
        _, steps, time = scores.shape
        panel.set(
            title=title,
            xlabel="written at step",
            ylabel="read at step",
            xticks=range(time),
            xticklabels=range(1, time + 1),
            yticks=range(steps),
            yticklabels=range(1, steps + 1),
        )
    figure.colorbar(image, ax=list(row), label="weight")
    return figure
