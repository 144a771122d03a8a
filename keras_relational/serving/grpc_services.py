"""TensorFlow Serving's gRPC services, on one `Servable`."""

import functools

import grpc
import tensorflow as tf

from keras_relational.serving.servable import array_from_tensor_proto
from keras_relational.serving.servable import check_names
from keras_relational.serving.servable import explanation_of
from keras_relational.serving.servable import invalid_argument
from keras_relational.serving.serving_api import serving_api

_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


def service_handlers(servable):
    """Handlers of `PredictionService` and `ModelService`.

    They answer `Predict`, `GetModelMetadata` and `GetModelStatus`; any other
    method is answered with UNIMPLEMENTED.

    Args:
        servable: `Servable` to ask.

    Returns:
        Tuple of generic handlers, for `grpc.server`.

    Raises:
        ImportError: If the extra `serving` is not installed.
    """
    predict_pb2 = serving_api("predict_pb2")
    metadata_pb2 = serving_api("get_model_metadata_pb2")
    status_pb2 = serving_api("get_model_status_pb2")

    def handler(answer, request_type):
        return grpc.unary_unary_rpc_method_handler(
            functools.partial(_answer, servable, answer),
            request_deserializer=request_type.FromString,
            response_serializer=lambda response: response.SerializeToString(),
        )

    return (
        grpc.method_handlers_generic_handler(
            "tensorflow.serving.PredictionService",
            {
                "Predict": handler(_predict, predict_pb2.PredictRequest),
                "GetModelMetadata": handler(
                    _metadata, metadata_pb2.GetModelMetadataRequest
                ),
            },
        ),
        grpc.method_handlers_generic_handler(
            "tensorflow.serving.ModelService",
            {
                "GetModelStatus": handler(
                    _status, status_pb2.GetModelStatusRequest
                )
            },
        ),
    )


def _answer(servable, answer, request, context):
    try:
        _check_model(servable, request)
        return answer(servable, request)
    except tf.errors.OpError as error:
        code = _STATUS_CODES[error.error_code]
        context.abort(code, explanation_of(error))


def _check_model(servable, request):
    if not request.HasField("model_spec"):
        raise invalid_argument("The request has no `model_spec`")
    spec = request.model_spec
    if not spec.name:
        raise invalid_argument("`model_spec` has no `name`")
    if spec.version_label:
        raise invalid_argument(
            f"Version label not found: {spec.version_label!r}. Ask for a "
            "version by its number, or leave it out"
        )
    version = spec.version.value if spec.HasField("version") else None
    servable.check_name(spec.name, version)


def _predict(servable, request):
    signature_name = request.model_spec.signature_name
    # Before anything is made of tensors nobody has asked for.
    check_names(servable.input_infos(signature_name), request.inputs)
    outputs = servable.predict(
        signature_name,
        {
            name: array_from_tensor_proto(name, tensor)
            for name, tensor in request.inputs.items()
        },
        request.output_filter,
    )
    response = serving_api("predict_pb2").PredictResponse()
    response.model_spec.name = servable.name
    response.model_spec.version.value = servable.version
    response.model_spec.signature_name = signature_name or "serving_default"
    for name, value in outputs.items():
        response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
    return response


def _metadata(servable, request):
    if list(request.metadata_field) != ["signature_def"]:
        raise invalid_argument(
            "`metadata_field` must be 'signature_def'. Received: "
            f"{list(request.metadata_field)}"
        )
    return servable.metadata_response()


def _status(servable, request):
    return servable.status_response()
