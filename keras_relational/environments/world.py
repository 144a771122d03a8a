"""What all worlds share: episodes that follow one another, and colours.

A tile is its colour, packed into one integer: red + 256 green + 65536 blue.
"""

import colorsys

import keras
import numpy as np
from keras import ops

GREY = 1 + 256 + 65536


class World:
    """Episodes as pure functions of tensors with one row an episode.

    A world has `actions`, their names, `image_shape`, and `success_reward`, the
    least reward of a step that solves an episode. It adds its rules,
    `step`, what the agent sees, `render`, and `_new`, the first state of the
    episode that a seed and a number stand for.

    Two worlds of one class and with equal attributes have the same rules. They
    are equal, and share what is compiled of them.

    Args:
        max_episode_steps: Number of steps after which an episode is cut off;
            by default never.

    Raises:
        ValueError: If `max_episode_steps` is no positive integer.
    """

    def __init__(self, max_episode_steps=None):
        if max_episode_steps is not None and (
            not isinstance(max_episode_steps, int) or max_episode_steps < 1
        ):
            raise ValueError(
                "`max_episode_steps` must be a positive integer or None. "
                f"Received: max_episode_steps={max_episode_steps}"
            )
        self.max_episode_steps = max_episode_steps

    def __eq__(self, other):
        if not isinstance(other, World):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self):
        return hash(self._identity())

    def _identity(self):
        attributes = [
            (name, x.tobytes() if isinstance(x, np.ndarray) else x)
            for name, x in sorted(vars(self).items())
        ]
        return type(self), tuple(attributes)

    def reset(self, seeds):
        """The first episode of each seed.

        Args:
            seeds: Integers `(batch,)`, from 0 to 2³² − 1. Equal ones give equal
                episodes.

        Returns:
            A state: dictionary of tensors with one row an episode. In each are
            `steps` made so far; `level` `(batch, n)`; `seed` and
            `episode`, from which the next episode is made.
        """
        if not ops.is_tensor(seeds):  # JAX makes int32 of Python's integers.
            seeds = np.asarray(seeds, "uint32")
        seed = ops.cast(seeds, "uint32")
        return self._new(seed, ops.zeros_like(seed, dtype="int32"))

    def restart(self, state, where):
        """The next episode of the same seed for some of the rows.

        Args:
            state: As returned by `reset`.
            where: Boolean tensor `(batch,)`.

        Returns:
            A state.
        """

        def restarted():
            new = self._new(state["seed"], state["episode"] + 1)
            return {name: chosen(x, new[name]) for name, x in state.items()}

        def chosen(old, new):
            shape = (-1,) + (1,) * (len(old.shape) - 1)
            return ops.where(ops.reshape(where, shape), new, old)

        # Most of the time no episode is over, and nothing has to be made.
        return ops.cond(ops.any(where), restarted, lambda: dict(state))

    def step_or_restart(self, state, actions, over):
        """One move where the episode goes on, the next episode elsewhere.

        Args:
            state: As returned by `reset`.
            actions: As for `step`, without effect where the episode is over.
            over: Boolean tensor `(batch,)`.

        Returns:
            As `step`: reward 0, and no end, where an episode begins.

        Raises:
            ValueError: As `step`.
        """
        moved, reward, terminated, truncated = self.step(state, actions)
        return (
            self.restart(moved, over),
            ops.where(over, 0.0, reward),
            terminated & ~over,
            truncated & ~over,
        )

    def _checked(self, state, actions):
        """The actions of `step` as int32, one a row.

        Raises:
            ValueError: As `checked_actions`. Inside a compiled function their
                values are not known: there they are cut to the first or last
                action.
        """
        actions = checked_actions(actions, state["steps"].shape, self.actions)
        return ops.clip(actions, 0, len(self.actions) - 1)


def checked_actions(actions, shape, names):
    """Actions as int32, if that is what they are.

    Args:
        actions: Integers, nested lists of them, an array or a tensor. The
            values of a tensor inside a compiled function are not known, and
            not checked.
        shape: The shape that they should have; `None` matches any size.
        names: The names of the actions, whose places in it are allowed.

    Returns:
        int32 array or tensor.

    Raises:
        ValueError: If they are of another shape, not integers, or not places in
            `names`.
    """
    if ops.is_tensor(actions):
        kind = keras.backend.standardize_dtype(actions.dtype)
        are_integers = kind.startswith(("int", "uint"))
    else:
        try:
            actions = np.asarray(actions)
        except ValueError:  # Lists of different lengths.
            actions = np.asarray(actions, dtype=object)
        kind = actions.dtype
        are_integers = kind.kind in "iu"
    given = tuple(actions.shape)
    if len(given) != len(shape) or any(
        None not in sizes and sizes[0] != sizes[1]
        for sizes in zip(given, shape, strict=True)
    ):
        raise ValueError(
            f"Actions of shape {tuple(shape)} are needed, an integer for each "
            f"episode. Received: actions of shape {given}"
        )
    if not are_integers:
        raise ValueError(
            f"Actions are integers. Received: actions={actions!r}, of dtype "
            f"{kind}"
        )
    try:
        values = np.asarray(actions)
    except (NotImplementedError, TypeError):  # Inside a compiled function.
        return ops.cast(actions, "int32")
    wrong = values[(values < 0) | (values >= len(names))]
    if wrong.size:
        allowed = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
        raise ValueError(
            f"There is no action {wrong[0]}. Expected: {allowed}. Received: "
            f"actions={values}"
        )
    return values.astype("int32")


def packed(hue, saturation, value):
    """A colour, from numbers between 0 and 1, as one integer.

    Of red, green and blue each is rounded to a byte, as in the palette of
    Clift et al., 2019.
    """
    parts = colorsys.hsv_to_rgb(hue, saturation, value)
    return sum(round(255 * part) << 8 * i for i, part in enumerate(parts))


def unpacked(colours):
    """From packed colours `(...)` to uint8 pixels `(..., 3)`."""
    bytes_ = ops.right_shift(colours[..., None], np.int32([0, 8, 16]))
    return ops.cast(ops.bitwise_and(bytes_, np.int32(255)), "uint8")


def between(uniform, low, high):
    """Integers from low to high, both included, from numbers in [0, 1)."""
    size = ops.cast(high - low + 1, "float32")
    return low + ops.cast(ops.floor(uniform * size), "int32")


def choose(index, values):
    """Of the values, that of each index."""
    return ops.take(np.array(values, "int32"), index)
