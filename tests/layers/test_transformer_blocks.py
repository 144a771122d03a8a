import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract
from simplicial_reference import attention_in_loops

from keras_relational.layers import RelationalTransformerBlock
from keras_relational.layers import SimplicialTransformerBlock
from keras_relational.layers import VirtualEntities

HEADS, KEY_DIM, SIMPLICIAL_HEADS, SIMPLICIAL_KEY_DIM = 2, 3, 2, 4
RELATIONAL = {"num_heads": HEADS, "key_dim": KEY_DIM, "hidden_units": 7}
SIMPLICIAL = {
    **RELATIONAL,
    "num_simplicial_heads": SIMPLICIAL_HEADS,
    "simplicial_key_dim": SIMPLICIAL_KEY_DIM,
}


def layer_norm(x, weights, name):
    variance = np.mean((x - x.mean(-1, keepdims=True)) ** 2, -1, keepdims=True)
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(variance + 1e-3)
    return x * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def attention_of_one(x_i, others, weights):
    """Equation (4) for one entity that attends to a list of others."""
    heads = []
    for head in range(HEADS):
        part = slice(head * KEY_DIM, (head + 1) * KEY_DIM)
        query = x_i @ weights["query_kernel"][:, part]
        keys = [x @ weights["key_kernel"][:, part] for x in others]
        values = [x @ weights["value_kernel"][:, part] for x in others]
        exponentials = [np.exp(query @ key / KEY_DIM**0.5) for key in keys]
        heads.append(
            sum(
                e / sum(exponentials) * value
                for e, value in zip(exponentials, values, strict=True)
            )
        )
    return np.concatenate(heads)


def feedforward(entity, attended, weights, iteration):
    hidden = np.maximum(
        attended @ weights["hidden/kernel"] + weights["hidden/bias"], 0
    )
    update = hidden @ weights["update/kernel"] + weights["update/bias"]
    return layer_norm(
        entity + update, weights, f"output_normalization_{iteration}"
    )


def relational_in_loops(num_iterations):
    def reference(weights, inputs, mask=None):
        if mask is None:
            mask = np.ones(inputs.shape[:2], bool)
        outputs = np.zeros_like(inputs)
        for example, valid in enumerate(mask):
            if not valid.any():
                continue
            entities = inputs[example][valid]
            for iteration in range(num_iterations):
                x = layer_norm(
                    entities, weights, f"input_normalization_{iteration}"
                )
                entities = np.array(
                    [
                        feedforward(
                            e_i,
                            attention_of_one(x_i, list(x), weights),
                            weights,
                            iteration,
                        )
                        for e_i, x_i in zip(entities, x, strict=True)
                    ]
                )
            outputs[example][valid] = entities
        return outputs

    return reference


def simplicial_in_loops(num_iterations):
    two_simplicial = attention_in_loops(SIMPLICIAL_HEADS, SIMPLICIAL_KEY_DIM)

    def reference(weights, inputs, mask=None):
        own = {
            name.removeprefix("simplicial_attention/"): weight
            for name, weight in weights.items()
            if name.startswith("simplicial_attention/")
        }
        entities, virtual = inputs["entities"], inputs["virtual_entities"]
        n, v = entities.shape[1], virtual.shape[1]
        if mask is None:
            mask = np.ones(entities.shape[:2], bool)
        outputs = np.zeros_like(entities), np.zeros_like(virtual)
        for example, valid in enumerate(mask):
            both = np.concatenate([entities[example], virtual[example]])
            present = [*np.flatnonzero(valid), *range(n, n + v)]
            for iteration in range(num_iterations):
                x = layer_norm(
                    both, weights, f"input_normalization_{iteration}"
                )
                simplicial = two_simplicial(
                    own, {"query": x[None, :n], "base": x[None, n:]}
                )[0]
                simplicial = np.concatenate(
                    [simplicial, x[n:] @ own["value_kernel"]]
                )
                simplicial = layer_norm(
                    simplicial, weights, f"simplicial_normalization_{iteration}"
                )
                updated = both.copy()
                for i in present:
                    others = [x[j] for j in present if i >= n or j < n]
                    attended = np.concatenate(
                        [attention_of_one(x[i], others, weights), simplicial[i]]
                    )
                    updated[i] = feedforward(
                        both[i], attended, weights, iteration
                    )
                both = updated
            outputs[0][example][valid] = both[:n][valid]
            outputs[1][example] = both[n:]
        return outputs

    return reference


def random_array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


class VirtualEntitiesTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            VirtualEntities,
            init_kwargs={"num_entities": 3, "embeddings_initializer": "normal"},
            input_shape=(2, 4, 5),
            second_input_shape=(2, 6, 5),
            fixed_size=False,
            reference=lambda weights, inputs, mask=None: np.stack(
                [weights["embeddings"] for _ in inputs]
            ),
            supports_masking=True,
            output_mask=lambda mask: (None,),
            expected_output_shape=(2, 3, 5),
            expected_output_dtype="float32",
            expected_num_trainable_weights=1,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )


class RelationalTransformerBlockTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            RelationalTransformerBlock,
            init_kwargs={
                **RELATIONAL,
                "kernel_initializer": "he_normal",
            },
            input_shape=(2, 4, 5),
            second_input_shape=(2, 6, 5),
            fixed_size=False,
            reference=relational_in_loops(1),
            supports_masking=True,
            output_mask=lambda mask: mask,
            attention_scores_shape=(2, 1, HEADS, 4, 4),
            expected_output_shape=(2, 4, 5),
            expected_output_dtype="float32",
            expected_num_trainable_weights=3 + 4 + 4,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )

    def test_moves_with_its_entities(self):
        layer = RelationalTransformerBlock(**RELATIONAL, num_iterations=2)
        entities = random_array(2, 6, 5)
        order = np.random.default_rng(1).permutation(6)
        self.assertAllClose(
            layer(entities[:, order]),
            ops.convert_to_numpy(layer(entities))[:, order],
            atol=1e-5,
        )


class SimplicialTransformerBlockTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            SimplicialTransformerBlock,
            init_kwargs={
                **SIMPLICIAL,
                "kernel_initializer": "he_normal",
            },
            input_shape={
                "entities_shape": (2, 4, 5),
                "virtual_entities_shape": (2, 3, 5),
            },
            second_input_shape={
                "entities_shape": (2, 6, 5),
                "virtual_entities_shape": (2, 2, 5),
            },
            fixed_size=False,
            reference=simplicial_in_loops(1),
            supports_masking=True,
            output_mask=lambda mask: (mask, None),
            attention_scores_shape=(
                (2, 1, HEADS, 4, 4),
                (2, 1, HEADS, 3, 7),
                (2, 1, SIMPLICIAL_HEADS, 4, 3, 3),
            ),
            expected_output_shape=((2, 4, 5), (2, 3, 5)),
            expected_output_dtype=("float32", "float32"),
            expected_num_trainable_weights=3 + 5 + 4 + 6,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )

    def test_virtual_entities_reach_standard_ones_by_2_simplices_alone(self):
        """Without 2-simplicial values it equals a relational block."""
        layer = SimplicialTransformerBlock(**SIMPLICIAL)
        entities = random_array(2, 4, 5)
        first, _ = layer(entities, random_array(2, 3, 5, seed=1))
        other, _ = layer(entities, random_array(2, 3, 5, seed=2))
        self.assertNotAllClose(first, other)
        for weight in layer.simplicial_normalizations[0].weights:
            weight.assign(np.zeros(weight.shape))
        relational = RelationalTransformerBlock(**RELATIONAL)
        relational.build(entities.shape)
        weights = {
            weight.path.split("/", 1)[1]: weight for weight in layer.weights
        }
        for weight in relational.weights:
            name = weight.path.split("/", 1)[1]
            value = ops.convert_to_numpy(weights[name])
            weight.assign(value[: weight.shape[0]])
        alone, _ = layer(entities, random_array(2, 3, 5, seed=1))
        self.assertAllClose(alone, relational(entities), atol=1e-5)

    def test_moves_with_its_entities(self):
        layer = SimplicialTransformerBlock(**SIMPLICIAL, num_iterations=2)
        entities, virtual = random_array(2, 6, 5), random_array(2, 3, 5, seed=1)
        order = np.random.default_rng(1).permutation(6)
        again = np.array([2, 0, 1])
        expected = layer(entities, virtual)
        outputs = layer(entities[:, order], virtual[:, again])
        for output, value, places in zip(
            outputs, expected, (order, again), strict=True
        ):
            value = ops.convert_to_numpy(value)[:, places]
            self.assertAllClose(output, value, atol=1e-5)


