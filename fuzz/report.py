"""What was sent, what came of it, and what was found."""

import collections
import dataclasses
import re
import threading
import time

_MOST_GROUPS = 30


@dataclasses.dataclass(frozen=True)
class Finding:
    """A fault, and which attack shows it."""

    kind: str  # Class of the attack.
    index: int | None  # Its number in the class, if it is of an attack.
    target: str  # Model or reader.
    problem: str


class Report:
    """Takes outcomes from several threads."""

    def __init__(self, seed):
        self.seed = seed
        self.findings = []
        self.outcomes = collections.defaultdict(collections.Counter)
        self.rows = []
        self._row_began = time.monotonic()
        self._lock = threading.Lock()

    def add(self, kind, outcome):
        with self._lock:
            self.outcomes[kind][outcome] += 1

    def find(self, kind, index, target, problem):
        with self._lock:
            self.findings.append(Finding(kind, index, target, problem))

    def row(self, what, number, result):
        """A line of the table in docs/reliability.md.

        Its minutes are those since the last one, or the beginning.
        """
        began, self._row_began = self._row_began, time.monotonic()
        minutes = (self._row_began - began) / 60
        self.rows.append((what, f"{number:,}", result, f"{minutes:.1f}"))

    def number(self, prefix):
        """How many attacks of classes of that beginning."""
        return sum(
            counts.total()
            for kind, counts in self.outcomes.items()
            if kind.startswith(prefix)
        )

    def found(self, prefix):
        return sum(x.kind.startswith(prefix) for x in self.findings)

    def as_dict(self):
        """What JSON can hold."""
        return {
            "seed": self.seed,
            "outcomes": {k: dict(v) for k, v in sorted(self.outcomes.items())},
            "rows": self.rows,
            "findings": [dataclasses.asdict(x) for x in self.findings],
        }

    def print(self):
        width = max(map(len, self.outcomes), default=0)
        for kind, counts in sorted(self.outcomes.items()):
            each = ", ".join(
                f"{n} {what}" for what, n in sorted(counts.items())
            )
            print(f"{kind:{width}s} {counts.total():6d}: {each}")
        print("\n| What | Number | Result | Minutes |")
        print("|---|---|---|---|")
        for row in self.rows:
            print(f"| {' | '.join(row)} |")
        print(f"\nFindings: {len(self.findings)}")
        by_problem = collections.defaultdict(list)
        for found in self.findings:
            problem = re.sub(r"[0-9,]+", "n", found.problem)[:60]
            key = (found.kind, found.target, problem)
            by_problem[key].append(found)
        groups = list(by_problem.values())
        for group in groups[:_MOST_GROUPS]:
            first = group[0]
            print(f"- {len(group)} x {first.kind}, {first.target}: ", end="")
            print(first.problem)
            if first.index is None:
                continue
            print("  indices", *sorted(found.index for found in group)[:8])
            print(
                f"  again: python -m fuzz --seed {self.seed} --replay "
                f"{first.kind} {first.index}"
            )
        if len(groups) > _MOST_GROUPS:
            print(f"- and {len(groups) - _MOST_GROUPS} more kinds: --output")
