"""Trains on one device and on several, and compares the weights.

    python several_devices.py PART FOLDER [PROCESS PORT]

With PROCESS, 0 or 1, two such programs train together, joined at PORT. Each has
a folder of its own.
"""

import contextlib
import functools
import math
import pathlib
import sys

import keras
import numpy as np
import pytest
import test_backends
from kill_runs import new_classifier

from keras_relational import layers
from keras_relational import runs
from keras_relational import training

BATCH = 8
NUM_BATCHES = 25


def on_several_devices():
    if keras.backend.backend() == "tensorflow":
        return mirrored().scope()
    return keras.distribution.DataParallel(auto_shard_dataset=False).scope()


@functools.cache
def mirrored():
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def fitted(new_model, arrays):
    """The weights before and after plain `fit` on three batches."""
    keras.utils.set_random_seed(0)
    model = new_model()
    before = model.get_weights()
    # All outputs as one vector, whatever their structure.
    flat = [
        keras.ops.reshape(x, (-1, math.prod(n or 5 for n in x.shape[1:])))
        for x in keras.tree.flatten(model.outputs)
    ]
    flat = keras.ops.concatenate(flat, axis=1) if flat[1:] else flat[0]
    targets = np.random.default_rng(1).normal(size=(3 * BATCH, flat.shape[1]))
    trained = keras.Model(test_backends.inputs_of(model), flat)
    # Large steps would end in NaN. A mirrored strategy clips on each device.
    clipnorm = 1.0 if keras.backend.backend() == "jax" else None
    trained.compile(keras.optimizers.SGD(1e-3, clipnorm=clipnorm), "mse")
    x, y = keras.tree.map_structure(rows_of_mine, (arrays, targets))
    size = len(y) // 3
    trained.fit(x, y, batch_size=size, shuffle=False, verbose=0)
    return before, model.get_weights()


def rows_of_mine(array):
    """What `fit` takes in this process: its own part of every batch."""
    number, count = runs.processes.this_process()
    parts = np.reshape(array, (3, count, BATCH // count, *array.shape[1:]))
    return np.reshape(parts[:, number], (-1, *array.shape[1:]))


def compare_layers(models):
    test_backends.BATCH = 3 * BATCH
    for name, new_model in models.items():
        arrays = test_backends.random_inputs(new_model())
        expected = fitted(new_model, arrays)
        with on_several_devices():
            found = fitted(new_model, arrays)
        moved = []
        for start, one, _, other in zip(*found, *expected, strict=True):
            # Each device makes its own sums first, and so rounds otherwise.
            moved.append(np.abs(other - start).max(initial=0))
            atol = 1e-6 + 1e-3 * moved[-1]
            np.testing.assert_allclose(one, other, atol=atol, err_msg=name)
        assert not moved or 1e-5 < max(moved) < np.inf, name


def statistics_and_noise():
    """Statistics over the batch, dropout, and noise in the choice of schema."""
    return keras.Sequential(
        [
            keras.Input((5, 6)),
            layers.BatchContextNormalization(),
            keras.layers.Dropout(0.3, seed=2),
            layers.SCOFF(4, 2, 3, dropout=0.2, seed=1),
            keras.layers.Dense(3),
        ]
    )


def classified_batch_by_batch():
    """The weights after `training.fit`."""
    model, x, y = new_classifier(16, num_examples=41)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss)
    training.fit(
        model,
        lambda first: training.Minibatches(x, y, BATCH, None, first),
        num_batches=12,
        batches_per_epoch=6,
        verbose=0,
    )
    return model.get_weights()


def classified(folder=None, num_batches=NUM_BATCHES, seed=0):
    """Weights and curves of `train_classifier`, in a run."""
    model, x, y = new_classifier(16, num_examples=41)
    with contextlib.ExitStack() as stack:
        run = None
        if folder is not None:
            run = runs.Run(folder, "devices", {"seed": seed})
            stack.enter_context(run)
        curves = training.train_classifier(
            model,
            x,
            y,
            num_batches=num_batches,
            batch_size=BATCH,
            batches_per_epoch=10,
            steps_per_execution=5,
            optimizer=keras.optimizers.SGD(0.1, momentum=0.5),
            validation={"some": (x, y)},
            run=run,
            verbose=0,
        )
        if run is not None:
            run.save_model(model)
            run.finish({"loss": curves["loss"][-1]})
    curves = [curves[name] for name in sorted(curves) if name != "minutes"]
    return [*model.get_weights(), *curves]


def train_every_layer(folder):
    compare_layers(test_backends.MODELS)


def train_mirrored(folder):
    """On TensorFlow, what draws no noise and takes no statistics."""
    import tensorflow as tf

    (processor,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        processor, 2 * [tf.config.LogicalDeviceConfiguration()]
    )
    names = "ESBN", "PrediNet", "RIMs", "SimplicialTransformerBlock"
    compare_layers({name: test_backends.MODELS[name] for name in names})


def train_a_few(folder):
    """And a classifier, also in a run that stops and goes on."""
    compare_layers({"statistics and noise": statistics_and_noise})
    expected = [*classified_batch_by_batch(), *classified()]
    with on_several_devices():
        classified(folder, num_batches=20)
        found = [*classified_batch_by_batch(), *classified(folder)]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=2e-5)
        with pytest.raises(ValueError, match="another run"):
            classified(folder, seed=1)
        with pytest.raises(ValueError, match=r"multiple of 2.*batch_size=3"):
            training.Minibatches(np.zeros(9), np.zeros(9), 3, None)


def train_for_long(folder):
    """To be killed, and started again."""
    with on_several_devices():
        continued = classified(folder, num_batches=600)
        unbroken = classified(num_batches=600)
    for one, other in zip(continued, unbroken, strict=True):
        np.testing.assert_array_equal(one, other)


def main(part, folder, process=None, port=None):
    if process is not None:
        address = f"127.0.0.1:{port}"
        keras.distribution.initialize(address, 2, int(process))
    globals()[part](pathlib.Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
