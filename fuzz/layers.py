"""Layers with drawn arguments and inputs, on TensorFlow and JAX.

Hypothesis draws the cases of `layer_cases`, and shrinks what fails. Each case
runs in a child, which may die of it, by `layer_checks`.
"""

import collections
import concurrent.futures
import gc
import multiprocessing
import os
import pprint

import numpy as np

from fuzz import children
from fuzz import draws
from fuzz import layer_cases

# A child is replaced after so many cases, since compiled programs stay.
CASES_OF_A_CHILD = 400

QUICK = (
    "--xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true"
)


def work(pipe, backend):
    """Runs cases on one backend, in a process of its own."""
    os.environ |= {
        "KERAS_BACKEND": backend,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "1",
        "XLA_FLAGS": QUICK,
    }
    from fuzz import layer_checks

    gc.freeze()  # Spares garbage collection what was imported.
    children.answer_all(pipe, layer_checks.answer)


class Children:
    """One child for each backend."""

    def __init__(self, patience):
        self.patience = patience
        self.children = {
            name: children.Child(work, name) for name in ("tensorflow", "jax")
        }
        self.counts = collections.Counter()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for child in self.children.values():
            child.stop()

    def answer(self, case):
        """The outcome and the problem of a case."""
        found = self.answer_on("tensorflow", case)
        if case["check"] != "backends" or found["outcome"] != "right":
            return found["outcome"], found["problem"]
        other = self.answer_on("jax", case)
        if other["outcome"] != "right":
            problem = other["problem"] or "it refuses what TensorFlow takes"
            return other["outcome"], f"on JAX: {problem}"
        return _compared(found, other)

    def answer_on(self, backend, case):
        """What comes of a case, as `layer_checks.answer` returns it."""
        child = self.children[backend]
        if self.counts[backend] % CASES_OF_A_CHILD == 0:
            child.stop()
        self.counts[backend] += 1
        try:
            return child.ask(case, self.patience)
        except (TimeoutError, children.DiedError) as error:
            return {"outcome": "died", "problem": str(error)}


def _compared(found, other):
    from fuzz.layer_checks import WrongError
    from fuzz.layer_checks import compare

    outputs = found["outputs"], other["outputs"]
    try:
        compare("TensorFlow and JAX", *outputs, found["bounds"])
    except WrongError as error:
        return "wrong", str(error)
    return "right", None


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
    with Children(patience) as backends:
        for (name, check), number in shares.items():
            found = _first_failure(seed, name, check, number, backends, counts)
            if found:
                findings.append(found)
                case, problem = found
                print(
                    f"{name}, {check}: {problem}\n{program(case)}\n", flush=True
                )
    return counts, findings


def _first_failure(seed, name, check, number, backends, counts):
    """The first case that fails, shrunk, and its problem, or `None`."""
    failed = False

    def problem_of(case):
        nonlocal failed
        outcome, problem = backends.answer(case)
        if not failed:
            counts[check, outcome] += 1
        failed = failed or bool(problem)
        return problem

    strategy = layer_cases.cases(name, check)
    return draws.smallest_failure(seed, strategy, problem_of, number)


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


def run(report, number, jobs=None):
    """Adds cases and findings to a report. `jobs` is the number of cores."""
    jobs = jobs or os.cpu_count()
    shares = [*shares_of(number, report.seed).items()]
    # A fork would copy threads of TensorFlow, if there are any.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, context) as pool:
        parts = [dict(shares[i::jobs]) for i in range(jobs)]
        results = list(pool.map(explore, [report.seed] * jobs, parts))
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
    report.row(
        "layers with drawn arguments and inputs",
        report.number("layers."),
        f"{report.found('layers.')} findings",
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
