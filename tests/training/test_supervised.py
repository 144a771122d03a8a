import argparse
import csv
import json
import os
import pathlib
import re
import tracemalloc

import keras
import numpy as np
import pytest

from keras_relational import models
from keras_relational import training
from keras_relational.datasets import relations_game
from keras_relational.training import supervised

ARGUMENTS = {
    "num_batches": 60,
    "batches_per_epoch": 20,
    "steps_per_execution": 10,
    "seed": 4,
    "verbose": 0,
}


def small_model(seed=1, units=8):
    keras.utils.set_random_seed(seed)
    inputs = keras.Input((6,))
    x = keras.layers.Dense(units, activation="relu")(inputs)
    return keras.Model(inputs, keras.layers.Dense(3)(x))


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(0).normal(size=(40, 6)).astype("float32")
    return x, x[:, :3].argmax(-1).astype("uint8")


class KilledError(Exception):
    pass


def kill_after(monkeypatch, epochs):
    """Ends a run the way a kill does: right after some checkpoint."""
    saved = training.supervised._Curves._save

    def save(curves):
        saved(curves)
        if len(curves.curves["batches"]) == epochs:
            raise KilledError

    monkeypatch.setattr(training.supervised._Curves, "_save", save)


def test_a_killed_run_continues_with_the_same_result(data, tmp_path):
    validation = {"training": data}

    def run(model, directory):
        return training.train_classifier(
            model,
            *data,
            optimizer="adam",
            validation=validation,
            directory=directory,
            **ARGUMENTS,
        )

    unbroken = small_model()
    expected = run(unbroken, tmp_path / "unbroken")

    with pytest.MonkeyPatch.context() as monkeypatch:
        kill_after(monkeypatch, 2)
        with pytest.raises(KilledError):
            run(small_model(), tmp_path / "killed")
    continued = small_model(seed=99)
    curves = run(continued, tmp_path / "killed")

    for ours, theirs in zip(
        continued.get_weights(), unbroken.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert curves.keys() == expected.keys()
    for name in curves.keys() - {"minutes"}:
        np.testing.assert_array_equal(curves[name], expected[name])
    np.testing.assert_array_equal(curves["batches"], [20, 40, 60])
    assert (np.diff(curves["minutes"]) > 0).all()

    with open(tmp_path / "killed" / "curves.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["batches"]) for row in rows] == [20, 40, 60]
    assert [float(row["loss"]) for row in rows] == list(expected["loss"])
    assert not list(tmp_path.glob("*/*.partial"))
    # A finished run comes back as it was, without another step.
    again = run(small_model(), tmp_path / "killed")
    np.testing.assert_array_equal(again["minutes"], curves["minutes"])


def test_training_changes_every_weight(data):
    model = small_model()
    before = model.get_weights()
    training.train_classifier(model, *data, **ARGUMENTS)
    for old, new in zip(before, model.get_weights(), strict=True):
        assert (old != new).any()


def test_the_seed_fixes_the_result_and_another_changes_it(data):
    losses = []
    for seed in (4, 4, 5):
        curves = training.train_classifier(
            small_model(), *data, **{**ARGUMENTS, "seed": seed}
        )
        losses.append(curves["loss"])
    np.testing.assert_array_equal(losses[0], losses[1])
    assert (losses[0] != losses[2]).any()


def test_validation_accuracy_is_that_of_the_model(data):
    model = small_model()
    curves = training.train_classifier(
        model, *data, validation={"it": data}, **ARGUMENTS
    )
    logits = keras.ops.convert_to_numpy(model(data[0]))
    assert curves["it_accuracy"][-1] == np.mean(logits.argmax(-1) == data[1])
    assert training.accuracy(model, *data) == curves["it_accuracy"][-1]


def test_another_model_in_the_directory_is_refused(data, tmp_path):
    training.train_classifier(
        small_model(), *data, directory=tmp_path, **ARGUMENTS
    )
    other = small_model(units=9)
    with pytest.raises(ValueError, match="of another model or optimizer"):
        training.train_classifier(other, *data, directory=tmp_path, **ARGUMENTS)


def test_other_curves_in_the_directory_are_refused(data, tmp_path):
    arguments = {**ARGUMENTS, "directory": tmp_path}
    training.train_classifier(small_model(), *data, **arguments)
    arguments |= {"validation": {"it": data}, "num_batches": 80}
    with pytest.raises(ValueError, match=r"Received: batches.*it_accuracy"):
        training.train_classifier(small_model(), *data, **arguments)


def save(path, curves, *variables):
    names = [f"variable_{i}" for i in range(len(variables))]
    arrays = dict(zip(names, variables, strict=True))
    np.savez(path, curves=np.array(curves), **arrays)


def curves_of(**curves):
    return json.dumps({"batches": [20], "minutes": [1.0], **curves})


NPY = b"\x93NUMPY\x01\0\x46\0{'descr': '<f8', 'fortran_order': False, "
DAMAGED = {
    "empty": lambda path: path.write_bytes(b""),
    "no_zip": lambda path: path.write_bytes(b"\0" * 500),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-700]),
    "one_array": lambda path: path.write_bytes(NPY),
    "pickle": lambda path: save(path, curves_of(), np.array([{}], object)),
    "pickled_curves": lambda path: save(path, np.array([{}], object)),
    "text": lambda path: save(path, curves_of(), np.array("0")),
    "no_curves": lambda path: np.savez(path, variable_0=np.zeros(3)),
    "no_variable": lambda path: np.savez(path, curves=curves_of(), b=1),
    "no_json": lambda path: save(path, "{"),
    "no_table": lambda path: save(path, "[1]"),
    "other_table": lambda path: save(path, '{"loss": [1]}'),
    "no_numbers": lambda path: save(path, curves_of(batches=["a"])),
    "no_lists": lambda path: save(path, curves_of(batches=3)),
    "too_large_numbers": lambda path: save(path, curves_of(minutes=[10**400])),
    "other_lengths": lambda path: save(path, curves_of(loss=[1, 2])),
    "no_epoch": lambda path: save(path, curves_of(batches=[], minutes=[])),
    "deep": lambda path: save(path, "[" * 100_000),
}


