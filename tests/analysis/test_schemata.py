"""Object files, and pictures of predicted videos."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_relational import analysis
from keras_relational import layers
from keras_relational import models


def small_model():
    keras.utils.set_random_seed(0)
    core = layers.SCOFF(8, 2, 3, return_sequences=True, return_state=True)
    return models.video_predictor(core)


def random_frames(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype="uint8")


@pytest.fixture(scope="module")
def frames():
    return random_frames(3, 4, 64, 64, 1)


@pytest.fixture(scope="module")
def found(frames):
    return analysis.object_files(small_model(), frames, batch_size=2)


def test_object_files(frames, found):
    assert found.inputs.shape == (3, 4, 1, 2, 64)
    assert found.schemata.shape == (3, 4, 2, 3)
    assert found.messages.shape == (3, 4, 4, 2, 2)
    for scores, axis in zip(found, (3, 3, 4), strict=True):
        np.testing.assert_allclose(scores.sum(axis), 1, atol=1e-5)
    alone = analysis.object_files(small_model(), frames[2:])
    np.testing.assert_allclose(alone.schemata, found.schemata[2:], atol=1e-5)


def test_object_files_of_a_sequential_model():
    scoff = layers.SCOFF(4, 2, 3)
    parts = [keras.Input((None, 2)), keras.layers.Dense(5), scoff]
    model = keras.Sequential([*parts, keras.layers.Dense(1)])
    x = np.random.default_rng(0).normal(size=(3, 6, 2)).astype("float32")
    found = analysis.object_files(model, x)
    _, scores = scoff(parts[1](x), return_attention_scores=True)
    np.testing.assert_allclose(found.schemata, scores[1], atol=1e-6)


@pytest.mark.parametrize("with_states", [False, True])
def test_object_files_of_a_model_with_a_mask(with_states):
    """They do what they do in the model, to padding and from its states."""
    scoff = layers.SCOFF(4, 2, 3)
    words = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(7, 5, mask_zero=True)(words)
    kwargs, initial = {}, None
    if with_states:
        initial = keras.layers.Dense(8)(x[:, 0])
        # Keras passes on no mask beside states.
        kwargs = {"initial_state": [initial], "mask": ops.not_equal(words, 0)}
    model = keras.Model(words, scoff(x, **kwargs))
    ids = np.array([[3, 1, 0], [2, 5, 6], [4, 0, 0]])
    found = analysis.object_files(model, ids)
    assert found.schemata[1].any(-1).all()
    np.testing.assert_array_equal(
        found.schemata.any(-1), np.repeat(ids[..., None] > 0, 2, axis=-1)
    )
    if with_states:
        kwargs = {"initial_state": [keras.Model(words, initial)(ids)]}
    embedded = keras.Model(words, x)(ids)
    _, (_, expected, _) = scoff(
        embedded, mask=ids > 0, return_attention_scores=True, **kwargs
    )
    np.testing.assert_allclose(found.schemata, expected, atol=1e-6)


def test_a_stateful_model_is_left_alone():
    model = keras.Sequential(
        [
            keras.Input((3, 5), batch_size=2),
            layers.SCOFF(4, 2, 3, stateful=True),
        ]
    )
    with pytest.raises(ValueError, match="is stateful"):
        analysis.object_files(model, np.zeros((2, 3, 5)))


def test_a_model_without_scoff():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="not one layer SCOFF but 0"):
        analysis.object_files(model, np.zeros((1, 2)))


def test_object_files_of_an_agent():
    """Frame by frame as the agent itself: its last state is the same."""
    cell = layers.SCOFFCell(4, 2, 3)
    model = models.boxworld_agent("convolutional", (5, 5, 3), cell=cell)
    images = random_frames(6, 5, 5, 3)
    found = analysis.episode_object_files(model, images)
    assert found.inputs.shape == (1, 6, 1, 2, 1)
    assert found.schemata.shape == (1, 6, 2, 3)
    np.testing.assert_allclose(found.schemata.sum(-1), 1, atol=1e-5)
    core = model.get_layer("core")
    features = keras.Model(model.inputs[0], core.input[0])(images[None])
    layer = layers.SCOFF(4, 2, 3)
    layer.build((1, 6, features.shape[-1]))
    layer.set_weights(cell.get_weights())
    _, (_, schemata, _) = layer(features[None], return_attention_scores=True)
    np.testing.assert_allclose(found.schemata, schemata, atol=1e-5)
    keras.config.set_dtype_policy("mixed_bfloat16")
    half = models.boxworld_agent(
        "convolutional", (5, 5, 3), cell=layers.SCOFFCell(4, 2, 3)
    )
    half.set_weights(model.get_weights())
    np.testing.assert_allclose(
        analysis.episode_object_files(half, images).schemata,
        found.schemata,
        atol=0.1,
    )
    gru = models.boxworld_agent(
        "convolutional", (5, 5, 3), cell=keras.layers.GRUCell(4)
    )
    with pytest.raises(ValueError, match="is no SCOFFCell"):
        analysis.episode_object_files(gru, images)


def test_schemata_are_drawn_as_they_are_chosen(found):
    figure = analysis.plot_schemata(found, 1, labels=[0, 0, 1, 1])
    assert len(figure.axes) == 3
    # What is framed is what is taken.
    (taken,) = figure.axes[1].lines
    np.testing.assert_array_equal(
        taken.get_ydata(), found.schemata[1, :, 0].argmax(-1)
    )
    schemata = np.random.default_rng(0).random((2, 4, 2, 3))
    schemata[1, [0, 2], 0] = 0  # Not updated in these steps.
    figure = analysis.plot_schemata(found._replace(schemata=schemata), 1)
    (taken,) = figure.axes[0].lines
    np.testing.assert_array_equal(taken.get_xdata(), [1, 3])


def test_contingency_and_mutual_information():
    labels = np.repeat([0, 1, 2], 50)
    one_to_one = analysis.contingency((labels + 1) % 3, labels)
    np.testing.assert_array_equal(one_to_one, 50 * np.eye(3)[[1, 2, 0]])
    assert analysis.mutual_information(one_to_one) == pytest.approx(1)
    with_another = analysis.contingency(labels, labels, num_schemata=4)
    np.testing.assert_array_equal(with_another, 50 * np.eye(3, 4))
    # A schema, the first one, that is never used.
    unused = np.pad(one_to_one, [(0, 0), (1, 0)])
    assert analysis.mutual_information(unused) == pytest.approx(1)
    assert analysis.mutual_information(np.ones((3, 2))) == pytest.approx(0)
    # Two labels told apart out of three: 1 − (2/3) log 2 / log 3.
    merged = analysis.contingency(np.minimum(labels, 1), labels)
    assert analysis.mutual_information(merged) == pytest.approx(
        1 - 2 / 3 * np.log(2) / np.log(3)
    )
    assert analysis.mutual_information(np.array([[3, 4]])) == 1
    with pytest.raises(ValueError, match=r"\(2,\), labels.shape=\(3,\)"):
        analysis.contingency([0, 1], [0, 1, 1])
