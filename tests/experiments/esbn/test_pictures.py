import numpy as np
import pytest

from experiments.esbn import pictures
from experiments.esbn.evaluation import nearest_filler
from experiments.principal_components import principal_components
from experiments.principal_components import project
from keras_relational import analysis
from keras_relational import models
from keras_relational.datasets import distribution_of_three


@pytest.mark.parametrize(
    ("mode", "sequential", "expected"),
    [
        ("multiple_choice", "esbn", ["keys.png", "retrieval.png"]),
        ("generative", "lstm", ["predictions.png"]),
    ],
)
def test_files(mode, sequential, expected, tmp_path):
    fillers = distribution_of_three.glyphs()[:10]
    model = models.rule_learner(models.filler_autoencoder(), sequential, mode)
    problems = distribution_of_three.generate(6, range(10), mode=mode, seed=0)
    pictures.draw(model, problems, fillers, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == expected


def test_keys():
    model = models.rule_learner(
        models.filler_autoencoder("vector", 10), mode="generative"
    )
    problems = distribution_of_three.generate(
        6, range(10), mode="generative", seed=0
    )
    fillers = distribution_of_three.one_hot(10)
    found = analysis.bindings(model, fillers[problems.fillers])
    figure = pictures.plot_keys(found)
    keys = found.keys.reshape(6 * 5, 256)
    points = project(keys, principal_components(keys)).reshape(6, 5, 2)
    for step, drawn in enumerate(figure.axes[0].collections):
        np.testing.assert_allclose(drawn.get_offsets(), points[:, step])
    assert step == 4


def test_predictions():
    images = distribution_of_three.glyphs()
    predicted = images[[4, 50]] / 255 * 0.9
    figure = pictures.plot_predictions(predicted, [4, 51], images)
    shown = [panel.images[0].get_array() for panel in figure.axes]
    np.testing.assert_array_equal(shown[0], predicted[0])
    np.testing.assert_allclose(shown[4], images[50] / 255, rtol=1e-6)
    np.testing.assert_allclose(shown[5], images[51] / 255, rtol=1e-6)
    assert nearest_filler(predicted, images / 255)[1] == 50
