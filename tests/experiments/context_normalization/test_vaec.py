import keras
import numpy as np
import pytest

from experiments import principal_components as components
from experiments.context_normalization.vaec import AnalogyBatches
from experiments.context_normalization.vaec import accuracy_by_dimension
from experiments.context_normalization.vaec import adapt_normalization
from experiments.context_normalization.vaec import compile_scorer
from experiments.context_normalization.vaec import embeddings
from experiments.context_normalization.vaec import level_embeddings
from experiments.context_normalization.vaec import plot_accuracy_by_region
from experiments.context_normalization.vaec import plot_level_embeddings
from experiments.context_normalization.vaec import region_accuracies
from experiments.context_normalization.vaec import solved_analogies
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import vaec

SIZE = 16


def some_problems(n=40, region=1):
    return vaec.Problems(*(x[:n] for x in vaec.generate(region=region, seed=0)))


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return models.analogy_scorer(image_size=SIZE)


@pytest.mark.parametrize("initial_batch", [0, 5])
def test_batches_are_the_problems_of_minibatches(initial_batch):
    problems, numbers = some_problems(), np.arange(40)
    batches = AnalogyBatches(problems, 10, SIZE, initial_batch, seed=3)
    expected = training.Minibatches(
        numbers, numbers, 10, None, initial_batch, seed=3
    )
    for i in range(3):
        x, y = batches[i]
        rows, _ = expected[i]
        chosen = vaec.Problems(*(part[rows] for part in problems))
        np.testing.assert_equal(x, vaec.model_inputs(chosen, SIZE))
        np.testing.assert_array_equal(y, np.zeros(10))


def test_embeddings_are_those_of_the_images(model):
    levels = some_problems(3).levels
    z = embeddings(model, levels, batch_size=5)
    encoder = model.get_layer("encoder")
    images = vaec.render(levels, SIZE)
    np.testing.assert_allclose(z, encoder(images), atol=1e-5)


@pytest.mark.parametrize("normalization", ["temporal_context", "batch"])
def test_solved_is_what_predict_says(normalization):
    keras.utils.set_random_seed(1)
    model = models.analogy_scorer(normalization, image_size=SIZE)
    problems = some_problems(21)
    scores = model.predict(
        vaec.model_inputs(problems, SIZE), batch_size=8, verbose=0
    )
    solved = solved_analogies(model, problems, batch_size=8)
    # So small, some candidates are one image: here they are encoded each, and
    # may differ by rounding.
    np.testing.assert_array_equal(
        solved, scores[:, 0] - scores[:, 1:].max(1) > 1e-7
    )
    assert 0 < solved.sum() < 21


def test_accuracies_of_regions_are_of_the_first_problems():
    model = models.analogy_scorer("batch_training_statistics", SIZE)
    regions = [some_problems(40, region) for region in vaec.REGIONS]
    measured = region_accuracies(model, regions, (1, 6), 12)
    solved = solved_analogies(model, some_problems(12, 6))
    assert list(measured) == ["region_1_accuracy", "region_6_accuracy"]
    assert measured["region_6_accuracy"] == solved.mean()


def test_a_scorer_is_compiled_for_logits(model):
    compile_scorer(model, 0.001)
    x, _ = AnalogyBatches(some_problems(), 8, SIZE)[0]
    loss, _ = model.evaluate(x, np.zeros(8), verbose=0)
    logits = model.predict(x, verbose=0)
    expected = np.log(np.exp(logits).sum(1)) - logits[:, 0]
    assert loss == pytest.approx(expected.mean(), abs=1e-5)


def test_a_problem_whose_candidates_score_alike_is_not_solved(model):
    problems = some_problems(8)
    blank = problems._replace(levels=np.full_like(problems.levels, 7))
    # Encoded once: copies of an image may differ by rounding.
    inputs = vaec.model_inputs(blank, SIZE)
    del inputs["images"]
    inputs["embeddings"] = embeddings(model, blank.levels)
    scores = model.get_layer("scorer").predict(inputs, verbose=0)
    assert (np.ptp(scores, axis=1) == 0).all()
    assert not solved_analogies(model, blank).any()
    # Nor where a foil is the same image as the answer.
    levels, rows = problems.levels.copy(), np.arange(8)
    foils, answers = problems.candidates[:, 1], problems.candidates[:, 0]
    levels[rows, foils] = levels[rows, answers]
    twice = problems._replace(levels=levels)
    assert not solved_analogies(model, twice).any()


