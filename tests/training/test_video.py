"""Training on videos and on moving squares, and the errors of predictions."""

import keras
import numpy as np
import pytest

from keras_relational import layers
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import dynamic_objects
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


@pytest.fixture(scope="module")
def autoencoder():
    keras.utils.set_random_seed(0)
    return models.image_autoencoder()


def test_frames_have_all_widths_and_go_on_where_they_were():
    batches = training.FrameBatches(batch_size=200, seed=1)
    x, y = batches[7]
    sizes = np.sqrt((x > 0).sum((1, 2, 3)))
    assert sizes.min() < 6
    assert sizes.max() > 28
    np.testing.assert_array_equal(y, x / np.float32(255))
    rest = training.FrameBatches(200, initial_batch=5, seed=1)
    np.testing.assert_array_equal(rest[2][0], x)
    other = training.FrameBatches(200, seed=2)
    assert (other[7][0] != x).any()


def test_embeddings_are_those_of_the_frames(autoencoder):
    sequences = dynamic_objects.generate(5, seed=0)
    z = training.frame_embeddings(autoencoder, sequences, batch_size=2)
    expected = autoencoder.get_layer("encoder")(sequences[3])
    np.testing.assert_allclose(z[3], expected, atol=1e-5)


def test_prediction_error_is_that_of_every_pixel(autoencoder):
    model = models.object_predictor(autoencoder)
    sequences = dynamic_objects.generate(5, seed=0)
    predicted = model.predict(sequences[:, :-1], verbose=0)
    expected = np.mean((predicted - sequences[:, 1:] / 255) ** 2)
    # Of batches of 2, 2 and 1.
    error = training.prediction_error(model, sequences, batch_size=2)
    assert error == pytest.approx(expected, rel=1e-4)


def test_test_sets_have_large_squares():
    tests = training.dynamic_object_tests(4, seed=7)
    for sequences, number in zip(tests, (1, 2), strict=True):
        expected = dynamic_objects.generate(
            4, dynamic_objects.TEST_WIDTHS, seed=[7, 0, number]
        )
        np.testing.assert_array_equal(sequences, expected)


@pytest.mark.slow
def test_learns_to_predict_larger_squares():
    """In some minutes: the way, not the figures of Table 4."""
    keras.utils.set_random_seed(0)
    autoencoder = models.image_autoencoder()
    autoencoder.compile(training.supervised.adam(5e-4), "mse")
    autoencoder.fit(
        training.FrameBatches(),
        steps_per_epoch=4_000,
        shuffle=False,
        verbose=0,
    )
    train = dynamic_objects.generate(4_000, seed=1)
    test = dynamic_objects.generate(200, dynamic_objects.TEST_WIDTHS, seed=2)
    z = training.frame_embeddings(autoencoder, train)
    errors = {}
    for normalization in ("temporal_context", "none"):
        model = models.object_predictor(autoencoder, normalization)
        predictor = model.get_layer("predictor")
        predictor.compile(keras.optimizers.Adam(2e-3), "mse", jit_compile=True)
        predictor.fit(z[:, :-1], z[:, 1:], batch_size=32, epochs=30, verbose=0)
        errors[normalization] = training.prediction_error(model, test)
    assert errors["temporal_context"] < 0.02
    assert errors["none"] > 2 * errors["temporal_context"]
