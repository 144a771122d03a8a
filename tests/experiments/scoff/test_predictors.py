import argparse

import numpy as np
import pytest

from experiments.scoff.adding import CORES as ADDING_CORES
from experiments.scoff.adding import adding_errors
from experiments.scoff.adding import adding_model
from experiments.scoff.ball_coordinates import coordinates_predictor
from experiments.scoff.bouncing_balls import bouncing_balls_predictor
from experiments.scoff.intuitive_physics import CORES as PHYSICS_CORES
from experiments.scoff.intuitive_physics import intuitive_physics_predictor
from experiments.scoff.single_ball import single_ball_predictor
from experiments.scoff.video_cores import CORES
from experiments.scoff.video_cores import video_core
from keras_relational import models
from keras_relational.datasets import adding


def options(core, units=4, num_object_files=3, **others):
    """The options of a command."""
    given = {"num_schemata": 2, "gated_messages": False, "networks": "linear"}
    given |= {"units": units, "num_object_files": num_object_files, **others}
    return argparse.Namespace(core=core, **given)


@pytest.mark.parametrize("core", ADDING_CORES)
def test_adding(core):
    model = adding_model(core)
    x, y = adding.generate(6, 9, 2, seed=0)
    sums = model.predict(x, verbose=0)
    assert sums.shape == (6, 1)
    model.compile(loss="mse")
    (error,) = adding_errors(model, {2: (x, y)}, num_tested=4).values()
    expected = np.mean((sums[:4, 0] - y[:4]) ** 2)
    assert error == pytest.approx(expected, rel=1e-4)


def test_other_models_of_adding_are_refused():
    with pytest.raises(ValueError, match="an LSTM updates all"):
        adding_model("lstm", num_active=2)
    assert adding_model("rims", 2).get_layer("core").num_active == 2


@pytest.mark.parametrize("core", CORES)
def test_predictors_of_bouncing_balls(core):
    given = options(core, 8, None, image_size=8, task="colored_678balls")
    model = bouncing_balls_predictor(given, mean_pixel=0.5)
    assert model(np.zeros((1, 3, 8, 8, 3), "uint8")).shape == (1, 3, 8, 8, 3)
    layer = models.part(model, "core")
    if core == "gru":
        assert layer.units == 64
    elif core.startswith("scoff"):
        assert (layer.num_object_files, layer.value_dim) == (8, 8)
        assert layer.num_active == (4 if core == "scoff_sparse" else None)


def test_predictors_of_a_ball():
    model = single_ball_predictor(
        8, 2, 2, "separate", 0.1, image_size=8, networks="linear"
    )
    core = models.part(model, "core")
    assert (core.schema_keys, core.balance) == ("separate", 0.1)
    assert (core.num_heads, core.value_dim, core.dropout) == (4, 64, 0.0)


def test_a_predictor_of_coordinates_is_one_scoff_and_a_dense_layer():
    model = coordinates_predictor(4, 3, 6, "separate", 0.1)
    core, read_out = map(model.get_layer, ("core", "read_out"))
    assert models.part(model, "core") is core
    assert (core.units, core.num_object_files, core.num_schemata) == (6, 1, 3)
    assert (core.schema_keys, core.balance) == ("separate", 0.1)
    coordinates = np.random.default_rng(0).normal(size=(2, 5, 4))
    coordinates = coordinates.astype("float32")
    np.testing.assert_allclose(
        model(coordinates), read_out(core(coordinates)), atol=1e-6
    )


@pytest.mark.parametrize("core", PHYSICS_CORES)
def test_predictors_of_intuitive_physics(core):
    gated = core == "scoff"
    model = intuitive_physics_predictor(
        options(core, 5, 3, image_size=16, gated_messages=gated)
    )
    assert model(np.zeros((1, 3, 16, 16, 3), "uint8")).shape == (
        1,
        3,
        16,
        16,
        3,
    )
    layer = models.part(model, "core")
    if core == "scoff":
        cell = layer.cell
        assert (cell.num_object_files, cell.units, cell.num_heads) == (3, 5, 4)
        assert (cell.num_schemata, cell.gated_messages) == (2, True)
    elif core == "gru":
        assert layer.units == 15
    else:
        assert layer.cell.state_size == [15]
        assert layer.cell.num_heads == 5


def test_other_predictors_of_intuitive_physics_are_refused():
    with pytest.raises(ValueError, match="SCOFF alone: gated_messages"):
        intuitive_physics_predictor(options("gru", gated_messages=True))


@pytest.mark.parametrize("name", CORES)
def test_cores_by_name(name):
    core = video_core(name, 4, 2)
    assert core.return_sequences
    assert core.return_state
    if name.startswith("scoff"):
        core = video_core(name, 4, 2, schema_keys="separate")
        assert core.schema_keys == "separate"
    else:
        with pytest.raises(ValueError, match="SCOFF alone: balance"):
            video_core(name, 4, 2, balance=0.1)
