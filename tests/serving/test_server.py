import concurrent.futures
import functools
import gzip
import http.client
import json
import re
import signal
import socket
import sys
import time
from urllib.parse import urlsplit

import grpc
import numpy as np
import pytest
import tensorflow as tf
import tiny_servable
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import get_model_metadata_pb2
from tensorflow_serving.apis import get_model_status_pb2
from tensorflow_serving.apis import predict_pb2
from tiny_servable import ask
from tiny_servable import connect
from tiny_servable import factor_of
from tiny_servable import predict
from tiny_servable import refusal
from tiny_servable import save_function
from tiny_servable import save_multiplier
from tiny_servable import services
from tiny_servable import tensor

from keras_relational import serving
from keras_relational.serving import __main__ as command
from keras_relational.serving import rest
from keras_relational.serving.grpc_services import MAX_CALLS
from keras_relational.serving.http_server import MAX_BODY_BYTES
from keras_relational.serving.servable import MAX_REQUEST_BYTES

PREDICT = "/v1/models/relations:predict"
TINY = "/v1/models/tiny:predict"

# Good requests.


@pytest.mark.parametrize("network", ["rest", "grpc"])
@pytest.mark.parametrize("signature_name", ["serving_default", "propositions"])
def test_both_networks_answer_as_the_model(
    network, signature_name, server, images, expected, assert_answers
):
    for size in (1, 7):
        inputs = {"image": images[:size]}
        outputs = predict(
            server, network, inputs, signature_name=signature_name
        )
        assert_answers(outputs, expected, signature_name, size)
    # An empty batch has the signature's other sizes.
    inputs = {"image": images[:0]}
    outputs = predict(server, network, inputs, signature_name=signature_name)
    assert {"label", "probabilities"} <= set(outputs)
    assert all(len(value) == 0 for value in outputs.values())


@pytest.mark.parametrize(
    ("network", "code"), [("rest", 400), ("grpc", "INVALID_ARGUMENT")]
)
def test_what_the_graph_refuses_is_told(
    network,
    code,
    multi_task_server,
    images,
    tasks,
    multi_task_expected,
    assert_answers,
):
    for wrong, explanation in (
        ([0, 1, 2, 2, 1, 0, 3], "must be 0 or more, and below 3"),
        ([0], "inputs image and task must have one batch size"),
    ):
        inputs = {"image": images, "task": np.array(wrong, "uint8")}
        with pytest.raises(serving.ServingError, match=explanation) as refused:
            predict(multi_task_server, network, inputs)
        assert refused.value.code == code
    inputs["task"] = tasks
    outputs = predict(multi_task_server, network, inputs, version=3)
    assert_answers(outputs, multi_task_expected, "serving_default", 7)


FORMATS = {
    "rows": lambda images: {"instances": images},
    "named rows": lambda images: {"instances": [{"image": x} for x in images]},
    "columns": lambda images: {"inputs": images},
    # Other keys are left aside, as TensorFlow Serving does in this format.
    "named columns": lambda images: {"inputs": {"image": images, "other": 1}},
}


