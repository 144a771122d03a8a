import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import CHECKS
from layer_contract import LayerCase
from layer_contract import LayerContract

from keras_relational.layers import RelationalMemoryCell

UNITS, SLOTS, HEADS, KEY, FEATURES = 4, 3, 2, 3, 5


def in_loops(weights, inputs, mask=None):
    """One example, one step, one head and one row after the other."""
    weights = {
        "/".join(name.split("/")[-2:]): value for name, value in weights.items()
    }
    outputs = []
    for steps in inputs:
        memory = np.eye(SLOTS, UNITS)
        for x in steps:
            memory = one_step(weights, memory, x)
        outputs.append(memory.ravel())
    return np.stack(outputs)


def one_step(weights, memory, x):
    def dense(name, x):
        outputs = x @ weights[f"{name}/kernel"]
        return outputs + weights.get(f"{name}/bias", 0)

    def normalized(name, x):
        x = (x - x.mean()) / (x.var() + 1e-3) ** 0.5
        return x * weights[f"{name}/gamma"] + weights[f"{name}/beta"]

    x = dense("embedding", x)
    everything = [*memory, x]
    rows = []
    for row in memory:
        attended = []
        for head in range(HEADS):
            keys = slice(head * KEY, (head + 1) * KEY)
            values = slice(head * UNITS // HEADS, (head + 1) * UNITS // HEADS)
            query = dense("query", row)[keys]
            shares = np.exp(
                [query @ dense("key", y)[keys] / KEY**0.5 for y in everything]
            )
            shares /= shares.sum()
            attended.append(
                sum(
                    share * dense("value", y)[values]
                    for share, y in zip(shares, everything, strict=True)
                )
            )
        new = normalized("attention_norm", row + np.concatenate(attended))
        hidden = np.maximum(dense("hidden", new), 0)
        new = normalized("norm", new + dense("transformed", hidden))
        gates = dense("input_gates", x) + dense("memory_gates", np.tanh(row))
        i, f = np.split(gates, 2)
        rows.append(sigmoid(i) * np.tanh(new) + sigmoid(f + 1) * row)
    return np.stack(rows)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def random_inputs(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


@keras.saving.register_keras_serializable("test_relational_memory")
class RelationalMemory(keras.layers.RNN):
    """An RNN of the cell, whose constructor takes the cell's arguments."""

    def __init__(self, units, num_slots, num_heads, key_dim=None, **kwargs):
        self.sizes = (units, num_slots, num_heads, key_dim)
        self.units, self.num_slots, self.num_heads, self.key_dim = self.sizes
        cell = RelationalMemoryCell(*self.sizes, dtype=kwargs.get("dtype"))
        super().__init__(cell, **kwargs)

    def get_config(self):
        names = ("units", "num_slots", "num_heads", "key_dim")
        sizes = dict(zip(names, self.sizes, strict=True))
        return {**keras.layers.Layer.get_config(self), **sizes}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def random_memory():
    rnn = RelationalMemory(UNITS, SLOTS, HEADS, KEY)
    rnn.build((None, None, FEATURES))
    rng = np.random.default_rng(1)
    for weight in rnn.weights:
        weight.assign(rng.normal(scale=0.5, size=weight.shape))
    return rnn


class RelationalMemoryTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        """All checks except masks, which `keras.layers.RNN` handles."""
        case = LayerCase(
            layer_cls=RelationalMemory,
            init_kwargs={
                "units": UNITS,
                "num_slots": SLOTS,
                "num_heads": HEADS,
                "key_dim": KEY,
            },
            input_shape=(2, 4, FEATURES),
            second_input_shape=(2, 7, FEATURES),
            fixed_size=False,
            reference=in_loops,
            supports_masking=True,
            expected_output_shape=(2, SLOTS * UNITS),
            expected_output_dtype="float32",
            expected_num_trainable_weights=16,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )
        for check in CHECKS:
            if check != "masks":
                self.run_check(check, case)


def test_rows_are_exchangeable():
    rnn, inputs = random_memory(), random_inputs(2, 5, FEATURES)
    memory = random_inputs(2, SLOTS, UNITS)
    order = [2, 0, 1]
    outputs, permuted = (
        ops.convert_to_numpy(
            rnn(inputs, initial_state=[x.reshape(2, -1)])
        ).reshape(2, SLOTS, UNITS)
        for x in (memory, memory[:, order])
    )
    np.testing.assert_allclose(permuted, outputs[:, order], atol=1e-6)


def test_attention_scores():
    rnn, x = random_memory(), random_inputs(2, FEATURES)
    memory = rnn.cell.get_initial_state(2)
    outputs, (state,), scores = rnn.cell(
        x, memory, return_attention_scores=True
    )
    np.testing.assert_array_equal(outputs, state)
    assert scores.shape == (2, HEADS, SLOTS, SLOTS + 1)
    np.testing.assert_allclose(
        ops.convert_to_numpy(scores).sum(-1), 1, atol=1e-6
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 2, 2), "units=0"),
        ((4, 0, 2), "num_slots=0"),
        ((5, 2, 2), "multiple of `num_heads`.*units=5, num_heads=2"),
    ],
)
def test_arguments_are_checked(arguments, words):
    with pytest.raises(ValueError, match=words):
        RelationalMemoryCell(*arguments)


def test_keys_are_as_large_as_values_by_default():
    assert RelationalMemoryCell(8, 3, 2).key_dim == 4
