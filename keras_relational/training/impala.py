"""IMPALA, the importance weighted actor-learner, on tf-agents."""

import pathlib
from collections.abc import Callable
from typing import Any
from typing import NamedTuple

from keras_relational.training import tf_agents_bridge

# isort: split
import keras
import numpy as np
import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.metrics import tf_metrics
from tf_agents.policies import greedy_policy
from tf_agents.trajectories import time_step as ts
from tf_agents.trajectories import trajectory as trajectories
from tf_agents.utils import common

from keras_relational.counter_based_random import random_draws
from keras_relational.environments.batched_world import World
from keras_relational.environments.tf_agents_environment import (
    WorldTFEnvironment,
)
from keras_relational.legacy_keras import check_backend
from keras_relational.training.teacher import right_log_probs
from keras_relational.training.teacher import taught_logits
from keras_relational.training.vtrace import vtrace
from keras_relational.validation import check_positive_integers


class ImpalaInfo(NamedTuple):
    """Terms of the loss, and the norm of its gradient before clipping."""

    policy_loss: Any
    value_loss: Any
    entropy: Any
    gradient_norm: Any


class Episodes(NamedTuple):
    """What episodes have come to after each of their steps.

    All are `[T, B]`: the reward of the step, return and length of the episode
    so far, and `True` if the step was the last one of the episode. `levels`,
    `[T, B, n]`, has the level of the episode.
    """

    rewards: Any
    returns: Any
    lengths: Any
    is_last: Any
    levels: Any


