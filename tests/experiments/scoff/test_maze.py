import keras
import numpy as np
import pytest

from experiments.scoff.maze import MazeAgent
from experiments.scoff.maze import grow
from experiments.scoff.maze import memory
from keras_relational import models
from keras_relational.agents.actor_learner import ActorLearner
from keras_relational.environments.goto_object_maze import GotoObjectMaze
from keras_relational.environments.tf_agents_environment import (
    WorldTFEnvironment,
)


@pytest.mark.parametrize("dynamics", ["lstm", "gru"])
def test_memories_of_mazes(dynamics):
    chosen = 8, 2, "separate", dynamics
    cell = memory("scoff", *chosen)
    assert (cell.units, cell.num_object_files, cell.num_schemata) == (8, 1, 2)
    assert (cell.schema_keys, cell.dynamics) == ("separate", dynamics)
    # Messages are added to the state, and nothing bounds that of a GRU.
    assert cell.num_message_heads == {"lstm": 4, "gru": 0}[dynamics]
    assert (
        cell.num_heads * cell.value_dim == {"lstm": 1024, "gru": 64}[dynamics]
    )
    assert memory("gru", *chosen).units == 8
    equal = memory("gru_of_equal_size", *chosen)
    cell.build((None, 256))
    equal.build((None, 256))
    assert equal.count_params() == pytest.approx(cell.count_params(), rel=0.05)


def test_other_memories_of_mazes_are_refused():
    for arguments, words in (
        ({"dynamics": "rnn"}, "'rnn'"),
        ({"schema_keys": "none"}, "'none'"),
        ({"num_schemata": 0}, "num_schemata=0"),
    ):
        with pytest.raises(ValueError, match=words):
            memory(**arguments)


def agent(num_schemata):
    cell = memory("scoff", 8, num_schemata, "separate", "gru")
    return models.boxworld_agent("convolutional", (5, 5, 3), 4, cell=cell)


def test_schemata_may_start_as_a_trained_one(tmp_path):
    keras.utils.set_random_seed(0)
    one, four = agent(num_schemata=1), agent(num_schemata=4)
    one.save(tmp_path / "one.keras")
    inputs = {
        x.name: np.ones([3 if n is None else n for n in x.shape], x.dtype)
        for x in one.inputs
    }
    keys = [w for w in four.weights if w.name.startswith("schema_key")]
    before = [np.array(key) for key in keys]
    grow(four, tmp_path / "one.keras")
    # Whichever schema an object file chooses, it does what the only one did.
    for of_one, of_four in zip(
        keras.tree.flatten(one(inputs)),
        keras.tree.flatten(four(inputs)),
        strict=True,
    ):
        np.testing.assert_allclose(of_one, of_four, atol=1e-6)
    assert [key.shape[0] for key in keys] == [4, 4]
    for key, old in zip(keys, before, strict=True):
        np.testing.assert_array_equal(key, old)


def test_keys_may_learn_faster():
    world = GotoObjectMaze(4)
    steps = []
    for rate in (1.0, 10.0):
        keras.utils.set_random_seed(0)
        cell = memory("scoff", 8, 2, "separate", "gru")
        model = models.boxworld_agent(
            "convolutional", world.image_shape, len(world.actions), cell=cell
        )
        before = [np.array(w) for w in model.trainable_variables]
        environment = WorldTFEnvironment(world, 2, seed=0)
        of_environment = environment.time_step_spec(), environment.action_spec()
        agent = MazeAgent(
            *of_environment, model, learning_rate=100.0, key_rate=rate
        )
        learner = ActorLearner(agent, environment, unroll_length=3)
        learner.train()
        after = [np.array(w) for w in model.trainable_variables]
        steps.append([y - x for x, y in zip(before, after, strict=True)])
    names = [w.name for w in model.trainable_variables]
    keys = {
        *("schema_query_kernel", "schema_query_bias"),
        *("schema_key_kernel", "schema_key_bias"),
    }
    assert keys < set(names)
    for name, plain, faster in zip(names, *steps, strict=True):
        factor = 10 if name in keys else 1
        np.testing.assert_allclose(faster, factor * plain, 1e-3, atol=1e-4)
        if name in keys:
            assert np.abs(plain).max() > 1e-2, name
