"""Principal components of what a central module puts out: Figs. 6b, S7 and S8.

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*.
"""

import typing

import numpy as np

from keras_relational.analysis.central_module import head_outputs
from keras_relational.analysis.central_module import layer_with_heads
from keras_relational.analysis.plotting import legend_below
from keras_relational.analysis.plotting import new_figure
from keras_relational.layers import PrediNet


class PrincipalComponents(typing.NamedTuple):
    """The directions in which a set of vectors spreads most.

    `mean` `(…, size)` is the middle of the set, `axes` `(…, num_components,
    size)` are orthogonal unit vectors, the widest first, and `shares`
    `(…, num_components)` the part of the variance along each.
    """

    mean: np.ndarray
    axes: np.ndarray
    shares: np.ndarray


def head_relations(model, images, batch_size=250):
    """What each head of the central module says of each image.

    The relations `D^h` of a PrediNet, without the two positions: "the output
    relations of each head", in the words of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307), section S2.1. For an MHA, which has no
    such parts, the head's whole output.

    Args:
        model: A model laid out as `models.relations_classifier`, on
            `"predinet"` or `"mha"`.
        images: uint8 array `(batch, 36, 36, 3)`.
        batch_size: Number of images computed at once.

    Returns:
        float32 array `(batch, num_heads, size)`; for PrediNet `size` is
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


def principal_components(vectors, num_components=2):
    """Principal components of one set of vectors, or of each head's.

    The first singular vectors of the covariance `Xᵀ X`, where `X` is `vectors`
    less their mean. Each points to the side on which its largest element is
    positive, so that the sign does not depend on the machine. Reference:
    section S2.1 of [Shanahan et al., 2020](https://arxiv.org/abs/1905.10307).

    Args:
        vectors: Array `(num_examples, size)`, as of `central_outputs`, or
            `(num_examples, num_heads, size)`, as of `head_relations`.
        num_components: Positive integer.

    Returns:
        `PrincipalComponents`, with the axis of the heads in front if there is
        one.

    Raises:
        ValueError: If there are fewer examples or elements than components.

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


def project(vectors, components):
    """Where vectors lie along principal components.

    `(vectors − mean) axesᵀ`, with the mean and the axes of the set that the
    components were taken of: the held-out images of Figs. 6b and S8 of
    [Shanahan et al., 2020](https://arxiv.org/abs/1905.10307) lie on components
    of the training images.

    Args:
        vectors: Array `(num_examples, size)` or `(num_examples, num_heads,
            size)`, as the components were taken of.
        components: `PrincipalComponents`.

    Returns:
        Array `(num_examples, num_components)` or `(num_examples, num_heads,
        num_components)`, in the units of the vectors.
    """
    return np.einsum(
        "n...s,...cs->n...c", vectors - components.mean, components.axes
    )


def axis_labels(components):
    """Labels of the axes of a plane of two components, with their shares.

    Args:
        components: Two `PrincipalComponents`.

    Returns:
        Dictionary of `xlabel` and `ylabel`.
    """
    first, second = (f"{100 * share:.3g} %" for share in components.shares)
    return {
        "xlabel": f"component 1 ({first})",
        "ylabel": f"component 2 ({second})",
    }


def plot_components(points, labels, label_names):
    """Draws one panel of projected images for each architecture: Fig. S7.

    Args:
        points: Dictionary from panel title to array `(num_examples, 2)`:
            `project`.
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
    points, labels, held_out_points, held_out_labels, label_names, heads=None
):
    """Draws each head's images, training beside held-out: Figs. 6b and S8.

    Both panels of a head have the same limits.

    Args:
        points: Array `(num_examples, num_heads, 2)`: the training set's
            `head_relations`, by `project` on their own components.
        labels: Integer array `(num_examples,)`.
        held_out_points: The held-out set on the same components.
        held_out_labels: Its labels.
        label_names: A name for each label.
        heads: Numbers of the heads to draw, from 0; all by default.

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
    """In the order of the examples, so that no label lies above the others."""
    from matplotlib.colors import to_rgba_array

    colours = to_rgba_array([f"C{i}" for i in range(max(labels) + 1)])
    panel.scatter(*points.T, s=3, c=colours[labels], alpha=0.5, linewidths=0)


def _legend(figure, label_names):
    names = dict(enumerate(label_names))
    legend_below(figure, names, entry_width=2, linestyle="", marker="o")
