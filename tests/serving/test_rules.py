"""A rule learner, exported and served: images in, choice or image out."""

import keras
import numpy as np
import pytest

from keras_relational import models
from keras_relational import serving
from keras_relational.datasets import distribution_of_three


def test_an_image_predicted_from_fillers_never_trained_on(tmp_path):
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


@pytest.mark.parametrize("network", ["rest", "grpc"])
def test_a_choice_among_fillers_never_trained_on(network, tmp_path):
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
