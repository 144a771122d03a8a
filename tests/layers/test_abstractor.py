"""Symbols, relational cross-attention, and the Abstractor."""

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract

from keras_relational.layers import Abstractor
from keras_relational.layers import PositionalSymbols
from keras_relational.layers import PositionRelativeSymbols
from keras_relational.layers import RelationalCrossAttention
from keras_relational.layers import SymbolicAttention

HEADS, KEY_DIM, HIDDEN = 2, 3, 7
ATTENTION = {"num_heads": HEADS, "key_dim": KEY_DIM}
ENTITIES, SYMBOLS, PAIRS = (2, 4, 5), (2, 4, 6), (1, 4, 4, 6)
MORE_ENTITIES, MORE_SYMBOLS = (2, 6, 5), (2, 6, 6)
NO_OTHERS = {
    "expected_num_non_trainable_weights": 0,
    "expected_num_losses": 0,
}
NO_SEEDS = {
    "expected_num_non_trainable_variables": 0,
    "expected_num_seed_generators": 0,
}


def random_array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def softmax(logits):
    exponentials = [np.exp(x - max(logits)) for x in logits]
    return [x / sum(exponentials) for x in exponentials]


def sigmoid(logits):
    return [1 / (1 + np.exp(-x)) for x in logits]


FUNCTIONS = {
    "softmax": softmax,
    "sigmoid": sigmoid,
    "relu": lambda logits: np.maximum(logits, 0),
    "linear": lambda logits: logits,
}


def split(vector, size):
    return [vector[i : i + size] for i in range(0, len(vector), size)]


def cross_attention(weights, entities, symbols_of, valid, activation):
    """One example. `symbols_of(i)[j]` is what entity i calls entity j."""
    n = len(entities)
    heads = [np.zeros((n, KEY_DIM)) for _ in range(HEADS)]
    relations = np.zeros((HEADS, n, n))
    for head in range(HEADS):
        query, key, value = (
            weights[f"{name}_kernel"][:, head * KEY_DIM : (head + 1) * KEY_DIM]
            for name in ("query", "key", "value")
        )
        for i in range(n):
            logits = [
                entities[i] @ query @ (entities[j] @ key) / KEY_DIM**0.5
                for j in valid
            ]
            for j, relation in zip(valid, activation(logits), strict=True):
                relations[head, i, j] = relation
                heads[head][i] += relation * (symbols_of(i)[j] @ value)
    outputs = np.concatenate(heads, axis=1) @ weights["output_kernel"]
    return outputs, relations


def whom(symbols, example):
    if symbols.ndim == 3:
        return lambda i: symbols[example]
    return lambda i: symbols[0, i]


def valid_entities(mask, inputs):
    if mask is None:
        mask = np.ones(inputs["entities"].shape[:2], bool)
    return [np.flatnonzero(row) for row in mask]


def attention_in_loops(activation):
    def reference(weights, inputs, mask=None):
        entities, symbols = inputs["entities"], inputs["symbols"]
        size = symbols.shape[-1]
        outputs = np.zeros((*entities.shape[:2], size))
        for example, valid in enumerate(valid_entities(mask, inputs)):
            attended, _ = cross_attention(
                weights,
                entities[example],
                whom(symbols, example),
                valid,
                activation,
            )
            outputs[example][valid] = attended[valid]
        return outputs

    return reference


def normalized(x, weights, name):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 1e-3)
    return x * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def abstractor_in_loops(num_layers, activation):
    def reference(weights, inputs, mask=None):
        entities, symbols = inputs["entities"], inputs["symbols"]
        outputs = np.zeros((*entities.shape[:2], symbols.shape[-1]))
        for example, valid in enumerate(valid_entities(mask, inputs)):
            symbols_of, states = whom(symbols, example), 0
            if symbols.ndim == 3:
                states = symbols[example]
            for i in range(num_layers):
                own = {
                    name.removeprefix(f"attention_{i}/"): weight
                    for name, weight in weights.items()
                    if name.startswith(f"attention_{i}/")
                }
                change, _ = cross_attention(
                    own, entities[example], symbols_of, valid, activation
                )
                states = normalized(
                    states + change, weights, f"attention_normalization_{i}"
                )
                hidden = states @ weights[f"hidden_{i}/kernel"]
                hidden = np.maximum(hidden + weights[f"hidden_{i}/bias"], 0)
                change = hidden @ weights[f"update_{i}/kernel"]
                change = change + weights[f"update_{i}/bias"]
                states = normalized(
                    states + change, weights, f"update_normalization_{i}"
                )
                symbols_of = whom(states[None], 0)
            outputs[example][valid] = states[valid]
        return outputs

    return reference


