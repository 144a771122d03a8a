import io
import itertools

import keras
import numpy as np
import pytest

from experiments.predinet import heads
from keras_relational.datasets import relations_game

ALL_SETS = np.array(list(itertools.product([False, True], repeat=4)))


def test_content_masks_follow_the_paper_pixel_by_pixel():
    images, _, _ = relations_game.generate("match_rows", 20, seed=0)
    masks = heads.content_masks(images)
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
        heads.content_masks(np.zeros((1, 32, 32, 3), "uint8"))


def planted_maps(images):
    """Head 0: both maps on objects; 1: one map; 2: background; 3: even."""
    masks = heads.content_masks(images)
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

    objects = heads.object_attention(maps, images)

    np.testing.assert_array_equal(objects[:, 0], 1)
    np.testing.assert_array_equal(objects[:, 1, 0], 1)
    np.testing.assert_array_equal(objects[:, 1, 1], 0)
    np.testing.assert_array_equal(objects[:, 2], 0)
    mean = heads.content_masks(images).mean(axis=(1, 2))
    np.testing.assert_allclose(objects[:, 3, 0], mean, atol=1e-6)
    assert heads.object_heads(objects).tolist() == [0]
    assert heads.object_heads(objects, threshold=0).tolist() == [0, 1, 2, 3]


def test_object_heads_are_judged_by_the_mean_over_images():
    objects = np.ones((10, 2, 2))
    objects[0, 0, 1] = 0  # 0.9 on average: just enough
    objects[:2, 1, 1] = 0
    assert heads.object_heads(objects).tolist() == [0]


def test_attended_locations_count_row_by_row():
    maps = np.zeros((2, 1, 2, 5, 5), "float32")
    maps[0, 0, 0, 3, 1] = 1
    maps[1, 0, 0, 0, 4] = 1
    maps[:, 0, 1] = 1 / 25
    np.testing.assert_allclose(
        heads.attended_locations(maps)[:, 0], [[16, 12], [4, 12]], rtol=1e-5
    )


@pytest.mark.parametrize("name", ["predinet", "mha", "multi_task_predinet"])
def test_head_weights_average_what_the_mlp_gives_a_head(name, request):
    model = request.getfixturevalue(name)
    kernel = keras.ops.convert_to_numpy(model.get_layer("hidden").kernel)

    weights = heads.head_weights(model)

    assert weights.shape == (4,)
    for head in range(4):
        rows = kernel[7 * head : 7 * (head + 1)]
        expected = np.mean([abs(weight) for weight in rows.flatten()])
        np.testing.assert_allclose(weights[head], expected, rtol=1e-5)


def test_head_attention_figure_shades_the_object_heads(game):
    images, _ = game
    maps = planted_maps(images)
    objects = heads.object_attention(maps, images)
    locations = heads.attended_locations(maps)

    figure = heads.plot_head_attention(
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
    figure.savefig(io.BytesIO())


def accuracies_without_heads(model, x, labels):
    """Zeroes the outputs of heads, then runs the output MLP's own layers."""
    hidden = model.get_layer("hidden")
    part = keras.Model(model.inputs, hidden.input)
    features = part.predict(x, verbose=0)
    accuracies = []
    for kept in ALL_SETS:
        pruned = features.copy()
        for head in range(4):
            if not kept[head]:
                pruned[:, 7 * head : 7 * (head + 1)] = 0
        logits = model.get_layer("logits")(hidden(pruned))
        answers = keras.ops.convert_to_numpy(logits).argmax(axis=-1)
        right = [a == b for a, b in zip(answers, labels, strict=True)]
        accuracies.append(sum(right) / len(labels))
    return accuracies


@pytest.mark.parametrize("name", ["predinet", "mha", "multi_task_predinet"])
def test_every_set_of_heads_gets_its_own_accuracy(name, game, request):
    model = request.getfixturevalue(name)
    x, labels = game
    if name == "multi_task_predinet":
        x = x, np.arange(30, dtype="uint8") % 3
    expected = accuracies_without_heads(model, x, labels)

    accuracies = heads.pruned_accuracy(model, x, labels, ALL_SETS, batch_size=7)

    assert len(set(expected)) > 3
    np.testing.assert_allclose(accuracies, expected, atol=1e-12)


def test_many_sets_are_computed_in_parts(predinet, game):
    images, labels = (np.concatenate([part] * 100) for part in game)
    kept = np.concatenate([ALL_SETS] * 4)  # 64 sets; 41 at a time
    accuracies = heads.pruned_accuracy(predinet, images, labels, kept)
    expected = heads.pruned_accuracy(predinet, *game, ALL_SETS)
    np.testing.assert_allclose(accuracies, np.tile(expected, 4))


@pytest.fixture
def drawn(monkeypatch):
    """The sets of heads that a curve asks for."""
    sets = []

    def record(model, x, labels, kept):
        sets.append(kept)
        return np.zeros(len(kept))

    monkeypatch.setattr(heads, "pruned_accuracy", record)
    return sets


def test_a_curve_draws_subsets_of_every_size(predinet, game, drawn):
    for seed in (0, 0, 1):
        heads.pruning_curve(predinet, *game, num_subsets=50, seed=seed)
    assert (drawn[0].sum(axis=1) == np.arange(1, 5).repeat(50)).all()
    # All four heads, all six pairs, all four triples and the whole.
    assert len(np.unique(drawn[0], axis=0)) == 15
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()


def test_a_curve_keeps_to_the_heads_it_is_given(predinet, game, drawn):
    curve = heads.pruning_curve(
        predinet, *game, heads=np.array([3, 1]), num_subsets=20
    )
    assert curve.shape == (2, 20)
    (kept,) = drawn
    assert not kept[:, [0, 2]].any()
    assert kept[:20, [1, 3]].any(axis=0).all()
    assert kept[20:, [1, 3]].all()


def test_a_curve_ends_at_the_full_accuracy(predinet, game):
    images, labels = game
    answers = predinet.predict(images, verbose=0).argmax(axis=-1)
    curve = heads.pruning_curve(predinet, images, labels, num_subsets=3)
    assert curve.shape == (4, 3)
    np.testing.assert_array_equal(curve[-1], np.mean(answers == labels))


def test_figure_shows_mean_and_best():
    curves = {
        "predinet": np.array([[0.2, 0.4], [0.6, 0.8], [1, 1]]),
        "mha": np.array([[0.1, 0.1], [0.1, 0.3]]),
    }

    figure = heads.plot_pruning(curves)

    (panel,) = figure.axes
    drawn = {line.get_label(): line.get_xydata().T for line in panel.lines}
    for label, sizes, expected in (
        ("predinet, mean", [1, 2, 3], [30, 70, 100]),
        ("predinet, best", [1, 2, 3], [40, 80, 100]),
        ("mha, mean", [1, 2], [10, 20]),
        ("mha, best", [1, 2], [10, 30]),
    ):
        np.testing.assert_allclose(drawn.pop(label), [sizes, expected])
    assert not drawn
    figure.savefig(io.BytesIO())
