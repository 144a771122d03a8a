"""The worlds as Gymnasium environments, single and batched.

Importing `keras_relational` registers `keras_relational/BoxWorld-v0`,
`keras_relational/BridgeBoxWorld-v0` and `keras_relational/GotoObjectMaze-v0`,
whose arguments are those of the worlds in `boxworld` and `goto_object_maze`.
Gymnasium itself imports it where the package's name stands before the id:

>>> import gymnasium
>>> env = gymnasium.make("keras_relational:keras_relational/BoxWorld-v0")

From then on the id is enough:

>>> env = gymnasium.make("keras_relational/BridgeBoxWorld-v0", rows=7)
>>> image, info = env.reset(seed=0)
>>> image.shape, info["level"].shape
((7, 10, 3), (3,))
>>> envs = gymnasium.make_vec("keras_relational/BoxWorld-v0", num_envs=4)
>>> images, infos = envs.reset(seed=0)
>>> images.shape
(4, 9, 10, 3)

But for `max_episode_steps`: `gymnasium.make` takes that for a wrapper of its
own, which cuts episodes off from outside. Where the world should know it, as
the maze, whose reward depends on it, make it here: `WorldEnv("GotoObjectMaze",
max_episode_steps=30)`. `gymnasium.make_vec` passes it on.
"""

import functools
import typing

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space
from keras import ops

from keras_relational.environments.compilation import compiled
from keras_relational.environments.registration import WORLDS
from keras_relational.environments.world import checked_actions


class WorldEnv(gymnasium.Env):
    """One episode at a time.

    Observations are the images of `render`, actions the places in the world's
    `actions`; `info` has `level`. A seed given to `reset` fixes that
    episode and those after it.

    Args:
        world: A name in `WORLDS`.
        render_mode: `"rgb_array"`, or None.
        tile_size: Pixels of a tile's side in `render()`.
        **arguments: Those of the world.

    Raises:
        ValueError: If `world` or `render_mode` is unknown; from `step`, if the
            action is not in `action_space`.
    """

    metadata: typing.ClassVar = {
        "render_modes": ["rgb_array"],
        "render_fps": 8,
    }

    def __init__(self, world, render_mode=None, tile_size=16, **arguments):
        self.world = _world(world, arguments)
        if render_mode not in (None, "rgb_array"):
            raise ValueError(
                "`render_mode` must be None or 'rgb_array'. Received: "
                f"render_mode={render_mode!r}"
            )
        self.render_mode = render_mode
        self.tile_size = tile_size
        self.observation_space, self.action_space = _spaces(self.world)
        self._rules = _rules(self.world, 1)
        self._state = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        seeds = self.np_random.integers(2**32, size=1, dtype="uint32")
        self._state, images = self._rules.reset(seeds)
        self._image = ops.convert_to_numpy(images)[0]
        return self._image, self._info()

    def step(self, action):
        if self._state is None:
            raise gymnasium.error.ResetNeeded("Call reset() before step().")
        action = checked_actions(action, (), self.world.actions)
        self._state, images, *rest = self._rules.step(self._state, action[None])
        reward, terminated, truncated = (
            ops.convert_to_numpy(x)[0].item() for x in rest
        )
        self._image = ops.convert_to_numpy(images)[0]
        return self._image, reward, terminated, truncated, self._info()

    def render(self):
        if self.render_mode is None:
            return None
        if self._state is None:
            raise gymnasium.error.ResetNeeded("Call reset() before render().")
        return np.kron(
            self._image, np.ones((self.tile_size, self.tile_size, 1), "uint8")
        )

    def _info(self):
        level = ops.convert_to_numpy(self._state["level"])
        return {"level": level[0]}


class WorldVectorEnv(gymnasium.vector.VectorEnv):
    """Many episodes at a time, in one compiled call.

    An episode that is over is followed, at the next step, by the first image of
    a new one (`AutoresetMode.NEXT_STEP`); the action for it has no effect.

    Args:
        num_envs: Positive integer.
        world: A name in `WORLDS`.
        render_mode: None: many episodes make no picture.
        **arguments: Those of the world.

    Raises:
        ValueError: If `world` is unknown, or there is a `render_mode`; from
            `step`, if the actions are not in `action_space`.
    """

    metadata: typing.ClassVar = {
        "render_modes": [],
        "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP,
    }

    def __init__(self, num_envs, world, render_mode=None, **arguments):
        if render_mode is not None:
            raise ValueError(
                "Many episodes at a time make no picture. Received: "
                f"render_mode={render_mode!r}"
            )
        self.num_envs = num_envs
        self.world = _world(world, arguments)
        spaces = _spaces(self.world)
        self.single_observation_space, self.single_action_space = spaces
        self.observation_space, self.action_space = (
            batch_space(space, num_envs) for space in spaces
        )
        self._rules = _rules(self.world, num_envs)
        self._state = None

    def reset(self, *, seed=None, options=None):
        """Seeds: one integer, or one, or `None`, for each of the episodes."""
        if seed is None or isinstance(seed, int | np.integer):
            super().reset(seed=None if seed is None else int(seed))
            seeds = self.np_random.integers(
                2**32, size=self.num_envs, dtype="uint32"
            )
        else:
            if len(seed) != self.num_envs:
                raise ValueError(
                    f"One seed for each of the {self.num_envs} environments "
                    f"is needed. Received: {len(seed)} seeds."
                )
            # As for Gymnasium's own, `None` is a seed that nobody knows.
            seed = [
                np.random.SeedSequence().entropy if s is None else int(s)
                for s in seed
            ]
            # What later episodes are drawn from.
            self.np_random = np.random.default_rng(seed)
            seeds = np.array(
                [
                    np.random.default_rng(s).integers(2**32, dtype="uint32")
                    for s in seed
                ]
            )
        self._state, images = self._rules.reset(seeds)
        self._over = np.zeros(self.num_envs, bool)
        return ops.convert_to_numpy(images), self._info()

    def step(self, actions):
        if self._state is None:
            raise gymnasium.error.ResetNeeded("Call reset() before step().")
        actions = checked_actions(actions, (self.num_envs,), self.world.actions)
        self._state, *outputs = self._rules.vector_step(
            self._state, actions, self._over
        )
        images, reward, terminated, truncated = (
            ops.convert_to_numpy(x) for x in outputs
        )
        self._over = terminated | truncated
        return images, reward, terminated, truncated, self._info()

    def _info(self):
        everywhere = np.ones(self.num_envs, bool)
        return {
            "level": ops.convert_to_numpy(self._state["level"]),
            "_level": everywhere,
        }


class _Rules:
    """The functions of a world, compiled, with images."""

    def __init__(self, world):
        def reset(seeds):
            state = world.reset(seeds)
            return state, world.render(state)

        def step(state, actions):
            state, *rest = world.step(state, actions)
            return state, world.render(state), *rest

        def vector_step(state, actions, over):
            state, *rest = world.step_or_restart(state, actions, over)
            return state, world.render(state), *rest

        self.reset = compiled(reset)
        self.step = compiled(step)
        self.vector_step = compiled(vector_step)


@functools.lru_cache(maxsize=32)
def _rules(world, num_envs):
    """One for all environments of a kind: each number compiles anew."""
    return _Rules(world)


def _world(name, arguments):
    if name not in WORLDS:
        raise ValueError(
            f"Unknown world {name!r}. Expected one of: {', '.join(WORLDS)}"
        )
    return WORLDS[name](**arguments)


def _spaces(world):
    images = gymnasium.spaces.Box(0, 255, world.image_shape, np.uint8)
    return images, gymnasium.spaces.Discrete(len(world.actions))
