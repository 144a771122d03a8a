"""An analogy scorer, exported and served: it chooses among candidates."""

import keras
import numpy as np
import pytest

from keras_relational import models
from keras_relational import serving
from keras_relational import training
from keras_relational.datasets import vaec


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return models.analogy_scorer(image_size=32, num_candidates=None)


@pytest.mark.parametrize("network", ["rest", "grpc"])
def test_a_problem_from_a_region_never_seen(model, network, tmp_path):
    problems = vaec.Problems(*(x[:3] for x in vaec.generate(region=6, seed=0)))
    inputs = training.analogy_inputs(problems, 32)
    serving.export_model(model, tmp_path)
    with serving.serve(tmp_path, "analogies") as server:
        predict, address = serving.predict_rest, server.rest_url
        if network == "grpc":
            predict, address = serving.predict_grpc, server.grpc_address
        answers = predict(address, inputs, "analogies")
        # Among two candidates, with no more images than there are.
        few = {
            "images": inputs["images"][:, :4],
            "context": np.array([[0, 1, 2]] * 3, "int32"),
            "candidates": np.array([[3, 0]] * 3, "int32"),
        }
        of_few = predict(address, few, "analogies")
    scores = model.predict(inputs, verbose=0)
    np.testing.assert_allclose(
        answers["probabilities"], keras.ops.softmax(scores), atol=1e-5
    )
    np.testing.assert_array_equal(answers["label"], scores.argmax(-1))
    np.testing.assert_allclose(
        of_few["probabilities"],
        keras.ops.softmax(model.predict(few, verbose=0)),
        atol=1e-5,
    )
