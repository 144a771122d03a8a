import equations
import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract
from layer_contract import apply
from layers_for_tests import array
from layers_for_tests import assert_equals
from layers_for_tests import random_array
from layers_for_tests import weights_of
from layers_for_tests import with_random_weights
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


def attention_of_one(x_i, others, weights):
    """Equation (4) for one entity that attends to others."""
    query = x_i @ weights["query_kernel"]
    keys = others @ weights["key_kernel"]
    values = others @ weights["value_kernel"]
    return equations.attend(query, keys, values, HEADS)


def updated(entity, attended, weights, iteration):
    update = equations.feedforward(attended, weights)
    name = f"output_normalization_{iteration}"
    return equations.normalized(entity + update, weights, name)


def relational_in_loops(num_iterations):
    @equations.each_example
    def reference(weights, inputs, valid):
        entities = inputs[valid]
        for iteration in range(num_iterations):
            name = f"input_normalization_{iteration}"
            x = equations.normalized(entities, weights, name)
            new = entities.copy()
            for i, x_i in enumerate(x):
                attended = attention_of_one(x_i, x, weights)
                new[i] = updated(entities[i], attended, weights, iteration)
            entities = new
        outputs = np.zeros_like(inputs)
        outputs[valid] = entities
        return outputs

    return reference


def simplicial_in_loops(num_iterations):
    two_simplicial = attention_in_loops(SIMPLICIAL_HEADS)

    @equations.each_example
    def reference(weights, inputs, valid):
        own = equations.below(weights, "simplicial_attention")
        entities, virtual = (
            inputs["entities"][valid],
            inputs["virtual_entities"],
        )
        n = len(entities)
        both = np.concatenate([entities, virtual])
        for iteration in range(num_iterations):
            name = f"input_normalization_{iteration}"
            x = equations.normalized(both, weights, name)
            sets = {"query": x[None, :n], "base": x[None, n:]}
            simplicial = two_simplicial(own, sets)[0]
            values = x[n:] @ own["value_kernel"]
            name = f"simplicial_normalization_{iteration}"
            simplicial = equations.normalized(
                np.concatenate([simplicial, values]), weights, name
            )
            new = both.copy()
            for i, x_i in enumerate(x):
                # Only virtual entities attend to virtual ones.
                others = x[:n] if i < n else x
                attended = attention_of_one(x_i, others, weights)
                attended = np.concatenate([attended, simplicial[i]])
                new[i] = updated(both[i], attended, weights, iteration)
            both = new
        outputs = np.zeros_like(inputs["entities"])
        outputs[valid] = both[:n]
        return outputs, both[n:]

    return reference


class VirtualEntitiesTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            VirtualEntities,
            init_kwargs={"num_entities": 3, "embeddings_initializer": "normal"},
            reference=lambda weights, inputs, mask=None: np.stack(
                [weights["embeddings"] for _ in inputs]
            ),
            output_mask=lambda mask: (None,),
            expected_output_shape=(2, 3, 5),
            expected_num_trainable_weights=1,
        )


class RelationalTransformerBlockTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            RelationalTransformerBlock,
            init_kwargs={**RELATIONAL, "kernel_initializer": "he_normal"},
            reference=relational_in_loops(1),
            output_mask=lambda mask: mask,
            attention_scores_shape=(2, 1, HEADS, 4, 4),
            expected_output_shape=(2, 4, 5),
            expected_num_trainable_weights=3 + 4 + 4,
        )

    def test_moves_with_its_entities(self):
        layer = RelationalTransformerBlock(**RELATIONAL, num_iterations=2)
        entities, order = random_array(2, 6, 5), np.array([2, 5, 0, 4, 1, 3])
        expected = array(layer(entities))[:, order]
        self.assertAllClose(layer(entities[:, order]), expected, atol=1e-5)


class SimplicialTransformerBlockTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            SimplicialTransformerBlock,
            init_kwargs={**SIMPLICIAL, "kernel_initializer": "he_normal"},
            input_shape={
                "entities_shape": (2, 4, 5),
                "virtual_entities_shape": (2, 3, 5),
            },
            second_input_shape={
                "entities_shape": (2, 6, 5),
                "virtual_entities_shape": (2, 2, 5),
            },
            reference=simplicial_in_loops(1),
            output_mask=lambda mask: (mask, None),
            attention_scores_shape=(
                (2, 1, HEADS, 4, 4),
                (2, 1, HEADS, 3, 7),
                (2, 1, SIMPLICIAL_HEADS, 4, 3, 3),
            ),
            expected_output_shape=((2, 4, 5), (2, 3, 5)),
            expected_num_trainable_weights=3 + 5 + 4 + 6,
            expected_output_dtype=("float32", "float32"),
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
        weights = weights_of(layer)
        for weight in relational.weights:
            value = weights[weight.path.split("/", 1)[1]]
            weight.assign(value[: weight.shape[0]])
        alone, _ = layer(entities, random_array(2, 3, 5, seed=1))
        self.assertAllClose(alone, relational(entities), atol=1e-5)

    def test_moves_with_its_entities(self):
        layer = SimplicialTransformerBlock(**SIMPLICIAL, num_iterations=2)
        inputs = random_array(2, 6, 5), random_array(2, 3, 5, seed=1)
        orders = np.array([2, 5, 0, 4, 1, 3]), np.array([2, 0, 1])
        moved = [x[:, order] for x, order in zip(inputs, orders, strict=True)]
        found = zip(layer(*moved), layer(*inputs), orders, strict=True)
        for output, value, order in found:
            self.assertAllClose(output, array(value)[:, order], atol=1e-5)


def check_iterations(cls, arguments, reference, inputs, num_weights):
    """They share all weights but those of the normalizations."""
    config = cls(**arguments, num_iterations=3).get_config()
    layer = cls.from_config(config)
    shapes = [x.shape for x in keras.tree.flatten(inputs)]
    with_random_weights(layer, *shapes)
    assert len(layer.trainable_weights) == num_weights
    assert_equals(layer, reference, inputs, atol=1e-4)
    _, scores = apply(layer, inputs, return_attention_scores=True)
    assert {score.shape[1] for score in keras.tree.flatten(scores)} == {3}


def test_relational_iterations():
    check_iterations(
        RelationalTransformerBlock,
        RELATIONAL,
        relational_in_loops(3),
        random_array(2, 4, 5),
        num_weights=3 + 4 + 3 * 4,
    )


def test_simplicial_iterations():
    virtual = random_array(2, 3, 5, seed=1)
    check_iterations(
        SimplicialTransformerBlock,
        SIMPLICIAL,
        simplicial_in_loops(3),
        {"entities": random_array(2, 4, 5), "virtual_entities": virtual},
        num_weights=3 + 5 + 4 + 3 * 6,
    )


def test_an_initializer_may_be_a_plain_function():
    def threes(shape, dtype=None):
        return 3 * ops.ones(shape, dtype)

    arguments = {**RELATIONAL, "kernel_initializer": threes}
    relational = RelationalTransformerBlock(**arguments)
    relational.build((2, 4, 8))
    simplicial = SimplicialTransformerBlock(**{**SIMPLICIAL, **arguments})
    simplicial.build((2, 4, 8), (2, 2, 8))
    part = simplicial.simplicial_attention
    for kernel in (relational.hidden.kernel, part.value_kernel):
        assert (array(kernel.value) == 3).all()
