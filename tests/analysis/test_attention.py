import io

import keras
import numpy as np
import pytest

from keras_relational import analysis
from keras_relational.datasets import relations_game
from keras_relational.layers import PrediNet


def softmax(logits):
    exponentials = np.exp(logits - logits.max())
    return exponentials / exponentials.sum()


def entities_of(model, images):
    part = keras.Model(model.inputs[0], model.get_layer("central").input)
    entities = part.predict(images, verbose=0).astype("float64")
    return entities.reshape(len(images), 25, -1)


def weights_of(model):
    return {
        weight.name: keras.ops.convert_to_numpy(weight).astype("float64")
        for weight in model.get_layer("central").weights
    }


def test_predinet_maps_are_the_softmax_of_each_query(predinet, game):
    images, _ = game
    weights = weights_of(predinet)

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
    weights = weights_of(mha)

    maps = analysis.attention_maps(mha, images, batch_size=7)
    outputs = analysis.head_outputs(mha, images)

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
    from keras_relational.layers import PrediNet

    inputs = keras.Input((36, 36, 3))
    entities = keras.layers.Reshape((36, 108))(inputs)
    model = keras.Model(inputs, PrediNet(2, 3, 4, name="central")(entities))
    with pytest.raises(ValueError, match=r"set of shape \(None, 36, 108\)"):
        analysis.attention_maps(model, game[0])


def block_on_tile(image, row, column):
    """A single 3×3 block at the object's corner; the rest of it is black."""
    top, left = 12 * row + 1, 12 * column + 1
    image[top : top + 3, left : left + 3, 1] = 64


def test_content_mask_of_one_object_in_the_corner():
    image = np.zeros((36, 36, 3), "uint8")
    block_on_tile(image, 0, 0)
    expected = np.zeros((5, 5))
    expected[:2, :2] = 0.5
    expected[0, 0] = 1
    np.testing.assert_array_equal(
        analysis.content_masks(image[None])[0], expected
    )


def test_content_mask_between_two_neighbours_is_1():
    image = np.zeros((36, 36, 3), "uint8")
    block_on_tile(image, 2, 1)
    block_on_tile(image, 2, 2)
    expected = [
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0.5, 0.5, 0.5, 0.5],
        [0, 0.5, 1, 1, 1],
    ]
    np.testing.assert_array_equal(
        analysis.content_masks(image[None])[0], expected
    )


def test_content_masks_follow_the_paper_pixel_by_pixel():
    images, _, _ = relations_game.generate("match_rows", 20, seed=0)
    masks = analysis.content_masks(images)
    for image, mask in zip(images, masks, strict=True):
        for row in range(5):
            for column in range(5):
                count = 0
                for y in range(6 * row, 6 * row + 12):
                    for x in range(6 * column, 6 * column + 12):
                        top, left = y // 12 * 12, x // 12 * 12
                        tile = image[top : top + 12, left : left + 12]
                        count += bool(tile.any())
                share = count / 144
                expected = 1 if share > 0.9 else 0.5 if share > 0 else 0
                assert mask[row, column] == expected


def test_content_masks_refuse_images_of_another_size():
    with pytest.raises(ValueError, match=r"images.shape=\(1, 32, 32, 3\)"):
        analysis.content_masks(np.zeros((1, 32, 32, 3), "uint8"))


def planted_maps(images):
    """Head 0: both maps on objects; 1: one map; 2: background; 3: even."""
    masks = analysis.content_masks(images)
    maps = np.zeros((len(images), 4, 2, 5, 5), "float32")
    for mask, of_image in zip(masks, maps, strict=True):
        objects, background = np.argwhere(mask == 1), np.argwhere(mask == 0)
        first, last, empty = objects[0], objects[-1], background[0]
        for head, number, (row, column) in (
            (0, 0, first),
            (0, 1, last),
            (1, 0, first),
            (1, 1, empty),
            (2, 0, empty),
            (2, 1, empty),
        ):
            of_image[head, number, row, column] = 1
        of_image[3] = 1 / 25
    return maps


