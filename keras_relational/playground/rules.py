"""Rules: choose symbols, and an ESBN completes the rule.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_relational import analysis
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.datasets import distribution_of_three
from keras_relational.playground.arrays import answer_as_text
from keras_relational.playground.arrays import as_numbers
from keras_relational.playground.arrays import as_pixels
from keras_relational.playground.arrays import integer
from keras_relational.playground.arrays import integers

NUM_SHOWN = 5  # Fillers before the options.
NUM_OPTIONS = 4
QUESTIONS = {
    "distribution_of_three": "The second row has the symbols of the first, in "
    "another order. Which one is missing?",
    "identity_rules": "The second row follows the rule of the first. Which "
    "symbol comes next?",
}


class Rules:
    """An ESBN's choice among four symbols, and the memories that it reads.

    Args:
        model: Model of `models.rule_learner` with `sequential="esbn"` that
            chooses among images.
        arguments: Options of the run that trained it: `"task"`, `"mode"`,
            `"fillers"`, `"withheld"` and `"seed"`.

    Raises:
        ValueError: If the task has no four options, or the fillers are no
            images.
    """

    page = "rules"
    experiments = ("esbn_rules",)

    def __init__(
        self, model: keras.Model, arguments: Mapping[str, Any]
    ) -> None:
        kind = [arguments[name] for name in ("task", "mode", "fillers")]
        if kind[0] not in QUESTIONS or kind[1:] != ["multiple_choice", "image"]:
            raise ValueError(
                f"The page is for the tasks {', '.join(QUESTIONS)} with images "
                f"and multiple choice. Received: {', '.join(kind)}"
            )
        self.model, self._logits = model, CompiledPart(model, model)
        self.task = arguments["task"]
        self.withheld = arguments["withheld"]
        folder = arguments.get("images")
        self.fillers, _, self.problems = distribution_of_three.split_fillers(
            distribution_of_three.load_images(folder)
            if folder
            else distribution_of_three.glyphs(),
            withheld=self.withheld,
            task=self.task,
            seed=arguments["seed"],
        )

    def describe(self) -> dict[str, Any]:
        """The question and the symbols, for the page.

        Returns:
            Dictionary of `question`; `fillers`, all images; `num_trained`: so
            many of them, the first ones, are in training; and `num_problems`.
        """
        return {
            "question": QUESTIONS[self.task],
            "fillers": as_pixels(self.fillers),
            "num_trained": len(self.fillers) - self.withheld,
            "num_problems": len(self.problems.labels),
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The probability of each option, and which memories are read.

        Args:
            request: Dictionary of `fillers`, the numbers of the five fillers
                and the four options; or of `problem`, the number of a problem
                whose fillers are not in training.

        Returns:
            Dictionary of `fillers`; `right`, the place of the right option, or
            `None` if none or several are right; `probabilities` of the options;
            and `read` `(steps, time)`, the weight of the memory of each step
            when a step reads.

        Raises:
            ValueError: If the request has neither form.
        """
        if "problem" in request:
            last = len(self.problems.labels) - 1
            problem = integer(request, "problem", 0, last)
            numbers = self.problems.fillers[problem].tolist()
        else:
            length = NUM_SHOWN + NUM_OPTIONS
            last = len(self.fillers) - 1
            numbers = integers(request, "fillers", length, last)
            if len(numbers) != length:
                raise ValueError(
                    f"`fillers` must be {length} numbers: {NUM_SHOWN} fillers "
                    f"and {NUM_OPTIONS} options. Received: {len(numbers)}"
                )
        images = self.fillers[numbers][None]
        logits = self._logits.predict_on_batch(images).astype("float32")
        probabilities = ops.convert_to_numpy(ops.softmax(logits))[0]
        read = analysis.bindings(self.model, images).key_scores[0]
        return {
            "fillers": numbers,
            "right": self._right(numbers),
            "probabilities": as_numbers(probabilities),
            "read": as_numbers(read),
        }

    def question(self, seed: int) -> list[str]:
        """Texts: a rule over symbols never seen, and the model's answer."""
        found = self.answer({"problem": seed % len(self.problems.labels)})
        numbers = [f"{number:2}" for number in found["fillers"]]
        options = [number.strip() for number in numbers[NUM_SHOWN:]]
        choice = int(np.argmax(found["probabilities"]))
        return [
            f"{QUESTIONS[self.task]} Each number stands for the image of a "
            "symbol that training never shows.",
            f"{' '.join(numbers[:3])}\n{' '.join(numbers[3:NUM_SHOWN])}  ?\n"
            f"options: {' '.join(numbers[NUM_SHOWN:])}",
            answer_as_text(
                options[choice],
                found["probabilities"][choice],
                options[found["right"]],
            ),
        ]

    def _right(self, numbers):
        first, second = numbers[:3], numbers[3:NUM_SHOWN]
        if self.task == "distribution_of_three":
            right = set(first) - set(second)
            if len(set(first)) < 3 or len(right) != 1:
                return None
        elif len(set(first[:2])) == len(set(second)):
            # The third filler repeats the first, the second, or both.
            pairs = zip(first, second, strict=False)
            right = {y for x, y in pairs if x == first[2]}
        else:
            return None
        places = np.isin(numbers[NUM_SHOWN:], list(right)).nonzero()[0]
        return int(places[0]) if len(places) == 1 else None
