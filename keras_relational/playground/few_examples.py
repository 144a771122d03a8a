"""Tasks that are learned from few examples: SET, sorting, the Relations Game.

Altabaa et al., 2024, *Abstractors and relational cross-attention*. Altabaa and
Lafferty, 2023, *Learning hierarchical relational representations through
relational convolutions*.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_relational import analysis
from keras_relational.datasets import ordered_objects
from keras_relational.datasets import relations_game
from keras_relational.datasets import set_game
from keras_relational.models.reasoners import greedy_decode
from keras_relational.playground.arrays import answer_as_text
from keras_relational.playground.relations_game import NO_YES
from keras_relational.playground.relations_game import QUESTIONS
from keras_relational.random_streams import stream

COLOURS = "red", "green", "purple"
SHAPES = "oval", "squiggle", "diamond"
SHADINGS = "empty", "striped", "solid"


class FewExamples:
    """A reasoner's answers about sets of vectors.

    Args:
        model: Model of `models.set_classifier`, or for the task `"sorting"` of
            `models.sorter`.
        arguments: Options of the run that trained it: `"task"` and `"seed"`.

    Raises:
        ValueError: If there are no questions about the task.
    """

    page = None
    experiments = ("few_examples",)

    def __init__(
        self, model: keras.Model, arguments: Mapping[str, Any]
    ) -> None:
        self.task, self.seed = arguments["task"], arguments["seed"]
        if self.task not in {"set_game", "sorting", *QUESTIONS}:
            raise ValueError(
                "There are questions about set_game, sorting and the Relations "
                f"Game. Received: a model of the task {self.task!r}"
            )
        self.model = model

    def question(self, seed: int) -> list[str]:
        """Texts: a question about a set, and the model's answer."""
        if self.task == "set_game":
            return self._hand(seed)
        if self.task == "sorting":
            return self._sequence(seed)
        images, labels, _ = relations_game.generate(
            self.task, 2, "hexominoes", seed
        )
        index = seed % 2
        return [
            QUESTIONS[self.task],
            analysis.board_as_text(images[index]),
            self._no_or_yes(relations_game.tiles(images)[index], labels[index]),
        ]

    def _hand(self, seed):
        _, _, (hands, labels) = set_game.load_data(2, 2, seed=self.seed)
        index = seed % len(labels)
        cards = hands[index].reshape(-1, 4, 3).argmax(-1)
        return [
            "Three cards are a set if each attribute is the same on all of "
            "them or another one on each. Is there a set?",
            "\n".join(
                f"{i + 1} {SHADINGS[shading]} {COLOURS[colour]} {SHAPES[shape]}"
                for i, colour, shape, shading in cards
            ),
            self._no_or_yes(hands[index], labels[index]),
        ]

    def _no_or_yes(self, entities, label):
        logits = self.model.predict(entities[np.newaxis], verbose=0)
        probabilities = ops.convert_to_numpy(ops.softmax(logits))[0]
        chosen = int(probabilities.argmax())
        return answer_as_text(
            NO_YES[chosen].lower(),
            probabilities[chosen],
            NO_YES[label].lower(),
        )

    def _sequence(self, seed):
        test = ordered_objects.load_sequences(1, 1, seed=self.seed)[-1]
        index = seed % len(test[0])
        sequence, right = test[0][index], test[1][index]
        objects = ordered_objects.products(
            stream(self.seed, "objects_beside_batches")
        )
        ranks = (sequence[:, np.newaxis] == objects).all(-1).argmax(1)
        found = greedy_decode(self.model, sequence[np.newaxis])[0]
        return [
            "Each number stands for an object, a vector in which its place in "
            "the order cannot be seen. The model learned the order from sorted "
            "sequences. How does it sort these?",
            "\n".join(
                f"{name:7}{' '.join(f'{rank:2}' for rank in ranks[places])}"
                for name, places in (
                    ("given:", slice(None)),
                    ("sorted:", found),
                    ("right:", right),
                )
            ),
        ]
