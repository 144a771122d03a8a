"""More balls than in training: models, trackers, measures and a run."""

import argparse
import itertools

import keras
import numpy as np
import pytest
from PIL import Image

from experiments import records
from experiments.scoff import added_objects
from experiments.scoff import results
from experiments.scoff import tracking
from experiments.scoff.object_predictors import CORES
from experiments.scoff.object_predictors import PositionCode
from experiments.scoff.object_predictors import object_predictor
from experiments.scoff.set_losses import set_error
from keras_relational import analysis
from keras_relational.datasets import bouncing_balls

FOR_EACH = [core for core in CORES if core != "gru"]


def options(core="scoff", **changes):
    given = {
        "core": core,
        "shuffle": False,
        "set_loss": False,
        "pass_through": False,
        "sharpness": 4.0,
        "units": 6,
        "num_bumps": 3,
        "num_schemata": 1,
        "num_message_heads": 2,
        "key_scale": 3.0,
        "num_objects": 3,
        "tested": [2, 4],
        "seed": 0,
    }
    return argparse.Namespace(**given | changes)


def balls(number, size=5, seed=0):
    return bouncing_balls.generate_coordinates(size, number, seed=seed)


def predicted(model, x):
    return model.predict(x, verbose=0)


def test_positions_are_coded_as_bumps():
    code = np.array(PositionCode(3)(np.array([[[0.0, 1.0]]], "float32")))
    assert code.shape == (1, 1, 11)
    np.testing.assert_array_equal(code[0, 0, :2], [0, 1])
    near, far = np.exp(-0.5), np.exp(-2)
    x, y = np.array([near, 1, near]), np.array([far, near, 1])
    expected = np.outer(y, x).ravel()
    np.testing.assert_allclose(code[0, 0, 2:], expected, rtol=1e-5)
    assert PositionCode(0)(code).shape == code.shape


@pytest.mark.parametrize("core", FOR_EACH)
def test_the_same_weights_serve_any_number(core):
    given = options(core)
    trained = added_objects.make_model(given, 3)
    for number in (2, 5):
        model = added_objects.make_model(given, number, trained)
        assert model.count_params() == trained.count_params()
        assert predicted(model, balls(number)).shape == (5, 21, number, 2)


@pytest.mark.parametrize("core", FOR_EACH)
def test_objects_are_exchangeable(core):
    model = object_predictor(core, 4, units=6, num_bumps=3)
    x, order = balls(4), [2, 0, 3, 1]
    np.testing.assert_allclose(
        predicted(model, x[:, :, order]),
        predicted(model, x)[:, :, order],
        atol=1e-5,
    )


@pytest.mark.parametrize("core", FOR_EACH)
def test_an_object_sees_the_others(core):
    """But for a GRU alone."""
    x = balls(3)
    moved = x.copy()
    moved[:, :, 2] = balls(1, seed=1)[:, :, 0]
    model = object_predictor(core, 3, units=6, num_bumps=0)
    away = abs(predicted(model, moved) - predicted(model, x))[:, 1:, :2]
    assert (away.max() > 1e-6) == (core != "shared_gru")


@pytest.mark.parametrize("core", CORES)
def test_no_core_looks_ahead(core):
    given = options(core)
    model = added_objects.make_model(given, 3)
    predict = added_objects.predictor(given, model)
    x = balls(3)
    later = x.copy()
    later[:, 8:] = 0
    np.testing.assert_allclose(
        predict(x)[:, :8], predict(later)[:, :8], atol=1e-6
    )
    assert abs(predict(x)[:, 8:] - predict(later)[:, 8:]).max() > 1e-3


def test_files_predict_in_their_own_order_whatever_that_of_the_balls():
    model = object_predictor("scoff", 4, units=6, num_bumps=3, sharpness=4.0)
    x = balls(4)
    mixed, owners = tracking.shuffle_steps(x, np.random.default_rng(0))
    assert (owners[:, 1:] != np.arange(4)).any()
    np.testing.assert_allclose(
        predicted(model, mixed), predicted(model, x), atol=1e-5
    )


def test_a_sharp_place_is_where_a_file_attends():
    x = balls(3)
    model = object_predictor("scoff", 3, units=6, num_bumps=3, sharpness=4.0)
    read_out = model.get_layer("read_out")
    read_out.kernel.assign(np.zeros(read_out.kernel.shape))
    weights = analysis.object_files(model, x).inputs[:, :, 0] ** 4
    expected = weights / weights.sum(-1, keepdims=True) @ x
    np.testing.assert_allclose(predicted(model, x), expected, atol=1e-5)


def test_models_can_be_loaded(tmp_path):
    for core in CORES:
        given = options(core)
        model = added_objects.make_model(given, 3)
        model.save(tmp_path / "model.keras")
        loaded = keras.models.load_model(tmp_path / "model.keras")
        x, _ = added_objects.examples(given, balls(3), np.random.default_rng(0))
        np.testing.assert_array_equal(predicted(loaded, x), predicted(model, x))


