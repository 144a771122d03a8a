import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract
from layer_contract import outputs_and_gradients

from keras_relational.layers import NTMCell

UNITS, ROWS, SIZE, FEATURES = 3, 4, 2, 5


def in_loops(weights, inputs, mask=None):
    """The equations in loops over examples, steps and rows of the memory."""
    if mask is None:
        mask = np.ones(inputs.shape[:2], bool)
    return np.stack(
        [
            one_example(weights, steps[valid])
            for steps, valid in zip(inputs, mask, strict=True)
        ]
    )


def one_example(weights, steps):
    weights = {name.split("/")[-1]: value for name, value in weights.items()}
    h, c, read = np.zeros(UNITS), np.zeros(UNITS), np.zeros(SIZE)
    memory = [row.copy() for row in weights["initial_memory"]]
    for x in steps:
        gates = np.append(x, read) @ weights["kernel"]
        gates = gates + h @ weights["recurrent_kernel"] + weights["bias"]
        i, f, g, o = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        heads = h @ weights["head_kernel"] + weights["head_bias"]
        read_key, write_key, erase, add = np.split(np.maximum(heads, 0), 4)
        shares = softmax([row @ read_key for row in memory])
        read = sum(w * row for w, row in zip(shares, memory, strict=True))
        shares = softmax([row @ write_key for row in memory])
        memory = [
            row * (1 - w * erase) + w * add
            for w, row in zip(shares, memory, strict=True)
        ]
    return h


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    x = np.exp(np.array(x) - np.max(x))
    return x / x.sum()


@keras.saving.register_keras_serializable("test_neural_turing_machine")
class NTM(keras.layers.RNN):
    """An RNN of the cell that has the arguments of the cell."""

    def __init__(self, units, memory_size, memory_dim, **kwargs):
        self.units = units
        self.memory_size = memory_size
        self.memory_dim = memory_dim
        cell = NTMCell(
            units, memory_size, memory_dim, dtype=kwargs.get("dtype")
        )
        super().__init__(cell, **kwargs)

    def get_config(self):
        config = keras.layers.Layer.get_config(self)
        sizes = {
            "units": self.units,
            "memory_size": self.memory_size,
            "memory_dim": self.memory_dim,
        }
        return {**config, **sizes}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def random_inputs(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def random_ntm(**kwargs):
    rnn = NTM(UNITS, ROWS, SIZE, **kwargs)
    rnn.build((None, None, FEATURES))
    rng = np.random.default_rng(1)
    for weight in rnn.weights:
        weight.assign(rng.normal(scale=0.7, size=weight.shape))
    return rnn


class NTMTest(LayerContract):
    def test_equals_the_equations(self):
        rnn, inputs = random_ntm(), random_inputs(3, 6, FEATURES)
        weights = {
            weight.path: ops.convert_to_numpy(weight.value).astype("float64")
            for weight in rnn.weights
        }
        self.assertAllClose(rnn(inputs), in_loops(weights, inputs), atol=1e-5)
        mask = np.ones((3, 6), bool)
        mask[0, 2:] = mask[1, 0] = False
        self.assertAllClose(
            rnn(inputs, mask=mask), in_loops(weights, inputs, mask), atol=1e-5
        )

    @pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
    def test_keras_layer_test(self):
        self.run_layer_test(
            keras.layers.RNN,
            init_kwargs={"cell": NTMCell(UNITS, ROWS, SIZE)},
            input_shape=(2, 4, FEATURES),
            expected_output_shape=(2, UNITS),
            expected_num_trainable_weights=6,
            expected_num_non_trainable_weights=0,
            supports_masking=True,
        )

    def test_every_weight_has_a_gradient_compiled(self):
        outputs, gradients, _ = outputs_and_gradients(
            random_ntm(), random_inputs(2, 30, FEATURES), jit_compile=True
        )
        for values in keras.tree.flatten((outputs, gradients)):
            values = ops.convert_to_numpy(values)
            assert np.isfinite(values).all()
            assert values.any()

    def test_mixed_precision(self):
        exact, inputs = random_ntm(), random_inputs(2, 4, FEATURES)
        for policy in ("mixed_float16", "mixed_bfloat16"):
            rnn = NTM(UNITS, ROWS, SIZE, dtype=policy)
            rnn.build((None, None, FEATURES))
            rnn.set_weights(exact.get_weights())
            outputs = ops.cast(rnn(inputs), "float32")
            self.assertAllClose(outputs, exact(inputs), atol=5e-2)
            outputs = ops.cast(rnn(0 * inputs), "float32")
            assert np.isfinite(ops.convert_to_numpy(outputs)).all()

    def test_large_memories_in_half_precision(self):
        """Sums of 256 large products overflow in float16."""
        cell = NTMCell(8, 3, 256, dtype="float16")
        cell.build((None, FEATURES))
        for weight in cell.weights:
            weight.assign(3 * ops.ones_like(weight))
        inputs = random_inputs(2, FEATURES).astype("float16")
        states = cell.get_initial_state(2)
        states[3] = 20 * ops.ones_like(states[3])
        h, new = cell(inputs, states)
        for values in (h, *new):
            assert np.isfinite(ops.convert_to_numpy(values)).all()

    def test_saved_and_loaded(self):
        inputs = random_inputs(2, 4, FEATURES)
        model = keras.Sequential(
            [
                keras.Input((None, FEATURES)),
                keras.layers.RNN(NTMCell(UNITS, ROWS, SIZE)),
            ]
        )
        path = f"{self.get_temp_dir()}/model.keras"
        model.save(path)
        loaded = keras.saving.load_model(path)
        self.assertAllClose(loaded(inputs), model(inputs), atol=1e-6)


def test_sizes_of_section_4_3():
    rnn = keras.layers.RNN(NTMCell(512))
    rnn.build((None, None, 128))
    lstm = 4 * 512 * (128 + 256 + 512 + 1)
    assert rnn.count_params() == lstm + 4 * 256 * (512 + 1) + 10 * 256


def test_initial_weights_are_those_of_appendix_a1():
    keras.utils.set_random_seed(0)
    cell = NTMCell(512)
    cell.build((None, 128))
    weights = {
        weight.name: ops.convert_to_numpy(weight.value)
        for weight in cell.weights
    }
    deviations = {
        "kernel": np.sqrt(2 / (128 + 256 + 512)) * np.array([1, 1, 5 / 3, 1]),
        "recurrent_kernel": np.sqrt(1 / 512) * np.array([1, 1, 5 / 3, 1]),
        "head_kernel": np.sqrt(2 / 512) * np.ones(4),
        "initial_memory": np.sqrt(2 / (10 + 256)) * np.ones(1),
    }
    for name, expected in deviations.items():
        parts = np.split(weights.pop(name), len(expected), axis=1)
        for part, deviation in zip(parts, expected, strict=True):
            assert part.std() == pytest.approx(deviation, rel=0.05), name
            assert abs(part.mean()) < 0.1 * deviation
    assert set(weights) == {"bias", "head_bias"}
    for bias in weights.values():
        assert 0.98 / np.sqrt(512) < np.abs(bias).max() <= 1 / np.sqrt(512)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="Keras' common type of float64 and float32 is float32 there.",
)
def test_nothing_is_lost_in_float64():
    rnn = random_ntm(dtype="float64")
    inputs = random_inputs(2, 6, FEATURES).astype("float64")
    weights = {
        weight.path: ops.convert_to_numpy(weight.value)
        for weight in rnn.weights
    }
    expected = in_loops(weights, inputs)
    np.testing.assert_allclose(rnn(inputs), expected, atol=1e-12)


