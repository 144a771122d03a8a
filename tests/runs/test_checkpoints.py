"""What is read back from a checkpoint, and what is refused."""

import json
import tracemalloc
import types

import keras
import numpy as np
import pytest

from keras_relational import runs
from keras_relational import training


def small_model():
    keras.utils.set_random_seed(1)
    inputs = keras.Input((6,))
    x = keras.layers.Dense(8, activation="relu")(inputs)
    outputs = keras.layers.Dense(3)(x)
    model = training.minibatches.MinibatchModel([inputs], [outputs])
    model.compile("sgd", "mse", metrics=["accuracy"])
    model.evaluate(np.zeros((1, 6)), np.zeros((1, 3)), verbose=0)
    model.optimizer.build(model.trainable_variables)
    return model


def save(path, curves, *variables):
    names = [f"variable_{i}" for i in range(len(variables))]
    arrays = dict(zip(names, variables, strict=True))
    np.savez(path, curves=np.array(curves), **arrays)


def curves_of(**curves):
    return json.dumps({"batches": [20], "minutes": [1.0], **curves})


CURVES = {"batches": [20], "minutes": [1.0], "loss": [0.5]}
NPY = b"\x93NUMPY\x01\0\x46\0{'descr': '<f8', 'fortran_order': False, "
DAMAGED = {
    "empty": lambda path: path.write_bytes(b""),
    "no_zip": lambda path: path.write_bytes(b"\0" * 500),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-700]),
    "one_array": lambda path: path.write_bytes(NPY),
    "pickle": lambda path: save(path, curves_of(), np.array([{}], object)),
    "pickled_curves": lambda path: save(path, np.array([{}], object)),
    "text": lambda path: save(path, curves_of(), np.array("0")),
    "no_curves": lambda path: np.savez(path, variable_0=np.zeros(3)),
    "no_variable": lambda path: np.savez(path, curves=curves_of(), b=1),
    "no_json": lambda path: save(path, "{"),
    "no_table": lambda path: save(path, "[1]"),
    "other_table": lambda path: save(path, '{"loss": [1]}'),
    "no_numbers": lambda path: save(path, curves_of(batches=["a"])),
    "no_lists": lambda path: save(path, curves_of(batches=3)),
    "too_large_numbers": lambda path: save(path, curves_of(minutes=[10**400])),
    "other_lengths": lambda path: save(path, curves_of(loss=[1, 2])),
    "no_epoch": lambda path: save(path, curves_of(batches=[], minutes=[])),
    "deep": lambda path: save(path, "[" * 100_000),
}


@pytest.fixture(scope="module")
def trained():
    return small_model()


@pytest.fixture(scope="module")
def checkpoint(trained, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    runs.ModelCheckpoints(trained, directory).save(20, CURVES)
    return (directory / "checkpoint-20.npz").read_bytes()


def restored(directory, model, goal=80):
    run = types.SimpleNamespace(
        add_log=lambda log, part: directory, has_new_results=lambda: None
    )
    log = runs.TrainingLog(
        run,
        None,
        "batches",
        lambda folder: runs.ModelCheckpoints(model, folder),
    )
    log.restore(goal)
    return log


@pytest.fixture
def restore(checkpoint, trained, tmp_path):
    """Takes up a checkpoint, after a function has changed its file."""

    def continued(damage):
        path = tmp_path / "checkpoint-20.npz"
        path.write_bytes(checkpoint)
        damage(path)
        log = restored(tmp_path, trained, goal=20)
        return len(log.curves["batches"])

    return continued


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_checkpoint_is_told_with_its_path(restore, name):
    with pytest.raises(
        ValueError, match=r"checkpoint-20\.npz is damaged.* delete it to begin"
    ) as raised:
        restore(DAMAGED[name])
    assert "allow_pickle" not in str(raised.value)


@pytest.mark.parametrize("seed", range(30))
def test_a_flipped_bit_is_told_or_changes_nothing(restore, trained, seed):
    restore(lambda path: None)
    expected = trained.get_weights()
    rng = np.random.default_rng(seed)

    def flip(path):
        content = bytearray(path.read_bytes())
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)

    try:
        assert restore(flip) == 1
    except ValueError as error:
        assert "checkpoint-20.npz is damaged" in str(error)  # noqa: PT017
    np.testing.assert_equal(trained.get_weights(), expected)


