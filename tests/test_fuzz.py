"""The harness of `make fuzz` in short, and that it finds what is wrong."""

import ast
import contextlib
import socket
import threading

import keras
import numpy as np
import pytest

from fuzz import draws
from fuzz import exports
from fuzz import files
from fuzz import layer_cases
from fuzz import layer_checks
from fuzz import layers as fuzzed_layers
from fuzz import requests
from fuzz import rollover
from fuzz.attacks import HttpAttack
from fuzz.children import Child
from fuzz.readers import READERS
from fuzz.report import Report
from keras_relational import layers

# Nothing is timed: a hang is what does not end on a busy machine either.
PATIENCE = 120


RUNS = {
    "requests": lambda report: requests.run(report, 400, PATIENCE, at_once=1),
    "damaged files": lambda report: files.run(report, 60, PATIENCE),
    "a rollover": lambda report: rollover.run(report, 100, PATIENCE),
    "exports": lambda report: exports.run(report, 20),
    "layers": lambda report: fuzzed_layers.run(report, 100, jobs=1),
}


@pytest.mark.parametrize(
    "name",
    [
        name if name == "layers" else pytest.param(name, marks=pytest.mark.slow)
        for name in RUNS
    ],
)
def test_in_short(name):
    report = Report(seed=1)
    RUNS[name](report)
    assert [
        f"--replay {found.kind} {found.index}: {found.problem}"
        for found in report.findings
    ] == []
    outcomes = report.outcomes
    if name == "requests":
        assert set(outcomes) == {*requests.ATTACKS, "known"}
    elif name == "damaged files":
        assert set(outcomes) == set(READERS)
    elif name == "a rollover":
        assert outcomes["rollover"]["rest by version 2"]
        assert outcomes["rollover"]["grpc by version 2"]
    elif name == "exports":
        assert set(outcomes["exports"]) == {"answered", "refused"}
    else:
        assert report.number("layers.") == 100


@pytest.mark.slow
def test_a_wrong_export_is_found(monkeypatch):
    """And shrunk to a case that can be run again."""
    monkeypatch.setattr(exports, "is_refused", lambda *_: True)
    report = Report(seed=1)
    exports.run(report, 20)
    (found,) = report.findings
    assert "not refused" in found.problem
    assert "check(Case(names=('logits',), structure=" in found.problem


def test_an_attack_follows_from_seed_class_and_index():
    content = bytes(range(256)) * 9
    for index in range(20):
        first, again = (
            draws.damaged(draws.generator(3, "x.y", index), content)
            for _ in range(2)
        )
        assert first == again
    numbers = {
        int(draws.generator(*key).integers(2**60))
        for key in ((3, "x", 0), (4, "x", 0), (3, "y", 0), (3, "x", 1))
    }
    assert len(numbers) == 4


