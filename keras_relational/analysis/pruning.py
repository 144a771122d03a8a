"""How many heads are necessary: Fig. S10 of the PrediNet paper.

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_relational import models
from keras_relational.analysis.attention import as_float32
from keras_relational.analysis.compiled_parts import once_for_each_model
from keras_relational.analysis.compiled_parts import predict
from keras_relational.analysis.components import layer_with_heads
from keras_relational.analysis.plotting import Figure
from keras_relational.analysis.plotting import new_figure


def pruned_accuracy(
    model: keras.Model,
    x: np.ndarray | Sequence[np.ndarray],
    labels: np.ndarray,
    kept: np.ndarray,
    batch_size: int = 250,
) -> np.ndarray:
    """Accuracy when only some heads are kept and the others give zeros.

    The first layer of the output MLP is linear in the heads. If head `h`
    contributes `C^h`, the layer computes `Σ kept^h C^h + b`. Encoder and
    central module therefore run once, and each set of heads costs one product
    with `C`. Reference: section S2.3 of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307).

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"` or `"mha"`, or any model that declares such a part
            `"central"`.
        x: The model's input: uint8 images `(batch, 36, 36, 3)`, or a pair of
            images and task ids.
        labels: Integer array `(batch,)`.
        kept: Boolean array `(num_sets, num_heads)`. `True` keeps a head.
        batch_size: Number of images in a batch of the computation.

    Returns:
        Array `(num_sets,)` of shares between 0 and 1.

    Raises:
        ValueError: If the central module has no heads, or `kept` has another
            number of heads.

    Example:

    >>> from keras_relational import models
    >>> model = models.relations_classifier("predinet")
    >>> images, labels = np.zeros((5, 36, 36, 3), "uint8"), np.zeros(5, "uint8")
    >>> pruned_accuracy(model, images, labels, np.eye(32, dtype=bool)).shape
    (32,)
    """
    layer = layer_with_heads(model)
    kept, labels = np.asarray(kept), np.asarray(labels)
    if kept.ndim != 2 or kept.shape[1] != layer.num_heads:
        raise ValueError(
            "`kept` must have one row a set and one column a head, "
            f"(num_sets, {layer.num_heads}). Received: kept.shape={kept.shape}"
        )
    of_heads, always = _contributions(model, x, batch_size)
    hidden, last = models.part(model, "hidden"), models.part(model, "logits")
    last_kernel, last_bias = map(as_float32, (last.kernel, last.bias))
    # Units come before examples: (units, batch), (num_heads, units * batch).
    always = np.ascontiguousarray(always.T)
    of_heads = of_heads.transpose(1, 2, 0).reshape(layer.num_heads, -1)

    # A model from sets of heads to the number of right answers.
    sets = keras.Input((layer.num_heads,))
    before = ops.reshape(ops.matmul(sets, of_heads), (-1, *always.shape))
    after = hidden.activation(before + always)
    logits = ops.matmul(last_kernel.T, after) + last_bias[:, None]
    right = ops.equal(ops.argmax(logits, axis=1), labels.astype("int32"))
    count = keras.Model(sets, ops.sum(ops.cast(right, "int32"), axis=1))
    # A batch of sets should fit in a processor's cache: 1 million numbers.
    sets_at_once = max(1, 1_000_000 // always.size)
    kept = kept.astype("float32")
    counts = count.predict(kept, batch_size=sets_at_once, verbose=0)
    return counts / len(labels)


def head_effects(
    model: keras.Model,
    x: np.ndarray | Sequence[np.ndarray],
    others: np.ndarray | Sequence[np.ndarray],
    batch_size: int = 250,
) -> np.ndarray:
    """How much each head decides: what its outputs add to the logits.

    The effect of a head on an image is the difference between the logits and
    what they would be if the head gave its mean output over other images. A
    head that says the same about all images has no effect.

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"` or `"mha"`, or any model that declares such a part
            `"central"`.
        x: The model's input: uint8 images `(batch, 36, 36, 3)`, or a pair of
            images and task ids.
        others: Further inputs of the model, from which the means are taken.
        batch_size: Number of images in a batch of the computation.

    Returns:
        Array `(batch, num_heads, num_classes)`.

    Raises:
        ValueError: If the central module has no heads.

    Example:

    >>> from keras_relational import models
    >>> model = models.relations_classifier("predinet")
    >>> images = np.zeros((5, 36, 36, 3), "uint8")
    >>> head_effects(model, images[:1], images).shape
    (1, 32, 2)
    """
    of_heads, always = _contributions(model, x, batch_size)
    means = _contributions(model, others, batch_size)[0].mean(axis=0)
    hidden, last = models.part(model, "hidden"), models.part(model, "logits")
    last_kernel, last_bias = map(as_float32, (last.kernel, last.bias))

    def logits(before):
        return as_float32(hidden.activation(before)) @ last_kernel + last_bias

    before = of_heads.sum(axis=1, keepdims=True) + always[:, None]
    return logits(before) - logits(before - of_heads + means)


def _contributions(model, x, batch_size):
    """What each head adds to the first layer of the output MLP.

    Returns:
        `(batch, num_heads, units)`, and `(batch, units)` of what the heads do
        not change: the bias, and the one-hot code of a task.
    """
    layer, hidden = layer_with_heads(model), models.part(model, "hidden")
    kernel, bias = map(as_float32, (hidden.kernel, hidden.bias))
    features = predict(_features(model), x, batch_size).astype("float32")
    size, num_heads = layer.output.shape[-1], layer.num_heads
    of_heads = np.einsum(
        "bhs,hsu->bhu",
        features[:, :size].reshape(len(features), num_heads, -1),
        kernel[:size].reshape(num_heads, -1, len(bias)),
        optimize=True,
    )
    return of_heads, features[:, size:] @ kernel[size:] + bias


@once_for_each_model
def _features(model):
    """A model to the central output and the one-hot code of a task, in one."""
    return keras.Model(model.inputs, models.part(model, "hidden").input)


def pruning_curve(
    model: keras.Model,
    x: np.ndarray | Sequence[np.ndarray],
    labels: np.ndarray,
    heads: Iterable[int] | None = None,
    num_subsets: int = 100,
    seed: int = 0,
    batch_size: int = 250,
) -> np.ndarray:
    """Accuracy with random subsets of q heads, for each number q.

    Reference: Fig. S10 of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307), which shows the mean and the best of 100
    subsets of each size, drawn from all heads or from the heads that attend to
    objects.

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"` or `"mha"`, or any model that declares such a part
            `"central"`.
        x: The model's input: uint8 images `(batch, 36, 36, 3)`, or a pair of
            images and task ids.
        labels: Integer array `(batch,)`.
        heads: Numbers of the heads to draw from, such as `object_heads`. By
            default all. Other heads are never kept.
        num_subsets: Positive integer, number of subsets of each size.
        seed: Non-negative integer that determines the subsets.
        batch_size: Number of images in a batch of the computation.

    Returns:
        Array `(len(heads), num_subsets)` of shares between 0 and 1. Row q − 1
        is for the subsets of q heads. Mean and maximum over the last axis are
        the paper's curves.

    Raises:
        ValueError: If the central module has no heads, or `heads` is empty or
            contains a number that is not a head.

    Example:

    >>> from keras_relational import models
    >>> model = models.relations_classifier("predinet")
    >>> images, labels = np.zeros((5, 36, 36, 3), "uint8"), np.zeros(5, "uint8")
    >>> pruning_curve(model, images, labels, num_subsets=10).shape
    (32, 10)
    """
    num_heads = layer_with_heads(model).num_heads
    heads = np.arange(num_heads) if heads is None else np.unique(list(heads))
    if not len(heads) or not set(heads) <= set(range(num_heads)):
        raise ValueError(
            f"`heads` must name one or more of the heads 0 to {num_heads - 1}. "
            f"Received: heads={heads.tolist()}"
        )
    sizes = np.arange(1, len(heads) + 1).repeat(num_subsets)
    order = np.random.default_rng(seed).random((len(sizes), len(heads)))
    kept = np.zeros((len(sizes), num_heads), bool)
    # A subset is the q heads with the lowest random numbers.
    kept[:, heads] = order.argsort(axis=1).argsort(axis=1) < sizes[:, None]
    accuracies = pruned_accuracy(model, x, labels, kept, batch_size)
    return accuracies.reshape(len(heads), num_subsets)


def plot_pruning(accuracies: Mapping[str, np.ndarray]) -> Figure:
    """Draws the accuracy over the number of heads: Fig. S10.

    A solid line shows the mean of the subsets of each size, and a dashed line
    the best.

    Args:
        accuracies: Dictionary from the name of a model to its array
            `(num_heads, num_subsets)` of `pruning_curve`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    figure = new_figure(6, 4)
    panel = figure.subplots()
    for number, (name, of_sizes) in enumerate(accuracies.items()):
        sizes = np.arange(1, len(of_sizes) + 1)
        for values, style, what in (
            (of_sizes.mean(axis=1), "-", "mean"),
            (of_sizes.max(axis=1), "--", "best"),
        ):
            panel.plot(
                sizes,
                100 * values,
                style,
                marker=".",
                color=f"C{number}",
                label=f"{name}, {what}",
            )
    panel.set(xlabel="heads kept", ylabel="accuracy (%)")
    panel.grid(alpha=0.3)
    panel.legend()
    return figure
