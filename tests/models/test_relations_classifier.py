import itertools

import keras
import numpy as np
import pytest

from keras_relational import layers
from keras_relational import models
from keras_relational.models.relations_classifier import CENTRAL_MODULES

IMAGES = np.random.default_rng(0).integers(0, 193, (3, 36, 36, 3), "uint8")

# Weights and biases of the encoder, of the central module, of the output MLP.
ENCODER = 12 * 12 * 3 * 32 + 32
OUTPUT = 640 * 8 + 8 + 8 * 2 + 2
PARAMETERS = {
    "predinet": 850 * 2 * 32 * 16 + 34 * 16 + 34 * 16,
    "mlp1": 850 * 640 + 640,
    "mlp2": 850 * 1024 + 1024 + 1024 * 640 + 640,
    "relation_network": 2 * 34 * 256 + 256 * 640,
    "mha": 34 * 32 * (16 + 16 + 20) + 32 * 25,
}


@pytest.mark.parametrize("central", CENTRAL_MODULES)
def test_sizes_of_table_s2(central):
    model = models.relations_classifier(central)
    assert model.get_layer("coordinates").output.shape == (None, 5, 5, 34)
    assert model.get_layer("central").output.shape == (None, 640)
    assert model.get_layer("central").count_params() == PARAMETERS[central]
    assert model.count_params() == ENCODER + PARAMETERS[central] + OUTPUT
    assert model(IMAGES).shape == (3, 2)


@pytest.mark.parametrize("central", CENTRAL_MODULES)
def test_initial_weights_are_the_authors(central):
    keras.utils.set_random_seed(0)
    model = models.relations_classifier(central)
    for layer in model.layers:
        for weight in layer.weights:
            value = keras.ops.convert_to_numpy(weight)
            if weight.name == "bias":
                np.testing.assert_allclose(value, 0.1)
            elif weight.name != "position_kernel":
                # Of each number torch takes the first of four normal ones
                # that is not cut, and four in a million are.
                beyond = np.mean(np.abs(value) > 0.2)
                torch = keras.backend.backend() == "torch"
                assert beyond <= (1e-3 if torch else 0)
                if value.size > 1000:
                    # A normal of deviation 0.1, cut at twice that.
                    assert value.std() == pytest.approx(0.088, rel=0.05)


@pytest.mark.parametrize("central", CENTRAL_MODULES)
def test_weights_are_drawn_independently(central):
    model = models.relations_classifier(central, num_heads=4, num_relations=12)
    kernels = [
        keras.ops.convert_to_numpy(weight).ravel()[:60]
        for weight in model.weights
        if weight.name != "bias"
    ]
    for i, one in enumerate(kernels):
        for other in kernels[:i]:
            size = min(len(one), len(other))
            assert not np.allclose(one[:size], other[:size])


def test_task_code_joins_the_central_output():
    model = models.relations_classifier(num_heads=2, num_tasks=5)
    part = keras.Model(model.inputs, model.get_layer("with_task").output)
    tasks = np.array([4, 0, 2], "uint8")
    joined = part.predict((IMAGES, tasks), verbose=0)
    assert joined.shape == (3, 2 * 20 + 5)
    np.testing.assert_array_equal(joined[:, -5:], np.eye(5)[tasks])
    assert model.predict((IMAGES, tasks), verbose=0).shape == (3, 2)


def test_sizes_are_arguments():
    model = models.relations_classifier(
        "predinet", num_classes=4, num_heads=16, num_relations=32, key_dim=8
    )
    central = model.get_layer("central")
    assert isinstance(central, layers.PrediNet)
    assert central.output.shape == (None, 16 * 36)
    assert central.key_dim == 8
    assert model.output_shape == (None, 4)


def test_unknown_central_module():
    with pytest.raises(ValueError, match=r"'cnn'\. Expected one of: predinet"):
        models.relations_classifier("cnn")


def test_what_the_central_module_sees():
    """Windows of 12 by 12, every 6 pixels, and where they are."""
    keras.utils.set_random_seed(0)
    model = models.relations_classifier("mlp1")
    part = keras.Model(model.input, model.get_layer("central").input)
    seen = part.predict(IMAGES, verbose=0)
    kernel, bias = map(
        keras.ops.convert_to_numpy, model.get_layer("encoder").weights
    )
    for row, column in itertools.product(range(5), repeat=2):
        rows, columns = (slice(6 * i, 6 * i + 12) for i in (row, column))
        windows = IMAGES[:, rows, columns] / 256
        features = np.tensordot(windows, kernel, axes=3) + bias
        features = np.maximum(features, 0)
        np.testing.assert_allclose(
            seen[:, row, column, :-2], features, atol=1e-5
        )
        np.testing.assert_allclose(
            seen[:, row, column, -2:],
            np.tile([0.2 * column, 0.2 * row], (3, 1)),
            atol=1e-6,
        )
    assert (seen[..., :-2] == 0).any()
