import keras
import numpy as np
from keras import ops

from keras_relational.layers import TimeFolded


def test_equals_one_step_after_the_other():
    inputs = np.random.default_rng(0).normal(size=(3, 4, 6, 6, 2))
    inputs = inputs.astype("float32")
    layer = keras.layers.Conv2D(5, 3)
    outputs = ops.convert_to_numpy(TimeFolded(layer)(inputs))
    assert outputs.shape == (3, 4, 4, 4, 5)
    for step in range(4):
        np.testing.assert_allclose(
            outputs[:, step], layer(inputs[:, step]), atol=1e-5
        )


def test_any_number_of_steps_saved_and_loaded(tmp_path):
    inputs = keras.Input((None, 6))
    model = keras.Model(inputs, TimeFolded(keras.layers.Dense(3))(inputs))
    assert model.output_shape == (None, None, 3)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for steps in (1, 5):
        x = np.ones((2, steps, 6), "float32")
        np.testing.assert_array_equal(
            model.predict(x, verbose=0), loaded.predict(x, verbose=0)
        )


def test_training_is_passed_on():
    layer = TimeFolded(keras.layers.Dropout(0.5, seed=0))
    ones = np.ones((2, 50, 4), "float32")
    assert (ops.convert_to_numpy(layer(ones, training=True)) == 0).any()
    np.testing.assert_array_equal(layer(ones, training=False), ones)