def zeros(number):
    """Curves up to an epoch."""
    return {
        "batches": [20 * i for i in range(1, number // 20 + 1)],
        "minutes": [0.0] * (number // 20),
    }


@pytest.fixture
def model(trained, tmp_path):
    """Checkpoints after which the first weight is 20, 40 and 60."""
    checkpoints = runs.ModelCheckpoints(trained, tmp_path)
    for number in (20, 40, 60):
        weight = trained.trainable_variables[0]
        weight.assign(keras.ops.full(weight.shape, number))
        checkpoints.save(number, zeros(number))
    return trained


def first_weight(model):
    return keras.ops.convert_to_numpy(model.trainable_variables[0])[0, 0]


def test_the_last_two_are_kept(tmp_path, model):
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["checkpoint-40.npz", "checkpoint-60.npz"]
    other = small_model()
    assert restored(tmp_path, other).curves == zeros(60)
    assert first_weight(other) == 60


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_newest_falls_back_to_the_one_before(
    tmp_path, model, damage, capsys
):
    path = tmp_path / "checkpoint-60.npz"
    content = path.read_bytes()
    middle = len(content) // 2
    damaged = {
        "cut": content[:middle],
        "flipped": content[:middle] + b"\x55" * 9 + content[middle + 9 :],
        "empty": b"",
    }
    path.write_bytes(damaged[damage])
    with pytest.warns(UserWarning, match=r"checkpoint-60\.npz is damaged") as w:
        log = restored(tmp_path, model)
    assert "goes on from the checkpoint before" in str(w[0].message)
    assert str(tmp_path / "checkpoint-40.npz") in str(w[0].message)
    assert "after 40 of 80 batches" in capsys.readouterr().out
    assert first_weight(model) == 40
    assert log.curves == zeros(40)
    # The damaged one is out of the way of those to come.
    assert [x.name for x in tmp_path.glob("*.npz")] == ["checkpoint-40.npz"]
    log.add({"batches": 60, "minutes": 1.0})
    curves = runs.read_curves(tmp_path / "curves.csv")
    assert curves["batches"] == [20, 40, 60]
    assert len(list(tmp_path.glob("*.npz"))) == 2


def test_two_damaged_ones_are_an_error(tmp_path, model):
    for path in tmp_path.glob("*.npz"):
        path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"checkpoint-60\.npz is damaged"):
        restored(tmp_path, model)
    assert len(list(tmp_path.glob("*.npz"))) == 2


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "int8"])
def test_each_type_comes_back_bit_by_bit(tmp_path, dtype):
    model = small_model()
    layer = keras.layers.Layer()
    values = np.arange(-6, 6).reshape(3, 4)
    if dtype != "int8":
        values = values / 7
    weight = layer.add_weight(
        shape=(3, 4), dtype=dtype, trainable=False, initializer="zeros"
    )
    weight.assign(values)
    model.extra = layer
    assert any(x is weight for x in model.variables)
    expected = keras.ops.convert_to_numpy(weight).astype("float64")
    checkpoints = runs.ModelCheckpoints(model, tmp_path)
    checkpoints.save(20, zeros(20))
    weight.assign(keras.ops.zeros(weight.shape, dtype))
    checkpoints.restore(20)
    found = keras.ops.convert_to_numpy(weight).astype("float64")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("shape", "dtype", "words"),
    [
        ((6, 8), "float64", "of type float64, and should be float32"),
        ((100, 2**20), "uint8", "of another model or optimizer"),
    ],
)
def test_variables_of_another_model_are_refused_before_they_are_read(
    checkpoint, trained, tmp_path, shape, dtype, words
):
    path = tmp_path / "checkpoint-20.npz"
    path.write_bytes(checkpoint)
    with np.load(path) as file:
        arrays = {**file, "variable_0": np.zeros(shape, dtype)}
    np.savez_compressed(path, **arrays)
    tracemalloc.start()
    with pytest.raises(ValueError, match=words):
        restored(tmp_path, trained)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 2**20
