"""What models make of VAEC, and of visual analogies."""

import keras
import numpy as np
import pytest

from keras_relational import analysis
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import vaec
from keras_relational.datasets import visual_analogies


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return models.analogy_scorer(image_size=16)


def test_accuracy_by_dimension():
    problems = vaec.generate("scale", 4, seed=0)
    solved = np.random.default_rng(0).random(len(problems.levels)) < 0.4
    solved[problems.dimension == 2] = True
    shares = analysis.accuracy_by_dimension(problems, solved)
    assert list(shares) == ["all", *vaec.DIMENSIONS]
    assert shares["size"] == 1
    assert shares["y"] == pytest.approx(0.4, abs=0.03)
    assert shares["all"] == pytest.approx(solved.mean())


def test_level_embeddings(model):
    z = analysis.level_embeddings(model, "size")
    assert z.shape == (42, 256)
    # Level 20 lies in region 3, whose middle level is 17.
    expected = training.embeddings(model, np.array([17, 17, 20, 17]))
    np.testing.assert_allclose(z[20], expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"'hue'.*brightness"):
        analysis.level_embeddings(model, "hue")


def test_plot_level_embeddings(model):
    figure = analysis.plot_level_embeddings(model)
    *panels, _ = figure.axes
    assert [panel.get_title() for panel in panels] == list(vaec.DIMENSIONS)
    z = analysis.level_embeddings(model, "x")
    components = analysis.components.principal_components(z)
    np.testing.assert_allclose(
        panels[0].collections[0].get_offsets(),
        analysis.components.project(z, components),
        atol=1e-5,
    )
    assert len(panels[0].lines) == 6


def test_plot_accuracy_by_region():
    regions = [
        {kind: (r + i) / 12 for i, kind in enumerate(("all", *vaec.DIMENSIONS))}
        for r in vaec.REGIONS
    ]
    figure = analysis.plot_accuracy_by_region({"one": regions, "two": regions})
    titles = [panel.get_title() for panel in figure.axes]
    assert titles == ["all", *vaec.DIMENSIONS]
    line = figure.axes[1].lines[0]
    np.testing.assert_allclose(
        line.get_ydata(), [100 * (r + 1) / 12 for r in vaec.REGIONS]
    )


def test_draw_analogies(model, tmp_path):
    shares = dict.fromkeys(("all", *vaec.DIMENSIONS), 0.5)
    analysis.draw_analogies(model, 6 * [shares], tmp_path)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["accuracy.png", "embeddings.png"]


def test_figures_need_matplotlib(no_matplotlib):
    with pytest.raises(ImportError, match="plots"):
        analysis.plot_accuracy_by_region({})


@pytest.fixture(scope="module")
def visual_scorer():
    keras.utils.set_random_seed(0)
    return models.visual_analogy_scorer(image_size=48)


def test_solved_by_kind(visual_scorer):
    problems = visual_analogies.generate(40, image_size=48, seed=0)
    shares = analysis.solved_by_kind(visual_scorer, problems)
    scores = visual_scorer.predict(problems.images, batch_size=32, verbose=0)
    solved = scores.argmax(1) == problems.labels
    for number, name in enumerate(visual_analogies.RELATIONS):
        assert shares[name] == solved[problems.relations == number].mean()
    targets = problems.domains[:, 1]
    for number, name in enumerate(visual_analogies.DOMAINS):
        if (targets == number).any():
            assert shares[name] == solved[targets == number].mean()
        else:
            assert name not in shares


def test_figures_of_published_problems_have_no_kinds(visual_scorer):
    own = visual_analogies.generate(40, image_size=48, seed=0)
    figures = analysis.visual_analogy_figures(
        visual_scorer, {"own": own, "published": own[:2]}
    )
    assert set(figures) == {"own", "own_shares", "published"}
    assert figures["own"] == figures["published"]
    assert figures["own"] == training.accuracy(visual_scorer, *own[:2], 32)
    relations = visual_analogies.RELATIONS
    counts = np.bincount(own.relations, minlength=len(relations))
    shares = [figures["own_shares"][name] for name in relations]
    assert figures["own"] == pytest.approx(np.average(shares, weights=counts))
