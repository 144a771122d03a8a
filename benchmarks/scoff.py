"""SCOFF and RIMs, beside a plain SCOFF with loops over files and schemata."""

import statistics
import types

import keras
import numpy as np
from keras import ops

from benchmarks import measuring
from benchmarks.measuring import own
from keras_relational import layers


def main():
    """Times SCOFF, forward and backward, on 64 sequences of 50 steps."""
    batch, time = 64, 50
    inputs = np.random.default_rng(0).normal(size=(4 * batch, time, 128))
    inputs = inputs.astype("float32")

    def epoch(layer, jit_compile=True):
        """A function that trains for an epoch, which has 4 times 50 steps."""
        model = keras.Sequential([keras.Input(inputs.shape[1:]), layer])
        model.compile(
            keras.optimizers.SGD(1e-9), "mse", jit_compile=jit_compile
        )
        targets = np.zeros(layer.compute_output_shape(inputs.shape), "float32")
        return measuring.epoch_of(model, inputs, targets, batch_size=batch)

    def scoff(num_object_files=6, num_schemata=4):
        return layers.SCOFF(
            *(100, num_object_files, num_schemata),
            value_dim=100,
            return_sequences=True,
        )

    ours = scoff()
    ours.build(inputs.shape)
    reference = keras.layers.RNN(
        PlainSCOFFCell(ours.cell), return_sequences=True
    )
    measuring.check_equal(ours(inputs[:2, :10]), reference(inputs[:2, :10]))
    for compiler, jit_compile in measuring.compilers().items():
        measuring.report(
            f"SCOFF, file by file, a step of 64, {compiler}",
            [epoch(x, jit_compile) for x in (reference, ours)],
            3 * batch * scoff_flops(),
            4 * time,
        )
    other_sizes = {
        f"{name}={number}": scoff(**{name: number})
        for name, numbers in (
            ("num_schemata", (1, 2, 8)),
            ("num_object_files", (3, 12)),
        )
        for number in numbers
    }
    for dynamics in ("gru", "lstm"):
        other_sizes[f"RIMs, {dynamics}"] = layers.RIMs(
            *(100, 6, 4, dynamics), value_dim=100, return_sequences=True
        )
    other_sizes["Keras' GRU of 600 units"] = keras.layers.GRU(
        600, return_sequences=True
    )
    found = measuring.interleaved(
        [epoch(layer) for layer in other_sizes.values()]
    )
    for name, times in zip(other_sizes, found, strict=True):
        step = statistics.median(times) / (4 * time)
        print(f"    {name}: {1e3 * step:.2f} ms", flush=True)


def scoff_flops(files=6, schemata=4, units=100, m=128, key=64, value=100):
    """Floating point operations of one step forward, for one example."""
    of_inputs = m * (key + value)
    gates = schemata * 3 * units * (value + units)
    messages = 4 * 32 * (4 * units + 2 * files)
    of_a_file = units * key + gates + 2 * units * key + messages
    return 2 * (of_inputs + files * of_a_file)


class PlainSCOFFCell(keras.layers.Layer):
    """SCOFF with GRUs and one head, one file and one schema after the other.

    It draws no noise in training, which is in its favour.
    """

    def __init__(self, cell):
        super().__init__()
        # Hidden from Keras, which would add its weights to this cell's.
        self.given = types.SimpleNamespace(cell=cell)
        self.state_size = cell.state_size
        self.output_size = cell.output_size
        for name in (
            *("query", "key", "value", "schema_query", "schema_key"),
            *("message_query", "message_key", "message_value"),
            "message_output",
        ):
            kernel = getattr(cell, f"{name}_kernel")
            setattr(self, name, measuring.dense(kernel))
        self.schemata = [
            keras.layers.GRUCell(cell.units) for _ in range(cell.num_schemata)
        ]
        weights = [own(cell.kernel), own(cell.recurrent_kernel), own(cell.bias)]
        for j, schema in enumerate(self.schemata):
            schema.build((None, cell.num_heads * cell.value_dim))
            schema.set_weights([x[:, j] for x in weights])

    def call(self, inputs, states, training=False):
        cell = self.given.cell
        files = ops.split(states[0], cell.num_object_files, axis=-1)
        key, value = self.key(inputs), self.value(inputs)
        logits = [
            ops.sum(self.query(h) * key, axis=-1) / cell.key_dim**0.5
            for h in files
        ]
        shares = ops.softmax(ops.stack(logits, axis=-1))
        new = [
            self.update(shares[:, k, None] * value, h)
            for k, h in enumerate(files)
        ]
        heads = cell.num_message_heads
        keys = [ops.split(self.message_key(h), heads, axis=-1) for h in new]
        values = [ops.split(self.message_value(h), heads, axis=-1) for h in new]
        outputs = []
        for h, updated in zip(files, new, strict=True):
            queries = ops.split(self.message_query(h), heads, axis=-1)
            read = []
            for head in range(heads):
                logits = [
                    ops.sum(queries[head] * k[head], axis=-1)
                    / cell.message_key_dim**0.5
                    for k in keys
                ]
                weights = ops.softmax(ops.stack(logits, axis=-1))
                read.append(
                    sum(
                        weights[:, k, None] * v[head]
                        for k, v in enumerate(values)
                    )
                )
            read = self.message_output(ops.concatenate(read, axis=-1))
            outputs.append(updated + read)
        outputs = ops.concatenate(outputs, axis=-1)
        return outputs, [outputs]

    def update(self, z, h):
        """The candidate of the schema that is chosen for one object file."""
        candidates = [schema(z, [h])[0] for schema in self.schemata]
        query = self.schema_query(h)
        logits = ops.stack(
            [ops.sum(query * self.schema_key(x), axis=-1) for x in candidates],
            axis=-1,
        )
        soft = ops.softmax(logits)
        hard = ops.one_hot(ops.argmax(logits, axis=-1), len(candidates))
        choice = hard + soft - ops.stop_gradient(soft)
        return sum(choice[:, j, None] * x for j, x in enumerate(candidates))

    def get_initial_state(self, batch_size=None):
        return self.given.cell.get_initial_state(batch_size)
