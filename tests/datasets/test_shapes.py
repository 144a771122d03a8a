import numpy as np
import pytest

from keras_relational.datasets.shapes import SHAPES
from keras_relational.datasets.shapes import draw

INSIDE = {
    "disc": lambda x, y, size: x**2 + y**2 <= size**2,
    "square": lambda x, y, size: np.maximum(abs(x), abs(y)) <= size,
    "triangle": lambda x, y, size: (y <= size) & (2 * abs(x) <= y + size),
}


def share_by_counting(shape, centre, size, height=24, width=20):
    """Of 16 × 16 points in each pixel, how many lie inside the shape."""
    y, x = np.mgrid[: 16 * height, : 16 * width] / 16 + 1 / 32
    inside = INSIDE[shape](x - centre[0], y - centre[1], size)
    return inside.reshape(height, 16, width, 16).mean((1, 3))


@pytest.mark.parametrize("shape", SHAPES)
def test_pixels_are_covered_in_part(shape):
    rng = np.random.default_rng(0)
    # Some leave the image, and some lie outside of it.
    centres = rng.uniform(-8, 28, (60, 2))
    sizes = rng.uniform(2, 7, 60)
    images = np.full((60, 24, 20, 2), (40, 200), "uint8")
    number = SHAPES.index(shape)
    draw(images, centres, sizes, [[240, 0]] * 60, np.full(60, number))
    for image, centre, size in zip(images, centres, sizes, strict=True):
        share = share_by_counting(shape, centre, size)
        first, second = (image[..., 0] - 40.0) / 200, (200.0 - image[..., 1])
        np.testing.assert_allclose(first, second / 200, atol=0.006)
        # Corners are where the distance to an edge says least.
        assert abs(first - share).max() < (0.11 if shape == "disc" else 0.51)
        assert abs(first - share).sum() < 0.05 * share.sum() + 0.8
    assert len({image.tobytes() for image in images}) > 30


def test_shapes_and_sizes_of_a_batch_may_differ():
    shapes = np.arange(2_000) % 3
    sizes = np.where(np.arange(2_000) % 2, 3.0, 0.0)
    images = np.zeros((2_000, 16, 16, 3), "uint8")
    draw(images, np.full((2_000, 2), 8.0), sizes, [[9, 8, 7]] * 2_000, shapes)
    assert not images[::2].any()
    for number in range(3):
        mine = images[1::2][shapes[1::2] == number]
        assert (mine == mine[0]).all()
        assert (mine[0, 8, 8] == (9, 8, 7)).all()
    assert len({image.tobytes() for image in images}) == 4


def test_images_may_be_a_view():
    images = np.zeros((5, 7, 16, 16, 1), "uint8")
    centres = np.linspace([4, 4], [12, 12], 5)
    draw(images[:, 3], centres, np.full(5, 2), np.full((5, 1), 255))
    assert images[:, 3].any((1, 2, 3)).all()
    images[:, 3] = 0
    assert not images.any()
