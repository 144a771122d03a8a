"""TensorFlow Serving's REST interface: URLs and JSON, without a network."""

import base64
import contextlib
import gc
import itertools
import json
import re
import threading
import typing
from urllib.parse import unquote

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from keras_relational.serving.errors import BUSY
from keras_relational.serving.errors import explanation_of
from keras_relational.serving.errors import invalid_argument
from keras_relational.serving.errors import not_found
from keras_relational.serving.errors import quoted
from keras_relational.serving.errors import shortened
from keras_relational.serving.served_model import ServedModel

if typing.TYPE_CHECKING:  # It imports Prometheus' client, an extra.
    from keras_relational.serving.metrics import Metrics

_MODEL = r"/v1/models/(?P<name>[^/:?]+)(?:/versions/(?P<version>[0-9]{1,18}))?"
_PREDICT_URL = re.compile(_MODEL + ":predict", re.IGNORECASE)
_STATUS_URL = re.compile(_MODEL + "(?P<metadata>/metadata)?", re.IGNORECASE)

METRICS_URL = "/monitoring/prometheus/metrics"

_METHODS = {
    *("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"),
    "CONNECT",
}

_LARGE_BODY = 2**20
_SECONDS_TO_WAIT = 2
_one_large_body = threading.Lock()

# HTTP's status for gRPC's codes. Any other code becomes 500.
_HTTP_STATUS = {
    tf.errors.INVALID_ARGUMENT: 400,
    tf.errors.FAILED_PRECONDITION: 400,
    tf.errors.OUT_OF_RANGE: 400,
    tf.errors.NOT_FOUND: 404,
    tf.errors.RESOURCE_EXHAUSTED: 429,
    tf.errors.UNIMPLEMENTED: 501,
    tf.errors.UNAVAILABLE: 503,
    tf.errors.DEADLINE_EXCEEDED: 504,
}

# Python types that JSON may contain for each kind of NumPy data type.
_JSON_TYPES = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}}


def answer(
    model: ServedModel, metrics: "Metrics", method: str, url: str, body: bytes
) -> tuple[int, str, bytes]:
    """Answers one request, which `metrics` count.

    Returns HTTP's status code, a MIME type, and the content: JSON, or the page
    of metrics. For an error it is `{"error": explanation}`.
    """
    if (method, url) == ("GET", METRICS_URL):
        return 200, metrics.CONTENT_TYPE, metrics.page()
    try:
        status, reply = 200, _reply(model, metrics, method, url, body)
    except tf.errors.OpError as error:
        status = _HTTP_STATUS.get(error.error_code, 500)
        reply = {"error": explanation_of(error)}
    return status, "application/json", json.dumps(reply).encode()


def _reply(model, metrics, method, url, body):
    if method not in _METHODS:
        raise tf.errors.UnimplementedError(
            None, None, f"Method not known: {quoted(method)}"
        )
    if not url.lower().startswith("/v1/"):
        raise not_found(
            f"Nothing at {shortened(url)}. The models are under /v1/models/"
        )
    match = None
    if method == "POST":
        match = _PREDICT_URL.fullmatch(url)
    elif method == "GET":
        match = _STATUS_URL.fullmatch(url)
    if match is None:
        raise invalid_argument(
            f"Malformed request: {method} {shortened(url)}. Expected: GET "
            "/v1/models/NAME[/versions/VERSION][/metadata] or POST "
            "/v1/models/NAME[/versions/VERSION]:predict, without a query"
        )
    name = unquote(match["name"])
    version = match["version"] and int(match["version"])
    if method == "POST":
        with metrics.predicting(name, "predict", "REST"):
            return _predict(model, name, version, body)
    if match["metadata"]:
        with model.servable(name, version) as servable:
            return _metadata(servable.metadata_response(name))
    return _as_json(model.status_response(name, version))


def _as_json(message):
    return json_format.MessageToDict(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )


def _metadata(response):
    reply = _as_json(response)
    # TensorFlow Serving's reply has no type URL for the packed message.
    reply["metadata"]["signature_def"].pop("@type")
    return reply


def _predict(model, name, version, body):
    # As in TensorFlow Serving, parsing comes first: a body that is not JSON
    # is refused even if the model does not exist.
    with _room_for(body):
        request = _parse(body)
        with model.servable(name, version) as servable:
            return _prediction(servable, request)


@contextlib.contextmanager
def _room_for(body):
    """Admits one large body at a time: lists take 20 times their text."""
    if len(body) < _LARGE_BODY:
        yield
        return
    if not _one_large_body.acquire(timeout=_SECONDS_TO_WAIT):
        raise tf.errors.UnavailableError(None, None, BUSY)
    # The garbage collector would search millions of new lists again and again.
    # This would take most of the time, and find nothing.
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
        _one_large_body.release()


def _prediction(servable, request):
    signature_name = request.get("signature_name", "")
    infos = servable.input_infos(signature_name)
    by_row = "instances" in request
    if by_row == ("inputs" in request):
        raise invalid_argument(
            "Expected one of the keys 'instances' (a list of examples) and "
            "'inputs' (a batch of each input). Received: "
            f"{'both' if by_row else 'neither'}"
        )
    if by_row:
        columns = _columns_of_instances(request["instances"], infos)
    else:
        columns = _columns_of_inputs(request["inputs"], infos)
    outputs = servable.predict(
        signature_name,
        {
            name: _array(name, value, infos[name])
            for name, value in columns.items()
        },
    )
    if by_row:
        _check_batched(outputs)
    outputs = {
        name: _texts(value.tolist(), name.endswith("_bytes"))
        if value.dtype == object
        else value.tolist()
        for name, value in outputs.items()
    }
    # As in TensorFlow Serving, a single output has no name.
    named = len(outputs) > 1
    if not by_row:
        return {"outputs": outputs if named else next(iter(outputs.values()))}
    rows = zip(*outputs.values(), strict=True)
    return {
        "predictions": [
            dict(zip(outputs, row, strict=True)) if named else row[0]
            for row in rows
        ]
    }