def columns(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("name", FORMATS)
def test_formats_of_json(name, server, images, expected, assert_answers):
    body = FORMATS[name](images[:3].tolist())
    status, reply = ask(server, "POST", PREDICT, body)
    assert status == 200
    ((key, answers),) = reply.items()
    assert key == ("predictions" if "rows" in name else "outputs")
    if "rows" in name:
        answers = columns(answers)
    assert_answers(answers, expected, "serving_default", 3)


def test_rows_of_two_inputs(
    multi_task_server, images, tasks, multi_task_expected, assert_answers
):
    instances = [
        {"task": int(task), "image": image.tolist()}
        for task, image in zip(tasks, images, strict=True)
    ]
    status, reply = ask(
        multi_task_server,
        "POST",
        "/v1/models/multi_task/versions/3:predict",
        {"instances": instances, "signature_name": "serving_default"},
    )
    assert status == 200
    answers = columns(reply["predictions"])
    assert_answers(answers, multi_task_expected, "serving_default", 7)


def test_numbers_beyond_float32(tiny):
    for number in (1e39, -1e300, 10**400):
        status, reply = ask(tiny, "POST", TINY, {"instances": [[1, number]]})
        assert status == 400
        assert "'x' is expected to be float32" in reply["error"]
    answers = ask(tiny, "POST", TINY, {"instances": [[1, 1e38]]})
    assert answers == (200, {"predictions": [[2, pytest.approx(2e38)]]})


def test_outputs_of_other_models(tmp_path):
    """Text, bytes, and what is not one answer for each example."""
    save_function(
        tmp_path,
        lambda x: {
            "text": tf.strings.as_string(x),
            "raw_bytes": tf.fill(tf.shape(x), b"\xff\x00"),
        },
        shape=(None,),
        dtype="int32",
        total=lambda x: {"total": tf.reduce_sum(x), "name": tf.constant("sum")},
    )
    predictions = [
        {"text": text, "raw_bytes": {"b64": "/wA="}} for text in ("3", "4")
    ]
    body = {"signature_name": "total", "inputs": [3, 4]}
    with serving.serve(tmp_path) as server:
        reply = ask(server, "POST", PREDICT, {"instances": [3, 4]})
        assert reply == (200, {"predictions": predictions})
        reply = ask(server, "POST", PREDICT, body)
        assert reply == (200, {"outputs": {"total": 7, "name": "sum"}})
        body["instances"] = body.pop("inputs")
        status, reply = ask(server, "POST", PREDICT, body)
    assert status == 400
    assert "must have one batch size" in reply["error"]


@pytest.mark.parametrize("versions", ["", "/versions/1"])
def test_status(versions, server):
    status, reply = ask(server, "GET", f"/v1/models/relations{versions}")
    assert status == 200
    assert reply["model_version_status"] == [
        {
            "version": "1",
            "state": "AVAILABLE",
            "status": {"error_code": "OK", "error_message": ""},
        }
    ]
    version = {"version": {"value": 1}} if versions else {}
    request = get_model_status_pb2.GetModelStatusRequest(
        model_spec={"name": "relations", **version}
    )
    with services(server) as (_, models):
        (version,) = models.GetModelStatus(request).model_version_status
    assert (version.version, version.state) == (1, version.AVAILABLE)
    assert version.status.error_code == 0


def test_metadata(server):
    status, reply = ask(server, "GET", "/v1/models/relations/metadata")
    assert status == 200
    spec = {"name": "relations", "signature_name": "", "version": "1"}
    assert reply["model_spec"] == spec
    assert list(reply["metadata"]["signature_def"]) == ["signature_def"]
    signatures = reply["metadata"]["signature_def"]["signature_def"]
    image = signatures["propositions"]["inputs"]["image"]
    assert image["dtype"] == "DT_UINT8"
    assert image["tensor_shape"] == {
        "dim": [{"size": size, "name": ""} for size in ("-1", "36", "36", "3")],
        "unknown_rank": False,
    }
    request = get_model_metadata_pb2.GetModelMetadataRequest(
        model_spec={"name": "relations"}, metadata_field=["signature_def"]
    )
    with services(server) as (predictions, _):
        response = predictions.GetModelMetadata(request)
    assert response.model_spec.version.value == 1
    unpacked = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(unpacked)
    assert sorted(unpacked.signature_def) == sorted(signatures)


def metrics_page(server):
    status, page = ask(server, "GET", "/monitoring/prometheus/metrics")
    assert status == 200
    return page.decode()


def test_metrics(tmp_path):
    save_multiplier(tmp_path)
    with serving.serve(tmp_path, "tiny") as server:
        page = metrics_page(server)
        assert 'model_name="' not in page
        for network in ("rest", "grpc", "grpc"):
            assert factor_of(server, network) == 2
        assert ask(server, "POST", TINY, {"inputs": 3})[0] == 400
        assert ask(server, "POST", TINY, b"{")[0] == 400
        for other in (
            "/v1/models/other:predict",
            "/v1/models/tiny/versions/2:predict",
        ):
            assert ask(server, "POST", other, {"inputs": 3})[0] == 404
        page = metrics_page(server)
    count = ":tensorflow:serving:request_count"
    latency = ":tensorflow:serving:request_latency"
    rest = 'API="predict",entrypoint="REST"'
    grpc = 'API="Predict",entrypoint="GRPC"'
    name = 'model_name="tiny"'
    for line in (
        f"# TYPE {count} counter",
        f'{count}{{{name},status="OK"}} 3.0',
        f'{count}{{{name},status="INVALID_ARGUMENT"}} 2.0',
        f'{count}{{{name},status="NOT_FOUND"}} 1.0',
        f"# TYPE {latency} histogram",
        f"{latency}_count{{{rest},{name}}} 1.0",
        f"{latency}_count{{{grpc},{name}}} 2.0",
        f'{latency}_bucket{{{grpc},le="+Inf",{name}}} 2.0',
    ):
        assert f"{line}\n" in page
    total = re.search(rf'{latency}_sum.*"GRPC".* (\S+)\n', page)[1]
    assert 10 < float(total) < 60e6  # Microseconds.
    assert "other" not in page
    assert "_created" not in page


def test_no_examples_of_no_known_size(pictures, tmp_path):
    reply = ask(pictures, "POST", PREDICT, {"inputs": []})
    assert reply == (200, {"outputs": []})
    save_function(
        tmp_path,
        lambda x: {"sum": tf.reduce_sum(x, (1, 2))},
        shape=(None, None, 2),
    )
    with serving.serve(tmp_path) as server:
        status, reply = ask(server, "POST", PREDICT, {"inputs": {"x": []}})
    assert status == 400
    assert "(None, None, 2). Received: (0,)" in reply["error"]


def test_output_filter(pictures):
    request = message(
        GOOD, output_filter=["label"], signature_name="propositions"
    )
    with services(pictures) as (predictions, _):
        response = predictions.Predict(request, timeout=20)
    assert list(response.outputs) == ["label"]
    assert tf.make_ndarray(response.outputs["label"]).tolist() == [48]
    assert response.model_spec.name == "relations"
    assert response.model_spec.version.value == 1
    assert response.model_spec.signature_name == "propositions"


def test_the_highest_version_is_served(tmp_path):
    for version in (9, 10):
        save_multiplier(tmp_path, version)
    for other in (".export-unfinished", "latest", "011"):
        (tmp_path / other).mkdir()
    with serving.serve(tmp_path) as server:
        assert server.version == 10
        assert serving.model_status(server.rest_url) == {10: "AVAILABLE"}
        with pytest.raises(serving.ServingError, match="v10, the highest"):
            serving.model_status(server.rest_url, version=9)


def test_many_clients_at_once(tiny):
    def check(number):
        x = np.full((2, 2), number, "float32")
        network = "rest" if number % 2 else "grpc"
        (y,) = predict(tiny, network, {"x": x}).values()
        np.testing.assert_array_equal(y, 2 * x)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(check, range(64)))


