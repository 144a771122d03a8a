import pathlib

import equations
import numpy as np
import pytest
from layer_contract import LayerContract
from layers_for_tests import WITH_SYMBOLS
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import assert_equals
from layers_for_tests import random_array

from keras_relational.layers import DualAttention
from keras_relational.layers import DualAttentionBlock
from keras_relational.layers import PositionRelativeSymbols
from keras_relational.layers import RelationalAttention
from keras_relational.layers import SymbolicAttention
from keras_relational.layers._attention import rotated

ENTITIES, SYMBOLS, PAIRS = (2, 4, 12), (2, 4, 6), (1, 4, 4, 6)


def turned(vector, place):
    """Rotary positions of one vector, pair by pair."""
    result = []
    for k in range(0, len(vector), 2):
        angle = place / 10_000 ** (k / len(vector))
        turn = np.exp(1j * angle) * (vector[k] + 1j * vector[k + 1])
        result += [turn.real, turn.imag]
    return np.array(result)


def turned_heads(vectors, heads):
    """The part of each head is turned by itself."""
    return np.array(
        [
            np.concatenate([turned(x, place) for x in np.split(vector, heads)])
            for place, vector in enumerate(vectors)
        ]
    )


def attention(weights, entities, valid, heads, message, causal, rotary):
    """`message(i, j)` is what entity i receives from entity j."""
    queries = entities @ weights["query_kernel"]
    keys = entities @ weights["key_kernel"]
    if rotary:
        queries, keys = (turned_heads(x, heads) for x in (queries, keys))
    outputs = np.zeros((len(entities), len(weights["output_kernel"])))
    for i in valid:
        others = [j for j in valid if j <= i or not causal]
        messages = [message(i, j) for j in others]
        outputs[i] = equations.attend(queries[i], keys[others], messages, heads)
    return outputs @ weights["output_kernel"]


def relational(
    weights,
    entities,
    symbols,
    valid,
    heads,
    relations,
    symmetric=False,
    activation=None,
    causal=False,
    rotary=False,
):
    """`RelationalAttention` of one example."""
    queries = entities @ weights["relation_query_kernel"]
    name = "relation_query" if symmetric else "relation_key"
    keys = entities @ weights[f"{name}_kernel"]

    def message(i, j):
        pairs = zip(
            np.split(queries[i], relations),
            np.split(keys[j], relations),
            strict=True,
        )
        r = np.array([one @ other / len(one) ** 0.5 for one, other in pairs])
        if activation:
            r = activation(r)
        symbol = symbols[j] if symbols.ndim == 2 else symbols[i, j]
        return r @ weights["relation_kernel"] + symbol @ weights["value_kernel"]

    return attention(weights, entities, valid, heads, message, causal, rotary)


def dual(
    weights,
    entities,
    symbols,
    valid,
    heads,
    relational_heads,
    causal=False,
    rotary=False,
    **options,
):
    """`DualAttention` of one example."""
    values = entities @ weights["value_kernel"]
    sensory = attention(
        weights, entities, valid, heads, lambda i, j: values[j], causal, rotary
    )
    of_relations = relational(
        equations.below(weights, "relational_attention"),
        entities,
        symbols,
        valid,
        relational_heads,
        causal=causal,
        rotary=rotary,
        **options,
    )
    return np.concatenate([sensory, of_relations], axis=1)


def block(
    weights, entities, symbols, valid, first=True, context=None, **options
):
    """`DualAttentionBlock` of one example."""

    def change(x, function, name):
        def normalize(x):
            return equations.normalized(
                x, weights, f"{name}_normalization", 1e-5
            )

        return (
            x + function(normalize(x)) if first else normalize(x + function(x))
        )

    def attend_to_entities(x):
        own = equations.below(weights, "dual_attention")
        return dual(own, x, symbols, valid, **options)

    def attend_to_context(x):
        own = equations.below(weights, "cross_attention")
        heads = own["query/kernel"].shape[1]
        queries, keys, values = (
            y @ own[f"{name}/kernel"].reshape(y.shape[1], -1)
            for name, y in (("query", x), ("key", context), ("value", context))
        )
        read = np.array(
            [equations.attend(q, keys, values, heads) for q in queries]
        )
        return read @ own["attention_output/kernel"].reshape(read.shape[1], -1)

    x = change(entities, attend_to_entities, "attention")
    if context is not None:
        x = change(x, attend_to_context, "cross_attention")
    return change(x, lambda x: equations.feedforward(x, weights), "update")


def in_loops(function, size, **options):
    """The reference of a layer, from that of one example."""

    def of_one(weights, inputs, valid):
        outputs = np.zeros((len(inputs["entities"]), size))
        found = function(weights, **inputs, valid=valid, **options)
        outputs[valid] = found[valid]
        return outputs

    return equations.each_example(of_one)


RELATIONAL = {"num_heads": 2, "key_dim": 4, "num_relations": 4}
DUAL = {"num_heads": 2, "num_relational_heads": 1, "num_relations": 2}
DUAL_SIZES = {"heads": 2, "relational_heads": 1, "relations": 2}
INPUTS = {
    "entities": random_array(*ENTITIES),
    "symbols": random_array(*SYMBOLS, seed=1),
}
DUAL_SCORES = ((2, 2, 4, 4), (2, 1, 4, 4), (2, 2, 4, 4))


class DualAttentionTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract_of_relational_attention(self):
        self.run_layer_contract(
            RelationalAttention,
            init_kwargs={
                **RELATIONAL,
                "activation": "tanh",
                "rotary": True,
                "kernel_initializer": "he_normal",
            },
            **WITH_SYMBOLS,
            reference=in_loops(
                relational,
                8,
                heads=2,
                relations=4,
                activation=np.tanh,
                rotary=True,
            ),
            attention_scores_shape=((2, 2, 4, 4), (2, 4, 4, 4)),
            expected_output_shape=(2, 4, 8),
            expected_num_trainable_weights=7,
        )

    @pytest.mark.any_backend
    def test_contract_of_dual_attention(self):
        self.run_layer_contract(
            DualAttention,
            init_kwargs={
                **DUAL,
                "symmetric": True,
                "activation": "sigmoid",
                "rotary": True,
                "kernel_initializer": "he_normal",
            },
            **WITH_SYMBOLS,
            reference=in_loops(
                dual,
                12,
                **DUAL_SIZES,
                symmetric=True,
                activation=equations.sigmoid,
                rotary=True,
            ),
            attention_scores_shape=DUAL_SCORES,
            expected_output_shape=(2, 4, 12),
            expected_num_trainable_weights=10,
        )

    @pytest.mark.any_backend
    def test_contract_of_the_block(self):
        self.run_layer_contract(
            DualAttentionBlock,
            init_kwargs={
                **DUAL,
                "hidden_units": 7,
                "kernel_initializer": "he_normal",
            },
            **WITH_SYMBOLS,
            reference=in_loops(block, 12, **DUAL_SIZES),
            attention_scores_shape=DUAL_SCORES,
            expected_output_shape=(2, 4, 12),
            expected_num_trainable_weights=19,
        )


@pytest.mark.parametrize("shape", [SYMBOLS, PAIRS])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_decoder_with_a_context(shape, causal, first):
    context = random_array(2, 5, 9, seed=2)
    symbols = random_array(*shape, seed=1)
    inputs = {**INPUTS, "symbols": symbols, "context": context}
    layer = DualAttentionBlock(
        2, 1, 7, num_cross_heads=3, num_relations=2, normalize_first=first
    )
    reference = in_loops(block, 12, **DUAL_SIZES, first=first, causal=causal)
    assert_equals(layer, reference, inputs, use_causal_mask=causal, atol=3e-5)
    # Padding of the context changes nothing, whatever it holds.
    expected = layer(**inputs, use_causal_mask=causal)
    padding = np.full((2, 3, 9), np.nan, "float32")
    inputs["context"] = np.concatenate([context, padding], axis=1)
    mask = np.array([[True] * 5 + [False] * 3] * 2)
    padded = layer(**inputs, context_mask=mask, use_causal_mask=causal)
    assert_close(padded, expected, atol=3e-5)


@pytest.mark.parametrize("shape", [SYMBOLS, PAIRS])
def test_many_heads_and_relations(shape):
    inputs = {**INPUTS, "symbols": random_array(*shape, seed=1)}
    layer = RelationalAttention(4, key_dim=3, num_relations=6)
    reference = in_loops(relational, 12, heads=4, relations=6)
    assert_equals(layer, reference, inputs, atol=1e-5)


def test_masks_of_padding_and_of_later_entities():
    mask = np.array([[True, False, True, True], [True, True, True, False]])
    reference = in_loops(dual, 12, **DUAL_SIZES, causal=True, rotary=True)
    layer = DualAttention(2, 1, 2, rotary=True)
    assert_equals(layer, reference, INPUTS, mask, 2e-5, use_causal_mask=True)


def test_relational_heads_see_no_features():
    """Other entities with the same products give the same outputs."""
    entities, symbols = random_array(*ENTITIES), random_array(*SYMBOLS, seed=1)
    turn, _ = np.linalg.qr(random_array(12, 12, seed=2))
    layer = RelationalAttention(2, 4)
    outputs = array(layer(entities, symbols))
    for name in ("query", "key", "relation_query", "relation_key"):
        kernel = getattr(layer, f"{name}_kernel")
        kernel.assign(turn.T @ array(kernel.value))
    turned_entities = layer(entities @ turn, symbols)
    assert_close(turned_entities, outputs, atol=1e-5)


def test_symmetric_relations_are_symmetric():
    entities, symbols = random_array(*ENTITIES), random_array(*SYMBOLS)
    for symmetric in (True, False):
        layer = RelationalAttention(2, 4, symmetric=symmetric)
        _, (_, relations) = layer(
            entities, symbols, return_attention_scores=True
        )
        relations = array(relations)
        difference = np.abs(relations - np.swapaxes(relations, -1, -2)).max()
        assert (difference < 1e-6) == symmetric


