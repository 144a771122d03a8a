import keras
import numpy as np
import pytest
from keras import ops
from keras.src.testing import TestCase

from keras_relational.layers import LayerNormLSTMCell

UNITS, FEATURES, EPSILON = 3, 5, 1e-3


def in_loops(weights, inputs):
    """One example, one step, one unit after the other."""
    return np.array([of_one(weights, example) for example in inputs])


def of_one(weights, steps):
    h, c = np.zeros(UNITS), np.zeros(UNITS)
    for x in steps:
        gates = (
            normalized(x @ weights["kernel"]) * weights["input_norm/gamma"]
            + normalized(h @ weights["recurrent_kernel"])
            * weights["recurrent_norm/gamma"]
            + weights["bias"]
        )
        for unit in range(UNITS):
            i, f, g, o = (gates[n * UNITS + unit] for n in range(4))
            c[unit] = sigmoid(f) * c[unit] + sigmoid(i) * np.tanh(g)
            h[unit] = sigmoid(o)
        memory = normalized(c) * weights["memory_norm/gamma"]
        h = h * np.tanh(memory + weights["memory_norm/beta"])
    return h


def normalized(values):
    return (values - values.mean()) / np.sqrt(values.var() + EPSILON)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def random_inputs(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def random_rnn(dtype="float32"):
    rnn = keras.layers.RNN(
        LayerNormLSTMCell(UNITS, epsilon=EPSILON, dtype=dtype), dtype=dtype
    )
    rnn.build((None, 4, FEATURES))
    rng = np.random.default_rng(1)
    for weight in rnn.weights:
        weight.assign(rng.normal(size=weight.shape))
    return rnn


class LayerNormLSTMCellTest(TestCase):
    # Keras' own test feeds `fit` from a generator.
    @pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
    def test_keras_layer_test(self):
        self.run_layer_test(
            keras.layers.RNN,
            init_kwargs={
                "cell": LayerNormLSTMCell(
                    UNITS, kernel_initializer="he_normal", epsilon=EPSILON
                )
            },
            input_shape=(2, 4, FEATURES),
            expected_output_shape=(2, UNITS),
            expected_num_trainable_weights=7,
            expected_num_non_trainable_weights=0,
            supports_masking=True,
        )

    def test_equals_the_equations(self):
        rnn, inputs = random_rnn(), random_inputs(2, 4, FEATURES)
        weights = {
            "/".join(weight.path.split("/")[2:]): ops.convert_to_numpy(
                weight.value
            ).astype("float64")
            for weight in rnn.weights
        }
        self.assertAllClose(rnn(inputs), in_loops(weights, inputs), atol=1e-5)

    def test_does_not_see_the_scale_of_its_inputs(self):
        rnn, inputs = random_rnn(), random_inputs(2, 4, FEATURES)
        rnn.cell.input_norm.epsilon = 0
        self.assertAllClose(rnn(inputs), rnn(9 * inputs), atol=1e-5)

    def test_every_weight_has_a_gradient(self):
        inputs = random_inputs(8, 4, FEATURES)
        model = keras.Sequential([keras.Input((4, FEATURES)), random_rnn()])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        before = model.get_weights()
        model.train_on_batch(inputs, np.ones((8, UNITS), "float32"))
        for old, new in zip(before, model.get_weights(), strict=True):
            assert np.isfinite(new).all()
            assert np.abs(new - old).max() > 0

    def test_mixed_precision(self):
        exact, inputs = random_rnn(), random_inputs(2, 4, FEATURES)
        for policy in ("mixed_float16", "mixed_bfloat16"):
            rnn = random_rnn(policy)
            assert rnn(inputs).dtype != exact(inputs).dtype
            self.assertAllClose(
                ops.cast(rnn(inputs), "float32"), exact(inputs), atol=6e-2
            )
            outputs = ops.cast(rnn(0 * inputs), "float32")
            assert np.isfinite(ops.convert_to_numpy(outputs)).all()

    def test_saved_and_loaded(self):
        inputs = random_inputs(2, 4, FEATURES)
        model = keras.Sequential([keras.Input((4, FEATURES)), random_rnn()])
        path = f"{self.get_temp_dir()}/model.keras"
        model.save(path)
        loaded = keras.saving.load_model(path)
        self.assertAllClose(loaded(inputs), model(inputs), atol=1e-6)


def test_units_are_checked():
    with pytest.raises(ValueError, match="units=0"):
        LayerNormLSTMCell(0)
