"""What a client can ask of the stand-in's memory, time and connections."""

import asyncio
import concurrent.futures
import contextlib
import errno
import json
import re
import threading
import time

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import get_model_metadata_pb2
from tensorflow_serving.apis import get_model_status_pb2
from tiny_servable import ask
from tiny_servable import connect
from tiny_servable import factor_of
from tiny_servable import message
from tiny_servable import refusal
from tiny_servable import save_function
from tiny_servable import services
from tiny_servable import tensor

from keras_relational import serving
from keras_relational.serving import grpc_services
from keras_relational.serving import http_server
from keras_relational.serving import rest
from keras_relational.serving.servable import Servable

PREDICT = "/v1/models/tiny:predict"
PREDICT_METHOD = "/tensorflow.serving.PredictionService/Predict"
LONG = "n" * 5_000_000


# What is echoed.


@pytest.mark.parametrize(
    ("body", "explanation"),
    [
        (
            {"signature_name": LONG, "inputs": 1},
            "'nnn.* not found. The model has: \\['serving_default'\\]",
        ),
        ({"signature_name": [LONG], "inputs": 1}, "a string.* a list of 1"),
        ({"signature_name": {LONG: 1}, "inputs": 1}, "a string.*'nnn"),
        ({"instances": LONG}, 'one example or more.*"nnn'),
        ({"instances": [[1, LONG]]}, 'to be float32. Received: "nnn'),
        ({"instances": [{LONG: 1}]}, "'nnn"),
        ({"inputs": {LONG: 1}}, "'inputs' has no 'x'.*'nnn"),
        ({"inputs": {"x": LONG}}, '"nnn'),
        ({"inputs": {"x": [[1, {LONG: LONG}]]}}, "'nnn"),
        ({"inputs": {"x": [[1, 10**4000]]}}, "too large"),
    ],
)
def test_rest_echoes_little(body, explanation, tiny):
    status, reply = ask(tiny, "POST", PREDICT, body)
    assert status == 400
    assert len(reply["error"]) < 1000
    assert re.search(explanation, reply["error"])


@pytest.mark.parametrize(
    ("url", "status"),
    [
        (f"/v1/models/{LONG[:50_000]}:predict", 404),
        (f"/v1/{LONG[:50_000]}", 400),
        (f"/{LONG[:50_000]}", 404),
    ],
)
def test_rest_echoes_little_of_the_url(url, status, tiny):
    received, reply = ask(tiny, "POST", url, b"{}")
    assert received == status
    assert len(reply["error"]) < 1000
    assert "nnn" in reply["error"]


GOOD = {"x": tensor((1, 2), "float32", float_val=[1, 2])}
MANY = {f"{number}é": tensor((), "float32") for number in range(10_000)}


@pytest.mark.parametrize(
    ("request_", "code", "explanation"),
    [
        (message(GOOD, name=LONG), "NOT_FOUND", "Servable not found: 'nnn"),
        # Each letter takes nine bytes of a header.
        (message(GOOD, name="関" * 10_000), "NOT_FOUND", "Servable not found"),
        (
            message(GOOD, signature_name=LONG),
            "FAILED_PRECONDITION",
            "signature 'nnn.* not found",
        ),
        (
            message(GOOD, version_label=LONG),
            "INVALID_ARGUMENT",
            "label not found: 'nnn",
        ),
        (
            message({**GOOD, LONG: GOOD["x"]}),
            "INVALID_ARGUMENT",
            r"Unknown: \['nnn",
        ),
        (message({**GOOD, **MANY}), "INVALID_ARGUMENT", "Unknown: "),
        (
            message(GOOD, output_filter=[LONG]),
            "INVALID_ARGUMENT",
            r"`output_filter` .*\['nnn",
        ),
        (
            get_model_status_pb2.GetModelStatusRequest(
                model_spec={"name": LONG}
            ),
            "NOT_FOUND",
            "Servable not found: 'nnn",
        ),
        (
            get_model_metadata_pb2.GetModelMetadataRequest(
                model_spec={"name": "tiny"}, metadata_field=[LONG]
            ),
            "INVALID_ARGUMENT",
            r"must be 'signature_def'. Received: \['nnn",
        ),
    ],
    ids=range(9),
)
def test_grpc_echoes_little(request_, code, explanation, tiny):
    """A long explanation would not pass as a header: another code came."""
    method = type(request_).__name__.removesuffix("Request")
    with services(tiny) as (predictions, models):
        service = models if method == "GetModelStatus" else predictions
        received, details = refusal(getattr(service, method), request_)
    assert received == code
    assert re.search(explanation, details)
    assert len(details) < 1000