# Bad requests over REST, each with a part of the explanation.


def picture(value=0):
    """A picture of zeros, but for one value."""
    image = np.zeros((4, 4, 3), "int").tolist()
    image[3][2][1] = value
    return image


IMAGE = picture()


def assert_goes_on(server):
    """A good request is still answered."""
    assert ask(server, "POST", PREDICT, {"inputs": [picture(7)]}) == (
        200,
        {"outputs": [7]},
    )


BAD_BODIES = {
    "empty body": (b"", "JSON parse error"),
    "broken JSON": (b'{"inputs": [', "JSON parse error"),
    "not UTF-8": (b'{"inputs": "\xff\xfe"}', "JSON parse error"),
    "no object": (b"[1, 2]", "expected an object. Received: a list of 2"),
    "deep JSON": (b"[" * 100_000, "JSON parse error"),
    "deep inputs": (
        b'{"inputs": ' + b"[" * 100 + b"1" + b"]" * 100 + b"}",
        "'image' is expected to be uint8: maximum supported dimension",
    ),
    "huge number": (b'{"inputs": ' + b"9" * 5000 + b"}", "JSON parse er"),
    "neither": ({"signature_name": "propositions"}, "neither"),
    "both": ({"instances": [IMAGE], "inputs": [IMAGE]}, "both"),
    "initialization is no signature": (
        {"signature_name": "__saved_model_init_op", "instances": [IMAGE]},
        "not found",
    ),
    "no examples": ({"instances": []}, "one example or more"),
    "wrong shape": (
        {"instances": [[[0, 0, 0]]]},
        r"shape \(None, 4, 4, 3\). Received: \(1, 1, 3\)",
    ),
    "one image, no batch": (
        {"inputs": IMAGE},
        r"shape \(None, 4, 4, 3\). Received: \(4, 4, 3\)",
    ),
    "number": ({"inputs": 3}, r"Received: \(\)"),
    "list of an empty list": ({"inputs": [[]]}, r"Received: \(1, 0\)"),
    "lists of many sizes": (
        {"instances": [IMAGE, IMAGE[1:]]},
        "level 2 expected a list of 4. Received: a list of 3",
    ),
    "list among numbers": (
        {"instances": [picture([0])]},
        "uint8. Received: a list of 1",
    ),
    "number among lists": (
        {"instances": [[[0, 0, 0], 0]]},
        "level 3 expected a list of 3. Received: 0",
    ),
    "fraction": ({"instances": [picture(0.5)]}, "uint8. Received: 0.5"),
    "boolean": ({"instances": [picture(True)]}, "uint8. Received: true"),
    "null": ({"instances": [picture(None)]}, "uint8. Received: null"),
    "not a number": ({"instances": [picture(np.nan)]}, "Received: NaN"),
    "too large": (
        {"instances": [picture(256)]},
        "uint8, from 0 to 255. Received: 256",
    ),
    "negative": ({"inputs": {"image": [picture(-1)]}}, "Received: -1"),
    "base64": (
        {"instances": [{"b64": "AAAA"}]},
        "Received: an object with the keys .'b64'.. Base64 is for strings",
    ),
    "unknown input": (
        {"instances": [{"image": IMAGE, "picture": IMAGE}]},
        r"Item 0 .* keys \['image'\]. Received: an object with",
    ),
    "missing input": ({"instances": [{}]}, r"keys \['image'\]"),
    "object among lists": (
        {"instances": [IMAGE, {"image": IMAGE}]},
        "Received: an object",
    ),
    "list among objects": (
        {"instances": [{"image": IMAGE}, IMAGE]},
        "Item 1 .* Received: a list of 4",
    ),
}


