import equations
import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import random_array

from keras_relational.layers import SharedWorkspace
from keras_relational.layers import VirtualEntities

HEADS, WRITERS = 2, 2


def largest(logits):
    """Shares of which only the largest are kept."""
    shares = equations.softmax(logits)
    shares[np.argsort(shares)[:-WRITERS]] = 0
    return shares


@equations.each_example
def workspace_in_loops(weights, inputs, valid):
    slots, memory = inputs["slots"], inputs["memory"]
    own, new_memory = slots[valid], np.zeros(memory.shape)
    mean = np.zeros(slots.shape[1])
    for s in own:
        mean += np.maximum(weights["slots_scale"][0] * s, 0) / len(own)
    for k, row in enumerate(memory):
        new = row
        if valid.size:
            new = row + read(row, own, weights, "write", largest)
        new = equations.normalized(new, weights, "written_normalization")
        new = new + equations.feedforward(new, weights)
        new = equations.normalized(new, weights, "update_normalization")
        gates = mean @ weights["slots_gates_kernel"]
        gates = gates + np.tanh(row) @ weights["memory_gates_kernel"]
        gates = gates + weights["gates_bias"]
        new_memory[k] = equations.gated(gates, new, row)
    new_slots = np.zeros(slots.shape)
    for i in valid:
        told = read(slots[i], new_memory, weights, "read", equations.softmax)
        new_slots[i] = slots[i] + told
    return new_slots, new_memory


def read(reader, others, weights, kind, weigh):
    query = reader @ weights[f"{kind}_query_kernel"]
    keys = others @ weights[f"{kind}_key_kernel"]
    values = others @ weights[f"{kind}_value_kernel"]
    return equations.attend(query, keys, values, HEADS, weigh)


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
            reference=workspace_in_loops,
            output_mask=lambda mask: (mask, None),
            attention_scores_shape=((2, HEADS, 3, 5), (2, HEADS, 5, 3)),
            makes_choices=True,
            expected_output_shape=((2, 5, 6), (2, 3, 4)),
            expected_num_trainable_weights=18,
            expected_output_dtype=("float32", "float32"),
        )

    def test_slots_have_no_order(self):
        slots, memory = random_array(2, 5, 6), random_array(2, 3, 4, seed=1)
        order = np.array([3, 0, 4, 1, 2])
        layer = SharedWorkspace(2, 3)
        new_slots, new_memory = map(array, layer(slots, memory))
        turned = layer(slots[:, order], memory)
        assert_close(turned, (new_slots[:, order], new_memory), atol=1e-5)

    def test_so_many_slots_write(self):
        slots, memory = random_array(2, 5, 6), random_array(2, 3, 4, seed=1)
        layer = SharedWorkspace(2, 2)
        _, (writing, reading) = layer(
            slots, memory, return_attention_scores=True
        )
        writing = array(writing)
        assert ((writing > 0).sum(-1) == 2).all()
        everyone = SharedWorkspace(2)
        everyone.build(slots.shape, memory.shape)
        everyone.set_weights(layer.get_weights())
        _, (scores, _) = everyone(slots, memory, return_attention_scores=True)
        largest = np.sort(array(scores), -1)[..., -2:]
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
