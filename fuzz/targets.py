"""The models under attack, and a request to each whose answer is known.

The models are small and untrained. The known request is made again after every
ten attacks of a class.
"""

import contextlib
import dataclasses
import json
import os

import grpc
import keras
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from fuzz import draws
from fuzz import servers
from fuzz.attacks import Connection
from fuzz.attacks import known_request
from keras_relational import models

NUM_TASKS = 3
PREDICT = "/tensorflow.serving.PredictionService/Predict"
_TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True)
class Target:
    """A model, and a request that it answers."""

    name: str
    build: object  # Makes the model.
    inputs: dict
    indices: dict  # How many there are to point at, by the inputs that point.
    states: tuple = ()  # Names of the inputs that must be finite.


def targets():
    """The three models."""
    rng = np.random.default_rng(0)

    def images(*shape):
        return rng.integers(256, size=shape, dtype="uint8")

    def numbers(*shape):
        return rng.standard_normal(shape).astype("float32")

    return [
        Target(
            "relations",
            lambda: models.relations_classifier(
                num_tasks=NUM_TASKS, num_heads=4, num_relations=3, key_dim=5
            ),
            {
                "image": images(2, 36, 36, 3),
                "task": np.array([0, 2], "uint8"),
            },
            {"task": NUM_TASKS},
        ),
        Target(
            "analogies",
            lambda: models.analogy_scorer(image_size=32, num_candidates=2),
            {
                "images": images(2, 5, 32, 32, 3),
                "context": np.array([[0, 1, 2], [2, 1, 0]], "int32"),
                "candidates": np.array([[3, 4], [4, 3]], "int32"),
            },
            {"context": 5, "candidates": 5},
        ),
        Target(
            "agent",
            lambda: models.boxworld_agent(
                "relational", (3, 7, 3), cell=keras.layers.LSTMCell(6)
            ),
            {
                "image": images(2, 2, 3, 7, 3),
                "is_first": np.array([[True, False], [False, False]]),
                "state_0": numbers(2, 6),
                "state_1": numbers(2, 6),
            },
            {},
            ("state_0", "state_1"),
        ),
    ]


def other_batch(rng, target):
    """The known inputs, one of them with another number of rows."""
    name = draws.choice(rng, list(target.inputs))
    size = draws.choice(rng, (0, 1, 3, 7, 100))
    value = np.resize(
        target.inputs[name], (size, *target.inputs[name].shape[1:])
    )
    changed = {name: value}
    if size > 1 and rng.integers(2):
        # And the others with as many, but for one.
        changed = {
            key: np.resize(x, (size, *x.shape[1:]))
            for key, x in target.inputs.items()
        }
        changed[name] = target.inputs[name][:1]
    return changed


def bad_indices(rng, target):
    """Inputs that point beyond what there is; pixels beyond 255 else."""
    if not target.indices:
        value = target.inputs["image"].astype(int)
        value.flat[int(rng.integers(value.size))] = draws.choice(
            rng, (-1, 256, 2**31, -(2**40))
        )
        return {"image": value}
    name = draws.choice(rng, list(target.indices))
    value, limit = target.inputs[name].copy(), target.indices[name]
    worst = np.iinfo(value.dtype)
    wrong = [limit, limit + 1, worst.max]
    if worst.min:
        wrong += [-1, -limit, -limit - 1, worst.min]
    value.flat[int(rng.integers(value.size))] = draws.choice(rng, wrong)
    return {name: value}


def not_finite(rng, target):
    """Not finite: a state, or for models without a state any input."""
    name = draws.choice(rng, target.states or list(target.inputs))
    value = target.inputs[name].astype("float32")
    odd = draws.choice(rng, (np.nan, np.inf, -np.inf))
    if rng.integers(4):
        value.flat[int(rng.integers(value.size))] = odd
    else:
        value[:] = odd
    return {name: value}


def predict_request(target):
    """The known request as a message."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = target.name
    for name, value in target.inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def saved_answers(saved_model, target):
    """What a SavedModel answers, without a server."""
    model = tf.saved_model.load(saved_model)
    inputs = {name: tf.constant(x) for name, x in target.inputs.items()}
    outputs = model.signatures["serving_default"](**inputs)
    return {name: x.numpy() for name, x in outputs.items()}


class Known:
    """The right answers of a server, as it gave them at first."""

    def __init__(self, server, target, patience):
        self._server, self._patience = server, patience
        self._channel = grpc.insecure_channel(
            server.grpc,
            [
                ("grpc.enable_http_proxy", 0),
                ("grpc.max_receive_message_length", -1),
                ("grpc.max_send_message_length", -1),
            ],
        )
        self._http = known_request(target)
        self._message = predict_request(target).SerializeToString()
        self._answer = self.by_grpc()
        if not equal(self.by_rest(), self._answer):
            raise RuntimeError(
                f"REST and gRPC of {target.name!r} disagree before any attack"
            )

    def close(self):
        self._channel.close()

    def problem(self):
        """What is wrong with the server now, or `None`."""
        try:
            if not equal(self.by_rest(), self._answer):
                return "another answer over REST"
            if not equal(self.by_grpc(), self._answer):
                return "another answer over gRPC"
        except grpc.RpcError as error:
            return f"no answer over gRPC: {error.code()}, {error.details()}"
        except (OSError, ValueError) as error:
            return f"no answer over REST: {error!r}"[:300]
        return None

    def call(self, method, content, patience):
        """Calls a method of gRPC with bytes, for bytes."""
        return self._channel.unary_unary(method)(content, timeout=patience)

    def is_rest_answer(self, body):
        """Whether the body of a reply holds the known answer."""
        try:
            return equal(_arrays_of_json(body), self._answer)
        except ValueError:
            return False

    def not_empty(self, answer):
        """What is wrong with an answer that should have no rows."""
        arrays = _arrays(answer)
        if set(arrays) != set(self._answer):
            return f"outputs {sorted(arrays)}"
        shapes = {name: x.shape for name, x in arrays.items()}
        if any(shape[:1] != (0,) for shape in shapes.values()):
            return f"an empty batch is answered with {shapes}"
        return None

    def by_rest(self):
        """The arrays that the known request is answered with."""
        with Connection(self._server.rest, self._patience) as connection:
            connection.send(self._http)
            status, body = connection.reply() or (0, b"closed")
        if status != 200:
            raise ValueError(f"HTTP {status} {body[:200]!r}")
        return _arrays_of_json(body)

    def by_grpc(self):
        """As `by_rest`."""
        return _arrays(self.call(PREDICT, self._message, self._patience))


@contextlib.contextmanager
def served(folder, target, patience):
    """A server of the exports in `folder`, and its right answers."""
    models = os.path.join(folder, target.name)
    log = f"{models}.log"
    with (
        servers.running(models, target.name, log) as server,
        contextlib.closing(Known(server, target, patience)) as known,
    ):
        yield server, known


def _arrays(content):
    response = predict_pb2.PredictResponse.FromString(content)
    return {name: tf.make_ndarray(x) for name, x in response.outputs.items()}


def _arrays_of_json(body):
    reply = json.loads(body)
    outputs = reply.get("outputs") if isinstance(reply, dict) else None
    if not isinstance(outputs, dict):
        raise ValueError(f"no outputs by name: {body[:200]!r}")
    return {name: np.array(x) for name, x in outputs.items()}


def equal(arrays, expected):
    """Whether two dictionaries of arrays are the same but for rounding."""
    return set(arrays) == set(expected) and all(
        arrays[name].shape == value.shape
        and np.allclose(arrays[name], value, rtol=0, atol=_TOLERANCE)
        for name, value in expected.items()
    )
