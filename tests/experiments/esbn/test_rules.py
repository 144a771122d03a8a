import keras
import numpy as np
import pytest

from experiments.esbn import rules
from experiments.esbn.evaluation import nearest_filler
from experiments.esbn.evaluation import rule_accuracy
from experiments.esbn.rules import cross_entropy
from experiments.esbn.rules import pretrain_autoencoder
from experiments.esbn.rules import reconstructed_share
from experiments.esbn.rules import task_rule_learner
from experiments.esbn.rules import train_autoencoder
from experiments.esbn.rules import train_rule_learner
from experiments.esbn.settings import Settings
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import distribution_of_three


@pytest.mark.parametrize(
    ("task", "num_options", "segments"),
    [
        ("distribution_of_three", 4, None),
        ("same_different", 2, None),
        ("relational_match_to_sample", 2, (2, 2, 2)),
    ],
)
def test_the_options_and_the_context_of_a_task(task, num_options, segments):
    model = task_rule_learner(
        task,
        models.filler_autoencoder("vector", 10),
        confidence=True,
        normalization=True,
    )
    assert model.output_shape == (None, num_options)
    reasoner = models.part(model, "reasoner")
    normalization = reasoner.get_layer("normalization")
    assert normalization.segment_lengths == segments
    assert models.part(model, "esbn").confidence


@pytest.mark.parametrize("task", distribution_of_three.TASKS)
def test_a_corelnet_knows_the_steps_of_a_task(task):
    model = task_rule_learner(
        task, models.filler_autoencoder("vector", 10), "corelnet"
    )
    problems = distribution_of_three.generate(3, task=task, seed=0)
    assert model.input_shape[1] == problems.fillers.shape[1]


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_nearest_filler(dtype):
    """Distances of bytes do not overflow."""
    images = np.random.default_rng(0).uniform(0, 256, (70, 4, 4)).astype(dtype)
    fillers, predicted = images[:20], images[20:]
    expected = [
        np.argmin([np.mean((p.astype(float) - f) ** 2) for f in fillers])
        for p in predicted
    ]
    np.testing.assert_array_equal(nearest_filler(predicted, fillers), expected)


@pytest.mark.parametrize(
    ("dtype", "least", "expected"),
    [("float32", 1e-12, 12 * np.log(10)), ("float16", 0, 30 * np.log(10))],
)
def test_cross_entropy_of_shares_next_to_nothing(dtype, least, expected):
    target = np.array([[1, 0], [0, 1], [0.5, 0.5]], dtype)
    shares = np.array([[least, 1], [least, 1], [0.25, 0.75]], dtype)
    found = cross_entropy(target, shares)
    expected = [expected, 0, -np.log([0.25, 0.75]).mean()]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", distribution_of_three.MODES)
def test_rule_accuracy(mode):
    fillers = distribution_of_three.one_hot(8)
    autoencoder = models.filler_autoencoder("vector", 8)
    model = models.rule_learner(autoencoder, mode=mode)
    problems = distribution_of_three.generate(60, range(8), mode=mode, seed=0)
    known = models.over_fillers(model, fillers)
    outputs = model.predict(fillers[problems.fillers], verbose=0)
    candidates = None
    answers = outputs.argmax(1)
    if mode == "generative":
        candidates = fillers
        answers = [np.argmin(((fillers - p) ** 2).sum(1)) for p in outputs]
    expected = np.mean(answers == problems.labels)
    assert rule_accuracy(
        known, problems, candidates, batch_size=7
    ) == pytest.approx(expected)


@pytest.mark.slow
def test_an_autoencoder_learns_all_fillers():
    fillers = distribution_of_three.one_hot(20)
    autoencoder = models.filler_autoencoder("vector", 20)
    assert train_autoencoder(autoencoder, fillers, epochs=150) == 1


def test_the_share_of_fillers_that_are_reconstructed():
    fillers = distribution_of_three.one_hot(4)
    swaps_two = keras.layers.Dense(4, use_bias=False)
    model = keras.Sequential([keras.Input((4,)), swaps_two])
    swaps_two.set_weights([fillers[[1, 0, 2, 3]]])
    assert reconstructed_share(model, fillers) == 0.5


def learner_and_data(mode="multiple_choice"):
    """A model, fillers, and problems to train and to test on."""
    autoencoder = models.filler_autoencoder("vector", 10)
    data = distribution_of_three.split_fillers(
        distribution_of_three.one_hot(10), withheld=5, mode=mode
    )
    return models.rule_learner(autoencoder, "lstm", mode), *data


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["multiple_choice", "generative"])
def test_train_rule_learner(mode, tmp_path):
    settings = Settings(1e-3, 12, False, 64)
    with runs.Run(tmp_path, "rules", {}) as run:
        figures = train_rule_learner(
            *learner_and_data(mode), 5, settings, run, verbose=0
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
        def __init__(self, x, y, **arguments):
            given.append((x, y))
            super().__init__(x, y, **arguments)

    monkeypatch.setattr(training, "Minibatches", Recorded)
    model, fillers, train, test = learner_and_data()
    settings = Settings(5e-5, epochs=1, batch_normalization=True, num_train=360)
    with runs.Run(tmp_path, "rules", {}) as run:
        train_rule_learner(
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
    monkeypatch.setattr(rules, "train_autoencoder", lambda *_, **__: share)
    autoencoder = models.filler_autoencoder("vector", 10)
    fillers = distribution_of_three.one_hot(10)
    if share == 1:
        assert pretrain_autoencoder(autoencoder, fillers) == 1
        assert not autoencoder.trainable
    else:
        with pytest.raises(ValueError, match=r"40%.*another seed"):
            pretrain_autoencoder(autoencoder, fillers)


@pytest.mark.slow
def test_an_esbn_learns_a_rule_of_fillers_it_has_never_seen():
    """End to end on images, 95 of 100 withheld, in some minutes."""
    train, test = distribution_of_three.load_data(95, num_test=2_000)
    fillers = distribution_of_three.glyphs()
    accuracy = {}
    for sequential, learning_rate in (("esbn", 2e-4), ("lstm", 5e-4)):
        keras.utils.set_random_seed(0)
        autoencoder = models.filler_autoencoder(batch_normalization=True)
        model = models.rule_learner(autoencoder, sequential)
        trained = models.over_fillers(model, fillers[:5])
        trained.compile(
            keras.optimizers.Adam(learning_rate),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        trained.fit(*train, batch_size=32, epochs=60, verbose=0)
        tested = models.over_fillers(model, fillers)
        accuracy[sequential] = rule_accuracy(tested, test)
        assert rule_accuracy(tested, train) > 0.9
    assert accuracy["esbn"] > 0.95
    assert accuracy["lstm"] < 0.5
