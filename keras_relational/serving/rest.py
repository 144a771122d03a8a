"""TensorFlow Serving's REST interface: URLs and JSON, without the network."""

import base64
import itertools
import json
import re
from urllib.parse import unquote

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from keras_relational.serving.servable import explanation_of
from keras_relational.serving.servable import invalid_argument

_MODEL = r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>[0-9]{1,18}))?"
_PREDICT_URL = re.compile(_MODEL + ":predict", re.IGNORECASE)
_STATUS_URL = re.compile(_MODEL + "(?P<metadata>/metadata)?", re.IGNORECASE)

# HTTP's status for the codes of gRPC; 500 for the others.
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

# What JSON may hold for a tensor of each kind of NumPy data type.
_JSON_TYPES = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}}


def answer(servable, method, url, body):
    """Answers one request.

    Args:
        servable: `Servable` to ask.
        method: `"GET"`, `"POST"` and so on.
        url: Path of the request.
        body: Bytes.

    Returns:
        `(status, reply)`: HTTP's status code, and what to send as JSON; for an
        error `{"error": explanation}`.
    """
    try:
        return 200, _reply(servable, method, url.split("?")[0], body)
    except tf.errors.OpError as error:
        status = _HTTP_STATUS.get(error.error_code, 500)
        return status, {"error": explanation_of(error)}


def _reply(servable, method, url, body):
    if not url.lower().startswith("/v1/"):
        raise tf.errors.NotFoundError(
            None, None, f"Nothing at {url}. The models are under /v1/models/"
        )
    match = None
    if method == "POST":
        match = _PREDICT_URL.fullmatch(url)
    elif method == "GET":
        match = _STATUS_URL.fullmatch(url)
    if match is None:
        raise invalid_argument(
            f"Malformed request: {method} {url}. Expected: GET "
            "/v1/models/NAME[/versions/VERSION][/metadata] or POST "
            "/v1/models/NAME[/versions/VERSION]:predict"
        )
    version = match["version"] and int(match["version"])
    servable.check_name(unquote(match["name"]), version)
    if method == "POST":
        return _predict(servable, body)
    if match["metadata"]:
        return _metadata(servable)
    return _as_json(servable.status_response())


def _as_json(message):
    return json_format.MessageToDict(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )


def _metadata(servable):
    reply = _as_json(servable.metadata_response())
    # The type URL of what was packed is no part of the real server's reply.
    reply["metadata"]["signature_def"].pop("@type")
    return reply


def _predict(servable, body):
    request = _parse(body)
    signature_name = request.get("signature_name", "")
    if not isinstance(signature_name, str):
        raise invalid_argument(
            f"'signature_name' must be a string. Received: {signature_name!r}"
        )
    infos = servable.input_infos(signature_name)
    by_row = "instances" in request
    if by_row == ("inputs" in request):
        raise invalid_argument(
            "Expected one of the keys 'instances' (a list of examples) and "
            "'inputs' (a batch of each input). Received: "
            f"{'both' if by_row else 'neither'}"
        )
    if by_row:
        columns = _columns_of(request["instances"], infos)
    else:
        columns = _columns(request["inputs"], infos)
    outputs = servable.predict(
        signature_name,
        {
            name: _array(name, value, tf.as_dtype(infos[name].dtype))
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
    # Where there is one output, its name is left out.
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
    """By rows there is an answer to each example."""
    sizes = {value.shape[:1] for value in outputs.values()}
    if len(sizes) != 1 or () in sizes:
        shapes = {name: value.shape for name, value in outputs.items()}
        raise invalid_argument(
            "Outputs must have one batch size to be told row by row. They have "
            f"shapes {shapes}: send 'inputs' in place of 'instances'"
        )


def _texts(value, as_base64):
    """Bytes, or nested lists of them, as text or as bytes are sent."""
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
    return request


def _columns_of(instances, infos):
    """The values of each input, example by example."""
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


def _columns(inputs, infos):
    """The values of each input, a batch at a time."""
    if not isinstance(inputs, dict) or _is_base64(inputs):
        return {_only_input(infos): inputs}
    for name in infos:
        if name not in inputs:
            raise invalid_argument(
                f"'inputs' has no {name!r}. Expected the keys {sorted(infos)}. "
                f"Received: {sorted(inputs)}"
            )
    # As TensorFlow Serving does, this leaves other keys aside.
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


def _array(name, value, dtype):
    """Nested lists → array, for lists of equal sizes and fitting values."""
    numpy_dtype = np.dtype(dtype.as_numpy_dtype)
    if numpy_dtype.kind not in _JSON_TYPES:
        raise tf.errors.UnimplementedError(
            None, None, f"Input {name!r} is {dtype.name}: use gRPC for it"
        )
    shape, values = _flattened(name, value)
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
        return np.array(values, numpy_dtype).reshape(shape)
    except (OverflowError, ValueError) as error:
        raise invalid_argument(
            f"Input {name!r} is expected to be {dtype.name}: {error}"
        ) from error


def _flattened(name, value):
    """Nested lists → `(shape, values)`."""
    shape, values = [], [value]
    while values and isinstance(values[0], list):
        shape.append(len(values[0]))
        for item in values:
            if not isinstance(item, list) or len(item) != shape[-1]:
                raise invalid_argument(
                    f"The lists of input {name!r} differ: at level "
                    f"{len(shape)} expected a list of {shape[-1]}. Received: "
                    f"{_described(item)}"
                )
        values = list(itertools.chain.from_iterable(values))
    return shape, values


def _described(value):
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object with the keys {sorted(value)}"
    return json.dumps(value)
