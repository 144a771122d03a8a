import itertools

import numpy as np
import pytest

from keras_relational.datasets import bouncing_balls
from keras_relational.datasets.bouncing_balls import TASKS
from keras_relational.datasets.bouncing_balls import bounce


@pytest.fixture(scope="module", params=TASKS)
def task(request):
    return request.param


@pytest.fixture(scope="module")
def balls(task):
    return bouncing_balls.simulate(task, 150, seed=0)


class TestSimulate:
    def test_shapes(self, task, balls):
        num_balls = {"4": 4, "6": 8, "c": 3}[task.removeprefix("colored_")[0]]
        channels = 3 if task.startswith("colored") else 1
        assert balls.positions.shape == (150, 51, num_balls, 2)
        assert balls.velocities.shape == (150, 51, num_balls, 2)
        assert balls.masses.shape == balls.radii.shape == (150, num_balls)
        assert balls.colours.shape == (150, num_balls, channels)
        assert balls.colours.dtype == np.uint8

    def test_balls_stay_in_the_box_and_apart(self, balls):
        there = np.repeat(balls.radii[:, None] > 0, 51, axis=1)
        positions, radii = balls.positions, balls.radii[:, None]
        edge = np.minimum(positions, 64 - positions).min(-1) - radii
        assert edge[there].min() > -1e-9
        for one, other in itertools.combinations(range(radii.shape[-1]), 2):
            way = positions[:, :, one] - positions[:, :, other]
            gap = np.linalg.norm(way, axis=-1)
            gap -= radii[..., one] + radii[..., other]
            assert gap[there[..., one] & there[..., other]].min() > -1e-9

    def test_kinetic_energy_stays(self, balls):
        squares = (balls.velocities**2).sum(-1)
        value = (balls.masses[:, None] * squares).sum(-1)
        assert (np.ptp(value, axis=1) < 1e-6 * value[:, 0]).all()

    def test_velocities_are_those_of_the_positions(self, balls):
        """Between two frames without a collision, and there are collisions."""
        steps = np.diff(balls.positions, axis=1)
        before, after = balls.velocities[:, :-1], balls.velocities[:, 1:]
        free = (before == after).all(-1)
        np.testing.assert_allclose(steps[free], before[free], atol=1e-9)
        there = np.repeat(balls.radii[:, None] > 0, 50, axis=1)
        assert 0.03 < 1 - free[there].mean() < 0.4
        # Balls collide with each other, not only with walls.
        turned = abs(abs(after) - abs(before)).max(-1) > 1e-9
        assert turned.any((1, 2)).mean() > 0.8

    def test_masses_radii_and_colours(self, task, balls):
        there = balls.radii > 0
        ratio = balls.masses[there] / balls.radii[there] ** 2
        np.testing.assert_allclose(ratio, ratio[0])
        if "4balls" in task:
            assert (balls.radii == (5, 6, 7, 8)).all()
        else:
            assert len(set(balls.radii[there])) == 1
        if "678" in task:
            counts = np.bincount(there.sum(1), minlength=9)
            assert counts[6:].min() > 30
            assert counts[6:].sum() == 150
            assert not balls.positions.transpose(0, 2, 1, 3)[~there].any()
            assert not balls.masses[~there].any()
        else:
            assert there.all()
        colours = np.unique(balls.colours.reshape(-1, balls.colours.shape[-1]))
        assert set(colours) == ({0, 255} if "color" in task else {255})
        if "color" in task:
            assert len(np.unique(balls.colours[there], axis=0)) == 4
        if task == "colored_4balls":
            for colours in balls.colours:
                assert len(np.unique(colours, axis=0)) == 4
            assert len(np.unique(balls.colours[:, 0], axis=0)) == 4

    def test_first_velocities_and_places(self, balls):
        there = balls.radii > 0
        velocities = balls.velocities[:, 0][there]
        speeds = np.linalg.norm(velocities, axis=-1)
        assert speeds.min() > 1 - 1e-9
        assert speeds.max() < 3 + 1e-9
        counts, _ = np.histogram(speeds, 4, (1, 3))
        assert counts.min() > 0.2 * len(speeds)
        counts, _ = np.histogram(np.arctan2(*velocities.T), 4, (-np.pi, np.pi))
        assert counts.min() > 0.2 * len(speeds)
        places = balls.positions[:, 0][there]
        assert places.min(0).max() < 9
        assert places.max(0).min() > 55


