import gc
import weakref

import keras
import numpy as np
import pytest

from keras_relational import analysis
from keras_relational import layers
from keras_relational import models

pytestmark = pytest.mark.any_backend
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 36, 36, 3), "uint8")
VALUES = np.random.default_rng(0).normal(size=(5, 6, 8)).astype("float32")
BOARDS = np.random.default_rng(0).integers(0, 256, (5, 7, 10, 3), "uint8")


def esbn():
    layer = layers.ESBN(4, key_dim=3, confidence=True)
    return keras.Sequential([keras.Input((6, 8)), layer])


def scoff():
    layer = layers.SCOFF(num_object_files=2, units=8, num_schemata=2)
    return keras.Sequential([keras.Input((6, 8)), layer])


def relations():
    return models.relations_classifier("predinet")


CASES = {
    "bindings": (esbn, VALUES),
    "object_files": (scoff, VALUES),
    "block_attention": (lambda: models.boxworld_agent("simplicial"), BOARDS),
    "attention_maps": (relations, IMAGES),
    "head_effects": (relations, IMAGES, IMAGES[:2]),
}


@pytest.mark.parametrize("name", CASES)
def test_new_weights_count_and_the_model_is_not_kept(name):
    make, *inputs = CASES[name]

    def read(model, **kwargs):
        found = getattr(analysis, name)(model, *inputs, **kwargs)
        found = keras.tree.flatten(found)
        return np.concatenate([np.ravel(x) for x in found if x is not None])

    model, other = make(), make()
    before, wanted = read(model), read(other)
    assert np.abs(before - wanted).max() > 1e-4
    np.testing.assert_array_equal(read(model), before)
    model.set_weights(other.get_weights())
    np.testing.assert_allclose(read(model), wanted, atol=1e-6)
    # Batches of 2, 2 and 1.
    np.testing.assert_allclose(read(model, batch_size=2), wanted, atol=1e-4)
    kept = weakref.ref(model)
    del model
    gc.collect()
    assert kept() is None
