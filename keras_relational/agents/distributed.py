"""IMPALA on several machines: actors on Ray, and one learner.

It needs `pip install 'keras_relational[distributed]'`.
"""

import inspect
import os
import pathlib
import socket
import time
from collections.abc import Callable
from typing import Any

from keras_relational.agents.actor_learner import ActorLearner
from keras_relational.agents.actor_learner import Episodes
from keras_relational.agents.actor_learner import steps_made
from keras_relational.agents.agent import ImpalaAgent

# isort: split
import keras
import numpy as np
import tensorflow as tf
from tf_agents.metrics import tf_metrics

from keras_relational.counter_based_random import random_bits
from keras_relational.validation import check_positive_integers
from keras_relational.validation import needs_extra

# Seconds to wait for a trajectory before the cluster is checked, and seconds to
# wait for a cluster that does not answer. Together they must be well below 60
# seconds: then Ray ends the process without an exception in Python.
CHECK_SECONDS = 5
PATIENCE_SECONDS = 20


def connect(address: str, **options: Any) -> None:
    """Joins a Ray cluster, as `ray.init(address)` does.

    A token may guard the cluster, as it does one that `ray.init()` starts on
    this machine. Ray then needs the environment variable RAY_AUTH_MODE=token,
    and the token itself: in RAY_AUTH_TOKEN, in the file RAY_AUTH_TOKEN_PATH, or
    in `~/.ray/auth_token`. Ray reads them once, when it is imported.

    Args:
        address: String `"host:port"` of the cluster's head, or `"auto"`.
        **options: Further arguments of `ray.init`.

    Raises:
        ImportError: If Ray is not installed.
        ConnectionError: If there is no such cluster, or it refuses this
            process: after some 20 seconds at most.
    """
    ray = _ray()
    try:
        if address != "auto":
            # Ray itself would try for minutes.
            socket.create_connection(_host_and_port(address), 20).close()
        ray.init(address, **options)
    except (OSError, ValueError, ray.exceptions.AuthenticationError) as error:
        mode = os.environ.get("RAY_AUTH_MODE")
        raise ConnectionError(
            f"There is no way into a Ray cluster at {address}: {error}\nCheck "
            "that it runs. If it is guarded by a token, set the environment "
            "variables RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, to the token "
            "that `ray get-auth-token` prints on the cluster's head, before "
            "ray is imported: best before Python is started. Received: "
            f"RAY_AUTH_MODE={mode}, and RAY_AUTH_TOKEN "
            f"{'set' if 'RAY_AUTH_TOKEN' in os.environ else 'not set'}."
        ) from error


