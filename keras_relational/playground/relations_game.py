"""The Relations Game: place objects, and ask a PrediNet about them.

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_relational import analysis
from keras_relational import models
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.datasets import relations_game
from keras_relational.playground.arrays import answer_as_text
from keras_relational.playground.arrays import as_numbers
from keras_relational.playground.arrays import as_pixels
from keras_relational.playground.arrays import from_pixels
from keras_relational.playground.arrays import integer

NUM_HEADS = 4  # The heads that are shown.
# Pentominoes are trained on, hexominoes are not.
OBJECT_SETS = ("pentominoes", "hexominoes")
QUESTIONS = {
    "same": "Two objects. Are they the same?",
    "between": "Three objects. Is one between two that are the same?",
    "occurs": "Is the object of the top row also in the bottom row?",
    "xoccurs": "Is the object of the top row also in the bottom row, next to "
    "two that differ?",
    "colour_and_shape": "Two objects. What do they have in common?",
    "match_rows": "Do the top and the bottom row have the same pattern?",
}
ANSWERS = {"colour_and_shape": ["Both", "The shape", "The colour", "Nothing"]}
NO_YES = ["No", "Yes"]


class RelationsGame:
    """Answers for boards of the Relations Game.

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"`.
        arguments: Mapping with the `"task"`, or the tasks of the model as
            `"target"`, in the order of their numbers.
    """

    page = "relations_game"
    experiments = ("predinet_relations_game", "predinet_transfer")

    def __init__(
        self, model: keras.Model, arguments: Mapping[str, Any]
    ) -> None:
        self.model = model
        self.tasks = arguments.get("target") or [arguments["task"]]
        self.answers = ANSWERS.get(self.tasks[0], NO_YES)
        # `head_effects` takes each head's mean output over these images.
        self.others, *_ = relations_game.generate(
            self.tasks, 500, "hexominoes", seed=[0]
        )
        central = models.part(model, "central")
        entities = keras.Model(model.inputs[0], central.input)
        self._logits = CompiledPart(model, model)
        self._propositions = CompiledPart(
            model, lambda images: central.propositions(entities(images))
        )

    def describe(self) -> dict[str, Any]:
        """The questions, and how to draw the objects, for the page.

        Returns:
            Dictionary of `questions`, one for each task; `answers`; `shapes`,
            for each set of objects the filled blocks of each shape; and
            `colours`.
        """
        return {
            "questions": [_question(task) for task in self.tasks],
            "answers": self.answers,
            "shapes": {
                name: relations_game.shape_masks(name).astype(int).tolist()
                for name in OBJECT_SETS
            },
            "colours": relations_game.COLOURS.tolist(),
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer for a board, and the heads that decide it.

        Args:
            request: Dictionary of `task`, the number of the question, 0 if it
                is missing; and of `board`, nine tiles row by row, each `None`
                or a list of a set of objects, a shape and a colour, or of
                `example`, a number that stands for a board that is drawn at
                random, of shapes that training never shows.

        Returns:
            Dictionary of `board`; `image`; `answer`; `probability`; `right`,
            the right answer of an example; and `heads`. For each head, there
            are its number, its `effect` on the answer's logit beside the mean
            of all logits, the weights `(2, 25)` of its two attention maps, and
            its proposition as `text`.

        Raises:
            ValueError: If the request has neither form.
        """
        right = None
        task = integer({"task": 0} | request, "task", 0, len(self.tasks) - 1)
        if "example" in request:
            seed = integer(request, "example", 0, 2**31)
            images, labels, _ = relations_game.generate(
                self.tasks[task], 1, "hexominoes", seed=[1, seed]
            )
            board, right = _tiles(images[0], "hexominoes"), int(labels[0])
        else:
            board = _checked_board(request.get("board"))
            images = _image_of(board)
        inputs, others = (self._inputs(x, task) for x in (images, self.others))
        logits = self._logits.predict_on_batch(inputs).astype("float32")
        probabilities = ops.convert_to_numpy(ops.softmax(logits))[0]
        answer = int(probabilities.argmax())
        effects = analysis.head_effects(self.model, inputs, others)[0]
        effects -= effects.mean(axis=-1, keepdims=True)
        heads = np.abs(effects[:, answer]).argsort()[::-1][:NUM_HEADS]
        maps = analysis.attention_maps(self.model, images)[0]
        said = self._propositions.predict_on_batch(images)
        said = {name: values[0] for name, values in said.items()}
        return {
            "board": board,
            "image": as_pixels(images[0]),
            "answer": self.answers[answer],
            "right": None if right is None else self.answers[right],
            "probability": float(probabilities[answer]),
            "heads": [
                {
                    "head": int(head),
                    "effect": float(effects[head, answer]),
                    "maps": as_numbers(maps[head].reshape(2, -1)),
                    "text": analysis.proposition_as_text(
                        said, heads[i : i + 1]
                    ),
                }
                for i, head in enumerate(heads)
            ],
        }

    def question(self, seed: int) -> list[str]:
        """Texts: a question about a board, and the model's answer."""
        task = seed % len(self.tasks)
        found = self.answer({"example": seed, "task": task})
        return [
            _question(self.tasks[task]),
            analysis.board_as_text(from_pixels(found["image"])),
            answer_as_text(
                found["answer"].lower(),
                found["probability"],
                found["right"].lower(),
            ),
            f"One of its heads decides most. {found['heads'][0]['text']}",
        ]

    def _inputs(self, images, task):
        if len(self.model.inputs) == 1:
            return images
        return images, np.full(len(images), task, "int32")


def _question(task):
    line, _, pattern = task.partition("_")
    return QUESTIONS.get(
        task,
        f"Three objects in a {line}. Is their pattern {pattern}? Equal letters "
        "are equal objects.",
    )


def _checked_board(board):
    def is_object(tile):
        if not isinstance(tile, list) or len(tile) != 3:
            return False
        name, *numbers = tile
        if name not in OBJECT_SETS or any(type(x) is not int for x in numbers):
            return False
        shape, colour = numbers
        num_shapes = len(relations_game.shape_masks(name))
        return 0 <= shape < num_shapes and 0 <= colour < 25

    if (
        not isinstance(board, list)
        or len(board) != 9
        or not all(tile is None or is_object(tile) for tile in board)
    ):
        raise ValueError(
            "`board` must be a list of nine tiles, each null or [objects, "
            f"shape, colour]. Received: {board!r:.100}"
        )
    return board


def _image_of(board):
    """A board as an image, `(1, 36, 36, 3)`."""
    layers = []
    for name in OBJECT_SETS:
        layer = np.full((2, 1, 9), -1)
        for place, tile in enumerate(board):
            if tile is not None and tile[0] == name:
                layer[:, 0, place] = tile[1:]
        layers.append(relations_game.render(layer, name))
    return np.maximum(*layers)


def _tiles(image, name):
    """The tiles of an image: the inverse of `_image_of`."""
    blocks = image.reshape(3, 12, 3, 12, 3)[:, 2:10:3, :, 2:10:3]
    blocks = blocks.transpose(0, 2, 1, 3, 4).reshape(9, 9, 3)
    masks = relations_game.shape_masks(name).reshape(-1, 9)
    board = []
    for tile in blocks:
        filled = tile.any(axis=-1)
        if not filled.any():
            board.append(None)
            continue
        shape = (masks == filled).all(axis=-1).argmax()
        colour = (relations_game.COLOURS == tile[filled][0]).all(-1).argmax()
        board.append([name, int(shape), int(colour)])
    return board
