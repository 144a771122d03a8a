# ruff: noqa: E402 (the switch comes before the import of tf-agents)
"""Keras 3 models as policies of tf-agents: the one place where they meet."""

from typing import Any

from keras_relational.legacy_keras import check_backend
from keras_relational.legacy_keras import use_legacy_keras

use_legacy_keras()

import keras
import tensorflow as tf
import tensorflow_probability as tfp
from keras import ops
from tf_agents.policies import tf_policy
from tf_agents.trajectories import policy_step

from keras_relational import models
from keras_relational.models.declared_roles import answer_index


class KerasNetwork(tf.Module):
    """A Keras 3 model of an agent as a function of its weights.

    A `tf.Module`, and so tf-agents' policies, do not see the variables of a
    Keras 3 model. Here they are in `values`, random seeds included.
    """

    def __init__(self, model: keras.Model) -> None:
        check_backend("Agents that train")
        super().__init__(name=model.name)
        self.model = model
        self.num_trainable = len(model.trainable_variables)
        variables = model.trainable_variables + model.non_trainable_variables
        self.values = [variable.value for variable in variables]
        roles = models.roles(model)
        states, self.answer_index = roles.states, answer_index(roles)
        self.is_recurrent = bool(states)
        self.state_spec = [
            tf.TensorSpec(x.shape[1:], x.dtype, x.name)
            for x in model.inputs
            if x.name in states
        ] or ()

    def __call__(
        self,
        weights: list[tf.Tensor],
        observation: tf.Tensor,
        is_first: tf.Tensor,
        state: Any,
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Logits and values of a sequence of frames, and the state after it.

        Observations are `[T, B, ...]`, `is_first` and values `[T, B]`, logits
        `[T, B, num_actions]`, and the state `[B, ...]` is like `state_spec`.
        """
        time, batch = ops.shape(observation)[:2]
        if self.is_recurrent:  # Keras has the batch first.
            inputs = [
                batch_and_time_swapped(observation),
                batch_and_time_swapped(is_first),
                *state,
            ]
        else:
            shape = (-1, *observation.shape[2:])
            inputs = tf.reshape(observation, shape)
        outputs, _ = self.model.stateless_call(
            weights[: self.num_trainable],
            weights[self.num_trainable :],
            inputs,
            training=False,
        )
        outputs = keras.tree.flatten(outputs)
        logits = outputs.pop(self.answer_index)
        values, *state = outputs
        # Under a mixed policy they are in its compute dtype.
        logits, values = (tf.cast(x, tf.float32) for x in (logits, values))
        state = [
            tf.cast(x, spec.dtype)
            for x, spec in zip(state, self.state_spec, strict=True)
        ]
        if self.is_recurrent:
            return (
                batch_and_time_swapped(logits),
                batch_and_time_swapped(values),
                state,
            )
        logits = tf.reshape(logits, (time, batch, logits.shape[-1]))
        return logits, tf.reshape(values, (time, batch)), ()


class KerasPolicy(tf_policy.TFPolicy):
    """The stochastic policy of a Keras 3 model.

    The info of a step holds what the learner needs, whose weights are newer:
    `logits`, and, for a model with a memory, `state`, the state before the
    step.
    """

    def __init__(
        self, network: KerasNetwork, time_step_spec: Any, action_spec: Any
    ) -> None:
        self.network = network
        logits = network.model.outputs[network.answer_index]
        num_actions = logits.shape[-1]
        first, last = int(action_spec.minimum), int(action_spec.maximum)
        if (first, last) != (0, num_actions - 1):
            raise ValueError(
                f"The environment's actions are {first} to {last}, and the "
                f"model's 0 to {num_actions - 1}. Received: a model with "
                f"logits of shape {logits.shape}"
            )
        info_spec = {"logits": tf.TensorSpec((num_actions,), tf.float32)}
        if network.is_recurrent:
            info_spec["state"] = network.state_spec
        super().__init__(
            time_step_spec,
            action_spec,
            policy_state_spec=network.state_spec,
            info_spec=info_spec,
            clip=False,
        )

    def info(self, logits: tf.Tensor, state: Any) -> dict[str, Any]:
        """The info of a step, from its logits and the state before it."""
        info = {"logits": tf.cast(logits, tf.float32)}
        if self.network.is_recurrent:
            info["state"] = state
        return info

    def _variables(self):
        return list(self.network.values)

    def _distribution(self, time_step, policy_state):
        logits, _, new_state = self.network(
            self.network.values,
            time_step.observation[None],
            time_step.is_first()[None],
            policy_state,
        )
        actions = tfp.distributions.Categorical(
            logits[0], dtype=self.action_spec.dtype
        )
        info = self.info(logits[0], policy_state)
        return policy_step.PolicyStep(actions, new_state, info)


def batch_and_time_swapped(tensor: tf.Tensor) -> tf.Tensor:
    """Swaps the first two axes: `[T, B, ...]` to `[B, T, ...]` and back."""
    axes = list(range(tensor.shape.rank))
    return tf.transpose(tensor, [1, 0, *axes[2:]])


def copied(state: Any) -> Any:
    """The values of a nest of variables."""
    return tf.nest.map_structure(tf.identity, state)


def assign(variables: Any, values: Any) -> None:
    """Assigns a nest of values to a nest of variables."""
    tf.nest.map_structure(lambda x, value: x.assign(value), variables, values)
