import keras
import numpy as np
import pytest
from layers_for_tests import array

from keras_relational import layers
from keras_relational import models
from keras_relational.datasets import distribution_of_three

FILLERS = np.random.default_rng(0).integers(0, 256, (6, 32, 32), "uint8")
NUMBERS = np.array([[0, 1, 2, 2, 0, 1, 4, 2, 0], [3, 0, 5, 5, 3, 0, 1, 3, 5]])


@pytest.fixture(scope="module")
def autoencoder():
    keras.utils.set_random_seed(0)
    return models.filler_autoencoder()


def test_sizes_of_section_4_1():
    model = models.filler_autoencoder()
    encoder, decoder = map(model.get_layer, ("encoder", "decoder"))
    assert (None, 4, 4, 32) in [layer.output.shape for layer in encoder.layers]
    convolutions = 16 * 32 + 32 + 2 * (16 * 32 * 32 + 32)
    dense = 512 * 256 + 256 + 256 * 128 + 128
    assert encoder.count_params() == convolutions + dense
    transposed = 2 * (16 * 32 * 32 + 32) + 16 * 32 + 1
    dense = 128 * 256 + 256 + 256 * 512 + 512
    assert decoder.count_params() == transposed + dense
    model = models.filler_autoencoder("vector", 100)
    assert model.count_params() == 100 * 10 + 10 + 10 * 100 + 100
    assert model.get_layer("encoder").output.shape == (None, 10)


def test_batch_normalization_comes_before_each_nonlinearity():
    model = models.filler_autoencoder(batch_normalization=True)
    nonlinearities = keras.layers.ReLU, keras.layers.Activation
    for part, number in (("encoder", 5), ("decoder", 5)):
        chain = model.get_layer(part).layers
        places = [
            i
            for i, layer in enumerate(chain)
            if isinstance(layer, nonlinearities)
        ]
        assert len(places) == number
        for i in places:
            assert isinstance(chain[i - 1], keras.layers.BatchNormalization)


def test_initial_weights_are_those_of_appendix_a1(autoencoder):
    *_, dense, _ = autoencoder.get_layer("encoder").layers
    assert array(dense.kernel).std() == pytest.approx(
        np.sqrt(2 / 256), rel=0.03
    )
    limit = np.abs(array(dense.bias)).max()
    assert 0.9 / 16 < limit <= 1 / 16
    *_, last, _, _ = autoencoder.get_layer("decoder").layers
    deviation = np.sqrt(2 / (16 * 32 + 16))
    assert array(last.kernel).std() == pytest.approx(deviation, rel=0.1)
    lstm = models.rule_learner(autoencoder, "lstm").get_layer("reasoner")
    kernel = array(lstm.get_layer("lstm").cell.kernel)
    deviation = np.sqrt(2 / (128 + 512))
    gates = np.split(kernel, 4, axis=1)
    for gate, gain in zip(gates, (1, 1, 5 / 3, 1), strict=True):
        assert gate.std() == pytest.approx(gain * deviation, rel=0.03)


@pytest.mark.parametrize("mode", ["multiple_choice", "generative"])
@pytest.mark.parametrize("sequential", ["esbn", "ntm", "lstm"])
def test_it_is_made_of_its_parts(autoencoder, sequential, mode):
    model = models.rule_learner(autoencoder, sequential, mode)
    sequences = FILLERS[NUMBERS]
    encoder, decoder = map(autoencoder.get_layer, ("encoder", "decoder"))
    z = np.stack([array(encoder(x)) for x in sequences])
    reasoner = model.get_layer("reasoner")
    if sequential == "esbn":
        h = reasoner.get_layer("esbn")(z)
        outputs = h[1] if mode == "generative" else h
    else:
        outputs = reasoner.get_layer(sequential)(z)
    if sequential != "esbn" or mode == "multiple_choice":
        outputs = reasoner.get_layer("output")(outputs)
    if mode == "generative":
        outputs = decoder(outputs)
    np.testing.assert_allclose(model(sequences), outputs, atol=1e-5)
    shape = (2, 4) if mode == "multiple_choice" else (2, 32, 32)
    assert outputs.shape == shape
    # The same, with each filler encoded once.
    known = models.over_fillers(model, FILLERS)
    np.testing.assert_allclose(known(NUMBERS), outputs, atol=1e-5)


def test_over_fillers_the_policy_stays():
    keras.config.set_dtype_policy("mixed_float16")
    model = models.rule_learner(models.filler_autoencoder())
    keras.config.set_dtype_policy("float32")
    known = models.over_fillers(model, FILLERS)
    assert known.dtype_policy.name == "mixed_float16"


def test_a_corelnet_scores_the_similarities_of_fillers(autoencoder):
    model = models.rule_learner(autoencoder, "corelnet", num_steps=9)
    sequences = FILLERS[NUMBERS]
    encoder = models.part(model, "encoder").layer
    z = np.stack([array(encoder(x)) for x in sequences]).astype("float64")
    hidden, output = (
        [
            array(weight)
            for weight in model.get_layer("reasoner").layers[i].weights
        ]
        for i in (2, 3)
    )
    scores = []
    for entities in z:
        similarities = []
        for t in range(9):
            dots = entities[: t + 1] @ entities[t]
            weights = np.exp(dots - dots.max())
            similarities.extend(weights / weights.sum())
        units = np.maximum(np.array(similarities) @ hidden[0] + hidden[1], 0)
        assert units.shape == (256,)
        scores.append(units @ output[0] + output[1])
    np.testing.assert_allclose(model(sequences), scores, atol=1e-4)
    known = models.over_fillers(model, FILLERS)
    np.testing.assert_allclose(known(NUMBERS), scores, atol=1e-4)
    assert models.part(model, "corelnet").causal


