"""The video's page: its frames and its roll-out are those of the library."""

import keras
import numpy as np
import pytest
from browser_for_tests import in_node

from keras_relational import analysis
from keras_relational import layers
from keras_relational import models
from keras_relational.datasets import single_ball
from keras_relational.datasets.balanced_labels import balanced_labels
from keras_relational.playground.video import Videos

pytestmark = pytest.mark.any_backend

RULES = "video_rules.js"
NUM_VIDEOS = 4


def world_of(num_axes, image_size, bulb_radius, **others):
    return {
        "axes": single_ball.OSCILLATIONS[:num_axes],
        "num_frames": 40,
        "num_schemata": 2,
        "image_size": image_size,
        "bulb_radius": bulb_radius,
    } | others


@pytest.mark.parametrize(
    ("num_axes", "image_size", "bulb_radius"), [(2, 32, 4), (3, 64, 2)]
)
def test_frames_are_those_of_the_data(num_axes, image_size, bulb_radius):
    images, axes, _ = single_ball.generate_switching(
        NUM_VIDEOS, 40, 3, image_size, bulb_radius, num_axes
    )
    # What the data draw, in their order: axes, speeds, and where a ball starts.
    rng = np.random.default_rng(3)
    balanced_labels(rng, NUM_VIDEOS, num_axes)
    if num_axes > 2:
        rng.integers(1, num_axes, (NUM_VIDEOS, 1))
    speeds = rng.uniform(*single_ball.OSCILLATION_SPEEDS, NUM_VIDEOS)
    room = np.array([56, 54 - 2 * bulb_radius])
    starts = rng.uniform(0, 2 * room, (NUM_VIDEOS, 1, 2))[:, 0]
    found = in_node(
        RULES,
        "axes.map((x, i) => it.framesOf(world, { axes: x, centres:"
        " it.oscillation(world, x, speeds[i], starts[i]) }).map("
        "(frame) => Array.from(frame)))",
        world=world_of(num_axes, image_size, bulb_radius),
        axes=axes.tolist(),
        speeds=speeds.tolist(),
        starts=starts.tolist(),
    )
    np.testing.assert_array_equal(found, images.reshape(NUM_VIDEOS, 40, -1))


@pytest.mark.parametrize("num_axes", [2, 3])
def test_new_videos_are_like_those_of_the_data(num_axes):
    world = world_of(num_axes, 32, 4)
    found = in_node(
        RULES,
        "Array.from({ length: 50 }, () => it.newVideo(world, Math.random))"
        ".map((x) => [x.axes, x.centres, it.outside(world, x)])",
        world=world,
    )
    begun = set()
    for axes, centres, outside in found:
        assert len(set(axes[:20])) == len(set(axes[20:])) == 1
        assert axes[0] != axes[20]
        begun.add(axes[0])
        centres = np.array(centres)
        assert centres.min() >= 4
        assert (centres <= [60, 50]).all()
        moves = abs(np.diff(centres, axis=0))
        assert (moves[:20].max(axis=0) > 0).tolist() == [
            [True, False],
            [False, True],
            [True, True],
        ][axes[0]]
        assert 2 <= moves.max() <= 4
        assert outside == []
    assert len(begun) == num_axes


def test_the_roll_out_goes_on_from_its_own_frames():
    # The stub adds up the pixels that it has seen, and its schema is 1 after
    # an odd pixel.
    world = world_of(2, 1, 4, num_frames=8)
    found, sizes = in_node(
        RULES,
        """await (async () => {
            const sizes = [];
            const run = async (seen) => {
                let sum = 0;
                const sums = Float32Array.from(seen, (x) => (sum += x) % 256);
                return {
                    predicted: sums.map((x) => x / 255),
                    schemata: Float32Array.from({ length: 16 }, (_, i) =>
                        (seen[i >> 1] % 2) * (i % 2 ? 1 : -1)),
                };
            };
            const frames = [[1], [2], [40]].map((x) => Uint8Array.from(x));
            const result = await it.rollOut(
                world, frames, run, (size) => sizes.push(size));
            result.predicted = result.predicted.map((x) => Array.from(x));
            return [result, sizes];
        })()""",
        world=world,
    )
    seen, predicted = [1, 2, 40], [1, 3]
    while len(seen) < 8:
        predicted.append(sum(seen) % 256)
        seen.append(predicted[-1])
    assert sizes == [3, 4, 5, 6, 7, 8]
    assert np.ravel(found["predicted"]).tolist() == predicted
    assert found["schemata"] == [x % 2 for x in seen]


def test_videos_of_ones_own():
    world = world_of(2, 32, 4)
    steps = [(0, 1, 3), (0, 1, 3), (1, -1, 3), (0, -1, 4), (0, 1, 3)]
    video, outside, corner = in_node(
        RULES,
        """(() => {
            let video = { centres: [[30, 30]], axes: [0] };
            for (const step of steps) video = it.stepped(world, video, ...step);
            const corner = { centres: [[60, 4]], axes: [0] };
            return [video, it.outside(world, video),
                it.stepped(world, corner, 0, 1, 3)];
        })()""",
        world=world,
        steps=steps,
    )
    assert video == {
        "centres": [[30, 30], [33, 30], [36, 30], [36, 27], [32, 27], [35, 27]],
        "axes": [0, 0, 1, 0, 0, 0],
    }
    assert len(outside) == 3
    assert corner is None


@pytest.fixture(scope="module")
def videos():
    keras.utils.set_random_seed(0)
    core = layers.SCOFF(8, 1, 2, return_sequences=True, return_state=True)
    model = models.video_predictor(
        core, positions=False, image_size=16, networks="linear"
    )
    return Videos(
        model, {"dynamics": "switching", "image_size": 16, "bulb_radius": 4}
    )


def test_the_network_predicts_and_chooses_as_the_model(videos):
    told = videos.describe()
    assert told["axes"] == ("horizontal", "vertical")
    frames, *_ = single_ball.generate_switching(1, told["num_frames"], 0, 16, 4)
    network = videos.network()
    found = network.run({"frames": frames})
    predicted = videos.model.predict(frames, verbose=0)
    np.testing.assert_allclose(found["predicted"], predicted, atol=1e-4)
    schemata = analysis.object_files(videos.model, frames).schemata
    np.testing.assert_allclose(found["schemata"], schemata, atol=1e-4)
    # Frames to come change nothing: the page may leave them black.
    frames[:, 30:] = 0
    again = network.run({"frames": frames})
    for name, x in again.items():
        np.testing.assert_allclose(x[:, :30], found[name][:, :30], atol=1e-5)
    # From frames of whole numbers it goes on as `roll_out_model`.
    for there in range(30, told["num_frames"]):
        predicted = network.run({"frames": frames})["predicted"][:, there - 1]
        frames[:, there] = np.round(predicted.clip(0, 1) * 255)
    expected = models.roll_out_model(videos.model, 10).predict(
        frames[:, :30], verbose=0
    )
    np.testing.assert_allclose(frames[:, 30:] / 255, expected, atol=0.01)


def test_refuses_other_balls(videos):
    with pytest.raises(ValueError, match="dynamics switching, three_axes"):
        Videos(videos.model, {"dynamics": "fixed"})
