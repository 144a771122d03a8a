import numpy as np
import pytest

from keras_relational.datasets import dynamic_objects


def edges(images):
    """First and last row and column that are not black, `(n, time, 2, 2)`."""
    lines = np.stack([images.any((3, 4)), images.any((2, 4))], axis=2)
    last = lines.shape[-1] - 1 - lines[..., ::-1].argmax(-1)
    return np.stack([lines.argmax(-1), last], axis=-1)


@pytest.mark.parametrize(
    "widths", [dynamic_objects.TRAIN_WIDTHS, dynamic_objects.TEST_WIDTHS]
)
def test_white_squares_that_move_evenly(widths):
    images = dynamic_objects.generate(300, widths, seed=0)
    assert images.shape == (300, 20, 64, 64, 1)
    assert images.dtype == np.uint8
    assert set(np.unique(images)) == {0, 255}
    first, last = np.moveaxis(edges(images), -1, 0)
    sizes = last + 1 - first
    # Full rectangles, whose sides differ by what is cut off.
    assert (sizes.prod(-1) == (images > 0).sum((2, 3, 4))).all()
    assert np.abs(sizes[..., 0] - sizes[..., 1]).max() <= 1
    # A width of w covers w or w + 1 lines.
    assert sizes.min() in (int(widths[0]), int(widths[0]) + 1)
    assert sizes.max() in (int(widths[1]), int(widths[1]) + 1)
    centres = (first + last) / 2
    assert centres.min() >= 16 - 1
    assert centres.max() <= 48 + 1
    for values in (centres, sizes):
        way = np.linspace(0, 1, 20)[:, None]
        line = values[:, :1] + way * (values[:, -1:] - values[:, :1])
        assert np.abs(values - line).max() <= 2
    # Uniform: a tenth of the sequences starts in each tenth of the range.
    counts, _ = np.histogram(centres[:, 0].ravel(), np.linspace(16, 48, 11))
    assert counts.min() > 35
    # It ends anywhere, of any size, wherever and however large it began.
    counts, _ = np.histogram(centres[:, -1].ravel(), np.linspace(16, 48, 11))
    assert counts.min() > 35
    for values in (centres[..., 0], centres[..., 1], sizes[..., 0]):
        assert abs(np.corrcoef(values[:, 0], values[:, -1])[0, 1]) < 0.2
        assert values[:, -1].std() > 0.8 * values[:, 0].std()
