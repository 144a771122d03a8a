"""What a program that XLA compiled for a GPU launches, moves and waits for."""

import collections
import re
from typing import NamedTuple

# Instructions that launch a kernel or a copy. The others are free, or start a
# program of their own.
LAUNCHED = {
    *("fusion", "custom-call", "reduce", "transpose", "copy", "convert", "dot"),
    *("convolution", "sort", "scatter", "gather", "broadcast", "iota", "slice"),
    *("concatenate", "dynamic-slice", "dynamic-update-slice", "pad", "select"),
    *("rng-bit-generator", "add", "multiply", "reduce-window"),
}
CALLED = re.compile(r"(?:to_apply|calls|branch_computations)=\{?%?([\w.\-]+)")
BITS = {"pred": 8, "bf16": 16, "c64": 64}


class Instruction(NamedTuple):
    """A line of a computation."""

    name: str
    kind: str
    result: str  # Its type.
    operands: tuple[str, ...]
    line: str


class Program:
    """A compiled program, read from its text.

    Loops are counted as often as they run. `launches` counts what is launched,
    by kind. `bytes_moved` are the bytes that launched operations read and
    write, if each does so once. `errors` says what a GPU would wait for.
    """

    def __init__(self, text):
        self.computations = {}
        self.entry = None
        self.errors = set()
        self.launches = collections.Counter()
        self.bytes_moved = 0
        for line in text.splitlines():
            head = re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{\s*$", line)
            found = re.match(
                r"\s+(?:ROOT )?%?([\w.\-]+) = (.*?)\s?([a-z][\w\-]*)\((.*)",
                line,
            )
            if head:
                body = self.computations[head[2]] = []
                self.entry = head[2] if head[1] else self.entry
            elif found:
                name, result, kind, rest = found.groups()
                operands = re.findall(r"%([\w.\-]+)", rest.split("), ")[0])
                body.append(
                    Instruction(name, kind, result, tuple(operands), line)
                )
                if "f64[" in result:
                    self.errors.add("computes in float64")
        self._count(self.entry, 1)

    def _count(self, name, times):
        """Counts a computation that runs so many times."""
        sizes = {x.name: size_of(x.result) for x in self.computations[name]}
        for each in self.computations[name]:
            # What runs beside other kernels is started and awaited.
            kind = each.kind.removesuffix("-start")
            if kind == "custom-call":
                target = re.search(r'custom_call_target="([^"]+)"', each.line)
                kind = target[1].strip("_")
                self._check_target(target[1])
            if each.kind == "while":
                trips = re.search(
                    r'"known_trip_count":\{"n":"(\d+)"\}', each.line
                )
                if not trips:
                    self.errors.add("has a loop of unknown length")
                body = re.search(r"body=%?([\w.\-]+)", each.line)[1]
                self._count(body, times * (int(trips[1]) if trips else 1))
            elif each.kind in ("call", "async-start", "conditional"):
                for body in CALLED.findall(each.line):
                    self._count(body, times)
            elif kind in LAUNCHED or each.kind == "custom-call":
                self.launches[kind] += times
                if kind == "fusion":
                    (body,) = CALLED.findall(each.line)
                    moved = self._moved_by_fusion(body)
                else:
                    moved = sizes[each.name]
                    moved += sum(sizes[x] for x in each.operands)
                self.bytes_moved += times * moved

    def _check_target(self, target):
        if "callback" in target:
            self.errors.add(f"calls the host ({target})")
        elif not re.match(r"__|cu_|cub|cudnn|triton|topk|AllocateBuf", target):
            self.errors.add(f"calls what only a CPU has ({target})")

    def _moved_by_fusion(self, name):
        """Of a large array of which a slice is read or set, only that slice."""
        by_name = {x.name: x for x in self.computations[name]}
        users = collections.defaultdict(list)
        for each in by_name.values():
            for operand in each.operands:
                users[operand].append(each)

        def read(name):
            moved = 0
            for user in users[name]:
                first = user.operands[0] == name
                if user.kind == "bitcast":
                    moved += read(user.name)
                elif user.kind == "dynamic-slice" and first:
                    moved += size_of(user.result)
                elif user.kind != "dynamic-update-slice" or not first:
                    return size_of(by_name[name].result)
            return moved

        def written(each):
            if each.kind in ("bitcast", "tuple"):
                return sum(written(by_name[x]) for x in each.operands)
            if each.kind == "dynamic-update-slice":
                return size_of(by_name[each.operands[1]].result)
            return size_of(each.result)

        *_, root = by_name.values()
        parameters = [x.name for x in by_name.values() if x.kind == "parameter"]
        return written(root) + sum(
            min(read(x), size_of(by_name[x].result)) for x in parameters
        )


def size_of(result):
    """Bytes of a type, which may be a tuple. Scratch space, of s8, is left out.

    >>> size_of("(f32[64,128]{0,1}, s8[4194304]{0})")
    32768
    """
    found = 0
    for kind, sizes in re.findall(r"\b([a-z]+\d*)\[([\d,]*)\]", result):
        if kind != "s8":
            bits = BITS.get(kind) or int(re.sub("[a-z]", "", kind) or 0)
            for size in filter(None, sizes.split(",")):
                bits *= int(size)
            found += bits // 8
    return found
