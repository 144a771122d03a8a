"""The base class of all worlds: many episodes at a time, as pure functions."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_relational.environments.array_functions import functions_for
from keras_relational.validation import check_positive_integers

# Every tensor has one row for each episode.
State = dict[str, keras.KerasTensor]


class World:
    """A reinforcement learning environment that stores no state itself.

    The state of the episodes is a dictionary of tensors with one row for each
    episode. `reset` makes a state. `step` computes the next state from a state
    and actions. `render` draws what the agent sees. `restart` begins new
    episodes in some of the rows. All four are pure functions of tensors, so
    they can be compiled.

    A subclass defines three attributes and three methods:

    - `actions`: the names of the actions. An action is an index into this
      tuple.
    - `image_shape`: the shape of one image, `(height, width, 3)`, or of what
      `render` returns instead, such as `(num_objects, features)`.
    - `success_reward`: a step with this reward or more solves the episode.
    - `new_episode(seed, episode)`: the first state of an episode.
    - `move(state, actions)`: the rules.
    - `render(state)`: the images.

    `move` and `render` take functions of `keras.ops` from
    `array_functions.functions_for`. With a state of NumPy's arrays they then
    use NumPy, as the Gymnasium environments do. The next state then shares the
    arrays that did not change, so do not write into a state.

    Two worlds are equal if they have the same class and equal attributes.
    Equal worlds have the same rules, so compiled functions can be shared
    between them.

    Args:
        max_episode_steps: Positive integer, the number of steps after which an
            episode is cut off. By default episodes are never cut off.

    Raises:
        ValueError: If `max_episode_steps` is not a positive integer.
    """

    actions: tuple[str, ...]
    image_shape: tuple[int, ...]
    success_reward: float

    def __init__(self, max_episode_steps: int | None = None):
        if max_episode_steps is not None:
            check_positive_integers(max_episode_steps=max_episode_steps)
            max_episode_steps = int(max_episode_steps)
        self.max_episode_steps = max_episode_steps

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, World):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self):
        attributes = [
            (name, x.tobytes() if isinstance(x, np.ndarray) else x)
            for name, x in sorted(vars(self).items())
        ]
        return type(self), tuple(attributes)

    def new_episode(
        self, seed: keras.KerasTensor, episode: keras.KerasTensor
    ) -> State:
        """Makes the first state of episodes. A subclass defines it.

        Args:
            seed: uint32 tensor `(batch,)`.
            episode: int32 tensor `(batch,)`, the number of the episode among
                the episodes of the same seed.

        Returns:
            A state. It holds at least `seed`, `episode`, `steps` (zeros), and
            `level` `(batch, n)`, integers that say how hard the episode is.
        """
        raise NotImplementedError

    def move(
        self, state: State, actions: keras.KerasTensor
    ) -> tuple[State, keras.KerasTensor, keras.KerasTensor]:
        """Applies the rules of the world. A subclass defines it.

        `step` calls this method. `step` itself counts `steps` and cuts off
        episodes.

        Args:
            state: A state, in which `steps` already counts this move.
            actions: int32 tensor `(batch,)` of indices into `actions`.

        Returns:
            The next state, the rewards, float32 `(batch,)`, and the boolean
            tensor `terminated` `(batch,)`.
        """
        raise NotImplementedError

    def render(self, state: State) -> keras.KerasTensor:
        """Draws what the agent sees. A subclass defines it.

        Returns:
            uint8 tensor `(batch, *image_shape)`.
        """
        raise NotImplementedError

    def reset(self, seeds: Sequence[int] | np.ndarray) -> State:
        """Makes the first episode of each seed.

        Args:
            seeds: Integers `(batch,)`, from 0 to 2³² − 1. Equal seeds give
                equal episodes.

        Returns:
            A state: a dictionary of tensors with one row for each episode.
            Every world has `steps`, the number of steps so far, `level`
            `(batch, n)`, which says how hard the episode is, and `seed` and
            `episode`, which determine the next episode.
        """
        if not ops.is_tensor(seeds):  # JAX makes int32 of Python's integers.
            seeds = np.asarray(seeds, "uint32")
        seed = ops.cast(seeds, "uint32")
        return self.new_episode(seed, ops.zeros_like(seed, dtype="int32"))

    def step(
        self, state: State, actions: Sequence[int] | np.ndarray
    ) -> tuple[State, keras.KerasTensor, keras.KerasTensor, keras.KerasTensor]:
        """Takes one action in every episode.

        Args:
            state: A state, as `reset` returns it.
            actions: Integers `(batch,)`, indices into the attribute `actions`.

        Returns:
            `(state, reward, terminated, truncated)`: the next state; rewards,
            float32 `(batch,)`; and two boolean tensors `(batch,)`. `terminated`
            is `True` where the rules end the episode. `truncated` is `True`
            where the episode is cut off after `max_episode_steps`.

        Raises:
            ValueError: If the actions do not have the shape `(batch,)`, are not
                integers, or are not indices into the attribute `actions`. A
                compiled function cannot check values. There an index below the
                range becomes the first action, and an index above it the last.
        """
        actions = checked_actions(actions, state["steps"].shape, self.actions)
        if not isinstance(actions, np.ndarray):
            actions = ops.clip(actions, 0, len(self.actions) - 1)
        steps = state["steps"] + 1
        state = {**state, "steps": steps}
        state, reward, terminated = self.move(state, actions)
        truncated = functions_for(terminated).zeros_like(terminated)
        if self.max_episode_steps is not None:
            truncated = ~terminated & (steps >= self.max_episode_steps)
        return state, reward, terminated, truncated

    def restart(self, state: State, where: keras.KerasTensor) -> State:
        """Begins the next episode of the same seed in rows where it is over.

        `where` is a boolean tensor `(batch,)` that marks these rows.
        """

        # A new episode takes longer than a step, and at most steps few episodes
        # or none are over. So new ones are made for a part of the rows at once.
        some = max((where.shape[0] or 1) // 16, 1)
        numbers = np.arange(some, dtype="int32")[:, None]

        def some_begun(state, left):
            number = ops.cumsum(ops.cast(left, "int32")) - 1
            rows = ops.argmax(left & (number == numbers), axis=1)
            new = self.next_episode(
                {name: ops.take(x, rows, axis=0) for name, x in state.items()}
            )
            begun = left & (number < some)
            number = ops.clip(number, 0, some - 1)

            def chosen(old, new):
                shape = (-1,) + (1,) * (len(old.shape) - 1)
                new = ops.take(new, number, axis=0)
                return ops.where(ops.reshape(begun, shape), new, old)

            state = {name: chosen(x, new[name]) for name, x in state.items()}
            return state, left & ~begun

        state, _ = ops.while_loop(
            lambda state, left: ops.any(left), some_begun, (dict(state), where)
        )
        return state

    def next_episode(self, state: State) -> State:
        """Makes the first state of the next episode of each seed."""
        return self.new_episode(state["seed"], state["episode"] + 1)

    def step_or_restart(
        self,
        state: State,
        actions: Sequence[int] | np.ndarray,
        over: keras.KerasTensor,
    ) -> tuple[State, keras.KerasTensor, keras.KerasTensor, keras.KerasTensor]:
        """Takes one action, or begins a new episode where one is over.

        Args:
            state: A state, as `reset` returns it.
            actions: As for `step`. They have no effect where `over` is `True`.
            over: Boolean tensor `(batch,)`. `True` marks the rows whose episode
                is over.

        Returns:
            As `step` returns them. Where a new episode begins, the reward is 0
            and the other two are `False`.
        """
        moved, reward, terminated, truncated = self.step(state, actions)
        return (
            self.restart(moved, over),
            ops.where(over, 0.0, reward),
            terminated & ~over,
            truncated & ~over,
        )


def checked_actions(
    actions: Any, shape: tuple[int | None, ...], names: Sequence[str]
) -> keras.KerasTensor | np.ndarray:
    """Checks actions and casts them to int32.

    Args:
        actions: Integers, nested lists of integers, an array or a tensor. The
            values of a tensor inside a compiled function are not known, so they
            are not checked.
        shape: The shape that the actions should have. `None` matches any size.
        names: The names of the actions, for their number and the error.
    """
    # `ops.is_tensor` takes longer than all the rest.
    is_numpy = isinstance(actions, np.ndarray | np.generic)
    if hasattr(actions, "dtype") and not is_numpy:
        dtype = keras.backend.standardize_dtype(actions.dtype)
        are_integers = dtype.startswith(("int", "uint"))
    else:
        try:
            actions = np.asarray(actions)
        except ValueError:  # Lists of different lengths.
            actions = np.asarray(actions, dtype=object)
        dtype = actions.dtype
        are_integers = dtype.kind in "iu"
    given = tuple(actions.shape)
    fits = given == shape or (
        len(given) == len(shape)
        and all(
            None in sizes or sizes[0] == sizes[1]
            for sizes in zip(given, shape, strict=True)
        )
    )
    if not fits:
        raise ValueError(
            f"Actions must have the shape {tuple(shape)}, one integer for each "
            f"episode. Received: actions of shape {given}"
        )
    if not are_integers:
        raise ValueError(
            f"Actions must be integers. Received: actions={actions!r}, of "
            f"dtype {dtype}"
        )
    try:
        values = np.asarray(actions)
    except (NotImplementedError, TypeError):  # Inside a compiled function.
        return ops.cast(actions, "int32")
    outside = (values < 0) | (values >= len(names))
    if outside.any():
        allowed = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
        raise ValueError(
            f"There is no action {values[outside][0]}. Expected one of: "
            f"{allowed}. Received: actions={values}"
        )
    return values.astype("int32")


def uniform_integers(
    uniform: keras.KerasTensor,
    low: int | keras.KerasTensor,
    high: int | keras.KerasTensor,
) -> keras.KerasTensor:
    """Turns uniform numbers in [0, 1) into int32 from low to high, both in."""
    size = ops.cast(high - low + 1, "float32")
    return low + ops.cast(ops.floor(uniform * size), "int32")
