"""Layers for images: coordinates, and convolutions with strides."""

from unittest import mock

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import WITHOUT_MASKS
from layer_contract import LayerContract
from layers_for_tests import array
from layers_for_tests import assert_equals
from layers_for_tests import random_array

from keras_relational.layers import AppendCoordinates
from keras_relational.layers._strided_convolution import StridedConv2D


def coordinates_in_loops(low, high, order):
    def reference(weights, inputs, mask=None):
        batch, height, width, channels = inputs.shape
        outputs = np.zeros((batch, height, width, channels + 2))
        for example, i, j in np.ndindex(inputs.shape[:3]):
            y = low + (high - low) * i / max(height - 1, 1)
            x = low + (high - low) * j / max(width - 1, 1)
            places = [x, y] if order == "xy" else [y, x]
            outputs[example, i, j] = [*inputs[example, i, j], *places]
        return outputs

    return reference


class AppendCoordinatesTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            AppendCoordinates,
            checks=WITHOUT_MASKS,
            init_kwargs={"low": -1.0, "high": 3.0, "order": "yx"},
            input_shape=(2, 3, 4, 5),
            second_input_shape=(2, 6, 7, 5),
            reference=coordinates_in_loops(-1, 3, "yx"),
            expected_output_shape=(2, 3, 4, 7),
            expected_num_trainable_weights=0,
        )

    def test_a_mask_is_passed_on(self):
        image, mask = random_array(2, 3, 4, 5), np.ones((2, 3, 4), bool)
        image[0, 1, 2] = 0
        mask[0, 1, 2] = False
        outputs = AppendCoordinates()(keras.layers.Masking()(image))
        self.assertAllEqual(array(outputs._keras_mask), mask)

    def test_column_or_row_first(self):
        for low, high, order, shape in (
            (0, 1, "xy", (2, 3, 4, 5)),
            (0, 1, "yx", (1, 2, 3, 1)),
            (-1, 1, "xy", (1, 1, 3, 1)),  # An axis of length one is at `low`.
        ):
            layer = AppendCoordinates(low, high, order)
            reference = coordinates_in_loops(low, high, order)
            assert_equals(layer, reference, random_array(*shape), atol=1e-6)
        image = np.full((1, 2, 2, 3), 255, "uint8")
        assert_equals(
            AppendCoordinates(), coordinates_in_loops(0, 1, "xy"), image
        )

    def test_grid_of_the_paper(self):
        outputs = AppendCoordinates(high=0.8)(random_array(1, 5, 5, 32))
        assert outputs.shape == (1, 5, 5, 34)
        x, y = np.moveaxis(array(outputs)[0, ..., -2:], -1, 0)
        self.assertAllClose(x, [[0, 0.2, 0.4, 0.6, 0.8]] * 5)
        self.assertAllClose(y, x.T)

    def test_coordinates_are_rounded_once(self):
        """In half precision a large image would get some of them twice."""
        image = np.zeros((1, 300, 1, 1), "float32")
        exact = ops.linspace(0, 1, 300)
        for dtype in ("bfloat16", "float16"):
            outputs = AppendCoordinates(dtype=f"mixed_{dtype}")(image)
            self.assertAllEqual(
                ops.cast(outputs[0, :, 0, -1], "float32"),
                ops.cast(ops.cast(exact, dtype), "float32"),
            )

    def test_a_set_is_an_image_of_one_row(self):
        for order in ("xy", "yx"):
            layer = AppendCoordinates(-1, 1, order)
            entities = random_array(2, 5, 3)
            row = layer(entities[:, None])
            layer = AppendCoordinates(-1, 1, order)
            self.assertAllEqual(layer(entities), row[:, 0])
            assert layer(keras.Input((None, 3))).shape == (None, None, 5)


def convolution_in_loops(weights, inputs, mask=None):
    """A 4×6 kernel at stride (2, 3), then ReLU."""
    kernel, bias = weights["kernel"], weights["bias"]
    batch, height, width, _ = inputs.shape
    outputs = np.zeros((batch, (height - 4) // 2 + 1, (width - 6) // 3 + 1, 3))
    for example, i, j, filter_number in np.ndindex(outputs.shape):
        patch = inputs[example, 2 * i : 2 * i + 4, 3 * j : 3 * j + 6]
        value = np.sum(patch * kernel[..., filter_number])
        outputs[example, i, j, filter_number] = value + bias[filter_number]
    return np.maximum(outputs, 0)


class StridedConv2DTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            StridedConv2D,
            init_kwargs={
                "filters": 3,
                "kernel_size": (4, 6),
                "strides": (2, 3),
                "activation": "relu",
            },
            input_shape=(2, 7, 9, 2),
            second_input_shape=(2, 8, 13, 2),
            reference=convolution_in_loops,
            supports_masking=False,
            expected_output_shape=(2, 2, 2, 3),
            expected_num_trainable_weights=2,
        )


@pytest.mark.parametrize(
    ("size", "arguments"),
    [
        # Strides divide the image, a border is left over, blocks do not
        # overlap, the kernel is the image.
        ((12, 18), {"kernel_size": 6, "strides": 3}),
        ((11, 8), {"kernel_size": (4, 2), "strides": (2, 1)}),
        ((7, 10), {"kernel_size": (2, 3), "strides": (2, 3)}),
        ((4, 6), {"kernel_size": (4, 6), "strides": (2, 3)}),
        ((6, 9), {"kernel_size": 3, "activation": "tanh", "use_bias": False}),
        ((8, 12), {"kernel_size": 4, "strides": 2, "padding": "same"}),
        ((7, 10), {"kernel_size": 4, "strides": 2, "padding": "same"}),
        (
            (9, 11),
            {"kernel_size": (2, 6), "strides": (2, 3), "padding": "same"},
        ),
    ],
)
def test_equals_keras(size, arguments):
    image = random_array(2, *size, 3)
    keras_own = keras.layers.Conv2D(4, **arguments)
    expected = array(keras_own(image))
    for in_inference, training in (
        (True, False),
        (False, False),
        (False, True),
    ):
        layer = StridedConv2D(4, **arguments, in_inference=in_inference)
        layer.build(image.shape)
        layer.set_weights(keras_own.get_weights())
        outputs = layer(image, training=training)
        np.testing.assert_allclose(outputs, expected, atol=1e-5, rtol=1e-5)
    inputs = keras.Input((*size, 3))
    assert layer(inputs).shape == keras_own(inputs).shape


@pytest.mark.parametrize(
    ("strides", "in_inference", "training", "trainable", "products"),
    [
        (1, True, False, True, True),
        (1, True, True, False, True),
        (1, False, False, True, False),
        (2, True, False, True, keras.backend.backend() != "tensorflow"),
        (2, True, True, False, keras.backend.backend() != "tensorflow"),
        (2, False, True, True, True),
        (2, False, True, False, False),
        (2, False, False, True, False),
    ],
)
def test_which_convolution_is_used(
    strides, in_inference, training, trainable, products
):
    image = random_array(2, 8, 8, 3)
    layer = StridedConv2D(4, 4, strides, in_inference=in_inference)
    layer.build(image.shape)
    layer.trainable = trainable
    with mock.patch.object(
        layer, "convolution_op", wraps=layer.convolution_op
    ) as own:
        layer(image, training=training)
    assert own.called != products
