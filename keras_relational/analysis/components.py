"""The outputs of a central module, and their principal components.

The components are those of Figs. 6b, S7 and S8.

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*.
"""

import typing
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

import keras
import numpy as np

from keras_relational import models
from keras_relational.analysis.compiled_parts import once_for_each_model
from keras_relational.analysis.compiled_parts import predict
from keras_relational.analysis.plotting import Figure
from keras_relational.analysis.plotting import legend_below
from keras_relational.analysis.plotting import new_figure
from keras_relational.layers import MultiHeadAttentionPooling
from keras_relational.layers import PrediNet


class PrincipalComponents(typing.NamedTuple):
    """The directions in which a set of vectors varies most.

    Attributes:
        mean: Array `(…, size)`, mean of the vectors.
        axes: Array `(…, num_components, size)` of orthogonal unit vectors, in
            the order of decreasing variance.
        shares: Array `(…, num_components)`, share of the variance along each
            axis.
    """

    mean: np.ndarray
    axes: np.ndarray
    shares: np.ndarray


def central_outputs(
    model: keras.Model, images: np.ndarray, batch_size: int = 250
) -> np.ndarray:
    """The complete output of the central module for each image.

    If the module has heads, this is `R*`, the concatenated outputs of all
    heads. Reference: Fig. 1b of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307).

    Args:
        model: Model of `models.relations_classifier`, or any model whose first
            input is images and that declares a part `"central"`.
        images: uint8 array `(batch, 36, 36, 3)`.
        batch_size: Number of images in a batch of the computation.

    Returns:
        float32 array `(batch, size)`.

    Raises:
        ValueError: If the model has no part `"central"`.

    Example:

    >>> import numpy as np
    >>> from keras_relational import models
    >>> model = models.relations_classifier("mlp1")
    >>> central_outputs(model, np.zeros((3, 36, 36, 3), "uint8")).shape
    (3, 640)
    """
    return predict(_central(model), images, batch_size).astype("float32")


@once_for_each_model
def _central(model):
    return keras.Model(model.inputs[0], models.part(model, "central").output)


def head_outputs(
    model: keras.Model, images: np.ndarray, batch_size: int = 250
) -> np.ndarray:
    """The output of each head of the central module for each image.

    For a PrediNet this is `R^h = (D^h, P1^h, P2^h)`, and for an MHA a sum of
    values. Reference: section 2 of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307).

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"` or `"mha"`, or any model that declares such a part
            `"central"`.
        images: uint8 array `(batch, 36, 36, 3)`.
        batch_size: Number of images in a batch of the computation.

    Returns:
        float32 array `(batch, num_heads, size)`.

    Raises:
        ValueError: If the model's central module has no heads.

    Example:

    >>> import numpy as np
    >>> from keras_relational import models
    >>> model = models.relations_classifier("predinet")
    >>> head_outputs(model, np.zeros((3, 36, 36, 3), "uint8")).shape
    (3, 32, 20)
    """
    num_heads = layer_with_heads(model).num_heads
    outputs = central_outputs(model, images, batch_size)
    return outputs.reshape(len(outputs), num_heads, -1)


def layer_with_heads(
    model: keras.Model,
) -> PrediNet | MultiHeadAttentionPooling:
    """The central module of a model, if it has heads.

    Args:
        model: `keras.Model` that declares a part `"central"`.

    Raises:
        ValueError: If the central module has no heads.
    """
    layer = models.part(model, "central")
    if isinstance(layer, PrediNet | MultiHeadAttentionPooling):
        return layer
    raise ValueError(
        "Only a PrediNet and a MultiHeadAttentionPooling have heads to look "
        "at. Received a model whose central module is a "
        f"{type(layer).__name__}. central_outputs reads it as a whole."
    )


