import numpy as np
import pytest

from experiments.generated_batches import GeneratedBatches
from experiments.scoff import videos
from keras_relational import layers
from keras_relational import models


def generate(num_videos, seed=None):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (num_videos, 6, 8, 8, 1), dtype="uint8")


@pytest.mark.parametrize(("given", "num_given"), [((), 5), ((2,), 2)])
def test_each_frame_but_the_first_is_predicted(given, num_given):
    made = videos.given_and_targets(generate, *given)
    batches = GeneratedBatches(made, 2, initial_batch=3, seed=7)
    x, y = batches[1]
    frames = generate(2, seed=[7, 4])
    np.testing.assert_array_equal(x, frames[:, :num_given])
    np.testing.assert_allclose(y, frames[:, 1:] / 255, atol=1e-6)
    assert y.dtype == np.float32
    assert batches.num_batches is None


def test_simple_roll_out_errors():
    frames = generate(3, seed=1)
    errors = videos.simple_roll_out_errors(frames, 2, 3)
    true = frames / 255
    mean = true.mean((0, 1))
    for i in range(3):
        expected = np.mean((true[:, 2 + i] - mean) ** 2)
        assert errors["mean_image"][i] == pytest.approx(expected, rel=1e-5)
        expected = np.mean((true[:, 2 + i] - true[:, 1]) ** 2)
        assert errors["last_frame"][i] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match=r"of 7 frames.*\(3, 6, 8, 8, 1\)"):
        videos.simple_roll_out_errors(frames, 4, 3)


def test_roll_out_errors():
    core = layers.SCOFF(4, 2, 2, return_sequences=True, return_state=True)
    model = models.video_predictor(core, image_size=8, networks="linear")
    frames = generate(3, seed=1)
    errors = videos.roll_out_errors(
        model, frames, num_given=2, num_frames=3, batch_size=2
    )
    rolled = models.roll_out_model(model, 3).predict(frames[:, :2], verbose=0)
    expected = [
        np.mean((rolled[:, i] - frames[:, 2 + i] / 255) ** 2) for i in range(3)
    ]
    np.testing.assert_allclose(errors, expected, rtol=1e-4)
    with pytest.raises(ValueError, match=r"of 7 frames.*\(3, 6, 8, 8, 1\)"):
        videos.roll_out_errors(model, frames, num_given=4, num_frames=3)