@pytest.mark.parametrize("sequential", ["esbn", "corelnet"])
def test_the_choice_does_not_see_what_fillers_look_like(sequential):
    """Orthogonal embeddings, permuted: the same scores."""
    keras.utils.set_random_seed(0)
    autoencoder = models.filler_autoencoder("vector", 10)
    model = models.rule_learner(autoencoder, sequential, num_steps=9)
    reasoner = model.get_layer("reasoner")
    z = np.eye(10, dtype="float32")[NUMBERS]
    permuted = np.random.default_rng(0).permutation(10)
    other = np.eye(10, dtype="float32")[permuted][NUMBERS]
    np.testing.assert_allclose(reasoner(z), reasoner(other), atol=1e-6)
    lstm = models.rule_learner(autoencoder, "lstm").get_layer("reasoner")
    assert np.abs(array(lstm(z)) - array(lstm(other))).max() > 1e-3


def test_normalized_embeddings():
    autoencoder = models.filler_autoencoder()
    pairs = layers.TemporalContextNormalization(segment_lengths=(2, 2, 2))
    model = models.rule_learner(
        autoencoder, num_options=2, normalization=pairs, confidence=True
    )
    reasoner = model.get_layer("reasoner")
    assert reasoner.get_layer("esbn").confidence
    z = np.random.default_rng(0).normal(size=(2, 6, 128)).astype("float32")
    other = z.copy()
    other[:, 2:4] = 3 * z[:, 2:4] + 1  # The second pair alone.
    np.testing.assert_allclose(reasoner(z), reasoner(other), atol=1e-4)


@pytest.mark.parametrize(
    ("sequential", "mode"),
    [
        ("esbn", "multiple_choice"),
        ("esbn", "generative"),
        ("ntm", "multiple_choice"),
        ("lstm", "generative"),
    ],
)
@pytest.mark.slow
def test_end_to_end_every_weight_is_trained(sequential, mode):
    keras.utils.set_random_seed(0)
    autoencoder = models.filler_autoencoder(batch_normalization=True)
    model = models.rule_learner(autoencoder, sequential, mode)
    fillers = distribution_of_three.glyphs()[:6]
    known = models.over_fillers(model, fillers)
    problems = distribution_of_three.generate(32, range(6), mode=mode, seed=0)
    if mode == "multiple_choice":
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        target = problems.labels
    else:
        loss = "mse"
        target = fillers[problems.labels].astype("float32") / 255
    known.compile(keras.optimizers.Adam(1e-3), loss, jit_compile=False)
    before = [array(weight) for weight in known.trainable_weights]
    for _ in range(2):
        assert np.isfinite(known.train_on_batch(problems.fillers, target))
    for weight, old in zip(known.trainable_weights, before, strict=True):
        assert (array(weight) != old).any(), weight.path
    parts = autoencoder.get_layer("encoder"), model.get_layer("reasoner")
    trained = {id(weight) for weight in known.trainable_weights}
    for part in parts:
        assert trained >= {id(weight) for weight in part.trainable_weights}


def test_a_corelnet_trains_its_encoder_while_fillers_look_alike():
    """Where they differ much, as at first, the softmax is 0 or 1."""
    keras.utils.set_random_seed(0)
    autoencoder = models.filler_autoencoder()
    model = models.rule_learner(autoencoder, "corelnet", num_steps=9)
    problems = distribution_of_three.generate(32, range(6), seed=0)
    fillers = distribution_of_three.glyphs()[:6] // 8
    model.compile(
        keras.optimizers.Adam(1e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    before = [array(weight) for weight in model.trainable_weights]
    model.train_on_batch(fillers[problems.fillers], problems.labels)
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert (array(weight) != old).any(), weight.path


def test_numbers_of_many_fillers():
    autoencoder = models.filler_autoencoder("vector", 300)
    fillers = distribution_of_three.one_hot(300)
    model = models.rule_learner(autoencoder, "lstm")
    known = models.over_fillers(model, fillers)
    outputs = model(fillers[NUMBERS + 290])
    np.testing.assert_allclose(known(NUMBERS + 290), outputs, atol=1e-5)


def test_arguments_are_checked(autoencoder):
    with pytest.raises(ValueError, match="'sound'"):
        models.filler_autoencoder("sound")
    with pytest.raises(ValueError, match="'gru'"):
        models.rule_learner(autoencoder, "gru")
    with pytest.raises(ValueError, match="'guess'"):
        models.rule_learner(autoencoder, mode="guess")
    with pytest.raises(ValueError, match=r"num_steps=9.*num_steps=None"):
        models.rule_learner(autoencoder, "corelnet")
    with pytest.raises(ValueError, match="mode='generative'"):
        models.rule_learner(autoencoder, "corelnet", "generative", num_steps=5)
    with pytest.raises(ValueError, match=r"must be a layer.*=True"):
        models.rule_learner(autoencoder, normalization=True)
    with pytest.raises(ValueError, match="embeddings are for multiple choice"):
        models.rule_learner(
            autoencoder,
            mode="generative",
            normalization=layers.TemporalContextNormalization(),
        )
