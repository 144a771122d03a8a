"""BoxWorld: play a puzzle, or let an agent play it.

Clift et al., 2019, *Logic and the 2-Simplicial Transformer*.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_relational import analysis
from keras_relational import models
from keras_relational.analysis.block_attention import scores_part
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.environments import boxworld
from keras_relational.environments.boxworld import BLANK
from keras_relational.environments.boxworld import EMPTY
from keras_relational.environments.boxworld import GEM
from keras_relational.environments.boxworld import HUES
from keras_relational.environments.boxworld import PLAYER
from keras_relational.environments.compilation import compiled
from keras_relational.models.declared_roles import answer_index
from keras_relational.playground.arrays import as_json
from keras_relational.playground.networks import Network
from keras_relational.random_streams import unseen_world_seeds

NUM_PUZZLES = 200  # For the page.


class BoxWorldPuzzles:
    """An agent's moves, and the puzzle after any moves.

    Args:
        model: Agent of `models.boxworld_agent` without a memory.
        arguments: Options of the puzzles, as `world_of_options` takes them.

    Raises:
        ValueError: If the agent has a memory.
    """

    page = "boxworld"
    runs = ("boxworld_impala", "boxworld_positions", "boxworld_teacher")

    def __init__(
        self, model: keras.Model, arguments: Mapping[str, Any]
    ) -> None:
        if models.roles(model).states:
            raise ValueError(
                "The page is for agents without a memory. Received: an agent "
                f"with the states {', '.join(models.roles(model).states)}"
            )
        self.model = model
        self.world = boxworld.world_of_options(arguments)

    def describe(self) -> dict[str, Any]:
        """Puzzles and the rules' sizes, for the page.

        Returns:
            Dictionary of `actions`; `rows` and `columns` of the board;
            `max_steps` of an episode; `success_reward`; `cells_of_slot`, as the
            world has it; `colours`, which numbers on a board are no keys or
            locks; `hues`, those of keys and locks; and `puzzles`, the arrays of
            the first states of puzzles that training never draws.
        """
        world = self.world
        seeds = np.array(unseen_world_seeds(NUM_PUZZLES), "uint32")
        state = compiled(world.reset)(seeds)
        arrays = {
            name: ops.convert_to_numpy(state[name]).astype("int32")
            for name in ("board", "inventory", "losing", "player")
        }
        return {
            "actions": list(world.actions),
            "rows": world.rows,
            "columns": world.columns,
            "max_steps": world.max_episode_steps,
            "success_reward": world.success_reward,
            "cells_of_slot": world.cells_of_slot.tolist(),
            "colours": {
                "blank": BLANK,
                "empty": EMPTY,
                "gem": GEM,
                "player": PLAYER,
            },
            "hues": list(HUES),
            "puzzles": {name: as_json(x) for name, x in arrays.items()},
        }

    def network(self) -> Network:
        """What the page runs.

        Returns:
            `Network` from `image`, uint8 `(batch, rows, columns + 1, 3)`, to
            `policy` `(batch, 4)`, logits; and for an agent with a Transformer
            block `attention` `(batch, iterations, heads, entities, entities)`.
        """
        model, policy, attention = self.model, self._policy(), None
        if "block" in models.roles(model).parts:
            attention = scores_part(model).function

        def run(inputs):
            image = inputs["image"]
            found = {"policy": policy(image)}
            if attention is not None:
                standard, *_ = keras.tree.flatten(attention(image))
                found["attention"] = standard
            return found

        shape = (None, *self.world.image_shape)
        return Network(model, {"image": keras.InputSpec("uint8", shape)}, run)

    def question(self, seed: int) -> list[str]:
        """Texts: a puzzle, and how the agent plays it by drawn moves."""
        rng = np.random.default_rng(seed)
        # The model alone, without the attention that a page shows.
        policy = CompiledPart(self.model, self._policy())
        moves: list[int] = []

        def draw(image):
            logits = policy.predict_on_batch(image[np.newaxis])
            chances = ops.convert_to_numpy(ops.softmax(logits))[0]
            chances = chances.astype("float64") / chances.sum(dtype="float64")
            moves.append(int(rng.choice(len(chances), p=chances)))
            return moves[-1]

        first = unseen_world_seeds(seed + 1)[seed]
        played = analysis.record(self.world, first, draw)
        names = " ".join(self.world.actions[move] for move in moves)
        reward = played["rewards"].sum()
        last = played["rewards"][-1]
        solved = last >= self.world.success_reward
        end = "solved" if solved else "lost" if last < 0 else "out of moves"
        return [
            "The player @ takes a single key by walking onto it, and opens a "
            "box by walking onto its lock, its right tile, with a key of that "
            "colour. The gem * is in the last box.",
            analysis.puzzle_as_text(played["images"][0]),
            f"Its moves: {names}.",
            f"The puzzle is {end}, with a reward of {reward:g}.",
        ]

    def _policy(self):
        """A function of images to the logits of the moves."""
        model, index = self.model, answer_index(models.roles(self.model))
        return lambda image: keras.tree.flatten(model(image))[index]