def positional_reference(weights, inputs, mask=None):
    outputs = np.zeros(inputs.shape)
    for b, i in np.ndindex(inputs.shape[:2]):
        if mask is None or mask[b, i]:
            outputs[b, i] = weights["symbols"][i]
    return outputs


def relative_reference(weights, inputs, mask=None):
    _, n, m = inputs.shape
    outputs = np.zeros((1, n, n, m))
    for i, j in np.ndindex(n, n):
        outputs[0, i, j] = weights["symbols"][2 + min(max(j - i, -2), 2)]
    return outputs


def retrieval_in_loops(weights, inputs, mask=None):
    outputs = np.zeros(inputs.shape)
    for b, i in np.ndindex(inputs.shape[:2]):
        if mask is not None and not mask[b, i]:
            continue
        query = inputs[b, i] @ weights["query_kernel"] + weights["query_bias"]
        heads = []
        for head, part in enumerate(split(query, 3)):
            templates = [split(row, 3)[head] for row in weights["templates"]]
            symbols = [split(row, 3)[head] for row in weights["symbols"]]
            scores = softmax([part @ t / 3**0.5 for t in templates])
            heads.append(
                sum(s * x for s, x in zip(scores, symbols, strict=True))
            )
        outputs[b, i] = np.concatenate(heads)
    return outputs


class SymbolsTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract_of_positional(self):
        self.run_layer_contract(
            PositionalSymbols,
            init_kwargs={"max_length": 6, "symbols_initializer": "ones"},
            input_shape=(2, 4, 5),
            second_input_shape=(2, 6, 5),
            fixed_size=False,
            reference=positional_reference,
            supports_masking=True,
            output_mask=lambda mask: mask,
            expected_output_shape=(2, 4, 5),
            expected_output_dtype="float32",
            expected_num_trainable_weights=1,
            **NO_OTHERS,
            **NO_SEEDS,
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
            fixed_size=False,
            reference=retrieval_in_loops,
            supports_masking=True,
            output_mask=lambda mask: mask,
            attention_scores_shape=(2, 2, 4, 3),
            expected_output_shape=(2, 4, 6),
            expected_output_dtype="float32",
            expected_num_trainable_weights=4,
            **NO_OTHERS,
            **NO_SEEDS,
        )

    def test_relative_symbols(self):
        layer = PositionRelativeSymbols(2)
        entities = random_array(3, 5, 4)
        symbols = ops.convert_to_numpy(layer(entities))
        weights = {"symbols": ops.convert_to_numpy(layer.symbols.value)}
        self.assertAllClose(symbols, relative_reference(weights, entities))
        assert layer(keras.Input((5, 4))).shape == (1, 5, 5, 4)
        assert layer.compute_mask(entities, np.ones((3, 5), bool)) is None
        again = PositionRelativeSymbols.from_config(layer.get_config())
        assert again.max_distance == 2

    def test_symbols_of_default_have_deviation_one(self):
        for layer in (PositionalSymbols(300), SymbolicAttention(300)):
            layer.build((None, 8, 64))
            symbols = ops.convert_to_numpy(layer.symbols.value)
            assert symbols.std() == pytest.approx(1, abs=0.05)

    def test_symbolic_attention_finds_the_same_symbol_everywhere(self):
        entities = random_array(3, 5, 4)
        order = np.array([2, 0, 4, 1, 3])
        layer = SymbolicAttention(6)
        symbols = ops.convert_to_numpy(layer(entities))
        self.assertAllClose(layer(entities[:, order]), symbols[:, order])


class RelationalCrossAttentionTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_contract("softmax")

    @pytest.mark.any_backend
    def test_contract_with_another_activation(self):
        self.run_contract("sigmoid")

    def run_contract(self, activation):
        self.run_layer_contract(
            RelationalCrossAttention,
            init_kwargs={
                **ATTENTION,
                "activation": activation,
                "kernel_initializer": "he_normal",
            },
            input_shape={"entities_shape": ENTITIES, "symbols_shape": SYMBOLS},
            second_input_shape={
                "entities_shape": MORE_ENTITIES,
                "symbols_shape": MORE_SYMBOLS,
            },
            fixed_size=False,
            reference=attention_in_loops(FUNCTIONS[activation]),
            items_of_both=True,
            supports_masking=True,
            output_mask=lambda mask: mask,
            attention_scores_shape=(2, HEADS, 4, 4),
            expected_output_shape=(2, 4, 6),
            expected_output_dtype="float32",
            expected_num_trainable_weights=4,
            **NO_OTHERS,
            **NO_SEEDS,
        )

    def test_with_softmax_it_is_keras_attention_to_symbols(self):
        entities, symbols = random_array(2, 5, 8), random_array(2, 5, 6, seed=1)
        layer = RelationalCrossAttention(HEADS, KEY_DIM)
        outputs, scores = layer(entities, symbols, return_attention_scores=True)
        plain = keras.layers.MultiHeadAttention(
            HEADS, KEY_DIM, use_bias=False, output_shape=6
        )
        plain(entities, symbols, entities)
        query, key, value, output = (
            ops.convert_to_numpy(weight) for weight in layer.weights
        )
        plain.set_weights(
            [
                *(
                    kernel.reshape(-1, HEADS, KEY_DIM)
                    for kernel in (query, key, value)
                ),
                output.reshape(HEADS, KEY_DIM, 6),
            ]
        )
        expected = plain(
            entities, symbols, entities, return_attention_scores=True
        )
        self.assertAllClose(outputs, expected[0], atol=1e-5)
        self.assertAllClose(scores, expected[1], atol=1e-5)


@pytest.mark.parametrize("activation", FUNCTIONS)
@pytest.mark.parametrize("shape", [SYMBOLS, PAIRS])
@pytest.mark.parametrize("make", ["attention", "abstractor"])
def test_activations_and_symbols(activation, shape, make):
    entities, symbols = random_array(*ENTITIES), random_array(*shape, seed=1)
    if make == "attention":
        layer = RelationalCrossAttention(HEADS, KEY_DIM, activation)
        reference = attention_in_loops(FUNCTIONS[activation])
    else:
        layer = Abstractor(HEADS, KEY_DIM, HIDDEN, 2, activation)
        reference = abstractor_in_loops(2, FUNCTIONS[activation])
    mask = np.array([[True, False, True, True], [True, True, True, False]])
    for given in (None, mask):
        outputs = layer(entities, symbols, entities_mask=given)
        weights = {
            weight.path.split("/", 1)[1]: ops.convert_to_numpy(weight.value)
            for weight in layer.weights
        }
        inputs = {"entities": entities, "symbols": symbols}
        expected = reference(weights, inputs, given)
        np.testing.assert_allclose(outputs, expected, atol=2e-5)


class AbstractorTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            Abstractor,
            init_kwargs={
                **ATTENTION,
                "hidden_units": HIDDEN,
                "num_layers": 1,
                "activation": "relu",
                "dropout": 0.0,
                "kernel_initializer": "he_normal",
            },
            input_shape={"entities_shape": ENTITIES, "symbols_shape": SYMBOLS},
            second_input_shape={
                "entities_shape": MORE_ENTITIES,
                "symbols_shape": MORE_SYMBOLS,
            },
            fixed_size=False,
            reference=abstractor_in_loops(1, FUNCTIONS["relu"]),
            items_of_both=True,
            supports_masking=True,
            output_mask=lambda mask: mask,
            attention_scores_shape=(2, 1, HEADS, 4, 4),
            expected_output_shape=(2, 4, 6),
            expected_output_dtype="float32",
            expected_num_trainable_weights=12,
            **NO_OTHERS,
            **NO_SEEDS,
        )

    def test_dropout_changes_training_alone(self):
        entities, symbols = random_array(2, 5, 8), random_array(2, 5, 6, seed=1)
        layer = Abstractor(HEADS, KEY_DIM, HIDDEN, dropout=0.5)
        outputs = layer(entities, symbols)
        self.assertAllClose(layer(entities, symbols), outputs)
        dropped = layer(entities, symbols, training=True)
        self.assertNotAllClose(dropped, outputs)
        again = Abstractor.from_config(layer.get_config())
        assert again.dropout == 0.5


