"""Images of floats: pixels from 0 to 255, or from 0 to 1."""

import keras
import numpy as np
import pytest
from layers_for_tests import array

from experiments.scoff.intuitive_physics import plausibility
from experiments.scoff.videos import roll_out_errors
from experiments.scoff.videos import simple_roll_out_errors
from keras_relational import analysis
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import relations_game
from keras_relational.models.image_model import ImageModel
from keras_relational.models.image_model import to_pixels

pytestmark = pytest.mark.any_backend

SCALES = {
    "float32": lambda x: x.astype("float32"),
    "float64": lambda x: x.astype("float64"),
    "integers": lambda x: x.astype("int64"),
    "one": lambda x: x.astype("float32") / 255,
    "half": lambda x: (x / 255).astype("float16"),
}


def images(shape=(6, 36, 36, 3)):
    return np.random.default_rng(0).integers(256, size=shape, dtype="uint8")


def classifier():
    keras.utils.set_random_seed(0)
    return models.relations_classifier(num_heads=2)


def test_a_preset_is_as_good_on_floats():
    x, y, _ = relations_game.generate(
        "between", 500, object_set="hexominoes", seed=8
    )
    model = models.from_preset("predinet_between")
    logits = model.predict(x / 255, verbose=0)
    assert np.mean(logits.argmax(1) == y) > 0.98


@pytest.mark.parametrize(
    "policy", ["float32", "mixed_float16", "mixed_bfloat16"]
)
def test_every_scale_keeps_every_pixel(policy):
    keras.config.set_dtype_policy(policy)
    model, x = classifier(), images()
    for convert in SCALES.values():
        np.testing.assert_array_equal(
            model.predict(convert(x), verbose=0), model.predict(x, verbose=0)
        )


def test_each_example_has_its_own_scale():
    model, x = classifier(), images()
    mixed = x.astype("float32")
    mixed[::2] /= 255
    mixed[1] = 0
    x[1] = 0
    expected = model.predict(x, verbose=0)
    np.testing.assert_array_equal(model.predict(mixed, verbose=0), expected)
    rows = [model.predict(row[None], verbose=0) for row in mixed]
    np.testing.assert_allclose(np.concatenate(rows), expected, atol=1e-6)


def test_integers_are_never_scaled():
    model = classifier()
    dim = images() // 128
    plain = keras.Model(model.input, model.output)
    assert not isinstance(plain, ImageModel)
    for x in (dim, dim.astype("int64")):
        np.testing.assert_array_equal(array(model(x)), array(plain(x)))


def test_booleans_are_black_and_white():
    model, x = classifier(), images() > 128
    np.testing.assert_array_equal(
        array(model(x)), array(model(255 * x.astype("uint8")))
    )


def test_arrays_out_of_range_are_refused():
    model = classifier()
    model.compile("sgd", "mse")
    for wrong, received in (
        (images() * 257.0, "from 0.0 to 65535.0"),
        (images().astype("int64") - 1, "from -1 to 254"),
        (np.full((1, 36, 36, 3), np.nan), "from nan to nan"),
    ):
        with pytest.raises(ValueError, match=received):
            model.predict(wrong)
    x, y = images() / 127.5 - 1, np.zeros((6, 2))
    for method in (
        model,
        model.predict,
        model.predict_on_batch,
        lambda x: model.fit(x, y),
        lambda x: model.fit(x=x, y=y),
        lambda x: model.fit(images(), y, validation_data=(x, y)),
        lambda x: model.evaluate(x, y),
        lambda x: model.train_on_batch(x, y),
        lambda x: model.test_on_batch(x, y),
        lambda x: analysis.attention_maps(model, x),
    ):
        with pytest.raises(ValueError, match=r"from -1\.0 to 1\.0"):
            method(x)


def test_tensors_out_of_range_are_cut():
    x = images()
    tensor = keras.ops.convert_to_tensor(x * np.float32(3) - 100)
    found = array(to_pixels(tensor))
    np.testing.assert_array_equal(found, np.clip(x * 3.0 - 100, 0, 255))