def test_one_gru_has_a_place_for_each():
    given = options("gru")
    x, y = added_objects.examples(given, balls(3), np.random.default_rng(0))
    assert x.shape == (5, 20, 8, 3)
    assert y.shape == (5, 20, 8, 2)
    there = x[..., 2] == 1
    np.testing.assert_array_equal(there.sum(-1), 3)
    np.testing.assert_array_equal(
        y[:, :-1][there[:, 1:]], x[:, 1:][there[:, 1:], :2]
    )
    assert not y[~there].any()
    model = added_objects.make_model(given, 3)
    assert model.get_layer("core").units == 18
    assert not predicted(model, x)[~there].any()
    assert added_objects.make_model(given, 5, model) is model


def test_every_ball_comes_back_from_its_place():
    """A GRU that learned nothing leaves balls where they are."""
    given = options("gru")
    model = added_objects.make_model(given, 3)
    read_out = model.get_layer("read_out")
    read_out.kernel.assign(np.zeros(read_out.kernel.shape))
    for number in (2, 6):
        x = balls(number)
        predict = added_objects.predictor(given, model)
        np.testing.assert_array_equal(predict(x), x)


def test_set_error_takes_the_best_order():
    rng = np.random.default_rng(0)
    true, given = rng.random((2, 4, 6, 3, 2)).astype("float32")
    each = [
        ((given - true[:, :, list(order)]) ** 2).mean((2, 3))
        for order in itertools.permutations(range(3))
    ]
    error = float(set_error(true, given))
    assert error == pytest.approx(np.min(each, axis=0).mean(), rel=1e-5)


def test_assignments_are_the_cheapest():
    costs = np.random.default_rng(0).random((20, 5, 5))
    sums = [
        costs[:, np.arange(5), order].sum(1)
        for order in map(list, itertools.permutations(range(5)))
    ]
    found = tracking.assignments(costs)
    own = np.take_along_axis(costs, found[..., None], axis=2).sum((1, 2))
    np.testing.assert_allclose(own, np.min(sums, axis=0))
    np.testing.assert_array_equal(np.sort(found), np.tile(range(5), (20, 1)))


def test_a_tracker_that_knows_the_future_keeps_every_ball():
    x = balls(6, size=30)
    mixed, owners = tracking.shuffle_steps(x, np.random.default_rng(0))
    np.testing.assert_array_equal(mixed[:, 0], x[:, 0])
    known, followers = tracking.track(lambda _: x[:, 1:], mixed)
    np.testing.assert_array_equal(known, x)
    followed = tracking.on_balls(followers, owners)
    np.testing.assert_array_equal(
        followed, np.broadcast_to(np.arange(6), followed.shape)
    )


def test_balls_that_pass_through_each_other_are_mixed_up():
    """By a tracker that expects no motion. Where balls collide it is easy."""
    kept = {}
    for collide in (True, False):
        x = bouncing_balls.generate_coordinates(50, 6, collide=collide, seed=0)
        mixed, owners = tracking.shuffle_steps(x, np.random.default_rng(0))
        known, followers = tracking.track(lambda x: x, mixed)
        followed = tracking.on_balls(followers, owners)
        kept[collide] = (followed == np.arange(6)).mean()
        # Each ball is where its follower is.
        found = np.take_along_axis(known, followed[..., None], axis=2)
        np.testing.assert_array_equal(found, x)
    assert kept[True] > 0.99
    assert 0.3 < kept[False] < 0.95


def test_straight_on_and_back_from_a_wall():
    times = np.arange(12)[None, :, None, None]
    path = 0.1 * times * np.ones(2)
    np.testing.assert_allclose(
        tracking.same_velocity(path[:, :-1])[:, 1:], path[:, 2:]
    )
    for rolled in (
        tracking.straight_on(path[:, :5], 7),
        tracking.roll_out(tracking.same_velocity, path[:, :5], 7),
    ):
        np.testing.assert_allclose(rolled, path[:, 5:])
    folded = tracking.bounced(np.array([0.5, 1.0, -1.0, 2.7]))
    np.testing.assert_allclose(folded, [0.5, 0.76, -0.76, -0.82])


def test_errors_are_relative_to_the_same_velocity():
    x = balls(3)
    straight = tracking.same_velocity(x[:, :-1])
    rolled = np.zeros_like(x[:, 11:])
    found = added_objects.errors(straight, rolled, x)
    assert found["next_step"] == 1
    assert found["roll_out"] == pytest.approx((x[:, 11:] ** 2).mean())
    followers = np.tile(np.arange(3), (5, 21, 1))
    followers[:, 0] = followers[0, 1:11, 0] = 1
    found = added_objects.errors(x[:, 1:], x[:, 11:], x, followers)
    assert found == {
        "next_step": 0,
        "roll_out": 0,
        "kept": pytest.approx(1 - 10 / (5 * 20 * 3)),
    }


