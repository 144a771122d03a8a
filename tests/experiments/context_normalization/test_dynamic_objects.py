import keras
import numpy as np
import pytest

from experiments.context_normalization import dynamic_objects as experiment
from experiments.context_normalization.object_predictor import image_autoencoder
from experiments.context_normalization.object_predictor import object_predictor
from experiments.generated_batches import GeneratedBatches
from keras_relational import training
from keras_relational.datasets import dynamic_objects


@pytest.fixture(scope="module")
def autoencoder():
    keras.utils.set_random_seed(0)
    return image_autoencoder()


def test_frames_have_all_widths():
    x, y = experiment.single_frames(200, seed=1)
    sizes = np.sqrt((x > 0).sum((1, 2, 3)))
    assert sizes.min() < 6
    assert sizes.max() > 28
    np.testing.assert_array_equal(y, x / np.float32(255))


def test_embeddings_are_those_of_the_frames(autoencoder):
    sequences = dynamic_objects.generate(5, seed=0)
    z = experiment.frame_embeddings(autoencoder, sequences, batch_size=2)
    expected = autoencoder.get_layer("encoder")(sequences[3])
    np.testing.assert_allclose(z[3], expected, atol=1e-5)


def test_prediction_error_is_that_of_every_pixel(autoencoder):
    model = object_predictor(autoencoder)
    sequences = dynamic_objects.generate(5, seed=0)
    predicted = model.predict(sequences[:, :-1], verbose=0)
    expected = np.mean((predicted - sequences[:, 1:] / 255) ** 2)
    # Of batches of 2, 2 and 1.
    error = experiment.prediction_error(model, sequences, batch_size=2)
    assert error == pytest.approx(expected, rel=1e-4)


def test_test_sets_have_large_squares():
    tests = experiment.sequences_of_large_squares(4, seed=7)
    for sequences, number in zip(tests, (1, 2), strict=True):
        expected = dynamic_objects.generate(
            4, dynamic_objects.TEST_WIDTHS, seed=[7, 0, number]
        )
        np.testing.assert_array_equal(sequences, expected)


@pytest.mark.slow
def test_learns_to_predict_larger_squares():
    """In some minutes: the way, not the figures of Table 4."""
    autoencoder = image_autoencoder()
    autoencoder.compile(training.supervised.adam(5e-4), "mse")
    autoencoder.fit(
        GeneratedBatches(experiment.single_frames),
        steps_per_epoch=4_000,
        shuffle=False,
        verbose=0,
    )
    train = dynamic_objects.generate(4_000, seed=1)
    test = dynamic_objects.generate(200, dynamic_objects.TEST_WIDTHS, seed=2)
    z = experiment.frame_embeddings(autoencoder, train)
    errors = {}
    for normalization in ("temporal_context", "none"):
        model = object_predictor(autoencoder, normalization)
        predictor = model.get_layer("predictor")
        predictor.compile(keras.optimizers.Adam(2e-3), "mse", jit_compile=True)
        predictor.fit(z[:, :-1], z[:, 1:], batch_size=32, epochs=30, verbose=0)
        errors[normalization] = experiment.prediction_error(model, test)
    assert errors["temporal_context"] < 0.02
    assert errors["none"] > 2 * errors["temporal_context"]


def test_rows_are_true_and_predicted_frames():
    (sequence,) = dynamic_objects.generate(1, seed=0)
    predicted = np.random.default_rng(0).random((19, 64, 64, 1))
    figure = experiment.plot_predicted_frames(sequence, {"one": predicted}, 6)
    panels = figure.axes
    assert [panel.get_title() for panel in panels[:4]] == ["2", "8", "14", "20"]
    np.testing.assert_array_equal(
        panels[2].images[0].get_array(), sequence[13, ..., 0] / 255
    )
    np.testing.assert_array_equal(
        panels[6].images[0].get_array(), predicted[12, ..., 0]
    )
    assert panels[4].get_ylabel() == "one"