def test_the_order_of_the_rows_does_not_matter():
    rnn, inputs = random_ntm(), random_inputs(2, 5, FEATURES)
    before = ops.convert_to_numpy(rnn(inputs))
    memory = ops.convert_to_numpy(rnn.cell.initial_memory)
    rnn.cell.initial_memory.assign(memory[[2, 0, 3, 1]])
    np.testing.assert_allclose(rnn(inputs), before, atol=1e-6)
    rnn.cell.initial_memory.assign(2 * memory)
    assert np.abs(ops.convert_to_numpy(rnn(inputs)) - before).max() > 1e-3


@pytest.mark.parametrize("name", ["units", "memory_size", "memory_dim"])
def test_sizes_are_checked(name):
    with pytest.raises(ValueError, match=f"{name}=0"):
        NTMCell(**{"units": 2, name: 0})


def test_features_must_be_fixed():
    with pytest.raises(ValueError, match=r"fixed features.*None"):
        NTMCell(2).build((None, None))


def test_scores_are_what_is_read_and_written_with():
    cell = NTMCell(UNITS, ROWS, SIZE)
    cell.build((None, FEATURES))
    rng = np.random.default_rng(0)
    for weight in cell.weights:
        weight.assign(rng.normal(size=weight.shape))
    states = [
        rng.normal(size=(2, size)).astype("float32") for size in cell.state_size
    ]
    inputs = random_inputs(2, FEATURES)
    h, new_states, scores = map(
        lambda x: keras.tree.map_structure(ops.convert_to_numpy, x),
        cell(inputs, states, return_attention_scores=True),
    )
    np.testing.assert_array_equal(h, cell(inputs, states)[0])
    assert scores.shape == (2, 2, ROWS)
    np.testing.assert_allclose(scores.sum(-1), 1, atol=1e-6)
    memory, new_memory = (
        x[3].reshape(2, ROWS, SIZE) for x in (states, new_states)
    )
    read, written = scores[:, 0], scores[:, 1]
    np.testing.assert_allclose(
        np.einsum("bi,bid->bd", read, memory), new_states[2], atol=1e-5
    )
    heads = h @ ops.convert_to_numpy(cell.head_kernel)
    heads = np.maximum(heads + ops.convert_to_numpy(cell.head_bias), 0)
    erase, add = np.split(heads, 4, axis=-1)[2:]
    expected = memory * (1 - written[..., None] * erase[:, None])
    expected += written[..., None] * add[:, None]
    np.testing.assert_allclose(new_memory, expected, atol=1e-5)
