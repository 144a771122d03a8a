import collections
import json
import sys

import numpy as np
import pytest
from PIL import Image

from keras_relational.datasets import intuitive_physics
from keras_relational.datasets.intuitive_physics import BLOCKS


@pytest.fixture(scope="module", params=BLOCKS)
def block(request):
    return request.param


@pytest.fixture(scope="module")
def sets(block):
    return intuitive_physics.generate(block, 30, 24, seed=0)


def coloured(frame):
    """Pixels of each colour; the scenery is grey."""
    pixels = frame.reshape(-1, 3)
    pixels = pixels[np.ptp(pixels, axis=1) > 0]
    return collections.Counter(map(tuple, pixels.tolist()))


def colours_shown(frame):
    """The objects' own colours, not mixed with what is behind them."""
    return set(coloured(frame)) & set(
        map(tuple, intuitive_physics.COLOURS.tolist())
    )


class TestGenerate:
    def test_possible_and_impossible_clips_have_the_same_frames(self, sets):
        for clips in sets:
            frames = [
                collections.Counter(frame.tobytes() for frame in clip)
                for clip in clips
            ]
            assert frames[0] + frames[1] == frames[2] + frames[3]
            assert len({clip.tobytes() for clip in clips}) == 4

    def test_the_cut_is_where_nothing_shows(self, sets):
        """Both clips are alike on both sides of it, and only there."""
        cuts = set()
        for one, two, three, four in sets:
            alike = (one == two).all((1, 2, 3))
            assert not alike[[0, -1]].any()
            (places,) = np.nonzero(alike)
            first, last = places[[0, -1]]
            assert alike[first : last + 1].all()
            assert last > first
            for cut in range(first + 1, last + 1):
                # All these cuts give the same clip.
                np.testing.assert_array_equal(three[:cut], one[:cut])
                np.testing.assert_array_equal(three[cut:], two[cut:])
                np.testing.assert_array_equal(four[:cut], two[:cut])
                np.testing.assert_array_equal(four[cut:], one[cut:])
            cuts.add((first, last))
        assert len(cuts) > 3

    def test_what_happens(self, block, sets):
        shapes_differ = 0
        for one, two, *_ in sets:
            # From one side of the occluder to the other.
            for time in (0, -1):
                before, after = (
                    colours_shown(one[time]),
                    colours_shown(two[time]),
                )
                if block == "O1":
                    assert len(before - after) == 1
                    assert after < before
                else:
                    assert after == before
                    assert before
                assert len(before) <= 3
            if block == "O2":
                sizes = [sum(coloured(clip[0]).values()) for clip in (one, two)]
                shapes_differ += sizes[0] != sizes[1]
                # Of one size all the same: the difference is one of shape.
                heights = [
                    (np.ptp(clip[0], axis=-1) > 0).any(1).sum()
                    for clip in (one, two)
                ]
                assert abs(int(heights[0]) - int(heights[1])) <= 1
        assert block != "O2" or shapes_differ > 18

    def test_scenery_and_occluder_stay(self, sets):
        for clips in sets:
            scenery = clips[:, :, :30]
            assert (scenery == scenery[0, 0]).all()
            # The occluder is a grey of its own, in front of everything.
            row = clips[0, 0, 61, :, 0]
            shades = np.unique(row)
            assert len(shades) == 2
            (columns,) = np.nonzero(row == shades[0])
            assert 25 <= len(columns) <= 29
            hidden = clips[:, :, 30:62, columns]
            assert (hidden == shades[0]).all()

    @pytest.mark.parametrize("num_frames", [20, 21, 64])
    def test_other_lengths(self, block, num_frames):
        clips = intuitive_physics.generate(block, 10, num_frames, seed=1)
        assert clips.shape == (10, 4, num_frames, 64, 64, 3)
        assert clips.dtype == np.uint8
        alike = (clips[:, 0] == clips[:, 1]).all((2, 3, 4))
        assert (alike[:, :-1] & alike[:, 1:]).any(1).all()


