import itertools

import numpy as np
import pytest
from PIL import Image

from keras_relational.datasets import distribution_of_three
from keras_relational.datasets.distribution_of_three import generate
from keras_relational.datasets.distribution_of_three import load_data


class TestDistributionOfThree:
    def test_the_missing_filler_is_the_answer(self):
        fillers, labels = generate(3_000, range(20), seed=0)
        for problem, label in zip(fillers.tolist(), labels, strict=True):
            first, second, options = problem[:3], problem[3:5], problem[5:]
            assert len(set(first)) == 3
            assert {*second, options[label]} == set(first)
            # The first row, and one filler more.
            assert set(first) < set(options)
            assert len(set(options)) == 4
        assert np.bincount(labels, minlength=4).min() > 650
        assert set(np.unique(fillers)) == set(range(20))

    def test_the_answer_itself(self):
        fillers, labels = generate(300, range(7, 12), mode="generative", seed=0)
        assert fillers.shape == (300, 5)
        for problem, answer in zip(fillers.tolist(), labels, strict=True):
            assert {*problem[3:], answer} == set(problem[:3])

    def test_all_problems_of_few_fillers(self):
        fillers, _ = generate(36, [5, 8, 9], mode="generative", seed=0)
        orders = list(itertools.permutations([5, 8, 9]))
        expected = {(*a, *b[:2]) for a in orders for b in orders}
        assert set(map(tuple, fillers.tolist())) == expected
        with pytest.raises(ValueError, match=r"at most 36.*size=37"):
            generate(37, [5, 8, 9], mode="generative")
        assert (
            distribution_of_three.num_problems("distribution_of_three", 100)
            == 36 * 161_700
        )

    def test_no_problem_twice(self):
        fillers, _ = generate(360, range(5), seed=0)
        assert len(np.unique(fillers[:, :5], axis=0)) == 360


def test_option_orders():
    problems = generate(50, range(20), seed=0)
    fillers, labels = distribution_of_three.option_orders(problems)
    np.testing.assert_array_equal(fillers[:50], problems.fillers)
    np.testing.assert_array_equal(labels[:50], problems.labels)
    np.testing.assert_array_equal(
        fillers[:, :5], np.tile(problems.fillers[:, :5], (24, 1))
    )
    answers = problems.fillers[np.arange(50), 5 + problems.labels]
    np.testing.assert_array_equal(
        fillers[np.arange(1200), 5 + labels], np.tile(answers, 24)
    )
    for options in fillers[:, 5:].reshape(24, 50, 4).swapaxes(0, 1):
        expected = set(itertools.permutations(options[0].tolist()))
        assert set(map(tuple, options.tolist())) == expected
    with pytest.raises(ValueError, match=r"multiple choice.*\(3, 5\)"):
        distribution_of_three.option_orders(generate(3, mode="generative"))


def test_identity_rules():
    fillers, labels = generate(3_000, range(12), "identity_rules", seed=0)
    rules = []
    for problem, label in zip(fillers.tolist(), labels, strict=True):
        first, second = problem[:3], [*problem[3:5], problem[5 + label]]
        shapes = [tuple(map(row.index, row)) for row in (first, second)]
        assert shapes[0] == shapes[1]
        assert not set(first) & set(second)
        assert len(set(problem[5:])) == 4
        rules.append(shapes[0])
    counts = {rule: rules.count(rule) for rule in set(rules)}
    assert counts == {(0, 1, 0): 1_000, (0, 1, 1): 1_000, (0, 0, 0): 1_000}
    fillers, answers = generate(
        99, range(4), "identity_rules", "generative", seed=0
    )
    for problem, answer in zip(fillers.tolist(), answers.tolist(), strict=True):
        row = [*problem[3:], answer]
        assert list(map(row.index, row)) == list(
            map(problem[:3].index, problem[:3])
        )


@pytest.mark.parametrize("num_fillers", [5, 50])
def test_relational_match_to_sample(num_fillers):
    fillers, labels = generate(
        1_000, range(num_fillers), "relational_match_to_sample", seed=0
    )
    alike = fillers[:, ::2] == fillers[:, 1::2]
    assert alike[:, 0].sum() == 500
    np.testing.assert_array_equal(
        alike[np.arange(1_000), 1 + labels], alike[:, 0]
    )
    assert (alike[:, 1] != alike[:, 2]).all()
    # The pairs share no filler.
    for pair, other in itertools.combinations(range(3), 2):
        one = fillers[:, 2 * pair : 2 * pair + 2]
        two = fillers[:, 2 * other : 2 * other + 2]
        assert (one[:, :, None] != two[:, None]).all()


def test_five_fillers_make_480_matches_to_sample():
    fillers, _ = generate(
        20_000, range(5), "relational_match_to_sample", seed=0
    )
    assert len(np.unique(fillers, axis=0)) == 480


