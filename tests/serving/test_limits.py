"""What a client can ask of the stand-in's memory, time and connections."""

import asyncio
import concurrent.futures
import contextlib
import errno
import http.client
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import get_model_metadata_pb2
from tensorflow_serving.apis import get_model_status_pb2
from tensorflow_serving.apis import model_service_pb2_grpc
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc
from tiny_servable import factor_of
from tiny_servable import save_multiplier

from keras_relational import serving
from keras_relational.serving import grpc_services
from keras_relational.serving import http_server
from keras_relational.serving import rest
from keras_relational.serving.servable import Servable

PREDICT = "/v1/models/tiny:predict"
PREDICT_METHOD = "/tensorflow.serving.PredictionService/Predict"
LONG = "n" * 5_000_000


@pytest.fixture(scope="module")
def tiny_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny")
    save_multiplier(path)
    return path


@pytest.fixture(scope="module")
def tiny(tiny_dir):
    with serving.serve(tiny_dir, "tiny") as server:
        yield server


def connect(server):
    host, port = urlsplit(server.rest_url).netloc.split(":")
    return socket.create_connection((host, port), timeout=20)


def post(server, url, body, headers=()):
    connection = http.client.HTTPConnection(
        urlsplit(server.rest_url).netloc, timeout=20
    )
    with contextlib.closing(connection):
        connection.request("POST", url, body, dict(headers))
        response = connection.getresponse()
        return response.status, response.read()


# What is echoed.


@pytest.mark.parametrize(
    ("body", "explanation"),
    [
        ({"signature_name": LONG, "inputs": 1}, "'nnn"),
        ({"signature_name": [LONG], "inputs": 1}, "a list of 1"),
        ({"signature_name": {LONG: 1}, "inputs": 1}, "'nnn"),
        ({"instances": LONG}, '"nnn'),
        ({"instances": [[1, LONG]]}, '"nnn'),
        ({"instances": [{LONG: 1}]}, "'nnn"),
        ({"inputs": {LONG: 1}}, "'nnn"),
        ({"inputs": {"x": LONG}}, '"nnn'),
        ({"inputs": {"x": [[1, {LONG: LONG}]]}}, "'nnn"),
        ({"inputs": {"x": [[1, 10**4000]]}}, "too large"),
    ],
)
def test_rest_echoes_little(body, explanation, tiny):
    status, content = post(tiny, PREDICT, json.dumps(body).encode())
    assert status == 400
    assert len(content) < 1000
    assert explanation in json.loads(content)["error"]


@pytest.mark.parametrize(
    ("url", "status"),
    [
        (f"/v1/models/{LONG[:50_000]}:predict", 404),
        (f"/v1/{LONG[:50_000]}", 400),
        (f"/{LONG[:50_000]}", 404),
    ],
)
def test_rest_echoes_little_of_the_url(url, status, tiny):
    received, content = post(tiny, url, b"{}")
    assert received == status
    assert len(content) < 1000
    assert "nnn" in json.loads(content)["error"]


def long_model(request):
    request.model_spec.name = LONG


def long_signature(request):
    request.model_spec.signature_name = LONG


def long_label(request):
    request.model_spec.version_label = LONG


def long_input(request):
    request.inputs[LONG].CopyFrom(tf.make_tensor_proto(1.0))


def many_inputs(request):
    for number in range(10_000):
        request.inputs[f"{number}é"].CopyFrom(tf.make_tensor_proto(1.0))


def long_output(request):
    request.output_filter.append(LONG)