class ImpalaAgent(tf_agent.TFAgent):
    """An actor-critic that learns from trajectories of lagging actors.

    With the targets v and the advantages of V-trace (see `vtrace`), and sums
    over all steps of the trajectories,

        loss = − Σ advantages log π(action) + value_estimation_loss_coef ½ Σ
               (V − v)² − entropy_regularization Σ H(π)

    The gradient g is clipped to the norm `gradient_clipping`. Each weight w
    then moves by RMSProp without momentum, with a large ε under the root:

        r ← rms_decay r + (1 − rms_decay) g²
        w ← w − learning_rate g / √(r + ε)

    r starts at 0. Because the loss is a sum, a learning rate is good for one
    number of steps; the default is for 1,280.

    Reference: [Espeholt et al., 2018](https://arxiv.org/abs/1802.01561). The
    update and all defaults are those of [Clift et al., 2019](
    https://arxiv.org/abs/1909.00668), Table 1 and Appendix G.

    A teacher may help. With its share s of the loss and its share m of the
    moves, an `ActorLearner` moves by μ = (1 − m) π + m u, where u draws from
    the moves that the world's `expert_moves` calls right, and the loss is

        loss = (1 − s) (− Σ advantages log π(action) − entropy_regularization
               Σ H(π)) + value_estimation_loss_coef ½ Σ (V − v)²
               − s Σ log Σ_right moves π(move)

    So the agent learns the right moves in states that its own moves lead to, as
    in DAgger (https://arxiv.org/abs/1011.0686), and V-trace corrects its values
    for moves of the teacher. s and m fall to 0 in a straight line within
    `teacher_updates`; what follows is IMPALA.

    An episode that ends by its own rules has no value after its end. For an
    episode that is cut off (a step that is LAST with discount 1), the value of
    the last frame stands for the rest. The steps that tf-agents records between
    the last frame of an episode and the first of the next one are left out.

    Args:
        time_step_spec: Nest of specs, as `TFEnvironment.time_step_spec()`
            returns it.
        action_spec: Spec of one integer, as `TFEnvironment.action_spec()`
            returns it.
        model: `keras.Model` as `models.boxworld_agent` builds.
        learning_rate: Positive number, or a learning rate schedule of Keras, a
            function of the number of updates.
        gamma: Number between 0 and 1, the discount of the future by a step.
        entropy_regularization: Weight of the entropy in the loss.
        value_estimation_loss_coef: Weight of the error of the values.
        gradient_clipping: Largest norm of the gradient of all weights together.
        rms_decay: Number below 1, p in the paper.
        epsilon: Positive number, ε.
        clip_rho: Positive number, ρ̄ of V-trace: the cut-off of the importance
            ratios in the temporal differences.
        clip_c: Positive number, c̄ of V-trace: the cut-off of the importance
            ratios that carry differences backwards in time.
        teacher_share: Number from 0 to 1, s before the first update. By default
            there is no teacher. With 1 the policy learns from the teacher
            alone, without the noise of rewards.
        teacher_moves: Number from 0 to 1, m before the first update. With a
            large one the agent seldom gets to where it errs; with a small one
            it stays there for long.
        teacher_updates: Positive integer, the number of updates after which s
            and m are 0. By default they stay what they are.
        frames_at_once: Positive integer. The gradient is summed over parts of
            the episodes, each with at most this many frames, or with one
            episode. 48 frames of BoxWorld fit the cache of a processor. `None`
            takes all at once, as a GPU needs to be busy. A model with a memory
            takes all at once, too.
        train_step_counter: Integer `tf.Variable` that counts the updates. By
            default a new one.

    Raises:
        RuntimeError: If Keras runs on another backend than TensorFlow.
        ValueError: If a share of the teacher or its number of updates is out of
            its range.

    Example:

    >>> from keras_relational import models
    >>> from keras_relational.environments import boxworld
    >>> from keras_relational.environments import tf_agents_environment
    >>> environment = tf_agents_environment.WorldTFEnvironment(
    ...     boxworld.BoxWorld(3, 6, (1, 1), (0, 0)), batch_size=4
    ... )
    >>> model = models.boxworld_agent("convolutional", (3, 7, 3))
    >>> agent = ImpalaAgent(
    ...     environment.time_step_spec(), environment.action_spec(), model
    ... )
    >>> training = ActorLearner(agent, environment, unroll_length=5)
    >>> losses, episodes = training.train()
    >>> episodes.is_last.shape
    TensorShape([5, 4])
    """

    def __init__(
        self,
        time_step_spec: Any,
        action_spec: Any,
        model: keras.Model,
        learning_rate: (
            float | keras.optimizers.schedules.LearningRateSchedule
        ) = 2e-4,
        gamma: float = 0.99,
        entropy_regularization: float = 5e-3,
        value_estimation_loss_coef: float = 0.5,
        gradient_clipping: float = 40.0,
        rms_decay: float = 0.99,
        epsilon: float = 0.1,
        clip_rho: float = 1.0,
        clip_c: float = 1.0,
        teacher_share: float = 0.0,
        teacher_moves: float = 0.5,
        teacher_updates: int | None = None,
        frames_at_once: int | None = 48,
        train_step_counter: tf.Variable | None = None,
    ) -> None:
        shares = {
            "teacher_share": teacher_share,
            "teacher_moves": teacher_moves,
        }
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise ValueError(
                    f"`{name}` must be from 0 to 1. Received: {name}={share}"
                )
        if teacher_updates is not None:
            check_positive_integers(teacher_updates=teacher_updates)
        if frames_at_once is not None:
            check_positive_integers(frames_at_once=frames_at_once)
        self.network = tf_agents_bridge.KerasNetwork(model)
        self.teacher_share = teacher_share
        self.teacher_moves = teacher_moves
        self.teacher_updates = teacher_updates
        self.frames_at_once = frames_at_once
        self.learning_rate = learning_rate
        self.gamma = gamma
        self.entropy_regularization = entropy_regularization
        self.value_estimation_loss_coef = value_estimation_loss_coef
        self.gradient_clipping = gradient_clipping
        self.rms_decay = rms_decay
        self.epsilon = epsilon
        self.clip_rho = clip_rho
        self.clip_c = clip_c
        trainable = self.network.values[: self.network.num_trainable]
        if train_step_counter is None:
            train_step_counter = tf.Variable(0, dtype=tf.int64)
        self.mean_squares = [tf.Variable(tf.zeros_like(w)) for w in trainable]
        policy = tf_agents_bridge.KerasPolicy(
            self.network, time_step_spec, action_spec
        )
        super().__init__(
            time_step_spec,
            action_spec,
            policy=greedy_policy.GreedyPolicy(policy),
            collect_policy=policy,
            train_sequence_length=None,
            train_step_counter=train_step_counter,
        )
        self._compiled_update = tf.function(
            self.update, jit_compile=True, autograph=False
        )

    @property
    def state(self) -> dict[str, Any]:
        """Nest of the variables that an update changes."""
        return {
            "weights": list(self.network.values),
            "mean_squares": list(self.mean_squares),
            "train_step": self.train_step_counter,
        }

    def teacher_fading(self, train_step: tf.Tensor) -> tf.Tensor:
        """What is left of the teacher's shares after a number of updates.

        Args:
            train_step: Integer tensor, the number of updates so far.

        Returns:
            float32 tensor from 1 to 0, a factor of s and of m.
        """
        if self.teacher_updates is None:
            return tf.constant(1.0)
        done = tf.cast(train_step, tf.float32) / self.teacher_updates
        return tf.maximum(1 - done, 0.0)

    def learn(self, trajectory: Any) -> tf_agent.LossInfo:
        """Makes one update of the weights, compiled.

        Args:
            trajectory: tf-agents' `Trajectory` of tensors `[T + 1, B, ...]`.
                Only the value of the last frame is used.

        Returns:
            tf-agents' `LossInfo` with an `ImpalaInfo`.
        """
        state, info = self._compiled_update(_values(self.state), trajectory)
        _assign(self.state, state)
        return info

    def update(
        self, state: dict[str, Any], trajectory: Any
    ) -> tuple[dict[str, Any], tf_agent.LossInfo]:
        """One update of the weights as a pure function.

        Args:
            state: Nest of tensors like the attribute `state`.
            trajectory: tf-agents' `Trajectory` of tensors `[T + 1, B, ...]`.
                Only the value of the last frame is used. With a teacher its
                policy infos have `right`, the right moves, as an `ActorLearner`
                adds them.

        Returns:
            The new state, and tf-agents' `LossInfo` with an `ImpalaInfo`.
        """
        weights = list(state["weights"])
        trainable = weights[: self.network.num_trainable]
        others = weights[self.network.num_trainable :]
        share = self.teacher_share * self.teacher_fading(state["train_step"])

        def with_gradients(part):
            with tf.GradientTape() as tape:
                tape.watch(trainable)
                loss, terms = self._losses([*trainable, *others], part, share)
            gradients = tape.gradient(
                loss, trainable, unconnected_gradients="zero"
            )
            return loss, terms, gradients

        total = _summed_over_parts(
            with_gradients, trajectory, self._num_parts(trajectory)
        )
        loss, (policy_loss, value_loss, entropy), gradients = total
        gradients, norm = tf.clip_by_global_norm(
            gradients, self.gradient_clipping
        )
        mean_squares = [
            self.rms_decay * r + (1 - self.rms_decay) * tf.square(g)
            for r, g in zip(state["mean_squares"], gradients, strict=True)
        ]
        rate = self.learning_rate
        if callable(rate):
            rate = rate(state["train_step"])
        trainable = [
            w - rate * g / tf.sqrt(r + self.epsilon)
            for w, g, r in zip(trainable, gradients, mean_squares, strict=True)
        ]
        state = {
            "weights": [*trainable, *others],
            "mean_squares": mean_squares,
            "train_step": state["train_step"] + 1,
        }
        info = ImpalaInfo(policy_loss, value_loss, entropy, norm)
        return state, tf_agent.LossInfo(loss, info)

    def _num_parts(self, trajectory):
        """Number of equal parts of the episodes with few enough frames."""
        length, batch = trajectory.step_type.shape
        if self.network.is_recurrent or self.frames_at_once is None:
            return 1
        least = min(batch, -(-length * batch // self.frames_at_once))
        return next(n for n in range(least, batch + 1) if batch % n == 0)

    def _losses(
        self,
        weights: list[tf.Tensor],
        trajectory: trajectories.Trajectory,
        share: tf.Tensor | float = 0.0,
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor, tf.Tensor]]:
        is_first = tf.equal(trajectory.step_type, ts.StepType.FIRST)
        state: Any = ()
        if self.network.is_recurrent:
            state = [x[0] for x in trajectory.policy_info["state"]]
        logits, values, _ = self.network(
            weights, trajectory.observation, is_first, state
        )
        values, bootstrap_value = values[:-1], values[-1]
        steps = tf.nest.map_structure(lambda x: x[:-1], trajectory)
        learned = tf.nn.log_softmax(logits[:-1])
        behaviour = tf.nn.log_softmax(steps.policy_info["logits"])
        taken = tf.one_hot(steps.action, learned.shape[-1])
        log_probs = tf.reduce_sum(taken * learned, axis=-1)
        # No step is made from the last frame of an episode. Its target is its
        # own value, which stands for the rest of an episode that is cut off.
        counts = tf.cast(~steps.is_boundary(), values.dtype)
        target = vtrace(
            tf.reduce_sum(taken * behaviour, axis=-1),
            log_probs,
            tf.where(steps.is_boundary(), values, steps.reward),
            self.gamma * steps.discount * counts,
            values,
            bootstrap_value,
            self.clip_rho,
            self.clip_c,
        )
        policy_loss = -tf.reduce_sum(counts * target.advantages * log_probs)
        errors = tf.square(values - target.values)
        value_loss = tf.reduce_sum(counts * errors) / 2
        entropies = -tf.reduce_sum(tf.exp(learned) * learned, axis=-1)
        entropy = tf.reduce_sum(counts * entropies)
        loss = policy_loss - self.entropy_regularization * entropy
        if self.teacher_share:
            right = steps.policy_info["right"]
            known = counts * tf.cast(tf.reduce_any(right, -1), values.dtype)
            imitation = -known * right_log_probs(learned, right)
            loss = (1 - share) * loss + share * tf.reduce_sum(imitation)
        loss = loss + self.value_estimation_loss_coef * value_loss
        return loss, (policy_loss, value_loss, entropy)

    def _train(self, experience, weights=None):
        """Learns from trajectories `[B, T + 1]` of the collect policy."""
        if weights is not None:
            raise ValueError(
                "V-trace weighs the steps by itself. Received: weights"
            )
        return self.learn(
            tf.nest.map_structure(
                tf_agents_bridge.batch_and_time_swapped, experience
            )
        )


class ActorLearner:
    """Acts and learns on one machine, in one compiled function.

    Each call of `train` makes `unroll_length` steps in every episode of the
    environment, and one update from them. The method `iteration` does the same
    as a pure function of a nest of tensors like the attribute `state`: weights,
    optimizer, environment and seed go in and come out. `serialized` writes that
    function to bytes, for machines without TensorFlow.

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
            actor["weights"] = _values(agent.state["weights"])
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
        """All that a run needs to go on, for `tf.train.Checkpoint`.

        Args:
            directory: Folder of the checkpoints.

        Returns:
            Dictionary of TensorFlow's trackable objects.
        """
        del directory  # For learners that tell where their checkpoints are.
        return {
            "state": tf.nest.flatten(self.state),
            "metrics": [self.environment_steps, self.num_episodes],
        }

    def checkpointer(
        self, directory: pathlib.Path | str
    ) -> common.Checkpointer:
        """tf-agents' `Checkpointer` of all that a run needs to go on.

        Args:
            directory: Folder; the two last checkpoints are kept.
        """
        return common.Checkpointer(
            str(directory), max_to_keep=2, **self.checkpointed(directory)
        )

    @tf.function(autograph=False)
    def train(self) -> tuple[tf_agent.LossInfo, Episodes]:
        """Acts, and makes one update.

        Returns:
            tf-agents' `LossInfo` with an `ImpalaInfo`, and `Episodes`.
        """
        state, info, steps, episodes = self._compiled(_values(self.state))
        _assign(self.state, state)
        for metric in (self.environment_steps, self.num_episodes):
            metric(steps)
        return info, episodes

    @tf.function(autograph=False)
    def act(self) -> tuple[Any, Episodes]:
        """Acts, for a learner elsewhere.

        Returns:
            The trajectory `[T + 1, B, ...]`, for `ImpalaAgent.update`, and
            `Episodes`.
        """
        environment, actor, trajectory, episodes = self._compiled_act(
            _values(self.state)
        )
        mine = {name: self.state["actor"][name] for name in actor}
        _assign((self.state["environment"], mine), (environment, actor))
        return trajectory, episodes

    def iteration(
        self, state: dict[str, Any]
    ) -> tuple[dict[str, Any], tf_agent.LossInfo, Any, Episodes]:
        """Acts, and makes one update, as a pure function.

        Args:
            state: Nest of tensors like the attribute `state`.

        Returns:
            The new state; tf-agents' `LossInfo` with an `ImpalaInfo`; the
            `Trajectory` without observations and actions; and `Episodes`.
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
                info["right"] = self.environment.world.expert_moves(world)
                info["logits"] = taught_logits(logits[0], info["right"], share)
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
    """The steps of a trajectory, for metrics.

    Args:
        trajectory: `[T + 1, B, ...]`, as `ImpalaAgent.update` takes it.

    Returns:
        The trajectory `[T, B, ...]` without its last frame, and without
        observations, actions and policy infos.
    """
    rest = trajectory._replace(observation=(), action=(), policy_info=())
    return tf.nest.map_structure(lambda x: x[:-1], rest)


def serialized(
    function: Callable[..., Any],
    *arguments: Any,
    platforms: tuple[str, ...] = ("cpu", "cuda"),
) -> bytes:
    """A pure function as StableHLO, for machines without TensorFlow.

    There the function takes and returns flat lists of arrays, in the order of
    `tf.nest.flatten`. So the first results of `ActorLearner.iteration` are its
    next arguments:

    ```python
    blob = serialized(training.iteration, training.state)  # here
    function = jax.export.deserialize(bytearray(blob))  # there
    results = function.call(*arrays)
    results = function.call(*results[: len(arrays)])
    ```

    Args:
        function: A pure TensorFlow function, such as `ActorLearner.iteration`.
        *arguments: Nests of tensors or variables, examples of its arguments.
        platforms: Names of the platforms that it is to run on.

    Returns:
        The bytes that `jax.export.deserialize` reads.

    Raises:
        ImportError: If JAX is not installed.
    """
    import jax
    from jax.experimental import jax2tf

    @tf.function(jit_compile=True, autograph=False)
    def flat_function(*arrays):
        nests = tf.nest.pack_sequence_as(arguments, arrays)
        return tf.nest.flatten(function(*nests))

    called = jax.jit(jax2tf.call_tf(flat_function, has_side_effects=False))
    arrays = [x.numpy() for x in tf.nest.flatten(arguments)]
    exported = jax.export.export(called, platforms=platforms)(*arrays)
    return bytes(exported.serialize())


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


def _summed_over_parts(
    function: Callable[[Any], Any], trajectory: Any, num_parts: int
) -> Any:
    """Sum of a function of trajectories `[T, B, ...]` over parts of B."""
    if num_parts == 1:
        return function(trajectory)
    parts = tf.nest.map_structure(
        lambda x: tf.reshape(x, (x.shape[0], num_parts, -1, *x.shape[2:])),
        trajectory,
    )

    def value(i):
        return function(tf.nest.map_structure(lambda x: x[:, i], parts))

    def add(i, total):
        return i + 1, tf.nest.map_structure(tf.add, total, value(i))

    first = (tf.constant(1), value(0))
    return tf.while_loop(lambda i, _: i < num_parts, add, first)[1]


def _values(state):
    return tf.nest.map_structure(tf.identity, state)


def _assign(variables, values):
    tf.nest.map_structure(lambda x, value: x.assign(value), variables, values)
