import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract

from keras_relational.layers import SlotPooling

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
