"""Balls in videos: slots that find them, files that follow, and both runs."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from experiments import command_line
from experiments import records
from experiments.scoff import find_objects
from experiments.scoff import follow_objects
from experiments.scoff import results
from experiments.scoff import set_losses
from experiments.scoff import tracking
from experiments.scoff.object_predictors import CompetingGRUCell
from keras_relational import models
from keras_relational.datasets import bouncing_balls


def balls(number, size=5, num_frames=4):
    return bouncing_balls.generate_coordinates(size, number, num_frames, seed=0)


def test_the_least_cost_takes_each_column_once():
    costs = np.random.default_rng(0).random((2, 7, 3, 5)).astype("float32")
    each = [
        costs[:, :, range(3), columns].mean(-1)
        for columns in itertools.permutations(range(5), 3)
    ]
    found = np.array(set_losses.least_cost(costs))
    np.testing.assert_allclose(found, np.min(each, axis=0), rtol=1e-6)
    taken = tracking.assignments(costs[0])
    own = np.take_along_axis(costs[0], taken[..., None], axis=2)
    np.testing.assert_allclose(own.mean((1, 2)), found[0], rtol=1e-6)


def test_a_video_has_one_order_and_a_set_has_one_for_each_step():
    true = balls(3)
    swapped = true.copy()
    swapped[:, 2:] = swapped[:, 2:, ::-1]
    extra = np.zeros_like(true[:, :, :1])
    given = np.concatenate([extra, swapped], axis=2)
    assert float(set_losses.set_error(true, given)) == 0
    assert float(set_losses.video_error(true, given)) > 0.01
    given = np.concatenate([extra, true[:, :, ::-1]], axis=2)
    assert float(set_losses.video_error(true, given)) == 0


def test_a_ball_is_drawn_where_it_is():
    x = balls(1)
    frames = find_objects.draw_balls(x)
    assert frames.shape == (5, 4, 32, 32, 1)
    assert frames.dtype == np.uint8
    weights = frames[..., 0] / frames.sum((2, 3, 4))[..., None, None]
    middles = (np.arange(32) + 0.5) / 16 - 1
    centre = [
        (weights * along).sum((2, 3)) for along in (middles, middles[:, None])
    ]
    np.testing.assert_allclose(np.stack(centre, axis=-1), x[:, :, 0], atol=0.01)


def finder(number):
    keras.utils.set_random_seed(0)
    return find_objects.object_finder(number)


def test_a_finder_has_weights_for_any_number_of_slots():
    more = find_objects.finder_for(4, finder(3))
    frames = find_objects.draw_balls(balls(4)[:, 0])
    assert more.predict(frames, verbose=0).shape == (5, 6, 2)
    read = models.part(more, "cells").predict(frames, verbose=0)
    assert [x.shape[1:] for x in read] == [(64, 52), (64, 2), (64, 1), (64,)]


def test_dark_cells_do_not_count():
    frames = find_objects.draw_balls(balls(2)[:, 0])
    model = finder(3)
    found = model.predict(frames, verbose=0)
    read = models.part(model, "cells").predict(frames, verbose=0)
    seen, places, sure, bright = read
    cells = frames.reshape(5, 8, 4, 8, 4).max((2, 4)).reshape(5, 64)
    dark = cells == 0
    assert not bright[dark].any()
    assert 0.5 < dark.mean() < 0.95
    assert (sure[dark] == 0).all()
    assert (seen[dark] == 0).all()
    assert (sure[cells > 200] > 0).all()
    # A slot is among the places of cells that are not dark.
    inside = np.where(dark[..., None], np.nan, places)
    assert (found > np.nanmin(inside, axis=1)[:, None] - 1e-3).all()
    assert (found < np.nanmax(inside, axis=1)[:, None] + 1e-3).all()


def test_slots_of_the_rival_compete():
    """Against a NumPy reading of what a slot reads."""
    keras.utils.set_random_seed(0)
    cell = CompetingGRUCell(4, num_objects=3, num_heads=2, key_scale=3)
    rng = np.random.default_rng(0)
    inputs = rng.random((2, 7, 6)).astype("float32")
    inputs[:, 5:, -1] = 0  # Nothing there.
    h = rng.normal(size=(2, 12)).astype("float32")
    cell.build(inputs.shape)
    outputs, (state,) = cell(inputs, [h])
    assert outputs.shape == (2, cell.output_size)
    np.testing.assert_array_equal(outputs[:, :12], state)
    scores = np.array(outputs[:, 12:]).reshape(2, 3, 7)

    slots = h.reshape(2, 3, 4).astype("float64")
    slots -= slots.mean(-1, keepdims=True)
    slots /= np.sqrt((slots**2).mean(-1, keepdims=True) + 1e-3)
    queries = 3 * slots @ np.array(cell.query.kernel)
    logits = np.exp(queries @ inputs.swapaxes(1, 2) / 2)
    expected = logits / logits.sum(1, keepdims=True)
    np.testing.assert_allclose(scores, expected, rtol=1e-4)

    # Equal slots stay equal, and others go with their order.
    order = [2, 0, 1]
    turned = ops.reshape(h.reshape(2, 3, 4)[:, order], (2, 12))
    outputs, (again,) = cell(inputs, [turned])
    np.testing.assert_allclose(
        np.array(again).reshape(2, 3, 4),
        np.array(state).reshape(2, 3, 4)[:, order],
        atol=1e-6,
    )
    # Inputs where nothing is change nothing.
    other = inputs.copy()
    other[:, 5:, :-1] = 9
    _, (same,) = cell(other, [h])
    np.testing.assert_allclose(same, state, atol=1e-6)


@pytest.mark.parametrize("core", follow_objects.CORES)
def test_a_follower_has_weights_for_any_number_of_balls(core):
    keras.utils.set_random_seed(0)
    few = follow_objects.object_follower(finder(3), core, 4, units=6)
    many = follow_objects.object_follower(finder(6), core, 4, units=6)
    many.set_weights(few.get_weights())
    frames = find_objects.draw_balls(balls(4))
    whole = many.predict(frames, verbose=0)
    assert whole.shape == (5, 4, 6, 4)
    # It does not look ahead.
    frames[:, 3] = 0
    np.testing.assert_allclose(
        many.predict(frames, verbose=0)[:, :3], whole[:, :3], atol=1e-6
    )
    # Untrained, its files lie near a ball's place.
    assert np.isfinite(whole).all()


def test_figures_of_files_that_know_and_of_one_that_leaves():
    x = balls(3, num_frames=6)
    order = [2, 0, 1]
    spare = np.full_like(x[:, :, :1], 5)
    places = np.concatenate([x[:, :-1, order], spare[:, 1:]], axis=2)
    predicted = np.concatenate([x[:, 1:, order], spare[:, 1:]], axis=2)
    found, followers = follow_objects.figures(predicted, places, x)
    assert found == {
        "found": 1,
        "kept": 1,
        "next_step": 0,
        "next_step_of_kept": 0,
    }
    assert (followers == [1, 2, 0]).all()
    places[:, 3:, 1] = predicted[:, 3:, 1] = 5  # The file of ball 0.
    found, followers = follow_objects.figures(predicted, places, x)
    assert found["found"] == 1
    assert found["kept"] == pytest.approx(1 - 2 / 15)
    assert found["next_step"] > 100
    assert found["next_step_of_kept"] == 0


def test_files_are_numbered_by_their_first_ball():
    followers = np.array([[[2, 0, 1], [2, 1, 3], [0, 2, 1]]])
    shown = follow_objects.by_first_frame(followers)
    np.testing.assert_array_equal(shown, [[[0, 1, 2], [0, 2, -1], [1, 0, 2]]])


SMALL = (
    *("--num-batches", "4", "--batch-size", "4", "--num-train", "8"),
    *("--num-test", "3", "--tested", "2", "4", "--num-objects", "3"),
    *("--verbose", "0"),
)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("found")
    line = [*SMALL, "--directory", str(folder)]
    command_line.start(find_objects, "find_objects", options=line)
    return folder


def test_a_run_that_finds_objects(found):
    (record,) = records.read_runs(found)
    assert set(record.result["found"]) == {"2", "4"}
    assert 0 <= record.result["found"]["4"] <= 1
    assert "found, 4" in results.tables([record])["find_objects"]


@pytest.mark.parametrize("core", follow_objects.CORES)
def test_a_run_that_follows_objects(core, found, tmp_path):
    (run,) = records.read_runs(found)
    path = found / run.name / "model.keras"
    line = [*SMALL, "--core", core, "--detector", path, "--units", "4"]
    line += ["--num-frames", "5", "--directory", tmp_path]
    command_line.start(
        follow_objects, "follow_objects", options=[str(x) for x in line]
    )
    (record,) = records.read_runs(tmp_path)
    own, tracker = record.result, record.result["same_velocity"]
    for result in (own, tracker):
        assert 0 <= result["kept"]["4"] <= 1
        assert result["next_step"]["2"] > 0
    assert (tmp_path / record.name / "followed.gif").stat().st_size
    file = tmp_path / record.name / "model.keras"
    loaded = keras.saving.load_model(file, compile=False)
    assert loaded.output_shape == (None, 4, 4, 4)
    # Each seed has a detector of its own.
    assert record.settings["detector"] is True
    text = results.tables([record])["follow_objects"]
    assert "same velocity" in text
    assert "roll-out" not in text


def test_a_follower_needs_a_detector(tmp_path):
    with pytest.raises(SystemExit):
        command_line.start(
            follow_objects,
            "follow_objects",
            options=["--directory", str(tmp_path)],
        )
