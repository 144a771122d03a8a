"""Outputs of central modules, and their principal components."""

import io
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_relational import analysis
from keras_relational.analysis.components import axis_labels

LABEL_NAMES = ["both", "shape", "colour", "neither"]


def random_vectors(*shape):
    """Spread differently along each of their elements, off the origin."""
    rng = np.random.default_rng(0)
    stretch = np.linspace(1, 3, shape[-1])
    mixed = rng.normal(size=shape) * stretch @ rng.normal(size=shape[-1:] * 2)
    return (mixed + 5).astype("float32")


def test_components_are_eigenvectors_of_the_covariance():
    vectors = random_vectors(200, 6)
    values, axes = np.linalg.eigh(np.cov(vectors.T))

    components = analysis.principal_components(vectors, 3)

    assert components.axes.shape == (3, 6)
    np.testing.assert_allclose(components.mean, vectors.mean(axis=0), rtol=1e-5)
    for number in range(3):
        agreement = components.axes[number] @ axes[:, -1 - number]
        np.testing.assert_allclose(abs(agreement), 1, atol=1e-5)
        share = values[-1 - number] / values.sum()
        np.testing.assert_allclose(components.shares[number], share, rtol=1e-4)


def test_axes_say_how_much_lies_along_them():
    vectors = np.zeros((100, 2), "float32")
    vectors[:, 0] = np.tile([-50, -50, 50, 50], 25)
    vectors[:, 1] = np.tile([-1, 1, -1, 1], 25)
    assert axis_labels(analysis.principal_components(vectors)) == {
        "xlabel": "component 1 (100 %)",
        "ylabel": "component 2 (0.04 %)",
    }


def test_each_head_has_components_of_its_own():
    vectors = random_vectors(50, 3, 5)
    held_out = vectors[:7] + 1

    components = analysis.principal_components(vectors)
    points = analysis.project(held_out, components)

    assert points.shape == (7, 3, 2)
    for head in range(3):
        of_head = analysis.principal_components(vectors[:, head])
        for together, alone in zip(components, of_head, strict=True):
            np.testing.assert_allclose(together[head], alone, rtol=1e-5)
        np.testing.assert_allclose(
            points[:, head],
            analysis.project(held_out[:, head], of_head),
            atol=1e-4,
        )


def test_held_out_vectors_are_moved_by_the_training_mean():
    vectors = np.array([[1.0, 2.0], [5.0, 2.0], [3.0, 3.0], [3.0, 1.0]])
    components = analysis.principal_components(vectors)
    points = analysis.project(np.array([[13.0, 4.0]]), components)
    np.testing.assert_allclose(points, [[10, 2]], atol=1e-12)


def test_the_largest_element_of_an_axis_is_positive():
    vectors = random_vectors(50, 4)
    for sign in (1, -1):
        axes = analysis.principal_components(sign * vectors, 4).axes
        largest = np.abs(axes).argmax(axis=1)
        assert (axes[np.arange(4), largest] > 0).all()


def test_vectors_that_are_all_alike_have_finite_components():
    components = analysis.principal_components(np.ones((5, 3), "float32"))
    points = analysis.project(np.ones((2, 3), "float32"), components)
    assert np.isfinite(components.shares).all()
    np.testing.assert_array_equal(points, 0)


@pytest.mark.parametrize("num_components", [0, 4])
def test_there_are_no_more_components_than_elements(num_components):
    with pytest.raises(ValueError, match="at most 3 principal components"):
        analysis.principal_components(np.ones((5, 3)), num_components)


def test_relations_of_a_predinet_leave_out_its_positions(predinet, game):
    images, _ = game
    outputs = analysis.head_outputs(predinet, images)
    relations = analysis.head_relations(predinet, images)
    np.testing.assert_allclose(relations, outputs[..., :3], atol=1e-6)


def test_relations_of_an_mha_are_its_whole_outputs(mha, game):
    images, _ = game
    outputs = analysis.head_outputs(mha, images)
    relations = analysis.head_relations(mha, images)
    np.testing.assert_allclose(relations, outputs, atol=1e-6)


def test_one_panel_an_architecture_coloured_by_label():
    points = {"predinet": random_vectors(8, 2), "mha": random_vectors(8, 2) + 1}
    labels = np.arange(8, dtype="uint8") % 4

    figure = analysis.plot_components(points, labels, LABEL_NAMES)

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
    assert saved(figure)


@pytest.mark.parametrize("heads", [None, [5], [5, 0, 3]])
def test_training_and_held_out_panels_of_a_head_agree_in_limits(heads):
    points, held_out = random_vectors(20, 6, 2), 2 * random_vectors(9, 6, 2)
    labels = np.zeros(20, int), np.ones(9, int)

    figure = analysis.plot_head_components(
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
    assert saved(figure)


def test_figures_say_that_matplotlib_is_missing(no_matplotlib):
    points = {"predinet": np.zeros((2, 2))}
    with pytest.raises(ImportError, match=r"keras_relational\[plots\]"):
        analysis.plot_components(points, np.zeros(2, int), ["no"])


def saved(figure):
    content = io.BytesIO()
    figure.savefig(content)
    return content.getvalue()


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