@pytest.mark.parametrize("case", BAD_BODIES)
def test_bad_body(case, pictures):
    body, explanation = BAD_BODIES[case]
    status, reply = ask(pictures, "POST", PREDICT, body)
    assert status == 400
    assert list(reply) == ["error"]
    assert re.search(explanation, reply["error"])
    assert_goes_on(pictures)


LARGE = np.zeros((36, 36, 3), "int").tolist()


@pytest.mark.parametrize(
    ("body", "explanation"),
    [
        ({"instances": [LARGE]}, "for one input, but the signature has"),
        ({"inputs": [LARGE]}, "for one input, but the signature has"),
    ],
)
def test_bad_body_for_two_inputs(body, explanation, multi_task_server):
    url = "/v1/models/multi_task:predict"
    status, reply = ask(multi_task_server, "POST", url, body)
    assert status == 400
    assert explanation in reply["error"]
    good = {"inputs": {"image": [LARGE], "task": [2]}}
    assert ask(multi_task_server, "POST", url, good)[0] == 200


BAD_REQUESTS = [
    ("POST", "/v1/models/other:predict", 404, "Servable not found: 'other'"),
    ("POST", "/v1/models/relations/versions/2:predict", 404, "relations' v2"),
    ("GET", "/v1/models/other", 404, "Served here: 'relations' v1"),
    ("GET", "/v1/models/other/metadata", 404, "not found"),
    ("GET", "/v1/models/relations/versions/2", 404, "not found"),
    ("GET", "/v1/models/relations/versions/x", 400, "Malformed request"),
    ("GET", f"/v1/models/relations/versions/{2**70}", 400, "Malformed"),
    ("GET", "/v1/models", 400, "Malformed request: GET /v1/models."),
    ("GET", "/v1/nothing", 400, "Malformed request"),
    ("POST", "/v1/models/relations:classify", 400, "Malformed request"),
    ("POST", "/v1/models/relations", 400, "Malformed request: POST"),
    ("POST", PREDICT + "?trace=1", 400, "without a query"),
    ("GET", "/v1/models/relations?trace=1", 400, "without a query"),
    ("GET", PREDICT, 400, "Malformed request: GET"),
    ("PUT", PREDICT, 400, "Malformed request: PUT"),
    ("DELETE", "/v1/models/relations", 400, "Malformed request: DELETE"),
    ("PATCH", PREDICT, 400, "Malformed request: PATCH"),
    ("OPTIONS", PREDICT, 400, "Malformed request: OPTIONS"),
    ("BREW", PREDICT, 501, "BREW"),
    ("GET", "/", 404, "Nothing at /"),
    ("POST", "/v2/models/relations", 404, "Nothing at /v2"),
]


