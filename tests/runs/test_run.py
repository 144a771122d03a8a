"""What a run's folder tells, its name, and which starts it refuses."""

import json
import pathlib
import re
import subprocess
import sys
import types

import keras
import numpy as np
import pytest

from keras_relational import runs

ARGUMENTS = {"core": "scoff", "epochs": 12, "seed": 0, "sizes": (1, 3)}


def config_of(directory):
    return json.loads((directory / "config.json").read_text())


def test_a_config_tells_how_the_run_was_made(tmp_path, monkeypatch):
    script = tmp_path / "examples" / "adding.py"
    script.parent.mkdir()
    script.write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), "--core", "a b"])
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    arguments = {**ARGUMENTS, "file": pathlib.Path("a.npz")}
    digests = {"published": "1a2b3c4d"}
    with runs.Run(tmp_path / "run", "adding", arguments, data=digests) as run:
        config = config_of(run.directory)
        assert config == run.config
    assert config["format"] == 1
    assert config["experiment"] == "adding"
    assert config["command"] == "python examples/adding.py --core 'a b'"
    assert config["arguments"] == {
        **ARGUMENTS,
        "sizes": [1, 3],
        "file": "a.npz",
    }
    assert config["data"] == {"published": "1a2b3c4d"}
    versions = config["versions"]
    assert versions["keras"] == keras.__version__
    assert versions["numpy"] == np.__version__
    assert versions["backend"] == keras.backend.backend()
    assert config["machine"]["cores"] >= 1
    assert set(config["machine"]) == {
        "processor",
        "cores",
        "accelerator",
        "system",
    }
    commit = config["commit"]
    assert commit is None or re.fullmatch("[0-9a-f]{40}(-dirty)?", commit)
    assert re.fullmatch(
        r"\d{4}(-\d\d){2}T\d\d(:\d\d){2}\+.*", config["started"]
    )
    assert config["continued"] == []


def start(directory, experiment="adding", arguments=ARGUMENTS, **kwargs):
    """Starts a run that does nothing."""
    with runs.Run(directory, experiment, arguments, **kwargs) as run:
        return run


def test_each_later_start_is_listed(tmp_path):
    config = [start(tmp_path) for _ in range(3)][-1].config
    assert len(config["continued"]) == 2
    assert {"started", "commit", "versions", "machine", "command"} == set(
        config["continued"][0]
    )


FEWER = {"core": "scoff", "epochs": 12, "seed": 0}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arguments": {**ARGUMENTS, "seed": 1}}, "seed: was 0, now 1"),
        (
            {"arguments": {**ARGUMENTS, "sizes": [1, 4]}},
            r"sizes: was \[1, 3\], now \[1, 4\]",
        ),
        (
            {"arguments": {**ARGUMENTS, "rate": 0.1}},
            "rate: was not given, now 0.1",
        ),
        (
            {"arguments": {**ARGUMENTS, "seed": 2, "core": "a"}},
            'core: was "scoff", now "a"; seed: was 0, now 2',
        ),
        ({"arguments": FEWER}, r"sizes: was \[1, 3\], now not given"),
        ({"experiment": "vaec"}, 'experiment: was "adding", now "vaec"'),
        ({"data": {"file": "2b"}}, 'digest of file: was "1a", now "2b"'),
        ({"data": {}}, 'digest of file: was "1a", now not given'),
    ],
)
def test_another_run_is_refused_with_the_difference(tmp_path, changes, words):
    data = {"file": "1a"}
    start(tmp_path, data=data)
    before = config_of(tmp_path)
    with pytest.raises(ValueError, match=f"holds another run.*{words}"):
        start(tmp_path, **{"data": data, **changes})
    assert config_of(tmp_path) == before


