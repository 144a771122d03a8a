"""A new version that appears while requests are made."""

import collections
import concurrent.futures
import itertools
import os
import tempfile
import threading
import time

import grpc

from fuzz import servers
from fuzz.targets import equal
from fuzz.targets import saved_answers
from fuzz.targets import served
from fuzz.targets import targets

_NUM_THREADS = 4
# After all requests, those that the new version must answer alone.
_LAST = 0.1
_SECONDS_TO_LOAD = 60


def run(report, num_requests, patience):
    """Makes so many requests while version 2 takes over from version 1.

    Version 2 appears, renamed into its place, after a quarter of them. Requests
    go on until one is answered by version 2; the last tenth then must be.
    """
    target = targets()[0]
    with tempfile.TemporaryDirectory() as folder:
        models = os.path.join(folder, target.name)
        aside = os.path.join(folder, "aside")
        servers.export(target, models, version=1, seed=1)
        servers.export(target, aside, version=2, seed=2)
        answers = {
            version: saved_answers(os.path.join(path, str(version)), target)
            for version, path in ((1, models), (2, aside))
        }
        load = _Load(report, answers, num_requests)
        with (
            served(folder, target, patience) as (server, known),
            concurrent.futures.ThreadPoolExecutor(_NUM_THREADS) as pool,
        ):
            runs = [
                pool.submit(load.ask, by)
                for _ in range(_NUM_THREADS // 2)
                for by in (known.by_rest, known.by_grpc)
            ]
            load.a_quarter.wait(_SECONDS_TO_LOAD)
            os.rename(os.path.join(aside, "2"), os.path.join(models, "2"))
            for run in runs:
                run.result()
            if text := server.new_traceback():
                report.find("rollover", None, target.name, text)
    seen = load.seen
    report.row(
        "Requests during a roll-over",
        sum(seen.values()),
        f"{seen[1]} by version 1, {seen[2]} by version 2, {seen[0]} lost",
    )


class _Load:
    """Requests from several threads, and who answered them."""

    def __init__(self, report, answers, num_requests):
        self._report, self._answers = report, answers
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._total = num_requests
        self._new = threading.Event()
        self.a_quarter = threading.Event()
        # Answers by version; 0 for none, or a wrong one.
        self.seen = collections.Counter()

    def ask(self, by):
        """Asks over one interface until there were enough requests."""
        ends = None
        while True:
            number = next(self._numbers)
            if number >= self._total // 4:
                self.a_quarter.set()
                ends = ends or time.monotonic() + _SECONDS_TO_LOAD
            if number >= self._total and (
                self._new.is_set() or time.monotonic() > ends
            ):
                break
            self._once(by, number)
        for _ in range(max(1, int(self._total * _LAST) // _NUM_THREADS)):
            number = next(self._numbers)
            if self._once(by, number) == 1:
                self._report.find(
                    "rollover", None, "relations", "version 1 still answers"
                )
                break

    def _once(self, by, number):
        """The version that answers, or 0."""
        try:
            answer = by()
            right = [v for v, x in self._answers.items() if equal(answer, x)]
            version = right[0] if right else 0
            problem = None if version else "the answer of neither version"
        except (OSError, ValueError, grpc.RpcError) as error:
            version, problem = 0, f"lost: {error!r}"[:300]
        if version == 2:
            self._new.set()
        with self._lock:
            self.seen[version] += 1
        over = by.__name__.removeprefix("by_")
        self._report.add("rollover", f"{over} by version {version}")
        if problem:
            problem = f"request {number} over {over}: {problem}"
            self._report.find("rollover", None, "relations", problem)
        return version