def test_training_statistics_are_those_of_all_sequences():
    model = models.analogy_scorer("batch_training_statistics", SIZE)
    problems = some_problems(30)
    adapt_normalization(model, problems, batch_size=11)
    z = embeddings(model, problems.levels)
    sequences = np.array(
        [
            [
                [of_problem[i] for i in (*context, candidate)]
                for candidate in candidates
            ]
            for of_problem, context, candidates in zip(
                z, problems.context, problems.candidates, strict=True
            )
        ]
    )
    normalization = model.get_layer("scorer").get_layer("normalization")
    np.testing.assert_allclose(normalization.mean, sequences.mean(0), atol=1e-5)
    np.testing.assert_allclose(
        normalization.variance, sequences.var(0), atol=1e-5
    )


def test_other_normalizations_have_nothing_to_adapt(model):
    before = model.get_weights()
    adapt_normalization(model, some_problems(3))
    np.testing.assert_equal(model.get_weights(), before)


def test_accuracy_by_dimension():
    problems = vaec.generate("scale", 4, seed=0)
    solved = np.random.default_rng(0).random(len(problems.levels)) < 0.4
    solved[problems.dimension == 2] = True
    shares = accuracy_by_dimension(problems, solved)
    assert list(shares) == ["all", *vaec.DIMENSIONS]
    assert shares["size"] == 1
    assert shares["y"] == pytest.approx(0.4, abs=0.03)
    assert shares["all"] == pytest.approx(solved.mean())


def test_level_embeddings(model):
    z = level_embeddings(model, "size")
    assert z.shape == (42, 256)
    # Level 20 lies in region 3, whose middle level is 17.
    expected = embeddings(model, np.array([17, 17, 20, 17]))
    np.testing.assert_allclose(z[20], expected, atol=1e-6)


def test_plot_level_embeddings(model):
    figure = plot_level_embeddings(model)
    *panels, _ = figure.axes
    assert [panel.get_title() for panel in panels] == list(vaec.DIMENSIONS)
    z = level_embeddings(model, "x")
    found = components.principal_components(z)
    np.testing.assert_allclose(
        panels[0].collections[0].get_offsets(),
        components.project(z, found),
        atol=1e-5,
    )
    assert len(panels[0].lines) == 6


def test_plot_accuracy_by_region():
    regions = [
        {kind: (r + i) / 12 for i, kind in enumerate(("all", *vaec.DIMENSIONS))}
        for r in vaec.REGIONS
    ]
    figure = plot_accuracy_by_region({"one": regions, "two": regions})
    titles = [panel.get_title() for panel in figure.axes]
    assert titles == ["all", *vaec.DIMENSIONS]
    line = figure.axes[1].lines[0]
    np.testing.assert_allclose(
        line.get_ydata(), [100 * (r + 1) / 12 for r in vaec.REGIONS]
    )


@pytest.mark.slow
def test_learns_to_extrapolate():
    """On small images, in some minutes: the way, not the figures of Table 1."""
    accuracy = {}
    for normalization in ("temporal_context", "batch_training_statistics"):
        keras.utils.set_random_seed(0)
        model = models.analogy_scorer(normalization, 32)
        model.compile(
            keras.optimizers.Adam(5e-4),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=keras.backend.backend() == "jax",
        )
        problems = vaec.generate(seed=0)
        model.fit(
            AnalogyBatches(problems, 32, 32),
            steps_per_epoch=2_000,
            shuffle=False,
            verbose=0,
        )
        adapt_normalization(model, problems)
        accuracy[normalization] = [
            solved_analogies(model, vaec.generate(region=r, seed=0)).mean()
            for r in vaec.REGIONS
        ]
    assert accuracy["temporal_context"][0] > 0.8
    far = {name: np.mean(regions[1:]) for name, regions in accuracy.items()}
    assert far["temporal_context"] > far["batch_training_statistics"] + 0.15
