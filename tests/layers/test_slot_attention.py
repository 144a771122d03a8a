import equations
import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import random_array

from keras_relational.layers import SCOFF
from keras_relational.layers import AppendCoordinates
from keras_relational.layers import SlotAttention
from keras_relational.layers import TimeFolded

SLOTS, UNITS, HIDDEN, ITERATIONS = 3, 4, 6, 2
SIZES = {
    "num_slots": SLOTS,
    "units": UNITS,
    "hidden_units": HIDDEN,
    "num_iterations": ITERATIONS,
}


@equations.each_example
def slots_in_loops(weights, inputs, valid):
    noise = np.random.default_rng(0).standard_normal((SLOTS, UNITS), "float32")
    slots = np.exp(weights["initial_log_scale"]) * noise
    slots = slots + weights["initial_mean"]
    if not valid.size:
        return np.zeros_like(slots)
    for _ in range(ITERATIONS):
        queries = equations.normalized(slots, weights, "query_normalization")
        queries = queries @ weights["query_kernel"]
        total, read = np.zeros((SLOTS, 1)), np.zeros((SLOTS, UNITS))
        for j in valid:
            x = equations.normalized(inputs[j], weights, "input_normalization")
            key = x @ weights["key_kernel"]
            scores = equations.softmax(
                [key @ query / UNITS**0.5 for query in queries]
            )
            scores = scores[:, None] + 1e-8
            total += scores
            read += scores * (x @ weights["value_kernel"])
        new = []
        for k, x in enumerate(read / total):
            s = equations.gru(
                x @ weights["gru/kernel"] + weights["gru/bias"][0],
                slots[k] @ weights["gru/recurrent_kernel"]
                + weights["gru/bias"][1],
                slots[k],
            )
            change = equations.normalized(s, weights, "update_normalization")
            new.append(s + equations.feedforward(change, weights))
        slots = np.array(new)
    return slots


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
            reference=slots_in_loops,
            attention_scores_shape=(2, SLOTS, 4),
            expected_output_shape=(2, SLOTS, UNITS),
            expected_num_trainable_weights=18,
            # The GRU has a seed of its own, for dropout.
            expected_num_non_trainable_variables=2,
            expected_num_seed_generators=2,
        )

    def test_order_of_entities_does_not_matter(self):
        entities = random_array(2, 5, 6)
        order = np.array([3, 0, 4, 1, 2])
        layer = SlotAttention(**SIZES)
        slots, scores = layer(entities, return_attention_scores=True)
        turned = layer(entities[:, order], return_attention_scores=True)
        assert_close(turned, (slots, array(scores)[..., order]), atol=1e-5)

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
def test_noise_is_drawn_in_training_alone():
    entities = random_array(4, 5, 6)
    layer = SlotAttention(**SIZES, seed=1)
    flags = (False, False, True, True)
    outputs = [array(layer(entities, training=flag)) for flag in flags]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert np.abs(outputs[2] - outputs[3]).max() > 1e-3
    again = SlotAttention(**SIZES, seed=1)
    again.build(entities.shape)
    again.set_weights(layer.get_weights())
    assert_close(again(entities, training=True), outputs[2])


@pytest.mark.any_backend
def test_noise_is_normal_and_differs_between_slots_and_examples():
    layer = SlotAttention(20, 10, 6, seed=0)
    layer.build((None, 5, 6))
    layer.initial_mean.assign(np.full((1, 10), 2.0))
    layer.initial_log_scale.assign(np.full((1, 10), np.log(3.0)))
    slots = array(layer._first_slots(200, True))
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
    encoder = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            AppendCoordinates(),
            keras.layers.Reshape((64, 5)),
            SlotAttention(3, 4, 6),
        ]
    )
    slots = TimeFolded(encoder)(keras.Input((7, 8, 8, 3)))
    assert slots.shape == (None, 7, 3, 4)
    assert SCOFF(5, 3, 2)(slots).shape == (None, 15)
