import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract

from keras_relational.layers import RelationNetwork

UNITS, HIDDEN_UNITS = 3, 7
ARGUMENTS = {"units": UNITS, "hidden_units": HIDDEN_UNITS}


def relation_network_in_loops(weights, inputs, mask=None):
    """Both layers on every concatenated pair, in a loop over pairs."""
    if mask is None:
        mask = np.ones(inputs.shape[:2], bool)
    # The kernel of the hidden layer: rows of the sender, then the receiver.
    hidden_kernel = np.concatenate(
        [weights["sender_kernel"], weights["receiver_kernel"]]
    )
    outputs = np.zeros((len(inputs), UNITS))
    for example, (entities, valid) in enumerate(zip(inputs, mask, strict=True)):
        real = entities[valid]
        for sender in real:
            for receiver in real:
                pair = np.concatenate([sender, receiver])
                hidden = np.maximum(pair @ hidden_kernel, 0)
                relation = np.maximum(hidden @ weights["output_kernel"], 0)
                outputs[example] += relation / len(real) ** 2
    return outputs


def random_entities(shape=(3, 4, 5)):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


class RelationNetworkTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            RelationNetwork,
            init_kwargs={**ARGUMENTS, "kernel_initializer": "he_normal"},
            input_shape=(2, 4, 5),
            second_input_shape=(2, 6, 5),
            fixed_size=False,
            reference=relation_network_in_loops,
            supports_masking=True,
            expected_output_shape=(2, UNITS),
            expected_output_dtype="float32",
            expected_num_trainable_weights=3,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )

    def test_order_of_entities_does_not_matter(self):
        layer, entities = RelationNetwork(**ARGUMENTS), random_entities()
        outputs = layer(entities)
        self.assertNotAllClose(outputs, 0)
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(4)
            self.assertAllClose(layer(entities[:, order]), outputs)

    def test_training_computes_the_same(self):
        layer, entities = RelationNetwork(**ARGUMENTS), random_entities()
        mask = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]], bool)
        for valid in (None, mask):
            outputs = layer(entities, mask=valid, training=True)
            self.assertAllClose(
                outputs, layer(entities, mask=valid, training=False)
            )
            weights = {v.name: ops.convert_to_numpy(v) for v in layer.weights}
            self.assertAllClose(
                outputs, relation_network_in_loops(weights, entities, valid)
            )

    def test_sender_and_receiver_may_change_roles(self):
        layer, entities = RelationNetwork(**ARGUMENTS), random_entities()
        outputs = layer(entities)
        sender, receiver, _ = layer.get_weights()
        self.assertNotAllClose(sender, receiver)
        layer.sender_kernel.assign(receiver)
        layer.receiver_kernel.assign(sender)
        # Every pair appears in both orders.
        self.assertAllClose(layer(entities), outputs)

    def test_image_is_a_set_of_any_size(self):
        image = random_entities((3, 2, 4, 5))
        layer = RelationNetwork(**ARGUMENTS)
        self.assertAllClose(layer(image), layer(image.reshape(3, 8, 5)))
        self.assertAllClose(
            layer(image[:, :, :3]), layer(image[:, :, :3].reshape(3, 6, 5))
        )

    def test_size_of_the_set_may_be_unknown(self):
        layer = RelationNetwork(**ARGUMENTS)
        for num_axes in (1, 2):
            inputs = keras.Input((*[None] * num_axes, 5))
            model = keras.Model(inputs, layer(inputs))
            assert model.output_shape == (None, UNITS)
            for size in (1, 3):
                entities = random_entities((2, *[size] * num_axes, 5))
                self.assertAllClose(model(entities), layer(entities))

    def test_one_entity_is_related_to_itself(self):
        layer = RelationNetwork(**ARGUMENTS)
        entities = random_entities((3, 1, 5))
        twice = ops.concatenate([entities, entities], axis=1)
        self.assertNotAllClose(layer(entities), 0)
        self.assertAllClose(layer(twice), layer(entities))


@pytest.mark.parametrize("argument", ["units", "hidden_units"])
@pytest.mark.parametrize("value", [0, -1, 2.0, "2", None, True])
def test_refuses_sizes_that_are_no_positive_integers(argument, value):
    message = f"`{argument}` must be a positive integer.*{argument}={value}"
    with pytest.raises(ValueError, match=message):
        RelationNetwork(**{**ARGUMENTS, argument: value})


@pytest.mark.parametrize("shape", [(3, 5), (3, 4, None), (1,) * 5])
def test_refuses_inputs_that_are_no_set(shape):
    layer = RelationNetwork(**ARGUMENTS, name="relations")
    with pytest.raises(ValueError, match=r"relations takes a set .* a fixed m"):
        layer(keras.Input(batch_shape=shape))


def test_a_seed_does_not_make_senders_and_receivers_alike():
    """With equal values they would have equal gradients, and stay equal."""
    layer = RelationNetwork(
        4, 5, kernel_initializer=keras.initializers.GlorotUniform(seed=3)
    )
    layer.build((None, 3, 6))
    sender, receiver = map(
        keras.ops.convert_to_numpy, (layer.sender_kernel, layer.receiver_kernel)
    )
    assert np.abs(sender - receiver).max() > 0.1


def test_another_last_axis_is_refused():
    layer = RelationNetwork(4, 5)
    layer.build((None, 3, 6))
    with pytest.raises(ValueError, match="incompatible"):
        layer(np.zeros((2, 3, 7), "float32"))
