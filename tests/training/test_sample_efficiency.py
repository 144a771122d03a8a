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
    np.testing.assert_equal(*found)


def test_refuses_more_examples_than_there_are():
    with pytest.raises(ValueError, match="There are 45 training examples"):
        training.accuracy_after_few(small_model(), *data(), 46, 5)


@pytest.mark.slow
def test_abstractor_learns_an_order_from_pairs():
    model = models.set_classifier("abstractor", 2, 8)
    parts = ordered_objects.load_pairs(16, 8, seed=0)
    share = training.accuracy_after_few(model, *parts, 120, 100, verbose=0)
    assert share > 0.75