@pytest.mark.parametrize(
    ("method", "url", "status", "explanation"), BAD_REQUESTS
)
def test_bad_url_or_method(method, url, status, explanation, pictures):
    body = {"instances": [IMAGE]} if method == "POST" else None
    received, reply = ask(pictures, method, url, body)
    assert received == status
    assert explanation in reply["error"]
    assert_goes_on(pictures)


def test_bad_json_comes_before_an_unknown_model(pictures):
    for body, status in ((b"{", 400), (b"[]", 400), (b"{}", 404)):
        url = "/v1/models/other:predict"
        assert ask(pictures, "POST", url, body)[0] == status


def test_head_has_no_body(pictures):
    assert ask(pictures, "HEAD", PREDICT) == (400, None)


def exchange(server, request):
    """Bytes over a socket, and what is answered: status, headers, content."""
    with connect(server) as connection:
        connection.sendall(request)
        with http.client.HTTPResponse(connection) as response:
            response.begin()
            return response.status, response.headers, response.read()


POST = f"POST {PREDICT} HTTP/1.1\r\n"


@pytest.mark.parametrize(
    ("request_text", "status", "explanation"),
    [
        (f"Content-Length: {MAX_BODY_BYTES + 1}\r\n\r\n", 413, "at most"),
        (
            "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            400,
            "neither",
        ),
        ("Content-Length: 2, 2\r\n\r\n{}", 400, "neither"),
        ("Content-Length: 2 \t\r\nHost: here \r\n\r\n{}", 400, "neither"),
        ("Content-Length: 0\r\n\r\n", 400, "JSON parse error"),
        ("\r\n", 400, "JSON parse error"),
    ],
)
def test_headers(request_text, status, explanation, pictures):
    received, headers, content = exchange(
        pictures, (POST + request_text).encode()
    )
    assert received == status
    assert explanation in json.loads(content)["error"]
    assert "Server" not in headers
    assert_goes_on(pictures)


@pytest.mark.parametrize(
    "request_text",
    [
        POST + "Content-Length: -5\r\n\r\n",
        POST + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "nonsense\r\n\r\n",
    ],
)
def test_heads_that_are_refused_unread(request_text, pictures):
    """By the library, which explains nothing."""
    status, headers, _ = exchange(pictures, request_text.encode())
    assert status == 400
    assert "Server" not in headers
    assert_goes_on(pictures)


def test_compressed_bodies_are_taken_and_bombs_are_not(pictures):
    """As by the real server; what they unpack to counts."""
    for body, status in (
        (b'{"inputs": 3}', 400),
        (b" " * (MAX_BODY_BYTES + 1), 413),
    ):
        body = gzip.compress(body)
        head = f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
        received, _, content = exchange(pictures, (POST + head).encode() + body)
        assert received == status
        assert re.search("shape|at most", json.loads(content)["error"])


def test_oversized_body(pictures):
    """The client gets its answer though it sends everything first."""
    body = b" " * (MAX_BODY_BYTES + 1)
    status, reply = ask(pictures, "POST", PREDICT, body)
    assert status == 413
    assert f"at most {MAX_BODY_BYTES}" in reply["error"]
    assert_goes_on(pictures)


