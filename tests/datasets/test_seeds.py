"""A seed fixes the training data and the test data, and another one others."""

import numpy as np
import pytest

from keras_relational.datasets import adding
from keras_relational.datasets import bouncing_balls
from keras_relational.datasets import intuitive_physics
from keras_relational.datasets import single_ball

LOADERS = {
    "adding": lambda seed: adding.load_data(3, 3, seed=seed),
    "balls": lambda seed: bouncing_balls.load_data("4balls", 2, 2, seed=seed),
    "ball": lambda seed: single_ball.load_data(2, 2, seed=seed),
    "physics": lambda seed: intuitive_physics.load_data(
        "O1", 2, 2, 20, seed=seed
    ),
}


@pytest.mark.parametrize("name", LOADERS)
def test_the_seed_fixes_training_and_test_data(name):
    one, again, other = (
        [x for x, _ in LOADERS[name](seed)] for seed in (1, 1, 2)
    )
    for a, b, c in zip(one, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()
