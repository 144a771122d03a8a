"""What one step launches on a GPU, counted on a machine that has none.

    make gpu

Each public layer, each preset and some of Keras' own layers are compiled for an
H100 by XLA's own compiler, which needs neither a GPU nor a driver. A launch
takes 2 to 4 microseconds, whatever it computes: launches times 3 microseconds
are a floor of small steps. Bytes and operations give two more floors, from the
memory's rate and from that of matrix products. The counts are the same on every
machine.

A program that would not run well on a GPU is an error: one that calls the host,
computes in float64, calls a kernel that only a CPU has, or has a loop whose
length is not known when it is compiled.

    python -m benchmarks.launches --here

compiles for the device of this machine instead, and times the step there.
"""

import argparse
import json
import os
import pathlib
import sys
from importlib.metadata import version

if __name__ == "__main__":
    os.environ["KERAS_BACKEND"] = "jax"
    if "--here" not in sys.argv:
        # JAX would look for a driver.
        os.environ["JAX_PLATFORMS"] = "cpu"

import keras
import numpy as np

from benchmarks.gpu_programs import Program
from benchmarks.growth import multiplications
from benchmarks.measuring import median_seconds
from keras_relational import layers
from keras_relational import models
from keras_relational.file_io import write_atomically

POLICIES = ("float32", "mixed_bfloat16")
MICROSECONDS_OF_A_LAUNCH = 3
BYTES_PER_SECOND = 3.35e12
OPERATIONS_PER_SECOND = {"float32": 67e12, "mixed_bfloat16": 790e12}