def test_a_client_that_leaves(pictures, capfd):
    for sent in (b"", b"POST", POST.encode()):
        with connect(pictures) as connection:
            connection.sendall(sent)
            # Close with a reset.
            connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
            )
    assert_goes_on(pictures)
    assert "Traceback" not in capfd.readouterr().err


def test_a_fault_of_the_servers_own(pictures, monkeypatch, capfd):
    def fail(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(rest, "answer", fail)
    status, reply = ask(pictures, "GET", "/v1/models/relations")
    assert (status, reply) == (500, {"error": "Internal error, see the log"})
    assert "ZeroDivisionError" in capfd.readouterr().err
    monkeypatch.undo()
    assert ask(pictures, "GET", "/v1/models/relations")[0] == 200


# Bad requests over gRPC.

SIZES = (1, 4, 4, 3)
IMAGE_OF_ONES = tensor(SIZES, tensor_content=b"\1" * 48)
GOOD = {"image": IMAGE_OF_ONES}


message = functools.partial(tiny_servable.message, name="relations")
ONE = {"int_val": [1]}
BAD_MESSAGES = {
    "no spec": (predict_pb2.PredictRequest(), "no `model_spec`"),
    "no name": (message(GOOD, name=""), "no `name`"),
    "other version": (
        message(GOOD, version={"value": 7}),
        "NOT_FOUND: Servable not found: 'relations' v7",
    ),
    "no input": (message({}), r"Missing: \['image'\]"),
    "immense and unknown": (
        message({**GOOD, "picture": tensor((10**9, 4, 4, 3), **ONE)}),
        r"Unknown: \['picture'\]",
    ),
    "output twice": (
        message(GOOD, output_filter=["label", "label"]),
        "`output_filter`",
    ),
}
BAD_TENSORS = {
    "type": (tensor(SIZES, "float32"), "be uint8. Received: float32"),
    "shape": (tensor((1, 4, 5, 3), **ONE), r"Received: \(1, 4, 5, 3\)"),
    "number of bytes": (
        tensor(SIZES, tensor_content=b"123"),
        "'image' is not a proper tensor",
    ),
    "negative size": (tensor((-1, 4, 4, 3)), "negative or too large"),
    # One value that stands for 48 GB of them.
    "immense": (tensor((10**9, 4, 4, 3), **ONE), "negative or too large"),
    # As many values as bytes are taken, of eight bytes each.
    "immense of another type": (
        tensor((64 * 2**20,), "float64", double_val=[1]),
        "Received: float64",
    ),
    # 39 bytes that ask for gigabytes.
    "immense text": (
        tensor((400_000_000,), "string", string_val=[b"a"]),
        "be uint8. Received: string",
    ),
    # No example, but sizes for the graph to make tensors of.
    "immense and empty": (
        tensor((0, 2**62, 2**62, 3)),
        "negative or too large",
    ),
    # The real server fills the tensor with it.
    "one value for all": (tensor(SIZES, **ONE), "takes 48 values. Received: 1"),
    "values of another type": (
        tensor(SIZES, float_val=[1] * 48),
        "values. Received: 0",
    ),
    "unknown rank": (
        tensor_pb2.TensorProto(dtype=4, tensor_shape={"unknown_rank": True}),
        "its rank is unknown",
    ),
    "immense rank": (tensor([1] * 10**6), "its rank is unknown or above 32"),
    "out of range": (
        tensor(SIZES, int_val=[300] * 48),
        "'image' is not a proper tensor",
    ),
    "no type": (
        tensor_pb2.TensorProto(tensor_content=b"1"),
        "'image' is not a proper tensor",
    ),
}
BAD_MESSAGES |= {
    name: (message({"image": image}), explanation)
    for name, (image, explanation) in BAD_TENSORS.items()
}


@pytest.mark.parametrize("case", BAD_MESSAGES)
def test_bad_predict_request(case, pictures):
    request, explanation = BAD_MESSAGES[case]
    with services(pictures) as (predictions, _):
        refused = ": ".join(refusal(predictions.Predict, request))
        if not explanation.startswith("NOT_FOUND"):
            explanation = f"INVALID_ARGUMENT: .*{explanation}"
        assert re.match(explanation, refused)
        assert predictions.Predict(message(GOOD), timeout=20).outputs


def test_damaged_messages(pictures):
    """Also many of them on one connection, which goes on."""
    method = "/tensorflow.serving.PredictionService/Predict"
    with grpc.insecure_channel(pictures.grpc_address) as channel:
        call = channel.unary_unary(method)
        for _ in range(2 * MAX_CALLS):
            with pytest.raises(grpc.RpcError) as refusal:
                call(b"\x0a\xff", timeout=20)
            assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert "The message is damaged" in refusal.value.details()
        assert call(message(GOOD).SerializeToString(), timeout=20)


def test_oversized_message(pictures):
    image = tensor((1_400_000, 4, 4, 3), tensor_content=bytes(1_400_000 * 48))
    with services(pictures) as (predictions, _):
        code, details = refusal(predictions.Predict, message({"image": image}))
        assert code == "RESOURCE_EXHAUSTED"
        assert str(MAX_REQUEST_BYTES) in details
        assert predictions.Predict(message(GOOD), timeout=20).outputs


# Starting and stopping.


def test_nothing_to_serve(tmp_path):
    def assert_refused(path, explanation):
        with pytest.raises(ValueError, match=explanation):
            with serving.serve(path):
                pass

    for path in (tmp_path, tmp_path / "missing"):
        assert_refused(path, "holds no version of a model")
    (tmp_path / "1").mkdir()
    assert_refused(tmp_path, "is not a SavedModel")
    for content, explanation in (
        (b"damaged", "is not a SavedModel"),
        (b"", "no graph with the tag 'serve'"),
    ):
        (tmp_path / "1" / "saved_model.pb").write_bytes(content)
        assert_refused(tmp_path, explanation)


def test_ports_that_are_taken(tiny, tiny_dir):
    rest_port = int(tiny.rest_url.rsplit(":", 1)[1])
    grpc_port = int(tiny.grpc_address.rsplit(":", 1)[1])
    for ports, name in (
        ({"rest_port": rest_port}, "REST"),
        ({"grpc_port": grpc_port}, "gRPC"),
    ):
        with pytest.raises(OSError, match=f"{name} cannot listen on 127"):
            with serving.serve(tiny_dir, **ports):
                pass


def test_stopping_closes_both_ports_and_waits_for_no_idle_client(tiny_dir):
    with serving.serve(tiny_dir) as server:
        idle = http.client.HTTPConnection(urlsplit(server.rest_url).netloc)
        idle.request("GET", "/v1/models/relations")
        assert idle.getresponse().read()
        start = time.monotonic()
    assert time.monotonic() - start < 15
    idle.close()
    for address in (
        server.rest_url.removeprefix("http://"),
        server.grpc_address,
    ):
        host, port = address.split(":")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, port), timeout=5)


def run_command(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["serving", *arguments])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as exit_:
        command.main()
    return exit_.value.code


def test_help_says_what_it_is(monkeypatch, capsys):
    assert run_command(monkeypatch, "--help") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "A stand-in for development" in text
    for default in ("relations", "8501", "8500", "127.0.0.1"):
        assert f"(default: {default})" in text


def test_command_without_a_version_that_loads(monkeypatch, capsys, tmp_path):
    save_multiplier(tmp_path, 3)
    (tmp_path / "3/variables/variables.index").unlink()
    (tmp_path / "4").mkdir()
    (tmp_path / "4/saved_model.pb").write_bytes(b"damaged")
    assert run_command(monkeypatch, f"--model-dir={tmp_path}") == 1
    errors = capsys.readouterr().err
    assert "Version 3 of 'relations' does not load" in errors
    assert re.search(r"version that loads. Tried: \[3, 4\].*4.*damaged", errors)


def test_command_with_a_bad_port(monkeypatch, capsys):
    code = run_command(monkeypatch, "--model-dir=x", "--rest-port=70000")
    assert code == 2
    assert "70000" in capsys.readouterr().err
