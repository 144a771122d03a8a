"""IMPALA on one machine: acting and learning in one compiled function."""

import pathlib
from typing import Any
from typing import NamedTuple

from keras_relational.agents import _tf_agents_bridge as bridge

# isort: split
import keras
import numpy as np
import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.metrics import tf_metrics
from tf_agents.trajectories import trajectory as trajectories

from keras_relational.agents.agent import ImpalaAgent
from keras_relational.agents.teacher import taught_logits
from keras_relational.counter_based_random import random_draws
from keras_relational.environments.batched_world import World
from keras_relational.environments.tf_agents_environment import (
    WorldTFEnvironment,
)
from keras_relational.legacy_keras import check_backend
from keras_relational.validation import check_positive_integers


class Episodes(NamedTuple):
    """Progress of the episodes after each step, all `[T, B]`.

    The reward of the step, return and length of the episode so far, and `True`
    for the last step of an episode. `levels`, `[T, B, n]`, has the level of the
    episode.
    """

    rewards: Any
    returns: Any
    lengths: Any
    is_last: Any
    levels: Any


class ActorLearner:
    """Acts and learns on one machine, in one compiled function.

    Each call of `train` makes `unroll_length` steps in every episode of the
    environment, and one update from them. The method `iteration` does the same
    as a pure function of a nest of tensors like the attribute `state`: weights,
    optimizer, environment and seed go in and come out.

    Args:
        agent: An `ImpalaAgent`.
        environment: A `WorldTFEnvironment`, or another `TFEnvironment` with
            the same attribute `state` and methods `advance` and `level`.
        unroll_length: Positive integer, the number of steps made in every
            episode for an update.
        broadcast_interval: Positive integer. The actors take the learner's
            weights after this many updates, and lag behind it in between.
        seed: Non-negative integer that fixes which actions are drawn.

    Raises:
        ValueError: If a length or interval is not a positive integer, or if the
            agent has a teacher and the world no `expert_moves`.
    """

    def __init__(
        self,
        agent: ImpalaAgent,
        environment: Any,
        unroll_length: int = 40,
        broadcast_interval: int = 1,
        seed: int = 0,
    ) -> None:
        check_positive_integers(
            unroll_length=unroll_length, broadcast_interval=broadcast_interval
        )
        world = getattr(environment, "world", None)
        if agent.teacher_share and not hasattr(world, "expert_moves"):
            raise ValueError(
                "A teacher needs a world with `expert_moves`, such as "
                "`BoxWorld`. Received: "
                f"teacher_share={agent.teacher_share}, world={world}"
            )
        self.agent = agent
        self.environment = environment
        self.unroll_length = unroll_length
        self.broadcast_interval = broadcast_interval
        batch = environment.batch_size
        actor = {
            "policy_state": agent.collect_policy.get_initial_state(batch),
            "episode_return": tf.zeros([batch]),
            "episode_length": tf.zeros([batch], tf.int32),
            "step": tf.zeros([], tf.uint32),
            "seed": tf.constant(seed, tf.uint32),
        }
        if broadcast_interval > 1:
            actor["weights"] = bridge.copied(agent.state["weights"])
        self.state = {
            "agent": agent.state,
            "environment": environment.state,
            "actor": tf.nest.map_structure(tf.Variable, actor),
        }
        self.environment_steps = tf_metrics.EnvironmentSteps()
        self.num_episodes = tf_metrics.NumberOfEpisodes()
        self._compiled, self._compiled_act = (
            tf.function(function, jit_compile=True, autograph=False)
            for function in (self.iteration, self._act)
        )

    def checkpointed(self, directory: pathlib.Path | str) -> dict:
        """The state of a run, for `tf.train.Checkpoint`.

        Only a `DistributedActorLearner` needs the directory of the checkpoints.
        """
        return {
            "state": tf.nest.flatten(self.state),
            "metrics": [self.environment_steps, self.num_episodes],
        }

    @tf.function(autograph=False)
    def train(self) -> tuple[tf_agent.LossInfo, Episodes]:
        """Acts, and makes one update.

        Returns tf-agents' `LossInfo` with an `ImpalaInfo`, and `Episodes`.
        """
        state, info, steps, episodes = self._compiled(bridge.copied(self.state))
        bridge.assign(self.state, state)
        for metric in (self.environment_steps, self.num_episodes):
            metric(steps)
        return info, episodes

    @tf.function(autograph=False)
    def act(self) -> tuple[Any, Episodes]:
        """Acts, for a learner elsewhere.

        Returns the trajectory `[T + 1, B, ...]`, for `ImpalaAgent.update`, and
        `Episodes`.
        """
        environment, actor, trajectory, episodes = self._compiled_act(
            bridge.copied(self.state)
        )
        mine = {name: self.state["actor"][name] for name in actor}
        bridge.assign((self.state["environment"], mine), (environment, actor))
        return trajectory, episodes

    def iteration(
        self, state: dict[str, Any]
    ) -> tuple[dict[str, Any], tf_agent.LossInfo, Any, Episodes]:
        """Acts, and makes one update, as a pure function.

        `state` is like the attribute `state`. Returns the new state; tf-agents'
        `LossInfo` with an `ImpalaInfo`; the `Trajectory` without observations
        and actions; and `Episodes`.
        """
        environment, actor, trajectory, episodes = self._act(state)
        agent, info = self.agent.update(state["agent"], trajectory)
        if self.broadcast_interval > 1:
            is_due = agent["train_step"] % self.broadcast_interval == 0
            actor["weights"] = [
                tf.where(is_due, new, old)
                for new, old in zip(
                    agent["weights"], state["actor"]["weights"], strict=True
                )
            ]
        state = {"agent": agent, "environment": environment, "actor": actor}
        return state, info, steps_made(trajectory), episodes

    def _act(self, state):
        """Makes `unroll_length` steps, and takes the frame after them."""
        weights = state["agent"]["weights"]
        if self.broadcast_interval > 1:
            weights = state["actor"]["weights"]
        seed = state["actor"]["seed"]
        share = self.agent.teacher_moves * self.agent.teacher_fading(
            state["agent"]["train_step"]
        )
        rows = np.arange(self.environment.batch_size)[:, None]

        def step(environment, actor):
            world, time_step = environment
            logits, _, policy_state = self.agent.network(
                weights,
                time_step.observation[None],
                time_step.is_first()[None],
                actor["policy_state"],
            )
            info = self.agent.collect_policy.info(
                logits[0], actor["policy_state"]
            )
            if self.agent.teacher_share:
                experts = self.environment.world.expert_moves(world)
                info["expert_actions"] = experts
                info["logits"] = taught_logits(logits[0], experts, share)
            action = random_draws(info["logits"], seed, actor["step"], rows)
            world, next_step = self.environment.advance(
                (world, time_step), action
            )
            goes_on = ~next_step.is_first()
            returns = actor["episode_return"] + next_step.reward
            lengths = actor["episode_length"] + 1
            now = {
                "policy_state": policy_state,
                "episode_return": tf.where(goes_on, returns, 0),
                "episode_length": tf.where(goes_on, lengths, 0),
                "step": actor["step"] + np.uint32(1),
            }
            seen = trajectories.Trajectory(
                step_type=time_step.step_type,
                observation=time_step.observation,
                action=action,
                policy_info=info,
                next_step_type=next_step.step_type,
                reward=next_step.reward,
                discount=next_step.discount,
            )
            episode = Episodes(
                next_step.reward,
                now["episode_return"],
                now["episode_length"],
                next_step.is_last(),
                self.environment.level((world, next_step)),
            )
            return (world, next_step), now, (seen, episode)

        carried = ("policy_state", "episode_return", "episode_length", "step")
        actor = {name: state["actor"][name] for name in carried}
        environment, actor, (seen, episodes) = _unrolled(
            step, self.unroll_length, state["environment"], actor
        )
        # Only the value of the last frame is used. Its action and reward are
        # still to come, so those of the frame before fill their places.
        last = tf.nest.map_structure(lambda x: x[-1], seen)
        last = last._replace(
            step_type=environment[1].step_type,
            observation=environment[1].observation,
        )
        trajectory = tf.nest.map_structure(
            lambda x, y: tf.concat([x, y[None]], axis=0), seen, last
        )
        return environment, {**actor, "seed": seed}, trajectory, episodes