def test_rotary_products_depend_on_the_distance():
    query, key = random_array(2, 6, seed=1)
    vectors = np.tile(query, (7, 1)), np.tile(key, (7, 1))
    queries, keys = (array(rotated(x[None, None]))[0, 0] for x in vectors)
    products = queries @ keys.T
    for distance in range(-6, 7):
        diagonal = np.diagonal(products, distance)
        assert_close(diagonal, diagonal[0], atol=1e-5)
    assert np.ptp(products) > 0.5
    expected = np.array([turned(query, place) for place in range(7)])
    assert_close(queries, expected, atol=1e-5)


# Random weights, inputs and outputs of the package `dual-attention` 0.0.7, with
# its own names. `symmetric_rels` is set in the blocks that normalize last.
PACKAGE = np.load(pathlib.Path(__file__).with_name("dual_attention_0_0_7.npz"))
OF_DUAL = {
    "query_kernel": "self_attention.wq",
    "key_kernel": "self_attention.wk",
    "value_kernel": "self_attention.wv",
    "output_kernel": "self_attention.wo",
}
OF_RELATIONAL = {
    "query_kernel": "relational_attention.wq_attn",
    "key_kernel": "relational_attention.wk_attn",
    "relation_query_kernel": "relational_attention.wq_rel",
    "relation_key_kernel": "relational_attention.wk_rel",
    "value_kernel": "relational_attention.wv",
    "output_kernel": "relational_attention.wo",
}


def take_package_weights(block, prefix):
    def of(name):
        return PACKAGE[f"{prefix}/{name}"]

    dual_attention = block.dual_attention
    for layer, names in (
        (dual_attention, OF_DUAL),
        (dual_attention.relational_attention, OF_RELATIONAL),
    ):
        for ours, theirs in names.items():
            if hasattr(layer, ours):
                kernel = of(f"dual_attn.{theirs}.weight").T
                getattr(layer, ours).assign(kernel)
    layer = dual_attention.relational_attention
    # (head, feature, relation) there.
    kernel = of("dual_attn.relational_attention.wr").transpose(2, 0, 1)
    layer.relation_kernel.assign(kernel.reshape(layer.relation_kernel.shape))
    numbered = enumerate(block.normalizations.values(), start=1)
    for number, normalization in numbered:
        names = (f"norm{number}.weight", f"norm{number}.bias")
        normalization.set_weights([of(name) for name in names])
    for number, dense in enumerate((block.hidden, block.update), start=1):
        name = f"ff_block.linear{number}"
        dense.set_weights([of(f"{name}.weight").T, of(f"{name}.bias")])
    if block.cross_attention is not None:
        kernels = [of(f"cross_attn.w{letter}.weight").T for letter in "qkvo"]
        weights = zip(kernels, block.cross_attention.weights, strict=True)
        block.cross_attention.set_weights(
            [kernel.reshape(weight.shape) for kernel, weight in weights]
        )


def assert_equals_the_package(prefix, block, *inputs, **arguments):
    block(*inputs)
    take_package_weights(block, prefix)
    outputs = block(*inputs, **arguments)
    assert_close(outputs, PACKAGE[f"{prefix}_outputs"], atol=1e-5)


@pytest.mark.parametrize("first", [True, False])
def test_encoder_equals_that_of_the_package(first):
    block = DualAttentionBlock(
        num_heads=2,
        num_relational_heads=1,
        hidden_units=7,
        num_relations=2,
        symmetric=not first,
        rotary=True,
        normalize_first=first,
    )
    prefix = "pre_encoder" if first else "post_encoder"
    inputs = PACKAGE["entities"], PACKAGE["symbols"]
    assert_equals_the_package(prefix, block, *inputs)


@pytest.mark.parametrize("first", [True, False])
def test_decoder_equals_that_of_the_package(first):
    block = DualAttentionBlock(
        num_heads=1,
        num_relational_heads=2,
        hidden_units=7,
        num_cross_heads=3,
        num_relations=4,
        normalize_first=first,
    )
    prefix = "pre_decoder" if first else "post_decoder"
    symbols = PACKAGE["relative_symbols"][None]
    inputs = PACKAGE["entities"], symbols, PACKAGE["context"]
    assert_equals_the_package(prefix, block, *inputs, use_causal_mask=True)


def test_symbols_equal_those_of_the_package():
    entities = PACKAGE["entities"]
    layer = SymbolicAttention(4, num_heads=3)
    layer.build(entities.shape)
    layer.set_weights(
        [
            PACKAGE["symbolic_attention/q_proj.weight"].T,
            PACKAGE["symbolic_attention/q_proj.bias"],
            PACKAGE["symbolic_attention/template_features"],
            PACKAGE["symbolic_attention/symbol_library"],
        ]
    )
    symbols = layer(entities)
    assert_close(symbols, PACKAGE["symbols"], atol=1e-5)
    layer = PositionRelativeSymbols(2)
    layer.build(entities.shape)
    layer.set_weights([PACKAGE["relative/rel_pos_enc.rel_pos_embeddings"]])
    symbols = layer(entities)[0]
    np.testing.assert_array_equal(symbols, PACKAGE["relative_symbols"])
