"""Plays and records episodes of an agent, a teacher or a random player."""

import typing
from collections.abc import Callable
from collections.abc import Iterable

import keras
import numpy as np
from keras import ops

from keras_relational import models
from keras_relational.counter_based_random import random_draws
from keras_relational.environments.batched_world import World
from keras_relational.environments.compilation import compiled
from keras_relational.models.declared_roles import answer_index
from keras_relational.validation import check_positive_integers


def play(
    world: World,
    seeds: Iterable[int],
    model: keras.Model | None = None,
    greedy: bool = True,
    max_steps: int = 1_000,
    teacher: bool = False,
) -> dict[str, np.ndarray]:
    """Plays the first episode of each seed.

    Args:
        world: `environments.batched_world.World`, such as `BoxWorld`.
        seeds: Integers `(batch,)`. They determine the puzzles and all random
            moves.
        model: Agent of `models.boxworld_agent`, or another model that declares
            its states. By default a player makes random moves.
        greedy: Whether the agent makes its most probable move. Otherwise it
            draws a move from its policy.
        max_steps: Positive integer. An episode that takes longer is not solved.
        teacher: Whether the first of the world's `expert_moves` is made. The
            model and `greedy` then have no effect.

    Returns:
        Dictionary of arrays with one row an episode: `returns`; `lengths`, in
        steps; `solved`; `levels` `(batch, n)`.

    Example:

    >>> from keras_relational.environments import boxworld
    >>> world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0))
    >>> bool(play(world, range(4), max_steps=5_000)["solved"].all())
    True
    """
    player = _Player(world, model, greedy, teacher)
    if world.max_episode_steps is not None:
        max_steps = min(max_steps, world.max_episode_steps)

    def episodes(seeds, weights):
        state = world.reset(seeds)
        memory = player.first_memory(seeds)

        def unfinished(step, state, memory, over, *_):
            return ops.any(~over) & (step < max_steps)

        def step(step, state, memory, over, returns, lengths, solved):
            actions, memory = player.actions(
                weights, state, memory, seeds, step
            )
            state, reward, terminated, truncated = world.step(state, actions)
            reward = ops.where(over, 0.0, reward)
            return (
                step + 1,
                state,
                memory,
                over | terminated | truncated,
                returns + reward,
                lengths + ops.cast(~over, "int32"),
                solved | (reward >= world.success_reward),
            )

        zeros = ops.zeros_like(state["steps"])
        false = ops.zeros_like(zeros, dtype="bool")
        floats = ops.zeros_like(zeros, dtype="float32")
        levels = state["level"]
        first = (0, state, memory, false, floats, zeros, false)
        *_, returns, lengths, solved = ops.while_loop(unfinished, step, first)
        return {
            "returns": returns,
            "lengths": lengths,
            "solved": solved,
            "levels": levels,
        }

    seeds = np.asarray(seeds, dtype="uint32")
    results = compiled(episodes)(seeds, player.weights)
    return {k: ops.convert_to_numpy(v) for k, v in results.items()}


def record(
    world: World,
    seed: int,
    model: keras.Model | Callable[[np.ndarray], int] | None,
    greedy: bool = True,
    max_steps: int = 1_000,
) -> dict[str, typing.Any]:
    """Plays one episode and returns its images.

    Args:
        world: As for `play`.
        seed: Integer, seed of the episode.
        model: As for `play`, or a function that takes the image of a frame
            `(rows, columns + 1, 3)` and returns a move, an index into
            `world.actions`.
        greedy: As for `play`.
        max_steps: Positive integer. The record ends after this many moves.

    Returns:
        Dictionary of `images` `(steps + 1, rows, columns + 1, 3)`, from the
        first frame to the frame after the last move; `actions` and `rewards`
        `(steps,)`; and the boolean `solved`.

    Example:

    >>> from keras_relational.environments import boxworld
    >>> world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0))
    >>> len(record(world, 0, lambda image: 2, max_steps=5)["images"])
    6
    """
    choice = None
    if not isinstance(model, keras.Model | None):
        choice, model = model, None
    player = _Player(world, model, greedy)
    seeds = np.array([seed], "uint32")
    state, memory = world.reset(seeds), player.first_memory(seeds)
    step, choose = compiled(world.step), compiled(player.actions)
    images, actions, rewards = [world.render(state)], [], []
    for number in range(max_steps):
        if choice is not None:
            image = ops.convert_to_numpy(images[-1])[0]
            action = np.array([choice(image)], "int32")
        else:
            action, memory = choose(
                player.weights, state, memory, seeds, np.int32(number)
            )
        state, reward, terminated, truncated = step(state, action)
        images.append(world.render(state))
        actions.append(action)
        rewards.append(reward)
        if terminated[0] or truncated[0]:
            break
    arrays = [
        np.concatenate([ops.convert_to_numpy(x) for x in column])
        for column in (images, actions, rewards)
    ]
    return {
        **dict(zip(("images", "actions", "rewards"), arrays, strict=True)),
        "solved": bool(arrays[2][-1] >= world.success_reward),
    }


