import io

import keras
import numpy as np
import pytest
from keras import ops

from experiments.predinet import components
from keras_relational import analysis

LABEL_NAMES = ["both", "shape", "colour", "neither"]


def random_points(*shape):
    return np.random.default_rng(0).normal(size=shape) + 5


@pytest.mark.parametrize(("name", "size"), [("predinet", 3), ("mha", 7)])
def test_relations_leave_out_the_positions_of_a_predinet(
    name, size, game, request
):
    model = request.getfixturevalue(name)
    outputs = components.head_outputs(model, game[0])
    relations = components.head_relations(model, game[0])
    np.testing.assert_allclose(relations, outputs[..., :size], atol=1e-6)
    assert relations.shape[-1] == size


def test_one_panel_an_architecture_coloured_by_label():
    points = {"predinet": random_points(8, 2), "mha": random_points(8, 2) + 1}
    labels = np.arange(8, dtype="uint8") % 4

    figure = components.plot_components(points, labels, LABEL_NAMES)

    for panel, (title, expected) in zip(
        figure.axes, points.items(), strict=True
    ):
        assert panel.get_title() == title
        (scatter,) = panel.collections
        np.testing.assert_allclose(scatter.get_offsets(), expected)
        colours = scatter.get_facecolors()
        np.testing.assert_array_equal(colours[:4], colours[4:])
        assert len(np.unique(colours, axis=0)) == 4
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == LABEL_NAMES
    figure.savefig(io.BytesIO())


@pytest.mark.parametrize("heads", [None, [5], [5, 0, 3]])
def test_training_and_held_out_panels_of_a_head_agree_in_limits(heads):
    points, held_out = random_points(20, 6, 2), 2 * random_points(9, 6, 2)
    labels = np.zeros(20, int), np.ones(9, int)

    figure = components.plot_head_components(
        points, labels[0], held_out, labels[1], LABEL_NAMES[:2], heads
    )

    drawn = [panel for panel in figure.axes if panel.collections]
    numbers = range(6) if heads is None else heads
    assert len(drawn) == 2 * len(numbers)
    for head, left, right in zip(numbers, drawn[::2], drawn[1::2], strict=True):
        assert left.get_title() == f"head {head}"
        assert left.get_xlim() == right.get_xlim()
        assert left.get_ylim() == right.get_ylim()
        for panel, expected in ((left, points), (right, held_out)):
            offsets = panel.collections[0].get_offsets()
            np.testing.assert_allclose(offsets, expected[:, head])
            low, high = panel.get_xlim()
            assert low < offsets[:, 0].min() <= offsets[:, 0].max() < high
    figure.savefig(io.BytesIO())


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

    outputs = components.central_outputs(model, images, batch_size=7)

    assert outputs.dtype == "float32"
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_head_outputs_hold_relations_then_both_positions(predinet, game):
    images, _ = game
    expected = predinet.get_layer("central").propositions(
        entities_of(predinet, images)
    )
    expected = {k: ops.convert_to_numpy(v) for k, v in expected.items()}

    outputs = components.head_outputs(predinet, images)

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
    outputs = components.central_outputs(multi_task_predinet, images)
    maps = analysis.attention_maps(multi_task_predinet, images)
    assert outputs.shape == (30, 28)
    assert maps.shape == (30, 4, 2, 5, 5)


def test_a_central_module_without_heads_is_named_in_the_error(mlp, game):
    with pytest.raises(ValueError, match="module is a Sequential"):
        components.head_outputs(mlp, game[0])


def test_a_model_without_a_central_layer_is_refused(game):
    inputs = keras.Input((36, 36, 3), name="image")
    model = keras.Model(inputs, keras.layers.Flatten(name="flat")(inputs))
    with pytest.raises(ValueError, match=r"\['image', 'flat'\]"):
        components.central_outputs(model, game[0])
