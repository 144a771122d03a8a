import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_relational import analysis


def entities_of(model, images):
    part = keras.Model(model.inputs[0], model.get_layer("central").input)
    return part.predict(images, verbose=0)


@pytest.mark.parametrize("name", ["predinet", "mha", "mlp"])
def test_central_outputs_are_those_of_the_central_layer(name, game, request):
    model = request.getfixturevalue(name)
    images, _ = game
    expected = ops.convert_to_numpy(
        model.get_layer("central")(entities_of(model, images))
    )

    outputs = analysis.central_outputs(model, images, batch_size=7)

    assert outputs.dtype == "float32"
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_head_outputs_hold_relations_then_both_positions(predinet, game):
    images, _ = game
    expected = predinet.get_layer("central").propositions(
        entities_of(predinet, images)
    )
    expected = {k: ops.convert_to_numpy(v) for k, v in expected.items()}

    outputs = analysis.head_outputs(predinet, images)

    assert outputs.shape == (30, 4, 7)
    for name, part in (
        ("distances", outputs[..., :3]),
        ("positions_1", outputs[..., 3:5]),
        ("positions_2", outputs[..., 5:]),
    ):
        np.testing.assert_allclose(part, expected[name], atol=1e-5)


def test_images_are_enough_for_a_model_that_takes_tasks_too(
    multi_task_predinet, game
):
    images, _ = game
    outputs = analysis.central_outputs(multi_task_predinet, images)
    maps = analysis.attention_maps(multi_task_predinet, images)
    assert outputs.shape == (30, 28)
    assert maps.shape == (30, 4, 2, 5, 5)


def test_a_central_module_without_heads_is_named_in_the_error(mlp, game):
    with pytest.raises(ValueError, match="module is a Sequential"):
        analysis.head_outputs(mlp, game[0])


def test_a_model_without_a_central_layer_is_refused(game):
    inputs = keras.Input((36, 36, 3), name="image")
    model = keras.Model(inputs, keras.layers.Flatten(name="flat")(inputs))
    with pytest.raises(ValueError, match=r"\['image', 'flat'\]"):
        analysis.central_outputs(model, game[0])


def test_analysis_needs_neither_tensorflow_nor_matplotlib():
    # Where torch is, JAX is not: `make test-torch`.
    torch = keras.backend.backend() == "torch"
    other_backend = "torch" if torch else "jax"
    program = (
        "import sys; sys.modules.update(tensorflow=None, matplotlib=None);"
        "import keras_relational.analysis"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "KERAS_BACKEND": other_backend},
        check=True,
    )
