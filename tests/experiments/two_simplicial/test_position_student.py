"""Positions of BoxWorld have the answers that one reads off their images."""

import keras
import numpy as np
import pytest

from experiments.two_simplicial.pictures import state_from_images
from experiments.two_simplicial.position_student import PositionBatches
from experiments.two_simplicial.position_student import position_student
from keras_relational import models
from keras_relational.environments import boxworld

SMALLEST = boxworld.BoxWorld(3, 6, (1, 1), (0, 0))
WORLDS = {
    "bridge": boxworld.BridgeBoxWorld(bridge_probability=0.8),
    "branches": boxworld.BoxWorld(7, 12, (2, 3), (1, 2)),
}


def batches_of(world, initial_batch=30, seed=3):
    return PositionBatches(world, 16, initial_batch, seed)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_answers_are_those_of_the_board_in_the_image(world):
    images, answers = batches_of(world)[0]
    state = state_from_images(world, images)
    np.testing.assert_array_equal(
        answers["policy"], np.asarray(world.expert_moves(state))
    )
    assert answers["policy"].any(1).all()
    losing = np.zeros((len(images), world.rows, world.columns + 1), bool)
    for image, slot in np.argwhere(np.asarray(state["losing"])):
        row, column = divmod(slot, world.slot_columns)
        losing[image, 1 + 2 * row, 2 + 3 * column] = True
    np.testing.assert_array_equal(
        answers["losing"], losing[:, 1:-1, 1:-1].reshape(len(images), -1)
    )
    assert answers["losing"].any()
    np.testing.assert_allclose(
        answers["attention"].sum(-1).ravel(),
        boxworld.same_colour(images).any(-1).ravel(),
        rtol=1e-6,
    )


def test_a_batch_depends_on_the_seed_and_its_number_alone():
    world = WORLDS["bridge"]
    # The third is in another chunk of batches than the first.
    batches = batches_of(world)
    first, _, third = (batches[i] for i in range(3))
    again = batches_of(world, initial_batch=32)[0]
    np.testing.assert_equal(third, again)
    images = [first[0], third[0], batches_of(world, seed=4)[2][0]]
    flat = np.concatenate(images).reshape(48, -1)
    assert len(np.unique(flat, axis=0)) == 48


def test_a_batch_belongs_to_the_caller():
    """Asked again it is the same, whatever was written into it."""
    batches = batches_of(SMALLEST)
    first = keras.tree.map_structure(np.copy, batches[0])
    for x in keras.tree.flatten(batches[0]):
        x[...] = 1
    np.testing.assert_equal(batches[0], first)


@pytest.mark.parametrize("network", ["relational", "simplicial"])
def test_the_student_is_the_agent_with_two_hints(network):
    agent = models.boxworld_agent(network, SMALLEST.image_shape)
    student = position_student(agent, 1e-3, attention_weight=0.5)
    data = PositionBatches(SMALLEST, 8)
    images, answers = data[0]
    found = {k: np.asarray(x) for k, x in student(images).items()}
    np.testing.assert_allclose(
        found["policy"], np.asarray(agent(images)[0]), atol=1e-5
    )
    np.testing.assert_allclose(found["attention"].sum(-1), 1, rtol=1e-5)
    policy = np.exp(found["policy"])
    policy /= policy.sum(-1, keepdims=True)
    expected = -np.log((policy * answers["policy"]).sum(-1)).mean()
    entropies = np.logaddexp(0, found["losing"])  # No lock loses.
    expected += entropies.sum(-1).mean()
    rows = answers["attention"].any(-1)
    # The key and the lock of the gem, until the key is taken.
    assert set(rows.sum((1, 2))) == {0, 2}
    logs = -(answers["attention"] * np.log(found["attention"])).sum(-1)
    rows = np.maximum(rows.sum((1, 2)), 1)
    expected += 0.5 * (logs.sum((1, 2)) / rows).mean()
    loss = student.evaluate(images, answers, verbose=0, return_dict=True)
    np.testing.assert_allclose(loss["loss"], expected, rtol=1e-4)


@pytest.mark.slow
def test_all_of_the_agent_but_its_value_learns():
    agent = models.boxworld_agent("relational", SMALLEST.image_shape)
    before = agent.get_weights()
    history = position_student(agent, 1e-3).fit(
        PositionBatches(SMALLEST, 8),
        steps_per_epoch=32,
        epochs=2,
        shuffle=False,
        verbose=0,
    )
    first, second = history.history["policy_loss"]
    assert second < first
    for weight, old in zip(agent.trainable_weights, before, strict=True):
        changed = (np.asarray(weight) != old).any()
        assert changed == ("value_column" not in weight.path), weight.path


def test_the_student_has_the_policy_of_the_agent():
    keras.config.set_dtype_policy("mixed_float16")
    agent = models.boxworld_agent("relational", (3, 7, 3))
    keras.config.set_dtype_policy("float32")
    student = position_student(agent, learning_rate=5e-4)
    assert student.dtype_policy.name == "mixed_float16"
    scaled = keras.optimizers.LossScaleOptimizer
    assert isinstance(student.optimizer, scaled)
