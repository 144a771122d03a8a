"""Layers that read an image as a set take a mask of either shape."""

import numpy as np
import pytest
from keras import ops

from keras_relational import layers

LAYERS = {
    "PrediNet": lambda: layers.PrediNet(2, 3, 4),
    "RelationNetwork": lambda: layers.RelationNetwork(5, 6),
    "MultiHeadAttentionPooling": lambda: layers.MultiHeadAttentionPooling(
        2, 3, 4
    ),
}


@pytest.fixture(params=LAYERS.values(), ids=LAYERS)
def layer(request):
    return request.param()


@pytest.fixture
def image():
    return np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype("float32")


def test_mask_of_an_image_is_read_row_by_row(layer, image):
    mask = np.random.default_rng(1).random((2, 3, 4)) < 0.5
    outputs = ops.convert_to_numpy(layer(image, mask=mask))
    flat = ops.convert_to_numpy(layer(image, mask=mask.reshape(2, 12)))
    np.testing.assert_array_equal(outputs, flat)
    assert np.abs(outputs - ops.convert_to_numpy(layer(image))).max() > 1e-3
    image[~mask] = np.nan
    np.testing.assert_array_equal(
        ops.convert_to_numpy(layer(image, mask=mask)), outputs
    )


@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 11), (2,), (2, 3, 4, 5)])
def test_mask_of_another_shape_is_refused(layer, image, shape):
    with pytest.raises(ValueError, match=r"mask.*\(2, 3, 4\).*Received"):
        layer(image, mask=np.ones(shape, bool))