def another_script(request):
    """Each letter takes nine bytes of a header."""
    request.model_spec.name = "関" * 10_000


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (long_model, "NOT_FOUND"),
        (another_script, "NOT_FOUND"),
        (long_signature, "FAILED_PRECONDITION"),
        (long_label, "INVALID_ARGUMENT"),
        (long_input, "INVALID_ARGUMENT"),
        (many_inputs, "INVALID_ARGUMENT"),
        (long_output, "INVALID_ARGUMENT"),
    ],
)
def test_grpc_echoes_little(spoil, code, tiny):
    """A long explanation would not pass as a header: another code came."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "tiny"
    request.inputs["x"].CopyFrom(tf.make_tensor_proto([[1.0, 2.0]]))
    spoil(request)
    with grpc.insecure_channel(tiny.grpc_address) as channel:
        service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        with pytest.raises(grpc.RpcError) as refusal:
            service.Predict(request, timeout=20)
    assert refusal.value.code().name == code
    assert 20 < len(refusal.value.details()) < 1000


def test_status_and_metadata_echo_little(tiny):
    metadata = get_model_metadata_pb2.GetModelMetadataRequest()
    metadata.model_spec.name = "tiny"
    metadata.metadata_field.append(LONG)
    status = get_model_status_pb2.GetModelStatusRequest()
    status.model_spec.name = LONG
    with grpc.insecure_channel(tiny.grpc_address) as channel:
        predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        models = model_service_pb2_grpc.ModelServiceStub(channel)
        for method, request, code in (
            (predictions.GetModelMetadata, metadata, "INVALID_ARGUMENT"),
            (models.GetModelStatus, status, "NOT_FOUND"),
        ):
            with pytest.raises(grpc.RpcError) as refusal:
                method(request, timeout=20)
            assert refusal.value.code().name == code
            assert len(refusal.value.details()) < 1000


def test_an_error_of_the_graph_is_cut_too(tmp_path):
    module = tf.Module()

    def check(x):
        text = tf.strings.reduce_join(tf.repeat(x, 10**6))
        with tf.control_dependencies([tf.debugging.Assert(False, [text])]):
            return {"y": tf.identity(x)}

    module.check = tf.function(
        check, input_signature=[tf.TensorSpec((None,), tf.string, name="x")]
    )
    tf.saved_model.save(
        module, str(tmp_path / "1"), {"serving_default": module.check}
    )
    with serving.serve(tmp_path, "tiny") as server:
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "tiny"
        request.inputs["x"].CopyFrom(tf.make_tensor_proto(["é"]))
        with grpc.insecure_channel(server.grpc_address) as channel:
            service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            with pytest.raises(grpc.RpcError) as refusal:
                service.Predict(request, timeout=20)
    assert refusal.value.code().name == "INVALID_ARGUMENT"
    assert "assertion failed" in refusal.value.details()
    assert len(refusal.value.details()) < 2100


# Messages that declare more than they hold.


def test_a_text_that_stands_for_gigabytes(tmp_path):
    module = tf.Module()
    module.length = tf.function(
        lambda x: {"y": tf.strings.length(x)},
        input_signature=[tf.TensorSpec((None,), tf.string, name="x")],
    )
    tf.saved_model.save(
        module, str(tmp_path / "1"), {"serving_default": module.length}
    )
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "tiny"
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(["a", "bc"]))
    with (
        serving.serve(tmp_path, "tiny") as server,
        grpc.insecure_channel(server.grpc_address) as channel,
    ):
        service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        outputs = service.Predict(request, timeout=20).outputs
        assert tf.make_ndarray(outputs["y"]).tolist() == [1, 2]
        for size in (3, 10_000_000, 400_000_000):
            request.inputs["x"].tensor_shape.dim[0].size = size
            with pytest.raises(grpc.RpcError) as refusal:
                service.Predict(request, timeout=20)
            assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (0, 3)])
@pytest.mark.parametrize(
    "dtype",
    [
        *("float16", "bfloat16", "float32", "float64", "bool", "string"),
        *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"),
        *("uint64", "complex64", "complex128"),
    ],
)
def test_what_tensorflow_makes_of_equal_values_is_taken(dtype, shape, tmp_path):
    """It leaves none of them out."""
    value = tf.zeros(shape, dtype).numpy()
    request = predict_pb2.PredictRequest()
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(value))
    module = tf.Module()
    module.same = tf.function(
        lambda x: {"y": tf.identity(x)},
        input_signature=[tf.TensorSpec((None, None), dtype, name="x")],
    )
    tf.saved_model.save(
        module, str(tmp_path / "1"), {"serving_default": module.same}
    )
    outputs = Servable(str(tmp_path / "1")).answer(request)
    assert outputs["y"].shape == shape
    assert outputs["y"].tolist() == value.tolist()


# Slow and many clients.


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/models",
        f"POST {PREDICT} HTTP/1.1\r\nContent-Length: 9\r\n\r\n{{".encode(),
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_whoever_sends_no_more_is_cut_off(sent, tiny_dir, monkeypatch):
    monkeypatch.setattr(http_server, "SECONDS_FOR_HEAD", 0.2)
    monkeypatch.setattr(http_server, "SECONDS_FOR_BODY", 0.2)
    with serving.serve(tiny_dir, "tiny") as server:
        with connect(server) as connection:
            connection.sendall(sent)
            assert connection.recv(1) == b""


def test_whoever_sends_byte_by_byte_is_cut_off(tiny_dir, monkeypatch):
    monkeypatch.setattr(http_server, "SECONDS_FOR_HEAD", 0.2)
    with serving.serve(tiny_dir, "tiny") as server:
        with connect(server) as connection:
            connection.settimeout(0.01)
            for _ in range(2000):
                with contextlib.suppress(TimeoutError):
                    connection.sendall(b"G")
                    assert connection.recv(1) == b""
                    return
    pytest.fail("The server listens on")


def test_whoever_takes_no_answer_is_cut_off(tiny_dir, monkeypatch):
    monkeypatch.setattr(http_server, "SECONDS_FOR_ANSWER", 0.2)
    size = 2**26  # More than the sockets buffer.
    monkeypatch.setattr(
        rest, "answer", lambda *_: (200, "text/plain", b" " * size)
    )
    with serving.serve(tiny_dir, "tiny") as server:
        with connect(server) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            time.sleep(1)
            received = 0
            with contextlib.suppress(ConnectionResetError):
                while chunk := connection.recv(2**20):
                    received += len(chunk)
    assert 0 < received < size


def test_a_call_without_a_message_is_cut_off(tiny_dir, monkeypatch):
    monkeypatch.setattr(grpc_services, "SECONDS_FOR_MESSAGE", 0.2)
    never = threading.Event()

    def silence():
        never.wait(60)
        yield b""

    with (
        serving.serve(tiny_dir, "tiny") as server,
        grpc.insecure_channel(server.grpc_address) as channel,
    ):
        method = channel.stream_unary(
            PREDICT_METHOD, request_serializer=lambda x: x
        )
        calls = [
            method.future(silence()) for _ in range(grpc_services.MAX_CALLS)
        ]
        for call in calls:
            assert call.code() == grpc.StatusCode.CANCELLED
        assert factor_of(server, "grpc") == 2
        never.set()


def test_stalled_calls_leave_no_other_waiting(tiny_dir):
    never = threading.Event()

    def silence():
        never.wait(60)
        yield b""

    with (
        serving.serve(tiny_dir, "tiny") as server,
        grpc.insecure_channel(server.grpc_address) as channel,
    ):
        method = channel.stream_unary(
            PREDICT_METHOD, request_serializer=lambda x: x
        )
        calls = [method.future(silence()) for _ in range(8)]
        assert factor_of(server, "grpc") == 2
        for call in calls:
            call.cancel()
        never.set()


def test_a_call_with_no_message_at_all(tiny):
    with grpc.insecure_channel(tiny.grpc_address) as channel:
        method = channel.stream_unary(
            PREDICT_METHOD, request_serializer=lambda x: x
        )
        with pytest.raises(grpc.RpcError) as refusal:
            method(iter(()), timeout=20)
    assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "no message" in refusal.value.details()


def test_compressed_calls_are_refused(tiny):
    """A few kilobytes may unpack to gigabytes."""
    with grpc.insecure_channel(tiny.grpc_address) as channel:
        service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        with pytest.raises(grpc.RpcError) as refusal:
            service.Predict(
                predict_pb2.PredictRequest(),
                timeout=20,
                compression=grpc.Compression.Gzip,
            )
    assert refusal.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_only_so_many_connections(tiny_dir, monkeypatch):
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 2)
    with serving.serve(tiny_dir, "tiny") as server:
        with connect(server) as first, connect(server):
            # The others are served, and this one is told at once.
            with connect(server) as third:
                assert third.recv(1) == b""
            first.sendall(b"GET /v1/models/tiny HTTP/1.1\r\n\r\n")
            assert first.recv(12) == b"HTTP/1.1 200"
        for _ in range(100):
            with contextlib.suppress(ConnectionError):
                assert factor_of(server) == 2
                return
            time.sleep(0.05)
        pytest.fail("Closed connections still count")


def test_no_spinning_where_no_descriptor_is_free(tiny_dir, monkeypatch):
    """Each new connection fails at once, and stays in the queue."""
    accept = asyncio.SelectorEventLoop.sock_accept
    failures = []
    full = threading.Event()

    async def failing(loop, listener):
        if full.is_set():
            failures.append(1)
            raise OSError(errno.EMFILE, "Too many open files")
        return await accept(loop, listener)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_accept", failing)
    full.set()
    with serving.serve(tiny_dir, "tiny") as server:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(factor_of, server)
            time.sleep(0.5)
            full.clear()
            assert waiting.result(timeout=20) == 2
    assert 0 < len(failures) < 50


def test_bodies_share_the_memory(tiny_dir, monkeypatch):
    monkeypatch.setattr(http_server, "MAX_HELD_BYTES", 1000)
    head = f"POST {PREDICT} HTTP/1.1\r\nContent-Length: 900\r\n\r\n".encode()
    with serving.serve(tiny_dir, "tiny") as server:
        for _ in range(50):  # Until the first request arrives first.
            with connect(server) as connection:
                connection.sendall(head + b" " * 800)
                time.sleep(0.05)
                status, content = post(server, PREDICT, b" " * 300)
                if status == 503:
                    assert factor_of(server) == 2
                    break
        assert status == 503
        assert "other large requests" in json.loads(content)["error"]
        for _ in range(100):  # Until the server knows of the end.
            if post(server, PREDICT, b" " * 300)[0] == 400:
                return
            time.sleep(0.05)
        pytest.fail("What was held is not given back")


def test_large_bodies_are_parsed_one_by_one(tiny, monkeypatch):
    monkeypatch.setattr(rest, "_SECONDS_TO_WAIT", 0)
    large = json.dumps({"inputs": [[1, 2]]}).encode() + b" " * 2**20
    assert post(tiny, PREDICT, large)[0] == 200
    with rest._one_large_body:
        status, content = post(tiny, PREDICT, large)
        assert status == 503
        assert "other large requests" in json.loads(content)["error"]
        assert factor_of(tiny) == 2
    assert post(tiny, PREDICT, large)[0] == 200


def test_stopping_finishes_the_answer_under_way(tiny_dir, monkeypatch):
    answering, going_on = threading.Event(), threading.Event()
    answer = rest.answer

    def slow(*args):
        answering.set()
        assert going_on.wait(20)
        return answer(*args)

    monkeypatch.setattr(rest, "answer", slow)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with serving.serve(tiny_dir, "tiny") as server:
            asked = pool.submit(factor_of, server)
            assert answering.wait(20)
            threading.Timer(0.5, going_on.set).start()
        assert asked.result(timeout=20) == 2
