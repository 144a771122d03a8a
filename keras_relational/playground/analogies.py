"""Visual analogies: which image completes A is to B as C is to D?

Webb et al., 2020, *Learning Representations that Support Extrapolation*.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_relational.datasets import vaec
from keras_relational.playground.networks import Network


class Analogies:
    """A scorer's choice among seven images, in each region of levels.

    Args:
        model: Model of `models.visual_analogy_scorer`.
        arguments: Options of the run that trained it: `"regime"` and
            `"image_size"`.
    """

    page = "analogies"
    runs = ("vaec",)

    def __init__(
        self, model: keras.Model, arguments: Mapping[str, Any]
    ) -> None:
        self.model = model
        self.regime = arguments["regime"]
        self.image_size = arguments["image_size"]

    def describe(self) -> dict[str, Any]:
        """What the page needs to make problems.

        Returns:
            Dictionary of `regime`, `dimensions`, the names of what an image
            varies in, `regions` and `image_size`.
        """
        return {
            "regime": self.regime,
            "dimensions": vaec.DIMENSIONS,
            "regions": vaec.REGIONS,
            "image_size": self.image_size,
        }

    def network(self) -> Network:
        """What the page runs.

        Returns:
            `Network` from `images`, uint8 `(batch, 7, size, size, 3)`,
            `context`, int32 `(batch, 3)`, and `candidates`, int32 `(batch, 7)`,
            to `logits` `(batch, 7)`.
        """
        model, size = self.model, self.image_size
        specs = {
            "images": keras.InputSpec("uint8", (None, 7, size, size, 3)),
            "context": keras.InputSpec("int32", (None, 3)),
            "candidates": keras.InputSpec("int32", (None, 7)),
        }
        return Network(model, specs, lambda x: {"logits": model(dict(x))})

    def question(self, seed: int) -> list[str]:
        """Texts: a problem of each region, and the model's answer."""
        rng = np.random.default_rng(seed)
        lines = [
            "A is to B as C is to which of seven images? They differ in:",
            "",
        ]
        for region in vaec.REGIONS:
            problems = vaec.generate(self.regime, region, [1, seed, region])
            index = int(rng.integers(len(problems.levels)))
            problem = vaec.Problems(*(x[index : index + 1] for x in problems))
            inputs = vaec.model_inputs(problem, self.image_size)
            scores = self.model.predict(inputs, verbose=0)[0]
            chosen = problem.candidates[0, int(scores.argmax())]
            levels = problem.levels[0, :, problem.dimension[0]]
            a, b, c = levels[problem.context[0]]
            right = levels[problem.candidates[0, 0]]
            name = vaec.DIMENSIONS[problem.dimension[0]]
            lines.append(
                f"{name}, region {region}: level {a} is to {b} as {c} is to "
                f"{levels[chosen]}. Right: {right}."
            )
        return lines