class DistributedActorLearner:
    """Learns from the trajectories of actors on other machines.

    Like that of an `ActorLearner`, each call of `train` makes one update, from
    the first trajectory that is ready. An actor makes one trajectory at a time.
    When the learner takes it, the actor gets the latest weights and makes the
    next one. So there are never more trajectories waiting than actors.

    An actor that dies is replaced. If the whole cluster goes away, the run ends
    with a `ConnectionError`, and its last checkpoint stays. The checkpoint
    holds the state of the agent, the number of steps, and the number of actors
    so far. A run that continues from it counts no step twice, and starts
    actors with new seeds.

    Args:
        agent: An `ImpalaAgent`.
        make_environment: Function from an integer seed to an environment for
            an `ActorLearner`, such as `functools.partial(WorldTFEnvironment,
            world, 32)`. It is sent to the actors.
        num_actors: Positive integer.
        unroll_length: Positive integer, the number of steps that an actor makes
            in every episode for an update.
        seed: Non-negative integer that fixes the seeds of the actors. Which
            actor is ready first is left to chance.
        num_cpus: Number of cores that Ray reserves for an actor.

    Raises:
        ImportError: If Ray is not installed.
        RuntimeError: If there is no connection to a cluster, or Keras runs on
            another backend than TensorFlow.
        ValueError: If a number is not a positive integer.
    """

    def __init__(
        self,
        agent: ImpalaAgent,
        make_environment: Callable[[int], Any],
        num_actors: int,
        unroll_length: int = 40,
        seed: int = 0,
        num_cpus: float = 1,
    ) -> None:
        self._ray = _ray()
        if not self._ray.is_initialized():
            raise RuntimeError(
                "There is no connection to Ray. Call distributed.connect("
                "address) to join a cluster, or ray.init() to start one on "
                "this machine; its ports are open to the network, guarded by "
                "Ray's token."
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
        # What Ray raises if an actor, or a trajectory that it made, is lost.
        exceptions = self._ray.exceptions
        self._lost = (
            exceptions.RayActorError,
            exceptions.WorkerCrashedError,
            exceptions.NodeDiedError,
            exceptions.ObjectLostError,
        )
        self._address = self._ray.get_runtime_context().gcs_address
        self._checkpoints: str | None = None
        self._deaths = 0
        self._pending: dict[Any, Any] = {}
        self._new_actor = lambda seed: (
            self._ray.remote(_Actor)
            .options(num_cpus=num_cpus)
            .remote(
                agent.network.model.to_json(),
                _configuration(agent),
                make_environment,
                unroll_length,
                seed,
            )
        )

    def checkpointed(self, directory: pathlib.Path | str) -> dict:
        """The state of a run, for `tf.train.Checkpoint`.

        If the cluster goes away, the error names the directory.
        """
        self._checkpoints = str(directory)
        return {
            "state": tf.nest.flatten(self.agent.state),
            "metrics": [self.environment_steps, self.num_episodes],
            "actors_started": self.actors_started,
        }

    def train(self) -> tuple[Any, Episodes]:
        """Waits for a trajectory and learns from it.

        Returns:
            tf-agents' `LossInfo` with an `ImpalaInfo`, and `Episodes`.

        Raises:
            RuntimeError: If one actor after the other dies.
            ConnectionError: If the cluster has gone away, after some 25
                seconds. This process then leaves the cluster.
        """
        while len(self._pending) < self.num_actors:
            self._answered(self._start_actor)
        trajectory, episodes = self._next_trajectory()
        info = self._learn(trajectory)
        return info, episodes

    def close(self) -> None:
        """Stops the actors."""
        for actor in self._pending.values():
            self._ray.kill(actor)
        self._pending = {}

    @tf.function(autograph=False)
    def _learn(self, trajectory):
        info = self.agent.learn(trajectory)
        for metric in (self.environment_steps, self.num_episodes):
            metric(steps_made(trajectory))
        return info

    def _next_trajectory(self):
        while True:
            done, _ = self._answered(
                self._ray.wait, list(self._pending), timeout=CHECK_SECONDS
            )
            if not done:
                self._check_cluster()
                continue
            (ready,) = done
            actor = self._pending.pop(ready)
            try:
                result = self._answered(self._ray.get, ready)
            except self._lost as error:
                self._deaths += 1
                if self._deaths > 2 * self.num_actors:
                    raise RuntimeError(
                        f"{self._deaths} actors died one after the other, "
                        "without a trajectory in between."
                    ) from error
                self._answered(self._start_actor)
                continue
            self._deaths = 0
            self._answered(self._ask, actor)
            return result

    def _answered(self, call, *arguments, **options):
        """Makes a call of Ray's, and checks the cluster if the call fails."""
        try:
            return call(*arguments, **options)
        except (self._ray.exceptions.RayError, OSError) as error:
            self._check_cluster(error)
            raise

    def _check_cluster(self, error=None):
        """Leaves the cluster if its head has not answered for some time."""
        head = _host_and_port(self._address)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                socket.create_connection(head, timeout=2).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    break
                time.sleep(1)
        self._pending = {}
        self._ray.shutdown()
        advice = "It has no checkpoint: its training is lost."
        if self._checkpoints is not None:
            advice = (
                f"Its last checkpoint is kept in {self._checkpoints}. Join a "
                "cluster again, and start the same run again to continue it."
            )
        raise ConnectionError(
            f"The Ray cluster at {self._address} has gone away, and the run "
            f"ends. {advice}"
        ) from error

    def _start_actor(self):
        number = int(self.actors_started.assign_add(1))
        seed = int(random_bits(np.uint32(self.seed), np.uint32(number)))
        self._ask(self._new_actor(seed))

    def _ask(self, actor):
        values = [x.numpy() for x in _acting(self.agent)]
        self._pending[actor.act.remote(values)] = actor


class _Actor:
    """Acts in a process of its own, in an environment of its own."""

    def __init__(
        self, model, configuration, make_environment, unroll_length, seed
    ):
        environment = make_environment(seed)
        agent = ImpalaAgent(
            environment.time_step_spec(),
            environment.action_spec(),
            keras.models.model_from_json(model),
            **configuration,
        )
        self.variables = _acting(agent)
        self.actor = ActorLearner(agent, environment, unroll_length, seed=seed)

    def process(self):
        return os.getpid()

    def act(self, values):
        for variable, value in zip(self.variables, values, strict=True):
            variable.assign(value)
        return tf.nest.map_structure(lambda x: x.numpy(), self.actor.act())


def _configuration(agent):
    """The arguments of an agent, without specs, model and counter."""
    names = inspect.signature(ImpalaAgent).parameters
    return {name: x for name, x in vars(agent).items() if name in names}


def _acting(agent):
    """The variables that moves depend on.

    The teacher's share of them falls with the number of updates.
    """
    return [*agent.network.values, agent.train_step_counter]


def _host_and_port(address):
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError("expected an address such as 10.0.0.1:6379.")
    return host.strip("[]"), int(port)  # IPv6 has brackets.


def _ray():
    with needs_extra("distributed", "Actors on many machines"):
        import ray
    return ray