@pytest.fixture(scope="module")
def checkpoint(data, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    arguments = {**ARGUMENTS, "num_batches": 20}
    training.train_classifier(
        small_model(), *data, directory=directory, **arguments
    )
    return (directory / "checkpoint.npz").read_bytes()


@pytest.fixture(scope="module")
def trained():
    model = small_model()
    # As `train_classifier` has it.
    trained = training.MinibatchModel(model.inputs, model.outputs)
    trained.compile("sgd", "mse", metrics=["accuracy"])
    trained.evaluate(np.zeros((1, 6)), np.zeros((1, 3)), verbose=0)
    trained.optimizer.build(trained.trainable_variables)
    return trained


@pytest.fixture
def restore(checkpoint, trained, tmp_path):
    """Takes up a checkpoint, after a function has changed its file."""

    def continued(damage):
        path = tmp_path / "checkpoint.npz"
        path.write_bytes(checkpoint)
        damage(path)
        return supervised._Curves(dict, 20, tmp_path).restore(trained)

    return continued


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_checkpoint_is_told_with_its_path(restore, name):
    with pytest.raises(
        ValueError, match=r"checkpoint\.npz is damaged.* delete it to begin"
    ) as raised:
        restore(DAMAGED[name])
    assert "allow_pickle" not in str(raised.value)


@pytest.mark.parametrize("seed", range(30))
def test_a_flipped_bit_is_told_or_changes_nothing(restore, trained, seed):
    restore(lambda path: None)
    expected = trained.get_weights()
    rng = np.random.default_rng(seed)

    def flip(path):
        content = bytearray(path.read_bytes())
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)

    try:
        assert restore(flip) == 1
    except ValueError as error:
        assert "checkpoint.npz is damaged" in str(error)  # noqa: PT017
    for ours, theirs in zip(trained.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_is_measured_may_be_of_any_type(data, tmp_path):
    model = small_model()
    model.compile(
        "sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    model.optimizer.build(model.trainable_variables)
    for num_batches in (10, 20):
        curves = training.fit_and_log(
            model,
            lambda first: training.Minibatches(*data, 10, None, first, seed=0),
            num_batches,
            batches_per_epoch=10,
            measure=lambda: {"error": np.float32(0.5)},
            directory=tmp_path,
            verbose=0,
        )
    assert curves["error"].tolist() == [0.5, 0.5]


def test_another_length_of_epoch_is_refused(data, tmp_path):
    arguments = {**ARGUMENTS, "directory": tmp_path}
    training.train_classifier(small_model(), *data, **arguments)
    arguments["batches_per_epoch"] = arguments["num_batches"]
    with pytest.raises(ValueError, match="was written with batches_per_epoch"):
        training.train_classifier(small_model(), *data, **arguments)


def test_numbers_of_batches_must_divide_each_other(data):
    with pytest.raises(ValueError, match="batches_per_epoch=7, steps"):
        training.train_classifier(
            small_model(), *data, num_batches=20, batches_per_epoch=7
        )


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0, 1, 1), "num_batches=0"),
        ((10, 0, 1), "batches_per_epoch=0"),
        ((10, 10, 0), "batches_per_item=0"),
        ((10, 4, 1), "num_batches=10, batches_per_epoch=4"),
        ((10, 10, 3), "batches_per_epoch=10, batches_per_item=3"),
    ],
)
def test_numbers_of_batches_are_checked(numbers, words):
    num_batches, batches_per_epoch, batches_per_item = numbers
    with pytest.raises(ValueError, match=words):
        training.fit_and_log(
            small_model(),
            None,
            num_batches,
            batches_per_epoch,
            batches_per_item=batches_per_item,
        )


