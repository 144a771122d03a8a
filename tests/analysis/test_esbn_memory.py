import keras
import numpy as np
import pytest

from keras_relational import analysis
from keras_relational import layers
from keras_relational import models
from keras_relational.datasets import distribution_of_three

FILLERS = distribution_of_three.one_hot(10)


def reasoner(mode="multiple_choice", sequential="esbn", normalization=None):
    keras.utils.set_random_seed(0)
    autoencoder = models.filler_autoencoder("vector", 10)
    return models.rule_learner(
        autoencoder, sequential, mode, normalization=normalization
    )


def sequences(mode="multiple_choice", n=6):
    problems = distribution_of_three.generate(n, range(10), mode=mode, seed=0)
    return FILLERS[problems.fillers]


def test_shapes_and_sums():
    found = analysis.bindings(reasoner(), sequences())
    assert found.keys.shape == (6, 9, 256)
    assert found.key_scores.shape == (6, 10, 9)
    assert found.value_scores is None
    np.testing.assert_allclose(found.key_scores[:, 1:9].sum(-1), 1, atol=1e-5)
    assert not found.key_scores[:, 0].any()
    found = analysis.bindings(reasoner("generative"), sequences("generative"))
    assert found.value_scores.shape == (6, 6, 5)
    np.testing.assert_allclose(found.value_scores[:, 1:].sum(-1), 1, atol=1e-5)


def test_keys_do_not_depend_on_the_fillers_but_on_which_are_alike():
    model = reasoner()
    z = np.eye(10, dtype="float32")
    esbn = model.get_layer("reasoner").get_layer("esbn")
    pattern = np.array([0, 1, 2, 1, 0])
    one, other = (
        analysis.attention.as_float32(esbn.written_keys(z[None, fillers]))
        for fillers in (pattern, np.array([7, 3, 9])[pattern])
    )
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_values_are_bound_as_they_are_normalized():
    normalization = layers.TemporalContextNormalization()
    model = reasoner(normalization=normalization)
    found = analysis.bindings(model, sequences())
    z = normalization(model.get_layer("encoder")(sequences()))
    z = analysis.attention.as_float32(z)
    for t in range(1, 9):
        matches = np.einsum("nif,nf->ni", z[:, :t], z[:, t])
        shares = np.exp(matches - matches.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        np.testing.assert_allclose(
            found.key_scores[:, t, :t], shares, atol=1e-4
        )


def test_models_without_an_esbn_are_refused():
    with pytest.raises(ValueError, match="not one layer ESBN but 0"):
        analysis.bindings(reasoner(sequential="lstm"), sequences())


def test_any_model_with_one_esbn():
    """Behind other layers, with padded steps, and with a confidence."""
    inputs = keras.Input((6, 3))
    x = keras.layers.Masking()(inputs)
    x = keras.layers.Rescaling(2.0)(x)
    esbn = layers.ESBN(8, 4, confidence=True, name="binder")
    model = keras.Model(inputs, keras.layers.Dense(2)(esbn(x)))
    gain, bias = 0.7, -1.0
    esbn.confidence_gain.assign(gain)
    esbn.confidence_bias.assign(bias)
    data = np.random.default_rng(0).normal(size=(2, 6, 3)).astype("float32")
    data[0, 4:] = 0
    found = analysis.bindings(model, data)
    mask = data.any(-1)
    keys = esbn.written_keys(2 * data, mask=mask)
    np.testing.assert_allclose(found.keys, keys, atol=1e-6)
    z = 2 * data.astype("float64")
    matches = z @ z.mT
    sure = 1 / (1 + np.exp(-gain * matches - bias))
    for row, length in enumerate((4, 6)):
        assert not found.key_scores[row, length:].any()
        assert not found.confidence[row, length:].any()
        assert found.confidence[row, 0] == 0
        for t in range(1, length):
            shares = np.exp(matches[row, t, :t])
            shares /= shares.sum()
            expected = (shares * sure[row, t, :t]).sum()
            assert found.confidence[row, t] == pytest.approx(expected, abs=1e-5)
            np.testing.assert_allclose(
                found.key_scores[row, t, :t], shares, atol=1e-5
            )
    figure = analysis.plot_retrieval(found, problem=1)
    np.testing.assert_allclose(
        figure.axes[0].images[0].get_array(),
        found.key_scores[1] * found.confidence[1][:, None],
    )


def test_no_confidence():
    esbn = layers.ESBN(8, 4)
    with pytest.raises(ValueError, match="confidence=True"):
        esbn.read_confidence(np.zeros((1, 3, 2)))
    model = keras.Sequential([keras.Input((3, 2)), esbn])
    assert analysis.bindings(model, np.zeros((1, 3, 2))).confidence is None


def test_plot_retrieval():
    found = analysis.bindings(reasoner("generative"), sequences("generative"))
    figure = analysis.plot_retrieval(found, problem=2)
    keys, values, _ = figure.axes
    np.testing.assert_array_equal(
        keys.images[0].get_array(), found.key_scores[2]
    )
    assert values.get_title() == "values retrieved"
    np.testing.assert_array_equal(
        values.images[0].get_array(), found.value_scores[2]
    )
    assert (found.value_scores[2] != found.key_scores[2]).any()
