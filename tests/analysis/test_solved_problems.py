import keras
import numpy as np
import pytest

from keras_relational import analysis
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import visual_analogies


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return models.visual_analogy_scorer(image_size=48)


def test_solved_by_kind(model):
    problems = visual_analogies.generate(40, image_size=48, seed=0)
    shares = analysis.solved_by_kind(model, problems)
    scores = model.predict(problems.images, batch_size=32, verbose=0)
    solved = scores.argmax(1) == problems.labels
    for number, name in enumerate(visual_analogies.RELATIONS):
        assert shares[name] == solved[problems.relations == number].mean()
    targets = problems.domains[:, 1]
    for number, name in enumerate(visual_analogies.DOMAINS):
        if (targets == number).any():
            assert shares[name] == solved[targets == number].mean()
        else:
            assert name not in shares


def test_figures_of_published_problems_have_no_kinds(model):
    own = visual_analogies.generate(40, image_size=48, seed=0)
    figures = analysis.visual_analogy_figures(
        model, {"own": own, "published": own[:2]}
    )
    assert set(figures) == {"own", "own_shares", "published"}
    assert figures["own"] == figures["published"]
    assert figures["own"] == training.accuracy(model, *own[:2], 32)
    relations = visual_analogies.RELATIONS
    counts = np.bincount(own.relations, minlength=len(relations))
    shares = [figures["own_shares"][name] for name in relations]
    assert figures["own"] == pytest.approx(np.average(shares, weights=counts))