def layers_of_both_kinds():
    return (
        RelationalCrossAttention(HEADS, KEY_DIM),
        Abstractor(HEADS, KEY_DIM, HIDDEN, num_layers=2),
    )


def test_order_of_entities_with_their_symbols_changes_nothing():
    entities, symbols = random_array(2, 5, 8), random_array(2, 5, 6, seed=1)
    order = np.array([2, 0, 4, 1, 3])
    for layer in layers_of_both_kinds():
        outputs = ops.convert_to_numpy(layer(entities, symbols))
        moved = layer(entities[:, order], symbols[:, order])
        np.testing.assert_allclose(moved, outputs[:, order], atol=1e-5)


def test_outputs_know_entities_by_their_relations_alone():
    """Other entities with the same products of queries and keys."""
    entities, symbols = random_array(2, 5, 8), random_array(2, 5, 6, seed=1)
    turn, _ = np.linalg.qr(random_array(8, 8, seed=2))
    for layer in layers_of_both_kinds():
        outputs = ops.convert_to_numpy(layer(entities, symbols))
        for attention in getattr(layer, "attentions", [layer]):
            for name in ("query_kernel", "key_kernel"):
                kernel = getattr(attention, name)
                kernel.assign(turn.T @ ops.convert_to_numpy(kernel.value))
        turned = layer(entities @ turn, symbols)
        np.testing.assert_allclose(turned, outputs, atol=1e-5)
        renamed = layer(entities @ turn, symbols + 1)
        assert not np.allclose(renamed, outputs, atol=1e-2)


@pytest.mark.parametrize("dropout", [-0.1, 1.5, "some"])
def test_refuses_a_dropout_that_is_no_share(dropout):
    with pytest.raises(ValueError, match="`dropout` must be at least 0"):
        Abstractor(HEADS, KEY_DIM, HIDDEN, dropout=dropout)


@pytest.mark.parametrize(
    "symbols", [(3, 5), (3, 6, 6), (2, 4, 6), (3, 5, 5, 6), (1, 4, 5, 6)]
)
@pytest.mark.parametrize("layer", layers_of_both_kinds())
def test_refuses_symbols_of_other_entities(layer, symbols):
    message = r"takes a symbol for each entity, .*symbols.shape="
    with pytest.raises(ValueError, match=message):
        layer(np.zeros((3, 5, 8)), np.zeros(symbols))


def test_refuses_more_entities_than_symbols():
    message = r"symbols for 4 positions.*\n?.*max_length=5"
    with pytest.raises(ValueError, match=message):
        PositionalSymbols(4)(np.zeros((3, 5, 8)))


def test_refuses_heads_that_do_not_divide_the_features():
    message = r"num_heads=3 equal parts.*Choose a num_heads that divides 8"
    with pytest.raises(ValueError, match=message):
        SymbolicAttention(4, num_heads=3)(np.zeros((3, 5, 8)))


@pytest.mark.parametrize("layer", [PositionalSymbols(4), SymbolicAttention(4)])
def test_refuses_entities_that_are_no_set(layer):
    with pytest.raises(ValueError, match="takes sets"):
        layer(np.zeros((3, 8)))


@pytest.mark.parametrize("layer", layers_of_both_kinds())
def test_refuses_images(layer):
    with pytest.raises(ValueError, match="takes sets"):
        layer(np.zeros((3, 5, 5, 8)), np.zeros((3, 5, 8)))
