"""Symbols, relational cross-attention, and the Abstractor."""

import equations
import keras
import numpy as np
import pytest
from layer_contract import CHECKS
from layer_contract import OTHER_ARGUMENTS
from layer_contract import LayerContract
from layers_for_tests import WITH_SYMBOLS
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import assert_equals
from layers_for_tests import random_array

from keras_relational.layers import Abstractor
from keras_relational.layers import DualAttentionBlock
from keras_relational.layers import PositionalSymbols
from keras_relational.layers import PositionRelativeSymbols
from keras_relational.layers import RelationalCrossAttention
from keras_relational.layers import SymbolicAttention

HEADS, KEY_DIM, HIDDEN = 2, 3, 7
ATTENTION = {"num_heads": HEADS, "key_dim": KEY_DIM}
ENTITIES, SYMBOLS, PAIRS = (2, 4, 12), (2, 4, 6), (1, 4, 4, 6)


FUNCTIONS = {
    "softmax": equations.softmax,
    "sigmoid": equations.sigmoid,
    "relu": lambda logits: np.maximum(logits, 0),
    "linear": lambda logits: logits,
}


def cross_attention(weights, entities, symbols, activation):
    """`symbols[j]`, or `symbols[i, j]`, is what entity i calls entity j."""
    keys = entities @ weights["key_kernel"]
    rows = []
    for i, query in enumerate(entities @ weights["query_kernel"]):
        called = symbols if symbols.ndim == 2 else symbols[i]
        values = called @ weights["value_kernel"]
        rows.append(equations.attend(query, keys, values, HEADS, activation))
    return np.array(rows) @ weights["output_kernel"]


def abstractor(weights, entities, symbols, activation, num_layers):
    states = symbols if symbols.ndim == 2 else 0
    for i in range(num_layers):
        change = cross_attention(
            equations.below(weights, f"attention_{i}"),
            entities,
            symbols,
            activation,
        )
        name = f"attention_normalization_{i}"
        states = equations.normalized(states + change, weights, name)
        change = equations.feedforward(
            states, weights, f"hidden_{i}", f"update_{i}"
        )
        name = f"update_normalization_{i}"
        states = equations.normalized(states + change, weights, name)
        symbols = states
    return states


def in_loops(function, *arguments):
    """The reference of a layer, from that of one set without padding."""

    def of_one(weights, inputs, valid):
        entities, symbols = inputs["entities"], inputs["symbols"]
        outputs = np.zeros((len(entities), symbols.shape[-1]))
        if valid.size:
            symbols = symbols[valid]
            if symbols.ndim == 3:
                symbols = symbols[:, valid]
            found = function(weights, entities[valid], symbols, *arguments)
            outputs[valid] = found
        return outputs

    return equations.each_example(of_one)


@equations.each_example
def positional_reference(weights, inputs, valid):
    outputs = np.zeros(inputs.shape)
    outputs[valid] = weights["symbols"][valid]
    return outputs


def relative_reference(weights, inputs, mask=None):
    _, n, m = inputs.shape
    outputs = np.zeros((1, n, n, m))
    for i, j in np.ndindex(n, n):
        outputs[0, i, j] = weights["symbols"][2 + min(max(j - i, -2), 2)]
    return outputs


@equations.each_example
def retrieval_in_loops(weights, inputs, valid):
    outputs = np.zeros(inputs.shape)
    for i in valid:
        query = inputs[i] @ weights["query_kernel"] + weights["query_bias"]
        outputs[i] = equations.attend(
            query, weights["templates"], weights["symbols"], 2
        )
    return outputs


class SymbolsTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract_of_positional(self):
        self.run_layer_contract(
            PositionalSymbols,
            init_kwargs={"max_length": 6, "symbols_initializer": "ones"},
            reference=positional_reference,
            output_mask=lambda mask: mask,
            expected_output_shape=(2, 4, 5),
            expected_num_trainable_weights=1,
        )

    @pytest.mark.any_backend
    def test_contract_of_symbolic_attention(self):
        self.run_layer_contract(
            SymbolicAttention,
            init_kwargs={
                "num_symbols": 3,
                "num_heads": 2,
                "kernel_initializer": "he_normal",
                "symbols_initializer": "glorot_normal",
            },
            input_shape=(2, 4, 6),
            second_input_shape=(2, 7, 6),
            reference=retrieval_in_loops,
            output_mask=lambda mask: mask,
            attention_scores_shape=(2, 2, 4, 3),
            expected_output_shape=(2, 4, 6),
            expected_num_trainable_weights=4,
        )

    def test_relative_symbols(self):
        layer = PositionRelativeSymbols(2)
        entities = random_array(3, 5, 4)
        assert_equals(layer, relative_reference, entities, atol=0)
        assert layer(keras.Input((5, 4))).shape == (1, 5, 5, 4)
        assert layer.compute_mask(entities, np.ones((3, 5), bool)) is None
        again = PositionRelativeSymbols.from_config(layer.get_config())
        assert again.max_distance == 2

    def test_symbols_of_default_have_deviation_one(self):
        for layer in (PositionalSymbols(300), SymbolicAttention(300)):
            layer.build((None, 8, 64))
            symbols = array(layer.symbols.value)
            assert symbols.std() == pytest.approx(1, abs=0.05)

    def test_symbolic_attention_finds_the_same_symbol_everywhere(self):
        entities = random_array(3, 5, 4)
        order = np.array([2, 0, 4, 1, 3])
        layer = SymbolicAttention(6)
        symbols = array(layer(entities))
        self.assertAllClose(layer(entities[:, order]), symbols[:, order])


class RelationalCrossAttentionTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_contract("softmax")

    @pytest.mark.any_backend
    def test_contract_with_another_activation(self):
        self.run_contract("sigmoid", OTHER_ARGUMENTS)

    def run_contract(self, activation, checks=CHECKS):
        self.run_layer_contract(
            RelationalCrossAttention,
            checks=checks,
            init_kwargs={
                **ATTENTION,
                "activation": activation,
                "kernel_initializer": "he_normal",
            },
            **WITH_SYMBOLS,
            reference=in_loops(cross_attention, FUNCTIONS[activation]),
            expected_output_shape=(2, 4, 6),
            attention_scores_shape=(2, HEADS, 4, 4),
            expected_num_trainable_weights=4,
        )

    def test_with_softmax_it_is_keras_attention_to_symbols(self):
        entities, symbols = random_array(2, 5, 8), random_array(2, 5, 6, seed=1)
        layer = RelationalCrossAttention(HEADS, KEY_DIM)
        outputs, scores = layer(entities, symbols, return_attention_scores=True)
        plain = keras.layers.MultiHeadAttention(
            HEADS, KEY_DIM, use_bias=False, output_shape=6
        )
        plain(entities, symbols, entities)
        query, key, value, output = (array(weight) for weight in layer.weights)
        own = [x.reshape(-1, HEADS, KEY_DIM) for x in (query, key, value)]
        plain.set_weights([*own, output.reshape(HEADS, KEY_DIM, 6)])
        expected = plain(
            entities, symbols, entities, return_attention_scores=True
        )
        assert_close((outputs, scores), expected, atol=1e-5)


@pytest.mark.parametrize("activation", FUNCTIONS)
@pytest.mark.parametrize("shape", [SYMBOLS, PAIRS])
@pytest.mark.parametrize("make", ["attention", "abstractor"])
def test_activations_and_symbols(activation, shape, make):
    inputs = {
        "entities": random_array(*ENTITIES),
        "symbols": random_array(*shape, seed=1),
    }
    layer = RelationalCrossAttention(HEADS, KEY_DIM, activation)
    reference = in_loops(cross_attention, FUNCTIONS[activation])
    if make == "abstractor":
        layer = Abstractor(HEADS, KEY_DIM, HIDDEN, 2, activation)
        reference = in_loops(abstractor, FUNCTIONS[activation], 2)
    mask = np.array([[True, False, True, True], [True, True, True, False]])
    for given in (None, mask):
        assert_equals(layer, reference, inputs, given, atol=2e-5)


class AbstractorTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            Abstractor,
            init_kwargs={
                **ATTENTION,
                "hidden_units": HIDDEN,
                "activation": "relu",
                "kernel_initializer": "he_normal",
            },
            **WITH_SYMBOLS,
            reference=in_loops(abstractor, FUNCTIONS["relu"], 1),
            expected_output_shape=(2, 4, 6),
            attention_scores_shape=(2, 1, HEADS, 4, 4),
            expected_num_trainable_weights=12,
        )


def layers_with_symbols():
    return (
        RelationalCrossAttention(HEADS, KEY_DIM),
        Abstractor(HEADS, KEY_DIM, HIDDEN, num_layers=2),
        DualAttentionBlock(3, 1, HIDDEN),
    )


@pytest.mark.parametrize("layer", layers_with_symbols())
def test_order_of_entities_with_their_symbols_changes_nothing(layer):
    entities, symbols = random_array(2, 5, 8), random_array(2, 5, 6, seed=1)
    order = np.array([2, 0, 4, 1, 3])
    outputs = array(layer(entities, symbols))
    moved = layer(entities[:, order], symbols[:, order])
    assert_close(moved, outputs[:, order], atol=1e-5)


@pytest.mark.parametrize("cls", [Abstractor, DualAttentionBlock])
def test_dropout_changes_training_alone(cls):
    entities, symbols = random_array(2, 5, 8), random_array(2, 5, 6, seed=1)
    layer = cls(3, 1, HIDDEN, dropout=0.5)
    outputs = array(layer(entities, symbols))
    assert_close(layer(entities, symbols), outputs)
    dropped = array(layer(entities, symbols, training=True))
    assert np.abs(dropped - outputs).max() > 1e-2
    assert cls.from_config(layer.get_config()).dropout == 0.5


@pytest.mark.parametrize("layer", layers_with_symbols()[:2])
def test_outputs_know_entities_by_their_relations_alone(layer):
    """Other entities with the same products of queries and keys."""
    entities, symbols = random_array(2, 5, 8), random_array(2, 5, 6, seed=1)
    turn, _ = np.linalg.qr(random_array(8, 8, seed=2))
    outputs = array(layer(entities, symbols))
    for attention in getattr(layer, "attentions", [layer]):
        for kernel in (attention.query_kernel, attention.key_kernel):
            kernel.assign(turn.T @ array(kernel.value))
    turned = layer(entities @ turn, symbols)
    assert_close(turned, outputs, atol=1e-5)
    renamed = array(layer(entities @ turn, symbols + 1))
    assert not np.allclose(renamed, outputs, atol=1e-2)
