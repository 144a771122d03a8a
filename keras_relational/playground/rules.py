"""Rules: choose symbols, and an ESBN completes the rule.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*.
"""

from collections.abc import Mapping
from typing import Any

import keras

from keras_relational.analysis.esbn_memory import memory_part
from keras_relational.datasets import distribution_of_three
from keras_relational.playground.answers import answer_as_text
from keras_relational.playground.arrays import as_json
from keras_relational.playground.networks import Network

NUM_SHOWN = 5  # Fillers before the options.
NUM_OPTIONS = 4
NUM_PROBLEMS = 200  # For the page.
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
    runs = ("esbn_rules",)

    def __init__(
        self, model: keras.Model, arguments: Mapping[str, Any]
    ) -> None:
        kind = [arguments[name] for name in ("task", "mode", "fillers")]
        if kind[0] not in QUESTIONS or kind[1:] != ["multiple_choice", "image"]:
            raise ValueError(
                f"The page is for the tasks {', '.join(QUESTIONS)} with images "
                f"and multiple choice. Received: {', '.join(kind)}"
            )
        self.model = model
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
            Dictionary of `question`; `task`; `fillers`, all images;
            `num_trained`: so many of them, the first ones, are in training; and
            `problems`, each of the numbers of five fillers and four options.
        """
        return {
            "question": QUESTIONS[self.task],
            "task": self.task,
            "fillers": as_json(self.fillers),
            "num_trained": len(self.fillers) - self.withheld,
            "problems": as_json(self.problems.fillers[:NUM_PROBLEMS]),
        }

    def network(self) -> Network:
        """What the page runs.

        Returns:
            `Network` from `fillers`, uint8 `(batch, 9, 32, 32)`, the five of a
            problem and its four options, to `logits` `(batch, 4)` and `read`
            `(batch, steps, 9)`, the weight of the memory of each step when a
            step reads.
        """
        model, read = self.model, memory_part(self.model).function

        def run(inputs):
            fillers = inputs["fillers"]
            return {
                "logits": model(fillers),
                "read": read(fillers)["key_scores"],
            }

        shape = (None, NUM_SHOWN + NUM_OPTIONS, *self.fillers.shape[1:])
        return Network(model, {"fillers": keras.InputSpec("uint8", shape)}, run)

    def question(self, seed: int) -> list[str]:
        """Texts: a rule over symbols never seen, and the model's answer."""
        problem = seed % len(self.problems.labels)
        fillers = self.problems.fillers[problem]
        (logits,) = self.model.predict(self.fillers[fillers][None], verbose=0)
        numbers = [f"{number:2}" for number in fillers]
        options = [number.strip() for number in numbers[NUM_SHOWN:]]
        return [
            f"{QUESTIONS[self.task]} Each number stands for the image of a "
            "symbol that training never shows.",
            f"{' '.join(numbers[:3])}\n{' '.join(numbers[3:NUM_SHOWN])}  ?\n"
            f"options: {' '.join(numbers[NUM_SHOWN:])}",
            answer_as_text(options, logits, self.problems.labels[problem]),
        ]
