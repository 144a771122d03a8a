"""A single ball, and the shapes that videos are drawn from."""

import numpy as np
import pytest

from keras_relational.datasets import single_ball
from keras_relational.datasets.shapes import SHAPES
from keras_relational.datasets.shapes import draw


def weighted_centres(images):
    """Where the light is, from left and from top, `(n, time, 2)`."""
    line = np.arange(64) + 0.5
    columns, rows = images[..., 0].sum(2), images[..., 0].sum(3)
    where = np.stack([columns @ line, rows @ line], axis=-1)
    return where / rows.sum(2)[..., None]


def steps_of(centres):
    return np.diff(centres.astype("float64"), axis=1)


@pytest.fixture(scope="module")
def videos():
    return single_ball.generate(300, seed=0)


def test_a_whole_ball_is_where_it_should_be(videos):
    images, labels, centres = videos
    assert images.shape == (300, 51, 64, 64, 1)
    assert images.dtype == labels.dtype == np.uint8
    assert centres.shape == (300, 51, 2)
    np.testing.assert_allclose(weighted_centres(images), centres, atol=0.03)
    area = images[:50].sum((2, 3, 4)) / 255
    np.testing.assert_allclose(area, np.pi * 4**2, rtol=0.02)
    assert centres.min() >= 4
    assert centres.max() <= 60
    # Half-lit pixels make an edge smooth; the middle is white.
    assert images.max() == 255
    for image in images[:50, 0]:
        assert ((image > 0) & (image < 255)).sum() > 8


def test_shares_are_equal_and_in_random_order(videos):
    _, labels, _ = videos
    assert (np.bincount(labels) == 100).all()
    assert np.bincount(labels[:100]).min() > 20


@pytest.mark.parametrize("name", ["accelerate", "constant_velocity"])
def test_straight_ways(videos, name):
    _, labels, centres = videos
    mine = centres[labels == single_ball.DYNAMICS.index(name)]
    steps = steps_of(mine)
    acceleration = np.diff(steps, axis=1)
    if name == "accelerate":
        assert np.ptp(acceleration, axis=1).max() < 1e-4
        lengths = np.linalg.norm(steps, axis=-1)
        assert (np.diff(lengths, axis=1) > 0.015).all()
        # From rest: as the squares of time grow, by 1, 3, 5 and so on.
        np.testing.assert_allclose(lengths[:, 1], 3 * lengths[:, 0], rtol=0.01)
    else:
        assert abs(acceleration).max() < 1e-4
    way = mine[:, -1] - mine[:, 0]
    lengths = np.linalg.norm(way, axis=1)
    assert 25 <= lengths.min() < 27
    assert 48 < lengths.max() <= 50
    # Into all directions, also from the left and from the right of the image.
    middles = (mine[:, -1] + mine[:, 0]) / 2
    assert middles.min() < 20
    assert middles.max() > 44
    angles = np.arctan2(*way.T)
    counts, _ = np.histogram(angles, 8, (-np.pi, np.pi))
    assert counts.min() > 4


def test_random_walks_are_as_fast_all_along(videos):
    _, labels, centres = videos
    steps = steps_of(centres[labels == 2])
    lengths = np.linalg.norm(steps, axis=-1)
    assert np.ptp(lengths, axis=1).max() < 1e-4
    assert 1 <= lengths.min() + 1e-5 < 1.05
    assert 1.95 < lengths.max() <= 2 + 1e-5
    # One step tells nothing about the next.
    cosines = (steps[:, 1:] * steps[:, :-1]).sum(-1) / lengths[:, 1:] ** 2
    assert abs(cosines.mean()) < 0.08
    starts = centres[labels == 2, 0]
    assert starts.min() < 8
    assert starts.max() > 56


def test_five_frames_tell_the_dynamics_anywhere(videos):
    """By how far a ball is off the line through the last two frames."""
    images, labels, _ = videos
    seen = weighted_centres(images)
    early, middle, late = seen[:, :-6], seen[:, 3:-3], seen[:, 6:]
    bend = np.linalg.norm(late - 2 * middle + early, axis=-1)
    middles = [np.median(bend[labels == number]) for number in range(3)]
    assert middles[1] < 0.03 < 0.1 < middles[0] < 1 < middles[2]
    assert bend[labels == 1].max() < bend[labels == 0].min()


