"""The Relations Game: place objects, and ask a model about them.

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_relational import analysis
from keras_relational import models
from keras_relational.datasets import relations_game
from keras_relational.layers import PrediNet
from keras_relational.playground.answers import answer_as_text
from keras_relational.playground.networks import Network

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
        model: Model of `models.relations_classifier`, or of
            `models.set_classifier` on the nine tiles of a board.
        arguments: Mapping with the `"task"`, or the tasks of the model as
            `"target"`, in the order of their numbers.
    """

    page = "relations"
    runs = (
        "predinet_relations_game",
        "predinet_transfer",
        *(f"few_examples {task}" for task in QUESTIONS),
    )

    def __init__(
        self, model: keras.Model, arguments: Mapping[str, Any]
    ) -> None:
        self.model = model
        self.tasks = arguments.get("target") or [arguments["task"]]
        self.answers = ANSWERS.get(self.tasks[0], NO_YES)
        self._several = len(model.inputs) > 1
        self._takes_tiles = model.inputs[0].shape[1:] == (9, 432)

    def describe(self) -> dict[str, Any]:
        """What the page needs to draw boards and to judge answers.

        Returns:
            Dictionary of `tasks`, their names; `questions`, one for each;
            `answers`; `shapes`, for each set of objects the filled blocks of
            each shape; `colours`; and `mechanism`, the class of the layer that
            compares.
        """
        named = models.roles(self.model).parts
        central = "central" if "central" in named else "reasoner"
        return {
            "tasks": self.tasks,
            "questions": [_question(task) for task in self.tasks],
            "answers": self.answers,
            "shapes": {
                name: relations_game.shape_masks(name).astype(int).tolist()
                for name in ("pentominoes", "hexominoes")
            },
            "colours": relations_game.COLOURS.tolist(),
            "mechanism": type(models.part(self.model, central)).__name__,
        }

    def network(self) -> Network:
        """What the page runs.

        Returns:
            `Network` from `image`, uint8 `(batch, 36, 36, 3)`, and for a model
            of several tasks `task`, uint8 `(batch,)`, to `logits`. For a
            PrediNet there are three more outputs: `maps` `(batch, heads, 2,
            25)`, what the two attentions of a head give to the 5 by 5 places;
            `differences` `(batch, heads)`, how far apart a head finds what it
            looks at, where 1 is the median of two objects that differ; and
            `effects` `(batch, heads, answers)`, how the logits change if a head
            says something in place of what it says on average.
        """
        model, several = self.model, self._several
        takes_tiles, heads = self._takes_tiles, self._heads()

        def run(inputs):
            image = inputs["image"]
            if takes_tiles:
                x = ops.reshape(image, (-1, 3, 12, 3, 12, 3))
                x = ops.reshape(ops.swapaxes(x, 2, 3), (-1, 9, 432))
                return {"logits": model(ops.cast(x, "float32") / 255)}
            x = (image, inputs["task"]) if several else image
            return {"logits": model(x)} | heads(x)

        specs = {"image": keras.InputSpec("uint8", (None, 36, 36, 3))}
        if several:
            specs["task"] = keras.InputSpec("uint8", (None,))
        return Network(model, specs, run)

    def question(self, seed: int) -> list[str]:
        """Texts: a question about a board, and the model's answer."""
        task = seed % len(self.tasks)
        images, labels, _ = relations_game.generate(
            self.tasks[task], 1, "hexominoes", seed=[1, seed]
        )
        x: Any = images
        if self._takes_tiles:
            x = relations_game.tiles(images)
        elif self._several:
            x = images, np.array([task], "uint8")
        (logits,) = self.model.predict(x, verbose=0)
        return [
            _question(self.tasks[task]),
            analysis.board_as_text(images[0]),
            answer_as_text(
                [answer.lower() for answer in self.answers],
                logits,
                labels[0],
            ),
        ]

    def _heads(self):
        """A function of the model's inputs to the outputs about its heads."""
        model = self.model
        if "central" not in models.roles(model).parts:
            return lambda x: {}
        central, hidden, last = (
            models.part(model, name) for name in ("central", "hidden", "logits")
        )
        if not isinstance(central, PrediNet):
            return lambda x: {}
        entities = keras.Model(model.inputs[0], central.input)
        features = keras.Model(model.input, hidden.input)
        # The mean of what each head says about boards with new objects.
        boards, _, tasks = relations_game.generate(
            self.tasks, 500, "hexominoes", seed=[0]
        )
        several = self._several
        said = features.predict(
            (boards, tasks) if several else boards, verbose=0
        )
        num_heads, size = central.num_heads, central.output.shape[-1]
        of_head = np.zeros((num_heads, said.shape[1]), "float32")
        of_head[:, :size] = np.eye(num_heads).repeat(size // num_heads, axis=1)
        mean = said.mean(axis=0)
        kernel = ops.convert_to_numpy(central.relation_kernel)
        scale = _median_difference(
            boards, entities.predict(boards, verbose=0), kernel
        )

        def heads(x):
            image = x[0] if several else x
            outputs, maps = central(
                entities(image), return_attention_scores=True
            )
            said = features(x)[:, None]
            replaced = said + of_head * (mean - said)
            effects = last(hidden(said)) - last(hidden(replaced))
            outputs = ops.reshape(outputs, (-1, num_heads, size // num_heads))
            apart = outputs[..., -4:-2] - outputs[..., -2:]
            seen = outputs[..., :-4] - ops.matmul(apart, kernel[-2:])
            return {
                "maps": ops.stack(maps, axis=2),
                "differences": ops.max(ops.abs(seen), axis=-1) / scale,
                "effects": effects,
            }

        return heads


def _median_difference(boards, entities, kernel):
    """The median of the largest distance between two objects that differ.

    Every second place of the encoder sees a tile of the board.
    """
    tiles = relations_game.tiles(boards)
    n, features = len(boards), entities.shape[-1] - 2
    seen = entities[:, ::2, ::2, :features].reshape(n, 9, -1)
    values = seen @ kernel[:features]
    first, second = np.triu_indices(9, 1)
    differ = (
        (tiles[:, first] != tiles[:, second]).any(-1)
        & tiles[:, first].any(-1)
        & tiles[:, second].any(-1)
    )
    apart = np.abs(values[:, first] - values[:, second]).max(-1)
    return np.float32(np.median(apart[differ]))


def _question(task):
    line, _, pattern = task.partition("_")
    return QUESTIONS.get(
        task,
        f"Three objects in a {line}. Is their pattern {pattern}? Equal letters "
        "are equal objects.",
    )
