"""Layers that pool entities or slots."""

import equations
import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract
from layer_contract import outputs_and_gradients
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import random_array

from keras_relational.layers import MultiHeadAttentionPooling
from keras_relational.layers import SlotPooling
from keras_relational.layers._max_pooling import EntityMaxPooling

NUM_HEADS, KEY_DIM, VALUE_DIM = 2, 7, 3
ARGUMENTS = {
    "num_heads": NUM_HEADS,
    "key_dim": KEY_DIM,
    "value_dim": VALUE_DIM,
}


@equations.each_example
def pooling_in_loops(weights, inputs, valid):
    """Attention of each position, then the weighted sum over positions."""
    outputs = np.zeros(NUM_HEADS * VALUE_DIM)
    keys = inputs[valid] @ weights["key_kernel"]
    values = inputs[valid] @ weights["value_kernel"]
    for i in valid:
        # Without the scale of other attention.
        query = KEY_DIM**0.5 * (inputs[i] @ weights["query_kernel"])
        attended = equations.attend(query, keys, values, NUM_HEADS)
        shares = np.repeat(weights["position_kernel"][i], VALUE_DIM)
        outputs += shares * attended
    return outputs


class MultiHeadAttentionPoolingTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            MultiHeadAttentionPooling,
            init_kwargs={**ARGUMENTS, "kernel_initializer": "he_normal"},
            reference=pooling_in_loops,
            attention_scores_shape=(2, NUM_HEADS, 4, 4),
            expected_output_shape=(2, NUM_HEADS * VALUE_DIM),
            expected_num_trainable_weights=4,
            fixed_size=True,
        )

    def test_entities_may_move_with_their_weights(self):
        layer = MultiHeadAttentionPooling(**ARGUMENTS)
        entities, order = random_array(3, 4, 5), np.array([2, 0, 3, 1])
        outputs, scores = layer(entities, return_attention_scores=True)
        entities = entities[:, order]
        moved, moved_scores = layer(entities, return_attention_scores=True)
        expected = array(scores)[:, :, order][:, :, :, order]
        self.assertAllClose(moved_scores, expected)
        self.assertNotAllClose(moved, outputs)
        layer.position_kernel.assign(ops.take(layer.position_kernel, order, 0))
        self.assertAllClose(layer(entities), outputs)


SLOTS, HEADS, UNITS = 3, 2, 4


@equations.each_example
def in_loops(weights, inputs, valid):
    outputs = np.zeros((len(inputs), UNITS))
    for place in valid:
        slots = inputs[place].reshape(SLOTS, -1)
        features = slots @ weights["kernel"] + weights["bias"]
        features = np.maximum(features, 0)
        logits = features @ weights["score_kernel"]
        outputs[place] = np.concatenate(
            [
                equations.softmax(logits[:, head])
                @ equations.part(features, head, HEADS)
                for head in range(HEADS)
            ]
        )
    return outputs


class SlotPoolingTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            SlotPooling,
            init_kwargs={
                "num_slots": SLOTS,
                "units": UNITS,
                "num_heads": HEADS,
                "bias_initializer": "ones",
            },
            input_shape=(2, 5, SLOTS * 3),
            second_input_shape=(2, 7, SLOTS * 3),
            reference=in_loops,
            output_mask=lambda mask: mask,
            attention_scores_shape=(2, 5, HEADS, SLOTS),
            expected_output_shape=(2, 5, UNITS),
            expected_num_trainable_weights=3,
        )


def test_slots_are_exchangeable():
    layer, slots = SlotPooling(SLOTS, UNITS, HEADS), random_array(2, SLOTS, 5)
    order = [2, 0, 1]
    (outputs, scores), (permuted, permuted_scores) = (
        map(array, layer(x.reshape(2, -1), return_attention_scores=True))
        for x in (slots, slots[:, order])
    )
    assert_close(permuted, outputs)
    assert_close(permuted_scores, scores[..., order])
    np.testing.assert_allclose(scores.sum(-1), 1, atol=1e-6)
    assert np.abs(outputs).max() > 0.1


@pytest.mark.any_backend
def test_the_gradient_of_a_maximum_goes_to_the_first_that_has_it():
    entities = random_array(2, 4, 5)
    entities[:, 3] = entities[:, 1]
    outputs, _, of_inputs = outputs_and_gradients(EntityMaxPooling(), entities)
    assert_close(outputs, entities.max(axis=1))
    first = entities.argmax(axis=1)[:, None] == np.arange(4)[:, None]
    upstream = np.random.default_rng(2).normal(size=(2, 1, 5))
    assert_close(of_inputs, np.where(first, upstream, 0))


@pytest.mark.any_backend
def test_the_gradient_of_a_maximum_is_finite_where_xla_does_not_optimize():
    """It then rounds what is compared with the maximum in another way."""

    class NormalizedMaximum(keras.layers.Layer):
        def build(self, shape):
            self.normalization = keras.layers.LayerNormalization()
            self.normalization.build(shape)
            self.pooling = EntityMaxPooling()

        def call(self, entities):
            return self.pooling(self.normalization(entities)[:, :40])

    layer, entities = NormalizedMaximum(), random_array(4, 42, 64)
    layer.build(entities.shape)
    _, gradients, of_inputs = outputs_and_gradients(
        layer, entities, jit_compile=True
    )
    for gradient in (*gradients, of_inputs):
        assert np.isfinite(array(gradient)).all()
