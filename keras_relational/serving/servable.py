"""One version of an exported model, loaded to answer requests."""

import math
import os
import typing
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import fingerprint_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from keras_relational.serving.errors import invalid_argument
from keras_relational.serving.errors import quoted
from keras_relational.serving.saved_model_files import read_signatures
from keras_relational.serving.saved_model_files import read_warmup_requests
from keras_relational.serving.serving_api import serving_api

# Size of a request over gRPC. REST allows less, because its text is longer.
MAX_REQUEST_BYTES = 64 * 2**20

_MAX_RANK = 32

# The field of a `TensorProto` for values of each type. A message may also hold
# its values as bytes, in `tensor_content`.
_VALUE_FIELDS = {
    tf.float16: "half_val",
    tf.bfloat16: "half_val",
    tf.float32: "float_val",
    tf.float64: "double_val",
    tf.int8: "int_val",
    tf.uint8: "int_val",
    tf.int16: "int_val",
    tf.uint16: "int_val",
    tf.int32: "int_val",
    tf.uint32: "uint32_val",
    tf.int64: "int64_val",
    tf.uint64: "uint64_val",
    tf.bool: "bool_val",
    tf.string: "string_val",
    tf.complex64: "scomplex_val",
    tf.complex128: "dcomplex_val",
}


class Servable:
    """One version of a model, loaded and warmed up, for several threads.

    A request that it cannot answer raises an error of `tf.errors`, with the
    code that TensorFlow Serving returns in the same case. The name of the
    folder is the version's number. If it contains no SavedModel or is damaged,
    or if a warm-up request fails, an exception of any class is raised.
    """

    def __init__(self, saved_model: str) -> None:
        self.version = int(os.path.basename(saved_model))
        self.signatures = read_signatures(saved_model)
        _check_fingerprint(saved_model)
        self._model = tf.saved_model.load(saved_model)
        for request in read_warmup_requests(saved_model):
            self.answer(request)

    def input_infos(
        self, signature_name: str
    ) -> Mapping[str, meta_graph_pb2.TensorInfo]:
        """`TensorInfo` messages of a signature's inputs, by name."""
        return self._signature(signature_name).inputs

    def answer(self, request: typing.Any) -> dict[str, np.ndarray]:
        """Answers a `PredictRequest`. The name of its model is not checked."""
        signature_name = request.model_spec.signature_name
        infos = self.input_infos(signature_name)
        _check_names(infos, request.inputs)
        inputs = {
            name: _array(name, tensor, infos[name])
            for name, tensor in request.inputs.items()
        }
        return self.predict(signature_name, inputs, request.output_filter)

    def predict(
        self,
        signature_name: str,
        inputs: Mapping[str, np.ndarray],
        output_filter: Sequence[str] = (),
    ) -> dict[str, np.ndarray]:
        """Runs a signature, `"serving_default"` if its name is empty.

        Only the outputs of the filter are returned, or all.
        """
        signature = self._signature(signature_name)
        _check_names(signature.inputs, inputs)
        for name, info in signature.inputs.items():
            _check_type(name, tf.as_dtype(inputs[name].dtype), info)
            _check_shape(name, inputs[name].shape, info)
        names = list(output_filter) or list(signature.outputs)
        if not set(names) <= set(signature.outputs) or (
            len(set(names)) < len(names)
        ):
            raise invalid_argument(
                f"`output_filter` takes each of {sorted(signature.outputs)} at "
                f"most once. Received: {quoted(names)}"
            )
        outputs = self._model.signatures[signature_name or "serving_default"](
            **{key: tf.constant(value) for key, value in inputs.items()}
        )
        return {
            name: np.asarray(
                outputs[name].numpy(), outputs[name].dtype.as_numpy_dtype
            )
            for name in names
        }

    def metadata_response(self, name: str) -> typing.Any:
        """A `GetModelMetadataResponse` message with the signatures."""
        messages = serving_api("get_model_metadata_pb2")
        signatures = messages.SignatureDefMap()
        for key, signature in self.signatures.items():
            signatures.signature_def[key].CopyFrom(signature)
        response = messages.GetModelMetadataResponse()
        response.model_spec.name = name
        response.model_spec.version.value = self.version
        response.metadata["signature_def"].Pack(signatures)
        return response

    def _signature(self, name):
        name = name or "serving_default"
        if name not in self._model.signatures:
            raise tf.errors.FailedPreconditionError(
                None,
                None,
                f"Serving signature {quoted(name)} not found. The model has: "
                f"{sorted(self._model.signatures)}",
            )
        return self.signatures[name]


def _check_fingerprint(saved_model):
    """Raises a `ValueError` if the fingerprint's file exists and is damaged."""
    path = os.path.join(saved_model, "fingerprint.pb")
    if not os.path.exists(path):
        return
    try:
        with open(path, "rb") as file:
            fingerprint_pb2.FingerprintDef.FromString(file.read())
    except DecodeError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _check_names(infos, inputs):
    if set(inputs) != set(infos):
        missing = sorted(set(infos) - set(inputs))
        unknown = sorted(set(inputs) - set(infos))
        raise invalid_argument(
            f"The signature's inputs are {sorted(infos)}. Missing: "
            f"{missing}. Unknown: {quoted(unknown)}"
        )


def _check_type(name, dtype, info):
    expected = tf.as_dtype(info.dtype)
    if dtype != expected:
        raise invalid_argument(
            f"Input {name!r} is expected to be {expected.name}. Received: "
            f"{dtype.name}"
        )


def _check_shape(name, sizes, info):
    shape = tf.TensorShape(info.tensor_shape)
    if not shape.is_compatible_with(sizes):
        raise invalid_argument(
            f"Input {name!r} is expected to have shape {shape}. Received: "
            f"{quoted(tuple(sizes))}"
        )


def _array(name, tensor, info):
    """The NumPy array in a `TensorProto` that came over the network.

    A message may declare a shape of any size. It is compared with the signature
    and with the number of values before an array is created.
    """
    try:
        dtype = tf.as_dtype(tensor.dtype)
    except TypeError as error:
        raise _improper(name, f"data type {tensor.dtype}") from error
    _check_type(name, dtype, info)
    dims = tensor.tensor_shape.dim
    if tensor.tensor_shape.unknown_rank or len(dims) > _MAX_RANK:
        raise _improper(name, f"its rank is unknown or above {_MAX_RANK}")
    sizes = [dim.size for dim in dims]
    # Zeros are left out: beside a size of zero, other sizes may be huge, and
    # the graph would allocate memory for them.
    size = math.prod(x for x in sizes if x) * dtype.size
    if min(sizes, default=0) < 0 or size > MAX_REQUEST_BYTES:
        raise _improper(name, f"shape {sizes} is negative or too large")
    _check_shape(name, sizes, info)
    expected, received, unit = math.prod(sizes), 0, "values"
    if tensor.tensor_content:
        expected, unit = expected * dtype.size, "bytes"
        received = len(tensor.tensor_content)
    elif dtype in _VALUE_FIELDS:
        received = len(getattr(tensor, _VALUE_FIELDS[dtype]))
        received //= 2 if dtype.is_complex else 1
    if received != expected:
        raise _improper(
            name, f"shape {sizes} takes {expected} {unit}. Received: {received}"
        )
    try:
        return tf.make_ndarray(tensor)
    except (TypeError, ValueError, OverflowError) as error:
        raise _improper(name, error) from error


def _improper(name, explanation):
    return invalid_argument(
        f"Input {name!r} is not a proper tensor: {explanation}"
    )
