import keras
import numpy as np
import pytest
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import random_array

from keras_relational.layers import PrediNet
from keras_relational.layers import TimeFolded


@pytest.mark.parametrize("unroll", [False, True])
def test_equals_one_step_after_the_other(unroll):
    inputs = random_array(3, 4, 6, 6, 2)
    layer = keras.layers.Conv2D(5, 3)
    outputs = array(TimeFolded(layer, unroll)(inputs))
    assert outputs.shape == (3, 4, 4, 4, 5)
    for step in range(4):
        assert_close(outputs[:, step], layer(inputs[:, step]), atol=1e-5)


@pytest.mark.parametrize("unroll", [False, True])
def test_any_number_of_steps_saved_and_loaded(unroll, tmp_path):
    inputs = keras.Input((None, 6))
    layer = TimeFolded(keras.layers.Dense(3), unroll)
    model = keras.Model(inputs, layer(inputs))
    assert model.output_shape == (None, None, 3)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].unroll == unroll
    for steps in (1, 5):
        x = np.ones((2, steps, 6), "float32")
        np.testing.assert_array_equal(
            model.predict(x, verbose=0), loaded.predict(x, verbose=0)
        )


def test_training_is_passed_on():
    layer = TimeFolded(keras.layers.Dropout(0.5, seed=0))
    ones = np.ones((2, 50, 4), "float32")
    assert (array(layer(ones, training=True)) == 0).any()
    np.testing.assert_array_equal(layer(ones, training=False), ones)


@pytest.mark.parametrize("unroll", [False, True])
def test_unrolled_a_layer_sees_one_step_as_its_batch(unroll):
    layer = TimeFolded(
        keras.layers.BatchNormalization(center=False, scale=False), unroll
    )
    inputs = random_array(50, 2, 1)
    inputs[:, 1] += 10
    means = array(layer(inputs, training=True)).mean(axis=0)
    assert (abs(means) < 0.01).all() == unroll


@pytest.mark.parametrize("unroll", [False, True])
def test_masks_go_where_they_belong(unroll):
    """The layer gets a mask of its own inputs, as in Keras."""
    inputs = random_array(2, 3, 4, 5)
    mask = np.random.default_rng(1).random((2, 3, 4)) < 0.7
    mask[..., 0] = True
    layer = keras.layers.LSTM(3)
    folded = TimeFolded(layer, unroll)
    outputs = array(folded(inputs, mask=mask))
    expected = keras.layers.TimeDistributed(layer)(inputs, mask=mask)
    assert_close(outputs, expected)
    assert np.abs(outputs - array(folded(inputs))).max() > 0.01
    # It gets no mask of steps, nor does a layer whose call takes no mask.
    assert_close(folded(inputs, mask=mask[..., 0]), folded(inputs))
    dense = TimeFolded(keras.layers.Flatten(), unroll)
    np.testing.assert_array_equal(dense(inputs, mask=mask), dense(inputs))


def test_of_sets_that_are_pooled_a_mask_of_steps_is_left():
    """The next layer gets one vector a step, and skips empty steps."""
    sets = random_array(2, 3, 4, 5)
    sets[1, 1:] = 0  # Steps without an object.
    sets[0, 2, :3] = 0
    pooled = TimeFolded(PrediNet(2, 3, 4))
    inputs = keras.Input((3, 4, 5))
    last = keras.layers.LSTM(3, name="last")
    model = keras.Model(inputs, last(pooled(keras.layers.Masking()(inputs))))
    outputs = array(model(sets))
    shorter = array(model(sets[1:, :1].repeat(3, axis=1)))
    assert_close(outputs[0], last(pooled(sets, mask=sets.any(-1)))[0])
    alone = last(pooled(sets[1:, :1], mask=np.ones((1, 1, 4), bool)))
    assert_close(outputs[1], alone[0])
    assert np.abs(shorter - outputs[1]).max() > 1e-3


def test_a_mask_that_fits_the_outputs_is_passed_on():
    mask = np.ones((2, 3, 4), bool)
    mask[0, 1, 2] = False
    sets = keras.KerasTensor((2, 3, 4, 5))
    layer = TimeFolded(keras.layers.Dense(7))
    np.testing.assert_array_equal(layer.compute_mask(sets, mask), mask)
    assert layer.compute_mask(sets) is None
    np.testing.assert_array_equal(
        layer.compute_mask(sets, mask[..., 0]), mask[..., 0]
    )
