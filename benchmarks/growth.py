"""How a training step of each layer grows with its sizes, in time and memory.

    KERAS_BACKEND=jax python -m benchmarks.growth --figure growth.png

Each line is one layer, one of whose sizes doubles. The time is that of the
outputs and of the gradients of all weights, compiled. The memory is what the
compiled program needs besides weights and inputs. Beside them stands the time
that the multiplications in the program need at the machine's rate of matrix
products, three times those of the outputs.
"""

import argparse
import math
import pathlib
from collections.abc import Callable
from collections.abc import Sequence
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from benchmarks.measuring import matrix_product_rate
from benchmarks.measuring import median_seconds
from keras_relational import layers
from keras_relational.analysis.plotting import draw_line
from keras_relational.analysis.plotting import label_ends
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.plotting import save_figure

BATCH, FEATURES = 32, 64
MIB = 2**20


class Case(NamedTuple):
    """A layer of some size."""

    layer: keras.layers.Layer
    shape: tuple[int, ...]  # Of an example.
    batch: int = BATCH
    base: int = 0  # Number of the first entities that pairs are made of.


class Line(NamedTuple):
    """A layer, one of whose sizes grows."""

    name: str
    sizes: Sequence[int]
    case: Callable[[int], Case]


def doubled(low, high):
    """Sizes from `low` to `high`, each twice the one before."""
    return [low << x for x in range(int(math.log2(high // low)) + 1)]


def _predinet(n, num_heads=32, batch=BATCH):
    layer = layers.PrediNet(num_heads, 16, 16)
    return Case(layer, (n, FEATURES), batch=batch)


def _simplicial(n, num_heads=2, base=0):
    layer = layers.TwoSimplicialAttention(num_heads, 32)
    return Case(layer, (n, FEATURES), base=base)


def _scoff(num_object_files=6, num_schemata=4, time=16):
    layer = layers.SCOFF(64, num_object_files, num_schemata)
    return Case(layer, (time, FEATURES))


def _of_length(layer):
    return lambda length: Case(layer(), (length, FEATURES))


PANELS = {
    "entities": [
        Line("PrediNet", doubled(8, 512), _predinet),
        Line(
            "MultiHeadAttentionPooling",
            doubled(8, 512),
            _of_length(lambda: layers.MultiHeadAttentionPooling(4, 16, 16)),
        ),
        Line(
            "RelationNetwork",
            doubled(8, 128),
            _of_length(lambda: layers.RelationNetwork(64, 64)),
        ),
        Line(
            "RelationalTransformerBlock",
            doubled(8, 512),
            _of_length(lambda: layers.RelationalTransformerBlock(2, 32, 64, 1)),
        ),
        Line(
            "TwoSimplicialAttention, base of 8",
            doubled(8, 512),
            lambda n: _simplicial(n, base=8),
        ),
        Line("TwoSimplicialAttention", doubled(8, 64), _simplicial),
    ],
    "heads": [
        Line(
            "PrediNet, 32 entities", doubled(2, 64), lambda k: _predinet(32, k)
        ),
        Line(
            "TwoSimplicialAttention, 16 entities",
            doubled(1, 16),
            lambda k: _simplicial(16, k),
        ),
    ],
    "object files, or schemata": [
        Line("SCOFF, object files", doubled(2, 32), _scoff),
        Line("SCOFF, schemata", doubled(1, 16), lambda s: _scoff(6, s)),
    ],
    "steps of a sequence": [
        Line(
            "TemporalContextNormalization",
            doubled(8, 512),
            _of_length(layers.TemporalContextNormalization),
        ),
        Line("ESBN", doubled(8, 256), _of_length(lambda: layers.ESBN(64, 64))),
        Line("SCOFF", doubled(8, 128), lambda t: _scoff(time=t)),
    ],
    "examples of a batch": [
        Line(
            "PrediNet, 32 entities",
            doubled(1, 1024),
            lambda b: _predinet(32, batch=b),
        ),
    ],
}


class Point(NamedTuple):
    """What was found for a step of one size."""

    seconds: float
    mib: float
    floor: float  # Seconds of its multiplications alone.


def main():
    """Times every line, prints it, and draws all if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--figure", type=pathlib.Path, help="file to draw")
    args = parser.parse_args()
    if keras.backend.backend() != "jax":
        parser.error("JAX tells the memory of its programs: KERAS_BACKEND=jax")
    rate = matrix_product_rate() / 1e9
    print(f"JAX; matrix products at {rate:.0f} GFLOP/s")
    found = {}
    for size, lines in PANELS.items():
        print(f"\n{size}\n{'':36s}{'ms for each size, doubled':^50s}")
        for line in lines:
            points = [measured(line.case(x)) for x in line.sizes]
            found[size, line.name] = points
            print(table_row(line, points), flush=True)
    if args.figure:
        draw(found, args.figure)


def measured(case):
    """Compiles and times a step of a layer."""
    import jax

    layer, rng = case.layer, np.random.default_rng(0)
    shape = (case.batch, *case.shape)
    inputs = ops.convert_to_tensor(rng.normal(size=shape), "float32")

    def outputs(x):
        if case.base:
            return layer(x, base=x[:, : case.base], training=True)
        return layer(x, training=True)

    outputs(inputs)
    trained, others = layer.trainable_variables, layer.non_trainable_variables

    def loss(weights, fixed, x):
        pairs = zip([*trained, *others], [*weights, *fixed], strict=True)
        with keras.StatelessScope(pairs):
            return sum(ops.sum(y**2) for y in jax.tree.leaves(outputs(x)))

    arguments = [x.value for x in trained], [x.value for x in others], inputs
    step = jax.jit(jax.grad(loss)).lower(*arguments).compile()
    memory = step.memory_analysis().temp_size_in_bytes
    seconds = median_seconds(lambda: jax.block_until_ready(step(*arguments)))
    count = multiplications(jax.make_jaxpr(outputs)(inputs).jaxpr)
    floor = 3 * 2 * count / matrix_product_rate()
    return Point(seconds, memory / MIB, floor)


def multiplications(program):
    """The multiplications in products, also of tensors summed right away."""
    import jax

    summed = {
        id(x)
        for step in program.eqns
        if step.primitive.name == "reduce_sum"
        for x in step.invars
    }
    count = 0
    for step in program.eqns:
        size = math.prod(step.outvars[0].aval.shape) if step.outvars else 0
        if step.primitive.name == "dot_general":
            (contracted, _), _ = step.params["dimension_numbers"]
            shape = step.invars[0].aval.shape
            count += size * math.prod(shape[axis] for axis in contracted)
        elif step.primitive.name == "conv_general_dilated":
            kernel, axes = step.invars[1].aval, step.params["dimension_numbers"]
            count += size * kernel.size // kernel.shape[axes.rhs_spec[0]]
        elif step.primitive.name == "mul" and id(step.outvars[0]) in summed:
            count += size
        repeats = step.params.get("length", 1)  # of a loop
        within = 0
        for value in jax.tree.leaves(list(step.params.values())):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                within += multiplications(inner)
        count += repeats * within
    return count


def table_row(line, points):
    """Times, and by how much the last doubling multiplies time and memory."""
    times = " ".join(f"{1e3 * point.seconds:7.2f}" for point in points)
    before, last = points[-2:]
    growth = last.seconds / before.seconds, last.mib / before.mib
    stated = last.floor / before.floor if last.floor else math.nan
    return (
        f"{line.name:36s}{line.sizes[0]:4d}..{line.sizes[-1]:<5d}{times}\n"
        f"{'':6s}the last doubling: time x{growth[0]:.1f}, memory "
        f"x{growth[1]:.1f}, multiplications x{stated:.1f}; {last.mib:.0f} MiB; "
        f"{last.floor / last.seconds:.0%} of the rate"
    )


def draw(found, path):
    """Draws a row for each kind of size: time on the left, memory beside it."""
    figure = new_figure(9.5, 2.7 * len(PANELS))
    rows = figure.subplots(len(PANELS), 2)
    for row, (size, lines) in zip(rows, PANELS.items(), strict=True):
        for line in lines:
            points = found[size, line.name]
            times = [1e3 * point.seconds for point in points]
            draw_line(row[0], line.name, line.sizes, times)
            draw_line(row[1], line.name, line.sizes, [x.mib for x in points])
        for drawn, line in zip(tuple(row[0].lines), lines, strict=True):
            floors = [1e3 * point.floor for point in found[size, line.name]]
            if all(floors):
                row[0].plot(line.sizes, floors, ":", color=drawn.get_color())
        row[0].set_ylabel("ms; dotted: products")
        row[1].set_ylabel("MiB")
        for panel in row:
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.xaxis.set_major_formatter("{x:.0f}")
            panel.set_xlabel(size)
    label_ends(figure)
    save_figure(figure, path)


if __name__ == "__main__":
    main()
