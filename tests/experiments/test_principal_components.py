import numpy as np
import pytest

from experiments.principal_components import axis_labels
from experiments.principal_components import principal_components
from experiments.principal_components import project


def random_vectors(*shape):
    """Spread differently along each of their elements, off the origin."""
    rng = np.random.default_rng(0)
    stretch = np.linspace(1, 3, shape[-1])
    mixed = rng.normal(size=shape) * stretch @ rng.normal(size=shape[-1:] * 2)
    return (mixed + 5).astype("float32")


def test_components_are_eigenvectors_of_the_covariance():
    vectors = random_vectors(200, 6)
    values, axes = np.linalg.eigh(np.cov(vectors.T))

    components = principal_components(vectors, 3)

    assert components.axes.shape == (3, 6)
    np.testing.assert_allclose(components.mean, vectors.mean(axis=0), rtol=1e-5)
    for number in range(3):
        agreement = components.axes[number] @ axes[:, -1 - number]
        np.testing.assert_allclose(abs(agreement), 1, atol=1e-5)
        share = values[-1 - number] / values.sum()
        np.testing.assert_allclose(components.shares[number], share, rtol=1e-4)


def test_axes_say_how_much_lies_along_them():
    vectors = np.zeros((100, 2), "float32")
    vectors[:, 0] = np.tile([-50, -50, 50, 50], 25)
    vectors[:, 1] = np.tile([-1, 1, -1, 1], 25)
    assert axis_labels(principal_components(vectors)) == {
        "xlabel": "component 1 (100 %)",
        "ylabel": "component 2 (0.04 %)",
    }


def test_each_head_has_components_of_its_own():
    vectors = random_vectors(50, 3, 5)
    held_out = vectors[:7] + 1

    components = principal_components(vectors)
    points = project(held_out, components)

    assert points.shape == (7, 3, 2)
    for head in range(3):
        of_head = principal_components(vectors[:, head])
        for together, alone in zip(components, of_head, strict=True):
            np.testing.assert_allclose(together[head], alone, rtol=1e-5)
        np.testing.assert_allclose(
            points[:, head],
            project(held_out[:, head], of_head),
            atol=1e-4,
        )


def test_held_out_vectors_are_moved_by_the_training_mean():
    vectors = np.array([[1.0, 2.0], [5.0, 2.0], [3.0, 3.0], [3.0, 1.0]])
    components = principal_components(vectors)
    points = project(np.array([[13.0, 4.0]]), components)
    np.testing.assert_allclose(points, [[10, 2]], atol=1e-12)


def test_the_largest_element_of_an_axis_is_positive():
    vectors = random_vectors(50, 4)
    for sign in (1, -1):
        axes = principal_components(sign * vectors, 4).axes
        largest = np.abs(axes).argmax(axis=1)
        assert (axes[np.arange(4), largest] > 0).all()


def test_vectors_that_are_all_alike_have_finite_components():
    components = principal_components(np.ones((5, 3), "float32"))
    points = project(np.ones((2, 3), "float32"), components)
    assert np.isfinite(components.shares).all()
    np.testing.assert_array_equal(points, 0)


@pytest.mark.parametrize("num_components", [0, 4])
def test_there_are_no_more_components_than_elements(num_components):
    with pytest.raises(ValueError, match="at most 3 principal components"):
        principal_components(np.ones((5, 3)), num_components)