@contextlib.contextmanager
def answering(reply):
    """A server that gives one connection these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            connection, _ = listening.accept()
            with connection:
                connection.recv(2**16)
                connection.sendall(reply)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(2**16):
                    pass

        thread = threading.Thread(target=answer)
        thread.start()
        yield type("Server", (), {"rest": listening.getsockname()})
        thread.join()


def head(status, length):
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, length)


@pytest.mark.parametrize(
    ("reply", "expect", "problem"),
    [
        (head(400, 2) + b"{}", "refusal", None),
        (head(200, 2) + b"{}", "refusal", "not refused"),
        (head(500, 2) + b"{}", "any", "HTTP 500"),
        (head(400, 2**15) + bytes(2**15), "any", "an error of 32,768 bytes"),
        (head(400, 0) + head(200, 0), "refusal", "HTTP 200, not refused"),
        (b"", "any", "closed without an answer"),
        (b"", "closing", None),
        (b"SSH-2.0\r\n", "any", "no HTTP"),
    ],
)
def test_replies_are_judged(reply, expect, problem):
    with answering(reply) as server:
        _, found = HttpAttack((b"GET / HTTP/1.1\r\n\r\n",), expect).run(
            server, None, PATIENCE
        )
    assert (found is None) == (problem is None)
    assert (problem or "") in (found or "")


def _names(path):
    raise ValueError(f"{path} is damaged")


def _grows(path):
    np.ones(300 * 2**17).sum()
    _names(path)


def _names_nothing(path):
    raise ValueError("It is damaged")


def _other_error(path):
    raise KeyError(str(path))


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        (lambda path: np.arange(3), None),
        (_names, None),
        (_grows, "MiB above the baseline"),
        (_names_nothing, "does not name the file"),
        (_other_error, "KeyError"),
        (lambda path: np.arange(4), "read as something else"),
    ],
)
def test_readers_are_judged(read, problem, tmp_path):
    path = tmp_path / "file"
    outcome = files._read(read, path, np.arange(3))
    found = files._problem(READERS["files.png"], *outcome, path)
    assert (found is None) == (problem is None)
    assert (problem or "") in (found or "")


@pytest.mark.slow
def test_a_reader_that_ends_its_process_is_found(tmp_path):
    with Child(files.work, tmp_path) as worker:
        worker.ask(("files.json", None), PATIENCE)
        worker.process.kill()
        outcome, message, _ = files.read(
            worker, "files.json", tmp_path, PATIENCE
        )
        assert (outcome, message) == ("crash", "the process died: SIGKILL")
        # And there is a new one for the next file.
        worker.ask(("files.json", None), PATIENCE)


def test_an_attack_depends_on_no_other():
    """An odd value is not changed by the attack that it is part of."""
    target = requests.targets()[0]

    def bodies():
        return [
            requests.ATTACKS["rest.structure"](
                draws.generator(1, "rest.structure", index), target
            ).steps
            for index in range(600)
        ]

    assert bodies() == bodies()


def test_every_layer_has_cases():
    assert {
        name
        for name in layers.__all__
        if isinstance(getattr(layers, name), type)
        and issubclass(getattr(layers, name), keras.layers.Layer)
    } | set(layer_checks.PRIVATE) == set(layer_cases.LAYERS)


def case_of(name, check, **changes):
    return {
        "spec": {"layer": name, "arguments": {}},
        "shapes": {"inputs": [8, 4, 6]},
        "check": check,
        "policy": "float32",
        "offset": 0,
        "scale": 1,
        "integers": False,
        "masked": False,
        "any_size": False,
        "seeded": True,
        "seed": 0,
        **changes,
    }


@keras.saving.register_keras_serializable("test_fuzz")
class Broken(keras.layers.Dense):
    """A layer that is wrong in one way for each check."""

    def __init__(self, wrong, kernel_initializer="normal", **kwargs):
        super().__init__(6, kernel_initializer=kernel_initializer, **kwargs)
        self.wrong = wrong

    def build(self, input_shape):
        super().build(input_shape)
        if self.wrong == "seeds":
            self.again = self.add_weight(
                (6,), self.kernel_initializer, name="again"
            )

    def call(self, inputs):
        outputs = super().call(inputs)
        if self.wrong == "rows" and inputs.shape[0] > 1:
            outputs = 2 * outputs
        if self.wrong == "precision" and self.compute_dtype != "float32":
            outputs = outputs + outputs / 8
        if self.wrong in ("graph", "xla"):
            import tensorflow as tf

            outputs = outputs * (1 if tf.executing_eagerly() else 2)
        return outputs

    def get_config(self):
        config = {"wrong": self.wrong, "name": self.name}
        if self.wrong == "saving":
            config["name"] += "_again"
        return config


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ("rows", "row 0 of 8 beside the row alone: differ by"),
        ("precision", "float16 beside float32: differ by"),
        ("seeds", "again and kernel are drawn alike"),
        ("saving", "the layer of a config has another config"),
        ("graph", "the graph: differ by"),
        ("xla", "XLA: differ by"),
    ],
)
def test_a_wrong_layer_is_found(monkeypatch, check, problem):
    monkeypatch.setattr(layers, "Broken", Broken, raising=False)
    policy = "mixed_float16" if check == "precision" else "float32"
    for wrong in (check, None):
        case = case_of("Broken", check, policy=policy)
        case["spec"]["arguments"] = {"wrong": wrong}
        found = layer_checks.answer(case)
        if wrong:
            assert found["outcome"] == "wrong"
            assert found["problem"].startswith(problem)
        else:
            assert found == {"outcome": "right", "problem": None}


@pytest.mark.slow
def test_a_case_that_ends_its_process_is_found():
    case = case_of("CoRelNet", "backends")
    with fuzzed_layers.Children(PATIENCE) as backends:
        found = backends.answer_on("jax", case)
        assert found["outcome"] == "right"
        assert [x.shape for x in found["outputs"]] == [(8, 10)]
        backends.children["jax"].process.kill()
        found = backends.answer_on("jax", case)
        assert found["problem"] == "the process died: SIGKILL"
        assert backends.answer_on("jax", case)["outcome"] == "right"


def test_what_fails_is_shrunk(monkeypatch):
    """Of all cases that fail, the report has a small one, as a program."""

    class Answers:
        def __init__(self, patience):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def answer(self, case):
            wrong = case["shapes"]["inputs"][0] > 3
            return ("wrong", "a problem") if wrong else ("right", None)

    monkeypatch.setattr(fuzzed_layers, "Children", Answers)
    shares = {("CoRelNet", "rows"): 30, ("PrediNet", "seeds"): 1}
    counts, findings = fuzzed_layers.explore(0, shares)
    assert counts["rows", "wrong"] == 1
    ((case, problem),) = findings
    assert problem == "a problem"
    assert case["spec"]["layer"] == "CoRelNet"
    assert case["shapes"]["inputs"] == [8, 1, 1]
    program = fuzzed_layers.program(case)
    literal = program.split("case = ")[1].split("\nprint(")[0]
    assert ast.literal_eval(literal) == case


def test_cases_are_shared_among_layers_and_checks():
    pairs = sum(layer_cases.CHECKS.values()) * len(layer_cases.LAYERS)
    shares = fuzzed_layers.shares_of(2 * pairs, seed=0)
    assert shares["ESBN", "xla"] == 2
    assert shares["ESBN", "rows"] == 2 * layer_cases.CHECKS["rows"]
    assert shares.total() == 2 * pairs
