"""IMPALA, the importance weighted actor-learner: the loss and the update."""

from collections.abc import Callable
from typing import Any
from typing import NamedTuple

from keras_relational.agents import _tf_agents_bridge as bridge

# isort: split
import keras
import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.policies import greedy_policy
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.trajectories import trajectory as trajectories

from keras_relational.agents.teacher import expert_log_probs
from keras_relational.agents.vtrace import vtrace
from keras_relational.validation import check_positive_integers


class ImpalaInfo(NamedTuple):
    """Terms of the loss, and the norm of its gradient before clipping."""

    policy_loss: Any
    value_loss: Any
    entropy: Any
    gradient_norm: Any


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

    A teacher may help. It has a share s of the loss, and a share m of the
    actions: β of DAgger (https://arxiv.org/abs/1011.0686). An `ActorLearner`
    draws actions from (1 − m) π + m u, where u is uniform over the expert
    actions, which the world's `expert_moves` marks. The loss is

        loss = (1 − s) (− Σ advantages log π(action) − entropy_regularization
               Σ H(π)) + value_estimation_loss_coef ½ Σ (V − v)²
               − s Σ log Σ_expert actions π(action)

    The agent learns expert actions in states that its own policy visits, and
    V-trace corrects its values for the teacher's actions. s and m fall linearly
    to 0 within `teacher_updates`; then IMPALA goes on alone.

    An episode that ends by its own rules has no value after its end. For an
    episode that is cut off (a step that is LAST with discount 1), the value of
    the last frame stands for the rest. The steps that tf-agents records between
    the last frame of an episode and the first of the next one are left out.

    Args:
        time_step_spec: As `time_step_spec()` of a `TFEnvironment` or a
            `PyEnvironment` returns it.
        action_spec: As its `action_spec()` returns it, one integer.
        model: `keras.Model` as `models.boxworld_agent` builds.
        learning_rate: Positive number, or a learning rate schedule of Keras, a
            function of the number of updates.
        gamma: Number between 0 and 1, the discount of the future by a step.
        entropy_regularization: Weight of the entropy in the loss.
        value_estimation_loss_coef: Weight of the error of the values.
        gradient_clipping: Largest norm of the gradient of all weights together.
        rms_decay: Number below 1, p in the paper.
        epsilon: Positive number, ε.
        clip_rho: Positive number, ρ̄ of V-trace.
        clip_c: Positive number, c̄ of V-trace.
        teacher_share: Number from 0 to 1, s before the first update. By default
            there is no teacher. With 1 the policy learns from the teacher
            alone, without the noise of rewards.
        teacher_moves: Number from 0 to 1, m before the first update: DAgger's
            β. High values keep the agent in states that it already handles.
        teacher_updates: Positive integer, the number of updates after which s
            and m are 0. By default they stay constant.
        microbatch_frames: Positive integer. The gradient is summed over parts
            of the episodes, each with at most this many frames, or with one
            episode. 48 frames of BoxWorld fit the cache of a processor. `None`
            takes all at once, which keeps a GPU busy. A model with a memory
            takes all at once, too.

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
    >>> agent = ImpalaAgent(
    ...     environment.time_step_spec(),
    ...     environment.action_spec(),
    ...     models.boxworld_agent("convolutional", (3, 7, 3)),
    ... )
    >>> len(agent.collect_policy.variables())
    10
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
        microbatch_frames: int | None = 48,
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
        if microbatch_frames is not None:
            check_positive_integers(microbatch_frames=microbatch_frames)
        self.network = bridge.KerasNetwork(model)
        self.teacher_share = teacher_share
        self.teacher_moves = teacher_moves
        self.teacher_updates = teacher_updates
        self.microbatch_frames = microbatch_frames
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
        self.mean_squares = [tf.Variable(tf.zeros_like(w)) for w in trainable]
        time_step_spec, action_spec = tensor_spec.from_spec(
            (time_step_spec, action_spec)
        )
        policy = bridge.KerasPolicy(self.network, time_step_spec, action_spec)
        super().__init__(
            time_step_spec,
            action_spec,
            policy=greedy_policy.GreedyPolicy(policy),
            collect_policy=policy,
            train_sequence_length=None,
            train_step_counter=tf.Variable(0, dtype=tf.int64),
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
        """The factor of s and m after that number of updates, from 1 to 0."""
        if self.teacher_updates is None:
            return tf.constant(1.0)
        done = tf.cast(train_step, tf.float32) / self.teacher_updates
        return tf.maximum(1 - done, 0.0)

    def learn(self, trajectory: Any) -> tf_agent.LossInfo:
        """Makes one update of the weights, compiled: see `update`."""
        state, info = self._compiled_update(
            bridge.copied(self.state), trajectory
        )
        bridge.assign(self.state, state)
        return info

    def update(
        self, state: dict[str, Any], trajectory: Any
    ) -> tuple[dict[str, Any], tf_agent.LossInfo]:
        """One update of the weights as a pure function.

        Args:
            state: Nest of tensors like the attribute `state`.
            trajectory: tf-agents' `Trajectory` of tensors `[T + 1, B, ...]`.
                Only the value of the last frame is used. With a teacher its
                policy infos have `expert_actions`, as an `ActorLearner` adds
                them.

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
            # Those of an Embedding are of the rows that it looked up.
            return loss, terms, [tf.convert_to_tensor(g) for g in gradients]

        total = _summed_over_microbatches(
            with_gradients, trajectory, self._num_microbatches(trajectory)
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

    def _num_microbatches(self, trajectory):
        """Number of equal parts of the batch with few enough frames each."""
        length, batch = trajectory.step_type.shape
        if self.network.is_recurrent or self.microbatch_frames is None:
            return 1
        least = min(batch, -(-length * batch // self.microbatch_frames))
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
            experts = steps.policy_info["expert_actions"]
            known = counts * tf.cast(tf.reduce_any(experts, -1), values.dtype)
            imitation = -known * expert_log_probs(learned, experts)
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
            tf.nest.map_structure(bridge.batch_and_time_swapped, experience)
        )


def _summed_over_microbatches(
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
