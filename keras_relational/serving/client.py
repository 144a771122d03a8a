"""A client of TensorFlow Serving and of its stand-in."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from urllib.parse import quote

import grpc
import numpy as np
import tensorflow as tf

from keras_relational.serving.serving_api import serving_api

# Connects to the server directly, also if the environment names a proxy.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class ServingError(RuntimeError):
    """A server refuses a request. The message is the server's explanation.

    Attributes:
        code: Status of HTTP, such as 404, or of gRPC, such as `"NOT_FOUND"`.
    """

    def __init__(self, message: str, code: int | str) -> None:
        super().__init__(message)
        self.code = code


def predict_rest(
    rest_url: str,
    inputs: Mapping[str, np.ndarray],
    model_name: str = "relations",
    signature_name: str = "serving_default",
    version: int | None = None,
    timeout: float = 10,
) -> dict[str, np.ndarray]:
    """Asks a model over REST.

    Args:
        rest_url: URL of the server, such as `"http://127.0.0.1:8501"`.
        inputs: Dictionary from the names of the signature's inputs to arrays,
            such as `{"image": images}` with images `(batch, 36, 36, 3)`.
        model_name: Name of the model on the server.
        signature_name: `"serving_default"` or `"propositions"`.
        version: Version of the model. By default the server chooses.
        timeout: Seconds to wait for the server.

    Returns:
        Dictionary of NumPy arrays. Floating-point numbers are float32. REST
        does not send the name of a single output; here its name is `"outputs"`.

    Raises:
        ServingError: If the server refuses. The message is its explanation.
        ConnectionError: If there is no server.
        TimeoutError: If the server does not answer in time.

    Example:

    ```python
    answers = predict_rest("http://127.0.0.1:8501", {"image": images})
    answers["probabilities"], answers["label"]
    ```
    """
    request = {
        "signature_name": signature_name,
        "inputs": {
            name: np.asarray(value).tolist() for name, value in inputs.items()
        },
    }
    url = _model_url(rest_url, model_name, version) + ":predict"
    outputs = _ask(url, timeout, json.dumps(request).encode())["outputs"]
    if not isinstance(outputs, dict):
        outputs = {"outputs": outputs}
    return {name: _array(value) for name, value in outputs.items()}


def predict_grpc(
    grpc_address: str,
    inputs: Mapping[str, np.ndarray],
    model_name: str = "relations",
    signature_name: str = "serving_default",
    version: int | None = None,
    timeout: float = 10,
) -> dict[str, np.ndarray]:
    """Asks a model over gRPC, which is faster than REST for large batches.

    Args:
        grpc_address: Address of the server, such as `"127.0.0.1:8500"`.
        inputs: As for `predict_rest`. The arrays must have the data types of
            the signature.
        model_name: Name of the model on the server.
        signature_name: `"serving_default"` or `"propositions"`.
        version: Version of the model. By default the server chooses.
        timeout: Seconds to wait for the server.

    Returns:
        Dictionary of NumPy arrays.

    Raises:
        ServingError: If the server refuses. The message is its explanation.
        ConnectionError: If there is no server, or the server is overloaded.
        ImportError: If the extra `serving` is not installed.
        TimeoutError: If the server does not answer in time.
    """
    request = serving_api("predict_pb2").PredictRequest()
    request.model_spec.name = model_name
    request.model_spec.signature_name = signature_name
    if version is not None:
        request.model_spec.version.value = version
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(np.asarray(value)))
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.enable_http_proxy", 0),
    ]
    with grpc.insecure_channel(grpc_address, options) as channel:
        services = serving_api("prediction_service_pb2_grpc")
        service = services.PredictionServiceStub(channel)
        try:
            response = service.Predict(request, timeout=timeout)
        except grpc.RpcError as error:
            raise _translated(error, grpc_address, timeout) from error
    return {
        name: tf.make_ndarray(value) for name, value in response.outputs.items()
    }


def model_status(
    rest_url: str,
    model_name: str = "relations",
    version: int | None = None,
    timeout: float = 10,
) -> dict[int, str]:
    """The state of each version of a model on a server.

    Args:
        rest_url: URL of the server, such as `"http://127.0.0.1:8501"`.
        model_name: Name of the model on the server.
        version: Version to ask for. By default all versions.
        timeout: Seconds to wait for the server.

    Returns:
        Dictionary from versions to states, such as `{1: "AVAILABLE"}`.

    Raises:
        ServingError: If the server refuses, for example an unknown model.
        ConnectionError: If there is no server.
        TimeoutError: If the server does not answer in time.
    """
    reply = _ask(_model_url(rest_url, model_name, version), timeout)
    return {
        int(status["version"]): status["state"]
        for status in reply["model_version_status"]
    }


def _model_url(rest_url, model_name, version):
    if not rest_url.startswith(("http://", "https://")):
        raise ValueError(
            "`rest_url` must start with http:// or https://. Received: "
            f"{rest_url!r}"
        )
    url = f"{rest_url.rstrip('/')}/v1/models/{quote(model_name, safe='')}"
    return url if version is None else f"{url}/versions/{version}"


def _ask(url, timeout, body=None):
    # `_model_url` has checked that the scheme is http or https.
    request = urllib.request.Request(  # noqa: S310
        url, body, {"Content-Type": "application/json"}
    )
    try:
        with _open(request, timeout=timeout) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            explanation = _explanation(error.read())
        raise ServingError(
            f"{url} answered {error.code}: {explanation}", error.code
        ) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _timed_out(url, timeout) from None
        raise ConnectionError(f"No server at {url}: {error.reason}") from error
    except TimeoutError:
        raise _timed_out(url, timeout) from None


def _explanation(content):
    try:
        return json.loads(content)["error"]
    except (ValueError, KeyError, TypeError):
        return content.decode(errors="replace") or "without an explanation"


def _timed_out(address, timeout):
    return TimeoutError(f"{address} did not answer within {timeout} seconds")


def _translated(error, grpc_address, timeout):
    code = error.code()
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return _timed_out(grpc_address, timeout)
    if code == grpc.StatusCode.UNAVAILABLE:
        return ConnectionError(
            f"No answer from {grpc_address}: {error.details()}"
        )
    return ServingError(
        f"{grpc_address} answered {code.name}: {error.details()}", code.name
    )


def _array(value):
    array = np.asarray(value)
    return array.astype("float32") if array.dtype.kind == "f" else array