def actor_learner(
    world: World,
    model: keras.Model,
    batch_size: int = 32,
    seed: int = 0,
    unroll_length: int = 40,
    **agent_arguments: Any,
) -> ActorLearner:
    """An `ActorLearner` for a network and the world that it plays in.

    Args:
        world: `environments.batched_world.World`, such as `BoxWorld`.
        model: `keras.Model` as `models.boxworld_agent` builds. It is trained in
            place.
        batch_size: Number of episodes that are played at once.
        seed: Non-negative integer that fixes the episodes, and which actions
            are drawn.
        unroll_length: Positive integer, the number of steps made in every
            episode for an update.
        **agent_arguments: Arguments of `ImpalaAgent`, such as `learning_rate`.

    Returns:
        `ActorLearner`.

    Raises:
        RuntimeError: If Keras runs on another backend than TensorFlow.

    Example:

    >>> from keras_relational import models
    >>> from keras_relational.environments import boxworld
    >>> world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0))
    >>> model = models.boxworld_agent("convolutional", world.image_shape)
    >>> actor_learner(world, model, batch_size=4).environment.batch_size
    4
    """
    check_backend("Agents that train")
    environment = WorldTFEnvironment(world, batch_size, seed)
    agent = ImpalaAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        model,
        **agent_arguments,
    )
    return ActorLearner(agent, environment, unroll_length, seed=seed)


def steps_made(trajectory: Any) -> Any:
    """A trajectory `[T + 1, B, ...]` without its last frame, for metrics.

    It has no observations, actions and policy infos.
    """
    rest = trajectory._replace(observation=(), action=(), policy_info=())
    return tf.nest.map_structure(lambda x: x[:-1], rest)


def _unrolled(step, length, *carry):
    """Applies `step` repeatedly, and stacks its outputs.

    `step` takes the carry and returns the next carry and outputs. On TensorFlow
    Keras' scan stacks only outputs that are shaped like the carry.
    """
    traced = tf.function(step, autograph=False).get_concrete_function(*carry)
    *_, example = traced.structured_outputs
    arrays = [
        tf.TensorArray(x.dtype, length, element_shape=x.shape)
        for x in tf.nest.flatten(example)
    ]

    def body(i, carry, arrays):
        *carry, outputs = traced(*carry)
        outputs = tf.nest.flatten(outputs)
        arrays = [
            array.write(i, x) for array, x in zip(arrays, outputs, strict=True)
        ]
        return i + 1, tuple(carry), arrays

    _, carry, arrays = tf.while_loop(
        lambda i, *_: i < length, body, (0, carry, arrays)
    )
    stacked = [array.stack() for array in arrays]
    return *carry, tf.nest.pack_sequence_as(example, stacked)