class TestCoordinates:
    @pytest.mark.parametrize("number", [1, 4, 8])
    def test_balls_stay_in_the_box_and_apart(self, number):
        balls = bouncing_balls.generate_coordinates(60, number, seed=0)
        assert balls.shape == (60, 21, number, 2)
        assert balls.dtype == np.float32
        assert 0.8 < abs(balls).max() < 0.88 + 1e-6
        for one, other in itertools.combinations(range(number), 2):
            way = np.linalg.norm(balls[:, :, one] - balls[:, :, other], axis=-1)
            assert way.min() > 0.24 - 1e-6

    def test_speeds_and_collisions(self):
        alone = bouncing_balls.generate_coordinates(200, 1, seed=0)
        speeds = np.linalg.norm(np.diff(alone, axis=1), axis=-1)
        straight = speeds.max(axis=1)  # And less where a wall is met.
        assert 0.08 - 1e-5 < straight.min() < straight.max() < 0.2 + 1e-5
        # In a crowd more steps are not as the last one.
        turned = [
            abs(np.diff(balls, 2, axis=1)).max(-1).mean()
            for balls in (
                alone,
                bouncing_balls.generate_coordinates(200, 8, seed=0),
            )
        ]
        assert turned[1] > 1.5 * turned[0]

    def test_balls_may_pass_through_each_other(self):
        balls = bouncing_balls.generate_coordinates(
            60, 3, collide=False, seed=0
        )
        assert abs(balls).max() < 0.88 + 1e-6
        way = np.linalg.norm(balls[:, :, 0] - balls[:, :, 1], axis=-1)
        assert way.min() < 0.1
        speeds = np.linalg.norm(np.diff(balls, axis=1), axis=-1)
        free = np.isclose(speeds, speeds.max(1, keepdims=True), atol=1e-5)
        assert free.mean() > 0.7

    def test_more_than_fit_are_refused(self):
        with pytest.raises(ValueError, match=r"12 or less.*num_balls=13"):
            bouncing_balls.generate_coordinates(1, 13)


class TestBounce:
    def test_many_collisions_far_from_walls_keep_momentum(self):
        """Three balls that fly to the centre, of any masses and radii."""
        rng = np.random.default_rng(0)
        n = 400
        angles = np.array([0, 2.1, 4.2]) + rng.uniform(0, 1, (n, 3))
        out = np.stack([np.cos(angles), np.sin(angles)], -1)
        masses, radii = rng.uniform(0.2, 5, (n, 3)), rng.uniform(1, 4, (n, 3))
        positions, velocities = bounce(
            32 + 13 * out,
            -out + rng.normal(0, 0.1, (n, 3, 2)),
            masses,
            radii,
            18,
        )
        touched = np.minimum(positions, 64 - positions).min((1, 3)) < radii + 1
        kept = ~touched.any(1)
        assert kept.sum() > 100
        value = (masses[:, None, :, None] * velocities).sum(2)[kept]
        assert np.ptp(value, axis=1).max() < 1e-12
        turned = (velocities[kept, 0] != velocities[kept, -1]).any(-1)
        assert turned.all(1).mean() > 0.8

    def test_as_in_small_steps(self):
        """A simulation that looks for collisions after each small step."""
        balls = bouncing_balls.simulate("4balls", 8, num_frames=10, seed=2)
        small = 1 / 500
        position = balls.positions[:, 0].copy()
        velocity = balls.velocities[:, 0].copy()
        mass, radius = balls.masses[..., None], balls.radii[..., None]
        for step in range(9 * 500):
            if step % 500 == 0:
                np.testing.assert_allclose(
                    position, balls.positions[:, step // 500], atol=0.1
                )
            position += velocity * small
            velocity = np.where(position < radius, abs(velocity), velocity)
            velocity = np.where(
                position > 64 - radius, -abs(velocity), velocity
            )
            for a, b in itertools.combinations(range(4), 2):
                way = position[:, a] - position[:, b]
                distance = np.linalg.norm(way, axis=-1, keepdims=True)
                line = way / distance
                speed = ((velocity[:, a] - velocity[:, b]) * line).sum(-1)[
                    :, None
                ]
                hit = (distance < radius[:, a] + radius[:, b]) & (speed < 0)
                both = mass[:, a] + mass[:, b]
                push = np.where(hit, 2 * speed / both * line, 0)
                velocity[:, a] -= mass[:, b] * push
                velocity[:, b] += mass[:, a] * push

    def test_two_balls_and_a_wall_by_hand(self):
        """3 kg at 1 pixel a frame meets 1 kg, which comes back from a wall."""
        positions, velocities = bounce(
            [[(20, 20), (40, 20)]], [[(1, 0), (0, 0)]], [[3, 1]], [[4, 4]], 32
        )
        # They meet in frame 12; 1/2 and 3/2 keep momentum and energy.
        np.testing.assert_allclose(positions[0, 12, :, 0], (32, 40))
        np.testing.assert_allclose(velocities[0, 13, :, 0], (0.5, 1.5))
        # 20 pixels on, after 40/3 frames, is the wall.
        np.testing.assert_allclose(positions[0, 25, 1, 0], 59.5)
        np.testing.assert_allclose(positions[0, 26, 1, 0], 59)
        np.testing.assert_allclose(velocities[0, 26, :, 0], (0.5, -1.5))
        assert (positions[..., 1] == 20).all()

    def test_collisions_at_one_time(self):
        """Into a corner; and into a row of balls, of which the last goes on."""
        positions, velocities = bounce(
            [[(10, 10), (54, 54), (0, 0)], [(10, 32), (30, 32), (40, 32)]],
            [[(-1, -1), (1, 1), (0, 0)], [(2, 0), (0, 0), (0, 0)]],
            np.ones((2, 3)),
            [(5, 5, 0), (5, 5, 5)],
            12,
        )
        np.testing.assert_allclose(positions[0, -1, :2], [(11, 11), (53, 53)])
        np.testing.assert_allclose(velocities[0, -1, :2], [(1, 1), (-1, -1)])
        np.testing.assert_allclose(
            positions[1, -1], [(20, 32), (30, 32), (52, 32)]
        )
        np.testing.assert_allclose(velocities[1, -1], [(0, 0), (0, 0), (2, 0)])

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"masses": [[1]]}, r"shape \(n, balls, 2\).*\(1, 1\)"),
            ({"positions": [(10, 10), (50, 50)]}, r"Received: \(2, 2\)"),
            ({"masses": [[1, 0]]}, "positive. Received: 0"),
            ({"positions": [[(10, 10), (62, 50)]]}, r"0 to 64.*5\.0 to 67\.0"),
            ({"positions": [[(10, 10), (3, 50)]]}, r"0 to 64.*from -2\.0 to"),
            ({"positions": [[(10, 10), (np.nan, 50)]]}, "balls from nan"),
            ({"velocities": [(1, 0)]}, r"Received: .*\(1, 2\), \(1, 2\)"),
            ({"positions": [[(20, 20), (25, 25)]]}, "not overlap.* 1 sequ"),
        ],
    )
    def test_bad_input_is_refused(self, changes, words):
        arguments = {
            "positions": [[(10, 10), (50, 50)]],
            "velocities": [[(1, 0), (0, 1)]],
            "masses": [[1, 1]],
            "radii": [[5, 5]],
        }
        with pytest.raises(ValueError, match=words):
            bounce(**arguments | changes)


