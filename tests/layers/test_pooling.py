"""Layers that pool entities or slots by attention."""

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract

from keras_relational.layers import MultiHeadAttentionPooling
from keras_relational.layers import SlotPooling

NUM_HEADS, KEY_DIM, VALUE_DIM = 2, 7, 3
ARGUMENTS = {
    "num_heads": NUM_HEADS,
    "key_dim": KEY_DIM,
    "value_dim": VALUE_DIM,
}


def pooling_in_loops(weights, inputs, mask=None):
    """Attention of each position, then the weighted sum over positions."""
    if mask is None:
        mask = np.ones(inputs.shape[:2], bool)
    outputs = np.zeros((len(inputs), NUM_HEADS * VALUE_DIM))
    for example, (entities, valid) in enumerate(zip(inputs, mask, strict=True)):
        for head in range(NUM_HEADS):
            keys = slice(head * KEY_DIM, (head + 1) * KEY_DIM)
            values = slice(head * VALUE_DIM, (head + 1) * VALUE_DIM)
            for i in np.flatnonzero(valid):
                query = entities[i] @ weights["query_kernel"][:, keys]
                total, attended = 0, np.zeros(VALUE_DIM)
                for j in np.flatnonzero(valid):
                    key = entities[j] @ weights["key_kernel"][:, keys]
                    value = entities[j] @ weights["value_kernel"][:, values]
                    total += np.exp(query @ key)
                    attended += np.exp(query @ key) * value
                weight = weights["position_kernel"][i, head]
                outputs[example, values] += weight * attended / total
    return outputs


def random_entities(shape=(3, 4, 5)):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


class MultiHeadAttentionPoolingTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            MultiHeadAttentionPooling,
            init_kwargs={**ARGUMENTS, "kernel_initializer": "he_normal"},
            input_shape=(2, 4, 5),
            second_input_shape=(2, 6, 5),
            fixed_size=True,
            reference=pooling_in_loops,
            supports_masking=True,
            attention_scores_shape=(2, NUM_HEADS, 4, 4),
            expected_output_shape=(2, NUM_HEADS * VALUE_DIM),
            expected_output_dtype="float32",
            expected_num_trainable_weights=4,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )

    def test_entities_may_move_with_their_weights(self):
        layer = MultiHeadAttentionPooling(**ARGUMENTS)
        entities = random_entities()
        outputs = layer(entities)
        order = np.array([2, 0, 3, 1])
        moved = entities[:, order]
        self.assertNotAllClose(layer(moved), outputs)
        layer.position_kernel.assign(ops.take(layer.position_kernel, order, 0))
        self.assertAllClose(layer(moved), outputs)

    def test_scores_move_with_the_entities(self):
        layer = MultiHeadAttentionPooling(**ARGUMENTS)
        entities = random_entities()
        order = np.array([2, 0, 3, 1])
        _, scores = layer(entities, return_attention_scores=True)
        _, moved = layer(entities[:, order], return_attention_scores=True)
        scores = ops.convert_to_numpy(scores)
        self.assertAllClose(moved, scores[:, :, order][:, :, :, order])

    def test_scores_of_each_row_sum_to_one(self):
        layer = MultiHeadAttentionPooling(**ARGUMENTS)
        entities = random_entities()
        _, scores = layer(entities, return_attention_scores=True)
        self.assertAllClose(ops.sum(scores, -1), np.ones((3, NUM_HEADS, 4)))
        mask = np.array([[True] * 4, [True, False, True, False], [False] * 4])
        _, scores = layer(entities, mask=mask, return_attention_scores=True)
        scores = ops.convert_to_numpy(scores)
        self.assertAllClose(
            scores.sum(-1), np.repeat(mask[:, None], NUM_HEADS, axis=1)
        )
        assert not np.any(scores * ~mask[:, None, None])

    def test_large_inputs_in_half_precision(self):
        """Pixels up to 255 give logits that overflow in float16."""
        rng = np.random.default_rng(0)
        inputs = rng.uniform(0, 255, (2, 25, 34)).astype("float32")
        layer = MultiHeadAttentionPooling(2, 3, 4, dtype="mixed_float16")
        for tensor in layer(inputs, return_attention_scores=True):
            assert keras.backend.standardize_dtype(tensor.dtype) == "float16"
            assert np.isfinite(ops.convert_to_numpy(tensor)).all()

    def test_each_head_pools_with_its_own_weights(self):
        layer = MultiHeadAttentionPooling(**ARGUMENTS)
        entities = random_entities()
        outputs = ops.convert_to_numpy(layer(entities))
        layer.position_kernel.assign(
            layer.position_kernel * np.array([1.0, -2.0], "float32")
        )
        changed = layer(entities)
        self.assertAllClose(changed[:, :VALUE_DIM], outputs[:, :VALUE_DIM])
        self.assertAllClose(changed[:, VALUE_DIM:], -2 * outputs[:, VALUE_DIM:])

    def test_image_is_a_set_read_row_by_row(self):
        image = random_entities((3, 2, 4, 5))
        layer = MultiHeadAttentionPooling(**ARGUMENTS)
        outputs = layer(image)
        of_set = MultiHeadAttentionPooling(**ARGUMENTS)
        of_set.build((3, 8, 5))
        of_set.set_weights(layer.get_weights())
        self.assertAllClose(outputs, of_set(image.reshape(3, 8, 5)))
        assert layer(keras.Input((2, 4, 5))).shape == (None, 6)

    def test_refuses_another_shape_of_the_same_size(self):
        layer = MultiHeadAttentionPooling(**ARGUMENTS)
        layer.build((3, 2, 4, 5))
        with pytest.raises(ValueError, match=r"\(3, 2, 4, 5\).*\(3, 4, 2, 5\)"):
            layer(random_entities((3, 4, 2, 5)))