def test_planted_attention_to_objects_is_found(game):
    images, _ = game
    maps = planted_maps(images)

    objects = analysis.object_attention(maps, images)

    np.testing.assert_array_equal(objects[:, 0], 1)
    np.testing.assert_array_equal(objects[:, 1, 0], 1)
    np.testing.assert_array_equal(objects[:, 1, 1], 0)
    np.testing.assert_array_equal(objects[:, 2], 0)
    mean = analysis.content_masks(images).mean(axis=(1, 2))
    np.testing.assert_allclose(objects[:, 3, 0], mean, atol=1e-6)
    assert analysis.object_heads(objects).tolist() == [0]
    assert analysis.object_heads(objects, threshold=0).tolist() == [0, 1, 2, 3]


def test_object_heads_are_judged_by_the_mean_over_images():
    objects = np.ones((10, 2, 2))
    objects[0, 0, 1] = 0  # 0.9 on average: just enough
    objects[:2, 1, 1] = 0
    assert analysis.object_heads(objects).tolist() == [0]


def test_maps_and_images_must_belong_together(game):
    images, _ = game
    maps = planted_maps(images)
    with pytest.raises(ValueError, match="same batch"):
        analysis.object_attention(maps[:5], images)
    with pytest.raises(ValueError, match="same batch"):
        analysis.object_attention(maps[..., :4], images)
    with pytest.raises(ValueError, match="maps for each image"):
        analysis.plot_attention_maps(images, maps[:5])


def test_attended_locations_count_row_by_row():
    maps = np.zeros((2, 1, 2, 5, 5), "float32")
    maps[0, 0, 0, 3, 1] = 1
    maps[1, 0, 0, 0, 4] = 1
    maps[:, 0, 1] = 1 / 25
    np.testing.assert_allclose(
        analysis.attended_locations(maps)[:, 0], [[16, 12], [4, 12]], rtol=1e-5
    )


@pytest.mark.parametrize("name", ["predinet", "mha", "multi_task_predinet"])
def test_head_weights_average_what_the_mlp_gives_a_head(name, request):
    model = request.getfixturevalue(name)
    kernel = keras.ops.convert_to_numpy(model.get_layer("hidden").kernel)

    weights = analysis.head_weights(model)

    assert weights.shape == (4,)
    for head in range(4):
        rows = kernel[7 * head : 7 * (head + 1)]
        expected = np.mean([abs(weight) for weight in rows.flatten()])
        np.testing.assert_allclose(weights[head], expected, rtol=1e-5)


def test_heat_maps_lie_on_what_each_location_sees(game):
    images, _ = game
    maps = planted_maps(images)

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
    assert saved(figure).startswith(b"\x89PNG")


def test_heat_maps_of_an_mha_have_one_column_a_head(mha, game):
    images, _ = game
    maps = analysis.attention_maps(mha, images[:1])
    figure = analysis.plot_attention_maps(images[:1], maps)
    titles = [panel.get_title() for panel in figure.axes[:5]]
    assert titles == ["image", "head 0", "head 1", "head 2", "head 3"]
    assert saved(figure)


def test_head_attention_figure_shades_the_object_heads(game):
    images, _ = game
    maps = planted_maps(images)
    objects = analysis.object_attention(maps, images)
    locations = analysis.attended_locations(maps)

    figure = analysis.plot_head_attention(
        objects, locations, np.array([0.4, 0.3, 0.2, 0.1])
    )

    top, middle, bottom = figure.axes
    for panel, values in ((top, objects), (middle, locations)):
        for number, container in enumerate(panel.containers):
            means = container.lines[0].get_ydata()
            np.testing.assert_array_equal(means, values[..., number].mean(0))
    heights = [bar.get_height() for bar in bottom.containers[0]]
    assert heights == [0.4, 0.3, 0.2, 0.1]
    (shade,) = top.patches
    assert shade.get_x() == -0.5
    assert saved(figure)


def test_figures_say_that_matplotlib_is_missing(no_matplotlib, game):
    images, _ = game
    with pytest.raises(ImportError, match=r"keras_relational\[plots\]"):
        analysis.plot_attention_maps(images, planted_maps(images))


def saved(figure):
    content = io.BytesIO()
    figure.savefig(content)
    return content.getvalue()


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