def test_how_far_ahead_an_object_is_in_o3():
    """Eight pixels in the same direction, before and after the occluder."""
    sets = intuitive_physics.generate("O3", 40, 30, seed=3)
    shifts = []
    for one, two, *_ in sets:
        if len(colours_shown(one[0])) > 1:
            continue
        columns = [
            np.flatnonzero((np.ptp(clip[0], axis=-1) > 60).any(0)).mean()
            for clip in (one, two)
        ]
        later = [
            np.flatnonzero((np.ptp(clip[-1], axis=-1) > 60).any(0)).mean()
            for clip in (one, two)
        ]
        shifts.append((columns[1] - columns[0], later[1] - later[0]))
    shifts = np.array(shifts)
    assert len(shifts) > 8
    assert (np.sign(shifts[:, 0]) == np.sign(shifts[:, 1])).all()
    # An object may be hidden in part.
    assert np.median(abs(shifts)) == pytest.approx(8, abs=1)


class TestGeneratePossible:
    def test_clips_are_like_the_possible_ones_of_all_blocks(self):
        clips = intuitive_physics.generate_possible(300, 20, seed=0)
        assert clips.shape == (300, 20, 64, 64, 3)
        assert clips.dtype == np.uint8
        counts = np.zeros(4)
        for clip in clips:
            first, last = colours_shown(clip[0]), colours_shown(clip[-1])
            assert first == last
            counts[len(first)] += 1
        # A sixth are those of block O1 that lack an object.
        expected = np.array([1, 6, 6, 5]) / 18
        np.testing.assert_allclose(counts / 300, expected, atol=0.09)
        assert counts[0] > 3


def test_load_data():
    (_, y_train), (_, y_test) = intuitive_physics.load_data("O2", 5, 3, 20)
    assert (y_train == 1).all()
    np.testing.assert_array_equal(y_test, [[1, 1, 0, 0]] * 3)


def write_clip(folder, clip, possible):
    (folder / "scene").mkdir(parents=True)
    for number, frame in enumerate(clip):
        path = folder / "scene" / f"scene_{number + 1:03d}.png"
        Image.fromarray(frame).save(path)
    status = {"header": {"is_possible": possible}, "frames": []}
    (folder / "status.json").write_text(json.dumps(status))


@pytest.fixture(scope="module")
def clips():
    return intuitive_physics.generate("O1", 2, 20, seed=0)[:, :, :4]