def frames(
    world: World,
    seeds: Iterable[int],
    model: keras.Model | None = None,
    every: int = 5,
    max_steps: int = 100,
) -> np.ndarray:
    """A sample of the frames of the first episode of each seed.

    Args:
        world: As for `play`.
        seeds: Integers `(batch,)`. They determine the puzzles and the moves.
        model: As for `play`. Its moves are drawn from its policy.
        every: Positive integer n: every n-th frame is taken.
        max_steps: Positive integer, the number of frames to take from at most.

    Returns:
        uint8 array `(frames, …)` of images. The frame in which an episode is
        over is not among them.

    Raises:
        ValueError: If a number is not a positive integer.

    Example:

    >>> from keras_relational.environments import boxworld
    >>> world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0))
    >>> frames(world, range(4), max_steps=10).shape[1:]
    (3, 7, 3)
    """
    check_positive_integers(every=every, max_steps=max_steps)
    player = _Player(world, model, greedy=False)

    def move(weights, state, memory, seeds, number):
        actions, memory = player.actions(weights, state, memory, seeds, number)
        state, _, terminated, truncated = world.step(state, actions)
        return state, memory, terminated | truncated

    move, seeds = compiled(move), np.asarray(seeds, "uint32")
    state, memory = world.reset(seeds), player.first_memory(seeds)
    taken, over = [], np.zeros(len(seeds), bool)
    for number in range(max_steps):
        if number % every == 0:
            taken.append(ops.convert_to_numpy(world.render(state))[~over])
        state, memory, now = move(
            player.weights, state, memory, seeds, np.int32(number)
        )
        over |= ops.convert_to_numpy(now)
        if over.all():
            break
    return np.concatenate(taken)


class _Player:
    """Makes the moves of an agent with or without a memory, or other moves."""

    def __init__(self, world, model, greedy, teacher=False):
        self.world = world
        self.model = model
        self.greedy = greedy
        self.teacher = teacher
        self.weights = ()
        self.states = ()
        if model is not None:
            roles = models.roles(model)
            self.answer = answer_index(roles)
            self.num_outputs = len(roles.outputs)
            self.states = [x for x in model.inputs if x.name in roles.states]
            variables = (
                model.trainable_variables,
                model.non_trainable_variables,
            )
            self.weights = tuple([v.value for v in kind] for kind in variables)

    def first_memory(self, seeds):
        """Zeros: the first frame starts the cell from its initial state."""
        return tuple(
            ops.zeros((seeds.shape[0], *x.shape[1:]), x.dtype)
            for x in self.states
        )

    def actions(self, weights, state, memory, seeds, step):
        if self.teacher:
            expert_actions = self.world.expert_moves(state)
            expert_actions = ops.cast(expert_actions, "int32")
            return ops.argmax(expert_actions, axis=-1), memory
        logits = ops.zeros((*state["steps"].shape, len(self.world.actions)))
        if self.model is not None:
            images = self.world.render(state)
            if memory:
                is_first = ops.broadcast_to(step == 0, (seeds.shape[0], 1))
                images = [images[:, None], is_first, *memory]
            outputs, _ = self.model.stateless_call(*weights, images)
            outputs = keras.tree.flatten(outputs)
            logits, new = outputs[self.answer], outputs[self.num_outputs :]
            # Under a policy of lower precision, new states have another type.
            memory = [
                ops.cast(x, old.dtype)
                for x, old in zip(new, memory, strict=True)
            ]
            logits = ops.reshape(logits, (-1, len(self.world.actions)))
        if self.model is None or not self.greedy:
            return random_draws(logits, seeds[:, None], step), tuple(memory)
        return ops.argmax(logits, axis=-1), tuple(memory)
