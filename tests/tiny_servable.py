"""Models that load in no time, and how tests of the server ask them."""

import contextlib
import http.client
import json
import os
import socket
import tempfile
from urllib.parse import urlsplit

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import model_service_pb2_grpc
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from keras_relational import serving
from keras_relational.serving import saved_model_files

X = np.array([[1, 2.5], [3, 4]], "float32")


def save_function(path, function, shape, dtype="float32", name="x", **others):
    """Writes version 1 of a function of one input; others are signatures."""
    module = tf.Module()
    for signature, call in {"serving_default": function, **others}.items():
        spec = tf.TensorSpec(shape, dtype, name=name)
        setattr(module, signature, tf.function(call, input_signature=[spec]))
    signatures = {key: getattr(module, key) for key in others}
    signatures["serving_default"] = module.serving_default
    tf.saved_model.save(module, str(path / "1"), signatures)


def save_multiplier(path, version=1, factor=2):
    """Writes a version that multiplies; all at once, as `export_model` does."""
    module = tf.Module()
    module.factor = tf.Variable(factor, dtype=tf.float32)
    module.multiply = tf.function(
        lambda x: {"y": module.factor * x},
        input_signature=[tf.TensorSpec((None, 2), tf.float32, name="x")],
    )
    with tempfile.TemporaryDirectory(dir=path, prefix=".export-") as aside:
        folder = os.path.join(aside, str(version))
        tf.saved_model.save(
            module, folder, {"serving_default": module.multiply}
        )
        saved_model_files.write_warmup_requests(folder)
        os.rename(folder, os.path.join(path, str(version)))


def exported(model, folder, **arguments):
    """The signatures of the model's export, as TensorFlow loads them."""
    path = serving.export_model(model, folder, **arguments)
    return tf.saved_model.load(path).signatures


def answer(signature, **inputs):
    _, specs = signature.structured_input_signature
    outputs = signature(
        **{
            name: tf.constant(x, specs[name].dtype)
            for name, x in inputs.items()
        }
    )
    return {name: x.numpy() for name, x in outputs.items()}


def factor_of(server, network="rest"):
    """What the server multiplies by."""
    (y,) = predict(server, network, {"x": X}).values()
    return (y / X).item(0)


def predict(server, network, inputs, **arguments):
    """What the client of a network gets."""
    arguments = {"model_name": server.model_name, **arguments}
    if network == "rest":
        return serving.predict_rest(server.rest_url, inputs, **arguments)
    return serving.predict_grpc(server.grpc_address, inputs, **arguments)


def ask(server, method, url, body=None):
    """One request over HTTP: status and JSON, or text."""
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    address = urlsplit(server.rest_url).netloc
    connection = http.client.HTTPConnection(address, timeout=20)
    with contextlib.closing(connection):
        connection.request(method, url, body)
        response = connection.getresponse()
        content = response.read()
        if response.getheader("Content-Type") == "application/json":
            content = json.loads(content) if content else None
        return response.status, content


def connect(server):
    """A connection for bytes, as no client sends them."""
    host, port = urlsplit(server.rest_url).netloc.split(":")
    return socket.create_connection((host, port), timeout=20)


@contextlib.contextmanager
def services(server):
    """Predictions and models over gRPC, for messages that no client sends."""
    with grpc.insecure_channel(server.grpc_address) as channel:
        yield (
            prediction_service_pb2_grpc.PredictionServiceStub(channel),
            model_service_pb2_grpc.ModelServiceStub(channel),
        )


def refusal(method, request, **options):
    """The code and the explanation with which a call over gRPC is refused."""
    with pytest.raises(grpc.RpcError) as refused:
        method(request, timeout=20, **options)
    return refused.value.code().name, refused.value.details()


def message(inputs, output_filter=(), name="tiny", **model_spec):
    return predict_pb2.PredictRequest(
        model_spec={"name": name, **model_spec},
        inputs=inputs,
        output_filter=output_filter,
    )


def tensor(sizes, dtype="uint8", **values):
    """A `TensorProto`, whether its values fit its sizes or not."""
    return tensor_pb2.TensorProto(
        dtype=tf.as_dtype(dtype).as_datatype_enum,
        tensor_shape={"dim": [{"size": size} for size in sizes]},
        **values,
    )
