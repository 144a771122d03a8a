"""The examples, at small size."""

import pathlib
import runpy
import sys

import keras
import numpy as np
import pytest
from PIL import Image

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs an example in an empty folder, and checks what it says and draws.

    It returns the names in the example.
    """

    def run(line, said, picture=None):
        name, *options = line.split()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *options])
        found = runpy.run_path(str(EXAMPLES / f"{name}.py"))
        printed = capsys.readouterr().out
        for text in said:
            assert text in printed
        if picture:
            with Image.open(picture) as image:
                assert image.format == "PNG"
        return found

    return run


@pytest.mark.slow
def test_boxworld_agent(run):
    run("boxworld_agent --num-steps 640", ["solves"])
    with Image.open("boxworld_agent.gif") as gif:
        assert gif.n_frames > 1


@pytest.mark.slow
def test_cards(run):
    found = run("cards --num-hands 64 --epochs 1", ["attributes, corelnet: "])
    for x, y in found["TESTS"].values():
        shared = (x[:, 0] == x[:, 2]).all(axis=-1).sum(axis=-1)
        assert ((shared == 1) == y).all()
        assert abs(y.mean() - 0.5) < 0.05


def test_context_normalization(run):
    found = run(
        "context_normalization --epochs 1 --num-problems 640",
        ["normalized, LSTM: "],
        "context_normalization.png",
    )
    x, y = found["tests"][5]
    assert x.shape == (640, 7, 4, 4)
    # From A to B is as from C to the first candidate, and to no other.
    steps = x[:, :, 1] - x[:, :, 0] - (x[:, :, 3] - x[:, :, 2])
    assert (abs(steps).sum(-1) == 0).argmax(1).tolist() == y.tolist()
    assert ((abs(steps).sum(-1) == 0).sum(1) == 1).all()
    assert pathlib.Path("analogies", "saved_model.pb").exists()


def test_demo(run):
    options = "--num-images 200 --num-batches 500 --directory ."
    run(f"demo {options}", ["   Answer: ", "   Head "], "attention.png")
    assert keras.models.load_model("model.keras").built


def test_esbn(run):
    found = run(
        "esbn --num-problems 64 --epochs 1",
        ["ESBN: other symbols "],
        "esbn_retrieval.png",
    )
    assert found["found"].key_scores.shape == (1, 10, 9)


def test_predinet(run):
    found = run(
        "predinet --num-images 200 --epochs 1",
        ["Accuracy on stripes: "],
        "predinet_attention.png",
    )
    assert found["maps"].shape == (4, 32, 2, 5, 5)


def test_scoff(run):
    found = run(
        "scoff --num-series 64 --epochs 1",
        ["GRU: squared error", "of the information about the axis"],
        "scoff_schemata.png",
    )
    assert found["table"].sum() == 500 * 14


def test_sensor_table(run):
    found = run(
        "sensor_table --epochs 1",
        ["over time, compare, 580 weights"],
        "sensor_table.png",
    )
    for x, y in found["TESTS"].values():
        assert x.shape == (2_000, 80)
        assert abs(y.mean() - 0.5) < 0.05
    first, second = np.asarray(found["normalized"])[:2, :, 0]
    assert np.corrcoef(first, second)[0, 1] > 0.9  # They behave alike.
    assert pathlib.Path("sensor_table", "saved_model.pb").exists()


def test_shop_log(run):
    found = run(
        "shop_log --num-sessions 64 --epochs 1", ["abstractor, 12,258 weights"]
    )
    for x, y in found["TESTS"]:
        same = (x["items"][:, :, None] == x["items"][:, None]).all(axis=-1)
        bought, returned = (x["kinds"] == kind for kind in (1, 2))
        pairs = np.triu(same & bought[:, :, None] & returned[:, None])
        assert (pairs.any(axis=(1, 2)) == y).all()
        assert abs(y.mean() - 0.5) < 0.05


def test_serving(run):
    """Both ways to ask agree."""
    found = run("serving --epochs 2", ["Refused: "])
    rest, grpc = found["over_rest"], found["over_grpc"]
    np.testing.assert_array_equal(rest["label"], grpc["label"])
    np.testing.assert_allclose(
        rest["probabilities"], grpc["probabilities"], atol=1e-5
    )


def test_transformer_block(run):
    found = run(
        "transformer_block --epochs 1",
        ["Transformer block: "],
        "transformer_block.png",
    )
    assert found["x_test"].shape == (5_000, 9, 432)
    assert abs(found["y_test"].mean() - 0.5) < 0.05
    assert found["model"].get_layer("block").num_simplicial_heads == 1
    assert pathlib.Path("transformer_block", "saved_model.pb").exists()


def test_every_example_is_tested():
    tested = {name.removeprefix("test_") for name in globals()}
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tested
