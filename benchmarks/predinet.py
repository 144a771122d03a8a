"""PrediNet and its baselines, compared with the same layers head by head."""

import functools
import statistics

import keras
import numpy as np
from keras import ops

from benchmarks import measuring
from benchmarks.measuring import dense
from benchmarks.measuring import denses_by_head
from benchmarks.measuring import own
from keras_relational import layers
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import relations_game

# Floating-point operations of the matrix products for one example, forward.
ENCODER = 25 * 432 * 32 * 2


def main():
    images, labels, _ = relations_game.generate("same", 20_000, seed=0)
    training_step(images, labels)
    inference(images)
    entities = np.random.default_rng(0).normal(size=(5_000, 25, 34))
    entities = entities.astype("float32")
    measuring.layer_step(
        "PrediNet, head by head",
        entities,
        layers.PrediNet(32, 16, 16),
        PlainPrediNet,
        predinet_flops(),
    )
    measuring.layer_step(
        "RelationNetwork, n² pairs concatenated",
        entities[:500],  # A step takes some 60 times as long as the others.
        layers.RelationNetwork(640, 256),
        PlainRelationNetwork,
        relation_network_flops(),
    )
    measuring.layer_step(
        "MultiHeadAttentionPooling, head by head",
        entities,
        layers.MultiHeadAttentionPooling(32, 16, 20),
        PlainAttentionPooling,
        attention_pooling_flops(),
    )


def training_step(images, labels):
    """One SGD step at batch 10, beside `fit` with its default arguments."""
    model = models.relations_classifier()
    reference = measuring.with_plain_convolutions(model)
    measuring.check_equal(model(images[:10]), reference(images[:10]))
    reference.compile(
        keras.optimizers.SGD(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    steps = len(images) // 10

    def ours():
        # Two epochs: the first one of each call compiles.
        curves = training.train_classifier(
            model,
            images,
            labels,
            num_batches=2 * steps,
            batches_per_epoch=steps,
            verbose=0,
        )
        return 60 * np.diff(curves["minutes"])[-1]

    theirs = measuring.epoch_of(reference, images, labels, batch_size=10)
    measuring.report(
        "Training step, batch 10: fit with defaults",
        [theirs, ours],
        3 * 10 * (ENCODER + predinet_flops()),
        steps,
    )


def inference(images):
    """Predictions at batch 250."""
    model = models.relations_classifier()
    reference = measuring.with_plain_convolutions(model)
    measuring.check_equal(model(images[:10]), reference(images[:10]))
    batches = len(images) // 250
    for compiler, jit_compile in measuring.compilers().items():
        for classifier in (reference, model):
            classifier.compile(jit_compile=jit_compile)
        timed = [
            functools.partial(training.predictions, classifier, images, 250)
            for classifier in (reference, model)
        ]
        _, times = measuring.report(
            f"Inference, batch 250: Keras' Conv2D, {compiler}",
            list(map(measuring.seconds_of, timed)),
            250 * (ENCODER + predinet_flops()),
            batches,
        )
        rate = len(images) / statistics.median(times)
        print(f"{'':4s}{rate:,.0f} images a second")


def predinet_flops(n=25, m=34, heads=32, relations=16, key=16):
    queries = n * m * 2 * heads * key
    attention = n * m * key + 2 * heads * n * (key + m)
    return 2 * (queries + attention + heads * m * relations)


def relation_network_flops(n=25, m=34, hidden=256, units=640):
    return 2 * (2 * n * m * hidden + n * n * hidden * units)


def attention_pooling_flops(n=25, m=34, heads=32, key=16, value=20):
    projections = n * m * heads * (2 * key + value)
    return 2 * (projections + heads * n * (n * key + n + value))


class PlainPrediNet(keras.layers.Layer):
    """PrediNet, head by head."""

    def __init__(self, layer):
        super().__init__()
        queries = denses_by_head(layer.query_kernel, 2 * layer.num_heads)
        half = layer.num_heads
        self.queries = list(zip(queries[:half], queries[half:], strict=True))
        self.keys = dense(layer.key_kernel)
        self.relations = dense(layer.relation_kernel)

    def call(self, inputs):
        _, n, m = inputs.shape
        flat = ops.reshape(inputs, (-1, n * m))
        keys = self.keys(inputs)
        heads = []
        for queries in self.queries:
            entities = []
            for query in queries:
                logits = ops.einsum("bg,bng->bn", query(flat), keys)
                weights = ops.softmax(logits)
                entities.append(ops.einsum("bn,bnm->bm", weights, inputs))
            one, two = entities
            distances = self.relations(one) - self.relations(two)
            heads += [distances, one[:, -2:], two[:, -2:]]
        return ops.concatenate(heads, axis=-1)


class PlainRelationNetwork(keras.layers.Layer):
    """A relation net on n² concatenated pairs."""

    def __init__(self, layer):
        super().__init__()
        kernels = layer.sender_kernel, layer.receiver_kernel
        self.hidden = dense(ops.concatenate(kernels), activation="relu")
        self.out = dense(layer.output_kernel, activation="relu")

    def call(self, inputs):
        n = inputs.shape[1]
        senders = ops.repeat(ops.expand_dims(inputs, 2), n, axis=2)
        receivers = ops.repeat(ops.expand_dims(inputs, 1), n, axis=1)
        pairs = ops.concatenate([senders, receivers], axis=-1)
        return ops.mean(self.out(self.hidden(pairs)), axis=(1, 2))


class PlainAttentionPooling(keras.layers.Layer):
    """The MHA baseline, head by head."""

    def __init__(self, layer):
        super().__init__()
        self.queries, self.keys, self.values = (
            denses_by_head(kernel, layer.num_heads)
            for kernel in (
                layer.query_kernel,
                layer.key_kernel,
                layer.value_kernel,
            )
        )
        self.positions = keras.Variable(own(layer.position_kernel).T)

    def call(self, inputs):
        outputs = []
        for head, (query, key, value) in enumerate(
            zip(self.queries, self.keys, self.values, strict=True)
        ):
            logits = ops.einsum("bqg,bng->bqn", query(inputs), key(inputs))
            attended = ops.matmul(ops.softmax(logits), value(inputs))
            weights = ops.reshape(self.positions[head], (1, -1, 1))
            outputs.append(ops.sum(attended * weights, axis=1))
        return ops.concatenate(outputs, axis=-1)
