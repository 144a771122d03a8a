"""Sorting: ten objects in the order that a model has learned.

Altabaa et al., 2024, *Abstractors and relational cross-attention*.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_relational.datasets import ordered_objects
from keras_relational.models.reasoners import greedy_decode
from keras_relational.playground.arrays import as_json
from keras_relational.playground.networks import Network
from keras_relational.random_streams import stream


class Sorting:
    """Sequences of ten objects, and the order in which a model puts them.

    Args:
        model: Model of `models.sorter`.
        arguments: Options of the run that trained it: `"seed"`.
    """

    page = "sorting"
    runs = ("few_examples sorting",)

    def __init__(
        self, model: keras.Model, arguments: Mapping[str, Any]
    ) -> None:
        self.model = model
        self.seed = arguments["seed"]
        self.objects = ordered_objects.products(
            stream(self.seed, "objects_beside_batches")
        )

    def describe(self) -> dict[str, Any]:
        """The objects, for the page.

        Returns:
            Dictionary of `objects`, float32 `(48, 12)`, in order; and
            `num_values`, how many values each of their two attributes has: the
            first decides, and the second where the first is the same.
        """
        return {
            "objects": as_json(self.objects),
            "num_values": ordered_objects.NUM_VALUES,
        }

    def network(self) -> Network:
        """What the page runs.

        Returns:
            `Network` from `entities`, float32 `(batch, 10, 12)`, and `places`,
            int32 `(batch, 10)`, the places that were put out so far, one step
            late, to `logits` `(batch, 10, 10)`, for each step the places.
        """
        model = self.model
        specs = {
            name: keras.InputSpec(x.dtype, x.shape)
            for name, x in zip(
                ("entities", "places"), model.inputs, strict=True
            )
        }

        def run(inputs):
            return {"logits": model((inputs["entities"], inputs["places"]))}

        return Network(model, specs, run)

    def question(self, seed: int) -> list[str]:
        """Texts: a sequence, and how the model sorts it."""
        test = ordered_objects.load_sequences(1, 1, seed=self.seed)[-1]
        index = seed % len(test[0])
        sequence, right = test[0][index], test[1][index]
        ranks = (sequence[:, np.newaxis] == self.objects).all(-1).argmax(1)
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
