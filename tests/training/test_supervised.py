"""Training of classifiers, in runs that are killed and continued too."""

import csv

import keras
import kill_runs
import numpy as np
import pytest

from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import relations_game

ARGUMENTS = {
    "num_batches": 60,
    "batches_per_epoch": 20,
    "steps_per_execution": 10,
    "seed": 4,
    "verbose": 0,
}


def small_model(seed=1, units=8, dtype="float32"):
    keras.utils.set_random_seed(seed)
    inputs = keras.Input((6,), dtype=dtype)
    x = keras.layers.Dense(units, activation="relu", dtype=dtype)(inputs)
    x = keras.layers.Dropout(0.2, seed=seed, dtype=dtype)(x)
    return keras.Model(inputs, keras.layers.Dense(3, dtype=dtype)(x))


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(0).normal(size=(40, 6)).astype("float32")
    return x, x[:, :3].argmax(-1).astype("uint8")


def train(model, data, **changes):
    return training.train_classifier(model, *data, **{**ARGUMENTS, **changes})


def test_small_gradients_in_half_precision():
    """The loss is scaled, whatever the global policy is by then."""
    keras.config.set_dtype_policy("mixed_float16")
    x = keras.Input((1,))
    dense = keras.layers.Dense(2, kernel_initializer="zeros")
    model = keras.Model(x, keras.layers.Rescaling(0.01)(dense(x)))
    keras.config.set_dtype_policy("float32")
    y = np.arange(40) % 2
    rows = (1e-6 * (2 * y[:, None] - 1)).astype("float32")
    train(model, (rows, y))
    kernel = keras.ops.convert_to_numpy(dense.kernel)
    assert kernel[0, 0] < 0 < kernel[0, 1]


def test_the_seed_fixes_the_result_and_another_changes_it(data, whole):
    same, another = (
        train(small_model(), data, seed=seed)["loss"] for seed in (4, 5)
    )
    np.testing.assert_array_equal(same, whole[1]["loss"])
    assert (another != same).any()


def test_validation_accuracy_is_that_of_the_model(data):
    model = small_model()
    curves = train(model, data, validation={"it": data})
    logits = keras.ops.convert_to_numpy(model(data[0]))
    assert curves["it_accuracy"][-1] == np.mean(logits.argmax(-1) == data[1])
    assert training.accuracy(model, *data) == curves["it_accuracy"][-1]


@pytest.fixture
def run(tmp_path):
    with runs.Run(tmp_path, "test", {}) as run:
        yield run


def test_a_run_that_differs_is_refused(data, run):
    train(small_model(), data, run=run)
    for model, changes, words in (
        (small_model(units=9), {}, "of another model or optimizer"),
        (
            small_model(),
            {"validation": {"it": data}, "num_batches": 80},
            "Received: batches.*it_accuracy",
        ),
        (
            small_model(),
            {"batches_per_epoch": 60},
            "was written with batches_per_epoch",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            train(model, data, run=run, **changes)


def test_what_is_measured_may_be_of_any_type(data, run):
    model = small_model()
    model.compile(
        "sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    model.optimizer.build(model.trainable_variables)
    for num_batches in (10, 20):
        curves = training.fit(
            model,
            lambda first: training.Minibatches(*data, 10, None, first, seed=0),
            num_batches,
            batches_per_epoch=10,
            measure=lambda: {"error": np.float32(0.5)},
            run=run,
            verbose=0,
        )
    assert curves["error"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0, 1, 1), "num_batches=0"),
        ((10, 0, 1), "batches_per_epoch=0"),
        ((10, 10, 0), "batches_per_item=0"),
        ((10, 10, 3), "batches_per_epoch=10, batches_per_item=3"),
    ],
)
def test_numbers_of_batches_are_checked(numbers, words):
    *numbers, batches_per_item = numbers
    with pytest.raises(ValueError, match=words):
        training.fit(
            small_model(), None, *numbers, batches_per_item=batches_per_item
        )


def test_blocks_and_labels_are_checked(data):
    with pytest.raises(ValueError, match="batches_per_epoch=7, steps"):
        train(small_model(), data, num_batches=20, batches_per_epoch=7)
    x, y = data
    with pytest.raises(ValueError, match=r"y.shape=\(\d+, 1\)"):
        training.accuracy(small_model(), x, y[:, None])


@pytest.mark.slow
def test_predinet_learns_same_and_generalizes():
    x, y, _ = relations_game.generate("same", 100_000, seed=0)
    held_out = relations_game.generate("same", 2_000, "hexominoes", seed=1)
    keras.utils.set_random_seed(0)
    model = models.relations_classifier()
    training.train_classifier(
        model, x, y, num_batches=50_000, verbose=0, seed=0
    )
    assert training.accuracy(model, *held_out[:2]) > 0.97


@pytest.fixture(scope="module")
def whole(data):
    """A model that was trained in one go, and its curves."""
    model = small_model()
    return model, train(model, data)


@pytest.mark.parametrize("length", [3, 10, 55])
def test_any_number_of_batches_can_be_made_and_added_to(
    data, run, whole, length
):
    """Epochs are of 20 batches, and blocks of ten."""
    expected_model, expected = whole
    model = small_model()
    shorter = train(model, data, run=run, num_batches=length)
    full = [x for x in (20, 40) if x < length]
    assert shorter["batches"].tolist() == [*full, length]
    curves = train(model, data, run=run)
    np.testing.assert_array_equal(curves["batches"], expected["batches"])
    # All epochs but the one that was made in two parts.
    same = np.arange(3) != len(full)
    np.testing.assert_array_equal(curves["loss"][same], expected["loss"][same])
    np.testing.assert_equal(values_of(model), values_of(expected_model))


