"""Principal components of sets of vectors, such as the outputs of a layer."""

import typing

import numpy as np


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


def principal_components(
    vectors: np.ndarray, num_components: int = 2
) -> PrincipalComponents:
    """Principal components of one set of vectors, or of one set for each head.

    They are the first singular vectors of the covariance `Xᵀ X`, where `X` is
    `vectors` minus their mean. The largest element of each singular vector is
    positive, so that the sign does not depend on the machine. Reference:
    section S2.1 of [Shanahan et al., 2020](https://arxiv.org/abs/1905.10307).

    Args:
        vectors: Array `(num_examples, size)`, or `(num_examples, num_heads,
            size)`.
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
    """`xlabel` and `ylabel` of a plot on two components, with their shares."""
    first, second = (f"{100 * share:.3g} %" for share in components.shares)
    return {
        "xlabel": f"component 1 ({first})",
        "ylabel": f"component 2 ({second})",
    }