@pytest.mark.parametrize(
    ("bulb_radius", "num_axes"), [(2, 2), (4, 2), (10, 2), (2, 3), (9, 3)]
)
def test_bulbs_tell_the_labels_and_the_ball_stays_off_them(
    bulb_radius, num_axes
):
    images, labels, centres = single_ball.generate_switching(
        100, 10, seed=0, bulb_radius=bulb_radius, num_axes=num_axes
    )
    assert set(np.unique(labels)) == {*range(num_axes)}
    row, left = 63 - bulb_radius, bulb_radius + 1
    columns = left * (1 + 2 * np.arange(num_axes))
    bulbs = images[:, :, row, columns, 0]
    np.testing.assert_array_equal(bulbs.argmax(-1), labels)
    assert (np.sort(bulbs, -1) == [80] * (num_axes - 1) + [255]).all()
    # The ball, and nothing else, is above the bulbs.
    top = 64 - 2 * left
    assert centres.min() >= 4
    assert centres[..., 0].max() <= 60
    assert centres[..., 1].max() <= top - 4 + 1e-4
    ball = images.copy()
    ball[:, :, top:] = 0
    np.testing.assert_allclose(weighted_centres(ball), centres, atol=0.05)
    if num_axes == 3:
        steps = abs(steps_of(centres))
        diagonal = labels[:, :-1] == 2
        assert (steps[diagonal] > 1e-4).all(axis=-1).mean() > 0.9
        assert (steps[~diagonal] < 1e-4).any(axis=-1).all()


def test_dynamics_of_choice():
    _, labels, _ = single_ball.generate(10, 6, "random_walk", seed=0)
    assert (labels == 2).all()
    names = ("random_walk", "accelerate")
    _, labels, _ = single_ball.generate(10, 6, names, seed=0)
    assert sorted(labels) == [0] * 5 + [2] * 5
    assert single_ball.generate(3, num_frames=1)[0].shape[1] == 1


