import concurrent.futures
import contextlib
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import classification_pb2
from tensorflow_serving.apis import get_model_metadata_pb2
from tensorflow_serving.apis import get_model_status_pb2
from tensorflow_serving.apis import model_service_pb2_grpc
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc
from tiny_servable import factor_of
from tiny_servable import save_multiplier

from keras_relational import serving
from keras_relational.serving import __main__ as command
from keras_relational.serving import rest
from keras_relational.serving.grpc_services import MAX_CALLS
from keras_relational.serving.http_server import MAX_BODY_BYTES
from keras_relational.serving.servable import MAX_REQUEST_BYTES

PREDICT = "/v1/models/relations:predict"


def ask(server, method, url, body=None):
    """One request over HTTP: status and JSON."""
    connection = http.client.HTTPConnection(
        urlsplit(server.rest_url).netloc, timeout=20
    )
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    connection.request(method, url, body)
    response = connection.getresponse()
    assert response.getheader("Content-Type") == "application/json"
    content = response.read()
    connection.close()
    return response.status, json.loads(content) if content else None


def assert_goes_on(server, images, expected):
    outputs = serving.predict_rest(server.rest_url, {"image": images[:2]})
    np.testing.assert_array_equal(outputs["label"], expected["label"][:2])


# Good requests.


@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("signature_name", ["serving_default", "propositions"])
@pytest.mark.parametrize("network", ["rest", "grpc"])
def test_both_networks_answer_as_the_model(
    network,
    signature_name,
    batch_size,
    server,
    images,
    expected,
    assert_answers,
):
    inputs = {"image": images[:batch_size]}
    if network == "rest":
        outputs = serving.predict_rest(
            server.rest_url, inputs, signature_name=signature_name
        )
    else:
        outputs = serving.predict_grpc(
            server.grpc_address, inputs, signature_name=signature_name
        )
    assert_answers(outputs, expected, signature_name, batch_size)


@pytest.mark.parametrize("network", ["rest", "grpc"])
def test_multi_task_model(
    network,
    multi_task_server,
    images,
    tasks,
    multi_task_expected,
    assert_answers,
):
    inputs = {"image": images, "task": tasks}
    if network == "rest":
        outputs = serving.predict_rest(
            multi_task_server.rest_url, inputs, "multi_task", version=3
        )
    else:
        outputs = serving.predict_grpc(
            multi_task_server.grpc_address, inputs, "multi_task", version=3
        )
    assert_answers(outputs, multi_task_expected, "serving_default", 7)


@pytest.mark.parametrize("network", ["rest", "grpc"])
@pytest.mark.parametrize(
    ("wrong", "explanation"),
    [
        ([0, 1, 2, 2, 1, 0, 3], "must be 0 or more, and below 3"),
        ([0], "inputs image and task must have one batch size"),
    ],
)
def test_what_the_graph_refuses_is_told(
    network, wrong, explanation, multi_task_server, images, tasks
):
    predict = serving.predict_rest
    address, code = multi_task_server.rest_url, 400
    if network == "grpc":
        predict = serving.predict_grpc
        address, code = multi_task_server.grpc_address, "INVALID_ARGUMENT"
    inputs = {"image": images, "task": np.array(wrong, "uint8")}
    with pytest.raises(serving.ServingError, match=explanation) as refusal:
        predict(address, inputs, "multi_task")
    assert refusal.value.code == code
    inputs["task"] = tasks
    assert predict(address, inputs, "multi_task")["label"].shape == (7,)


@pytest.mark.parametrize("named", [False, True])
def test_row_format(named, server, images, expected):
    rows = images[:3].tolist()
    if named:
        rows = [{"image": row} for row in rows]
    status, reply = ask(server, "POST", PREDICT, {"instances": rows})
    assert status == 200
    assert list(reply) == ["predictions"]
    assert len(reply["predictions"]) == 3
    for number, prediction in enumerate(reply["predictions"]):
        assert sorted(prediction) == ["label", "probabilities"]
        assert prediction["label"] == expected["label"][number]
        np.testing.assert_allclose(
            prediction["probabilities"],
            expected["probabilities"][number],
            rtol=1e-5,
        )


