import keras
import numpy as np
import pytest

from experiments.context_normalization import visual_analogies as experiment
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import visual_analogies


@pytest.mark.parametrize("initial_batch", [0, 3])
def test_published_files_are_read_when_they_are_needed(initial_batch, tmp_path):
    rng = np.random.default_rng(0)
    numbers = np.arange(5)
    images = rng.integers(0, 256, (5, 9, 160, 160), "uint8")
    paths = [tmp_path / f"analogy_train_lbc_{number}.npz" for number in numbers]
    batches = experiment.VisualAnalogyFiles(
        paths, 2, 160, initial_batch, seed=1
    )
    for number, path in enumerate(paths):
        np.savez(path, image=images[number], target=number % 4)
    expected = training.Minibatches(
        numbers, numbers, 2, None, initial_batch, seed=1
    )
    for index in range(5):
        x, y = batches[index]
        rows, _ = expected[index]
        np.testing.assert_array_equal(x[..., 0], images[rows])
        np.testing.assert_array_equal(y, rows % 4)


def test_test_sets_are_of_values_never_seen_and_of_familiar_ones():
    tests = experiment.generated_tests(3, "random", 48, 7, False)
    for name, regime, number in (
        ("test", "test", 10**9),
        ("near", "train", 10**9 + 1),
    ):
        expected = visual_analogies.generate(
            3, regime, "random", 48, [7, number], distraction=False
        )
        np.testing.assert_equal(tests[name], expected)


def test_accuracies_are_of_the_first_problems():
    model = models.visual_analogy_scorer("batch", image_size=48)
    tests = experiment.generated_tests(40, image_size=48)
    measured = experiment.accuracies_of(model, tests, 34)
    x, y = (array[:34] for array in tests["near"][:2])
    assert list(measured) == ["test_accuracy", "near_accuracy"]
    assert measured["near_accuracy"] == training.accuracy(model, x, y, 32)


def test_a_digest_depends_on_names_and_contents(tmp_path):
    def digest(folder, name, pixel):
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        np.savez(path, image=np.full((9, 160, 160), pixel), target=1)
        return experiment.files_digest([path])

    first = digest("a", "1.npz", 3)
    assert digest("b", "1.npz", 3) == first
    assert digest("b", "2.npz", 3) != first
    assert digest("b", "1.npz", 4) != first


@pytest.fixture(scope="module")
def visual_scorer():
    keras.utils.set_random_seed(0)
    return models.visual_analogy_scorer(image_size=48)


def test_solved_by_kind(visual_scorer):
    problems = visual_analogies.generate(40, image_size=48, seed=0)
    shares = experiment.solved_by_kind(visual_scorer, problems)
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
    figures = experiment.evaluate(
        visual_scorer, {"own": own, "published": own[:2]}
    )
    assert set(figures) == {"own", "own_shares", "published"}
    assert figures["own"] == figures["published"]
    assert figures["own"] == training.accuracy(visual_scorer, *own[:2], 32)
    relations = visual_analogies.RELATIONS
    counts = np.bincount(own.relations, minlength=len(relations))
    shares = [figures["own_shares"][name] for name in relations]
    assert figures["own"] == pytest.approx(np.average(shares, weights=counts))