@pytest.mark.parametrize(
    ("cls", "arguments", "reference", "inputs", "num_weights"),
    [
        (
            RelationalTransformerBlock,
            RELATIONAL,
            relational_in_loops,
            {"inputs": random_array(2, 4, 5)},
            3 + 4 + 3 * 4,
        ),
        (
            SimplicialTransformerBlock,
            SIMPLICIAL,
            simplicial_in_loops,
            {
                "entities": random_array(2, 4, 5),
                "virtual_entities": random_array(2, 3, 5, seed=1),
            },
            3 + 5 + 4 + 3 * 6,
        ),
    ],
)
def test_iterations_share_all_but_normalizations(
    cls, arguments, reference, inputs, num_weights
):
    config = cls(**arguments, num_iterations=3).get_config()
    layer = cls.from_config(config)
    layer(**inputs)
    assert len(layer.trainable_weights) == num_weights
    rng = np.random.default_rng(2)
    for weight in layer.weights:
        weight.assign(rng.normal(scale=0.5, size=weight.shape))
    weights = {
        weight.path.split("/", 1)[1]: np.asarray(
            ops.convert_to_numpy(weight), "float64"
        )
        for weight in layer.weights
    }
    expected = reference(3)(weights, inputs.get("inputs", inputs))
    outputs, scores = layer(**inputs, return_attention_scores=True)
    for x, y in zip(
        keras.tree.flatten(outputs), keras.tree.flatten(expected), strict=True
    ):
        np.testing.assert_allclose(
            ops.convert_to_numpy(x), y, rtol=1e-4, atol=1e-4
        )
    assert {score.shape[1] for score in keras.tree.flatten(scores)} == {3}


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (VirtualEntities, {"num_entities": 0}, "Received: num_entities=0"),
        (
            RelationalTransformerBlock,
            {**RELATIONAL, "num_iterations": 0},
            "Received: num_iterations=0",
        ),
        (
            RelationalTransformerBlock,
            {**RELATIONAL, "hidden_units": 1.5},
            "Received: hidden_units=1.5",
        ),
        (
            SimplicialTransformerBlock,
            {**SIMPLICIAL, "score": "dot"},
            "'dot'.*unsigned",
        ),
    ],
)
def test_refuses_arguments(cls, arguments, message):
    with pytest.raises(ValueError, match=message):
        cls(**arguments)


@pytest.mark.any_backend
def test_half_precision_does_not_round_the_inputs():
    """They are normalized first, so a common offset changes nothing."""
    x = np.random.default_rng(0).integers(0, 9, (2, 5, 8)).astype("float32")
    keras.config.set_dtype_policy("mixed_bfloat16")
    relational = RelationalTransformerBlock(**RELATIONAL)
    simplicial = SimplicialTransformerBlock(**SIMPLICIAL)
    for call in (relational, lambda x: simplicial(x, x[:, :3])[0]):
        near, far = (
            ops.convert_to_numpy(ops.cast(call(inputs), "float32"))
            for inputs in (x, 1000 + x)
        )
        np.testing.assert_allclose(far, near, atol=0.05)


def test_an_initializer_may_be_a_plain_function():
    def threes(shape, dtype=None):
        return 3 * ops.ones(shape, dtype)

    entities = keras.Input((4, 8))
    relational = RelationalTransformerBlock(2, 3, 4, kernel_initializer=threes)
    relational(entities)
    simplicial = SimplicialTransformerBlock(
        2, 3, 1, 3, 4, kernel_initializer=threes
    )
    simplicial(entities, keras.Input((2, 8)))
    for kernel in (
        relational.hidden.kernel,
        simplicial.simplicial_attention.value_kernel,
    ):
        assert (ops.convert_to_numpy(kernel.value) == 3).all()


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 5), (2, 3, None)])
def test_refuses_what_is_no_set(shape):
    with pytest.raises(ValueError, match=r"\(batch, n, m\) with a fixed m"):
        RelationalTransformerBlock(**RELATIONAL).build(shape)
    with pytest.raises(ValueError, match=r"\(batch, n, m\) with a fixed m"):
        VirtualEntities(2).build(shape)


def test_refuses_virtual_entities_of_another_width():
    with pytest.raises(ValueError, match=r"\(2, 4, 5\).*\(2, 3, 6\)"):
        SimplicialTransformerBlock(**SIMPLICIAL)(
            keras.Input(batch_shape=(2, 4, 5)),
            keras.Input(batch_shape=(2, 3, 6)),
        )


@pytest.mark.parametrize(
    "new_layer",
    [
        lambda: RelationalTransformerBlock(2, 3, 4),
        lambda: VirtualEntities(2),
    ],
    ids=["relational", "virtual"],
)
def test_other_shapes_are_refused_after_build_too(new_layer):
    layer = new_layer()
    layer.build((None, 4, 5))
    for shape in ((2, 2, 5), (4, 6)):
        with pytest.raises(ValueError, match="incompatible"):
            layer(keras.Input(shape))
