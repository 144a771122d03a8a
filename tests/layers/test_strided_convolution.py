import keras
import numpy as np
import pytest
from layer_contract import LayerContract

from keras_relational.layers import StridedConv2D


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


def random_image(shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


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
