"""IMPALA on many machines: actors on Ray, one learner.

`pip install 'keras_relational[distributed]'`.
"""

import os

from keras_relational.training import impala

# isort: split
import keras
import numpy as np
import tensorflow as tf
from tf_agents.metrics import tf_metrics
from tf_agents.utils import common

from keras_relational.layers.shared import check_positive_integers
from keras_relational.random_bits import random_bits


class DistributedActorLearner:
    """Learns from what actors on other machines have seen.

    To be used as `impala.ActorLearner`: each call of `train` makes one update,
    from the trajectory of the actor that has been ready first. Each actor has
    one order to act at a time, which it gets with the latest weights as soon as
    its last trajectory is taken: so no more trajectories wait than there are
    actors, and none is older than that.

    An actor that dies is replaced. The learner's checkpoint has all that it has
    learned, the steps that it has learned from, and how many actors there have
    been: continued, it counts no step twice, and starts actors with new seeds.

    Args:
        agent: An `ImpalaAgent`.
        make_environment: Function from an integer seed to an environment as
            `ActorLearner` takes it, such as `functools.partial(
            WorldTFEnvironment, world, 32)`. It is sent to the actors.
        num_actors: Positive integer.
        unroll_length: As for `ActorLearner`.
        seed: Non-negative integer.
        num_cpus: Number of cores that Ray sets aside for an actor.

    Raises:
        ImportError: If Ray is not installed.
        RuntimeError: If there is no connection to a cluster.
        ValueError: If a number is not a positive integer.
    """

    def __init__(
        self,
        agent,
        make_environment,
        num_actors,
        unroll_length=40,
        seed=0,
        num_cpus=1,
    ):
        self._ray = _ray()
        if not self._ray.is_initialized():
            raise RuntimeError(
                "There is no connection to Ray. Call ray.init(address) to join "
                "a cluster, or ray.init() to start one on this machine; its "
                "ports are open to the network, guarded by Ray's token."
            )
        check_positive_integers(
            num_actors=num_actors, unroll_length=unroll_length
        )
        self.agent = agent
        self.num_actors = num_actors
        self.seed = seed
        self.environment_steps = tf_metrics.EnvironmentSteps()
        self.num_episodes = tf_metrics.NumberOfEpisodes()
        self.actors_started = tf.Variable(0, dtype=tf.int64)
        # How the loss of an actor, or of what it made, shows.
        exceptions = self._ray.exceptions
        self._lost = (
            exceptions.RayActorError,
            exceptions.WorkerCrashedError,
            exceptions.NodeDiedError,
            exceptions.ObjectLostError,
        )
        self._deaths = 0
        self._pending = {}
        self._new_actor = lambda seed: (
            self._ray.remote(_Actor)
            .options(num_cpus=num_cpus)
            .remote(
                agent.network.model.to_json(),
                make_environment,
                unroll_length,
                seed,
            )
        )

    def checkpointer(self, directory):
        """As for `ActorLearner`."""
        return common.Checkpointer(
            str(directory),
            max_to_keep=2,
            state=tf.nest.flatten(self.agent.state),
            metrics=[self.environment_steps, self.num_episodes],
            actors_started=self.actors_started,
        )

    def train(self):
        """Waits for a trajectory and learns from it.

        Returns:
            As `ActorLearner.train`.

        Raises:
            RuntimeError: If one actor after the other dies.
        """
        while len(self._pending) < self.num_actors:
            self._start_actor()
        trajectory, episodes = self._next_trajectory()
        info = self._learn(trajectory)
        return info, episodes

    def close(self):
        """Stops the actors."""
        for actor in self._pending.values():
            self._ray.kill(actor)
        self._pending = {}

    @tf.function(autograph=False)
    def _learn(self, trajectory):
        info = self.agent.learn(trajectory)
        for metric in (self.environment_steps, self.num_episodes):
            metric(impala.steps_made(trajectory))
        return info

    def _next_trajectory(self):
        while True:
            (ready, *_), _ = self._ray.wait(list(self._pending))
            actor = self._pending.pop(ready)
            try:
                result = self._ray.get(ready)
            except self._lost as error:
                self._deaths += 1
                if self._deaths > 2 * self.num_actors:
                    raise RuntimeError(
                        f"{self._deaths} actors died one after the other, "
                        "without a trajectory in between."
                    ) from error
                self._start_actor()
                continue
            self._deaths = 0
            self._ask(actor)
            return result

    def _start_actor(self):
        number = int(self.actors_started.assign_add(1))
        seed = int(random_bits(np.uint32(self.seed), np.uint32(number)))
        self._ask(self._new_actor(seed))

    def _ask(self, actor):
        weights = [x.numpy() for x in self.agent.network.values]
        self._pending[actor.act.remote(weights)] = actor


class _Actor:
    """In a process of its own: an environment, and a copy of the network."""

    def __init__(self, model, make_environment, unroll_length, seed):
        environment = make_environment(seed)
        agent = impala.ImpalaAgent(
            environment.time_step_spec(),
            environment.action_spec(),
            keras.models.model_from_json(model),
        )
        self.values = agent.network.values
        self.actor = impala.ActorLearner(
            agent, environment, unroll_length, seed=seed
        )

    def process(self):
        return os.getpid()

    def act(self, weights):
        for variable, value in zip(self.values, weights, strict=True):
            variable.assign(value)
        return tf.nest.map_structure(lambda x: x.numpy(), self.actor.act())


def _ray():
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "Actors on many machines run on Ray, which is not installed. Run: "
            "pip install 'keras_relational[distributed]'"
        ) from error
    return ray