def head_relations(
    model: keras.Model, images: np.ndarray, batch_size: int = 250
) -> np.ndarray:
    """The relations that each head of the central module finds in each image.

    For a PrediNet these are the relations `D^h`, without the two positions:
    "the output relations of each head" in section S2.1 of [Shanahan et al.,
    2020](https://arxiv.org/abs/1905.10307). For an MHA they are the head's
    complete output.

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"` or `"mha"`, or any model that declares such a part
            `"central"`.
        images: uint8 array `(batch, 36, 36, 3)`.
        batch_size: Number of images in a batch of the computation.

    Returns:
        float32 array `(batch, num_heads, size)`. For PrediNet `size` is
        `num_relations`.

    Raises:
        ValueError: If the central module has no heads.

    Example:

    >>> from keras_relational import models
    >>> model = models.relations_classifier("predinet")
    >>> head_relations(model, np.zeros((3, 36, 36, 3), "uint8")).shape
    (3, 32, 16)
    """
    outputs = head_outputs(model, images, batch_size)
    layer = layer_with_heads(model)
    if isinstance(layer, PrediNet):
        return outputs[..., : layer.num_relations]
    return outputs


def principal_components(
    vectors: np.ndarray, num_components: int = 2
) -> PrincipalComponents:
    """Principal components of one set of vectors, or of one set for each head.

    They are the first singular vectors of the covariance `Xᵀ X`, where `X` is
    `vectors` minus their mean. The largest element of each singular vector is
    positive, so that the sign does not depend on the machine. Reference:
    section S2.1 of [Shanahan et al., 2020](https://arxiv.org/abs/1905.10307).

    Args:
        vectors: Array `(num_examples, size)`, such as `central_outputs`, or
            `(num_examples, num_heads, size)`, such as `head_relations`.
        num_components: Positive integer, number of components.

    Returns:
        `PrincipalComponents`. If the vectors have an axis of heads, it comes
        first.

    Raises:
        ValueError: If `num_components` exceeds the number of examples or the
            size of the vectors.

    Example:

    >>> vectors = np.array([[0.0, 3.0], [4.0, 0.0], [-4.0, 0.0]])
    >>> components = principal_components(vectors, 1)
    >>> components.axes
    array([[1., 0.]])
    >>> project(vectors, components)[:, 0].tolist()
    [0.0, 4.0, -4.0]
    """
    num_examples, *_, size = np.shape(vectors)
    if not 1 <= num_components <= min(num_examples, size):
        raise ValueError(
            f"{num_examples} vectors of size {size} have at most "
            f"{min(num_examples, size)} principal components. Received: "
            f"num_components={num_components}"
        )
    mean = np.mean(vectors, axis=0)
    centred = np.moveaxis(np.subtract(vectors, mean, dtype="float64"), 0, -2)
    covariance = centred.mT @ centred
    _, variances, axes = np.linalg.svd(covariance, hermitian=True)
    axes = axes[..., :num_components, :]
    largest = np.abs(axes).argmax(axis=-1, keepdims=True)
    axes = axes * np.sign(np.take_along_axis(axes, largest, axis=-1))
    axes = axes.astype(mean.dtype)
    total = variances.sum(axis=-1, keepdims=True)
    shares = variances[..., :num_components] / np.maximum(
        total, np.finfo("float64").tiny
    )
    return PrincipalComponents(mean, axes, shares)


def project(vectors: np.ndarray, components: PrincipalComponents) -> np.ndarray:
    """Projects vectors on principal components.

    `(vectors − mean) axesᵀ`, with the mean and the axes of the components. The
    components may come from another set: Figs. 6b and S8 of [Shanahan et al.,
    2020](https://arxiv.org/abs/1905.10307) show held-out images on the
    components of the training images.

    Args:
        vectors: Array `(num_examples, size)` or `(num_examples, num_heads,
            size)`, like the vectors that the components were computed from.
        components: `PrincipalComponents`.

    Returns:
        Array `(num_examples, num_components)` or `(num_examples, num_heads,
        num_components)`, in the units of the vectors.
    """
    return np.einsum(
        "n...s,...cs->n...c", vectors - components.mean, components.axes
    )


