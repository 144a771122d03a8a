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
    """Trained for some seconds."""
    keras.utils.set_random_seed(0)
    model = models.analogy_scorer(image_size=16, num_candidates=None)
    model.compile(
        keras.optimizers.Adam(1e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    batches = training.AnalogyBatches(vaec.generate(seed=0), 32, 16)
    model.fit(batches, steps_per_epoch=100, shuffle=False, verbose=0)
    return model


@pytest.mark.parametrize("network", ["rest", "grpc"])
def test_a_problem_from_a_region_never_seen(model, network, tmp_path):
    problems = vaec.generate(region=6, seed=0)
    # By chance it would be a seventh.
    assert training.solved_analogies(model, problems).mean() > 0.3
    problems = vaec.Problems(*(x[:3] for x in problems))
    inputs = training.analogy_inputs(problems, 16)
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
