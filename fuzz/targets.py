"""The models under attack, small and untrained, and what they are asked."""

import dataclasses

import keras
import numpy as np

from keras_relational import models

NUM_TASKS = 3


@dataclasses.dataclass(frozen=True)
class Target:
    """A model, and a request that it answers.

    Attributes:
        name: What requests call it.
        build: Function that makes the model.
        inputs: Arrays of a request, by the names of the inputs.
        indices: How many there are to point at, by the inputs that point.
        states: Names of the inputs that must be finite.
    """

    name: str
    build: object
    inputs: dict
    indices: dict
    states: tuple = ()


def targets():
    """The three models."""
    rng = np.random.default_rng(0)

    def images(*shape):
        return rng.integers(256, size=shape, dtype="uint8")

    def numbers(*shape):
        return rng.standard_normal(shape).astype("float32")

    return [
        Target(
            "relations",
            lambda: models.relations_classifier(
                num_tasks=NUM_TASKS, num_heads=4, num_relations=3, key_dim=5
            ),
            {
                "image": images(2, 36, 36, 3),
                "task": np.array([0, 2], "uint8"),
            },
            {"task": NUM_TASKS},
        ),
        Target(
            "analogies",
            lambda: models.analogy_scorer(image_size=32, num_candidates=2),
            {
                "images": images(2, 5, 32, 32, 3),
                "context": np.array([[0, 1, 2], [2, 1, 0]], "int32"),
                "candidates": np.array([[3, 4], [4, 3]], "int32"),
            },
            {"context": 5, "candidates": 5},
        ),
        Target(
            "agent",
            lambda: models.boxworld_agent(
                "relational", (3, 7, 3), cell=keras.layers.LSTMCell(6)
            ),
            {
                "image": images(2, 2, 3, 7, 3),
                "is_first": np.array([[True, False], [False, False]]),
                "state_0": numbers(2, 6),
                "state_1": numbers(2, 6),
            },
            {},
            ("state_0", "state_1"),
        ),
    ]
