"""A rule learner, exported and served: images in, choice or image out."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_relational import models
from keras_relational import serving
from keras_relational import training
from keras_relational.datasets import distribution_of_three


def test_an_image_predicted(tmp_path):
    keras.utils.set_random_seed(0)
    model = models.rule_learner(models.filler_autoencoder(), mode="generative")
    images = distribution_of_three.glyphs()
    fillers, _ = distribution_of_three.generate(
        3, range(95, 100), mode="generative", seed=0
    )
    inputs = {"fillers": images[fillers]}
    serving.export_model(model, tmp_path)
    with serving.serve(tmp_path, "rules") as server:
        answers = serving.predict_grpc(server.grpc_address, inputs, "rules")
    assert set(answers) == {"predicted"}
    np.testing.assert_allclose(
        answers["predicted"],
        model.predict(inputs["fillers"], verbose=0),
        atol=1e-5,
    )


def test_a_vector_predicted_is_no_logits(tmp_path):
    keras.utils.set_random_seed(0)
    autoencoder = models.filler_autoencoder("vector", 8)
    model = models.rule_learner(autoencoder, mode="generative")
    inputs = distribution_of_three.one_hot(8)[np.array([[0, 1, 2, 2, 0]])]
    exported = tf.saved_model.load(serving.export_model(model, tmp_path))
    answers = exported.signatures["serving_default"](
        fillers=tf.constant(inputs)
    )
    assert set(answers) == {"predicted"}
    np.testing.assert_allclose(
        answers["predicted"], model.predict(inputs, verbose=0), atol=1e-6
    )


@pytest.mark.slow
def test_a_right_choice_among_fillers_never_trained_on(tmp_path):
    """In some minutes."""
    keras.utils.set_random_seed(0)
    images = distribution_of_three.glyphs()
    (shown, answers), (asked, right) = distribution_of_three.load_data(
        95, num_test=200
    )
    model = models.rule_learner(
        models.filler_autoencoder(batch_normalization=True)
    )
    trained = models.over_fillers(model, images[:5])
    trained.compile(
        training.adam(2e-4),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    trained.fit(shown, answers, batch_size=32, epochs=60, verbose=0)
    assert shown.max() < 5 <= asked.min()
    serving.export_model(model, tmp_path)
    with serving.serve(tmp_path, "rules") as server:
        served = serving.predict_grpc(
            server.grpc_address, {"fillers": images[asked]}, "rules"
        )
    assert np.mean(served["label"] == right) > 0.9


@pytest.mark.parametrize("network", ["rest", "grpc"])
def test_a_choice(network, tmp_path):
    keras.utils.set_random_seed(0)
    model = models.rule_learner(models.filler_autoencoder())
    images = distribution_of_three.glyphs()
    fillers, _ = distribution_of_three.generate(3, range(95, 100), seed=0)
    inputs = {"fillers": images[fillers]}
    serving.export_model(model, tmp_path)
    with serving.serve(tmp_path, "rules") as server:
        predict, address = serving.predict_rest, server.rest_url
        if network == "grpc":
            predict, address = serving.predict_grpc, server.grpc_address
        answers = predict(address, inputs, "rules")
    scores = model.predict(inputs["fillers"], verbose=0)
    np.testing.assert_allclose(
        answers["probabilities"], keras.ops.softmax(scores), atol=1e-5
    )
    np.testing.assert_array_equal(answers["label"], scores.argmax(-1))
