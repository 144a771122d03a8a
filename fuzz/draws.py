"""What every attack and every case is drawn from, and damage to bytes."""

import zlib

import hypothesis
import numpy as np


class _FoundError(Exception):
    """Tells Hypothesis that a case fails."""


def smallest_failure(seed, strategy, problem_of, number):
    """Draws so many cases, and shrinks the first that has a problem.

    Returns that case and its problem, or `None`.
    """
    failed = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=[*hypothesis.HealthCheck],
        report_multiple_bugs=False,
    )
    @hypothesis.given(strategy)
    def holds(case):
        if problem := problem_of(case):
            failed[:] = case, problem  # The last that fails is the smallest.
            raise _FoundError

    try:
        holds()
    except (_FoundError, hypothesis.errors.Flaky):
        return tuple(failed)


def generator(seed, kind, index):
    """The random numbers of one attack."""
    return np.random.default_rng([seed, zlib.crc32(kind.encode()), index])


def choice(rng, options):
    """One of a list, as it is: NumPy's own makes an array of the list."""
    return options[int(rng.integers(len(options)))]


def damaged(rng, content):
    """Bytes after one damage of any kind; see `DAMAGES`."""
    return choice(rng, DAMAGES)(rng, content)


def random_bytes(rng, most):
    return rng.bytes(int(rng.integers(most + 1)))


def _truncated(rng, content):
    return content[: _place(rng, content)]


def _flipped(rng, content):
    content = bytearray(content)
    for _ in range(int(2 ** rng.integers(5))):
        if content:
            content[_place(rng, content)] ^= 1 << int(rng.integers(8))
    return bytes(content)


def _zeroed(rng, content):
    start, stop = _range(rng, content)
    return content[:start] + bytes(stop - start) + content[stop:]


def _overwritten(rng, content):
    start, stop = _range(rng, content)
    return content[:start] + rng.bytes(stop - start) + content[stop:]


def _swapped(rng, content):
    a, b, c = sorted(_place(rng, content) for _ in range(3))
    return content[:a] + content[b:c] + content[a:b] + content[c:]


def _left_out(rng, content):
    start, stop = _range(rng, content)
    return content[:start] + content[stop:]


def _repeated(rng, content):
    start, stop = _range(rng, content)
    return content[:stop] + content[start:]


def _inflated(rng, content):
    """A number somewhere becomes huge, as where a header tells a size."""
    size = choice(rng, (2, 4, 8))
    number = choice(rng, (0x7F, 0x80, 0xFF)) << 8 * (size - 1)
    number |= choice(rng, (0, (1 << 8 * (size - 1)) - 1))
    order = choice(rng, ("little", "big"))
    start = _place(rng, content)
    claim = number.to_bytes(size, order)
    return content[:start] + claim + content[start + size :]


DAMAGES = (
    _truncated,
    _flipped,
    _zeroed,
    _overwritten,
    _swapped,
    _left_out,
    _repeated,
    _inflated,
)


def _place(rng, content):
    """Anywhere, and as often near either end, where formats have headers."""
    size = len(content)
    near = min(size, 512)
    start, stop = choice(rng, ((0, size), (0, near), (size - near, size)))
    return int(rng.integers(start, max(stop, start + 1)))


def _range(rng, content):
    start = _place(rng, content)
    length = int(2 ** rng.integers(13))
    return start, min(start + length, len(content))
