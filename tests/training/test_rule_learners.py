import keras
import numpy as np
import pytest

from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets.distribution_of_three import MODES


class TestSettings:
    def test_are_those_of_the_tasks_paper(self):
        found = training.rule_settings("distribution_of_three", withheld=50)
        kind = "end_to_end", "image", "multiple_choice", "esbn"
        assert found == training.preset(*kind, 50)
        found = training.rule_settings("identity_rules", normalization=True)
        other = training.other_task_preset("identity_rules", "esbn", 95, True)
        assert found == other

    def test_some_can_be_replaced(self):
        paper = training.rule_settings("identity_rules")
        found = training.rule_settings(
            "identity_rules", learning_rate=0.1, epochs=3
        )
        assert found == paper._replace(learning_rate=0.1, epochs=3)

    @pytest.mark.parametrize("withheld", [0, 50, 85, 95])
    def test_a_corelnet_sees_5_000_batches_of_the_data_of_the_others(
        self, withheld
    ):
        for task in distribution_of_three.TASKS:
            kind = {"withheld": withheld}
            ours = training.rule_settings(task, "corelnet", **kind)
            others = training.rule_settings(task, "lstm", **kind)
            assert ours.num_train == others.num_train
            assert ours.learning_rate == 5e-4
            batches = np.ceil(ours.num_train / 32) * ours.epochs
            assert 5_000 <= batches < 5_000 + np.ceil(ours.num_train / 32)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (
                {"sequential": "corelnet", "mode": "generative"},
                "sequential='corelnet'",
            ),
            ({"task": "same_different"}, r"same_different needs.*confidence"),
            ({"confidence": True, "sequential": "ntm"}, "sequential='ntm'"),
            ({"normalization": True, "mode": "generative"}, "generative"),
            ({"fillers": "vector"}, "pretrained=False"),
            ({"withheld": 200}, "withheld=200"),
            (
                {"reorder_options": True, "mode": "generative"},
                r"reorder_options=True.*mode='generative'",
            ),
        ],
    )
    def test_options_that_do_not_go_together(self, options, words):
        with pytest.raises(ValueError, match=words):
            training.rule_settings(
                **{"task": "distribution_of_three", **options}
            )


def test_fillers():
    np.testing.assert_array_equal(training.rule_fillers("vector"), np.eye(100))
    assert training.rule_fillers().shape == (100, 32, 32)
    with pytest.raises(ValueError, match="folder='faces'"):
        training.rule_fillers("vector", "faces")
    with pytest.raises(ValueError, match="'sound'"):
        training.rule_fillers("sound")


def test_problems_and_the_order_of_fillers():
    kind = "distribution_of_three", "multiple_choice"
    fillers, train, test = training.rule_problems(np.eye(100), *kind, 95, 360)
    order = np.random.default_rng([0, 2]).permutation(100)
    np.testing.assert_array_equal(fillers, np.eye(100)[order])
    expected = distribution_of_three.load_data(95)
    for ours, theirs in zip((*train, *test), sum(expected, ()), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # Of four fillers there are 144 problems.
    _, train, test = training.rule_problems(np.eye(4), *kind, 0, 10_000)
    assert len(train.labels) == len(test.labels) == 72


@pytest.mark.parametrize("mode", MODES)
def test_train_rule_learner(mode, tmp_path):
    keras.utils.set_random_seed(0)
    fillers = distribution_of_three.one_hot(10)
    kind = "distribution_of_three", mode, 5
    fillers, train, test = training.rule_problems(fillers, *kind, 64)
    autoencoder = models.filler_autoencoder("vector", 10)
    model = models.rule_learner(autoencoder, mode=mode)
    settings = training.Preset(1e-3, 12, False, 64)
    with runs.Run(tmp_path, "rules", {}) as run:
        figures = training.train_rule_learner(
            model, fillers, train, test, 5, settings, run, verbose=0
        )
        curves = np.genfromtxt(
            tmp_path / "curves.csv", delimiter=",", names=True
        )
    # 24 batches in 20 equal parts are 40.
    assert curves["batches"].tolist() == list(range(2, 42, 2))
    assert set(figures) == {"train", "test"}
    # There are 360 test problems, fewer than a point of the curves takes.
    assert figures["test"] == pytest.approx(curves["test"][-1])


def test_options_in_all_orders(monkeypatch, tmp_path):
    """It trains on all orders, for as many batches, and tests on one."""
    given = []

    class Recorded(training.Minibatches):
        def __init__(self, x, y, *arguments):
            given.append((x, y))
            super().__init__(x, y, *arguments)

    monkeypatch.setattr(training.rule_learners, "Minibatches", Recorded)
    fillers = distribution_of_three.one_hot(10)
    kind = "distribution_of_three", "multiple_choice", 5
    fillers, train, test = training.rule_problems(fillers, *kind, 64)
    model = models.rule_learner(models.filler_autoencoder("vector", 10))
    settings = training.rule_settings(
        "distribution_of_three", epochs=1, reorder_options=True
    )
    with runs.Run(tmp_path, "rules", {}) as run:
        training.train_rule_learner(
            *(model, fillers, train, test, 5, settings, run),
            verbose=0,
            reorder_options=True,
        )
    ((x, y),) = given
    expected = distribution_of_three.option_orders(train)
    np.testing.assert_array_equal(x, expected.fillers)
    np.testing.assert_array_equal(y, expected.labels)
    # An epoch has 360 problems, not all orders: 12 batches, rounded up to 20.
    with open(tmp_path / "curves.csv") as file:
        assert file.readlines()[-1].startswith("20,")


@pytest.mark.parametrize("share", [0.4, 1])
def test_an_autoencoder_that_is_stuck_is_refused(share, monkeypatch):
    monkeypatch.setattr(
        training.rule_learners, "train_autoencoder", lambda *_, **__: share
    )
    autoencoder = models.filler_autoencoder("vector", 10)
    fillers = distribution_of_three.one_hot(10)
    if share == 1:
        assert training.pretrain_autoencoder(autoencoder, fillers) == 1
        assert not autoencoder.trainable
    else:
        with pytest.raises(ValueError, match=r"40%.*another seed"):
            training.pretrain_autoencoder(autoencoder, fillers)
