"""Agents of BoxWorld, exported and served as any other reasoner."""

import keras
import numpy as np
import pytest

from keras_relational import serving
from keras_relational.models import boxworld_agent


@pytest.fixture
def frames():
    rng = np.random.default_rng(0)
    return rng.integers(256, size=(2, 5, 3, 7, 3), dtype="uint8")


def test_an_agent_without_a_memory(frames, tmp_path):
    agent = boxworld_agent("relational", (3, 7, 3))
    logits, values = agent.predict(frames[0], verbose=0)
    serving.export_model(agent, tmp_path)
    with serving.serve(tmp_path, "agent") as server:
        answers = serving.predict_rest(
            server.rest_url, {"image": frames[0]}, "agent"
        )
    assert set(answers) == {"probabilities", "label", "value"}
    np.testing.assert_allclose(answers["value"], values, atol=1e-5)
    np.testing.assert_array_equal(answers["label"], logits.argmax(-1))


@pytest.mark.parametrize("network", ["rest", "grpc"])
def test_an_agent_with_a_memory(network, frames, tmp_path):
    """The state is sent back and forth, frame by frame."""
    agent = boxworld_agent(
        "convolutional", (3, 7, 3), cell=keras.layers.LSTMCell(6)
    )
    is_first = np.array([[1, 0, 0, 1, 0], [1, 0, 0, 0, 0]], bool)
    states = {
        name: np.zeros((2, 6), "float32") for name in ("state_0", "state_1")
    }
    logits, values, *last = agent.predict(
        [frames, is_first, *states.values()], verbose=0
    )
    serving.export_model(agent, tmp_path)
    with serving.serve(tmp_path, "agent") as server:
        predict, address = serving.predict_rest, server.rest_url
        if network == "grpc":
            predict, address = serving.predict_grpc, server.grpc_address
        for t in range(5):
            inputs = {
                "image": frames[:, t : t + 1],
                "is_first": is_first[:, t : t + 1],
                **states,
            }
            answers = predict(address, inputs, "agent")
            states = {name: answers[name] for name in states}
            np.testing.assert_allclose(
                answers["value"][:, 0], values[:, t], atol=1e-5
            )
            np.testing.assert_array_equal(
                answers["label"][:, 0], logits[:, t].argmax(-1)
            )
    for state, expected in zip(states.values(), last, strict=True):
        np.testing.assert_allclose(state, expected, atol=1e-5)
