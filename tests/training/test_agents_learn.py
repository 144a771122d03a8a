"""Learning runs: some 7 and 18 minutes on two cores."""

import agents_for_tests as agents

# isort: split
import keras
import numpy as np
import pytest

from keras_relational import analysis
from keras_relational import models
from keras_relational.training import agent_runs
from keras_relational.training import impala


@pytest.mark.slow
@pytest.mark.parametrize("network", ["relational", "simplicial"])
def test_smallest_boxworld_is_solved(network):
    """In at most twice the fewest moves; at random it takes ten times."""
    environment = agents.small_environment(32, 0, max_episode_steps=120)
    world = environment.world
    keras.utils.set_random_seed(0)
    model = models.boxworld_agent(network, world.image_shape)
    agent = impala.ImpalaAgent(
        environment.time_step_spec(), environment.action_spec(), model
    )
    training = impala.ActorLearner(agent, environment)
    curves = agent_runs.train_agent(training, 8_000_000, 10.0)
    assert curves["solved"][-1] > 0.99
    seeds = 10**9 + np.arange(1_000)
    played = analysis.play(world, seeds, model)
    shortest = analysis.shortest_lengths(world, seeds)
    assert played["solved"].mean() > 0.99
    assert played["lengths"].mean() <= 2 * shortest.mean()
    random = analysis.play(world, seeds)
    assert random["lengths"].mean() > 10 * shortest.mean()