class TestReadPublished:
    @pytest.fixture
    def folder(self, clips, tmp_path):
        """As published, with the clips of a set in any order."""
        for number, order in ((1, (2, 0, 1, 3)), (2, (0, 3, 2, 1))):
            for place, clip in enumerate(order):
                write_clip(
                    tmp_path / "O1" / f"{number:02d}" / str(place + 1),
                    clips[number - 1, clip],
                    possible=clip < 2,
                )
        return tmp_path

    def test_sets_come_as_they_are_generated(self, clips, folder):
        read = intuitive_physics.read_published(folder, "O1")
        expected = np.stack([clips[0], clips[1][[0, 1, 3, 2]]])
        np.testing.assert_array_equal(read, expected)
        assert read.dtype == np.uint8

    def test_smaller_images_are_means(self, clips, folder):
        read = intuitive_physics.read_published(str(folder), "O1", 16)
        means = clips[0].reshape(4, 4, 16, 4, 16, 4, 3).mean((3, 5))
        np.testing.assert_allclose(read[0], means, atol=1)

    def test_training_clips_come_one_by_one(self, clips, tmp_path):
        for number, clip in enumerate(clips[0]):
            write_clip(
                tmp_path / f"{number + 1:05d}_block_O1_train", clip, True
            )
        read = intuitive_physics.read_published_train(tmp_path)
        assert iter(read) is read
        np.testing.assert_array_equal(np.stack(list(read)), clips[0])

    def test_missing_folders_are_named(self, folder):
        with pytest.raises(ValueError, match=r"O2 should hold.*no such folder"):
            intuitive_physics.read_published(folder, "O2")
        with pytest.raises(ValueError, match=r"none should.*no such folder"):
            intuitive_physics.read_published_train(folder / "none")
        (folder / "O3").mkdir()
        with pytest.raises(
            ValueError, match=r"O3 should hold.*an empty folder"
        ):
            intuitive_physics.read_published(folder, "O3")
        with pytest.raises(ValueError, match="Unknown block 'O5'"):
            intuitive_physics.read_published(folder, "O5")
        with pytest.raises(ValueError, match="image_size=0"):
            intuitive_physics.read_published(folder, "O1", 0)

    @pytest.mark.parametrize("number", [1, 2])
    def test_missing_frames_are_named(self, folder, number):
        path = folder / "O1" / "02" / "3" / "scene"
        (path / f"scene_{number:03d}.png").unlink()
        with pytest.raises(
            ValueError, match=r"02/3/scene.*3 of them.*004\.png"
        ):
            intuitive_physics.read_published(folder, "O1")
        with pytest.raises(ValueError, match="02/3/scene"):
            list(intuitive_physics.read_published_train(folder / "O1" / "02"))

    def test_clips_of_other_lengths(self, folder):
        (folder / "O1/01/2/scene/scene_004.png").unlink()
        with pytest.raises(ValueError, match=r"equally many frames.*\[3, 4\]"):
            intuitive_physics.read_published(folder, "O1")
        for path in (folder / "O1/01/2/scene").iterdir():
            path.unlink()
        with pytest.raises(ValueError, match=r"01/2/scene.*0 of them"):
            intuitive_physics.read_published(folder, "O1")

    def test_broken_frames_are_named(self, folder):
        path = folder / "O1/01/2/scene/scene_002.png"
        content = path.read_bytes()
        for size in (0, 20, len(content) // 2):
            path.write_bytes(content[:size])
            with pytest.raises(ValueError, match=r"scene_002\.png cannot be"):
                intuitive_physics.read_published(folder, "O1")

    @pytest.mark.parametrize(
        "status",
        [
            b"",
            b"\xff\xfe",
            b'{"header": {}}',
            b'{"header": null}',
            b'{"header": {"is_possible": "yes"}}',
            None,
        ],
    )
    def test_unreadable_status(self, folder, status):
        path = folder / "O1" / "02" / "1" / "status.json"
        path.unlink()
        if status is not None:
            path.write_bytes(status)
        with pytest.raises(ValueError, match=r"02/1/status\.json cannot be"):
            intuitive_physics.read_published(folder, "O1")

    def test_sets_have_two_possible_clips(self, folder):
        path = folder / "O1" / "02" / "1" / "status.json"
        path.write_text('{"header": {"is_possible": false}}')
        with pytest.raises(ValueError, match=r"02 should hold two.*1 possible"):
            intuitive_physics.read_published(folder, "O1")

    def test_without_pillow(self, folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "PIL", None)
        with pytest.raises(ImportError, match=r"keras_relational\[plots\]"):
            intuitive_physics.read_published(folder, "O1")


def test_all_objects_move_to_the_other_side():
    """Not only the one that something happens to."""
    clips = intuitive_physics.generate_possible(40, 24, seed=0)
    several, to_the_right = 0, []
    for clip in clips:
        starts, ends = (
            {
                tuple(colour): np.flatnonzero(
                    (frame == colour).all(-1).any(0)
                ).mean()
                for colour in intuitive_physics.COLOURS
                if (frame == colour).all(-1).any()
            }
            for frame in clip[[0, -1]]
        )
        several += len(starts) > 1
        for colour, start in starts.items():
            assert abs(ends[colour] - start) > 30
            to_the_right.append(ends[colour] > start)
    assert several > 10
    assert 0.3 < np.mean(to_the_right) < 0.7


def test_near_objects_hide_far_ones():
    red, green = intuitive_physics.COLOURS[:2]
    scenes = {
        "sizes": np.array([[(5, 5), (5, 5), (0, 0)]]),
        "shapes": np.ones((1, 3, 2), int),  # cubes
        "colours": np.array([[red, green, red]]),
        "velocities": np.zeros((1, 3)),
        "starts": np.full((1, 3, 2), 10.0),
        "floors": np.array([[43, 51, 59]]),
        "occluders": np.array([[25, 45]]),
        "shades": np.array([[200, 120, 60]]),
    }
    frame = intuitive_physics._render(scenes, np.array([0]), 1, 64)[0, 0]
    np.testing.assert_array_equal(frame[40, 10], red)
    np.testing.assert_array_equal(frame[42, 10], green)
