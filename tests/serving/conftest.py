"""Small models, exported and served once for all tests."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_servable import save_function
from tiny_servable import save_multiplier

from keras_relational import serving
from keras_relational.datasets import relations_game
from keras_relational.models import relations_classifier


@pytest.fixture(scope="session")
def classifier():
    keras.utils.set_random_seed(1)
    return relations_classifier(num_heads=4, num_relations=3, key_dim=5)


@pytest.fixture(scope="session")
def multi_task_classifier():
    keras.utils.set_random_seed(2)
    return relations_classifier(
        num_tasks=3, num_heads=4, num_relations=3, key_dim=5
    )


@pytest.fixture(scope="session")
def model_dir(classifier, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "relations"
    serving.export_model(classifier, path)
    return path


@pytest.fixture(scope="session")
def multi_task_dir(multi_task_classifier, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "multi_task"
    serving.export_model(multi_task_classifier, path, version=3)
    return path


@pytest.fixture(scope="session")
def server(model_dir):
    with serving.serve(model_dir) as running:
        yield running


@pytest.fixture(scope="session")
def multi_task_server(multi_task_dir):
    with serving.serve(multi_task_dir, "multi_task") as running:
        yield running


@pytest.fixture(scope="session")
def tiny_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny")
    save_multiplier(path)
    return path


@pytest.fixture(scope="session")
def tiny(tiny_dir):
    with serving.serve(tiny_dir, "tiny") as server:
        yield server


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """Sums up images of 4 by 4, under the names of a `relations_classifier`."""
    path = tmp_path_factory.mktemp("pictures")

    def propositions(image):
        image = tf.cast(image, tf.int32)
        return {"label": tf.reduce_sum(image, (1, 2, 3)), "twice": 2 * image}

    save_function(
        path,
        lambda image: {"label": propositions(image)["label"]},
        shape=(None, 4, 4, 3),
        dtype="uint8",
        name="image",
        propositions=propositions,
    )
    with serving.serve(path) as server:
        yield server


@pytest.fixture(scope="session")
def images():
    return relations_game.generate("between", 7, seed=0)[0]


@pytest.fixture(scope="session")
def tasks():
    return np.array([0, 1, 2, 2, 1, 0, 1], "uint8")


@pytest.fixture(scope="session")
def expected(classifier, images):
    """What `model.predict` answers, as the signatures name it."""
    return _answers(classifier, images, images)


@pytest.fixture(scope="session")
def multi_task_expected(multi_task_classifier, images, tasks):
    return _answers(multi_task_classifier, [images, tasks], images)


def _answers(model, inputs, images):
    logits = model.predict(inputs, verbose=0)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    central = model.get_layer("central")
    entities = keras.Model(model.inputs[0], central.input).predict(
        images, verbose=0
    )
    _, (scores_1, scores_2) = central(entities, return_attention_scores=True)
    outputs = keras.Model(model.inputs[0], central.output).predict(
        images, verbose=0
    )
    # R of each head: num_relations distances, then the two positions.
    heads = outputs.reshape(len(images), 4, 3 + 4)
    return {
        "probabilities": exponentials / exponentials.sum(axis=1, keepdims=True),
        "label": logits.argmax(axis=1),
        "distances": heads[..., :3],
        "positions_1": heads[..., 3:5],
        "positions_2": heads[..., 5:],
        "attention_scores_1": np.asarray(scores_1),
        "attention_scores_2": np.asarray(scores_2),
    }


@pytest.fixture(scope="session")
def assert_answers():
    """Asserts that a signature's outputs are what `model.predict` answers."""

    def check(outputs, expected, signature_name, batch_size):
        names = ["label", "probabilities"]
        if signature_name == "propositions":
            names = sorted(expected)
        assert sorted(outputs) == names
        for name in names:
            np.testing.assert_allclose(
                outputs[name],
                expected[name][:batch_size],
                rtol=1e-5,
                atol=1e-6,
                err_msg=name,
            )
        assert np.asarray(outputs["label"]).dtype == "int64"

    return check