def test_an_error_of_the_graph_is_cut_too(tmp_path):
    def check(x):
        text = tf.strings.reduce_join(tf.repeat(x, 10**6))
        with tf.control_dependencies([tf.debugging.Assert(False, [text])]):
            return {"y": tf.identity(x)}

    save_function(tmp_path, check, (None,), "string")
    request = message({"x": tf.make_tensor_proto(["é"])})
    with (
        serving.serve(tmp_path, "tiny") as server,
        services(server) as (predictions, _),
    ):
        code, details = refusal(predictions.Predict, request)
    assert code == "INVALID_ARGUMENT"
    assert "assertion failed" in details
    assert len(details) < 2100


# Messages that declare more than they hold.


def test_a_text_that_stands_for_gigabytes(tmp_path):
    save_function(
        tmp_path, lambda x: {"y": tf.strings.length(x)}, (None,), "string"
    )
    servable = Servable(str(tmp_path / "1"))
    outputs = servable.answer(message({"x": tf.make_tensor_proto(["a", "bc"])}))
    assert outputs["y"].tolist() == [1, 2]
    for size in (3, 10_000_000, 400_000_000):
        text = tensor((size,), "string", string_val=[b"a", b"bc"])
        with pytest.raises(tf.errors.InvalidArgumentError):
            servable.answer(message({"x": text}))


@pytest.mark.parametrize(
    "dtype",
    [
        *("float16", "bfloat16", "float32", "float64", "bool", "string"),
        *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"),
        *("uint64", "complex64", "complex128"),
    ],
)
def test_what_tensorflow_makes_of_equal_values_is_taken(dtype, tmp_path):
    """It leaves none of them out."""
    save_function(
        tmp_path, lambda x: {"y": tf.identity(x)}, (None, None), dtype
    )
    servable = Servable(str(tmp_path / "1"))
    for shape in ((2, 3), (1, 1), (0, 3)):
        value = tf.zeros(shape, dtype).numpy()
        request = message({"x": tf.make_tensor_proto(value)})
        (y,) = servable.answer(request).values()
        assert y.shape == shape
        assert y.tolist() == value.tolist()


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
                try:
                    connection.sendall(b"G")
                    assert connection.recv(1) == b""
                except TimeoutError:
                    continue
                except (BrokenPipeError, ConnectionResetError):
                    pass  # It closed before the last byte came.
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


@contextlib.contextmanager
def silent_calls(server, number):
    """Calls over gRPC that send no message."""
    never = threading.Event()

    def silence():
        never.wait(60)
        yield b""

    with grpc.insecure_channel(server.grpc_address) as channel:
        method = channel.stream_unary(
            PREDICT_METHOD, request_serializer=lambda x: x
        )
        yield [method.future(silence()) for _ in range(number)]
        never.set()


def test_a_call_without_a_message_is_cut_off(tiny_dir, monkeypatch):
    monkeypatch.setattr(grpc_services, "SECONDS_FOR_MESSAGE", 0.2)
    with (
        serving.serve(tiny_dir, "tiny") as server,
        silent_calls(server, grpc_services.MAX_CALLS) as calls,
    ):
        for call in calls:
            assert call.code() == grpc.StatusCode.CANCELLED
        assert factor_of(server, "grpc") == 2


def test_stalled_calls_leave_no_other_waiting(tiny_dir):
    with (
        serving.serve(tiny_dir, "tiny") as server,
        silent_calls(server, 8) as calls,
    ):
        assert factor_of(server, "grpc") == 2
        for call in calls:
            call.cancel()


def test_a_call_with_no_message_at_all(tiny):
    with grpc.insecure_channel(tiny.grpc_address) as channel:
        method = channel.stream_unary(
            PREDICT_METHOD, request_serializer=lambda x: x
        )
        code, details = refusal(method, iter(()))
    assert code == "INVALID_ARGUMENT"
    assert "no message" in details


def test_compressed_calls_are_refused(tiny):
    """A few kilobytes may unpack to gigabytes."""
    compression = grpc.Compression.Gzip
    with services(tiny) as (predictions, _):
        code, _ = refusal(
            predictions.Predict, message(GOOD), compression=compression
        )
    assert code == "UNIMPLEMENTED"


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
                status, reply = ask(server, "POST", PREDICT, b" " * 300)
                if status == 503:
                    assert factor_of(server) == 2
                    break
        assert status == 503
        assert "other large requests" in reply["error"]
        for _ in range(100):  # Until the server knows of the end.
            if ask(server, "POST", PREDICT, b" " * 300)[0] == 400:
                return
            time.sleep(0.05)
        pytest.fail("What was held is not given back")


def test_large_bodies_are_parsed_one_by_one(tiny, monkeypatch):
    monkeypatch.setattr(rest, "_SECONDS_TO_WAIT", 0)
    large = json.dumps({"inputs": [[1, 2]]}).encode() + b" " * 2**20
    assert ask(tiny, "POST", PREDICT, large)[0] == 200
    with rest._one_large_body:
        status, reply = ask(tiny, "POST", PREDICT, large)
        assert status == 503
        assert "other large requests" in reply["error"]
        assert factor_of(tiny) == 2
    assert ask(tiny, "POST", PREDICT, large)[0] == 200


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