def _check_batched(outputs):
    """Raises an error unless the outputs can be split into rows."""
    sizes = {value.shape[:1] for value in outputs.values()}
    if len(sizes) != 1 or () in sizes:
        shapes = {name: value.shape for name, value in outputs.items()}
        raise invalid_argument(
            "Outputs must have one batch size to be split into rows. They have "
            f"shapes {shapes}: send 'inputs' in place of 'instances'"
        )


def _texts(value, as_base64):
    """Bytes, or nested lists of bytes, as text or as base64."""
    if isinstance(value, list):
        return [_texts(item, as_base64) for item in value]
    if as_base64:
        return {"b64": base64.b64encode(value).decode()}
    return value.decode("utf-8", "replace")


def _parse(body):
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise invalid_argument(f"JSON parse error: {error}") from error
    if not isinstance(request, dict):
        raise invalid_argument(
            "JSON parse error: expected an object. Received: "
            f"{_described(request)}"
        )
    signature_name = request.get("signature_name", "")
    if not isinstance(signature_name, str):
        raise invalid_argument(
            "'signature_name' must be a string. Received: "
            f"{_described(signature_name)}"
        )
    return request


def _columns_of_instances(instances, infos):
    """The values of each input, from a list of examples."""
    if not isinstance(instances, list) or not instances:
        raise invalid_argument(
            "'instances' must be a list of one example or more. Received: "
            f"{_described(instances)}"
        )
    if not isinstance(instances[0], dict) or _is_base64(instances[0]):
        return {_only_input(infos): instances}
    for number, instance in enumerate(instances):
        if not isinstance(instance, dict) or set(instance) != set(infos):
            raise invalid_argument(
                f"Item {number} of 'instances' must be an object with the keys "
                f"{sorted(infos)}. Received: {_described(instance)}"
            )
    return {name: [instance[name] for instance in instances] for name in infos}


def _columns_of_inputs(inputs, infos):
    """The values of each input, from a dictionary of batches."""
    if not isinstance(inputs, dict) or _is_base64(inputs):
        return {_only_input(infos): inputs}
    for name in infos:
        if name not in inputs:
            raise invalid_argument(
                f"'inputs' has no {name!r}. Expected the keys {sorted(infos)}. "
                f"Received: {quoted(sorted(inputs))}"
            )
    # Like TensorFlow Serving, this ignores other keys.
    return {name: inputs[name] for name in infos}


def _only_input(infos):
    if len(infos) > 1:
        raise invalid_argument(
            "A plain list will do for one input, but the signature has "
            f"{sorted(infos)}: send an object with these keys"
        )
    return next(iter(infos))


def _is_base64(value):
    return isinstance(value, dict) and set(value) == {"b64"}


def _array(name, value, info):
    """Converts nested lists to an array, and checks sizes and types."""
    dtype = tf.as_dtype(info.dtype)
    numpy_dtype = np.dtype(dtype.as_numpy_dtype)
    if numpy_dtype.kind not in _JSON_TYPES:
        raise tf.errors.UnimplementedError(
            None, None, f"Input {name!r} is {dtype.name}: use gRPC for it"
        )
    shape, values = _flattened(name, value)
    if shape == [0]:
        shape = _shape_of_empty_batch(info)
    expected_types = _JSON_TYPES[numpy_dtype.kind]
    if not set(map(type, values)) <= expected_types:
        item = next(x for x in values if type(x) not in expected_types)
        hint = ". Base64 is for strings" if _is_base64(item) else ""
        raise invalid_argument(
            f"Input {name!r} is expected to be {dtype.name}. Received: "
            f"{_described(item)}{hint}"
        )
    if values and numpy_dtype.kind in "iu":
        for item in (min(values), max(values)):
            if not dtype.min <= item <= dtype.max:
                raise invalid_argument(
                    f"Input {name!r} is expected to be {dtype.name}, from "
                    f"{dtype.min} to {dtype.max}. Received: {_described(item)}"
                )
    try:
        with np.errstate(over="raise"):
            return np.array(values, numpy_dtype).reshape(shape)
    except (FloatingPointError, OverflowError, ValueError) as error:
        raise invalid_argument(
            f"Input {name!r} is expected to be {dtype.name}: {error}"
        ) from error


def _flattened(name, value):
    """Flattens nested lists to their shape and a list of their values."""
    shape, values = [], [value]
    while values and isinstance(values[0], list):
        size = len(values[0])
        shape.append(size)
        # Checking all at once takes a tenth of the time of a loop.
        if set(map(type, values)) != {list} or set(map(len, values)) != {size}:
            item = next(
                x for x in values if not isinstance(x, list) or len(x) != size
            )
            raise invalid_argument(
                f"The lists of input {name!r} differ: at level {len(shape)} "
                f"expected a list of {size}. Received: {_described(item)}"
            )
        values = list(itertools.chain.from_iterable(values))
    return shape, values


def _shape_of_empty_batch(info):
    """The signature's shape for a batch of 0; an empty list has none."""
    dims = info.tensor_shape.dim
    sizes = [dim.size for dim in dims[1:]]
    return [0] if min(sizes, default=-1) < 0 else [0, *sizes]


def _described(value):
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object with the keys {quoted(sorted(value))}"
    return shortened(json.dumps(value))
