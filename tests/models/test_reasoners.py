import keras
import numpy as np
import pytest
from layers_for_tests import random_array

from keras_relational import models
from keras_relational.models.reasoners import SORTERS
from keras_relational.models.reasoners import greedy_decode
from keras_relational.models.reasoners import shift_right

# Their outputs see similarities alone.
SYMMETRIC = ("corelnet", "relational_convolution")


def outputs(model, inputs):
    return keras.ops.convert_to_numpy(model(inputs))


@pytest.mark.parametrize("reasoner", models.SET_REASONERS)
def test_classifier(reasoner):
    model = models.set_classifier(reasoner, 3, 5, num_classes=4)
    entities = random_array(6, 3, 5)
    logits = outputs(model, entities)
    assert logits.shape == (6, 4)
    assert models.roles(model).outputs == {"logits": "logits"}
    for name in ("embedding", "reasoner", "hidden", "logits"):
        assert models.part(model, name).name == name
    # Each entity counts, and which comes first.
    for place in range(3):
        changed = entities.copy()
        changed[:, place] += 1
        assert np.abs(outputs(model, changed) - logits).max() > 1e-4
    if reasoner not in SYMMETRIC:
        turned = outputs(model, entities[:, ::-1])
        assert np.abs(turned - logits).max() > 1e-4


def test_slots_have_no_order():
    model = models.set_classifier("slot_attention", 3, 5)
    slots = model.get_layer("reasoner").output
    rest = keras.Model(slots, model.output)
    slots = random_array(6, *slots.shape[1:])
    logits = outputs(rest, slots)
    turned = outputs(rest, slots[:, ::-1])
    np.testing.assert_allclose(turned, logits, atol=1e-6)
    slots[:, 1] += 1
    assert np.abs(outputs(rest, slots) - logits).max() > 1e-4


@pytest.mark.parametrize("reasoner", SORTERS)
def test_sorter_sees_all_entities_and_only_earlier_places(reasoner):
    keras.utils.set_random_seed(0)
    model = models.sorter(reasoner, 4, 5)
    entities = random_array(6, 4, 5)
    places = np.tile(np.array([4, 2, 0, 3], "int32"), (6, 1))
    logits = outputs(model, (entities, places))
    assert logits.shape == (6, 4, 4)
    for place in range(4):
        changed = entities.copy()
        changed[:, place] += 1
        assert np.abs(outputs(model, (changed, places)) - logits).max() > 1e-4
    others = places.copy()
    others[:, 2] = 1
    changed = outputs(model, (entities, others))
    np.testing.assert_allclose(changed[:, :2], logits[:, :2], atol=1e-5)
    assert np.abs(changed[:, 2:] - logits[:, 2:]).max() > 1e-3


@pytest.mark.parametrize("build", [models.set_classifier, models.sorter])
def test_every_weight_is_trained(build):
    names = models.SET_REASONERS
    if build is models.sorter:
        names = SORTERS
    for name in names:
        model = build(name, 4, 5)
        inputs, labels = random_array(8, 4, 5), np.arange(8) % 2
        if build is models.sorter:
            labels = np.tile(np.arange(4), (8, 1))
            inputs = inputs, np.tile(np.arange(4)[::-1] + 1, (8, 1))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, run_eagerly=True)
        before = [keras.ops.copy(x) for x in model.trainable_variables]
        model.fit(inputs, labels, verbose=0)
        for x, old in zip(model.trainable_variables, before, strict=True):
            assert np.abs(np.subtract(x.numpy(), old)).max() > 0, x.path


def test_initial_weights_come_from_the_seed():
    weights = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        weights.append(models.sorter("abstractor", 4, 5).get_weights())
    for one, same in zip(*weights[:2], strict=True):
        np.testing.assert_array_equal(one, same)
    assert (weights[0][0] != weights[2][0]).any()


def test_refuses_unknown_reasoners_and_sizes():
    with pytest.raises(ValueError, match="Unknown reasoner 'gru'"):
        models.set_classifier("gru", 2, 32)
    with pytest.raises(ValueError, match="Unknown reasoner 'lstm'"):
        models.sorter("lstm", 10, 12)
    with pytest.raises(ValueError, match="`num_entities` must be a positive"):
        models.set_classifier("lstm", 0, 32)


class Sorter(keras.Model):
    """Sorts by the first feature, and goes on from the place before."""

    def call(self, inputs):
        entities, places = inputs
        ops = keras.ops
        order = ops.argsort(entities[..., 0], axis=1)
        n = order.shape[1]
        # The rank after that of the place it was given.
        ranks = ops.argsort(order, axis=1)
        ranks = ops.concatenate([ranks, -ops.ones_like(ranks[:, :1])], axis=1)
        rank = ops.take_along_axis(ranks, places, axis=1) + 1
        place = ops.take_along_axis(order, ops.minimum(rank, n - 1), axis=1)
        return ops.one_hot(place, n)


def test_places_decoded_go_on_from_their_own():
    entities = np.random.default_rng(0).normal(size=(7, 5, 3))
    places = greedy_decode(Sorter(), entities, batch_size=3)
    np.testing.assert_array_equal(places, entities[..., 0].argsort(1))
    assert places.dtype == np.int32


def test_decoder_inputs_begin_with_nothing():
    places = np.array([[1, 0, 2], [2, 1, 0]])
    expected = [[3, 1, 0], [3, 2, 1]]
    np.testing.assert_array_equal(shift_right(places), expected)