class TestRender:
    def test_all_balls_are_seen_where_they_are(self, task, balls):
        first = bouncing_balls.Balls(*(array[:20] for array in balls))
        images = bouncing_balls.render(task, first)
        channels = 3 if task.startswith("colored") else 1
        assert images.shape == (20, 51, 64, 64, channels)
        assert images.dtype == np.uint8
        if task == "curtain":
            assert not images[:, :, 20:44, 20:44].any()
            for edge in (19, 44):
                assert images[:, :, 20:44, edge].any()
                assert images[:, :, edge, 20:44].any()
            images = bouncing_balls.render("4balls", first)
        for channel in range(channels):
            mine = first.colours[:, :, channel] > 0
            light = images[..., channel] / 255
            area = np.pi * (mine * first.radii**2).sum(1)
            # Where two balls touch, pixels are in both.
            np.testing.assert_allclose(
                light.sum((2, 3)),
                np.broadcast_to(area[:, None], (20, 51)),
                rtol=0.02,
            )
            line = np.arange(64) + 0.5
            where = np.stack([light.sum(2) @ line, light.sum(3) @ line], -1)
            weights = np.pi * mine * first.radii**2
            expected = (weights[:, None, :, None] * first.positions).sum(2)
            np.testing.assert_allclose(where, expected, rtol=0.02, atol=1e-9)


class TestGenerate:
    def test_it_renders_what_is_simulated(self, task):
        images = bouncing_balls.generate(task, 3, 6, seed=4)
        balls = bouncing_balls.simulate(task, 3, 6, seed=4)
        np.testing.assert_array_equal(
            images, bouncing_balls.render(task, balls)
        )

    def test_load_data(self):
        parts = bouncing_balls.load_data("colored_678balls", 4, 3)
        for (x, y), number in zip(parts, (4, 3), strict=True):
            assert x.shape == y.shape == (number, 50, 64, 64, 3)
            np.testing.assert_array_equal(x[:, 1:], y[:, :-1])
            assert (x[:, -1] != y[:, -1]).any()
        (x_train, _), (x_test, _) = parts
        assert (x_train[:3] != x_test).any()
        # Nor does a model see them that is trained on batches of that seed.
        for batch in range(3):
            videos = bouncing_balls.generate(
                "colored_678balls", 3, seed=[0, batch]
            )
            assert (videos[:, :-1] != x_test).any()