class KilledError(KeyboardInterrupt):
    """As Ctrl-C raises it."""


def kill_after(monkeypatch, epochs, before):
    """Ends a run the way a kill does: right after some checkpoint, or before.

    Before, the other files of the epoch are there already.
    """
    saved = runs.ModelCheckpoints.save

    def save(checkpoints, number, curves):
        last = len(curves["batches"]) == epochs
        if last and before:
            raise KilledError
        saved(checkpoints, number, curves)
        if last:
            raise KilledError

    monkeypatch.setattr(runs.ModelCheckpoints, "save", save)


def values_of(model):
    """Of all variables, dropout's seed too."""
    values = map(keras.ops.convert_to_numpy, model.variables)
    return [x.astype("float64") for x in values]


@pytest.mark.any_backend
@pytest.mark.parametrize(
    ("before", "dtype"),
    [
        (False, "float32"),
        pytest.param(True, "float32", marks=pytest.mark.slow),
        # NumPy's files know no such type; nor do they lose a digit of it.
        pytest.param(False, "bfloat16", marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_continues_with_the_same_result(
    data, tmp_path, before, dtype
):
    def trained(folder, **arguments):
        model = small_model(**{"dtype": dtype, **arguments})
        given = {"optimizer": "adam", "validation": {"training": data}}
        with runs.Run(tmp_path / folder, "test", {}) as run:
            curves = train(model, data, run=run, **given)
        return values_of(model), curves

    unbroken, expected = trained("unbroken")
    with pytest.MonkeyPatch.context() as monkeypatch:
        kill_after(monkeypatch, 2, before)
        with pytest.raises(KilledError):
            trained("killed")
    continued, curves = trained("killed", seed=99)
    np.testing.assert_equal(continued, unbroken)
    assert (np.diff(curves["minutes"]) > 0).all()
    expected["minutes"] = curves["minutes"]
    np.testing.assert_equal(curves, expected)
    assert curves["batches"].tolist() == [20, 40, 60]

    with open(tmp_path / "killed" / "curves.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["batches"]) for row in rows] == [20, 40, 60]
    assert [float(row["loss"]) for row in rows] == list(expected["loss"])
    assert not list(tmp_path.glob("*/*.partial*"))
    # A finished run comes back as it was, without another step.
    np.testing.assert_equal(trained("killed")[1], curves)
    with pytest.raises(ValueError, match="of another model or optimizer"):
        trained("killed", dtype="float16")
    # TensorBoard shows each point once.
    log = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    )
    folder = tmp_path / "killed" / "tensorboard"
    assert len(list(folder.iterdir())) == 1
    events = log.EventAccumulator(str(folder))
    events.Reload()
    assert set(events.Tags()["tensors"]) == set(curves)
    for name, curve in curves.items():
        points = events.Tensors(name)
        assert [x.step for x in points] == [20, 40, 60]
        np.testing.assert_allclose(
            [x.tensor_proto.float_val[0] for x in points], curve, rtol=1e-6
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", kill_runs.TRAIN)
def test_runs_that_are_killed(kind, tmp_path):
    """With SIGKILL, at random."""
    if kind == "agent":
        pytest.importorskip("tf_agents")
    assert kill_runs.kill_runs(kind, 4, 1, tmp_path) == []


def test_a_run_says_that_it_continues_or_has_finished(data, run, capsys):
    train(small_model(), data, run=run, num_batches=20)
    assert capsys.readouterr().out == ""
    train(small_model(), data, run=run, num_batches=20)
    line = f"{run.directory} has made its 20 batches: nothing is trained.\n"
    assert capsys.readouterr().out == line
    curves = train(small_model(), data, run=run, num_batches=40)
    line = f"Continues {run.directory} after 20 of 40 batches.\n"
    assert capsys.readouterr().out == line
    assert curves["batches"].tolist() == [20, 40]


def test_the_bar_counts_batches(data, capsys):
    """And not blocks of ten."""
    train(small_model(), data, verbose=1)
    bar = capsys.readouterr().out
    assert "Epoch 3/3" in bar
    assert "20/20" in bar
    assert "2/2" not in bar.replace("20/20", "")


def test_parts_of_a_run_have_curves_of_their_own(data, run):
    for part, num_batches in (("first", 20), ("second", 40)):
        train(small_model(), data, run=run, num_batches=num_batches, part=part)
        curves = runs.read_curves(run.directory / part / "curves.csv")
        assert curves["batches"][-1] == num_batches
    result = run.finish({})
    assert "batches" not in result
    assert result["minutes"] >= 0


def test_predictions_are_those_of_predict():
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
    joint = keras.layers.Concatenate()([a, b])
    outputs = {"sum": keras.layers.Dense(2)(joint), "a": a}
    model = keras.Model({"a": a, "b": b}, outputs)
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=(7, n)) for name, n in (("a", 3), ("b", 2))}
    expected = model.predict(inputs, verbose=0)
    for batch_size in (3, 7, 20):  # The last batch is shorter, or alone.
        found = training.predictions(model, inputs, batch_size)
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, atol=1e-6)
