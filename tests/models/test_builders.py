"""What holds for every function that builds a model, found by its type."""

import functools
import inspect
import json
import typing

import keras
import numpy as np
import pytest
from small_models import CASES
from small_models import SAVED
from small_models import VARIANTS
from small_models import arguments
from small_models import build

from keras_relational import layers
from keras_relational import models
from keras_relational.layers._strided_convolution import StridedConv2D
from keras_relational.models.image_model import ImageModel
from keras_relational.models.image_model import reads_pixels

pytestmark = pytest.mark.any_backend

# Functions that return a model but build none.
OTHERS = ("declare", "from_preset", "named_outputs", "part")

TAKE_A_MODEL = ("over_fillers", "roll_out_model", "rule_learner")


def builders():
    """Names of the public functions that return a model or a layer."""
    for name in models.__all__:
        function = getattr(models, name)
        if not inspect.isfunction(function) or name in OTHERS:
            continue
        kind = typing.get_type_hints(function)["return"]
        if isinstance(kind, type) and issubclass(kind, keras.layers.Layer):
            yield name


@pytest.fixture(scope="module")
def built():
    """A function that builds a model, or returns the one built before."""
    return functools.cache(build)


def inputs_of(model, rows=3):
    """Random inputs, of length 3 where any length is allowed."""
    rng = np.random.default_rng(0)

    def array(tensor):
        shape = (
            rows,
            *(3 if size is None else size for size in tensor.shape[1:]),
        )
        if tensor.dtype == "uint8" and len(shape) > 1:
            return rng.integers(256, size=shape, dtype="uint8")
        if "int" in tensor.dtype:
            return rng.integers(3, size=shape).astype(tensor.dtype)
        return rng.normal(size=shape).astype(tensor.dtype)

    sequential = isinstance(model, keras.Sequential)
    inputs = model.inputs[0] if sequential else model.input
    return keras.tree.map_structure(array, inputs)


def outputs_of(name, variant):
    """The names and the kinds of what a model puts out."""
    if name == "boxworld_agent":
        return {"policy": "logits", "value": "raw"}
    if name in ("filler_autoencoder", "roll_out_model", "video_predictor"):
        return {"predicted": "raw"}
    if name == "rule_learner" and variant in ("generative", "ntm"):
        return {"predicted": "raw"}
    return {"logits": "logits"}


def has_images(inputs):
    return any(map(is_image, keras.tree.flatten(inputs)))


def is_image(array):
    return array.dtype == "uint8" and array.ndim > 2


def as_arrays(outputs):
    return [keras.ops.convert_to_numpy(x) for x in keras.tree.flatten(outputs)]


def assert_alike(outputs, others):
    for one, other in zip(*map(as_arrays, (outputs, others)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.fixture
def channels_first():
    """A function that makes channels first the default, until the test ends."""
    before = keras.config.image_data_format()
    yield lambda: keras.config.set_image_data_format("channels_first")
    keras.config.set_image_data_format(before)


def test_every_builder_is_tested():
    assert set(builders()) == set(VARIANTS)


@pytest.mark.parametrize(("name", "variant"), SAVED)
def test_saved_and_loaded(name, variant, built, tmp_path):
    model = built(name, variant)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert models.roles(loaded) == models.roles(model)
    assert models.roles(model).outputs == outputs_of(name, variant)
    x = inputs_of(model)
    assert_alike(model(x), loaded(x))


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_channels_first(name, variant, built, channels_first):
    """A model of images is refused. Any other is the same as ever."""
    expected, given = built(name, variant), arguments(name, variant)
    channels_first()
    if reads_pixels(expected) and name not in TAKE_A_MODEL:
        with pytest.raises(ValueError, match="images have channels last"):
            getattr(models, name)(*given)
        return
    found = getattr(models, name)(*given)
    if not isinstance(found, keras.Model):
        assert "channels_first" not in str(found.get_config())
        return
    found.set_weights(expected.get_weights())
    x = inputs_of(expected)
    assert_alike(expected(x), found(x))


@pytest.mark.parametrize("name", models.preset_names())
def test_presets(name, channels_first):
    model, metadata = models.from_preset(name), models.preset_metadata(name)
    assert metadata["parameters"] == model.count_params()
    assert metadata["license"] == "Apache-2.0"
    assert metadata["run"]["command"].startswith("python -m experiments.")
    minutes = keras.tree.flatten(metadata["figures"]["minutes"])
    assert min(minutes) > 0  # There may be several, one for each stage.
    # No path of the machine that trained it.
    assert "directory" not in metadata["run"]["arguments"]
    assert '"/' not in json.dumps(metadata)
    assert models.roles(model).outputs
    x = inputs_of(model)
    assert isinstance(model, ImageModel) == has_images(x)
    channels_first()
    assert_alike(model(x), models.from_preset(name)(x))


def test_layers_of_images_with_channels_first(channels_first):
    x = np.random.default_rng(0).normal(size=(2, 5, 4, 3)).astype("float32")
    predinet = layers.PrediNet(2, 3, 4)
    shared = [layers.AppendCoordinates(), predinet]
    expected = [layer(x) for layer in shared]
    channels_first()
    for layer, one in zip(shared, expected, strict=True):
        again = type(layer).from_config(layer.get_config())
        again.build(x.shape)
        again.set_weights(layer.get_weights())
        np.testing.assert_array_equal(*as_arrays([one, again(x)]))
    with pytest.raises(ValueError, match="needs data_format"):
        StridedConv2D(4, 2)
    convolution = StridedConv2D(4, 2, data_format="channels_last")
    assert convolution(x).shape == (2, 4, 3, 4)


@pytest.mark.parametrize("name", VARIANTS)
def test_images_on_other_scales(name, built):
    """Integers, and floats up to 255 or 1, have the same outputs."""
    model = built(name, next(iter(VARIANTS[name])))
    x = inputs_of(model)
    assert reads_pixels(model) == has_images(x)
    if not has_images(x):
        return
    expected = as_arrays(model(x))

    def scaled(function):
        return keras.tree.map_structure(
            lambda a: function(a) if is_image(a) else a, x
        )

    for other in (
        scaled(lambda a: a.astype("float32")),
        scaled(lambda a: a.astype("float32") / 255),
        scaled(lambda a: a.astype("int64")),
    ):
        for one, two in zip(expected, as_arrays(model(other)), strict=True):
            np.testing.assert_array_equal(one, two)
    with pytest.raises(ValueError, match="from -1"):
        model(scaled(lambda a: a / 127.5 - 1))
