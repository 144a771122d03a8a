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
from keras_relational.analysis.block_attention import player_entities
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.environments import boxworld
from keras_relational.environments.compilation import compiled
from keras_relational.models.declared_roles import answer_index
from keras_relational.playground.arrays import as_numbers
from keras_relational.playground.arrays import as_pixels
from keras_relational.playground.arrays import from_pixels
from keras_relational.playground.arrays import integer
from keras_relational.playground.arrays import integers
from keras_relational.random_streams import unseen_world_seeds

MAX_MOVES = 1_000
NUM_PUZZLES = 100_000


class BoxWorldPuzzles:
    """An agent's moves, and the puzzle after any moves.

    Args:
        model: Agent of `models.boxworld_agent` without a memory.
        arguments: Options of the puzzles, as `world_of_options` takes them.

    Raises:
        ValueError: If the agent has a memory.
    """

    page = "boxworld"
    experiments = ("boxworld_impala", "boxworld_positions", "boxworld_teacher")

    def __init__(
        self, model: keras.Model, arguments: Mapping[str, Any]
    ) -> None:
        if models.roles(model).states:
            raise ValueError(
                "The page is for agents without a memory. Received: an agent "
                f"with the states {', '.join(models.roles(model).states)}"
            )
        self.model, self._outputs = model, CompiledPart(model, model)
        self.world = boxworld.world_of_options(arguments)
        self._reset = compiled(self.world.reset)

    def describe(self) -> dict[str, Any]:
        """The names of the moves, for the page."""
        return {"moves": list(self.world.actions)}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The puzzle after some moves, and the policy for the next one.

        Args:
            request: Dictionary of `puzzle`, a number from 0 on, and `moves`, a
                list of places in the world's `actions`. Training draws none of
                these puzzles.

        Returns:
            Dictionary of `image`; the `number` of moves that were made until
            the puzzle was over; `end`, `"solved"`, `"lost"`, `"out of moves"`
            or `None`; `reward`, the sum so far; `policy`, the probability of
            each move; and `attention`. For each head of each iteration it has a
            title, and the weights `(rows, columns)` that the entity at the
            player gives to all entities.

        Raises:
            ValueError: If the request has another form.
        """
        puzzle = integer(request, "puzzle", 0, NUM_PUZZLES)
        moves = integers(
            request, "moves", MAX_MOVES, len(self.world.actions) - 1
        )
        seed = unseen_world_seeds(1)[0] + puzzle
        state = self._reset(np.array([seed], "uint32"))
        state = keras.tree.map_structure(ops.convert_to_numpy, state)
        number, total, end = 0, 0.0, None
        for move in moves:
            number += 1
            state, reward, terminated, truncated = self.world.step(
                state, np.array([move], "int32")
            )
            total += float(reward[0])
            if terminated[0] or truncated[0]:
                solved = reward[0] >= self.world.success_reward
                lost = "lost" if terminated[0] else "out of moves"
                end = "solved" if solved else lost
                break
        image = ops.convert_to_numpy(self.world.render(state))
        answer = {
            "image": as_pixels(image[0]),
            "number": number,
            "end": end,
            "reward": total,
            "policy": None,
            "attention": [],
        }
        if end is None:
            outputs = keras.tree.flatten(self._outputs.predict_on_batch(image))
            logits = outputs[answer_index(models.roles(self.model))]
            policy = ops.softmax(logits.astype("float32"))[0]
            answer["policy"] = as_numbers(ops.convert_to_numpy(policy))
            answer["attention"] = self._attention(image)
        return answer

    def question(self, seed: int) -> list[str]:
        """Texts: a puzzle, and how the agent plays it by drawn moves."""
        rng = np.random.default_rng(seed)
        moves: list[int] = []
        found = self.answer({"puzzle": seed, "moves": moves})
        board = analysis.puzzle_as_text(from_pixels(found["image"]))
        while found["end"] is None and len(moves) < MAX_MOVES:
            policy = np.array(found["policy"])
            moves.append(int(rng.choice(len(policy), p=policy / policy.sum())))
            found = self.answer({"puzzle": seed, "moves": moves})
        names = " ".join(self.world.actions[move] for move in moves)
        return [
            "The player @ takes a single key by walking onto it, and opens a "
            "box by walking onto its lock, its right tile, with a key of that "
            "colour. The gem * is in the last box.",
            board,
            f"Its moves: {names}.",
            f"The puzzle is {found['end'] or 'not over'}, with a reward of "
            f"{found['reward']:g}.",
        ]

    def _attention(self, image):
        if "block" not in models.roles(self.model).parts:
            return []
        standard = analysis.block_attention(self.model, image).standard[0]
        (player,) = player_entities(image)
        shape = image.shape[1] - 2, image.shape[2] - 2
        return [
            {
                "title": f"iteration {iteration + 1}, head {head + 1}",
                "weights": as_numbers(
                    standard[iteration, head, player].reshape(shape)
                ),
            }
            for iteration, head in np.ndindex(*standard.shape[:2])
        ]
