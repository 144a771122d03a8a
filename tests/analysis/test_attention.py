import io

import keras
import numpy as np
import pytest
from equations import softmax
from layers_for_tests import weights_of

from keras_relational import analysis
from keras_relational.layers import PrediNet


def entities_of(model, images):
    part = keras.Model(model.inputs[0], model.get_layer("central").input)
    entities = part.predict(images, verbose=0).astype("float64")
    return entities.reshape(len(images), 25, -1)


def test_predinet_maps_are_the_softmax_of_each_query(predinet, game):
    images, _ = game
    weights = weights_of(predinet.get_layer("central"))

    maps = analysis.attention_maps(predinet, images, batch_size=7)

    assert maps.shape == (30, 4, 2, 5, 5)
    assert maps.dtype == "float32"
    assert (
        0.2 < maps.max(axis=(3, 4)).mean() < 0.9
    )  # neither even nor all on one
    for image, entities in enumerate(entities_of(predinet, images)):
        keys = entities @ weights["key_kernel"]
        for head in range(4):
            for number in range(2):
                start = 16 * (4 * number + head)
                kernel = weights["query_kernel"][:, start : start + 16]
                expected = softmax(keys @ (entities.flatten() @ kernel))
                np.testing.assert_allclose(
                    maps[image, head, number],
                    expected.reshape(5, 5),
                    atol=2e-4,
                )


def test_mha_map_is_the_share_of_each_value_in_the_output(mha, game):
    images, _ = game
    weights = weights_of(mha.get_layer("central"))

    maps = analysis.attention_maps(mha, images, batch_size=7)
    central = keras.Model(mha.inputs, mha.get_layer("central").output)
    outputs = central.predict(images, verbose=0).reshape(30, 4, -1)

    assert maps.shape == (30, 4, 1, 5, 5)
    for image, entities in enumerate(entities_of(mha, images)):
        for head in range(4):
            queries, keys = (
                entities @ weights[name][:, 16 * head : 16 * (head + 1)]
                for name in ("query_kernel", "key_kernel")
            )
            values = (
                entities @ weights["value_kernel"][:, 7 * head : 7 * (head + 1)]
            )
            received = np.zeros(25)
            for weight, query in zip(
                weights["position_kernel"][:, head], queries, strict=True
            ):
                received += weight * softmax(keys @ query)
            np.testing.assert_allclose(
                received @ values, outputs[image, head], atol=1e-4
            )
            expected = np.abs(received) / np.abs(received).sum()
            np.testing.assert_allclose(
                maps[image, head, 0], expected.reshape(5, 5), atol=1e-4
            )


def test_maps_need_a_central_module_that_reads_an_image(game):
    inputs = keras.Input((36, 36, 3))
    entities = keras.layers.Reshape((36, 108))(inputs)
    model = keras.Model(inputs, PrediNet(2, 3, 4, name="central")(entities))
    with pytest.raises(ValueError, match=r"set of shape \(None, 36, 108\)"):
        analysis.attention_maps(model, game[0])


def some_maps(number):
    maps = np.random.default_rng(0).random((number, 4, 2, 5, 5), "float32")
    return maps / maps.sum(axis=(3, 4), keepdims=True)


def test_heat_maps_lie_on_what_each_location_sees(game):
    images, _ = game
    maps = some_maps(len(images))

    figure = analysis.plot_attention_maps(images[:2], maps[:2], heads=[2, 0])

    panels = figure.axes[:10]
    titles = [panel.get_title() for panel in panels[:5]]
    assert titles == [
        "image",
        "head 2, E1",
        "head 2, E2",
        "head 0, E1",
        "head 0, E2",
    ]
    image, heat = panels[8].images  # second image, head 0, E1
    np.testing.assert_array_equal(image.get_array(), images[1].mean(axis=-1))
    np.testing.assert_array_equal(heat.get_array(), maps[1, 0, 0])
    left, right, bottom, top = heat.get_extent()
    # The middle of the first location's 12 pixels, and of the last one's.
    cell = (right - left) / 5
    assert (left + cell / 2, right - cell / 2) == (5.5, 29.5)
    assert (top + cell / 2, bottom - cell / 2) == (5.5, 29.5)
    figure.savefig(io.BytesIO())


def test_heat_maps_of_an_mha_have_one_column_a_head(mha, game):
    images, _ = game
    maps = analysis.attention_maps(mha, images[:1])
    figure = analysis.plot_attention_maps(images[:1], maps)
    titles = [panel.get_title() for panel in figure.axes[:5]]
    assert titles == ["image", "head 0", "head 1", "head 2", "head 3"]
    figure.savefig(io.BytesIO())


def test_there_are_heat_maps_for_each_image(game):
    images, _ = game
    with pytest.raises(ValueError, match="maps for each image"):
        analysis.plot_attention_maps(images, some_maps(5))


def test_maps_of_a_model_with_a_mask():
    """They are those of the layer with that mask: zero where nothing is."""
    images = keras.Input((36, 36, 3), dtype="uint8")
    x = keras.layers.Rescaling(1 / 255)(images)
    x = keras.layers.Conv2D(4, 12, strides=6, activation="relu")(x)
    mask = keras.ops.any(x > 0.05, axis=-1)
    central = PrediNet(2, 3, 4, name="central")
    model = keras.Model(images, central(x, mask=mask))
    some = np.random.default_rng(0).integers(256, size=(3, 36, 36, 3))
    some[:, :12, :12] = 0
    maps = analysis.attention_maps(model, some.astype("uint8"))
    entities, there = keras.Model(images, [x, mask])(some.astype("uint8"))
    there = keras.ops.convert_to_numpy(there)
    assert there.any()
    assert not there.all()
    assert not maps.transpose(0, 3, 4, 1, 2)[~there].any()
    _, expected = central(entities, mask=there, return_attention_scores=True)
    expected = keras.ops.stack(expected, axis=2)
    expected = keras.ops.reshape(expected, maps.shape)
    np.testing.assert_allclose(maps, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["predinet", "multi_task_predinet"])
def test_the_effect_of_a_head_is_what_its_mean_would_change(
    name, game, request
):
    model = request.getfixturevalue(name)
    images = game[0]
    x, others = images[:5], images[5:]
    if name == "multi_task_predinet":
        tasks = np.arange(30, dtype="uint8") % 3
        x, others = (x, tasks[:5]), (others, tasks[5:])
    effects = analysis.head_effects(model, x, others, batch_size=7)

    hidden, last = model.get_layer("hidden"), model.get_layer("logits")
    part = keras.Model(model.inputs, hidden.input)
    features, means = (part.predict(z, verbose=0) for z in (x, others))
    for head in range(4):
        one = slice(7 * head, 7 * (head + 1))
        without = features.copy()
        without[:, one] = means[:, one].mean(axis=0)
        change = last(hidden(features)) - last(hidden(without))
        change = keras.ops.convert_to_numpy(change)
        assert np.abs(change).max() > 1e-3
        np.testing.assert_allclose(effects[:, head], change, atol=1e-5)