def test_what_may_differ_does(tmp_path):
    """As do paths, and versions."""
    arguments = {**ARGUMENTS, "file": pathlib.Path("a/b.npz")}
    config = start(tmp_path, arguments=arguments).config
    config["versions"]["keras"] = "3.0.0"
    config["commit"] = None
    (tmp_path / "config.json").write_text(json.dumps(config))
    arguments |= {"file": pathlib.Path("c/b.npz"), "epochs": 20}
    config = start(tmp_path, arguments=arguments, may_differ=["epochs"]).config
    assert config["arguments"]["epochs"] == 20
    assert config["arguments"]["file"] == "c/b.npz"
    assert config["versions"]["keras"] == "3.0.0"
    part = config["continued"][0]
    assert part["versions"]["keras"] == keras.__version__


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("config.json", "{", "config.json cannot be read"),
        ("config.json", '{"format": 9}', "description of a run in format 1"),
        ("config.json", "[]", "description of a run in format 1"),
        ("curves.csv", "batches\r\n1\r\n", r"without its config\.json"),
    ],
)
def test_a_damaged_or_missing_config_is_told(tmp_path, file, content, words):
    (tmp_path / file).write_text(content)
    with pytest.raises(ValueError, match=words) as raised:
        start(tmp_path)
    assert str(tmp_path) in str(raised.value)


