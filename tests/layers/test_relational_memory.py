import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract
from layer_contract import outputs_and_gradients

from keras_relational.layers import RelationalMemoryCell

UNITS, SLOTS, HEADS, KEY, FEATURES = 4, 3, 2, 3, 5


def in_loops(weights, inputs):
    """One example, one step, one head and one row after the other."""
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


def random_memory(**kwargs):
    rnn = keras.layers.RNN(
        RelationalMemoryCell(UNITS, SLOTS, HEADS, KEY, **kwargs), **kwargs
    )
    rnn.build((None, None, FEATURES))
    rng = np.random.default_rng(1)
    for weight in rnn.weights:
        weight.assign(rng.normal(scale=0.5, size=weight.shape))
    return rnn


class RelationalMemoryTest(LayerContract):
    def test_equals_the_equations(self):
        rnn, inputs = random_memory(), random_inputs(3, 6, FEATURES)
        weights = {
            "/".join(weight.path.split("/")[-2:]): ops.convert_to_numpy(
                weight.value
            ).astype("float64")
            for weight in rnn.weights
        }
        self.assertAllClose(rnn(inputs), in_loops(weights, inputs), atol=1e-5)

    @pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
    def test_keras_layer_test(self):
        self.run_layer_test(
            keras.layers.RNN,
            init_kwargs={"cell": RelationalMemoryCell(UNITS, SLOTS, HEADS)},
            input_shape=(2, 4, FEATURES),
            expected_output_shape=(2, SLOTS * UNITS),
            expected_num_trainable_weights=16,
            expected_num_non_trainable_weights=0,
            supports_masking=True,
        )

    def test_every_weight_has_a_gradient_compiled(self):
        rnn = random_memory()
        outputs, gradients, _ = outputs_and_gradients(
            rnn, random_inputs(2, 30, FEATURES), jit_compile=True
        )
        for values in keras.tree.flatten((outputs, gradients)):
            values = ops.convert_to_numpy(values)
            assert np.isfinite(values).all()
            assert values.any()

    def test_mixed_precision(self):
        exact, inputs = random_memory(), random_inputs(2, 4, FEATURES)
        for policy in ("mixed_float16", "mixed_bfloat16"):
            rnn = random_memory(dtype=policy)
            outputs = ops.cast(rnn(inputs), "float32")
            self.assertAllClose(outputs, exact(inputs), atol=5e-2)
            assert np.isfinite(ops.cast(rnn(0 * inputs), "float32")).all()

    def test_saved_and_loaded(self):
        inputs = random_inputs(2, 4, FEATURES)
        model = keras.Sequential(
            [
                keras.Input((None, FEATURES)),
                keras.layers.RNN(RelationalMemoryCell(UNITS, SLOTS, HEADS)),
            ]
        )
        path = f"{self.get_temp_dir()}/model.keras"
        model.save(path)
        loaded = keras.saving.load_model(path)
        self.assertAllClose(loaded(inputs), model(inputs), atol=1e-6)


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
