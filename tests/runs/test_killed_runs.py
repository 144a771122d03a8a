"""A run that was killed and continued is the run that was not killed."""

import csv

import keras
import kill_runs
import numpy as np
import pytest

from keras_relational import runs
from keras_relational import training

ARGUMENTS = {
    "num_batches": 60,
    "batches_per_epoch": 20,
    "steps_per_execution": 10,
    "seed": 4,
    "verbose": 0,
}


def small_model(seed=1, dtype="float32"):
    keras.utils.set_random_seed(seed)
    inputs = keras.Input((6,), dtype=dtype)
    x = keras.layers.Dense(8, activation="relu", dtype=dtype)(inputs)
    x = keras.layers.Dropout(0.2, seed=seed, dtype=dtype)(x)
    return keras.Model(inputs, keras.layers.Dense(3, dtype=dtype)(x))


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(0).normal(size=(40, 6)).astype("float32")
    return x, x[:, :3].argmax(-1).astype("uint8")


class KilledError(KeyboardInterrupt):
    """As Ctrl-C raises it."""


def kill_after(monkeypatch, epochs, before=False):
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


def train(model, data, directory, **arguments):
    with runs.Run(directory, "test", {}) as run:
        return training.train_classifier(
            model,
            *data,
            optimizer="adam",
            validation={"training": data},
            run=run,
            **{**ARGUMENTS, **arguments},
        )


def assert_same_run(model, curves, expected_model, expected):
    for ours, theirs in zip(
        [*model.variables], [*expected_model.variables], strict=True
    ):
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(ours).astype("float64"),
            keras.ops.convert_to_numpy(theirs).astype("float64"),
        )
    assert curves.keys() == expected.keys()
    for name in curves.keys() - {"minutes"}:
        np.testing.assert_array_equal(curves[name], expected[name])
    np.testing.assert_array_equal(curves["batches"], [20, 40, 60])
    assert (np.diff(curves["minutes"]) > 0).all()


@pytest.mark.any_backend
@pytest.mark.parametrize(
    "before", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_a_killed_run_continues_with_the_same_result(data, tmp_path, before):
    unbroken = small_model()
    expected = train(unbroken, data, tmp_path / "unbroken")

    with pytest.MonkeyPatch.context() as monkeypatch:
        kill_after(monkeypatch, 2, before)
        with pytest.raises(KilledError):
            train(small_model(), data, tmp_path / "killed")
    continued = small_model(seed=99)
    curves = train(continued, data, tmp_path / "killed")
    assert_same_run(continued, curves, unbroken, expected)

    with open(tmp_path / "killed" / "curves.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["batches"]) for row in rows] == [20, 40, 60]
    assert [float(row["loss"]) for row in rows] == list(expected["loss"])
    assert not list(tmp_path.glob("*/*.partial*"))
    # A finished run comes back as it was, without another step.
    again = train(small_model(), data, tmp_path / "killed")
    np.testing.assert_array_equal(again["minutes"], curves["minutes"])
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
def test_a_killed_bfloat16_run_continues_with_the_same_result(data, tmp_path):
    """NumPy's files know no such type; nor do they lose a digit of it."""
    unbroken = small_model(dtype="bfloat16")
    expected = train(unbroken, data, tmp_path / "unbroken")
    short = train(
        small_model(dtype="bfloat16"),
        data,
        tmp_path / "killed",
        num_batches=40,
    )
    assert short["batches"].tolist() == [20, 40]
    continued = small_model(seed=99, dtype="bfloat16")
    curves = train(continued, data, tmp_path / "killed")
    assert {x.dtype for x in continued.trainable_variables} == {"bfloat16"}
    assert_same_run(continued, curves, unbroken, expected)
    # What was float32 is another run.
    with pytest.raises(ValueError, match="of another model or optimizer"):
        train(small_model(), data, tmp_path / "killed")


@pytest.mark.slow
@pytest.mark.parametrize("kind", kill_runs.TRAIN)
def test_runs_that_are_killed(kind, tmp_path):
    """With SIGKILL, at random."""
    if kind == "agent":
        pytest.importorskip("tf_agents")
    assert kill_runs.kill_runs(kind, 4, 1, tmp_path) == []
