"""Inner-product relations, and patterns of them within groups."""

import itertools

import equations
import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import CHECKS
from layer_contract import OTHER_ARGUMENTS
from layer_contract import LayerContract
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import assert_equals
from layers_for_tests import random_array

from keras_relational.layers import InnerProductRelations
from keras_relational.layers import RelationalConvolution

NUM_RELATIONS, KEY_DIM, FILTERS, SIZE = 3, 2, 4, 3


@equations.each_example
def relations_in_loops(weights, inputs, valid):
    outputs = np.zeros((len(inputs), len(inputs), NUM_RELATIONS))
    queries = inputs @ weights["query_kernel"]
    keys = inputs @ weights.get("key_kernel", weights["query_kernel"])
    for i, j in itertools.product(valid, repeat=2):
        for r in range(NUM_RELATIONS):
            query = equations.part(queries[i], r, NUM_RELATIONS)
            outputs[i, j, r] = query @ equations.part(keys[j], r, NUM_RELATIONS)
    return outputs


POOLING = {
    None: lambda matches: matches[0],
    "mean": lambda matches: np.mean(matches, axis=0),
    "max": lambda matches: np.max(matches, axis=0),
}


def convolution_in_loops(groups, pooling=None):
    """`groups(n)` gives tuples of positions."""

    @equations.each_example
    def reference(weights, pairs, valid):
        outputs = []
        for group in groups(len(pairs)):
            matches = []
            # The first order is that of the group itself.
            for order in itertools.permutations(group):
                table = [[pairs[i, j] for j in order] for i in order]
                # The sum over both members and over all relations.
                matches.append(np.tensordot(table, weights["kernel"], axes=3))
            is_valid = set(group) <= set(valid)
            outputs.append(POOLING[pooling](matches) * is_valid)
        return np.array(outputs)

    return reference


class InnerProductRelationsTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_contract(False, 2)

    @pytest.mark.any_backend
    def test_contract_of_symmetric_ones(self):
        self.run_contract(True, 1, OTHER_ARGUMENTS)

    def run_contract(self, symmetric, num_weights, checks=CHECKS):
        self.run_layer_contract(
            InnerProductRelations,
            checks=checks,
            init_kwargs={
                "num_relations": NUM_RELATIONS,
                "key_dim": KEY_DIM,
                "symmetric": symmetric,
                "kernel_initializer": "he_normal",
            },
            reference=relations_in_loops,
            output_mask=lambda mask: mask,
            expected_output_shape=(2, 4, 4, NUM_RELATIONS),
            expected_num_trainable_weights=num_weights,
        )

    def test_symmetry_and_default_size(self):
        entities = random_array(3, 5, 4)
        for symmetric in (True, False):
            layer = InnerProductRelations(2, symmetric=symmetric)
            found = array(layer(entities))
            assert layer.query_kernel.shape == (4, 8)
            turned = found.swapaxes(1, 2)
            assert np.allclose(found, turned, atol=1e-5) == symmetric


class RelationalConvolutionTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        def groups(n):
            return list(itertools.combinations(range(n), SIZE))

        self.run_layer_contract(
            RelationalConvolution,
            init_kwargs={
                "filters": FILTERS,
                "graphlet_size": SIZE,
                "pooling": "max",
                "kernel_initializer": "he_normal",
            },
            input_shape=(2, 5, 5, NUM_RELATIONS),
            second_input_shape=(2, 7, 7, NUM_RELATIONS),
            fixed_size=True,
            reference=convolution_in_loops(groups, "max"),
            output_mask=lambda mask: mask[:, groups(5)].all(axis=-1),
            expected_output_shape=(2, 10, FILTERS),
            expected_num_trainable_weights=1,
        )


@pytest.mark.parametrize("pooling", POOLING)
@pytest.mark.parametrize(
    ("groups", "size"),
    [
        ("permutations", 2),
        ("combinations", 1),
        ([(0, 2, 1), (3, 1, 2)], 3),
        ([[3, 0]], 2),
    ],
)
def test_groups_and_pooling(groups, size, pooling):
    layer = RelationalConvolution(5, size, groups, pooling)
    members = groups
    if isinstance(groups, str):
        members = list(getattr(itertools, groups)(range(4), size))
    reference = convolution_in_loops(lambda n: members, pooling)
    for mask in (None, np.array([[True, True, False, True], [True] * 4])):
        assert_equals(layer, reference, random_array(2, 4, 4, 3), mask)
    config = layer.get_config()
    assert RelationalConvolution.from_config(config).get_config() == config


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_with_pooling_the_order_of_entities_only_names_the_groups(pooling):
    entities = random_array(2, 5, 6)
    order = np.array([3, 0, 4, 1, 2])
    relations = InnerProductRelations(3)
    layer = RelationalConvolution(4, 3, pooling=pooling)
    found = array(layer(relations(entities)))
    turned = array(layer(relations(entities[:, order])))
    groups = list(itertools.combinations(range(5), 3))
    places = [groups.index(tuple(sorted(order[list(g)]))) for g in groups]
    assert_close(turned, found[:, places], atol=1e-4)


def test_without_pooling_permutations_are_all_orders():
    """The sum over groups does not depend on the order of entities."""
    entities = random_array(2, 5, 6)
    relations = InnerProductRelations(3)
    layer = RelationalConvolution(4, 2, "permutations")
    found = ops.sum(layer(relations(entities)), axis=1)
    turned = ops.sum(layer(relations(entities[:, ::-1])), axis=1)
    assert_close(turned, found, atol=1e-4)


def test_one_convolution_after_another():
    """Groups are the entities of the next: relations between relations."""
    entities = keras.Input((5, 6))
    x = RelationalConvolution(8, 2)(InnerProductRelations(3)(entities))
    x = RelationalConvolution(7, 3)(InnerProductRelations(4)(x))
    assert x.shape == (None, 120, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": "subsets"}, "one of combinations, permutations"),
        ({"groups": [(0, 1)]}, "A group has 3 different entities.*(0, 1)"),
        ({"groups": [(0, 1, 1)]}, "A group has 3 different entities"),
        ({"groups": [(0, 1, 4)]}, "positions 0 to 3"),
        ({"groups": [(0, 1, -1)]}, "positions 0 to 3"),
        ({"groups": []}, "positions 0 to 3"),
        ({"graphlet_size": 5}, "groups of 5 entities"),
        ({"pooling": "sum"}, "None or one of mean, max"),
    ],
)
def test_refuses_bad_arguments(arguments, message):
    arguments = {"filters": 2, "graphlet_size": 3, **arguments}
    with pytest.raises(ValueError, match=message):
        RelationalConvolution(**arguments).build((None, 4, 4, 3))


def test_refuses_bad_shapes():
    layer = RelationalConvolution(2, 2)
    for shape in ((None, 4, 4), (None, None, None, 3), (None, 4, 5, 3)):
        with pytest.raises(ValueError, match=r"takes relations \(batch, n, n"):
            layer.build(shape)