def test_brightest_pixels_may_be_a_little_above_one():
    """As after an image was resized by cubic splines."""
    x = np.array([[[0.0, 1.1], [0.5, 1.0]]])
    assert to_pixels(x).tolist() == [[[0, 255], [128, 255]]]
    assert to_pixels(np.zeros((0, 2, 2))).shape == (0, 2, 2)


class Batches(keras.utils.PyDataset):
    def __init__(self, x, y):
        super().__init__()
        self.batch = x, y

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return self.batch


@pytest.mark.slow
def test_training_is_the_same():
    x, y = images((20, 36, 36, 3)), np.arange(20) % 2
    weights = []
    for data in (x, x.astype("float32"), x / 255):
        model = classifier()
        training.train_classifier(
            model, data, y, 4, 5, None, None, 4, 2, verbose=0
        )
        weights.append(model.get_weights())
        model = classifier()
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(True))
        model.fit(data, y, 5, verbose=0, shuffle=False)
        model.fit(Batches(data, y), verbose=0)
        weights[-1] += model.get_weights()
    for others in weights[1:]:
        for one, other in zip(weights[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_saved_cloned_and_nested_models(tmp_path):
    model, x = classifier(), images()
    model.save(tmp_path / "model.keras")
    models.save_to_preset(model, tmp_path / "preset")
    inputs = keras.Input((36, 36, 3))
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for other in (
        keras.models.load_model(tmp_path / "model.keras"),
        models.from_preset(tmp_path / "preset"),
        clone,
        keras.Model(inputs, model(inputs)),
        keras.Sequential([keras.Input((36, 36, 3)), model]),
    ):
        np.testing.assert_allclose(
            other.predict(x / 255, verbose=0),
            model.predict(x, verbose=0),
            atol=1e-6,
        )


def test_a_model_that_is_declared_without_a_scale_is_left_alone():
    """A one-hot input of uint8 is no image from 0 to 255."""
    x = keras.Input((3, 3, 2), dtype="uint8")
    y = keras.layers.Flatten()(keras.ops.cast(x, "float32"))
    model = models.declare(keras.Model(x, y), {"flat": "raw"})
    assert not isinstance(model, ImageModel)
    ones = np.ones((1, 3, 3, 2), "float32")
    np.testing.assert_array_equal(model.predict(ones, verbose=0), 1)


def test_analysis_of_floats():
    keras.utils.set_random_seed(0)
    model, x = classifier(), images()
    for found, expected in (
        (analysis.attention_maps(model, y), analysis.attention_maps(model, x))
        for y in (x.astype("float32"), x / 255)
    ):
        np.testing.assert_array_equal(found, expected)
    learner = models.rule_learner(models.filler_autoencoder())
    fillers = images((3, 4, 32, 32))
    np.testing.assert_array_equal(
        analysis.bindings(learner, fillers / 255).key_scores,
        analysis.bindings(learner, fillers).key_scores,
    )


def test_training_on_floats():
    fillers = images((5, 32, 32))
    learner = models.rule_learner(models.filler_autoencoder())
    numbers = np.arange(12).reshape(3, 4) % 5
    one, other = (
        array(models.over_fillers(learner, x)(numbers))
        for x in (fillers, fillers / 255)
    )
    np.testing.assert_array_equal(one, other)
    videos = images((2, 5, 16, 16, 1))
    core = keras.layers.GRU(8, return_sequences=True, return_state=True)
    predictor = models.video_predictor(core, 1, 1, 0.5, False, 16)
    for function in (
        lambda x: roll_out_errors(predictor, x, 2, 3),
        lambda x: simple_roll_out_errors(x, 2, 3)["mean_image"],
        lambda x: simple_roll_out_errors(x, 2, 3)["last_frame"],
        lambda x: plausibility(predictor, x),
    ):
        np.testing.assert_allclose(
            function(videos / 255), function(videos), rtol=1e-5
        )
