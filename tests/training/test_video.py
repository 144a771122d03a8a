"""Training on videos, and the errors of predictions."""

import keras
import numpy as np
import pytest

from keras_relational import layers
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import intuitive_physics
from keras_relational.random_streams import stream


def generate(num_videos, seed=None):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (num_videos, 6, 64, 64, 1), dtype="uint8")


def small_predictor():
    keras.utils.set_random_seed(0)
    core = layers.SCOFF(4, 2, 2, return_sequences=True, return_state=True)
    return models.video_predictor(core)


def test_each_frame_but_the_first_is_predicted():
    batches = training.VideoBatches(generate, 2, initial_batch=3, seed=7)
    x, y = batches[1]
    frames = generate(2, seed=[7, 4])
    np.testing.assert_array_equal(x, frames[:, :-1])
    np.testing.assert_allclose(y, frames[:, 1:] / 255, atol=1e-6)
    assert y.dtype == np.float32
    assert batches.num_batches is None


def test_frames_that_are_not_given_are_predicted_too():
    batches = training.VideoBatches(generate, 2, seed=7, num_given=2)
    x, y = batches[0]
    frames = generate(2, seed=[7, 0])
    np.testing.assert_array_equal(x, frames[:, :2])
    np.testing.assert_allclose(y, frames[:, 1:] / 255, atol=1e-6)


def test_simple_roll_out_errors():
    videos = generate(3, seed=1)
    errors = training.simple_roll_out_errors(videos, 2, 3)
    true = videos / 255
    mean = true.mean((0, 1))
    for i in range(3):
        expected = np.mean((true[:, 2 + i] - mean) ** 2)
        assert errors["mean_image"][i] == pytest.approx(expected, rel=1e-5)
        expected = np.mean((true[:, 2 + i] - true[:, 1]) ** 2)
        assert errors["last_frame"][i] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match=r"of 7 frames.*\(3, 6, 64, 64, 1\)"):
        training.simple_roll_out_errors(videos, 4, 3)


def test_roll_out_errors():
    model, videos = small_predictor(), generate(3, seed=1)
    errors = training.roll_out_errors(
        model, videos, num_given=2, num_frames=3, batch_size=2
    )
    rolled = models.roll_out_model(model, 3).predict(videos[:, :2], verbose=0)
    expected = [
        np.mean((rolled[:, i] - videos[:, 2 + i] / 255) ** 2) for i in range(3)
    ]
    np.testing.assert_allclose(errors, expected, rtol=1e-4)
    with pytest.raises(ValueError, match=r"of 7 frames.*\(3, 6, 64, 64, 1\)"):
        training.roll_out_errors(model, videos, num_given=4, num_frames=3)


def test_plausibility_is_minus_the_error():
    model, videos = small_predictor(), generate(3, seed=2)
    found = training.plausibility(model, videos, batch_size=2)
    errors = (
        model.predict(videos[:, :-1], verbose=0) - videos[:, 1:] / 255
    ) ** 2
    np.testing.assert_allclose(found, -errors.mean((1, 2, 3, 4)), rtol=1e-5)


def test_physics_tests():
    tests = training.physics_tests(2, 3, num_frames=20, image_size=16)
    for number, block in enumerate(["O1", "O2", "O3"], start=1):
        seed = stream(3, "block_beside_batches", number)
        expected = intuitive_physics.generate(block, 2, 20, seed, 16)
        np.testing.assert_array_equal(tests.pop(block), expected)
    assert not tests
    assert training.published_physics_tests(None, 16) == {}


def test_relative_error():
    sure, wrong, tie = [2, 2, 1, 1], [0, 1, 1, 1], [1, 0, 0, 1]
    assert training.relative_error([sure]) == 0
    assert training.relative_error([wrong]) == 1
    assert training.relative_error([sure, sure, wrong, tie]) == 0.375
    with pytest.raises(ValueError, match=r"plausibilities.shape=\(2, 2\)"):
        training.relative_error([[1, 0], [0, 1]])
    with pytest.raises(ValueError, match="is NaN"):
        training.relative_error([sure, [2, 2, np.nan, 1]])
