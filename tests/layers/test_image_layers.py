"""Layers for images: coordinates, and convolutions with strides."""

import dataclasses
import re
from unittest import mock

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import CHECKS
from layer_contract import LayerCase
from layer_contract import LayerContract

from keras_relational.layers import AppendCoordinates
from keras_relational.layers._strided_convolution import StridedConv2D


def coordinates_in_loops(weights, inputs, mask=None, low=-1.0, high=3.0):
    """The reference in loops, for order "yx"."""
    batch, height, width, channels = inputs.shape
    outputs = np.zeros((batch, height, width, channels + 2))
    for example in range(batch):
        for i in range(height):
            for j in range(width):
                y = low + (high - low) * i / (height - 1)
                x = low + (high - low) * j / (width - 1)
                outputs[example, i, j] = [*inputs[example, i, j], y, x]
    return outputs


def random_image(shape=(2, 3, 4, 5)):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


class AppendCoordinatesTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        """All of it but masks, of which it passes on what it gets."""
        case = LayerCase(
            layer_cls=AppendCoordinates,
            init_kwargs={"low": -1.0, "high": 3.0, "order": "yx"},
            input_shape=(2, 3, 4, 5),
            second_input_shape=(2, 6, 7, 5),
            fixed_size=False,
            reference=coordinates_in_loops,
            supports_masking=True,
            expected_output_shape=(2, 3, 4, 7),
            expected_output_dtype="float32",
            expected_num_trainable_weights=0,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )
        without_masks = dataclasses.replace(case, supports_masking=False)
        for check in CHECKS:
            is_layer_test = check == "keras_layer_test"
            self.run_check(check, case if is_layer_test else without_masks)

    def test_a_mask_is_passed_on(self):
        image = random_image()
        image[0, 1, 2] = 0
        masked = keras.layers.Masking()(image)
        outputs = AppendCoordinates()(masked)
        there = ops.convert_to_numpy(outputs._keras_mask)
        assert there.shape == (2, 3, 4)
        assert not there[0, 1, 2]
        assert there.sum() == 2 * 3 * 4 - 1

    def test_inputs_stay_as_they_are(self):
        image = random_image()
        self.assertAllEqual(AppendCoordinates()(image)[..., :-2], image)

    def test_ends_are_included(self):
        outputs = ops.convert_to_numpy(AppendCoordinates()(random_image()))
        self.assertAllClose(outputs[0, 0, 0, -2:], [0, 0])
        self.assertAllClose(outputs[0, -1, -1, -2:], [1, 1])

    def test_column_or_row_first(self):
        image = random_image((1, 2, 3, 1))
        xy = ops.convert_to_numpy(AppendCoordinates(order="xy")(image))
        yx = ops.convert_to_numpy(AppendCoordinates(order="yx")(image))
        self.assertAllClose(xy[0, :, :, 1], [[0, 0.5, 1], [0, 0.5, 1]])
        self.assertAllClose(xy[0, :, :, 2], [[0, 0, 0], [1, 1, 1]])
        self.assertAllEqual(yx[..., -2:], xy[..., :-3:-1])

    def test_grid_of_the_paper(self):
        outputs = AppendCoordinates(high=0.8)(random_image((1, 5, 5, 32)))
        outputs = ops.convert_to_numpy(outputs)
        assert outputs.shape == (1, 5, 5, 34)
        fifths = [0, 0.2, 0.4, 0.6, 0.8]
        for i in range(5):
            self.assertAllClose(outputs[0, i, :, -2], fifths)
            self.assertAllClose(outputs[0, :, i, -1], fifths)

    def test_axis_of_length_one_is_at_low(self):
        outputs = AppendCoordinates(low=-1, high=1)(random_image((1, 1, 3, 1)))
        outputs = ops.convert_to_numpy(outputs)
        self.assertAllClose(outputs[0, 0, :, -2], [-1, 0, 1])
        self.assertAllClose(outputs[0, 0, :, -1], [-1, -1, -1])

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
            entities = random_image((2, 5, 3))
            row = layer(entities[:, None])
            layer = AppendCoordinates(-1, 1, order)
            self.assertAllEqual(layer(entities), row[:, 0])
            assert layer(keras.Input((None, 3))).shape == (None, None, 5)

    def test_channels_need_not_be_floats(self):
        image = np.full((1, 2, 2, 3), 255, "uint8")
        outputs = ops.convert_to_numpy(AppendCoordinates()(image))
        self.assertAllClose(outputs[0, 1, 1], [255, 255, 255, 1, 1])


@pytest.mark.parametrize("order", ["zx", "x", None, ("x", "y")])
def test_refuses_another_order(order):
    with pytest.raises(ValueError, match=r"order .* Expected one of: xy, yx"):
        AppendCoordinates(order=order)