def test_same_different():
    fillers, labels = generate(1_000, range(3), "same_different", seed=0)
    np.testing.assert_array_equal(fillers[:, 0] == fillers[:, 1], labels)
    assert labels.sum() == 500


@pytest.mark.parametrize("task", distribution_of_three.TASKS)
def test_withheld_fillers_are_not_trained_on(task):
    (x, y), (x_test, y_test) = load_data(95, task, num_test=500, seed=1)
    assert set(np.unique(x)) == set(range(5))
    assert x_test.min() == 5
    assert x_test.max() == 99
    assert len(y_test) == 500
    assert len(y) == (360 if task == "distribution_of_three" else 10_000)


@pytest.mark.parametrize(
    ("task", "num_train", "num_test"),
    [
        *((task, 10_000, 10_000) for task in distribution_of_three.TASKS),
        ("same_different", 18_810, 990),
    ],
)
def test_without_withheld_fillers_no_problem_is_shared(
    task, num_train, num_test
):
    sets = load_data(0, task, num_train=num_train, num_test=num_test, seed=0)
    # Options may be shared, and so may be the first five fillers.
    of_three = task == "distribution_of_three"
    length = 5 if of_three or task == "identity_rules" else None
    train, test = (set(map(tuple, x[:, :length].tolist())) for x, _ in sets)
    assert not train & test
    assert [len(x) for x, _ in sets] == [num_train, num_test]
    assert len(np.unique(sets[0].fillers)) == 100
    if of_three:
        assert len(train) == 10_000
    if task == "same_different":
        assert [y.mean() for _, y in sets] == pytest.approx([0.5] * 2, abs=0.05)


def test_sets_that_cannot_be_kept_apart_are_refused():
    with pytest.raises(ValueError, match="Too few different problems of 2"):
        load_data(0, "same_different", num_train=99, num_test=1, num_fillers=2)


def test_too_few_fillers_are_refused():
    with pytest.raises(ValueError, match=r"0\.\.99.*100"):
        load_data(100)
    with pytest.raises(ValueError, match="4 or more"):
        load_data(97)
    with pytest.raises(ValueError, match=r"144 problems.*20000"):
        load_data(0, num_fillers=4)


class TestImages:
    def test_glyphs_are_distinct(self):
        images = distribution_of_three.glyphs()
        assert images.shape == (100, 32, 32)
        assert images.dtype == np.uint8
        flat = images.reshape(100, -1) / 255
        distances = np.sqrt(((flat[:, None] - flat[None]) ** 2).sum(-1))
        np.fill_diagonal(distances, np.inf)
        print(f"smallest pairwise distance: {distances.min():.2f}")
        # As far apart as images that differ in 100 of 1,024 pixels.
        assert distances.min() > 10
        # All within the image.
        edges = [images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]]
        assert np.max([edge.any(1).sum() for edge in edges]) <= 1

    def test_one_hot(self):
        np.testing.assert_array_equal(
            distribution_of_three.one_hot(7), np.eye(7)
        )

    def test_a_folder_of_images(self, tmp_path):
        images = distribution_of_three.glyphs()[:12]
        for number, image in enumerate(images):
            Image.fromarray(image).save(tmp_path / f"{number}.png")
        np.testing.assert_array_equal(
            distribution_of_three.load_images(tmp_path), images
        )
        np.testing.assert_array_equal(
            distribution_of_three.load_images(tmp_path, invert=True),
            255 - images,
        )
        halved = images.reshape(12, 16, 2, 16, 2).mean((2, 4))
        np.testing.assert_allclose(
            distribution_of_three.load_images(tmp_path, 16), halved, atol=1
        )
        (tmp_path / "12.png").write_bytes(b"no image")
        with pytest.raises(ValueError, match=r"12\.png"):
            distribution_of_three.load_images(tmp_path)
        Image.fromarray(images[0, :9]).save(tmp_path / "12.png")
        with pytest.raises(ValueError, match=r"one size.*\(9, 32\)"):
            distribution_of_three.load_images(tmp_path)
        with pytest.raises(ValueError, match="two or more"):
            distribution_of_three.load_images(tmp_path / "none")


def test_fillers_are_withheld_at_random():
    fillers, train, test = distribution_of_three.split_fillers(np.eye(100), 95)
    order = np.random.default_rng([0, 2]).permutation(100)
    np.testing.assert_array_equal(fillers, np.eye(100)[order])
    expected = distribution_of_three.load_data(95)
    for ours, theirs in zip((*train, *test), sum(expected, ()), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # Of four fillers there are 144 problems.
    _, train, test = distribution_of_three.split_fillers(np.eye(4), 0)
    assert len(train.labels) == len(test.labels) == 72