def test_row_format_with_two_inputs(
    multi_task_server, images, tasks, multi_task_expected
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
    np.testing.assert_allclose(
        [row["probabilities"] for row in reply["predictions"]],
        multi_task_expected["probabilities"],
        rtol=1e-5,
    )


def test_column_format_with_a_plain_list(server, images, expected):
    body = {"inputs": images.tolist()}
    status, reply = ask(server, "POST", PREDICT, body)
    assert status == 200
    assert reply["outputs"]["label"] == expected["label"].tolist()


def test_column_format_leaves_other_keys_aside(server, images, expected):
    """As TensorFlow Serving does, in this format only."""
    body = {"inputs": {"image": images.tolist(), "other": 1}}
    status, reply = ask(server, "POST", PREDICT, body)
    assert status == 200
    assert reply["outputs"]["label"] == expected["label"].tolist()


def test_a_signature_with_one_output_leaves_out_its_name(tmp_path):
    module = tf.Module()
    module.double = tf.function(
        lambda x: {"doubled": 2 * x},
        input_signature=[tf.TensorSpec((None, 2), tf.float32, name="x")],
    )
    tf.saved_model.save(
        module, str(tmp_path / "1"), {"serving_default": module.double}
    )
    x = [[1, 2.5], [3, 4]]
    url = "/v1/models/doubles:predict"
    with serving.serve(tmp_path, "doubles") as server:
        assert ask(server, "POST", url, {"instances": x})[1] == {
            "predictions": [[2, 5], [6, 8]]
        }
        assert ask(server, "POST", url, {"inputs": {"x": x}})[1] == {
            "outputs": [[2, 5], [6, 8]]
        }
        outputs = serving.predict_rest(server.rest_url, {"x": x}, "doubles")
        np.testing.assert_array_equal(outputs["outputs"], [[2, 5], [6, 8]])


def test_numbers_beyond_float32(tmp_path):
    module = tf.Module()
    module.double = tf.function(
        lambda x: {"doubled": 2 * x},
        input_signature=[tf.TensorSpec((None,), tf.float32, name="x")],
    )
    tf.saved_model.save(
        module, str(tmp_path / "1"), {"serving_default": module.double}
    )
    url = "/v1/models/doubles:predict"
    with serving.serve(tmp_path, "doubles") as server:
        for number in (1e39, -1e300, 10**400):
            status, reply = ask(server, "POST", url, {"instances": [1, number]})
            assert status == 400
            assert "'x' is expected to be float32" in reply["error"]
        answers = ask(server, "POST", url, {"instances": [1, 1e38]})
        assert answers == (200, {"predictions": [2, pytest.approx(2e38)]})


def test_outputs_of_other_models(tmp_path):
    """Text, bytes, and what is not one answer for each example."""
    module = tf.Module()
    module.answer = tf.function(
        lambda x: {
            "text": tf.strings.as_string(x),
            "raw_bytes": tf.fill(tf.shape(x), b"\xff\x00"),
        },
        input_signature=[tf.TensorSpec((None,), tf.int32, name="x")],
    )
    module.total = tf.function(
        lambda x: {"total": tf.reduce_sum(x), "name": tf.constant("sum")},
        input_signature=[tf.TensorSpec((None,), tf.int32, name="x")],
    )
    tf.saved_model.save(
        module,
        str(tmp_path / "1"),
        {"serving_default": module.answer, "total": module.total},
    )
    url = "/v1/models/texts:predict"
    with serving.serve(tmp_path, "texts") as server:
        assert ask(server, "POST", url, {"instances": [3, 4]}) == (
            200,
            {
                "predictions": [
                    {"text": text, "raw_bytes": {"b64": "/wA="}}
                    for text in ("3", "4")
                ]
            },
        )
        body = {"signature_name": "total", "inputs": [3, 4]}
        assert ask(server, "POST", url, body) == (
            200,
            {"outputs": {"total": 7, "name": "sum"}},
        )
        body = {"signature_name": "total", "instances": [3, 4]}
        status, reply = ask(server, "POST", url, body)
        assert status == 400
        assert "must have one batch size" in reply["error"]


@pytest.mark.parametrize("versions", ["", "/versions/1"])
def test_status(versions, server):
    available = {
        "model_version_status": [
            {
                "version": "1",
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }
    status, reply = ask(server, "GET", f"/v1/models/relations{versions}")
    assert (status, reply) == (200, available)
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "relations"
    if versions:
        request.model_spec.version.value = 1
    with grpc.insecure_channel(server.grpc_address) as channel:
        service = model_service_pb2_grpc.ModelServiceStub(channel)
        (version,) = service.GetModelStatus(request).model_version_status
    assert (version.version, version.state) == (1, version.AVAILABLE)
    assert version.status.error_code == 0


def test_metadata(server):
    status, reply = ask(server, "GET", "/v1/models/relations/metadata")
    assert status == 200
    assert reply["model_spec"] == {
        "name": "relations",
        "signature_name": "",
        "version": "1",
    }
    signatures = reply["metadata"]["signature_def"]["signature_def"]
    assert list(reply["metadata"]["signature_def"]) == ["signature_def"]
    image = signatures["propositions"]["inputs"]["image"]
    assert image["dtype"] == "DT_UINT8"
    assert image["tensor_shape"] == {
        "dim": [{"size": size, "name": ""} for size in ("-1", "36", "36", "3")],
        "unknown_rank": False,
    }
    request = get_model_metadata_pb2.GetModelMetadataRequest()
    request.model_spec.name = "relations"
    request.metadata_field.append("signature_def")
    with grpc.insecure_channel(server.grpc_address) as channel:
        service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        response = service.GetModelMetadata(request)
    assert response.model_spec.version.value == 1
    unpacked = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(unpacked)
    assert sorted(unpacked.signature_def) == sorted(signatures)


def test_metrics(tmp_path):
    save_multiplier(tmp_path)
    with serving.serve(tmp_path, "tiny") as server:
        page = metrics_page(server)
        assert 'model_name="' not in page
        for network in ("rest", "grpc", "grpc"):
            assert factor_of(server, network) == 2
        url = "/v1/models/tiny:predict"
        assert ask(server, "POST", url, {"inputs": 3})[0] == 400
        assert ask(server, "POST", url, b"{")[0] == 400
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


def metrics_page(server):
    connection = http.client.HTTPConnection(urlsplit(server.rest_url).netloc)
    with contextlib.closing(connection):
        connection.request("GET", "/monitoring/prometheus/metrics")
        response = connection.getresponse()
        assert response.getheader("Content-Type").startswith("text/plain")
        return response.read().decode()


@pytest.mark.parametrize("signature_name", ["serving_default", "propositions"])
def test_no_examples(signature_name, server, images, expected):
    """An empty list has the signature's other sizes."""
    for outputs in (
        serving.predict_rest(
            server.rest_url,
            {"image": images[:0]},
            signature_name=signature_name,
        ),
        serving.predict_grpc(
            server.grpc_address,
            {"image": images[:0]},
            signature_name=signature_name,
        ),
    ):
        assert {"label", "probabilities"} <= set(outputs)
        assert all(len(value) == 0 for value in outputs.values())
    status, reply = ask(server, "POST", PREDICT, {"inputs": []})
    assert status == 200
    assert reply["outputs"] == {"label": [], "probabilities": []}


def test_no_examples_of_no_known_size(tmp_path):
    module = tf.Module()
    module.sum = tf.function(
        lambda x: {"sum": tf.reduce_sum(x, (1, 2))},
        input_signature=[tf.TensorSpec((None, None, 2), tf.float32, name="x")],
    )
    tf.saved_model.save(
        module, str(tmp_path / "1"), {"serving_default": module.sum}
    )
    with serving.serve(tmp_path, "sums") as server:
        url = "/v1/models/sums:predict"
        status, reply = ask(server, "POST", url, {"inputs": {"x": []}})
        assert status == 400
        assert "(None, None, 2). Received: (0,)" in reply["error"]


def test_bad_json_comes_before_an_unknown_model(server):
    for body, status in ((b"{", 400), (b"[]", 400), (b"{}", 404)):
        url = "/v1/models/other:predict"
        assert ask(server, "POST", url, body)[0] == status


def test_output_filter(server, images, expected):
    request = predict_request(images)
    request.output_filter.append("label")
    response = predict(server, request)
    assert list(response.outputs) == ["label"]
    np.testing.assert_array_equal(
        tf.make_ndarray(response.outputs["label"]), expected["label"]
    )
    assert response.model_spec.name == "relations"
    assert response.model_spec.version.value == 1
    assert response.model_spec.signature_name == "serving_default"


def test_the_highest_version_is_served(model_dir, tmp_path):
    shutil.copytree(model_dir / "1", tmp_path / "9")
    shutil.copytree(model_dir / "1", tmp_path / "10")
    for other in (".export-unfinished", "latest", "011"):
        (tmp_path / other).mkdir()
    with serving.serve(tmp_path) as server:
        assert server.version == 10
        assert serving.model_status(server.rest_url) == {10: "AVAILABLE"}
        with pytest.raises(serving.ServingError, match="v10, the highest"):
            serving.model_status(server.rest_url, version=9)


def test_many_clients_at_once(server, images, expected):
    def check(number):
        batch = images[number % 7 : number % 7 + 1]
        inputs = {"image": batch}
        if number % 2:
            outputs = serving.predict_rest(server.rest_url, inputs)
        else:
            outputs = serving.predict_grpc(server.grpc_address, inputs)
        np.testing.assert_allclose(
            outputs["probabilities"],
            expected["probabilities"][number % 7 : number % 7 + 1],
            rtol=1e-5,
        )

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(check, range(64)))


# Bad requests over REST, each with its status and a part of the explanation.

IMAGE = np.zeros((36, 36, 3), "int").tolist()


def changed(value):
    image = np.zeros((36, 36, 3), "int").tolist()
    image[3][4][1] = value
    return image


BAD_BODIES = {
    "empty body": (b"", 400, "JSON parse error"),
    "broken JSON": (b'{"inputs": [', 400, "JSON parse error"),
    "not UTF-8": (b'{"inputs": "\xff\xfe"}', 400, "JSON parse error"),
    "no object": (b"[1, 2]", 400, "expected an object. Received: a list of 2"),
    "deep JSON": (b"[" * 100_000, 400, "JSON parse error"),
    "deep inputs": (
        b'{"inputs": ' + b"[" * 100 + b"1" + b"]" * 100 + b"}",
        400,
        "'image' is expected to be uint8: maximum supported dimension",
    ),
    "huge number": (b'{"inputs": ' + b"9" * 5000 + b"}", 400, "JSON parse er"),
    "neither": ({"signature_name": "propositions"}, 400, "neither"),
    "both": ({"instances": [IMAGE], "inputs": [IMAGE]}, 400, "both"),
    "unknown signature": (
        {"signature_name": "no_such", "instances": [IMAGE]},
        400,
        "signature 'no_such' not found.*'propositions', 'serving_default'",
    ),
    "initialization is no signature": (
        {"signature_name": "__saved_model_init_op", "instances": [IMAGE]},
        400,
        "not found",
    ),
    "signature's type": (
        {"signature_name": 3, "instances": [IMAGE]},
        400,
        "'signature_name' must be a string. Received: 3",
    ),
    "no examples": ({"instances": []}, 400, "one example or more"),
    "instances' type": ({"instances": 3}, 400, "one example or more"),
    "wrong shape": (
        {"instances": [[[0, 0, 0]]]},
        400,
        r"shape \(None, 36, 36, 3\). Received: \(1, 1, 3\)",
    ),
    "one image, no batch": (
        {"inputs": IMAGE},
        400,
        r"shape \(None, 36, 36, 3\). Received: \(36, 36, 3\)",
    ),
    "number": ({"inputs": 3}, 400, r"Received: \(\)"),
    "list of an empty list": ({"inputs": [[]]}, 400, r"Received: \(1, 0\)"),
    "lists of many sizes": (
        {"instances": [IMAGE, IMAGE[1:]]},
        400,
        "level 2 expected a list of 36. Received: a list of 35",
    ),
    "list among numbers": (
        {"instances": [changed([0])]},
        400,
        "uint8. Received: a list of 1",
    ),
    "number among lists": (
        {"instances": [[[0, 0, 0], 0]]},
        400,
        "level 3 expected a list of 3. Received: 0",
    ),
    "string": ({"instances": [changed("7")]}, 400, 'uint8. Received: "7"'),
    "fraction": ({"instances": [changed(0.5)]}, 400, "uint8. Received: 0.5"),
    "boolean": ({"instances": [changed(True)]}, 400, "uint8. Received: true"),
    "null": ({"instances": [changed(None)]}, 400, "uint8. Received: null"),
    "not a number": ({"instances": [changed(np.nan)]}, 400, "Received: NaN"),
    "too large": (
        {"instances": [changed(256)]},
        400,
        "uint8, from 0 to 255. Received: 256",
    ),
    "negative": ({"inputs": {"image": [changed(-1)]}}, 400, "Received: -1"),
    "base64": (
        {"instances": [{"b64": "AAAA"}]},
        400,
        "Received: an object with the keys .'b64'.. Base64 is for strings",
    ),
    "unknown input": (
        {"instances": [{"image": IMAGE, "picture": IMAGE}]},
        400,
        r"Item 0 .* keys \['image'\]. Received: an object with",
    ),
    "missing input": ({"instances": [{}]}, 400, r"keys \['image'\]"),
    "missing column": ({"inputs": {"x": 1}}, 400, "'inputs' has no 'image'"),
    "object among lists": (
        {"instances": [IMAGE, {"image": IMAGE}]},
        400,
        "Received: an object",
    ),
    "list among objects": (
        {"instances": [{"image": IMAGE}, IMAGE]},
        400,
        "Item 1 .* Received: a list of 36",
    ),
}


@pytest.mark.parametrize("case", BAD_BODIES)
def test_bad_body(case, server, images, expected):
    body, status, explanation = BAD_BODIES[case]
    received, reply = ask(server, "POST", PREDICT, body)
    assert received == status
    assert list(reply) == ["error"]
    assert re.search(explanation, reply["error"])
    assert_goes_on(server, images, expected)


@pytest.mark.parametrize(
    ("body", "explanation"),
    [
        ({"instances": [IMAGE]}, "for one input, but the signature has"),
        ({"inputs": [IMAGE]}, "for one input, but the signature has"),
        (
            {"inputs": {"image": [IMAGE, IMAGE], "task": [1, 1, 1]}},
            "The inputs image and task must have one batch size",
        ),
    ],
)
def test_bad_body_for_two_inputs(body, explanation, multi_task_server):
    url = "/v1/models/multi_task:predict"
    status, reply = ask(multi_task_server, "POST", url, body)
    assert status == 400
    assert explanation in reply["error"]
    good = {"inputs": {"image": [IMAGE], "task": [2]}}
    assert ask(multi_task_server, "POST", url, good)[0] == 200


@pytest.mark.parametrize(
    ("method", "url", "status", "explanation"),
    [
        (
            "POST",
            "/v1/models/other:predict",
            404,
            "Servable not found: 'other'",
        ),
        (
            "POST",
            "/v1/models/relations/versions/2:predict",
            404,
            "relations' v2",
        ),
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
    ],
)
def test_bad_url_or_method(
    method, url, status, explanation, server, images, expected
):
    body = {"instances": [IMAGE]} if method == "POST" else None
    received, reply = ask(server, method, url, body)
    assert received == status
    assert explanation in reply["error"]
    assert_goes_on(server, images, expected)


def test_head_has_no_body(server):
    assert ask(server, "HEAD", PREDICT) == (400, None)


def exchange(server, request):
    """Bytes over a socket, and what is answered: status, headers, content."""
    host, port = urlsplit(server.rest_url).netloc.split(":")
    with socket.create_connection((host, port), timeout=20) as connection:
        connection.sendall(request)
        with http.client.HTTPResponse(connection) as response:
            response.begin()
            return response.status, response.headers, response.read()


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
def test_headers(request_text, status, explanation, server, images, expected):
    received, headers, content = exchange(
        server, f"POST {PREDICT} HTTP/1.1\r\n{request_text}".encode()
    )
    assert received == status
    assert explanation in json.loads(content)["error"]
    assert "Server" not in headers
    assert_goes_on(server, images, expected)


@pytest.mark.parametrize(
    "request_text",
    [
        "Content-Length: abc\r\n\r\n",
        "Content-Length: -5\r\n\r\n",
        "Content-Length: 1_0\r\n\r\n1234567890",
        f"Content-Length: {'9' * 5000}\r\n\r\n",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "Content-Length : 2\r\n\r\n{}",
        "no colon\r\n\r\n",
    ],
)
def test_heads_that_are_refused_unread(request_text, server, images, expected):
    """By the library, which explains nothing."""
    status, headers, _ = exchange(
        server, f"POST {PREDICT} HTTP/1.1\r\n{request_text}".encode()
    )
    assert status == 400
    assert "Server" not in headers
    assert_goes_on(server, images, expected)


@pytest.mark.parametrize(
    "request_bytes",
    [b"nonsense\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\r\n\r\n"],
)
def test_what_is_not_http(request_bytes, server, images, expected):
    assert exchange(server, request_bytes)[0] == 400
    assert_goes_on(server, images, expected)


def test_compressed_bodies_are_taken_and_bombs_are_not(server):
    """As by the real server; what they unpack to counts."""
    for body, status in (
        (b'{"inputs": 3}', 400),
        (b" " * (MAX_BODY_BYTES + 1), 413),
    ):
        body = gzip.compress(body)
        received, _, content = exchange(
            server,
            f"POST {PREDICT} HTTP/1.1\r\nContent-Encoding: gzip\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body,
        )
        assert received == status
        assert re.search("shape|at most", json.loads(content)["error"])


def test_oversized_body(server, images, expected):
    """The client gets its answer though it sends everything first."""
    body = b" " * (MAX_BODY_BYTES + 1)
    status, reply = ask(server, "POST", PREDICT, body)
    assert status == 413
    assert f"at most {MAX_BODY_BYTES}" in reply["error"]
    assert_goes_on(server, images, expected)


def test_a_client_that_leaves(server, images, expected, capfd):
    host, port = urlsplit(server.rest_url).netloc.split(":")
    for sent in (b"", b"POST", f"POST {PREDICT} HTTP/1.1\r\n".encode()):
        with socket.create_connection((host, port)) as connection:
            connection.sendall(sent)
            # Close with a reset.
            connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
            )
    assert_goes_on(server, images, expected)
    assert "Traceback" not in capfd.readouterr().err


def test_one_connection_for_many_requests(server):
    connection = http.client.HTTPConnection(urlsplit(server.rest_url).netloc)
    for body, status in ((b"{", 400), (b'{"inputs": 3}', 400), (b"", 400)):
        connection.request("POST", PREDICT, body)
        response = connection.getresponse()
        assert response.status == status
        response.read()
    connection.request("GET", "/v1/models/relations")
    assert connection.getresponse().status == 200
    connection.close()


def test_a_fault_of_the_servers_own(server, monkeypatch, capfd):
    def fail(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(rest, "answer", fail)
    status, reply = ask(server, "GET", "/v1/models/relations")
    assert (status, reply) == (500, {"error": "Internal error, see the log"})
    assert "ZeroDivisionError" in capfd.readouterr().err
    monkeypatch.undo()
    assert ask(server, "GET", "/v1/models/relations")[0] == 200


# Bad requests over gRPC.


def predict_request(images, name="relations"):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    request.inputs["image"].CopyFrom(tf.make_tensor_proto(images))
    return request


def predict(server, request):
    with grpc.insecure_channel(server.grpc_address) as channel:
        service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        return service.Predict(request, timeout=20)


def no_spec(request):
    request.ClearField("model_spec")


def no_name(request):
    request.model_spec.name = ""


def other_model(request):
    request.model_spec.name = "other"


def other_version(request):
    request.model_spec.version.value = 7


def label(request):
    request.model_spec.version_label = "stable"


def other_signature(request):
    request.model_spec.signature_name = "no_such"


def no_input(request):
    request.ClearField("inputs")


def more_inputs(request):
    request.inputs["picture"].CopyFrom(request.inputs["image"])


def wrong_type(request):
    value = np.zeros((1, 36, 36, 3), "float32")
    request.inputs["image"].CopyFrom(tf.make_tensor_proto(value))


def wrong_shape(request):
    value = np.zeros((1, 36, 37, 3), "uint8")
    request.inputs["image"].CopyFrom(tf.make_tensor_proto(value))


def wrong_size(request):
    request.inputs["image"].tensor_content = b"123"


def negative_size(request):
    request.inputs["image"].tensor_shape.dim[0].size = -1


def immense(request):
    """One value that stands for 4 TB of them."""
    tensor = request.inputs["image"]
    tensor.tensor_content = b""
    tensor.int_val.append(1)
    tensor.tensor_shape.dim[0].size = 10**9


def immense_of_another_type(request):
    """As many values as bytes are taken, of eight bytes each."""
    immense(request)
    tensor = request.inputs["image"]
    tensor.dtype = tf.float64.as_datatype_enum
    tensor.double_val.append(1)
    del tensor.tensor_shape.dim[1:]
    tensor.tensor_shape.dim[0].size = 64 * 2**20


def immense_and_unknown(request):
    more_inputs(request)
    request.inputs["picture"].tensor_shape.dim[0].size = 10**9


def out_of_range(request):
    tensor = request.inputs["image"]
    tensor.tensor_content = b""
    tensor.int_val.extend([300] * 36 * 36 * 3)


def one_value_for_all(request):
    """The real server fills the tensor with it."""
    tensor = request.inputs["image"]
    tensor.tensor_content = b""
    tensor.int_val.append(1)


def values_of_another_type(request):
    tensor = request.inputs["image"]
    tensor.tensor_content = b""
    tensor.float_val.extend([1] * 36 * 36 * 3)


def immense_text(request):
    """39 bytes that ask for gigabytes."""
    tensor = request.inputs["image"]
    tensor.Clear()
    tensor.dtype = tf.string.as_datatype_enum
    tensor.tensor_shape.dim.add().size = 400_000_000
    tensor.string_val.append(b"a")


def immense_and_empty(request):
    """No example, but sizes for the graph to make tensors of."""
    tensor = request.inputs["image"]
    tensor.tensor_content = b""
    for dim, size in zip(
        tensor.tensor_shape.dim, (0, 2**62, 2**62, 3), strict=True
    ):
        dim.size = size


def unknown_rank(request):
    request.inputs["image"].tensor_shape.Clear()
    request.inputs["image"].tensor_shape.unknown_rank = True


def immense_rank(request):
    dim = request.inputs["image"].tensor_shape.dim
    for _ in range(10**6):
        dim.add().size = 1


def no_dtype(request):
    request.inputs["image"].dtype = 0


def unknown_output(request):
    request.output_filter.append("no_such")


def output_twice(request):
    request.output_filter.extend(["label", "label"])


@pytest.mark.parametrize(
    ("spoil", "code", "explanation"),
    [
        (no_spec, "INVALID_ARGUMENT", "no `model_spec`"),
        (no_name, "INVALID_ARGUMENT", "no `name`"),
        (other_model, "NOT_FOUND", "Servable not found: 'other'"),
        (other_version, "NOT_FOUND", "Servable not found: 'relations' v7"),
        (label, "INVALID_ARGUMENT", "label not found: 'stable'"),
        (other_signature, "FAILED_PRECONDITION", "'no_such' not found"),
        (no_input, "INVALID_ARGUMENT", "Missing: ['image']"),
        (more_inputs, "INVALID_ARGUMENT", "Unknown: ['picture']"),
        (wrong_type, "INVALID_ARGUMENT", "be uint8. Received: float32"),
        (wrong_shape, "INVALID_ARGUMENT", "Received: (1, 36, 37, 3)"),
        (wrong_size, "INVALID_ARGUMENT", "'image' is not a proper tensor"),
        (negative_size, "INVALID_ARGUMENT", "negative or too large"),
        (immense, "INVALID_ARGUMENT", "negative or too large"),
        (immense_of_another_type, "INVALID_ARGUMENT", "Received: float64"),
        (immense_text, "INVALID_ARGUMENT", "be uint8. Received: string"),
        (immense_and_empty, "INVALID_ARGUMENT", "negative or too large"),
        (
            one_value_for_all,
            "INVALID_ARGUMENT",
            "takes 3888 values. Received: 1",
        ),
        (values_of_another_type, "INVALID_ARGUMENT", "values. Received: 0"),
        (unknown_rank, "INVALID_ARGUMENT", "its rank is unknown"),
        (immense_rank, "INVALID_ARGUMENT", "its rank is unknown or above 32"),
        (immense_and_unknown, "INVALID_ARGUMENT", "Unknown: ['picture']"),
        (out_of_range, "INVALID_ARGUMENT", "'image' is not a proper tensor"),
        (no_dtype, "INVALID_ARGUMENT", "'image' is not a proper tensor"),
        (unknown_output, "INVALID_ARGUMENT", "`output_filter`"),
        (output_twice, "INVALID_ARGUMENT", "`output_filter`"),
    ],
)
def test_bad_predict_request(
    spoil, code, explanation, server, images, expected
):
    request = predict_request(images[:1])
    spoil(request)
    with pytest.raises(grpc.RpcError) as refusal:
        predict(server, request)
    assert refusal.value.code().name == code
    assert explanation in refusal.value.details()
    response = predict(server, predict_request(images))
    np.testing.assert_array_equal(
        tf.make_ndarray(response.outputs["label"]), expected["label"]
    )


def test_damaged_messages(server, images):
    """Also many of them on one connection, which goes on."""
    method = "/tensorflow.serving.PredictionService/Predict"
    with grpc.insecure_channel(server.grpc_address) as channel:
        call = channel.unary_unary(method)
        for _ in range(2 * MAX_CALLS):
            with pytest.raises(grpc.RpcError) as refusal:
                call(b"\x0a\xff", timeout=20)
            assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert "The message is damaged" in refusal.value.details()
        request = predict_request(images)
        assert call(request.SerializeToString(), timeout=20)


def test_oversized_message(server, images):
    request = predict_request(np.zeros((17500, 36, 36, 3), "uint8"))
    with pytest.raises(grpc.RpcError) as refusal:
        predict(server, request)
    assert refusal.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert str(MAX_REQUEST_BYTES) in refusal.value.details()
    predict(server, predict_request(images))


def test_bad_status_metadata_and_method(server):
    metadata = get_model_metadata_pb2.GetModelMetadataRequest()
    metadata.model_spec.name = "relations"
    status = get_model_status_pb2.GetModelStatusRequest()
    status.model_spec.name = "other"
    with grpc.insecure_channel(server.grpc_address) as channel:
        predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        models = model_service_pb2_grpc.ModelServiceStub(channel)
        with pytest.raises(grpc.RpcError) as refusal:
            predictions.GetModelMetadata(metadata)
        assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "'signature_def'. Received: []" in refusal.value.details()
        with pytest.raises(grpc.RpcError) as refusal:
            models.GetModelStatus(status)
        assert refusal.value.code() == grpc.StatusCode.NOT_FOUND
        with pytest.raises(grpc.RpcError) as refusal:
            predictions.Classify(classification_pb2.ClassificationRequest())
        assert refusal.value.code() == grpc.StatusCode.UNIMPLEMENTED
        status.model_spec.name = "relations"
        assert models.GetModelStatus(status).model_version_status


# Starting and stopping.


def test_nothing_to_serve(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ValueError, match="holds no version of a model"):
            with serving.serve(path):
                pass
    (tmp_path / "1").mkdir()
    with pytest.raises(ValueError, match="is not a SavedModel"):
        with serving.serve(tmp_path):
            pass


def test_ports_that_are_taken(server, model_dir):
    rest_port = int(server.rest_url.rsplit(":", 1)[1])
    grpc_port = int(server.grpc_address.rsplit(":", 1)[1])
    for ports, name in (
        ({"rest_port": rest_port}, "REST"),
        ({"grpc_port": grpc_port}, "gRPC"),
    ):
        with pytest.raises(OSError, match=f"{name} cannot listen on 127"):
            with serving.serve(model_dir, **ports):
                pass


def test_stopping_closes_both_ports_and_waits_for_no_idle_client(model_dir):
    with serving.serve(model_dir) as server:
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


def test_command(model_dir, images, expected):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.Popen(
        [
            sys.executable,
            *("-m", "keras_relational.serving"),
            f"--model-dir={model_dir}",
            "--model-name=shapes",
            "--rest-port=0",
            "--grpc-port=0",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    with process:
        try:
            ready = process.stdout.readline()
            rest_url, grpc_address = re.fullmatch(
                r"Serving shapes version 1: REST on (http://127\.0\.0\.1:\d+), "
                r"gRPC on (127\.0\.0\.1:\d+)\n",
                ready,
            ).groups()
            inputs = {"image": images}
            for outputs in (
                serving.predict_rest(rest_url, inputs, "shapes"),
                serving.predict_grpc(grpc_address, inputs, "shapes"),
            ):
                np.testing.assert_array_equal(
                    outputs["label"], expected["label"]
                )
            process.send_signal(signal.SIGTERM)
            assert process.stdout.read() == "Stopped\n"
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


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


def test_command_without_a_model(monkeypatch, capsys, tmp_path):
    assert run_command(monkeypatch, "--model-dir", str(tmp_path)) == 1
    assert "holds no version of a model" in capsys.readouterr().err


def test_command_with_a_bad_port(monkeypatch, capsys):
    code = run_command(monkeypatch, "--model-dir=x", "--rest-port=70000")
    assert code == 2
    assert "70000" in capsys.readouterr().err
