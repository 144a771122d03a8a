import itertools

import equations
import keras
import numpy as np
import pytest
from layer_contract import LayerContract
from layers_for_tests import assert_equals
from layers_for_tests import random_array

from keras_relational.layers import RelationNetwork

UNITS, HIDDEN_UNITS = 3, 7
ARGUMENTS = {"units": UNITS, "hidden_units": HIDDEN_UNITS}


@equations.each_example
def relation_network_in_loops(weights, inputs, valid):
    """Both layers on every concatenated pair, in a loop over pairs."""
    # The kernel of the hidden layer: rows of the sender, then the receiver.
    hidden_kernel = np.concatenate(
        [weights["sender_kernel"], weights["receiver_kernel"]]
    )
    outputs = np.zeros(UNITS)
    for sender, receiver in itertools.product(inputs[valid], repeat=2):
        pair = np.concatenate([sender, receiver])
        hidden = np.maximum(pair @ hidden_kernel, 0)
        relation = np.maximum(hidden @ weights["output_kernel"], 0)
        outputs += relation / len(valid) ** 2
    return outputs


class RelationNetworkTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            RelationNetwork,
            init_kwargs={**ARGUMENTS, "kernel_initializer": "he_normal"},
            reference=relation_network_in_loops,
            expected_output_shape=(2, UNITS),
            expected_num_trainable_weights=3,
        )

    def test_order_of_entities_does_not_matter(self):
        layer, entities = RelationNetwork(**ARGUMENTS), random_array(3, 4, 5)
        outputs = layer(entities)
        self.assertNotAllClose(outputs, 0)
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(4)
            self.assertAllClose(layer(entities[:, order]), outputs)

    def test_training_computes_the_same(self):
        layer, reference = (
            RelationNetwork(**ARGUMENTS),
            relation_network_in_loops,
        )
        entities = random_array(3, 4, 5)
        mask = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]], bool)
        for given, flag in itertools.product((None, mask), (True, False)):
            assert_equals(layer, reference, entities, given, training=flag)

    def test_sender_and_receiver_may_change_roles(self):
        layer, entities = RelationNetwork(**ARGUMENTS), random_array(3, 4, 5)
        outputs = layer(entities)
        sender, receiver, _ = layer.get_weights()
        self.assertNotAllClose(sender, receiver)
        layer.sender_kernel.assign(receiver)
        layer.receiver_kernel.assign(sender)
        # Every pair appears in both orders.
        self.assertAllClose(layer(entities), outputs)

    def test_size_of_an_image_may_be_unknown(self):
        layer = RelationNetwork(**ARGUMENTS)
        inputs = keras.Input((None, None, 5))
        model = keras.Model(inputs, layer(inputs))
        assert model.output_shape == (None, UNITS)
        for size in (1, 3):
            image = random_array(2, size, 2, 5)
            of_set = layer(image.reshape(2, 2 * size, 5))
            self.assertAllClose(model(image), of_set)