def test_a_second_start_is_refused_with_the_process(tmp_path):
    held = """
import os, sys
from keras_relational import runs
with runs.Run(sys.argv[1], "adding", {"seed": 0}):
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", held, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        number = process.stdout.readline().strip()
        assert number == str(process.pid)
        with pytest.raises(
            RuntimeError, match=f"process {number}\\."
        ) as raised:
            start(tmp_path, arguments={"seed": 0})
        assert str(tmp_path) in str(raised.value)
        process.kill()
        process.wait()
    # A process that was killed leaves no lock.
    with runs.Run(tmp_path, "adding", {"seed": 0}):
        # Nor does this process get it twice.
        with pytest.raises(RuntimeError, match="Another process writes"):
            start(tmp_path, arguments={"seed": 0})
    # A start that was refused leaves none either.
    with pytest.raises(ValueError, match="seed"):
        start(tmp_path, arguments={"seed": 1})
    start(tmp_path, arguments={"seed": 0})


def test_what_a_killed_run_left_is_removed(tmp_path):
    for name in (
        "curves.partial.csv",
        "checkpoint-20.partial.npz",
        "model.partial.keras",
        "curves.csv.partial",
    ):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / "impartial.txt").write_bytes(b"mine")
    start(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"config.json", "run.lock", "impartial.txt"}


def test_a_result_tells_the_figures_and_that_the_run_has_finished(tmp_path):
    with runs.Run(tmp_path, "adding", {}) as run:
        assert run.result is None
        result = run.finish({"accuracy": 0.5})
    assert json.loads((tmp_path / "result.json").read_text()) == result
    assert result["accuracy"] == 0.5
    assert result["finished"] >= config_of(tmp_path)["started"]
    assert start(tmp_path, arguments={}).result == result


def log_of(run, part=None):
    """A log whose checkpoints are not written."""
    nowhere = types.SimpleNamespace(numbers=list, save=lambda *_: None)
    return runs.TrainingLog(run, part, "batches", lambda folder: nowhere)


def test_a_run_that_goes_on_has_no_result_until_it_finishes(tmp_path):
    with runs.Run(tmp_path, "adding", {}) as run:
        run.finish({})
        log = log_of(run)
        log.restore(10)
        assert (tmp_path / "result.json").exists()
        log.add({"batches": 10, "minutes": 1.5})
        assert not (tmp_path / "result.json").exists()
        result = run.finish({})
    assert (result["batches"], result["minutes"]) == (10, 1.5)


def test_minutes_are_those_of_all_trainings_in_the_folder(tmp_path):
    for part, minutes in (("predinet", 1.5), ("esbn", 2.0), ("mlp", 0.2)):
        with runs.Run(tmp_path, "few_examples", {}) as run:
            log_of(run, part).add({"batches": 10, "minutes": minutes})
            result = run.finish({})
    assert result["minutes"] == 3.7
    (tmp_path / "esbn" / "curves.csv").write_text("batches\n10\n")
    with runs.Run(tmp_path, "few_examples", {}) as run:
        log_of(run, "mlp").add({"batches": 10, "minutes": 0.4})
        with pytest.warns(UserWarning, match=r"minutes of .*esbn"):
            result = run.finish({})
    assert result["minutes"] == 1.9


def small_model():
    inputs = keras.Input((3,))
    return keras.Model(inputs, keras.layers.Dense(2)(inputs))


def test_a_saved_model_is_whole_or_not_there(tmp_path, monkeypatch):
    model = small_model()
    with runs.Run(tmp_path, "adding", {}) as run:
        path = run.save_model(model)
        loaded = keras.saving.load_model(path)
        np.testing.assert_equal(loaded.get_weights(), model.get_weights())
        content = path.read_bytes()

        def stopped(path):
            pathlib.Path(path).write_bytes(b"half")
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(model, "save", stopped)
        with pytest.raises(OSError, match=r"No space left.*model\.keras"):
            run.save_model(model)
        assert path.read_bytes() == content
        assert not list(tmp_path.glob("*.partial*"))


@pytest.mark.skipif(
    not pathlib.Path("/dev/full").exists(), reason="needs /dev/full"
)
@pytest.mark.parametrize(
    "name", ["curves.csv", "result.json", "checkpoint-10.npz"]
)
def test_a_full_disk_names_the_file(tmp_path, name):
    model = small_model()
    model.compile("sgd", "mse")
    model.optimizer.build(model.trainable_variables)
    with runs.Run(tmp_path, "adding", {}) as run:
        log = runs.TrainingLog(
            run,
            None,
            "batches",
            lambda folder: runs.ModelCheckpoints(model, folder),
        )
        path = tmp_path / name
        partial = path.with_name(f"{path.stem}.partial{path.suffix}")
        partial.symlink_to("/dev/full")

        def write():
            log.add({"batches": 10, "minutes": 1.5})
            run.finish({})

        with pytest.raises(OSError, match=rf"No space left.*{name}"):
            write()


def test_a_run_is_used_in_a_with_statement(tmp_path):
    run = runs.Run(tmp_path, "adding", {})
    with pytest.raises(RuntimeError, match="`with` statement"):
        runs.TrainingLog(run, None, "batches", None)


def test_arguments_are_numbers_text_and_paths(tmp_path):
    with pytest.raises(TypeError, match="arguments of a run must be numbers"):
        start(tmp_path, arguments={"core": object()})


DEFAULTS = {"rate": 0.1, "size": None, "masked": False, "folder": None}


def test_options_in_a_name():
    for given, expected in (
        ({}, "sums"),
        ({"rate": 0.1}, "sums"),
        ({"rate": 0.0, "size": 3}, "sums-rate0.0-size3"),
        ({"rate": 1.0, "masked": True}, "sums-rate1.0-masked"),
        ({"size": [1, 3]}, "sums-size1+3"),
        ({"seed": 0, "size": 3}, "sums-size3-seed0"),
        # A path does not tell the files in it: their digest does.
        ({"folder": pathlib.Path("a/b")}, "sums"),
        ({"folder": [pathlib.Path("a/b")]}, "sums"),
    ):
        arguments = {**DEFAULTS, **given}
        assert runs.run_name("sums", arguments, DEFAULTS) == expected


def test_a_name_without_options_and_with_digests():
    arguments = {**DEFAULTS, "rate": 0.5, "size": 4, "seed": 2}
    name = runs.run_name(
        "sums",
        arguments,
        DEFAULTS,
        always=["size"],
        leave_out=["rate"],
        data={"published": "1a2b3c4d"},
    )
    assert name == "sums-4-published_1a2b3c4d-seed2"


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
    digests = [runs.data_digest(*arrays) for arrays in data]
    assert len(set(digests)) == len(data)
    assert digests[0] == runs.data_digest(np.asfortranarray(zeros))
    assert all(re.fullmatch("[0-9a-f]{8}", digest) for digest in digests)


exported = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="models are exported on TensorFlow only",
)


@exported
def test_check_export_refuses_before_any_work(tmp_path, monkeypatch):
    pytest.importorskip("tensorflow_serving")
    runs.check_export(None)
    runs.check_export(str(tmp_path))
    (tmp_path / "1").mkdir()
    with pytest.raises(ValueError, match="is never overwritten"):
        runs.check_export(str(tmp_path))
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    runs.check_export(None)
    with pytest.raises(RuntimeError, match="KERAS_BACKEND=tensorflow"):
        runs.check_export(str(tmp_path / "other"))


@exported
def test_what_a_killed_export_left_is_removed(tmp_path):
    pytest.importorskip("tensorflow_serving")
    left = tmp_path / ".export-abc" / "1"
    left.mkdir(parents=True)
    (left / "saved_model.pb").write_bytes(b"half")
    (tmp_path / "2").mkdir()
    runs.check_export(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["2"]
