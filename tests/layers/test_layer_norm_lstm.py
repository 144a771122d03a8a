import equations
import keras
import numpy as np
import pytest
from layer_contract import WITHOUT_MASKS
from layer_contract import LayerContract
from layers_for_tests import RNNOfCell
from layers_for_tests import assert_close
from layers_for_tests import random_array
from layers_for_tests import with_random_weights

from keras_relational.layers import LayerNormLSTMCell

# At zero the slope of a norm is EPSILON ** -0.5, and gradients through time
# have its powers as factors. From 1e-3 they overflow in float16.
UNITS, FEATURES, EPSILON = 3, 5, 0.5


@equations.each_example
def in_loops(weights, inputs, valid):
    """One step after the other."""
    weights = equations.of_cell(weights)
    h, c = np.zeros(UNITS), np.zeros(UNITS)
    for x in inputs:
        gates = (
            scaled(x @ weights["kernel"], weights, "input_norm")
            + scaled(h @ weights["recurrent_kernel"], weights, "recurrent_norm")
            + weights["bias"]
        )
        i, f, g, o = np.split(gates, 4)
        c = equations.sigmoid(f) * c + equations.sigmoid(i) * np.tanh(g)
        memory = scaled(c, weights, "memory_norm")
        h = equations.sigmoid(o) * np.tanh(memory + weights["memory_norm/beta"])
    return h


def scaled(values, weights, name):
    """Layer normalization without a shift."""
    values = (values - values.mean()) / np.sqrt(values.var() + EPSILON)
    return values * weights[f"{name}/gamma"]


@keras.saving.register_keras_serializable("test_layer_norm_lstm")
class LayerNormLSTM(RNNOfCell):
    cell_class = LayerNormLSTMCell


class LayerNormLSTMTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            LayerNormLSTM,
            checks=WITHOUT_MASKS,
            init_kwargs={
                "units": UNITS,
                "kernel_initializer": "he_normal",
                # The default is drawn by QR, which needs more than bfloat16.
                "recurrent_initializer": "he_normal",
                "epsilon": EPSILON,
            },
            reference=in_loops,
            expected_output_shape=(2, UNITS),
            expected_num_trainable_weights=7,
        )


def test_it_does_not_see_the_scale_of_its_inputs():
    layer = LayerNormLSTM(units=UNITS, epsilon=EPSILON)
    with_random_weights(layer, (None, 4, FEATURES), scale=1)
    inputs = random_array(2, 4, FEATURES)
    layer.cell.input_norm.epsilon = 0
    assert_close(layer(inputs), layer(9 * inputs), atol=1e-5)
