"""Does a predictor tell what is possible from what is not?"""

import numpy as np
import pytest

from experiments.scoff.intuitive_physics import physics_tests
from experiments.scoff.intuitive_physics import plausibility
from experiments.scoff.intuitive_physics import relative_error
from keras_relational import layers
from keras_relational import models
from keras_relational.datasets import intuitive_physics
from keras_relational.random_streams import stream


def test_plausibility_is_minus_the_error():
    core = layers.SCOFF(4, 2, 2, return_sequences=True, return_state=True)
    model = models.video_predictor(core, image_size=8, networks="linear")
    rng = np.random.default_rng(2)
    videos = rng.integers(0, 256, (3, 6, 8, 8, 1), dtype="uint8")
    found = plausibility(model, videos, batch_size=2)
    errors = (
        model.predict(videos[:, :-1], verbose=0) - videos[:, 1:] / 255
    ) ** 2
    np.testing.assert_allclose(found, -errors.mean((1, 2, 3, 4)), rtol=1e-5)


def test_physics_tests():
    tests = physics_tests(2, 3, num_frames=20, image_size=16)
    for number, block in enumerate(["O1", "O2", "O3"], start=1):
        seed = stream(3, "block_beside_batches", number)
        expected = intuitive_physics.generate(block, 2, 20, seed, 16)
        np.testing.assert_array_equal(tests.pop(block), expected)
    assert not tests


def test_relative_error():
    sure, wrong, tie = [2, 2, 1, 1], [0, 1, 1, 1], [1, 0, 0, 1]
    assert relative_error([sure]) == 0
    assert relative_error([wrong]) == 1
    assert relative_error([sure, sure, wrong, tie]) == 0.375
    with pytest.raises(ValueError, match="is NaN"):
        relative_error([sure, [2, 2, np.nan, 1]])