def test_labels_in_a_column_are_refused(data):
    x, y = data
    with pytest.raises(ValueError, match=r"y.shape=\(\d+, 1\)"):
        training.accuracy(small_model(), x, y[:, None])


def test_multi_task_model_trains():
    images, labels, task_ids = relations_game.generate(
        ["row_AAA", "row_ABC"], 40, seed=0
    )
    model = models.relations_classifier(num_heads=2, num_tasks=2)
    curves = training.train_classifier(
        model, (images, task_ids), labels, **ARGUMENTS
    )
    assert np.isfinite(curves["loss"]).all()


def test_adam_follows_gradients_of_a_billionth():
    variable = keras.Variable([0.0])
    optimizer = training.adam(0.1)
    optimizer.build([variable])
    gradient = 1e-9
    optimizer.apply(
        [keras.ops.convert_to_tensor([gradient], "float32")], [variable]
    )
    root = 0.001**0.5 * gradient  # Of the moment, at the first step.
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(variable),
        [-0.1 * root / (root + 1e-8)],
        rtol=1e-4,
    )


def test_options_in_name():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--size", type=int)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--masked", action="store_true")
    names = ("rate", "size", "masked")
    for line, expected in {
        "": "",
        "--rate 0.1": "",
        "--rate 0 --size 3": "-rate0.0-size3",
        "--masked --rate 1": "-rate1.0-masked",
    }.items():
        args = parser.parse_args(line.split())
        name = training.options_in_name(parser, args, names)
        assert name == expected
    args = parser.parse_args(["--folder", "a/b"])
    with pytest.raises(ValueError, match=r"data_digest.*folder=a/b"):
        training.options_in_name(parser, args, ["folder"])


def test_data_digest_tells_values_types_and_shapes_apart():
    zeros = np.zeros((2, 3), "uint8")
    ones = np.ones((2, 3), "uint8")
    data = [
        [zeros],
        [ones],
        [zeros, ones],
        [ones, zeros],
        [zeros.T],
        [zeros.astype("int8")],
        [["a", "b"]],
        [["a", "c"]],
        [np.uint8(0)],
        [zeros[:0]],
    ]
    digests = [training.data_digest(*arrays) for arrays in data]
    assert len(set(digests)) == len(data)
    assert digests[0] == training.data_digest(np.asfortranarray(zeros))
    assert all(re.fullmatch("[0-9a-f]{8}", digest) for digest in digests)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="models are exported on TensorFlow only",
)
def test_check_export_refuses_before_any_work(tmp_path, monkeypatch, capsys):
    parser = argparse.ArgumentParser()
    parser.add_argument("--export")

    def check(*line):
        training.check_export(parser, parser.parse_args(line))

    check()
    check("--export", str(tmp_path))
    (tmp_path / "1").mkdir()
    with pytest.raises(SystemExit):
        check("--export", str(tmp_path))
    assert "is never overwritten" in capsys.readouterr().err
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    check()
    with pytest.raises(SystemExit):
        check("--export", str(tmp_path / "other"))
    assert "KERAS_BACKEND=tensorflow" in capsys.readouterr().err


def test_save_result_prints_and_writes(capsys, tmp_path):
    training.save_result(tmp_path, {"run": "a", "accuracy": 0.5})
    assert json.loads(capsys.readouterr().out)["accuracy"] == 0.5
    result = json.loads((tmp_path / "result.json").read_text())
    assert result == {"run": "a", "accuracy": 0.5}


def test_write_aside_leaves_the_old_file_if_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    training.write_atomically(path, b"old")

    def stopped(*_):
        raise OSError("stopped")

    monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(OSError, match="stopped"):
        training.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


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


def test_a_checkpoint_of_another_size_is_refused_before_it_is_read(
    data, tmp_path
):
    """100 MiB of zeros in place of a variable."""
    arguments = {**ARGUMENTS, "directory": tmp_path}
    training.train_classifier(small_model(), *data, **arguments)
    path = tmp_path / "checkpoint.npz"
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["variable_0"] = np.zeros((100, 2**20), "uint8")
    np.savez_compressed(path, **arrays)
    del arrays
    tracemalloc.start()
    with pytest.raises(ValueError, match="of another model or optimizer"):
        training.train_classifier(small_model(), *data, **arguments)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 2**20