def axis_labels(components: PrincipalComponents) -> dict[str, str]:
    """Labels for the axes of a plot on two components, with their shares.

    Args:
        components: `PrincipalComponents` with two components.

    Returns:
        Dictionary of `xlabel` and `ylabel`.
    """
    first, second = (f"{100 * share:.3g} %" for share in components.shares)
    return {
        "xlabel": f"component 1 ({first})",
        "ylabel": f"component 2 ({second})",
    }


def plot_components(
    points: Mapping[str, np.ndarray],
    labels: np.ndarray,
    label_names: Sequence[str],
) -> Figure:
    """Draws one panel of projected images for each architecture: Fig. S7.

    Args:
        points: Dictionary from the title of a panel to an array
            `(num_examples, 2)` of `project`.
        labels: Integer array `(num_examples,)`, the same for all panels.
        label_names: A name for each label.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    figure = new_figure(3.2 * len(points), 3.6)
    panels = figure.subplots(1, len(points), squeeze=False)[0]
    for panel, (title, of_panel) in zip(panels, points.items(), strict=True):
        _scatter(panel, of_panel, labels)
        panel.set(title=title, xlabel="component 1", ylabel="component 2")
    _legend(figure, label_names)
    return figure


def plot_head_components(
    points: np.ndarray,
    labels: np.ndarray,
    held_out_points: np.ndarray,
    held_out_labels: np.ndarray,
    label_names: Sequence[str],
    heads: Iterable[int] | None = None,
) -> Figure:
    """Draws training and held-out images of each head: Figs. 6b and S8.

    A head has two panels, with the same limits.

    Args:
        points: Array `(num_examples, num_heads, 2)`: `head_relations` of the
            training set, projected on their own components.
        labels: Integer array `(num_examples,)`.
        held_out_points: Array `(num_examples, num_heads, 2)`: the held-out set,
            projected on the components of the training set.
        held_out_labels: Integer array, labels of the held-out set.
        label_names: A name for each label.
        heads: Numbers of the heads to draw, from 0. By default all.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    heads = range(points.shape[1]) if heads is None else list(heads)
    across = min(4, len(heads))
    rows = -(-len(heads) // across)
    size = 1.7 if rows > 1 else 2.8
    figure = new_figure(2 * size * across, 1.05 * size * rows + 0.8)
    grid = figure.subplots(rows, 2 * across, squeeze=False)
    pairs = grid.reshape(-1, 2)
    for head, pair in zip(heads, pairs, strict=False):
        of_pair = points[:, head], held_out_points[:, head]
        of_both = np.concatenate(of_pair)
        margin = 0.05 * np.ptp(of_both, axis=0) + 1e-6
        low, high = of_both.min(axis=0) - margin, of_both.max(axis=0) + margin
        for panel, title, of_panel, labels_of_panel in zip(
            pair,
            (f"head {head}", "held-out"),
            of_pair,
            (labels, held_out_labels),
            strict=True,
        ):
            _scatter(panel, of_panel, labels_of_panel)
            panel.set(
                title=title,
                xlabel="component 1",
                ylabel="component 2",
                xlim=(low[0], high[0]),
                ylim=(low[1], high[1]),
                xticks=[],
                yticks=[],
            )
            panel.label_outer()
    for panel in pairs[len(heads) :].flat:
        panel.set_axis_off()
    _legend(figure, label_names)
    return figure


def _scatter(panel, points, labels):
    """Draws points in the order of the examples, so that labels mix."""
    from matplotlib.colors import to_rgba_array

    colours = to_rgba_array([f"C{i}" for i in range(max(labels) + 1)])
    panel.scatter(*points.T, s=3, c=colours[labels], alpha=0.5, linewidths=0)


def _legend(figure, label_names):
    names = dict(enumerate(label_names))
    legend_below(figure, names, entry_width=2, linestyle="", marker="o")
