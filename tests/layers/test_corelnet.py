import equations
import numpy as np
import pytest
from layer_contract import CHECKS
from layer_contract import OTHER_ARGUMENTS
from layer_contract import LayerContract
from layers_for_tests import array
from layers_for_tests import random_array

from keras_relational.layers import CoRelNet

CAUSAL = (True, False)


def similarities_in_loops(causal):
    """Each pair of entities in turn."""

    @equations.each_example
    def reference(weights, inputs, valid):
        n = len(inputs)
        rows = np.zeros((n, n))
        for i in valid:
            others = [j for j in valid if j <= i or not causal]
            rows[i, others] = equations.softmax(
                [inputs[i] @ inputs[j] for j in others]
            )
        return rows[np.tril_indices(n)] if causal else rows.ravel()

    return reference


class CoRelNetTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract_of_earlier_entities(self):
        self.run_contract(True, 10)

    @pytest.mark.any_backend
    def test_contract_of_all_entities(self):
        self.run_contract(False, 16, OTHER_ARGUMENTS)

    def run_contract(self, causal, size, checks=CHECKS):
        self.run_layer_contract(
            CoRelNet,
            checks=checks,
            init_kwargs={"causal": causal},
            reference=similarities_in_loops(causal),
            attention_scores_shape=(2, 4, 4),
            expected_output_shape=(2, size),
            expected_num_trainable_weights=0,
            fixed_size=True,
        )

    def test_other_features_with_the_same_products_change_nothing(self):
        """Rotations and reflections keep all dot products."""
        entities = random_array(3, 4, 5)
        rotation, _ = np.linalg.qr(random_array(5, 5, seed=1))
        for causal in CAUSAL:
            layer = CoRelNet(causal)
            self.assertAllClose(layer(entities @ rotation), layer(entities))
            self.assertNotAllClose(layer(2 * entities), layer(entities))

    def test_rows_and_columns_move_with_the_entities(self):
        entities, order = random_array(3, 4, 5), np.array([2, 0, 3, 1])
        layer = CoRelNet(causal=False)
        _, scores = layer(entities, return_attention_scores=True)
        _, moved = layer(entities[:, order], return_attention_scores=True)
        scores = array(scores)
        self.assertAllClose(moved, scores[:, order][:, :, order])
