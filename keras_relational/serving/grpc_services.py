"""TensorFlow Serving's gRPC services, on one `ServedModel`."""

import concurrent.futures
import contextlib
import functools
import threading

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError

from keras_relational.serving.errors import explanation_of
from keras_relational.serving.errors import invalid_argument
from keras_relational.serving.errors import quoted
from keras_relational.serving.servable import MAX_REQUEST_BYTES
from keras_relational.serving.serving_api import serving_api

# Until a call has sent its message.
SECONDS_FOR_MESSAGE = 10
SECONDS_TO_FINISH = 5
# More are refused with RESOURCE_EXHAUSTED, so none waits for a thread.
MAX_CALLS = 32

_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


@contextlib.contextmanager
def grpc_server(model, metrics, host, port):
    """Answers over gRPC while a `with` block runs.

    It answers `Predict`, `GetModelMetadata` and `GetModelStatus`; any other
    method is answered with UNIMPLEMENTED.

    Args:
        model: `ServedModel` to ask.
        metrics: `Metrics` to count in.
        host: IPv4 address or name to listen on.
        port: Port; 0 picks a free one.

    Yields:
        The port.

    Raises:
        ImportError: If the extra `serving` is not installed.
        OSError: If the port is taken.
    """
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(max_workers=MAX_CALLS),
        handlers=_handlers(model, metrics),
        maximum_concurrent_rpcs=MAX_CALLS,
        options=[
            ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
            ("grpc.max_send_message_length", -1),
            # Otherwise two servers may share a port unawares.
            ("grpc.so_reuseport", 0),
            # A few bytes may unpack to gigabytes: uncompressed ones alone.
            ("grpc.compression_enabled_algorithms_bitset", 1),
            ("grpc.max_concurrent_streams", MAX_CALLS),
            # Clients connect again by themselves.
            ("grpc.server_handshake_timeout_ms", 10_000),
            ("grpc.max_connection_idle_ms", 60_000),
            ("grpc.max_connection_age_ms", 300_000),
            ("grpc.max_connection_age_grace_ms", 30_000),
        ],
    )
    try:
        port = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        raise OSError(
            f"gRPC cannot listen on {host}:{port}: {error}"
        ) from error
    server.start()
    try:
        yield port
    finally:
        server.stop(SECONDS_TO_FINISH).wait()


def _handlers(model, metrics):
    """Generic handlers of `PredictionService` and `ModelService`."""
    predict_pb2 = serving_api("predict_pb2")
    metadata_pb2 = serving_api("get_model_metadata_pb2")
    status_pb2 = serving_api("get_model_status_pb2")

    def handler(answer, request_type):
        # Clients send one message and do not tell this from a unary method,
        # whose thread would wait without end for the message.
        return grpc.stream_unary_rpc_method_handler(
            # gRPC would answer what it cannot parse with INTERNAL, and leave
            # the stream open.
            functools.partial(_answer, answer, request_type.FromString),
            response_serializer=lambda response: response.SerializeToString(),
        )

    return (
        grpc.method_handlers_generic_handler(
            "tensorflow.serving.PredictionService",
            {
                "Predict": handler(
                    functools.partial(_predict, model, metrics),
                    predict_pb2.PredictRequest,
                ),
                "GetModelMetadata": handler(
                    functools.partial(_metadata, model),
                    metadata_pb2.GetModelMetadataRequest,
                ),
            },
        ),
        grpc.method_handlers_generic_handler(
            "tensorflow.serving.ModelService",
            {
                "GetModelStatus": handler(
                    functools.partial(_status, model),
                    status_pb2.GetModelStatusRequest,
                )
            },
        ),
    )


def _answer(answer, parse, requests, context):
    deadline = threading.Timer(SECONDS_FOR_MESSAGE, context.cancel)
    deadline.start()
    try:
        request = next(requests, None)
    finally:
        deadline.cancel()
    try:
        if request is None:
            raise invalid_argument("The call has no message")
        return answer(_parsed(parse, request))
    except tf.errors.OpError as error:
        code = _STATUS_CODES[error.error_code]
        context.abort(code, explanation_of(error))


def _parsed(parse, content):
    try:
        return parse(content)
    except DecodeError as error:
        raise invalid_argument(f"The message is damaged: {error}") from error


def _asked_for(request):
    """Name and version of the model asked for."""
    if not request.HasField("model_spec"):
        raise invalid_argument("The request has no `model_spec`")
    spec = request.model_spec
    if not spec.name:
        raise invalid_argument("`model_spec` has no `name`")
    if spec.version_label:
        raise invalid_argument(
            f"Version label not found: {quoted(spec.version_label)}. Ask for a "
            "version by its number, or leave it out"
        )
    return spec.name, spec.version.value if spec.HasField("version") else None


def _predict(model, metrics, request):
    with metrics.predicting(request.model_spec.name, "Predict", "GRPC"):
        name, version = _asked_for(request)
        with model.servable(name, version) as servable:
            outputs = servable.answer(request)
        response = serving_api("predict_pb2").PredictResponse()
        response.model_spec.name = name
        response.model_spec.version.value = servable.version
        response.model_spec.signature_name = (
            request.model_spec.signature_name or "serving_default"
        )
        for key, value in outputs.items():
            response.outputs[key].CopyFrom(tf.make_tensor_proto(value))
        return response


def _metadata(model, request):
    name, version = _asked_for(request)
    with model.servable(name, version) as servable:
        if list(request.metadata_field) != ["signature_def"]:
            raise invalid_argument(
                "`metadata_field` must be 'signature_def'. Received: "
                f"{quoted(list(request.metadata_field))}"
            )
        return servable.metadata_response(name)


def _status(model, request):
    return model.status_response(*_asked_for(request))
