import keras
import numpy as np
import pytest

from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import ordered_objects


def small_model():
    keras.utils.set_random_seed(0)
    return models.set_classifier("mlp", 2, 6)


def data():
    return ordered_objects.load_pairs(10, 6, seed=0)


def test_what_counts_is_the_test_at_the_best_validation(tmp_path):
    with runs.Run(tmp_path / "run", "few", {}) as run:
        found = training.accuracy_after_few(
            *(small_model(), *data()),
            num_train=20,
            epochs=20,
            batch_size=8,
            run=run,
            part="mlp",
            verbose=0,
        )
        run.finish({})
    curves = runs.read_curves(tmp_path / "run" / "mlp" / "curves.csv")
    validation = curves["validation_accuracy"]
    assert len(validation) == 40
    assert curves["batches"][-1] == 80  # 20 passes of 3 batches, rounded up.
    best = validation.index(max(validation))
    assert found == pytest.approx(curves["test_accuracy"][best])


def test_only_the_first_examples_are_seen():
    (x, y), *others = data()
    sizes = {"num_train": 8, "epochs": 2}
    found = []
    for end in (np.full_like(x[8:], np.nan), x[8:]):
        model = small_model()
        train = np.concatenate([x[:8], end]), y
        share = training.accuracy_after_few(
            model, train, *others, **sizes, verbose=0
        )
        found.append((share, model.get_weights()))
    assert found[0][0] == found[1][0]
    for one, other in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_refuses_more_examples_than_there_are():
    with pytest.raises(ValueError, match="There are 45 training examples"):
        training.accuracy_after_few(small_model(), *data(), 46, 5)


def test_abstractor_learns_an_order_from_pairs():
    keras.utils.set_random_seed(0)
    model = models.set_classifier("abstractor", 2, 8)
    parts = ordered_objects.load_pairs(16, 8, seed=0)
    share = training.accuracy_after_few(model, *parts, 120, 100, verbose=0)
    assert share > 0.75


class Sorter(keras.Model):
    """Sorts by the first feature, and goes on from the place before."""

    def call(self, inputs):
        entities, places = inputs
        ops = keras.ops
        order = ops.argsort(entities[..., 0], axis=1)
        n = order.shape[1]
        # The rank after that of the place it was given.
        ranks = ops.argsort(order, axis=1)
        ranks = ops.concatenate([ranks, -ops.ones_like(ranks[:, :1])], axis=1)
        rank = ops.take_along_axis(ranks, places, axis=1) + 1
        place = ops.take_along_axis(order, ops.minimum(rank, n - 1), axis=1)
        return ops.one_hot(place, n)


def test_sorted_places_go_on_from_their_own():
    entities = np.random.default_rng(0).normal(size=(7, 5, 3))
    places = training.sorted_places(Sorter(), entities, batch_size=3)
    np.testing.assert_array_equal(places, entities[..., 0].argsort(1))
    assert places.dtype == np.int32


def test_places_so_far_begin_with_nothing():
    places = np.array([[1, 0, 2], [2, 1, 0]])
    expected = [[3, 1, 0], [3, 2, 1]]
    np.testing.assert_array_equal(training.places_so_far(places), expected)


@pytest.mark.parametrize("task", training.FEW_EXAMPLES)
def test_model_and_data_fit(task):
    model, parts = training.model_and_data(task, "abstractor", 30, seed=1)
    for x, y in parts:
        few = keras.tree.map_structure(lambda array: array[:4], x)
        logits = model.predict(few, verbose=0)
        assert logits.shape[:-1] == y[:4].shape
    assert training.accuracy(model, *parts[0]) < 0.8
    with pytest.raises(ValueError, match="Unknown task 'sums'"):
        training.model_and_data("sums", "abstractor")
    with pytest.raises(ValueError, match="Unknown reasoner 'gru'"):
        training.model_and_data(task, "gru")
