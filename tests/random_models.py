"""Fixtures: small models of the Relations Game with random weights."""

import keras
import numpy as np
import pytest

from keras_relational import models
from keras_relational.datasets import relations_game

NUM_HEADS, NUM_RELATIONS = 4, 3


def random_model(central, num_tasks=0):
    """Heads and output MLP tell images apart, unlike those of a fresh one."""
    keras.utils.set_random_seed(1)
    model = models.relations_classifier(
        central,
        num_classes=4,
        num_tasks=num_tasks,
        num_heads=NUM_HEADS,
        num_relations=NUM_RELATIONS,
    )
    rng = np.random.default_rng(2)
    for name, scale in (("central", 0.4), ("hidden", 2), ("logits", 1)):
        for weight in model.get_layer(name).weights:
            weight.assign(rng.normal(scale=scale, size=weight.shape))
    return model


@pytest.fixture(scope="session")
def predinet():
    return random_model("predinet")


@pytest.fixture(scope="session")
def mha():
    return random_model("mha")


@pytest.fixture(scope="session")
def mlp():
    return random_model("mlp1")


@pytest.fixture(scope="session")
def multi_task_predinet():
    return random_model("predinet", num_tasks=3)


@pytest.fixture(scope="session")
def game():
    images, labels, _ = relations_game.generate("colour_and_shape", 30, seed=0)
    return images, labels
