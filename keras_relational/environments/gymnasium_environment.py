"""The worlds as Gymnasium environments, one episode or many at a time.

Importing `keras_relational` registers `keras_relational/BoxWorld-v0`,
`keras_relational/BridgeBoxWorld-v0` and `keras_relational/GotoObjectMaze-v0`.
They take the arguments of the worlds in `boxworld` and `goto_object_maze`. If
the name of the package precedes the id, Gymnasium imports the package itself:

>>> import gymnasium
>>> env = gymnasium.make("keras_relational:keras_relational/BoxWorld-v0")

After that the id is enough:

>>> env = gymnasium.make("keras_relational/BridgeBoxWorld-v0", rows=7)
>>> image, info = env.reset(seed=0)
>>> image.shape, info["level"].shape
((7, 10, 3), (3,))
>>> envs = gymnasium.make_vec("keras_relational/BoxWorld-v0", num_envs=4)
>>> images, infos = envs.reset(seed=0)
>>> images.shape
(4, 9, 10, 3)

`gymnasium.make` does not pass `max_episode_steps` to the world. It wraps the
environment in its own `TimeLimit` instead. But the reward of the maze depends
on `max_episode_steps`. So make the maze directly: `WorldEnv("GotoObjectMaze",
max_episode_steps=30)`. `gymnasium.make_vec` does pass the argument.
"""

import functools
import typing
from collections.abc import Sequence

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space
from keras import ops

from keras_relational.environments.batched_world import checked_actions
from keras_relational.environments.compilation import compiled
from keras_relational.environments.registration import WORLDS
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

# How many episodes of each row a vector environment makes in advance.
NUM_AHEAD = 8


