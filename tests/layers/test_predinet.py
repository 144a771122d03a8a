import equations
import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract
from layers_for_tests import array
from layers_for_tests import random_array
from layers_for_tests import with_random_weights

from keras_relational.layers import AppendCoordinates
from keras_relational.layers import PrediNet

NUM_HEADS, NUM_RELATIONS, KEY_DIM = 2, 3, 7
ARGUMENTS = {
    "num_heads": NUM_HEADS,
    "num_relations": NUM_RELATIONS,
    "key_dim": KEY_DIM,
}


@equations.each_example
def predinet_in_loops(weights, inputs, valid):
    """Section 2 of the paper, one head after the other."""
    entities = np.zeros(inputs.shape)
    entities[valid] = inputs[valid]
    queries = entities.flatten() @ weights["query_kernel"]
    outputs = []
    for head in range(NUM_HEADS):
        first, second = (
            attended(
                equations.part(query, head, NUM_HEADS), entities, valid, weights
            )
            for query in np.split(queries, 2)
        )
        for relation in range(NUM_RELATIONS):
            kernel = weights["relation_kernel"][:, relation]
            outputs.append(first @ kernel - second @ kernel)
        outputs.extend([first[-2], first[-1], second[-2], second[-1]])
    return np.array(outputs)


def attended(query, entities, valid, weights):
    if not valid.size:
        return np.zeros(entities.shape[1])
    keys = entities[valid] @ weights["key_kernel"]
    return equations.softmax([query @ key for key in keys]) @ entities[valid]


def random_predinet(shape):
    """A layer whose attention is neither uniform nor on one entity only."""
    return with_random_weights(PrediNet(**ARGUMENTS), shape, scale=0.3)


class PrediNetTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            PrediNet,
            init_kwargs={**ARGUMENTS, "kernel_initializer": "he_normal"},
            reference=predinet_in_loops,
            attention_scores_shape=((2, NUM_HEADS, 4), (2, NUM_HEADS, 4)),
            expected_output_shape=(2, 14),
            expected_num_trainable_weights=3,
            fixed_size=True,
        )

    def test_output_size_and_number_of_parameters(self):
        k, j, g, n, m = 4, 6, 3, 5, 8
        layer = PrediNet(num_heads=k, num_relations=j, key_dim=g)
        assert layer(random_array(2, n, m)).shape == (2, k * 10)
        # Each head has its own W_Q1 and W_Q2. All heads share W_K and W_S.
        assert layer.count_params() == 2 * k * (n * m * g) + m * g + m * j

    def test_swapped_queries_negate_distances_and_swap_positions(self):
        layer, entities = random_predinet((3, 4, 5)), random_array(3, 4, 5)
        before = layer.propositions(entities)
        _, scores = layer(entities, return_attention_scores=True)

        first, second = ops.split(layer.query_kernel, 2, axis=1)
        layer.query_kernel.assign(ops.concatenate([second, first], axis=1))

        after = layer.propositions(entities)
        _, swapped = layer(entities, return_attention_scores=True)
        self.assertNotAllClose(before["distances"], 0)
        self.assertAllClose(after["distances"], -before["distances"])
        self.assertAllClose(after["positions_1"], before["positions_2"])
        self.assertAllClose(after["positions_2"], before["positions_1"])
        self.assertAllClose(swapped[0], scores[1])
        self.assertAllClose(swapped[1], scores[0])

    def test_equal_queries_find_no_difference(self):
        layer = random_predinet((3, 4, 5))
        first, _ = ops.split(layer.query_kernel, 2, axis=1)
        layer.query_kernel.assign(ops.concatenate([first, first], axis=1))
        propositions = layer.propositions(random_array(3, 4, 5))
        self.assertAllClose(propositions["distances"], np.zeros((3, 2, 3)))
        self.assertAllEqual(
            propositions["positions_1"], propositions["positions_2"]
        )

    def test_propositions_are_the_outputs_head_by_head(self):
        layer, entities = random_predinet((3, 4, 5)), random_array(3, 4, 5)
        mask = np.array([[True, True, False, False]] * 3)
        for given in (None, mask):
            outputs = array(layer(entities, mask=given))
            outputs = outputs.reshape(3, NUM_HEADS, NUM_RELATIONS + 4)
            propositions = layer.propositions(entities, mask=given)
            names = ("distances", "positions_1", "positions_2")
            found = np.concatenate(
                [array(propositions[name]) for name in names], axis=-1
            )
            np.testing.assert_array_equal(found, outputs)

    def test_propositions_in_a_model(self):
        layer, entities = random_predinet((3, 4, 5)), random_array(3, 4, 5)
        inputs = keras.Input((4, 5))
        model = keras.Model(inputs, layer.propositions(inputs))
        assert {k: v.shape for k, v in model.output.items()} == {
            "positions_1": (None, NUM_HEADS, 2),
            "positions_2": (None, NUM_HEADS, 2),
            "distances": (None, NUM_HEADS, NUM_RELATIONS),
        }
        expected = layer.propositions(entities)
        for name, values in model(entities).items():
            self.assertAllClose(values, expected[name])

    def test_positions_are_attended_coordinates(self):
        image = random_array(3, 2, 3, 4)
        with_coordinates = AppendCoordinates(low=-0.5, high=0.8)(image)
        layer = random_predinet(with_coordinates.shape)
        propositions = layer.propositions(with_coordinates)
        _, scores = layer(with_coordinates, return_attention_scores=True)
        coordinates = ops.reshape(with_coordinates[..., -2:], (3, 6, 2))
        for number in (1, 2):
            positions = array(propositions[f"positions_{number}"])
            self.assertAllClose(
                positions, ops.matmul(scores[number - 1], coordinates)
            )
            assert np.all(positions >= -0.5)
            assert np.all(positions <= 0.8)
