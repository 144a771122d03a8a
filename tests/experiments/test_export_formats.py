"""Files of presets and layers, as ONNX Runtime and LiteRT answer them."""

import importlib.util
import itertools
import re

import keras
import numpy as np
import pytest

from experiments import export_formats
from experiments import records
from keras_relational import layers
from keras_relational import models
from keras_relational.datasets import relations_game

PACKAGES = "tf2onnx", "onnxruntime", "ai_edge_litert", "tensorflow_serving"
pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow"
    or not all(map(importlib.util.find_spec, PACKAGES)),
    reason="needs TensorFlow, and the extras `formats` and `serving`",
)
ASK = {"ONNX": export_formats.onnx, "LiteRT": export_formats.litert}
# Where the spread of a feature is nearly 0, rounding decides: for the same
# problems TensorFlow and JAX differ by 0.05.
BOUNDS = {"tcn_vaec_translation": 0.1}
QUICK = (
    ("corelnet_match_rows", "ONNX"),
    ("relational_convolution_set_game", "LiteRT"),
)
LAYERS = {
    "esbn": lambda: layers.ESBN(8, key_dim=4),
    "relation_network": lambda: layers.RelationNetwork(8, 4),
    "rims": lambda: layers.RIMs(8, 3, 2),
    "scoff": lambda: layers.SCOFF(8, 3, 2, num_active=2),
}


def cases():
    """Every preset in every format. All but two are slow."""
    names = models.preset_names()
    for case in itertools.product(names, export_formats.FORMATS):
        marks = [] if case in QUICK else [pytest.mark.slow]
        yield pytest.param(*case, marks=marks)


@pytest.mark.parametrize(("preset", "name"), [*cases()])
def test_a_file_answers_as_its_preset(preset, name):
    largest, size = export_formats.compare(preset, name)
    assert largest < BOUNDS.get(preset, 5e-4)
    assert size < 16


def assert_answers(ask, model, inputs, outputs, atol=1e-5):
    """`outputs` are names, in the order of the model."""
    x = [*inputs.values()] if len(inputs) > 1 else next(iter(inputs.values()))
    expected = export_formats.flat_arrays(model(x))
    answers = ask(inputs)
    assert set(answers) == set(outputs)
    for key, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(answers[key], wanted, atol=atol)


def specs(model, batch=None, **dtypes):
    """Keras' `input_signature`, with a size of the batch and other dtypes."""
    return [
        keras.tree.map_structure(
            lambda x: keras.InputSpec(
                dtypes.get(x.name, x.dtype), (batch, *x.shape[1:]), name=x.name
            ),
            model.input,
        )
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ASK)
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_with_loops(layer, name, tmp_path):
    """Their loops need the size of the batch in LiteRT."""
    x = keras.Input((5, 6), name="x")
    model = keras.Model(x, LAYERS[layer]()(x))
    batches = (2,) if name == "LiteRT" else (2, 3)
    signature = specs(model, 2) if name == "LiteRT" else None
    ask = ASK[name](model, tmp_path, signature)
    rng = np.random.default_rng(0)
    for batch in batches:
        inputs = {"x": rng.normal(size=(batch, 5, 6)).astype("float32")}
        assert_answers(ask, model, inputs, ["outputs"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ASK)
def test_images_of_floats(name, tmp_path):
    """The file scales them as the model does."""
    model = models.from_preset("predinet_between")
    ask = ASK[name](model, tmp_path, specs(model, image="float32"))
    images, _, _ = relations_game.generate("between", 4, "hexominoes", 5)
    for scale in (1, 255):
        inputs = {"image": images * np.float32(scale / 255)}
        assert_answers(ask, model, inputs, ["logits"], atol=5e-4)
    with pytest.raises(Exception, match=r"UINT8|uint8"):
        ask({"image": images})
    with pytest.raises(Exception, match=r"image|reshape"):
        ask({"image": inputs["image"][:, :30]})


@pytest.mark.slow
@pytest.mark.parametrize("name", ASK)
def test_a_state_goes_in_and_out(name, tmp_path):
    agent = models.boxworld_agent(
        "convolutional", (3, 7, 3), cell=keras.layers.LSTMCell(6)
    )
    batch = 2 if name == "LiteRT" else None
    ask = ASK[name](agent, tmp_path, specs(agent, batch))
    rng = np.random.default_rng(0)
    inputs = {
        "image": rng.integers(256, size=(2, 5, 3, 7, 3), dtype="uint8"),
        "is_first": rng.integers(2, size=(2, 5)).astype(bool),
        "state_0": rng.normal(size=(2, 6)).astype("float32"),
        "state_1": rng.normal(size=(2, 6)).astype("float32"),
    }
    outputs = ["policy", "value", "next_state_0", "next_state_1"]
    assert_answers(ask, agent, inputs, outputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASK)
def test_any_number_of_candidates(name, tmp_path):
    model = models.analogy_scorer(image_size=16, num_candidates=None)
    ask = ASK[name](model, tmp_path)
    rng = np.random.default_rng(0)
    for number in (2, 7):
        inputs = {
            "images": rng.integers(256, size=(3, 9, 16, 16, 3), dtype="uint8"),
            "context": rng.integers(9, size=(3, 3), dtype="int32"),
            "candidates": rng.integers(9, size=(3, number), dtype="int32"),
        }
        (logits,) = ask(inputs).values()
        np.testing.assert_allclose(logits, model(inputs), atol=1e-4)


@pytest.mark.slow
def test_keras_exports_a_preset_at_once(tmp_path):
    """Though nobody has called it, which Keras asks for."""
    model = models.from_preset("relational_convolution_set_game")
    model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
    assert (tmp_path / "model.onnx").stat().st_size > 1e5


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = records.PUBLISHED.parent / "export.md"
    names = {}
    for block in re.findall(
        r"^```python\n(.*?)^```", page.read_text(), re.M | re.S
    ):
        exec(compile(block, page.name, "exec"), names)  # noqa: S102
    np.testing.assert_array_equal(names["logits"].argmax(1), names["labels"])
    np.testing.assert_allclose(
        names["answers"]["logits"], names["logits"], atol=5e-4
    )
