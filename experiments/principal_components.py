"""Principal components of sets of vectors, such as the outputs of a layer."""

import typing

import numpy as np


class PrincipalComponents(typing.NamedTuple):
    """The directions in which a set of vectors varies most, by variance."""

    mean: np.ndarray  # (…, size)
    axes: np.ndarray  # (…, num_components, size), unit vectors.
    shares: np.ndarray  # Of the variance along each axis.


def principal_components(vectors, num_components=2):
    """Principal components of vectors `(num_examples, [num_heads,] size)`.

    They are the first singular vectors of the covariance `Xᵀ X`, where `X` is
    `vectors` minus their mean, of each head by itself. The largest element of
    each is positive, so that the sign does not depend on the machine (section
    S2.1 of [Shanahan et al., 2020](https://arxiv.org/abs/1905.10307)).
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
    """`(vectors − mean) axesᵀ`; the components may come from another set."""
    return np.einsum(
        "n...s,...cs->n...c", vectors - components.mean, components.axes
    )


def axis_labels(components):
    """`xlabel` and `ylabel` of a plot on two components, with their shares."""
    first, second = (f"{100 * share:.3g} %" for share in components.shares)
    return {
        "xlabel": f"component 1 ({first})",
        "ylabel": f"component 2 ({second})",
    }