# The device that the compiler is told of.
H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32
  shared_memory_per_block: 49152 shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535 registers_per_core_limit: 65536
  registers_per_block_limit: 65536 clock_rate_ghz: 1.98
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800
  device_memory_size: 84978434048
  cuda_compute_capability { major: 9 }
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 patch: 0 }
runtime_version { major: 13 minor: 0 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
# Nothing can be timed, so nothing can be tuned. Without tuning, the tiles of
# Triton's products do not fit every product.
WITHOUT_TUNING = {
    "xla_gpu_autotune_level": 0,
    "xla_gpu_enable_triton_gemm": False,
}


def of_sequence(layer, shape, batch):
    """A model of one layer, and the size of its batch."""
    inputs = keras.Input(shape)
    return keras.Model(inputs, layer(inputs)), batch


def of_cell(cell, shape, batch):
    return of_sequence(keras.layers.RNN(cell), shape, batch)


def with_symbols(symbols, layer, batch=32):
    entities = keras.Input((64, 64))
    return keras.Model(entities, layer(entities, symbols(entities))), batch


def simplicial_block():
    entities = keras.Input((70, 64))
    virtual = layers.VirtualEntities(2)(entities)
    block = layers.SimplicialTransformerBlock(2, 32, 1, 48, 64)
    return keras.Model(entities, block(entities, virtual)), 64


def shared_workspace():
    slots = keras.Input((10, 64))
    memory = layers.VirtualEntities(4)(slots)
    return keras.Model(slots, layers.SharedWorkspace(4, 32)(slots, memory)), 64


def relational_convolution():
    entities = keras.Input((9, 64))
    relations = layers.InnerProductRelations(16)(entities)
    features = layers.RelationalConvolution(32, 3)(relations)
    return keras.Model(entities, features), 64


def episodic():
    frames = keras.Input((64,))
    is_first = keras.Input((20,), dtype="bool")
    state = keras.Input((256,))
    layer = layers.EpisodicRNN(keras.layers.GRUCell(256))
    sequences = keras.ops.reshape(
        keras.layers.RepeatVector(20)(frames), (-1, 64)
    )
    inputs = [frames, is_first, state]
    return keras.Model(inputs, layer(sequences, is_first, [state])), 32


def self_attention():
    entities = keras.Input((64, 64))
    attention = keras.layers.MultiHeadAttention(4, 16)
    return keras.Model(entities, attention(entities, entities)), 32


def lstm_with_the_authors_kernel():
    return keras.layers.LSTM(512, kernel_initializer=layers.LSTMKernel())


# By name: a function that makes a model, and returns it with the size of its
# batch. Sizes are those of the papers where they have some.
LAYERS = {
    "AppendCoordinates": lambda: of_sequence(
        layers.AppendCoordinates(), (5, 5, 32), 10
    ),
    "PrediNet": lambda: of_sequence(layers.PrediNet(32, 16, 16), (25, 34), 10),
    "RelationNetwork": lambda: of_sequence(
        layers.RelationNetwork(640, 256), (25, 34), 10
    ),
    "MultiHeadAttentionPooling": lambda: of_sequence(
        layers.MultiHeadAttentionPooling(32, 16, 20), (25, 34), 10
    ),
    "CoRelNet": lambda: of_sequence(layers.CoRelNet(), (9, 128), 32),
    "InnerProductRelations, RelationalConvolution": relational_convolution,
    "SymbolicAttention, RelationalCrossAttention": lambda: with_symbols(
        layers.SymbolicAttention(64, num_heads=4),
        layers.RelationalCrossAttention(4, 16),
    ),
    "PositionalSymbols, Abstractor": lambda: with_symbols(
        layers.PositionalSymbols(64), layers.Abstractor(4, 16, 128)
    ),
    "PositionRelativeSymbols, RelationalAttention": lambda: with_symbols(
        layers.PositionRelativeSymbols(64), layers.RelationalAttention(4, 64)
    ),
    "DualAttention": lambda: with_symbols(
        layers.PositionalSymbols(64), layers.DualAttention(2, 2)
    ),
    "DualAttentionBlock": lambda: with_symbols(
        layers.PositionalSymbols(64), layers.DualAttentionBlock(2, 2, 128)
    ),
    "RelationalTransformerBlock": lambda: of_sequence(
        layers.RelationalTransformerBlock(2, 32, 64), (70, 64), 64
    ),
    "VirtualEntities, SimplicialTransformerBlock": simplicial_block,
    "TwoSimplicialAttention": lambda: of_sequence(
        layers.TwoSimplicialAttention(1, 48), (40, 64), 32
    ),
    "SlotAttention": lambda: of_sequence(
        layers.SlotAttention(5, 64, 128), (64, 64), 32
    ),
    "SharedWorkspace": shared_workspace,
    "SlotPooling": lambda: of_sequence(
        layers.SlotPooling(6, 100), (50, 600), 64
    ),
    "SCOFF": lambda: of_sequence(layers.SCOFF(100, 6, 4), (50, 64), 64),
    "SCOFFCell": lambda: of_cell(layers.SCOFFCell(100, 6, 4), (50, 64), 64),
    "RIMs": lambda: of_sequence(layers.RIMs(100, 6, 4), (50, 64), 64),
    "RIMsCell": lambda: of_cell(layers.RIMsCell(100, 6, 4), (50, 64), 64),
    "RelationalMemoryCell": lambda: of_cell(
        layers.RelationalMemoryCell(100, 6, 4), (50, 64), 64
    ),
    "Keras' GRU": lambda: of_sequence(keras.layers.GRU(600), (50, 64), 64),
    "ESBN": lambda: of_sequence(layers.ESBN(512, 256), (9, 128), 32),
    "NTMCell": lambda: of_cell(layers.NTMCell(512), (9, 128), 32),
    "LayerNormLSTMCell": lambda: of_cell(
        layers.LayerNormLSTMCell(512), (9, 128), 32
    ),
    "LSTMKernel, Keras' LSTM": lambda: of_sequence(
        lstm_with_the_authors_kernel(), (9, 128), 32
    ),
    "EpisodicRNN of Keras' GRU": episodic,
    "TemporalContextNormalization": lambda: of_sequence(
        layers.TemporalContextNormalization(), (9, 128), 32
    ),
    "BatchContextNormalization": lambda: of_sequence(
        layers.BatchContextNormalization(), (9, 128), 32
    ),
    "SlidingWindowNormalization": lambda: of_sequence(
        layers.SlidingWindowNormalization(4), (9, 128), 32
    ),
    "TimeFolded, Keras' Dense": lambda: of_sequence(
        layers.TimeFolded(keras.layers.Dense(128)), (9, 128), 32
    ),
    "Keras' MultiHeadAttention": self_attention,
}
MODELS = {
    "relations_classifier": lambda: (models.relations_classifier(), 10),
    **{
        f"boxworld_agent, {network}": lambda network=network: (
            models.boxworld_agent(network),
            1280,
        )
        for network in models.NETWORKS
    },
    **{
        preset: lambda preset=preset: (models.from_preset(preset), 32)
        for preset in models.preset_names()
    },
}
SUBJECTS = {**LAYERS, **MODELS}
# Of an axis whose size a model leaves open, such as that of candidates.
OPEN_SIZE = 7


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help="all")
    parser.add_argument(
        "--here", action="store_true", help="compile for this device, and time"
    )
    parser.add_argument(
        "--write", type=pathlib.Path, metavar="FILE", help="write as JSON"
    )
    args = parser.parse_args()
    if unknown := set(args.subjects) - SUBJECTS.keys():
        parser.error(
            f"no subject {min(unknown)!r}. Known: {'; '.join(SUBJECTS)}"
        )
    rows = []
    for name in args.subjects or SUBJECTS:
        for policy in POLICIES:
            row = counts(name, policy, here=args.here)
            print(line(row), flush=True)
            rows.append(row)
    if args.write:
        found = {"jax": version("jax"), "keras": version("keras"), "rows": rows}
        write_atomically(args.write, json.dumps(found, indent=1).encode())
    print(table(rows))
    if not args.here and any(row["errors"] for row in rows):
        raise SystemExit(1)