def test_refuses_an_unknown_number_of_channels():
    with pytest.raises(ValueError, match=r"fixed number of channels.*None"):
        AppendCoordinates()(keras.Input(batch_shape=(2, 3, 4, None)))


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 5, 6)])
def test_refuses_what_is_neither_an_image_nor_a_set(shape):
    message = rf"an image .* or a set .*shape={re.escape(str(shape))}"
    with pytest.raises(ValueError, match=message):
        AppendCoordinates()(np.zeros(shape, "float32"))


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
            fixed_size=False,
            reference=convolution_in_loops,
            supports_masking=False,
            expected_output_shape=(2, 2, 2, 3),
            expected_output_dtype="float32",
            expected_num_trainable_weights=2,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )

    def assert_equals_keras(self, image_size, **arguments):
        image = random_image((2, *image_size, 3))
        ours = StridedConv2D(4, **arguments)
        keras_own = keras.layers.Conv2D(4, **arguments)
        outputs, expected = ours(image), keras_own(image)
        self.assertNotAllClose(outputs, expected)
        ours.set_weights(keras_own.get_weights())
        self.assertAllClose(ours(image), expected, atol=1e-5, rtol=1e-5)
        config = {**ours.get_config(), "in_inference": False}
        in_training = StridedConv2D.from_config(config)
        in_training.build(image.shape)
        in_training.set_weights(keras_own.get_weights())
        for training in (False, True):
            outputs = in_training(image, training=training)
            self.assertAllClose(outputs, expected, atol=1e-5, rtol=1e-5)
        inputs = keras.Input((*image_size, 3))
        assert ours(inputs).shape == keras_own(inputs).shape

    def test_equals_keras_where_strides_divide_the_image(self):
        self.assert_equals_keras((12, 18), kernel_size=6, strides=3)

    def test_equals_keras_where_a_border_is_left_over(self):
        self.assert_equals_keras((11, 8), kernel_size=(4, 2), strides=(2, 1))

    def test_equals_keras_where_blocks_do_not_overlap(self):
        self.assert_equals_keras((7, 10), kernel_size=(2, 3), strides=(2, 3))

    def test_equals_keras_without_bias_and_with_activation(self):
        self.assert_equals_keras(
            (6, 9), kernel_size=3, activation="tanh", use_bias=False
        )

    def test_equals_keras_with_padding(self):
        for size, arguments in (
            ((8, 12), {"kernel_size": 4, "strides": 2}),
            ((7, 10), {"kernel_size": 4, "strides": 2}),
            ((9, 11), {"kernel_size": (2, 6), "strides": (2, 3)}),
        ):
            self.assert_equals_keras(size, padding="same", **arguments)

    def test_size_of_the_image_may_be_unknown(self):
        layer = StridedConv2D(4, (4, 2), strides=2)
        inputs = keras.Input((None, None, 3))
        model = keras.Model(inputs, layer(inputs))
        assert model.output_shape == (None, None, None, 4)
        for size in ((6, 9), (8, 4)):
            image = random_image((2, *size, 3))
            outputs = model.predict(image, verbose=0)
            self.assertAllClose(outputs, layer(image), atol=1e-5)

    def test_which_convolution_is_used(self):
        image = random_image((2, 8, 8, 3))
        on_tensorflow = keras.backend.backend() == "tensorflow"
        for strides, in_inference, training, trainable, products in (
            (1, True, False, True, True),
            (1, True, True, False, True),
            (1, False, False, True, False),
            (2, True, False, True, not on_tensorflow),
            (2, True, True, False, not on_tensorflow),
            (2, False, True, True, True),
            (2, False, True, False, False),
            (2, False, False, True, False),
        ):
            layer = StridedConv2D(4, 4, strides, in_inference=in_inference)
            layer.build(image.shape)
            layer.trainable = trainable
            with mock.patch.object(
                layer, "convolution_op", wraps=layer.convolution_op
            ) as own:
                layer(image, training=training)
            assert own.called != products

    def test_equals_keras_where_the_kernel_is_the_image(self):
        self.assert_equals_keras((4, 6), kernel_size=(4, 6), strides=(2, 3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strides": 4}, r"kernel_size % strides = \(0, 0\).*= \(2, 2\)"),
        ({"strides": (2, 5)}, r"kernel_size % strides = \(0, 0\).*= \(0, 1\)"),
        (
            {"data_format": "channels_first"},
            "needs data_format = 'channels_last'.*= 'channels_first'",
        ),
        (
            {"dilation_rate": 2},
            r"needs dilation_rate = \(1, 1\).*= \(2, 2\)",
        ),
        ({"groups": 2}, r"needs groups = 1\..*groups = 2"),
    ],
)
def test_refuses_what_it_cannot_cut_into_blocks(arguments, message):
    with pytest.raises(ValueError, match=f"{message}$"):
        StridedConv2D(4, 6, **arguments)
