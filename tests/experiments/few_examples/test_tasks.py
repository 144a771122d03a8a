import keras
import pytest

from experiments.few_examples.tasks import TASKS
from experiments.few_examples.tasks import model_and_data
from keras_relational import training


@pytest.mark.parametrize("task", TASKS)
def test_model_and_data_fit(task):
    model, parts = model_and_data(task, "abstractor", 30, seed=1)
    for x, y in parts:
        few = keras.tree.map_structure(lambda array: array[:4], x)
        logits = model.predict(few, verbose=0)
        assert logits.shape[:-1] == y[:4].shape
    assert training.accuracy(model, *parts[0]) < 0.8
