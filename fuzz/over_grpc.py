"""Attacks on gRPC: messages that are proper, and some that are none.

Each public function is a class of attacks.
"""

import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import get_model_metadata_pb2
from tensorflow_serving.apis import get_model_status_pb2

from fuzz import attacks
from fuzz import draws
from fuzz import targets
from fuzz.attacks import GrpcAttack
from fuzz.targets import predict_request

_PREDICTION = "/tensorflow.serving.PredictionService/"
_METADATA = _PREDICTION + "GetModelMetadata"
_STATUS = "/tensorflow.serving.ModelService/GetModelStatus"
_MISSING = (
    _PREDICTION + "Classify",
    _PREDICTION + "Regress",
    _PREDICTION + "MultiInference",
    _PREDICTION + "predict",
    _PREDICTION + "x" * 5000,
    "/tensorflow.serving.ModelService/HandleReloadConfigRequest",
    "/tensorflow.serving.SessionService/SessionRun",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/a/b",
    "/%00/%FF",
)
_LONG = ("x", "é", "\x00", "\U0001d518")


def _sent(request, expect="refusal"):
    return GrpcAttack(
        request.SerializeToString(deterministic=True), expect=expect
    )


def _with(target, changed):
    request = predict_request(target)
    for name, value in changed.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def random_bytes(rng, target):
    method = draws.choice(rng, (_PREDICTION + "Predict", _METADATA, _STATUS))
    return GrpcAttack(draws.random_bytes(rng, 4096), method)


def damaged_message(rng, target):
    content = predict_request(target).SerializeToString(deterministic=True)
    return GrpcAttack(draws.damaged(rng, content))


def bombs(rng, target):
    """Few bytes that stand for a huge tensor."""
    request = predict_request(target)
    tensor = request.inputs[draws.choice(rng, list(target.inputs))]
    if rng.integers(2):
        tensor.Clear()
        tensor.dtype = types_pb2.DT_STRING
        tensor.string_val.append(b"a")
    elif tensor.tensor_content:
        dtype, content = tensor.dtype, tensor.tensor_content[:4]
        tensor.Clear()
        tensor.dtype = dtype
        if rng.integers(2):
            tensor.tensor_content = content
        else:
            tensor.int_val.append(1)
            tensor.float_val.append(1)
            tensor.bool_val.append(True)
    del tensor.tensor_shape.dim[:]
    sizes = draws.choice(
        rng,
        (
            (400_000_000,),
            (10**9,),
            (2**31,),
            (2**40, 2**40),
            (2**62, 4),
            (2**63 - 1,),
            (1000,) * 4,
            (2, 36_000, 36_000, 3),
            (10**8, 6),
            (1,) * 300,
            (0, 2**62, 2**62),
            (2**32, 0),
        ),
    )
    for size in sizes:
        tensor.tensor_shape.dim.add().size = size
    return _sent(request)


def shapes(rng, target):
    request = predict_request(target)
    tensor = request.inputs[draws.choice(rng, list(target.inputs))]
    dims = tensor.tensor_shape.dim
    size = draws.choice(rng, (-1, -2, -(2**63), 5, 0))
    how = rng.integers(5)
    if how == 0:
        draws.choice(rng, dims).size = size
    elif how == 1:
        dims.add().size = size
    elif how == 2:
        del dims[:]
    elif how == 3:
        tensor.tensor_shape.unknown_rank = True
        del dims[:]
    else:
        # More bytes than the shape has, or fewer.
        content = tensor.tensor_content
        cut = int(rng.integers(max(1, len(content))))
        more = content + draws.random_bytes(rng, 64) + b"\0"
        tensor.tensor_content = draws.choice(rng, (content[:cut], more))
    return _sent(request, "any")


def dtypes(rng, target):
    request = predict_request(target)
    tensor = request.inputs[draws.choice(rng, list(target.inputs))]
    every = [*types_pb2.DataType.values(), 99, -1, 2**31 - 1, -(2**31)]
    tensor.dtype = draws.choice(rng, [x for x in every if x != tensor.dtype])
    if rng.integers(2):
        tensor.tensor_content = b""
        tensor.string_val.append(draws.random_bytes(rng, 64))
        tensor.half_val.append(2**31 - 1)
        tensor.resource_handle_val.add().name = "x"
        tensor.variant_val.add().type_name = "x"
    return _sent(request)


def values(rng, target):
    """Values beside the content, for which there are other fields."""
    request = predict_request(target)
    tensor = request.inputs[draws.choice(rng, list(target.inputs))]
    tensor.tensor_content = b""
    number = int(rng.integers(1, 2000))
    odd = draws.choice(rng, (-1, 256, 2**31 - 1, -(2**31)))
    tensor.int_val.extend([odd] * number)
    tensor.float_val.extend([float("nan")] * number)
    tensor.bool_val.extend([True] * number)
    return _sent(request, "any")


def batch_sizes(rng, target):
    return _sent(_with(target, targets.other_batch(rng, target)))


def indices(rng, target):
    return _sent(_with(target, targets.bad_indices(rng, target)))


def states(rng, target):
    return _sent(_with(target, targets.not_finite(rng, target)))


def empty_batches(rng, target):
    changed = {name: value[:0] for name, value in target.inputs.items()}
    return _sent(_with(target, changed), "empty")


def names(rng, target):
    """Names that there are not, or too long, or twice."""
    request = predict_request(target)
    spec, inputs = request.model_spec, request.inputs
    long = draws.choice(rng, _LONG) * int(10 ** rng.uniform(0, 6))
    name = draws.choice(rng, list(target.inputs))
    how = rng.integers(10)
    if how == 0:
        request.output_filter.append(long)
    elif how == 1:
        request.output_filter.extend(["label", "label"])
    elif how == 2:
        request.output_filter.extend([""] * int(rng.integers(1, 10_000)))
    elif how == 3:
        inputs[long].CopyFrom(inputs[name])
    elif how == 4:
        del inputs[name]
    elif how == 5:
        spec.signature_name = long
    elif how == 6:
        spec.name = long
    elif how == 7:
        spec.version.value = draws.choice(rng, (0, 2, -1, 2**63 - 1, -(2**63)))
    elif how == 8:
        spec.version_label = long
    else:
        request.ClearField(draws.choice(rng, ("model_spec", "inputs")))
    return _sent(request)


def metadata(rng, target):
    """Garbage for the questions about the model."""
    if rng.integers(2):
        method = _METADATA
        request = get_model_metadata_pb2.GetModelMetadataRequest()
        fields = ("signature_def", "", "x", "é" * 5000, "\x00")
        for _ in range(int(rng.integers(4))):
            request.metadata_field.append(draws.choice(rng, fields))
    else:
        method = _STATUS
        request = get_model_status_pb2.GetModelStatusRequest()
    long = draws.choice(rng, _LONG) * int(10 ** rng.uniform(0, 5))
    request.model_spec.name = draws.choice(rng, (target.name, "", long))
    if rng.integers(2):
        request.model_spec.version.value = int(rng.integers(-3, 3))
    content = request.SerializeToString(deterministic=True)
    if rng.integers(2):
        content = draws.damaged(rng, content)
    return GrpcAttack(content, method)


def methods(rng, target):
    content = predict_request(target).SerializeToString(deterministic=True)
    method = draws.choice(rng, _MISSING)
    return GrpcAttack(content, method, exists=False)


ATTACKS = attacks.classes_of(__name__, "grpc")