@pytest.mark.parametrize("argument", ["num_heads", "key_dim", "value_dim"])
@pytest.mark.parametrize("value", [0, -1, 2.0, "2", None, True])
def test_refuses_sizes_that_are_no_positive_integers(argument, value):
    message = f"`{argument}` must be a positive integer.*{argument}={value}"
    with pytest.raises(ValueError, match=message):
        MultiHeadAttentionPooling(**{**ARGUMENTS, argument: value})


@pytest.mark.parametrize(
    "shape", [(3, 5), (3, None, 5), (3, 4, None), (3, 2, None, 5), (1,) * 5]
)
def test_refuses_inputs_that_are_no_set_of_fixed_size(shape):
    layer = MultiHeadAttentionPooling(**ARGUMENTS, name="pooling")
    with pytest.raises(ValueError, match=r"pooling takes a set .* fixed size"):
        layer(keras.Input(batch_shape=shape))


SLOTS, HEADS, UNITS = 3, 2, 4


def in_loops(weights, inputs, mask=None):
    outputs = np.zeros((*inputs.shape[:2], UNITS))
    for place in np.ndindex(*inputs.shape[:2]):
        if mask is not None and not mask[place]:
            continue
        features = [
            np.maximum(slot @ weights["kernel"] + weights["bias"], 0)
            for slot in np.split(inputs[place], SLOTS)
        ]
        for head in range(HEADS):
            part = slice(head * UNITS // HEADS, (head + 1) * UNITS // HEADS)
            shares = np.exp([f @ weights["score_kernel"] for f in features])
            shares = shares[:, head] / shares[:, head].sum()
            outputs[place][part] = sum(
                share * f[part]
                for share, f in zip(shares, features, strict=True)
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
            fixed_size=False,
            reference=in_loops,
            supports_masking=True,
            output_mask=lambda mask: mask,
            attention_scores_shape=(2, 5, HEADS, SLOTS),
            expected_output_shape=(2, 5, UNITS),
            expected_output_dtype="float32",
            expected_num_trainable_weights=3,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )


def test_slots_are_exchangeable():
    layer = SlotPooling(SLOTS, UNITS, HEADS)
    slots = np.random.default_rng(0).normal(size=(2, SLOTS, 5))
    slots = slots.astype("float32")
    (outputs, scores), (permuted, permuted_scores) = (
        map(
            ops.convert_to_numpy,
            layer(x.reshape(2, -1), return_attention_scores=True),
        )
        for x in (slots, slots[:, [2, 0, 1]])
    )
    np.testing.assert_allclose(permuted, outputs, atol=1e-6)
    np.testing.assert_allclose(
        permuted_scores, scores[..., [2, 0, 1]], atol=1e-6
    )
    np.testing.assert_allclose(scores.sum(-1), 1, atol=1e-6)
    assert np.abs(outputs).max() > 0.1


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="units=5, num_heads=2"):
        SlotPooling(3, 5, 2)
    with pytest.raises(ValueError, match=r"3 slots.*\(2, 5\)"):
        SlotPooling(3, 4)(np.zeros((2, 5), "float32"))
