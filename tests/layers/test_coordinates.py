import dataclasses

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import CHECKS
from layer_contract import LayerCase
from layer_contract import LayerContract

from keras_relational.layers import AppendCoordinates


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

    def test_channels_need_not_be_floats(self):
        image = np.full((1, 2, 2, 3), 255, "uint8")
        outputs = ops.convert_to_numpy(AppendCoordinates()(image))
        self.assertAllClose(outputs[0, 1, 1], [255, 255, 255, 1, 1])


@pytest.mark.parametrize("order", ["zx", "x", None, ("x", "y")])
def test_refuses_another_order(order):
    with pytest.raises(ValueError, match=r"order .* Expected one of: xy, yx"):
        AppendCoordinates(order=order)


def test_refuses_an_unknown_number_of_channels():
    with pytest.raises(ValueError, match=r"channels .* be fixed. .*None"):
        AppendCoordinates()(keras.Input(batch_shape=(2, 3, 4, None)))


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3), (2, 3, 4, 5, 6)])
def test_refuses_what_is_no_image(shape):
    with pytest.raises(ValueError, match=f"expected ndim=4.*ndim={len(shape)}"):
        AppendCoordinates()(np.zeros(shape, "float32"))
