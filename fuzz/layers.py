"""Layers with drawn arguments and inputs, on TensorFlow and JAX.

Hypothesis draws the cases of `layer_cases`, and shrinks what fails. Each case
runs in a child, which may die of it, by `layer_checks`.
"""

import collections
import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import pprint
import signal
import subprocess
import sys
import threading
import time

import hypothesis
import numpy as np

from fuzz import layer_cases

# A child is replaced after so many cases, since compiled programs stay.
CASES_OF_A_CHILD = 400

QUICK = (
    "--xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true"
)


class Child:
    """A process that runs cases on one backend, started anew if it dies."""

    def __init__(self, backend, patience):
        self.backend = backend
        self.patience = patience
        self.process = None
        self.count = 0

    def answer(self, case):
        """What comes of a case, as `layer_checks.answer` returns it."""
        if self.count == CASES_OF_A_CHILD:
            self.stop()
        if self.process is None:
            self._start()
        self.count += 1
        overdue = threading.Timer(self.patience, self.process.kill)
        overdue.start()
        try:
            self.process.stdin.write(json.dumps(case) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            hangs = not overdue.is_alive()
            overdue.cancel()
        if line:
            return json.loads(line)
        number = -self.stop()
        problem = f"no answer within {self.patience:g} s"
        if not hangs:
            name = signal.Signals(number).name if number > 0 else f"{-number}"
            problem = f"the process died: {name}"
        return {"outcome": "died", "problem": problem}

    def stop(self):
        """Ends the process, if there is one, and returns its exit status."""
        if self.process is None:
            return 0
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        status = self.process.wait()
        self.process = None
        return status

    def _start(self):
        self.count = 0
        environment = {
            **os.environ,
            "KERAS_BACKEND": self.backend,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_ENABLE_ONEDNN_OPTS": "1",
            "XLA_FLAGS": QUICK,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.layer_checks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )


class Children:
    """One child for each backend."""

    def __init__(self, patience):
        self.children = {
            name: Child(name, patience) for name in ("tensorflow", "jax")
        }

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for child in self.children.values():
            child.stop()

    def answer(self, case):
        """The outcome and the problem of a case."""
        found = self.children["tensorflow"].answer(case)
        if case["check"] != "backends" or found["outcome"] != "right":
            return found["outcome"], found["problem"]
        other = self.children["jax"].answer(case)
        if other["outcome"] != "right":
            problem = other["problem"] or "it refuses what TensorFlow takes"
            return other["outcome"], f"on JAX: {problem}"
        return _compared(found, other)


def _compared(found, other):
    from fuzz.layer_checks import WrongError
    from fuzz.layer_checks import compare
    from fuzz.layer_checks import decoded

    arrays = decoded(found["outputs"]), decoded(other["outputs"])
    try:
        compare("TensorFlow and JAX", *arrays, found["bounds"])
    except WrongError as error:
        return "wrong", str(error)
    return "right", None


class _FoundError(Exception):
    """Tells Hypothesis that a case fails."""


def explore(seed, shares, patience=300.0):
    """Tries cases.

    Args:
        seed: Integer.
        shares: Number of cases by layer and check.
        patience: Seconds until an answer.

    Returns:
        The number of cases by check and outcome, and the findings: a list of a
        case, shrunk, and its problem. A layer and a check have one at most.
    """
    counts, findings = collections.Counter(), []
    with Children(patience) as children:
        for (name, check), number in shares.items():
            found = _first_failure(seed, name, check, number, children, counts)
            if found:
                findings.append(found)
                case, problem = found
                print(
                    f"{name}, {check}: {problem}\n{program(case)}\n", flush=True
                )
    return counts, findings


def _first_failure(seed, name, check, number, children, counts):
    """The first case that fails, shrunk, and its problem, or `None`."""
    failed = []

    def holds(case):
        outcome, problem = children.answer(case)
        if not failed:
            counts[check, outcome] += 1
        if problem:
            failed[:] = case, problem  # The last that fails is the smallest.
            raise _FoundError

    settings = hypothesis.settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=[*hypothesis.HealthCheck],
        report_multiple_bugs=False,
    )
    test = hypothesis.given(layer_cases.cases(name, check))(holds)
    try:
        hypothesis.seed(seed)(settings(test))()
    except (_FoundError, hypothesis.errors.Flaky):
        return tuple(failed)


def shares_of(number, seed):
    """How many cases each layer and check have, in an order that is drawn."""
    pairs = [
        (name, check)
        for check, share in layer_cases.CHECKS.items()
        for name in layer_cases.LAYERS
        for _ in range(share)
    ]
    np.random.default_rng(seed).shuffle(pairs)
    return collections.Counter(
        tuple(map(str, pairs[i % len(pairs)])) for i in range(number)
    )


def run(report, number, seed=0, jobs=None):
    """Adds cases and findings to a report. `jobs` is the number of cores."""
    start = time.perf_counter()
    jobs = jobs or os.cpu_count()
    shares = [*shares_of(number, seed).items()]
    # A fork would copy threads of TensorFlow, if there are any.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, context) as pool:
        parts = [dict(shares[i::jobs]) for i in range(jobs)]
        results = list(pool.map(explore, [seed] * jobs, parts))
    for counts, findings in results:
        for (check, outcome), count in counts.items():
            for _ in range(count):
                report.add(f"layers.{check}", outcome)
        for case, problem in findings:
            report.find(
                f"layers.{case['check']}",
                None,
                case["spec"]["layer"],
                f"{problem}\n{program(case)}",
            )
    minutes = (time.perf_counter() - start) / 60
    report.row(
        "layers with drawn arguments and inputs",
        report.number("layers."),
        f"{report.found('layers.')} findings",
        minutes,
    )


def program(case):
    """A case as a program, to paste into Python at the project's root."""
    backend = "jax" if case["check"] == "backends" else "tensorflow"
    return (
        "import os\n"
        f"os.environ['KERAS_BACKEND'] = {backend!r}\n"
        "from fuzz import layer_checks\n"
        f"case = {pprint.pformat(case, width=76, compact=True)}\n"
        "print(layer_checks.answer(case))"
    )
