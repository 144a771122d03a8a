"""Damaged files for all readers, read in processes that may not end."""

import concurrent.futures
import fnmatch
import functools
import itertools
import math
import os
import pathlib
import resource
import shutil
import tempfile

import numpy as np

from fuzz import children
from fuzz import draws
from fuzz.memory import memory_of
from fuzz.readers import READERS

MAX_PEAK = 256 * 2**20
# Beyond it the process gets no more, so that the machine is left alone.
_MOST_MEMORY = 2 * 2**30
_SECONDS_TO_PREPARE = 300
_NUM_WORKERS = 2

ATTACKS = READERS


def run(report, num_files, patience):
    """Damages so many files of all readers, and reads each."""
    shares = sum(reader.share for reader in READERS.values())
    cases = [
        (kind, index)
        for kind, reader in READERS.items()
        for index in range(math.ceil(num_files * reader.share / shares))
    ]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "damaged").mkdir()
        # Each reader's files in one process, the slowest first.
        kinds = sorted(READERS, key=lambda kind: READERS[kind].share)
        queue = iter([[c for c in cases if c[0] == kind] for kind in kinds])
        with concurrent.futures.ThreadPoolExecutor(_NUM_WORKERS) as pool:
            runs = [
                pool.submit(_work, report, folder, queue, patience)
                for _ in range(_NUM_WORKERS)
            ]
            peak = max(run.result() for run in runs)
    report.row(
        f"Damaged files, {len(READERS)} readers",
        len(cases),
        f"{report.found('files.')} findings; at most {peak / 2**20:.0f} MiB "
        "above the baseline",
    )


def replay(seed, kind, index, patience):
    """Damages one file and reads it; returns `(outcome, problem)`."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "damaged").mkdir()
        with children.Child(work, folder) as worker:
            outcome, problem, _ = _attack(
                worker, folder, seed, kind, index, patience
            )
    return outcome, problem


def _work(report, folder, queue, patience):
    """Takes reader after reader; returns the highest peak."""
    highest = 0
    with children.Child(work, folder) as worker:
        for kind, index in itertools.chain.from_iterable(queue):
            outcome, problem, peak = _attack(
                worker, folder, report.seed, kind, index, patience
            )
            report.add(kind, outcome)
            highest = max(highest, peak)
            if problem:
                report.find(kind, index, kind.partition(".")[2], problem)
    return highest


def _attack(worker, folder, seed, kind, index, patience):
    """Damages and reads one; returns `(outcome, problem, peak)`."""
    # Makes good files of a kind, if there are none, and reads them.
    worker.ask((kind, None), _SECONDS_TO_PREPARE)
    rng = draws.generator(seed, kind, index)
    reader = READERS[kind]
    copy = folder / "damaged" / f"{kind}-{index}"
    shutil.copytree(folder / kind, copy)
    try:
        paths = [
            path
            for path in sorted(copy.rglob("*"))
            if path.is_file()
            and fnmatch.fnmatch(str(path.relative_to(copy)), reader.files)
        ]
        path = draws.choice(rng, paths)
        _damage(rng, path, reader.bombs)
        outcome, message, peak = read(worker, kind, copy, patience)
        problem = _problem(reader, outcome, message, peak, path)
        if pathlib.Path(f"{path}.harm").exists():
            problem = "a pickle was loaded"
        return outcome, problem, peak
    finally:
        shutil.rmtree(copy)


def _damage(rng, path, bombs):
    content = path.read_bytes()
    if bombs and rng.random() < 0.2:
        draws.choice(rng, bombs)(rng, path)
    elif rng.random() < 0.1:
        # Something else in its place. That it is missing is no damage: of a
        # folder what is there is read, and a run without a checkpoint begins.
        path.unlink()
        how = rng.integers(3)
        if how == 0:
            path.mkdir()
        elif how == 1:
            path.write_bytes(b"")
        else:
            path.write_bytes(draws.random_bytes(rng, 4096))
    else:
        path.write_bytes(draws.damaged(rng, content))


def _problem(reader, outcome, message, peak, path):
    """What is wrong with an outcome, or `None`."""
    if outcome not in ("as before", "other", "refused"):
        return f"{outcome}: {message}"
    if outcome == "other" and reader.intact:
        return "read as something else"
    if outcome == "refused" and reader.called(path) not in message:
        return f"the error does not name the file: {message[:300]}"
    if peak > MAX_PEAK:
        return f"{peak / 2**20:.0f} MiB above the baseline: {message[:200]}"
    return None


def read(worker, kind, copy, patience):
    """Returns `(outcome, message, peak)`."""
    try:
        return worker.ask((kind, copy), patience + READERS[kind].seconds)
    except TimeoutError as error:
        return "hang", str(error), 0
    except children.DiedError as error:
        return "crash", str(error), 0


def work(pipe, folder):
    """Reads what it is told to, in a process of its own."""
    expected = {}

    def answer(question):
        kind, copy = question
        if copy is not None:
            _limit_memory()
            return _read(READERS[kind].read, copy, expected[kind])
        if kind not in expected:
            expected[kind] = _read_good(folder, kind)

    children.answer_all(pipe, answer)


@functools.cache
def _limit_memory():
    most = memory_of(os.getpid(), "VmData") + _MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _read_good(folder, kind):
    """Twice, as the first time takes more memory than any other."""
    original = folder / kind
    if not original.exists():
        original.mkdir(parents=True)
        READERS[kind].make(original)
    copy = folder / "damaged" / f"{kind}-good-{os.getpid()}"
    for _ in range(2):
        shutil.copytree(original, copy)
        value = READERS[kind].read(copy)
        shutil.rmtree(copy)
    return value


def _read(read, copy, expected):
    """Returns `(outcome, message, peak)`."""
    before = memory_of(os.getpid(), "VmRSS")
    # From here on VmHWM is the highest since.
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    try:
        same = _same(read(copy), expected)
        outcome = ("as before" if same else "other"), ""
    except (ValueError, OSError) as error:
        outcome = "refused", str(error)
    except BaseException as error:
        outcome = type(error).__name__, repr(error)[:500]
    peak = memory_of(os.getpid(), "VmHWM") - before
    return *outcome, max(0, peak)


def _same(a, b):
    """Whether all arrays, numbers and texts in two structures are equal."""
    if isinstance(a, dict):
        return (
            isinstance(b, dict)
            and list(a) == list(b)
            and all(_same(a[key], b[key]) for key in a)
        )
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if np.shape(a) != np.shape(b):
        return False
    if isinstance(a, np.ndarray) and a.dtype.kind == "f":
        return np.array_equal(a, b, equal_nan=True)
    return bool(np.all(a == b))
