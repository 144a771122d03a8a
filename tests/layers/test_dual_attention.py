import pathlib

import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract

from keras_relational.layers import DualAttention
from keras_relational.layers import DualAttentionBlock
from keras_relational.layers import PositionRelativeSymbols
from keras_relational.layers import RelationalAttention
from keras_relational.layers import SymbolicAttention
from keras_relational.layers._attention import rotated

ENTITIES, SYMBOLS, PAIRS = (2, 4, 12), (2, 4, 6), (1, 4, 4, 6)
MORE_ENTITIES, MORE_SYMBOLS = (2, 6, 12), (2, 6, 6)
SET = {
    "input_shape": {"entities_shape": ENTITIES, "symbols_shape": SYMBOLS},
    "second_input_shape": {
        "entities_shape": MORE_ENTITIES,
        "symbols_shape": MORE_SYMBOLS,
    },
    "fixed_size": False,
    "items_of_both": True,
    "supports_masking": True,
    "output_mask": lambda mask: mask,
    "expected_output_dtype": "float32",
    "expected_num_non_trainable_weights": 0,
    "expected_num_non_trainable_variables": 0,
    "expected_num_seed_generators": 0,
    "expected_num_losses": 0,
}


def random_array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def softmax(logits):
    exponentials = [np.exp(x - max(logits)) for x in logits]
    return [x / sum(exponentials) for x in exponentials]


def turned(vector, place):
    """Rotary positions of one vector, pair by pair."""
    result = []
    for k in range(0, len(vector), 2):
        angle = place / 10_000 ** (k / len(vector))
        turn = np.exp(1j * angle) * (vector[k] + 1j * vector[k + 1])
        result += [turn.real, turn.imag]
    return np.array(result)


def part(matrix, index, number):
    """One of so many equal parts of the last axis."""
    size = matrix.shape[-1] // number
    return matrix[..., index * size : (index + 1) * size]


def scores_of(weights, entities, i, others, head, heads, rotary):
    query, keys = (
        [x @ part(weights[f"{name}_kernel"], head, heads) for x in entities]
        for name in ("query", "key")
    )
    if rotary:
        query = [turned(x, place) for place, x in enumerate(query)]
        keys = [turned(x, place) for place, x in enumerate(keys)]
    scale = len(query[i]) ** 0.5
    return softmax([query[i] @ keys[j] / scale for j in others])


def attention(weights, entities, valid, heads, message, causal, rotary):
    """`message(i, j, head)` is what entity i receives from entity j."""
    outputs = np.zeros((len(entities), weights["output_kernel"].shape[0]))
    for i in valid:
        others = [j for j in valid if j <= i or not causal]
        for head in range(heads):
            scores = scores_of(
                weights, entities, i, others, head, heads, rotary
            )
            for j, score in zip(others, scores, strict=True):
                part(outputs, head, heads)[i] += score * message(i, j, head)
    return outputs @ weights["output_kernel"]


def relational(
    weights,
    entities,
    symbols_of,
    valid,
    heads,
    relations,
    symmetric=False,
    activation=None,
    causal=False,
    rotary=False,
):
    """`RelationalAttention` of one example."""
    name = "relation_query" if symmetric else "relation_key"

    def message(i, j, head):
        r = []
        for relation in range(relations):
            one = part(weights["relation_query_kernel"], relation, relations)
            other = part(weights[f"{name}_kernel"], relation, relations)
            product = entities[i] @ one @ (entities[j] @ other)
            product = product / one.shape[1] ** 0.5
            r.append(activation(product) if activation else product)
        of_relations = r @ part(weights["relation_kernel"], head, heads)
        value = part(weights["value_kernel"], head, heads)
        return of_relations + symbols_of(i)[j] @ value

    return attention(weights, entities, valid, heads, message, causal, rotary)


