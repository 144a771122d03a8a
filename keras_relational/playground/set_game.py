"""SET: is there a set among five cards?

Altabaa and Lafferty, 2023, *Learning hierarchical relational representations
through relational convolutions*.
"""

from collections.abc import Mapping
from typing import Any

import keras

from keras_relational.datasets import set_game
from keras_relational.playground.answers import answer_as_text
from keras_relational.playground.arrays import as_json
from keras_relational.playground.networks import Network

NUM_HANDS = 200
QUESTION = (
    "Three cards are a set if each attribute is the same on all of them or "
    "another one on each. Is there a set?"
)
COLOURS = "red", "green", "purple"
SHAPES = "oval", "squiggle", "diamond"
SHADINGS = "empty", "striped", "solid"


class SetGame:
    """A reasoner's answers about hands of five cards.

    Args:
        model: Model of `models.set_classifier` for hands of
            `datasets.set_game`.
        arguments: Options of the run that trained it: `"seed"`.
    """

    page = "set_game"
    runs = ("few_examples set_game",)

    def __init__(
        self, model: keras.Model, arguments: Mapping[str, Any]
    ) -> None:
        self.model, self.seed = model, arguments["seed"]

    def describe(self) -> dict[str, Any]:
        """The names of the attributes, and hands that training never shows.

        Returns:
            Dictionary of `question`; `attributes`, for each of number, colour,
            shape and shading its three values; and `hands`, uint8 `(hands, 5,
            4)`, the value of each attribute.
        """
        hands, _ = self._hands()
        values = hands.reshape(len(hands), -1, 4, 3).argmax(-1)
        return {
            "question": QUESTION,
            "attributes": [("1", "2", "3"), COLOURS, SHAPES, SHADINGS],
            "hands": as_json(values.astype("uint8")),
        }

    def network(self) -> Network:
        """What the page runs.

        Returns:
            `Network` from `entities`, float32 `(batch, 5, 12)`, a 1 for the
            value of each attribute, to `logits`: no, yes.
        """
        model = self.model
        (entities,) = model.inputs
        return Network(
            model,
            {"entities": keras.InputSpec("float32", entities.shape)},
            lambda inputs: {"logits": model(inputs["entities"])},
        )

    def question(self, seed: int) -> list[str]:
        """Texts: a hand, and the model's answer."""
        hands, labels = self._hands()
        index = seed % len(labels)
        (logits,) = self.model.predict(hands[index : index + 1], verbose=0)
        cards = hands[index].reshape(-1, 4, 3).argmax(-1)
        return [
            QUESTION,
            "\n".join(
                f"{i + 1} {SHADINGS[shading]} {COLOURS[colour]} {SHAPES[shape]}"
                for i, colour, shape, shading in cards
            ),
            answer_as_text(("no", "yes"), logits, labels[index]),
        ]

    def _hands(self):
        """Hands whose sets training never shows, and whether they have one."""
        return set_game.load_data(2, 2, NUM_HANDS, seed=self.seed)[-1]
