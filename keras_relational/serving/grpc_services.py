"""TensorFlow Serving's gRPC services, on one `ServedModel`."""

import concurrent.futures
import contextlib
import functools
import threading
import typing
from collections.abc import Iterator

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError

from keras_relational.serving.errors import STATUS_CODES
from keras_relational.serving.errors import explanation_of
from keras_relational.serving.errors import invalid_argument
from keras_relational.serving.errors import quoted
from keras_relational.serving.servable import MAX_REQUEST_BYTES
from keras_relational.serving.served_model import ServedModel
from keras_relational.serving.serving_api import serving_api

if typing.TYPE_CHECKING:  # It imports Prometheus' client, an extra.
    from keras_relational.serving.metrics import Metrics

# Time that a call has to send its message.
SECONDS_FOR_MESSAGE = 10
SECONDS_TO_FINISH = 5
# The server refuses more calls with RESOURCE_EXHAUSTED, so that no call waits
# for a thread.
MAX_CALLS = 32


@contextlib.contextmanager
def grpc_server(
    model: ServedModel, metrics: "Metrics", host: str, port: int
) -> Iterator[int]:
    """Answers over gRPC while a `with` block runs, and yields the port.

    Any method but those here is UNIMPLEMENTED. Port 0 picks a free one. An
    `OSError` names a port that is taken.
    """
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(max_workers=MAX_CALLS),
        handlers=_handlers(model, metrics),
        maximum_concurrent_rpcs=MAX_CALLS,
        options=[
            ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
            ("grpc.max_send_message_length", -1),
            # Otherwise two servers could share a port without notice.
            ("grpc.so_reuseport", 0),
            # Accept uncompressed messages alone: a few compressed bytes may
            # unpack to gigabytes.
            ("grpc.compression_enabled_algorithms_bitset", 1),
            ("grpc.max_concurrent_streams", MAX_CALLS),
            # Clients reconnect by themselves.
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
        # To clients, which send one message, this looks like a unary method. A
        # unary method's thread would wait for the message without end.
        return grpc.stream_unary_rpc_method_handler(
            # gRPC's own parser would answer a damaged message with INTERNAL,
            # and leave the stream open.
            functools.partial(_answer, answer, request_type.FromString),
            response_serializer=lambda response: response.SerializeToString(),
        )

    predict = functools.partial(_predict, model, metrics)
    metadata = functools.partial(_metadata, model)
    services = {
        "PredictionService": {
            "Predict": handler(predict, predict_pb2.PredictRequest),
            "GetModelMetadata": handler(
                metadata, metadata_pb2.GetModelMetadataRequest
            ),
        },
        "ModelService": {
            "GetModelStatus": handler(
                lambda request: model.status_response(*_asked_for(request)),
                status_pb2.GetModelStatusRequest,
            )
        },
    }
    return [
        grpc.method_handlers_generic_handler(f"tensorflow.serving.{name}", x)
        for name, x in services.items()
    ]


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
        try:
            message = parse(request)
        except DecodeError as error:
            raise invalid_argument(
                f"The message is damaged: {error}"
            ) from error
        return answer(message)
    except tf.errors.OpError as error:
        code = STATUS_CODES[error.error_code]
        context.abort(code, explanation_of(error))


def _asked_for(request):
    """The name and the version of the model that the request asks for."""
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
