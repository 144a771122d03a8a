import keras
import numpy as np
import pytest
from keras import ops

from keras_relational import models
from keras_relational.models.analogy_scorer import NORMALIZATIONS
from keras_relational.models.analogy_scorer import ROW_NORMALIZATIONS

SEPARATE = ("temporal_context", "layer", "layer_recurrent", "none")


def problems(batch=2, images=7, size=16, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "images": rng.integers(0, 256, (batch, images, size, size, 3), "uint8"),
        "context": rng.integers(0, images, (batch, 3), "int32"),
        "candidates": np.array(
            [rng.permutation(7) % images for _ in range(batch)], "int32"
        ),
    }


def scores_of(model, inputs):
    return ops.convert_to_numpy(model(inputs))


def test_sizes_of_section_4_1():
    model = models.analogy_scorer()
    encoder = model.get_layer("encoder").layer
    assert (None, 8, 8, 32) in [layer.output.shape for layer in encoder.layers]
    convolutions = 4 * 4 * 3 * 32 + 32 + 3 * (4 * 4 * 32 * 32 + 32)
    dense = 2048 * 256 + 256 + 2 * (256 * 256 + 256)
    assert encoder.count_params() == convolutions + dense
    lstm = 4 * (256 * (256 + 256) + 256)
    gain_and_shift, score = 2 * 256, 256 + 1
    scorer = model.get_layer("scorer")
    assert scorer.count_params() == gain_and_shift + lstm + score


def test_initial_weights():
    keras.utils.set_random_seed(0)
    model = models.analogy_scorer(image_size=16)
    for weight in model.trainable_weights:
        value = ops.convert_to_numpy(weight)
        if weight.name in ("bias", "beta"):
            assert not value.any(), weight.path
        elif weight.name != "gamma":
            *kernel, fan_in, fan_out = value.shape
            fans = np.prod(kernel, dtype=int) * (fan_in + fan_out)
            limit = np.sqrt(6 / fans)
            assert np.abs(value).max() <= limit, weight.path
            assert np.abs(value).max() > 0.9 * limit, weight.path


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.slow
def test_every_row_of_table_1_can_be_trained(normalization):
    model = models.analogy_scorer(normalization, image_size=16)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss)
    before = model.get_weights()
    model.train_on_batch(problems(6), np.zeros(6, "uint8"))
    for weight, old in zip(model.weights, before, strict=True):
        new = ops.convert_to_numpy(weight)
        assert np.isfinite(new).all(), weight.path
        # beta, and the last bias, move all scores alike at first.
        if weight.trainable and weight.name not in ("beta", "bias"):
            assert (new != old).any(), weight.path


@pytest.mark.parametrize("normalization", SEPARATE)
def test_equals_one_candidate_after_the_other(normalization):
    """Section 4.1: encode, normalize, recur, score, for each candidate."""
    model = models.analogy_scorer(normalization, 16, num_candidates=None)
    scorer = model.get_layer("scorer")
    inputs = problems()
    encoder = model.get_layer("encoder").layer
    scores = scores_of(model, inputs)
    for example, images in enumerate(inputs["images"]):
        for place, candidate in enumerate(inputs["candidates"][example]):
            terms = [*inputs["context"][example], candidate]
            z = encoder(images[terms].astype("float32"))
            z = scorer.get_layer("normalization")(z[None])
            h = scorer.get_layer("recurrent").layer(z)
            score = scorer.get_layer("score")(h)
            np.testing.assert_allclose(
                scores[example, place], score[0, 0], atol=1e-5
            )
    inputs["candidates"] = inputs["candidates"][:, [4, 1]]
    np.testing.assert_allclose(
        scores_of(model, inputs), scores[:, [4, 1]], atol=1e-5
    )


def test_embeddings_moved_and_scaled_have_the_same_scores():
    """What lets temporal context normalization extrapolate."""
    rng = np.random.default_rng(0)
    inputs = problems()
    inputs["embeddings"] = rng.normal(size=(2, 7, 256)).astype("float32")
    del inputs["images"]
    moved = {**inputs, "embeddings": 5 * inputs["embeddings"] + 3}
    scorer = models.analogy_scorer(image_size=16).get_layer("scorer")
    np.testing.assert_allclose(
        scores_of(scorer, moved), scores_of(scorer, inputs), atol=1e-4
    )
    scorer = models.analogy_scorer("layer", image_size=16).get_layer("scorer")
    difference = scores_of(scorer, moved) - scores_of(scorer, inputs)
    assert np.abs(difference).max() < 1e-3  # Of the vector as a whole.
    moved["embeddings"] = inputs["embeddings"] * np.arange(256) / 99
    difference = scores_of(scorer, moved) - scores_of(scorer, inputs)
    assert np.abs(difference).max() > 1e-2  # But not feature by feature.


def test_every_image_is_encoded_once(monkeypatch):
    model = models.analogy_scorer(image_size=16)
    convolution = model.get_layer("encoder").layer.layers[1]
    shapes = []
    call = convolution.call

    def counted(inputs):
        shapes.append(tuple(inputs.shape))
        return call(inputs)

    monkeypatch.setattr(convolution, "call", counted)
    model(problems(5))
    assert shapes == [(5 * 7, 16, 16, 3)]


def test_arguments_are_checked():
    with pytest.raises(ValueError, match=r"'tcn'.*temporal_context"):
        models.analogy_scorer("tcn")
    with pytest.raises(ValueError, match=r"multiple of 16.*100"):
        models.analogy_scorer(image_size=100)
    with pytest.raises(ValueError, match=r"'layer'.*source_target"):
        models.visual_analogy_scorer("layer")


def matrices(batch=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (batch, 9, 80, 80, 1), "uint8")


class TestVisualAnalogyScorer:
    def test_sizes(self):
        model = models.visual_analogy_scorer()
        encoder = model.get_layer("encoder").layer
        assert encoder.output_shape == (None, 800)
        assert encoder.count_params() == 9 * 32 + 32 + 3 * (9 * 32 * 32 + 32)
        rnn = 64 * (800 + 64) + 64
        gain_and_shift, score = 2 * 800, 64 + 1
        assert model.count_params() - encoder.count_params() == (
            rnn + gain_and_shift + score
        )

    @pytest.mark.parametrize("normalization", ROW_NORMALIZATIONS)
    def test_equals_one_candidate_after_the_other(self, normalization):
        model = models.visual_analogy_scorer(normalization)
        images = matrices()
        scores = scores_of(model, images)
        encoder = model.get_layer("encoder").layer
        for candidate in range(4):
            terms = images[:, [0, 1, 2, 3, 4, 5 + candidate]]
            z = np.stack(
                [ops.convert_to_numpy(encoder(terms[:, i])) for i in range(6)],
                axis=1,
            )
            contexts = {
                "source_target": [z[:, :3], z[:, 3:]],
                "temporal_context": [z],
                "batch": [z],
                "none": [],
            }[normalization]
            axis = 0 if normalization == "batch" else 1
            normalized = [
                (x - x.mean(axis, keepdims=True))
                / np.sqrt(x.var(axis, keepdims=True) + 1e-8)
                for x in contexts
            ]
            z = np.concatenate(normalized, axis=1) if normalized else z
            h = model.get_layer("recurrent").layer(z)
            score = model.get_layer("score")(h)
            np.testing.assert_allclose(
                scores[:, candidate], score[:, 0], atol=1e-3
            )
