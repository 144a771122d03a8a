"""All attacks by requests, on a server for each model at once."""

import concurrent.futures
import itertools
import os
import tempfile

from fuzz import draws
from fuzz import over_grpc
from fuzz import over_rest
from fuzz import over_sockets
from fuzz import servers
from fuzz.targets import served
from fuzz.targets import targets

ATTACKS = {**over_rest.ATTACKS, **over_grpc.ATTACKS, **over_sockets.ATTACKS}

# The first requests take memory for good.
_WARM = 1000
_MOST_GROWTH = 64 * 2**20
_HANGS = ("hang", "DEADLINE_EXCEEDED")
# What comes after so many hangs, or good requests without the right answer,
# says nothing new, and may take hours.
_MOST_FAULTS = 20


def run(report, num_requests, patience, at_once=10):
    """Attacks all models until so many requests were made, good ones included.

    Attack `index` of a class goes to model `index % 3`. After `at_once` attacks
    of a class the good requests are made.
    """
    models = targets()
    each = -(-num_requests // len(models))
    with tempfile.TemporaryDirectory() as folder:
        for target in models:
            servers.export(target, os.path.join(folder, target.name))
        with concurrent.futures.ThreadPoolExecutor(len(models)) as pool:
            runs = [
                pool.submit(
                    _attack, report, folder, number, each, patience, at_once
                )
                for number in range(len(models))
            ]
            growths = [run.result() for run in runs]
    problems = report.found("rest.") + report.found("grpc.")
    problems += report.found("http.") + report.found("server")
    number = sum(map(report.number, ("rest.", "grpc.", "http.", "known")))
    memory = ", ".join(
        f"{target.name} {growth / 2**20:+.0f} MiB"
        for target, growth in zip(models, growths, strict=True)
    )
    report.row(
        f"Requests, {len(ATTACKS)} classes, {len(models)} models",
        number,
        f"{problems} findings; memory {memory}",
    )


def replay(seed, kind, index, patience):
    """Makes one attack on a fresh server; returns `(outcome, problem)`."""
    models = targets()
    target = models[index % len(models)]
    with tempfile.TemporaryDirectory() as folder:
        servers.export(target, os.path.join(folder, target.name))
        with served(folder, target, patience) as (server, known):
            attack = ATTACKS[kind](draws.generator(seed, kind, index), target)
            outcome, problem = attack.run(server, known, patience)
            return outcome, problem or _after(server, known)


def _attack(report, folder, number, num_requests, patience, at_once):
    """Attacks one model; returns by how many bytes its server grew."""
    models = targets()
    target = models[number]
    made, faults, warm = 0, 0, None
    with served(folder, target, patience) as (server, known):
        for start, kind in _turns(at_once):
            for i in range(start, start + at_once):
                index = i * len(models) + number
                rng = draws.generator(report.seed, kind, index)
                attack = ATTACKS[kind](rng, target)
                outcome, problem = attack.run(server, known, patience)
                report.add(kind, outcome)
                faults += outcome in _HANGS
                if problem:
                    report.find(kind, index, target.name, problem)
            for interface in ("REST", "gRPC"):
                report.add("known", f"asked over {interface}")
            made += at_once + 2
            if problem := _after(server, known):
                problem = f"after indices up to {index}: {problem}"
                report.find(kind, index, target.name, problem)
                faults += 1
            if server.died() is not None or faults >= _MOST_FAULTS:
                report.find("server", None, target.name, "given up")
                return 0
            if warm is None and made >= min(_WARM, num_requests // 2):
                warm = server.memory()
            if made >= num_requests:
                break
        growth = server.memory() - warm
        if growth > max(_MOST_GROWTH, warm // 10):
            problem = f"grew from {warm:,} to {warm + growth:,} bytes"
            report.find("server", None, target.name, problem)
        return growth


def _turns(at_once):
    """All classes in turn, again and again, each from where it stopped."""
    for start in itertools.count(step=at_once):
        for kind in ATTACKS:
            yield start, kind


def _after(server, known):
    """What is wrong with a server after an attack, or `None`."""
    if server.died() is not None:
        return f"the server ended with {server.died()}"
    if text := server.new_traceback():
        return f"traceback: {text}"
    return known.problem()