def counts(name, policy, here=False):
    """What a step of a subject launches, forward alone and in training."""
    import jax

    keras.utils.clear_session()
    jax.clear_caches()
    model, batch = new_model(name, policy)
    arguments = variables_and_inputs(model, batch)
    row = {"subject": name, "policy": policy, "batch": batch, "errors": []}
    for step, function in (
        ("forward", forward_step(model)),
        ("training", training_step(model)),
    ):
        traced, compiled = compile_step(function, arguments, here)
        program = Program(compiled.as_text())
        memory = compiled.memory_analysis().temp_size_in_bytes
        row[step] = {
            "launches": sum(program.launches.values()),
            "kinds": dict(program.launches.most_common()),
            "bytes_moved": program.bytes_moved,
            "operations": 2 * multiplications(traced.jaxpr.jaxpr),
            "temporary_bytes": memory,
        }
        row["errors"] += sorted(program.errors - set(row["errors"]))
        if here:
            row[step]["seconds"] = median_seconds(
                lambda run=compiled: jax.block_until_ready(run(*arguments))
            )
    return row


def new_model(name, policy):
    """A model of a subject in a dtype policy, and the size of its batch."""
    keras.config.set_dtype_policy(policy)
    try:
        model, batch = SUBJECTS[name]()
    finally:
        keras.config.set_dtype_policy("float32")
    if name in models.preset_names() and policy != "float32":
        # A preset has the policy of its file.
        text = model.to_json().replace(
            '{"name": "float32"}', json.dumps({"name": policy})
        )
        model = keras.models.model_from_json(text)
    return model, batch


def variables_and_inputs(model, batch):
    """Values of the variables, trainable and others, and zeros as inputs."""

    def zeros(tensor):
        sizes = [OPEN_SIZE if n is None else n for n in tensor.shape[1:]]
        dtype = keras.backend.standardize_dtype(tensor.dtype)
        return np.zeros((batch, *sizes), dtype)

    return (
        [x.value for x in model.trainable_variables],
        [x.value for x in model.non_trainable_variables],
        keras.tree.map_structure(zeros, model.input),
    )


def forward_step(model):
    def step(weights, others, inputs):
        outputs, _ = model.stateless_call(weights, others, inputs)
        return outputs

    return step


def training_step(model):
    """Gradient descent on the outputs' mean squares, and inputs' gradients."""
    import jax

    def step(weights, others, inputs):
        def loss(weights, inputs):
            outputs, state = model.stateless_call(
                weights, others, inputs, training=True
            )
            squares = [
                keras.ops.mean(keras.ops.cast(x, "float32") ** 2)
                for x in jax.tree.leaves(outputs)
            ]
            return sum(squares), state

        # Images of integers have gradients without values.
        grad = jax.grad(loss, argnums=(0, 1), has_aux=True, allow_int=True)
        (gradients, of_inputs), state = grad(weights, inputs)
        pairs = zip(weights, gradients, strict=True)
        trained = [x - 1e-3 * gradient for x, gradient in pairs]
        floats = [
            x
            for x in jax.tree.leaves(of_inputs)
            if x.dtype != jax.dtypes.float0
        ]
        return trained, state, floats

    return step


def compile_step(step, arguments, here):
    """Compiles a step for the device of this machine, or else for an H100.

    Returns the step as JAX traced it, and as XLA compiled it.
    """
    import jax
    from jax.experimental import topologies

    if here:
        traced = jax.jit(step).trace(*arguments)
        return traced, traced.lower().compile()
    topology = topologies.get_topology_desc(
        "h100", platform="cuda", topology="1x1x1", target_config=H100
    )
    sharding = jax.sharding.SingleDeviceSharding(topology.devices[0])
    arguments = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding),
        arguments,
    )
    traced = jax.jit(step).trace(*arguments)
    compiled = traced.lower().compile(compiler_options=WITHOUT_TUNING)
    return traced, compiled


def floors(step, policy):
    """Microseconds that launches, memory and products take at least."""
    return {
        "launches": MICROSECONDS_OF_A_LAUNCH * step["launches"],
        "memory": 1e6 * step["bytes_moved"] / BYTES_PER_SECOND,
        "products": 1e6 * step["operations"] / OPERATIONS_PER_SECOND[policy],
    }


def line(row):
    """A row for the screen."""
    step = row["training"]
    text = (
        f"{row['subject']:45s}{row['policy']:15s}"
        f"{row['forward']['launches']:6d} launches forward, "
        f"{step['launches']:6d} in training, "
        f"{step['temporary_bytes'] / 2**20:7.1f} MiB"
    )
    if "seconds" in step:
        seconds = step["seconds"]
        rate = row["batch"] / seconds
        text += f", {1e3 * seconds:7.2f} ms, {rate:,.0f} examples a second"
    return "; ".join([text, *row["errors"]])


def table(rows):
    """The rows as Markdown, one line a subject."""
    lines = [
        "| training step | batch | launches | forward alone | bfloat16 | "
        "MiB | µs of launches | of memory | of products |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    by_subject = {}
    for row in rows:
        by_subject.setdefault(row["subject"], {})[row["policy"]] = row
    for name, found in by_subject.items():
        row, half = found["float32"], found["mixed_bfloat16"]
        step = row["training"]
        times = floors(step, "float32").values()
        cells = [
            f"{name} | {row['batch']:,}",
            f"{step['launches']:,} | {row['forward']['launches']:,}",
            f"{half['training']['launches']:,}",
            f"{step['temporary_bytes'] / 2**20:,.0f}",
            *(f"{time:,.0f}" for time in times),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