def test_a_ball_has_the_colour_of_its_file(tmp_path):
    x = balls(2)[:3]
    followers = np.tile([0, 1], (3, 21, 1))
    followers[1, 20] = [1, 0]
    path = tmp_path / "followed.gif"
    added_objects.draw_followers(x, followers, path, pixels=200)
    with Image.open(path) as gif:
        assert gif.n_frames == 21
        assert gif.size == (600, 200)
        for which, frame in ((0, 0), (1, 0), (1, 20), (2, 20)):
            gif.seek(frame)
            pixels = np.asarray(gif.convert("RGB")).astype(int)
            for ball, follower in enumerate(followers[which, frame]):
                column, row = ((x[which, frame, ball] + 1) * 100).astype(int)
                column += 200 * which
                for shown, away in ((follower, 0), (ball, 9)):
                    expected = added_objects.COLOURS[shown]
                    near = abs(pixels[row, column + away] - expected)
                    assert near.max() < 20


SMALL = (
    *("--num-batches", "4", "--batch-size", "4", "--num-train", "8"),
    *("--num-test", "3", "--tested", "2", "4", "--num-objects", "3"),
    *("--units", "4", "--num-bumps", "0", "--verbose", "0"),
)


@pytest.mark.parametrize(
    "line",
    [
        ("--core", "scoff"),
        ("--core", "gru"),
        ("--core", "shared_gru", "--shuffle"),
        ("--core", "scoff", "--shuffle", "--set-loss"),
    ],
    ids=" ".join,
)
def test_a_run(line, tmp_path):
    from experiments import command_line

    command_line.start(
        added_objects,
        "added_objects",
        options=[*line, *SMALL, "--directory", str(tmp_path)],
    )
    (record,) = records.read_runs(tmp_path)
    assert record.length == 4
    assert set(record.result["next_step"]) == {"2", "4"}
    assert record.result["roll_out"]["4"] > 0
    assert record.result["same_velocity"]["next_step"]["4"] > 0
    chooses = line[1] == "scoff" or "--shuffle" in line
    assert ("kept" in record.result) == chooses
    folder = tmp_path / record.name
    assert (folder / "followed.gif").is_file() == chooses
    assert (folder / "errors.png").stat().st_size
    (text,) = results.tables([record]).values()
    assert line[1].replace("_", " ") in text
    assert ("kept, 4" in text) == chooses


def record(core, seed, error, **changes):
    arguments = {"core": core, "shuffle": False, "seed": seed, **changes}
    errors = {"2": error, "8": 2 * error}
    simple = {
        "next_step": dict.fromkeys(errors, 1.0),
        "roll_out": dict.fromkeys(errors, 0.5),
    }
    result = {"batches": 10, "minutes": 1.0, "weights": 1234}
    result |= {"next_step": errors, "roll_out": errors}
    result |= {"same_velocity": simple, "same_velocity_and_walls": simple}
    if core == "scoff":
        result["kept"] = {"2": 0.9, "8": 0.7}
    config = {"experiment": "added_objects", "arguments": arguments}
    return records.Record(f"{core}{seed}{changes}", config, result, {})


def test_tables_and_a_figure():
    found = [
        record("scoff", 0, 0.2),
        record("scoff", 1, 0.4),
        record("gru", 0, 0.6),
        record("scoff", 0, 3.0, shuffle=True),
    ]
    tables = results.tables(found)
    assert set(tables) == {"added_objects", "shuffled_objects"}
    lines = tables["added_objects"].splitlines()
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in lines
        if line.startswith("|")
    ]
    assert [row[0] for row in rows[2:]] == [
        *("gru", "scoff", "same velocity", "same velocity and walls")
    ]
    columns = dict(zip(rows[0], zip(*rows[2:], strict=True), strict=True))
    assert "0.300 ± 0.141" in columns["next step, relative, 2"][1]
    assert "0.600 ± 0.283" in columns["roll-out, 8"][1]
    assert columns["kept, 8"] == ("", "0.700 ± 0.000", "", "")
    assert columns["seeds"] == ("1", "2", "2", "2")
    figure = results.figures(found)["added_objects"]
    left, right = figure.axes
    names = [line.get_label() for line in left.lines]
    assert names == [
        *("gru", "scoff", "same velocity", "same velocity and walls")
    ]
    np.testing.assert_allclose(right.lines[1].get_ydata(), [0.3, 0.6])
    np.testing.assert_array_equal(right.lines[1].get_xdata(), [2, 8])
    figure = results.figures([*found, record("gru", 0, 0.5, units=8)])
    names = [line.get_label() for line in figure["added_objects"].axes[0].lines]
    assert names[:3] == ["gru", "scoff", "gru units=8"]
    found.append(record("scoff", 0, 0.5, num_schemata=2))
    (figure,) = results.figures(found).values()
    names = [line.get_label() for line in figure.axes[0].lines]
    assert names[:3] == ["gru", "scoff", "scoff, 2 schemata"]
    text = results.tables(found)["added_objects"]
    assert "| scoff, 2 schemata |" in text
    assert "num_schemata" not in text
    assert results.tables([]) == results.figures([]) == {}