def dual(
    weights,
    entities,
    symbols_of,
    valid,
    heads,
    relational_heads,
    causal=False,
    rotary=False,
    **options,
):
    """`DualAttention` of one example."""

    def message(i, j, head):
        return entities[j] @ part(weights["value_kernel"], head, heads)

    sensory = attention(
        weights, entities, valid, heads, message, causal, rotary
    )
    of_relations = relational(
        below(weights, "relational_attention"),
        entities,
        symbols_of,
        valid,
        relational_heads,
        causal=causal,
        rotary=rotary,
        **options,
    )
    return np.concatenate([sensory, of_relations], axis=1)


def below(weights, name):
    return {
        path.removeprefix(f"{name}/"): weight
        for path, weight in weights.items()
        if path.startswith(f"{name}/")
    }


def normalized(x, weights, name):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 1e-5)
    return x * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def block(
    weights, entities, symbols_of, valid, first=True, context=None, **options
):
    def change(x, function, name):
        name = f"{name}_normalization"
        if first:
            return x + function(normalized(x, weights, name))
        return normalized(x + function(x), weights, name)

    def attend_to_context(x):
        own = below(weights, "cross_attention")
        outputs = np.zeros_like(x)
        for i, head in np.ndindex(len(x), own["query/kernel"].shape[1]):
            query = x[i] @ own["query/kernel"][:, head]
            keys = context @ own["key/kernel"][:, head]
            scores = softmax(list(keys @ query / len(query) ** 0.5))
            values = context @ own["value/kernel"][:, head]
            outputs[i] += (
                np.array(scores) @ values @ own["attention_output/kernel"][head]
            )
        return outputs

    def feedforward(x):
        x = np.maximum(x @ weights["hidden/kernel"] + weights["hidden/bias"], 0)
        return x @ weights["update/kernel"] + weights["update/bias"]

    x = change(
        entities,
        lambda x: dual(
            below(weights, "dual_attention"), x, symbols_of, valid, **options
        ),
        "attention",
    )
    if context is not None:
        x = change(x, attend_to_context, "cross_attention")
    return change(x, feedforward, "update")


def in_loops(function, size, *sizes, **options):
    """The reference of a layer, from that of one example."""

    def reference(weights, inputs, mask=None):
        entities, symbols = inputs["entities"], inputs["symbols"]
        outputs = np.zeros((*entities.shape[:2], size))
        if mask is None:
            mask = np.ones(entities.shape[:2], bool)
        for example, row in enumerate(mask):
            valid = np.flatnonzero(row)
            own = dict(options)
            if "context" in inputs:
                own["context"] = inputs["context"][example]
            outputs[example][valid] = function(
                weights,
                entities[example],
                whom(symbols, example),
                valid,
                *sizes,
                **own,
            )[valid]
        return outputs

    return reference


def whom(symbols, example):
    if symbols.ndim == 3:
        return lambda i: symbols[example]
    return lambda i: symbols[0, i]


def weights_of(layer):
    return {
        weight.path.split("/", 1)[1]: ops.convert_to_numpy(weight.value)
        for weight in layer.weights
    }


RELATIONAL = {"num_heads": 2, "key_dim": 4, "num_relations": 4}
DUAL = {"num_heads": 2, "num_relational_heads": 1, "num_relations": 2}
DUAL_SIZES = {"heads": 2, "relational_heads": 1, "relations": 2}
DUAL_SCORES = ((2, 2, 4, 4), (2, 1, 4, 4), (2, 2, 4, 4))


class DualAttentionTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract_of_relational_attention(self):
        self.run_layer_contract(
            RelationalAttention,
            init_kwargs={
                **RELATIONAL,
                "symmetric": False,
                "activation": "tanh",
                "rotary": True,
                "kernel_initializer": "he_normal",
            },
            **SET,
            reference=in_loops(
                relational,
                *(8, 2, 4),
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
            **SET,
            reference=in_loops(
                dual,
                12,
                **DUAL_SIZES,
                symmetric=True,
                activation=lambda x: 1 / (1 + np.exp(-x)),
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
                "num_cross_heads": 0,
                "symmetric": False,
                "rotary": False,
                "activation": "relu",
                "dropout": 0.0,
                "normalize_first": True,
                "kernel_initializer": "he_normal",
            },
            **SET,
            reference=in_loops(block, 12, **DUAL_SIZES),
            attention_scores_shape=DUAL_SCORES,
            expected_output_shape=(2, 4, 12),
            expected_num_trainable_weights=19,
        )

    def test_dropout_changes_training_alone(self):
        entities, symbols = random_array(*ENTITIES), random_array(*SYMBOLS)
        layer = DualAttentionBlock(2, 1, 7, dropout=0.5)
        outputs = layer(entities, symbols)
        self.assertAllClose(layer(entities, symbols), outputs)
        dropped = layer(entities, symbols, training=True)
        self.assertNotAllClose(dropped, outputs)


@pytest.mark.parametrize("shape", [SYMBOLS, PAIRS])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_decoder_with_a_context(shape, causal, first):
    inputs = {
        "entities": random_array(*ENTITIES),
        "symbols": random_array(*shape, seed=1),
        "context": random_array(2, 5, 9, seed=2),
    }
    layer = DualAttentionBlock(
        2, 1, 7, num_cross_heads=3, num_relations=2, normalize_first=first
    )
    outputs = layer(**inputs, use_causal_mask=causal)
    reference = in_loops(block, 12, **DUAL_SIZES, first=first, causal=causal)
    expected = reference(weights_of(layer), inputs)
    np.testing.assert_allclose(outputs, expected, atol=3e-5)
    # Padding of the context changes nothing, whatever it holds.
    longer = np.full((2, 8, 9), np.nan, "float32")
    longer[:, :5] = inputs["context"]
    mask = np.arange(8)[None] < np.array([[5], [5]])
    padded = layer(
        **{**inputs, "context": longer},
        context_mask=mask,
        use_causal_mask=causal,
    )
    np.testing.assert_allclose(padded, expected, atol=3e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_masks_of_padding_and_of_later_entities(causal):
    entities, symbols = random_array(*ENTITIES), random_array(*SYMBOLS, seed=1)
    mask = np.array([[True, False, True, True], [True, True, True, False]])
    layer = DualAttention(2, 1, 2, rotary=True)
    outputs = layer(
        entities, symbols, entities_mask=mask, use_causal_mask=causal
    )
    reference = in_loops(dual, 12, **DUAL_SIZES, causal=causal, rotary=True)
    inputs = {"entities": entities, "symbols": symbols}
    expected = reference(weights_of(layer), inputs, mask)
    np.testing.assert_allclose(outputs, expected, atol=2e-5)


def test_relational_heads_see_no_features():
    """Other entities with the same products give the same outputs."""
    entities, symbols = random_array(*ENTITIES), random_array(*SYMBOLS, seed=1)
    turn, _ = np.linalg.qr(random_array(12, 12, seed=2))
    layer = RelationalAttention(2, 4)
    outputs = ops.convert_to_numpy(layer(entities, symbols))
    names = ("query", "key", "relation_query", "relation_key")
    for name in names:
        kernel = getattr(layer, f"{name}_kernel")
        kernel.assign(turn.T @ ops.convert_to_numpy(kernel.value))
    turned_entities = layer(entities @ turn, symbols)
    np.testing.assert_allclose(turned_entities, outputs, atol=1e-5)


def test_symmetric_relations_are_symmetric():
    entities, symbols = random_array(*ENTITIES), random_array(*SYMBOLS)
    for symmetric in (True, False):
        layer = RelationalAttention(2, 4, symmetric=symmetric)
        _, (_, relations) = layer(
            entities, symbols, return_attention_scores=True
        )
        relations = ops.convert_to_numpy(relations)
        difference = np.abs(relations - np.swapaxes(relations, -1, -2)).max()
        assert (difference < 1e-6) == symmetric


def test_order_of_entities_with_their_symbols_changes_nothing():
    entities, symbols = random_array(*ENTITIES), random_array(*SYMBOLS, seed=1)
    order = np.array([2, 0, 3, 1])
    layer = DualAttentionBlock(2, 1, 7)
    outputs = ops.convert_to_numpy(layer(entities, symbols))
    moved = layer(entities[:, order], symbols[:, order])
    np.testing.assert_allclose(moved, outputs[:, order], atol=1e-5)


def test_rotary_products_depend_on_the_distance():
    query, key = random_array(2, 6, seed=1)
    vectors = np.tile(query, (7, 1)), np.tile(key, (7, 1))
    queries, keys = (
        ops.convert_to_numpy(rotated(x[None, None]))[0, 0] for x in vectors
    )
    products = queries @ keys.T
    for distance in range(-6, 7):
        diagonal = np.diagonal(products, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], atol=1e-5)
    assert np.ptp(products) > 0.5
    expected = [turned(query, place) for place in range(7)]
    np.testing.assert_allclose(queries, expected, atol=1e-5)


BAD_SIZES = [
    (lambda: RelationalAttention(2, 4, 3), "`num_relations` must divide"),
    (lambda: RelationalAttention(2, 3, rotary=True), "must be even"),
    (lambda: DualAttentionBlock(2, 1, 7, dropout=1), "`dropout` must be"),
    (lambda: DualAttentionBlock(2, 1, 0), "`hidden_units` must be"),
    (lambda: DualAttentionBlock(2, 1, 7, -1), "`num_cross_heads` must be"),
]


@pytest.mark.parametrize(("make", "message"), BAD_SIZES)
def test_refuses_sizes_that_do_not_fit(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_refuses_heads_that_do_not_divide_the_features():
    inputs = np.zeros(ENTITIES), np.zeros(SYMBOLS)
    with pytest.raises(ValueError, match=r"must divide .* which is 12"):
        DualAttention(3, 2)(*inputs)
    with pytest.raises(ValueError, match=r"`num_cross_heads` must divide"):
        DualAttentionBlock(2, 1, 7, 5)(*inputs, np.zeros((2, 3, 9)))


def test_refuses_a_context_without_heads_and_heads_without_a_context():
    inputs = np.zeros(ENTITIES), np.zeros(SYMBOLS)
    with pytest.raises(ValueError, match="Received: a context"):
        DualAttentionBlock(2, 1, 7)(*inputs, np.zeros((2, 3, 9)))
    with pytest.raises(ValueError, match="Received: no context"):
        DualAttentionBlock(2, 1, 7, num_cross_heads=3)(*inputs)


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


@pytest.mark.parametrize("first", [True, False])
def test_encoder_equals_that_of_the_package(first):
    prefix = "pre_encoder" if first else "post_encoder"
    block = DualAttentionBlock(
        *(2, 1, 7),
        num_relations=2,
        symmetric=not first,
        rotary=True,
        normalize_first=first,
    )
    inputs = PACKAGE["entities"], PACKAGE["symbols"]
    block(*inputs)
    take_package_weights(block, prefix)
    outputs = ops.convert_to_numpy(block(*inputs))
    np.testing.assert_allclose(outputs, PACKAGE[f"{prefix}_outputs"], atol=1e-5)


@pytest.mark.parametrize("first", [True, False])
def test_decoder_equals_that_of_the_package(first):
    prefix = "pre_decoder" if first else "post_decoder"
    block = DualAttentionBlock(
        *(1, 2, 7, 3), num_relations=4, normalize_first=first
    )
    symbols = PACKAGE["relative_symbols"][None]
    inputs = PACKAGE["entities"], symbols, PACKAGE["context"]
    block(*inputs)
    take_package_weights(block, prefix)
    outputs = ops.convert_to_numpy(block(*inputs, use_causal_mask=True))
    np.testing.assert_allclose(outputs, PACKAGE[f"{prefix}_outputs"], atol=1e-5)


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
    np.testing.assert_allclose(symbols, PACKAGE["symbols"], atol=1e-5)
    layer = PositionRelativeSymbols(2)
    layer.build(entities.shape)
    layer.set_weights([PACKAGE["relative/rel_pos_enc.rel_pos_embeddings"]])
    symbols = layer(entities)[0]
    np.testing.assert_array_equal(symbols, PACKAGE["relative_symbols"])
