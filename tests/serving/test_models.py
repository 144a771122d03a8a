"""Models of every kind, exported and served.

A rule learner takes images, and returns a choice or an image. Agents send their
state back and forth. An analogy scorer chooses among candidates. A video
predictor takes frames, and returns the next ones.
"""

import itertools

import keras
import numpy as np
import pytest
from tiny_servable import predict

from experiments.context_normalization.vaec import solved_analogies
from keras_relational import layers
from keras_relational import models
from keras_relational import serving
from keras_relational import training
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import vaec
from keras_relational.models import boxworld_agent


def assert_served(model, folder, *requests, name="predicted"):
    """A served model answers over both networks as it does by itself."""
    serving.export_model(model, folder)
    with serving.serve(folder, "model") as server:
        for inputs, network in itertools.product(requests, ("rest", "grpc")):
            answers = predict(server, network, inputs)
            # Keras takes an only input without its name.
            x = inputs if len(inputs) > 1 else next(iter(inputs.values()))
            expected = model.predict(x, verbose=0)
            if name == "label":
                np.testing.assert_array_equal(
                    answers[name], expected.argmax(-1)
                )
                expected = keras.ops.softmax(expected)
                found = answers["probabilities"]
            else:
                # An only output has no name in JSON.
                (found,) = answers.values()
                only_name = "outputs" if network == "rest" else name
                assert set(answers) == {only_name}
            np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "name"),
    [("multiple_choice", "label"), ("generative", "predicted")],
)
def test_a_learner_of_rules(mode, name, tmp_path):
    """Its choice, or the image that it predicts."""
    keras.utils.set_random_seed(0)
    model = models.rule_learner(models.filler_autoencoder(), mode=mode)
    images = distribution_of_three.glyphs()
    fillers, _ = distribution_of_three.generate(
        3, range(95, 100), mode=mode, seed=0
    )
    assert_served(model, tmp_path, {"fillers": images[fillers]}, name=name)


@pytest.mark.slow
def test_a_right_choice_among_fillers_never_trained_on(tmp_path):
    """In some minutes."""
    keras.utils.set_random_seed(0)
    images = distribution_of_three.glyphs()
    (shown, answers), (asked, right) = distribution_of_three.load_data(
        95, num_test=200
    )
    model = models.rule_learner(
        models.filler_autoencoder(batch_normalization=True)
    )
    trained = models.over_fillers(model, images[:5])
    trained.compile(
        training.supervised.adam(2e-4),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    trained.fit(shown, answers, batch_size=32, epochs=60, verbose=0)
    assert shown.max() < 5 <= asked.min()
    serving.export_model(model, tmp_path)
    with serving.serve(tmp_path) as server:
        served = predict(server, "grpc", {"fillers": images[asked]})
    assert np.mean(served["label"] == right) > 0.9


@pytest.fixture
def frames():
    rng = np.random.default_rng(0)
    return rng.integers(256, size=(2, 5, 3, 7, 3), dtype="uint8")


def test_an_agent_with_a_memory(frames, tmp_path):
    """The state is sent back and forth, frame by frame."""
    agent = boxworld_agent(
        "convolutional", (3, 7, 3), cell=keras.layers.LSTMCell(6)
    )
    is_first = np.array([[1, 0, 0, 1, 0], [1, 0, 0, 0, 0]], bool)
    zeros = {
        name: np.zeros((2, 6), "float32") for name in ("state_0", "state_1")
    }
    logits, values, *last = agent.predict(
        [frames, is_first, *zeros.values()], verbose=0
    )
    serving.export_model(agent, tmp_path)
    with serving.serve(tmp_path) as server:
        for network in ("rest", "grpc"):
            states = zeros
            for t in range(5):
                inputs = {
                    "image": frames[:, t : t + 1],
                    "is_first": is_first[:, t : t + 1],
                    **states,
                }
                answers = predict(server, network, inputs)
                states = {name: answers[name] for name in states}
                np.testing.assert_allclose(
                    answers["value"][:, 0], values[:, t], atol=1e-5
                )
                np.testing.assert_array_equal(
                    answers["label"][:, 0], logits[:, t].argmax(-1)
                )
            for state, expected in zip(states.values(), last, strict=True):
                np.testing.assert_allclose(state, expected, atol=1e-5)


@pytest.mark.slow
def test_a_problem_from_a_region_never_seen(tmp_path):
    """A trained model, whose export takes any number of candidates."""
    model = models.analogy_scorer(image_size=32, num_candidates=None)
    preset = models.from_preset("tcn_vaec_translation")
    model.set_weights(preset.get_weights())
    problems = vaec.generate(region=6, seed=0)
    problems = vaec.Problems(*(x[:200] for x in problems))
    # By chance it would be a seventh.
    assert solved_analogies(model, problems).mean() > 0.5
    problems = vaec.Problems(*(x[:3] for x in problems))
    inputs = vaec.model_inputs(problems, 32)
    # Among two candidates, with no more images than there are.
    few = {
        "images": inputs["images"][:, :4],
        "context": np.array([[0, 1, 2]] * 3, "int32"),
        "candidates": np.array([[3, 0]] * 3, "int32"),
    }
    assert_served(model, tmp_path, inputs, few, name="label")


@pytest.mark.slow
def test_the_next_frames_of_a_video(tmp_path):
    keras.utils.set_random_seed(0)
    core = layers.SCOFF(8, 2, 2, return_sequences=True, return_state=True)
    model = models.roll_out_model(models.video_predictor(core), 4)
    rng = np.random.default_rng(0)
    # One export, videos of any length.
    videos = [
        {"frames": rng.integers(256, size=(1, time, 64, 64, 1), dtype="uint8")}
        for time in (2, 5)
    ]
    assert_served(model, tmp_path, *videos)


def test_one_head_of_symbols_is_trained_exported_and_served(tmp_path):
    """TensorFlow on a CPU multiplies wrongly where one head is broadcast."""
    keras.utils.set_random_seed(0)
    entities = keras.Input((10, 64), name="entities")
    symbols = layers.SymbolicAttention(32)(entities)
    x = layers.Abstractor(2, key_dim=8, hidden_units=16)(entities, symbols)
    x = keras.layers.GlobalAveragePooling1D()(x)
    outputs = keras.layers.Dense(3, name="logits")(x)
    model = models.declare(
        keras.Model(entities, outputs), outputs={"logits": "logits"}
    )
    x = np.random.default_rng(0).normal(size=(32, 10, 64)).astype("float32")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    history = model.fit(x, np.arange(32) % 3, epochs=3, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    alone = np.concatenate([model(row[None]) for row in x])
    np.testing.assert_allclose(model.predict(x, verbose=0), alone, atol=1e-5)
    assert_served(model, tmp_path, {"entities": x}, name="label")
