import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract

from keras_relational.layers import SharedWorkspace
from keras_relational.layers import VirtualEntities

HEADS, WRITERS = 2, 2


def random_array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def softmax(logits):
    exponentials = np.exp(logits - max(logits))
    return exponentials / exponentials.sum()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normalized(x, weights, name):
    x = x - x.mean()
    x = x / np.sqrt(np.mean(x**2) + 1e-3)
    return x * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def part(vector, head):
    size = len(vector) // HEADS
    return vector[head * size : (head + 1) * size]


def read(query_of, keys_of, weights, kind, num_kept=None):
    """What one reader reads from others."""
    heads = []
    query = query_of @ weights[f"{kind}_query_kernel"]
    for head in range(HEADS):
        own = part(query, head)
        logits = [
            own @ part(x @ weights[f"{kind}_key_kernel"], head) for x in keys_of
        ]
        scores = softmax(np.array(logits) / len(own) ** 0.5)
        if num_kept is not None and num_kept < len(scores):
            scores[np.argsort(scores)[:-num_kept]] = 0
        values = [
            part(x @ weights[f"{kind}_value_kernel"], head) for x in keys_of
        ]
        heads.append(sum(s * v for s, v in zip(scores, values, strict=True)))
    return np.concatenate(heads)


def workspace_in_loops(weights, inputs, mask=None):
    slots, memory = inputs["slots"], inputs["memory"]
    new_slots, new_memory = np.zeros(slots.shape), np.zeros(memory.shape)
    for b in range(len(slots)):
        valid = range(slots.shape[1])
        if mask is not None:
            valid = np.flatnonzero(mask[b])
        own = [slots[b, i] for i in valid]
        mean = np.zeros(slots.shape[2])
        for s in own:
            mean += np.maximum(weights["slots_scale"][0] * s, 0) / len(own)
        for k, row in enumerate(memory[b]):
            new = row
            if own:
                new = row + read(row, own, weights, "write", WRITERS)
            new = normalized(new, weights, "written_normalization")
            hidden = new @ weights["hidden/kernel"] + weights["hidden/bias"]
            change = np.maximum(hidden, 0) @ weights["update/kernel"]
            new = new + change + weights["update/bias"]
            new = normalized(new, weights, "update_normalization")
            gates = mean @ weights["slots_gates_kernel"]
            gates = gates + np.tanh(row) @ weights["memory_gates_kernel"]
            i, f = np.split(gates + weights["gates_bias"], 2)
            new_memory[b, k] = sigmoid(i) * np.tanh(new) + sigmoid(f + 1) * row
        for i in valid:
            told = read(slots[b, i], new_memory[b], weights, "read")
            new_slots[b, i] = slots[b, i] + told
    return new_slots, new_memory


class SharedWorkspaceTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            SharedWorkspace,
            init_kwargs={
                "num_heads": HEADS,
                "num_writers": WRITERS,
                "kernel_initializer": "he_normal",
            },
            input_shape={"slots_shape": (2, 5, 6), "memory_shape": (2, 3, 4)},
            second_input_shape={
                "slots_shape": (2, 7, 6),
                "memory_shape": (2, 3, 4),
            },
            fixed_size=False,
            reference=workspace_in_loops,
            supports_masking=True,
            output_mask=lambda mask: (mask, None),
            attention_scores_shape=((2, HEADS, 3, 5), (2, HEADS, 5, 3)),
            makes_choices=True,
            expected_output_shape=((2, 5, 6), (2, 3, 4)),
            expected_output_dtype=("float32", "float32"),
            expected_num_trainable_weights=18,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )

    def test_slots_have_no_order(self):
        slots, memory = random_array(2, 5, 6), random_array(2, 3, 4, seed=1)
        order = np.array([3, 0, 4, 1, 2])
        layer = SharedWorkspace(2, 3)
        found = [ops.convert_to_numpy(x) for x in layer(slots, memory)]
        turned = layer(slots[:, order], memory)
        self.assertAllClose(turned[0], found[0][:, order], atol=1e-5)
        self.assertAllClose(turned[1], found[1], atol=1e-5)

    def test_so_many_slots_write(self):
        slots, memory = random_array(2, 5, 6), random_array(2, 3, 4, seed=1)
        layer = SharedWorkspace(2, 2)
        _, (writing, reading) = layer(
            slots, memory, return_attention_scores=True
        )
        writing = ops.convert_to_numpy(writing)
        assert ((writing > 0).sum(-1) == 2).all()
        everyone = SharedWorkspace(2)
        everyone.build(slots.shape, memory.shape)
        everyone.set_weights(layer.get_weights())
        _, (scores, _) = everyone(slots, memory, return_attention_scores=True)
        largest = np.sort(ops.convert_to_numpy(scores), -1)[..., -2:]
        self.assertAllClose(np.sort(writing, -1)[..., -2:], largest)
        self.assertAllClose(ops.sum(reading, -1), np.ones((2, 2, 5)))

    def test_what_a_slot_hears_comes_through_the_memory(self):
        """With the gates closed, slots cannot tell what the others are."""
        slots, memory = random_array(2, 5, 6), random_array(2, 3, 4, seed=1)
        layer = SharedWorkspace(2)
        layer.build(slots.shape, memory.shape)
        layer.slots_gates_kernel.assign(np.zeros((6, 8)))
        bias = np.repeat([-1e3, 1e3], 4)  # Nothing in, nothing forgotten.
        layer.gates_bias.assign(bias)
        before, kept = layer(slots, memory)
        self.assertAllClose(kept, memory, atol=1e-5)
        others = slots.copy()
        others[:, 1:] += 1
        after, _ = layer(others, memory)
        self.assertAllClose(after[:, 0], before[:, 0], atol=1e-5)
        layer.gates_bias.assign(np.zeros(8))
        before, after = layer(slots, memory)[0], layer(others, memory)[0]
        assert np.abs(np.subtract(after[:, 0], before[:, 0])).max() > 1e-3


def test_several_rounds_in_a_model():
    slots = keras.Input((5, 6))
    memory = VirtualEntities(3)(slots)
    layer = SharedWorkspace(2)
    x = slots
    for _ in range(3):
        x, memory = layer(x, memory)
    model = keras.Model(slots, (x, memory))
    assert [x.shape for x in model.outputs] == [(None, 5, 6), (None, 3, 6)]
    assert len(model.trainable_weights) == 19


def test_refuses_bad_sizes():
    for arguments, message in (
        ((0,), "`num_heads` must be a positive"),
        ((2, 0), "`num_writers` must be a positive"),
    ):
        with pytest.raises(ValueError, match=message):
            SharedWorkspace(*arguments)
    with pytest.raises(ValueError, match="which are 6 and 5"):
        SharedWorkspace(2).build((None, 4, 6), (None, 3, 5))
    with pytest.raises(ValueError, match="takes sets"):
        SharedWorkspace(2).build((None, 4, 6), (None, 3, 3, 4))
