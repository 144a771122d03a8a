"""Training on blocks of batches equals training on the batches one by one."""

import keras
import numpy as np
import pytest

from keras_relational import training


def small_model():
    keras.utils.set_random_seed(1)
    inputs = keras.Input((6,))
    x = keras.layers.Dense(8, activation="relu")(inputs)
    return keras.Model(inputs, keras.layers.Dense(3)(x))


def small_data(size=64):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(size, 6)).astype("float32")
    return x, x[:, :3].argmax(-1).astype("uint8")


def compiled(model, optimizer):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    xla = keras.backend.backend() != "torch"
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=xla)
    return model


@pytest.mark.parametrize(
    "optimizer", [keras.optimizers.SGD, keras.optimizers.Adam]
)
def test_equals_plain_keras_on_the_same_batches(optimizer):
    x, y = small_data()
    blocks = training.Minibatches(x, y, 4, steps_per_execution=5, seed=3)
    plain = compiled(small_model(), optimizer(0.05))
    for i in range(4):
        for batch_x, batch_y in zip(*blocks[i], strict=True):
            plain.train_on_batch(batch_x, batch_y)

    model = small_model()
    fast = training.minibatches.MinibatchModel(model.inputs, model.outputs)
    compiled(fast, optimizer(0.05)).evaluate(x[:1], y[:1], verbose=0)
    history = fast.fit(
        blocks, steps_per_epoch=2, epochs=2, shuffle=False, verbose=0
    )
    assert int(fast.optimizer.iterations) == 20
    for ours, theirs in zip(
        model.get_weights(), plain.get_weights(), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    # The logs are means over every batch of the epoch, as Keras' own.
    assert 0 < history.history["accuracy"][1] < 1
    assert history.history["loss"][1] < history.history["loss"][0]


def test_every_example_once_before_any_again():
    x, y = np.arange(10), np.arange(10)
    blocks = training.Minibatches(x, y, 2, steps_per_execution=3, seed=5)
    seen = np.concatenate([blocks[i][0].ravel() for i in range(5)])
    for start in (0, 10, 20):
        assert sorted(seen[start : start + 10]) == list(range(10))
    assert (seen[:10] != seen[10:20]).any()
    assert (seen[:10] != np.arange(10)).any()


def test_blocks_depend_on_seed_and_number_alone():
    x, y = np.arange(10), np.arange(10)
    arguments = (x, y, 2, 3)
    unbroken = training.Minibatches(*arguments, seed=5)
    continued = training.Minibatches(*arguments, initial_batch=12, seed=5)
    other = training.Minibatches(*arguments, seed=6)
    for i in (2, 0, 1):
        np.testing.assert_array_equal(unbroken[4 + i], continued[i])
    assert (unbroken[0][0] != other[0][0]).any()


def test_blocks_are_short_where_the_data_begin_or_end_within_them():
    x, y = np.arange(10), np.arange(10)
    unbroken = training.Minibatches(x, y, 2, steps_per_execution=3)
    part = training.Minibatches(x, y, 2, 3, initial_batch=4, final_batch=8)
    expected = np.concatenate([unbroken[i][0] for i in range(3)])[4:8]
    blocks = [part[i][0] for i in range(3)]
    assert [len(block) for block in blocks] == [2, 2, 0]
    np.testing.assert_array_equal(np.concatenate(blocks), expected)


def test_several_inputs_stay_together():
    a, b = np.arange(10), np.arange(10) * 2
    blocks = training.Minibatches((a, b), a * 3, 2, steps_per_execution=3)
    (block_a, block_b), block_y = blocks[7]
    assert block_a.shape == (3, 2)
    np.testing.assert_array_equal(block_b, block_a * 2)
    np.testing.assert_array_equal(block_y, block_a * 3)


@pytest.mark.parametrize("steps", [None, 3])
def test_processes_share_every_batch(steps, monkeypatch):
    arguments = np.arange(10), np.arange(10), 4, steps
    whole = training.Minibatches(*arguments, seed=5)[1][0]
    parts = []
    for process in ((0, 2), (1, 2)):
        monkeypatch.setattr(
            training.minibatches, "this_process", lambda x=process: x
        )
        parts.append(training.Minibatches(*arguments, seed=5)[1][0])
    np.testing.assert_array_equal(np.concatenate(parts, axis=-1), whole)


def test_too_few_examples():
    with pytest.raises(ValueError, match="batch_size=4"):
        training.Minibatches(np.zeros(3), np.zeros(3), 4, 1)