class WorldEnv(gymnasium.Env):
    """One episode at a time.

    An observation is an image of the world's `render`, and an action is an
    index into the world's `actions`. `info` has the `level` of the episode. A
    seed given to `reset` fixes this episode and the episodes after it.

    Args:
        world: A name in `WORLDS`.
        render_mode: `"rgb_array"`, or None.
        tile_size: Positive integer, the side of a tile in `render()`, in
            pixels.
        **arguments: Arguments of the world.

    Raises:
        ValueError: If `world` or `render_mode` is unknown, or `tile_size` is
            not a positive integer. From `step`, if the action is not in
            `action_space`.
    """

    metadata: typing.ClassVar = {"render_modes": ["rgb_array"], "render_fps": 8}

    def __init__(
        self,
        world: str,
        render_mode: str | None = None,
        tile_size: int = 16,
        **arguments: object,
    ):
        self.world = _world(world, arguments)
        check_choice("render_mode", render_mode, (None, "rgb_array"))
        check_positive_integers(tile_size=tile_size)
        self.render_mode = render_mode
        self.tile_size = tile_size
        self.observation_space, self.action_space = _spaces(self.world)
        self._new_episodes = _new_episodes(self.world, 1)
        self._state = None

    def reset(
        self, *, seed: int | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begins an episode, and returns its first image and its `level`.

        Args:
            seed: Non-negative integer that fixes this episode and all later
                ones. By default the next episode of the present seed begins.
            options: Not used.
        """
        super().reset(seed=seed)
        seeds = self.np_random.integers(2**32, size=1, dtype="uint32")
        first = np.zeros(1, "int32")
        self._state = _arrays(self._new_episodes(seeds, first))
        return self._image(), self._info()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Takes one action, an index into the world's `actions`.

        Returns:
            `(image, reward, terminated, truncated, info)`.
        """
        if self._state is None:
            raise gymnasium.error.ResetNeeded("Call reset() before step().")
        action = checked_actions(action, (), self.world.actions)
        self._state, *rest = self.world.step(self._state, action[None])
        reward, terminated, truncated = (x[0].item() for x in rest)
        return self._image(), reward, terminated, truncated, self._info()

    def render(self) -> np.ndarray | None:
        """The last image, `tile_size` pixels for each tile.

        None without a `render_mode`.
        """
        if self.render_mode is None:
            return None
        if self._state is None:
            raise gymnasium.error.ResetNeeded("Call reset() before render().")
        tile = np.ones((self.tile_size, self.tile_size, 1), "uint8")
        return np.kron(self._image(), tile)

    def _image(self):
        return self.world.render(self._state)[0]

    def _info(self):
        return {"level": self._state["level"][0].copy()}


class WorldVectorEnv(gymnasium.vector.VectorEnv):
    """Many episodes at a time.

    At the step after the end of an episode a new episode begins
    (`AutoresetMode.NEXT_STEP`), and the action for this step has no effect.

    Args:
        num_envs: Positive integer, the number of episodes.
        world: A name in `WORLDS`.
        render_mode: None. A batch of episodes makes no picture.
        **arguments: Arguments of the world.

    Raises:
        ValueError: If `num_envs` is not a positive integer, `world` is unknown,
            or `render_mode` is not None. From `step`, if the actions are not in
            `action_space`.
    """

    metadata: typing.ClassVar = {
        "render_modes": [],
        "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP,
    }
    np_random: np.random.Generator

    def __init__(
        self,
        num_envs: int,
        world: str,
        render_mode: None = None,
        **arguments: object,
    ):
        check_positive_integers(num_envs=num_envs)
        if render_mode is not None:
            raise ValueError(
                "`render_mode` must be None: a batch of episodes makes no "
                "picture. Received: "
                f"render_mode={render_mode!r}"
            )
        self.num_envs = num_envs
        self.world = _world(world, arguments)
        spaces = _spaces(self.world)
        self.single_observation_space, self.single_action_space = spaces
        self.observation_space, self.action_space = (
            batch_space(space, num_envs) for space in spaces
        )
        self._new_episodes = _new_episodes(self.world, num_envs)
        self._later_episodes = _new_episodes(self.world, num_envs * NUM_AHEAD)
        self._state = None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict | None = None,
    ) -> tuple[np.ndarray, dict]:
        """Begins all episodes anew, and returns their first images and levels.

        Args:
            seed: Non-negative integer, or a sequence with one integer for each
                episode. It fixes these episodes and all later ones. `None` in
                the sequence stands for a random seed. By default the next
                episodes begin.
            options: Not used.
        """
        if seed is None or isinstance(seed, int | np.integer):
            super().reset(seed=None if seed is None else int(seed))
            seeds = self.np_random.integers(
                2**32, size=self.num_envs, dtype="uint32"
            )
        else:
            if len(seed) != self.num_envs:
                raise ValueError(
                    "`seed` must be an integer, or hold one seed for each of "
                    f"the {self.num_envs} environments. Received: {len(seed)} "
                    "seeds"
                )
            # As in Gymnasium, `None` is a random seed.
            entropies: list[typing.Any] = [
                np.random.SeedSequence().entropy if s is None else int(s)
                for s in seed
            ]
            # Later episodes are drawn from this generator.
            self.np_random = np.random.default_rng(entropies)
            seeds = np.array(
                [
                    np.random.default_rng(s).integers(2**32, dtype="uint32")
                    for s in entropies
                ]
            )
        first = np.zeros(self.num_envs, "int32")
        self._state = _arrays(self._new_episodes(seeds, first))
        self._over = np.zeros(self.num_envs, bool)
        self._ahead = None
        return self.world.render(self._state), self._info()

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Takes one action in each episode, or begins the next episode.

        Args:
            actions: Integers `(num_envs,)`, indices into the world's `actions`.

        Returns:
            `(images, rewards, terminated, truncated, infos)`.
        """
        if self._state is None:
            raise gymnasium.error.ResetNeeded("Call reset() before step().")
        state, reward, terminated, truncated = self.world.step(
            self._state, actions
        )
        if self._over.any():
            rows = np.flatnonzero(self._over)
            for name, new in self._next_episodes(rows).items():
                state[name] = state[name].copy()
                state[name][rows] = new
            reward[rows] = 0.0
            terminated, truncated = (
                x & ~self._over for x in (terminated, truncated)
            )
        self._state, self._over = state, terminated | truncated
        images = self.world.render(state)
        return images, reward, terminated, truncated, self._info()

    def _next_episodes(self, rows):
        """The first states of the episodes that come next in some rows.

        They are made in advance, the next `NUM_AHEAD` of all rows at a time.
        """
        episode, seed = self._state["episode"], self._state["seed"]
        if self._ahead is None or np.any(
            episode[rows] - self._present[rows] >= NUM_AHEAD
        ):
            self._present = episode
            later = np.arange(1, NUM_AHEAD + 1, dtype="int32")[:, None]
            numbers, seeds = (episode + later).ravel(), np.tile(seed, NUM_AHEAD)
            self._ahead = _arrays(self._later_episodes(seeds, numbers))
        place = (episode - self._present)[rows] * self.num_envs + rows
        return {name: x[place] for name, x in self._ahead.items()}

    def _info(self):
        everywhere = np.ones(self.num_envs, bool)
        return {"level": self._state["level"].copy(), "_level": everywhere}


@functools.lru_cache(maxsize=32)
def _new_episodes(world, batch_size):
    """Compiles once for all equal worlds and each number of episodes."""
    return compiled(world.new_episode)


def _arrays(state):
    """A state of NumPy's arrays. `step` and `render` then use NumPy, too."""
    return {name: ops.convert_to_numpy(x) for name, x in state.items()}


def _world(name, arguments):
    check_choice("world", name, WORLDS)
    return WORLDS[name](**arguments)


def _spaces(world):
    images = gymnasium.spaces.Box(0, 255, world.image_shape, np.uint8)
    return images, gymnasium.spaces.Discrete(len(world.actions))
