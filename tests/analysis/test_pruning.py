import io
import itertools

import keras
import numpy as np
import pytest

from keras_relational import analysis
from keras_relational.analysis import pruning

ALL_SETS = np.array(list(itertools.product([False, True], repeat=4)))


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


@pytest.mark.parametrize("name", ["predinet", "mha"])
def test_every_set_of_heads_gets_its_own_accuracy(name, game, request):
    model = request.getfixturevalue(name)
    expected = accuracies_without_heads(model, *game)

    accuracies = analysis.pruned_accuracy(model, *game, ALL_SETS, batch_size=7)

    assert len(set(expected)) > 3
    np.testing.assert_allclose(accuracies, expected, atol=1e-12)


def test_the_task_stays_when_heads_go(multi_task_predinet, game):
    images, labels = game
    x = images, np.arange(30, dtype="uint8") % 3
    expected = accuracies_without_heads(multi_task_predinet, x, labels)
    accuracies = analysis.pruned_accuracy(
        multi_task_predinet, x, labels, ALL_SETS
    )
    np.testing.assert_allclose(accuracies, expected, atol=1e-12)


def test_all_heads_give_the_full_accuracy_and_none_that_of_biases(
    predinet, game
):
    images, labels = game
    answers = predinet.predict(images, verbose=0).argmax(axis=-1)
    hidden_bias, kernel, bias = (
        keras.ops.convert_to_numpy(weight)
        for weight in (
            predinet.get_layer("hidden").bias,
            predinet.get_layer("logits").kernel,
            predinet.get_layer("logits").bias,
        )
    )
    constant = (np.maximum(hidden_bias, 0) @ kernel + bias).argmax()

    full, none = analysis.pruned_accuracy(
        predinet, images, labels, np.array([[True] * 4, [False] * 4])
    )

    assert full == np.mean(answers == labels)
    assert none == np.mean(labels == constant)
    assert full != none


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


def test_many_sets_are_computed_in_parts(predinet, game):
    images, labels = (np.concatenate([part] * 100) for part in game)
    kept = np.concatenate([ALL_SETS] * 4)  # 64 sets; 41 at a time
    accuracies = analysis.pruned_accuracy(predinet, images, labels, kept)
    expected = analysis.pruned_accuracy(predinet, *game, ALL_SETS)
    np.testing.assert_allclose(accuracies, np.tile(expected, 4))


@pytest.mark.parametrize("shape", [(4,), (2, 5)])
def test_sets_of_another_number_of_heads_are_refused(shape, predinet, game):
    with pytest.raises(ValueError, match=r"\(num_sets, 4\)"):
        analysis.pruned_accuracy(predinet, *game, np.ones(shape, bool))


@pytest.fixture
def drawn(monkeypatch):
    """The sets of heads that a curve asks for."""
    sets = []

    def record(model, x, labels, kept, batch_size):
        sets.append(kept)
        return np.zeros(len(kept))

    monkeypatch.setattr(pruning, "pruned_accuracy", record)
    return sets


def test_a_curve_draws_subsets_of_every_size(predinet, game, drawn):
    for seed in (0, 0, 1):
        analysis.pruning_curve(predinet, *game, num_subsets=50, seed=seed)
    assert (drawn[0].sum(axis=1) == np.arange(1, 5).repeat(50)).all()
    # All four heads, all six pairs, all four triples and the whole.
    assert len(np.unique(drawn[0], axis=0)) == 15
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()


def test_a_curve_keeps_to_the_heads_it_is_given(predinet, game, drawn):
    curve = analysis.pruning_curve(
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
    curve = analysis.pruning_curve(predinet, images, labels, num_subsets=3)
    assert curve.shape == (4, 3)
    np.testing.assert_array_equal(curve[-1], np.mean(answers == labels))


@pytest.mark.parametrize("heads", [[], [4], [-1, 2]])
def test_heads_that_there_are_not_are_refused(heads, predinet, game):
    with pytest.raises(ValueError, match="heads 0 to 3"):
        analysis.pruning_curve(predinet, *game, heads=heads)


def test_figure_shows_mean_and_best():
    curves = {
        "predinet": np.array([[0.2, 0.4], [0.6, 0.8], [1, 1]]),
        "mha": np.array([[0.1, 0.1], [0.1, 0.3]]),
    }

    figure = analysis.plot_pruning(curves)

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
    content = io.BytesIO()
    figure.savefig(content)
    assert content.getvalue()


def test_figure_says_that_matplotlib_is_missing(no_matplotlib):
    with pytest.raises(ImportError, match=r"keras_relational\[plots\]"):
        analysis.plot_pruning({"predinet": np.zeros((2, 2))})
