import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract

from keras_relational.layers import SlotAttention

SLOTS, UNITS, HIDDEN, ITERATIONS = 3, 4, 6, 2
SIZES = {
    "num_slots": SLOTS,
    "units": UNITS,
    "hidden_units": HIDDEN,
    "num_iterations": ITERATIONS,
}


def random_array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def normalized(x, weights, name):
    x = x - x.mean()
    x = x / np.sqrt(np.mean(x**2) + 1e-3)
    return x * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(x, h, weights):
    """Keras' GRU, with biases of its own for inputs and state."""
    of_x = np.split(x @ weights["gru/kernel"] + weights["gru/bias"][0], 3)
    of_h = np.split(
        h @ weights["gru/recurrent_kernel"] + weights["gru/bias"][1], 3
    )
    update = sigmoid(of_x[0] + of_h[0])
    reset = sigmoid(of_x[1] + of_h[1])
    new = np.tanh(of_x[2] + reset * of_h[2])
    return update * h + (1 - update) * new


def slots_in_loops(weights, inputs, mask=None):
    noise = np.random.default_rng(0).standard_normal((SLOTS, UNITS), "float32")
    first = (
        weights["initial_mean"] + np.exp(weights["initial_log_scale"]) * noise
    )
    found = []
    for example, entities in enumerate(inputs):
        valid = range(len(entities))
        if mask is not None:
            valid = np.flatnonzero(mask[example])
        if not len(valid):
            found.append(np.zeros_like(first))
            continue
        slots = list(first)
        for _ in range(ITERATIONS):
            queries = [
                normalized(s, weights, "query_normalization")
                @ weights["query_kernel"]
                for s in slots
            ]
            total, read = np.zeros(SLOTS), np.zeros((SLOTS, UNITS))
            for j in valid:
                x = normalized(entities[j], weights, "input_normalization")
                logits = np.array(
                    [
                        x @ weights["key_kernel"] @ q / UNITS**0.5
                        for q in queries
                    ]
                )
                scores = np.exp(logits - logits.max())
                scores = scores / scores.sum() + 1e-8
                for k in range(SLOTS):
                    total[k] += scores[k]
                    read[k] += scores[k] * (x @ weights["value_kernel"])
            for k in range(SLOTS):
                s = gru(read[k] / total[k], slots[k], weights)
                hidden = normalized(s, weights, "update_normalization")
                hidden = hidden @ weights["hidden/kernel"]
                hidden = np.maximum(hidden + weights["hidden/bias"], 0)
                change = hidden @ weights["update/kernel"]
                slots[k] = s + change + weights["update/bias"]
        found.append(slots)
    return np.array(found)


class SlotAttentionTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            SlotAttention,
            init_kwargs={
                **SIZES,
                "kernel_initializer": "he_normal",
                "recurrent_initializer": "he_uniform",
                "seed": 3,
            },
            input_shape=(2, 5, 6),
            second_input_shape=(2, 7, 6),
            fixed_size=False,
            reference=slots_in_loops,
            supports_masking=True,
            attention_scores_shape=(2, SLOTS, 5),
            expected_output_shape=(2, SLOTS, UNITS),
            expected_output_dtype="float32",
            expected_num_trainable_weights=18,
            expected_num_non_trainable_weights=0,
            # The GRU has a seed of its own, for dropout.
            expected_num_non_trainable_variables=2,
            expected_num_seed_generators=2,
            expected_num_losses=0,
        )

    def test_order_of_entities_does_not_matter(self):
        entities = random_array(2, 5, 6)
        order = np.array([3, 0, 4, 1, 2])
        layer = SlotAttention(**SIZES)
        slots, scores = layer(entities, return_attention_scores=True)
        turned, others = layer(entities[:, order], return_attention_scores=True)
        self.assertAllClose(slots, turned, atol=1e-5)
        scores = ops.convert_to_numpy(scores)
        self.assertAllClose(scores[..., order], others, atol=1e-5)

    def test_slots_share_each_entity(self):
        mask = np.array([[True] * 5, [True, False, True, True, False]])
        _, scores = SlotAttention(**SIZES)(
            random_array(2, 5, 6), mask=mask, return_attention_scores=True
        )
        self.assertAllClose(ops.sum(scores, axis=1), mask.astype("float32"))

    def test_more_slots_with_the_same_weights_begin_alike(self):
        """The first slots do not depend on how many follow."""
        few, many = (SlotAttention(k, 4, 6) for k in (2, 5))
        for layer in (few, many):
            layer.build((None, 5, 6))
        many.set_weights(few.get_weights())
        first = [layer._first_slots(3, False) for layer in (few, many)]
        self.assertAllClose(first[0], first[1][:, :2])


@pytest.mark.any_backend
def test_half_precision_does_not_round_the_inputs():
    """They are normalized first, so a common offset changes nothing."""
    x = np.random.default_rng(0).integers(0, 9, (2, 5, 8)).astype("float32")
    keras.config.set_dtype_policy("mixed_bfloat16")
    layer = SlotAttention(num_slots=3, units=8, hidden_units=8)
    near, far = (
        ops.convert_to_numpy(ops.cast(layer(inputs), "float32"))
        for inputs in (x, 1000 + x)
    )
    np.testing.assert_allclose(far, near, atol=0.02)


@pytest.mark.any_backend
def test_noise_is_drawn_in_training_alone():
    entities = random_array(4, 5, 6)
    layer = SlotAttention(**SIZES, seed=1)
    outputs = [
        ops.convert_to_numpy(layer(entities, training=training))
        for training in (False, False, True, True)
    ]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert np.abs(outputs[2] - outputs[3]).max() > 1e-3
    again = SlotAttention(**SIZES, seed=1)
    again.build(entities.shape)
    again.set_weights(layer.get_weights())
    same = ops.convert_to_numpy(again(entities, training=True))
    np.testing.assert_allclose(same, outputs[2], atol=1e-6)


@pytest.mark.any_backend
def test_noise_is_normal_and_differs_between_slots_and_examples():
    layer = SlotAttention(20, 10, 6, seed=0)
    layer.build((None, 5, 6))
    layer.initial_mean.assign(np.full((1, 10), 2.0))
    layer.initial_log_scale.assign(np.full((1, 10), np.log(3.0)))
    slots = ops.convert_to_numpy(layer._first_slots(200, True))
    noise = (slots - 2) / 3
    assert noise.mean() == pytest.approx(0, abs=0.02)
    assert noise.std() == pytest.approx(1, abs=0.02)
    assert np.mean(np.abs(noise) > 1.96) == pytest.approx(0.05, abs=0.005)
    for one, other in (
        (noise[0], noise[1]),
        (noise[:, 0], noise[:, 1]),
        (noise[..., 0], noise[..., 1]),
    ):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.25


def test_slots_of_an_image_go_into_scoff():
    from keras_relational import layers

    frames = keras.Input((7, 8, 8, 3))
    encoder = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.AppendCoordinates(),
            keras.layers.Reshape((64, 5)),
            SlotAttention(3, 4, 6),
        ]
    )
    slots = layers.TimeFolded(encoder)(frames)
    assert slots.shape == (None, 7, 3, 4)
    assert layers.SCOFF(5, 3, 2)(slots).shape == (None, 15)


def test_refuses_bad_sizes():
    with pytest.raises(ValueError, match="`num_slots` must be a positive"):
        SlotAttention(0, 4, 6)
    with pytest.raises(ValueError, match="takes sets"):
        SlotAttention(**SIZES)(random_array(2, 5, 5, 6))