def assert_one_switch_and_one_speed(labels, centres):
    """The label of a step is its axis, and changes once, in the middle."""
    changed = np.diff(labels.astype(int), axis=1) != 0
    assert (changed.sum(1) == 1).all()
    assert (changed.argmax(1) == (labels.shape[1] - 1) // 2).all()
    steps = abs(steps_of(centres))
    moves = np.array([(1, 0), (0, 1), (1, 1)])[labels[:, :-1]]
    assert steps[moves == 0].max() < 1e-4
    # One speed all along, but where the ball turns at an edge.
    speeds = np.median(steps.max(axis=-1), axis=1)
    assert 2 <= speeds.min() + 1e-4 < 2.1
    assert 3.9 < speeds.max() <= 4 + 1e-4
    as_fast = abs(steps - speeds[:, None, None]) < 1e-3
    assert as_fast[moves == 1].mean() > 0.85
    assert steps.max() <= 4 + 1e-4


def test_labels_tell_the_next_step():
    images, labels, centres = single_ball.generate_switching(200, seed=0)
    assert images.shape == (200, 51, 64, 64, 1)
    assert labels.shape == (200, 51)
    assert images.dtype == labels.dtype == np.uint8
    assert labels[:, 0].sum() == 100
    assert_one_switch_and_one_speed(labels, centres)
    # To and fro, and at first to either side.
    axes = labels[:, :-1, None].astype(int)
    moved = np.take_along_axis(steps_of(centres), axes, 2)
    assert 0.4 < (moved[:, 0] > 0).mean() < 0.6
    assert 0.4 < (moved > 0).mean() < 0.6
    early = moved[:, :25]
    assert ((early > 1).any(1) & (early < -1).any(1)).mean() > 0.7


def test_load_data():
    (x_train, y_train), (x_test, y_test) = single_ball.load_data(6, 3)
    assert x_train.shape == (6, 51, 64, 64, 1)
    assert sorted(y_train) == [0, 0, 1, 1, 2, 2]
    assert x_test.shape == (3, 51, 64, 64, 1)
    assert y_test.shape == (3,)
    assert (x_train[:3] != x_test).any()
    # Nor does a model see them that is trained on batches of that seed.
    for batch in range(3):
        assert (single_ball.generate(3, seed=[0, batch])[0] != x_test).any()
    for _, labels in single_ball.load_data(6, 3, switching=True):
        assert labels.shape[1:] == (51,)


@pytest.mark.parametrize("num_axes", [2, 3])
def test_coordinates_are_those_of_a_ball_that_changes_its_axis(num_axes):
    coordinates, labels = single_ball.generate_coordinates(
        600, 30, num_axes, 2.5, seed=0
    )
    assert coordinates.shape == (600, 30, 2 + num_axes)
    assert coordinates.dtype == np.float32
    assert labels.dtype == np.uint8
    assert_one_switch_and_one_speed(labels, 16 * coordinates[..., :2])
    # Each pair of a first and a second axis is about as frequent.
    pairs, counts = np.unique(labels[:, [0, -1]], axis=0, return_counts=True)
    assert len(pairs) == num_axes * (num_axes - 1)
    assert counts.min() > 0.7 * 600 / len(pairs)
    np.testing.assert_array_equal(
        coordinates[..., 2:], 2.5 * np.eye(num_axes)[labels]
    )
    assert abs(coordinates[..., :2]).max() <= 28 / 16


def test_each_walk_is_its_own():
    _, _, centres = single_ball.generate(100, dynamics="random_walk", seed=0)
    steps = steps_of(centres)
    steps /= np.linalg.norm(steps, axis=-1, keepdims=True)
    assert np.linalg.norm(steps.mean(0), axis=-1).mean() < 0.3


INSIDE = {
    "disc": lambda x, y, size: x**2 + y**2 <= size**2,
    "square": lambda x, y, size: np.maximum(abs(x), abs(y)) <= size,
    "triangle": lambda x, y, size: (y <= size) & (2 * abs(x) <= y + size),
}


def share_by_counting(shape, centre, size, height=24, width=20):
    """Of 16 × 16 points in each pixel, how many lie inside the shape."""
    y, x = np.mgrid[: 16 * height, : 16 * width] / 16 + 1 / 32
    inside = INSIDE[shape](x - centre[0], y - centre[1], size)
    return inside.reshape(height, 16, width, 16).mean((1, 3))


@pytest.mark.parametrize("shape", SHAPES)
def test_pixels_are_covered_in_part(shape):
    rng = np.random.default_rng(0)
    # Some leave the image, and some lie outside of it.
    centres = rng.uniform(-8, 28, (60, 2))
    sizes = rng.uniform(2, 7, 60)
    images = np.full((60, 24, 20, 2), (40, 200), "uint8")
    number = SHAPES.index(shape)
    draw(images, centres, sizes, [[240, 0]] * 60, np.full(60, number))
    for image, centre, size in zip(images, centres, sizes, strict=True):
        share = share_by_counting(shape, centre, size)
        first, second = (image[..., 0] - 40.0) / 200, (200.0 - image[..., 1])
        np.testing.assert_allclose(first, second / 200, atol=0.006)
        # Corners are where the distance to an edge says least.
        assert abs(first - share).max() < (0.11 if shape == "disc" else 0.51)
        assert abs(first - share).sum() < 0.05 * share.sum() + 0.8
    assert len({image.tobytes() for image in images}) > 30


def test_shapes_and_sizes_of_a_batch_may_differ():
    shapes = np.arange(2_000) % 3
    sizes = np.where(np.arange(2_000) % 2, 3.0, 0.0)
    images = np.zeros((2_000, 16, 16, 3), "uint8")
    draw(images, np.full((2_000, 2), 8.0), sizes, [[9, 8, 7]] * 2_000, shapes)
    assert not images[::2].any()
    for number in range(3):
        mine = images[1::2][shapes[1::2] == number]
        assert (mine == mine[0]).all()
        assert (mine[0, 8, 8] == (9, 8, 7)).all()
    assert len({image.tobytes() for image in images}) == 4


def test_images_may_be_a_view():
    images = np.zeros((5, 7, 16, 16, 1), "uint8")
    centres = np.linspace([4, 4], [12, 12], 5)
    draw(images[:, 3], centres, np.full(5, 2), np.full((5, 1), 255))
    assert images[:, 3].any((1, 2, 3)).all()
    images[:, 3] = 0
    assert not images.any()
