import keras
import numpy as np
import pytest
from keras import ops

from experiments.context_normalization.object_predictor import image_autoencoder
from experiments.context_normalization.object_predictor import object_predictor
from keras_relational.datasets import dynamic_objects

SEQUENCES = dynamic_objects.generate(3, seed=0)
NORMALIZATIONS = ("temporal_context", "batch", "none")


def lively_autoencoder():
    """With weights that tell images apart, unlike fresh ones."""
    keras.utils.set_random_seed(0)
    autoencoder = image_autoencoder()
    for weight in autoencoder.weights:
        weight.assign(2 * weight)
    return autoencoder


@pytest.fixture(scope="module")
def autoencoder():
    return lively_autoencoder()


def array(tensor):
    return ops.convert_to_numpy(tensor)


def test_sizes_of_section_4_3(autoencoder):
    encoder, decoder = map(autoencoder.get_layer, ("encoder", "decoder"))
    assert (None, 8, 8, 32) in [layer.output.shape for layer in encoder.layers]
    convolutions = 16 * 32 + 32 + 2 * (16 * 32 * 32 + 32)
    dense = 2048 * 256 + 256 + 256 * 256 + 256
    assert encoder.count_params() == convolutions + dense + 256 * 10 + 10
    convolutions = 2 * (16 * 32 * 32 + 32) + 16 * 32 + 1
    dense = 10 * 256 + 256 + 256 * 256 + 256 + 256 * 2048 + 2048
    assert decoder.count_params() == convolutions + dense
    predictor = object_predictor(autoencoder).get_layer("predictor")
    lstm = 4 * (20 * (10 + 20) + 20)
    assert predictor.count_params() == 2 * 10 + lstm + 20 * 10 + 10


def test_initial_weights_are_uniform():
    autoencoder = image_autoencoder()
    predictor = object_predictor(autoencoder).get_layer("predictor")
    for layer, fan_in in (
        (autoencoder.get_layer("encoder").layers[2], 16 * 32),
        (autoencoder.get_layer("decoder").layers[2], 256),
        (autoencoder.get_layer("decoder").layers[5], 16 * 32),
        (predictor.get_layer("recurrent"), 20),
        (predictor.get_layer("prediction"), 20),
    ):
        for weight in map(array, layer.weights):
            limit = fan_in**-0.5
            assert 0.6 * limit < np.abs(weight).max() <= limit
            assert weight.min() < 0 < weight.max()


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_parts_are_those_of_equation_4(autoencoder, normalization):
    model = object_predictor(autoencoder, normalization)
    predictor = model.get_layer("predictor")
    encoder, decoder = map(autoencoder.get_layer, ("encoder", "decoder"))
    z = np.stack([array(encoder(x)) for x in SEQUENCES[:2]]).astype("float64")
    axis = {"temporal_context": 1, "batch": 0}.get(normalization)
    mean, deviation = 0, 1
    if axis is not None:
        mean = z.mean(axis, keepdims=True)
        deviation = np.sqrt(z.var(axis, keepdims=True) + 1e-8)
    h = predictor.get_layer("recurrent")((z - mean) / deviation)
    z = deviation * array(predictor.get_layer("prediction")(h)) + mean
    expected = [array(decoder(steps)) for steps in z]
    np.testing.assert_allclose(model(SEQUENCES[:2]), expected, atol=1e-5)


def test_without_moments_no_prediction_sees_the_future(autoencoder):
    model = object_predictor(autoencoder, "none")
    changed = SEQUENCES.copy()
    changed[:, 10:] = 0
    before, after = array(model(SEQUENCES)), array(model(changed))
    np.testing.assert_allclose(before[:, :10], after[:, :10], atol=1e-6)
    assert np.abs(before[:, 10:] - after[:, 10:]).max() > 1e-6


def test_predictions_follow_embeddings_that_move_and_grow(autoencoder):
    """Moved and scaled embeddings give predictions moved and scaled alike."""
    predictor = object_predictor(autoencoder).get_layer("predictor")
    z = np.random.default_rng(0).normal(size=(2, 19, 10)).astype("float32")
    np.testing.assert_allclose(
        predictor(4 * z + 7), 4 * array(predictor(z)) + 7, atol=1e-4
    )


def test_is_fine_tuned_end_to_end():
    model = object_predictor(lively_autoencoder())
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    before = model.get_weights()
    target = SEQUENCES[:, 1:].astype("float32") / 255
    loss = model.train_on_batch(SEQUENCES[:, :-1], target)
    assert np.isfinite(loss)
    for weight, old in zip(model.weights, before, strict=True):
        assert (array(weight) != old).any(), weight.path


def test_saved_and_loaded(autoencoder, tmp_path):
    model = object_predictor(autoencoder)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(model(SEQUENCES), loaded(SEQUENCES), atol=1e-6)


def test_what_cannot_be_undone_is_refused(autoencoder):
    with pytest.raises(ValueError, match=r"'layer'.*undone"):
        object_predictor(autoencoder, "layer")
    with pytest.raises(ValueError, match="Unknown normalization"):
        object_predictor(autoencoder, "tcn")
