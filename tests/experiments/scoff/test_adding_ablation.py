"""The changes of the short sums: what each does, and what is reported."""

import argparse

import keras
import numpy as np
import pytest

from experiments import records
from experiments.scoff import adding_ablation
from experiments.scoff import results
from keras_relational.datasets import adding


def options(core="scoff", **changes):
    given = {
        "core": core,
        "embedding": "relu",
        "dropout": 0.0,
        "gated_messages": False,
        "forget_bias": 1.0,
        "read_cells": False,
        "dynamics": "lstm",
        "units": 4,
        "num_slots": 3,
        "num_active": None,
    }
    return argparse.Namespace(**given | changes)


@pytest.mark.parametrize("core", ["scoff", "rims", "lstm"])
def test_the_bias_of_forget_gates(core):
    changed = options(core, forget_bias=30.0)
    model = adding_ablation.ablation_model(changed)
    bias = np.array(model.get_layer("core").cell.bias)
    gates = np.split(bias, 4, axis=-1)
    assert [np.unique(gate).tolist() for gate in gates] == [[0], [30], [0], [0]]


@pytest.mark.parametrize("core", ["scoff", "rims", "lstm"])
@pytest.mark.parametrize("read_cells", [False, True])
def test_what_the_sum_is_read_from(core, read_cells):
    changed = options(core, read_cells=read_cells)
    model = adding_ablation.ablation_model(changed)
    *_, read_out = model.layers
    x = np.random.default_rng(0).random((5, 6, 2), "float32")
    recurrent = model.get_layer("core")
    inner = keras.Model(model.inputs, recurrent.output)
    h, *states = inner.predict(x, verbose=0)
    np.testing.assert_array_equal(h, states[0])
    expected = read_out(states[1] if read_cells else h)
    np.testing.assert_allclose(model.predict(x, verbose=0), expected, 1e-4)


def test_a_mark_for_each_half():
    x, _ = adding.generate(5, 7, 3, seed=0)
    split = adding_ablation.channels(x, by_half=True)
    assert split.shape == (5, 7, 3)
    np.testing.assert_array_equal(split[..., 0], x[..., 0])
    np.testing.assert_array_equal(split[..., 1:].sum(-1), x[..., 1])
    assert not split[:, 3:, 1].any()
    assert not split[:, :3, 2].any()
    assert adding_ablation.channels(x, by_half=False) is x


@pytest.fixture
def says_two():
    """A model that learned sums divided by 4, and says 0.5 always."""
    model = keras.Sequential(
        [keras.Input((None, 2)), keras.layers.LSTM(1), keras.layers.Dense(1)]
    )
    model.set_weights([np.zeros(x.shape) for x in model.weights])
    model.layers[-1].bias.assign([0.5])
    return model


def test_errors_are_those_of_sums(says_two):
    x, y = np.zeros((3, 5, 2), "float32"), np.array([1.0, 2.0, 6.0])
    measured = adding_ablation.errors(says_two, {"few": (x, y)}, divisor=4)
    assert measured == pytest.approx({"error_few": 17 / 3, "offset_few": -1})


def test_predicted_sums_are_drawn_against_true_ones(says_two):
    tests = {
        f"{values}_{name}": adding.generate(3, length, values, seed=values)
        for values in (2, 10)
        for name, length in (("short", 10), ("long", 12))
    }
    figure = adding_ablation.plot_sums(says_two, tests, divisor=4)
    short, long = figure.axes
    assert (short.get_title(), long.get_title()) == ("10 steps", "12 steps")
    ten = long.collections[1].get_offsets()
    np.testing.assert_allclose(ten[:, 0], tests["10_long"][1])
    np.testing.assert_allclose(ten[:, 1], 2)


def test_weights_are_chosen_by_validation():
    curves = {
        "batches": np.array([200, 400, 600]),
        "loss": np.array([3.0, 2.0, 1.0]),
        "error_validation": np.array([0.3, 0.1, 0.2]),
        "error_10_long": np.array([5.0, 6.0, 4.0]),
    }
    found = adding_ablation.last_and_chosen(curves)
    assert found["last"] == {"error_validation": 0.2, "error_10_long": 4.0}
    assert found["chosen"] == {"error_validation": 0.1, "error_10_long": 6.0}
    assert found["chosen_batches"] == 400


def test_gradients_are_clipped_and_the_rate_falls():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    adding_ablation.compile_with_decay(model, 0.5, num_batches=4, clip=0.1)
    assert model.optimizer.global_clipnorm == 0.1
    model.fit(np.ones((8, 1)), np.ones((8, 1)), batch_size=2, verbose=0)
    assert float(model.optimizer.learning_rate) == 0


def record(error, seed, **changes):
    unchanged = {**results.UNCHANGED, "core": "scoff", "gated_messages": False}
    arguments = {**unchanged, "seed": seed, **changes}
    tests = "2_short", "2_long", "10_short", "10_long"
    figures = {f"error_{x}": error for x in tests}
    figures |= {f"offset_{x}": -error for x in tests}
    result = {"batches": 2000, "minutes": 3.0}
    result |= {"last": figures, "chosen": figures}
    config = {"experiment": "adding_ablation", "arguments": arguments}
    return records.Record(f"{seed}{changes}", config, result, {})


def rows_of(text):
    """The cells of a table in Markdown, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in x.split("|")[1:-1]] for x in lines[2:]]


def test_the_table_says_what_was_changed():
    changes = {"gated_messages": True, "lengths": [20, 30]}
    found = [record(1.0, 0), record(2.0, 1), record(0.5, 0, **changes)]
    text = results.tables(found)["adding_ablation"]
    assert text.startswith("All rows: core scoff; batches 2,000.")
    unchanged, changed = sorted(rows_of(text))
    assert unchanged[:4] == ["", "2", "3.0 ± 0.0", "1.500 ± 0.707"]
    assert changed[0] == "gated messages, lengths 20 30"
    assert changed[-1] == "0.500"


def test_six_changes_are_one_in_the_table():
    without = {k: v for k, v in results.SIX.items() if k != "gated_messages"}
    found = [
        record(1.0, 0, **results.SIX),
        record(1.0, 0, **results.SIX, units=100),
        record(1.0, 0, **without),
        record(1.0, 0, core="lstm"),
        record(1.0, 0, divisor=5.0),
        record(1.0, 0),
    ]
    text = results.tables(found)["adding_ablation"]
    assert [row[:2] for row in rows_of(text)] == [
        ["scoff", ""],
        ["lstm", ""],
        ["scoff", "all six"],
        ["scoff", "all six but gated messages"],
        ["scoff", "divisor 5.0"],
        ["scoff", "all six, units 100"],
    ]
