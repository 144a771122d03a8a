"""One version of a model, loaded to answer requests."""

import os
import re

import numpy as np
import tensorflow as tf

from keras_relational.serving.serving_api import serving_api
from keras_relational.serving.signatures import read_signatures
from keras_relational.serving.warmup import read_warmup_requests

# What a request may hold, over either interface.
MAX_REQUEST_BYTES = 64 * 2**20


class Servable:
    """The highest version in a model's folder, loaded and warmed up.

    Requests that it cannot answer raise the errors of `tf.errors`, whose codes
    are those of gRPC: what TensorFlow Serving returns in the same case. It may
    be asked from several threads at once.

    Args:
        model_dir: Folder with a folder for each version, as `export_model`
            writes it.
        name: Name that requests call the model by.

    Raises:
        ImportError: If the extra `serving` is not installed.
        ValueError: If there is no such folder, no version in it, or the highest
            is not a SavedModel.
    """

    def __init__(self, model_dir, name):
        self.name = name
        self.version = _highest_version(model_dir)
        saved_model = os.path.join(model_dir, str(self.version))
        self.signatures = read_signatures(saved_model)
        self._model = tf.saved_model.load(saved_model)
        for request in read_warmup_requests(saved_model):
            self.predict(
                request.model_spec.signature_name,
                {
                    key: array_from_tensor_proto(key, tensor)
                    for key, tensor in request.inputs.items()
                },
            )

    def check_name(self, name, version=None):
        """Raises `NotFoundError` unless that model and version are served."""
        if name != self.name or version not in (None, self.version):
            asked = repr(name) if version is None else f"{name!r} v{version}"
            raise tf.errors.NotFoundError(
                None,
                None,
                f"Servable not found: {asked}. Served here: {self.name!r} "
                f"v{self.version}, the highest version when the server started",
            )

    def input_infos(self, signature_name):
        """`TensorInfo` messages of a signature's inputs, by name.

        Raises:
            FailedPreconditionError: If there is no such signature.
        """
        return self._signature(signature_name).inputs

    def predict(self, signature_name, inputs, output_filter=()):
        """Runs a signature.

        Args:
            signature_name: Name of the signature; empty for
                `"serving_default"`.
            inputs: Dictionary of NumPy arrays.
            output_filter: Names of the outputs to return; empty for all.

        Returns:
            Dictionary of NumPy arrays.

        Raises:
            FailedPreconditionError: If there is no such signature.
            InvalidArgumentError: If names, types, shapes or values do not fit.
        """
        signature = self._signature(signature_name)
        _check_inputs(signature, inputs)
        names = list(output_filter) or list(signature.outputs)
        if not set(names) <= set(signature.outputs) or (
            len(set(names)) < len(names)
        ):
            raise invalid_argument(
                f"`output_filter` takes each of {sorted(signature.outputs)} at "
                f"most once. Received: {names}"
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

    def status_response(self):
        """`GetModelStatusResponse`: the one version is available."""
        messages = serving_api("get_model_status_pb2")
        response = messages.GetModelStatusResponse()
        status = response.model_version_status.add()
        status.version = self.version
        status.state = messages.ModelVersionStatus.AVAILABLE
        status.status.SetInParent()  # No error.
        return response

    def metadata_response(self):
        """`GetModelMetadataResponse` with the signatures."""
        messages = serving_api("get_model_metadata_pb2")
        signatures = messages.SignatureDefMap()
        for name, signature in self.signatures.items():
            signatures.signature_def[name].CopyFrom(signature)
        response = messages.GetModelMetadataResponse()
        response.model_spec.name = self.name
        response.model_spec.version.value = self.version
        response.metadata["signature_def"].Pack(signatures)
        return response

    def _signature(self, name):
        name = name or "serving_default"
        if name not in self._model.signatures:
            raise tf.errors.FailedPreconditionError(
                None,
                None,
                f"Serving signature {name!r} not found. The model has: "
                f"{sorted(self._model.signatures)}",
            )
        return self.signatures[name]


def invalid_argument(explanation):
    """A `tf.errors.InvalidArgumentError`, which needs no node of a graph."""
    return tf.errors.InvalidArgumentError(None, None, explanation)


def explanation_of(error):
    """What an error of a graph says, without the report around it."""
    return error.message.split("\n\t [[")[0].splitlines()[-1]


def array_from_tensor_proto(name, tensor):
    """The NumPy array in a `TensorProto` that came over the network.

    Raises:
        InvalidArgumentError: If its values do not fill its shape or do not fit
            its type.
    """
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    try:
        # One value may stand for a whole tensor, so a short message may ask for
        # any amount of memory.
        size = np.prod([*sizes, tf.as_dtype(tensor.dtype).size], dtype=float)
        if min(sizes, default=0) < 0 or size > MAX_REQUEST_BYTES:
            raise ValueError(f"shape {sizes} is negative or too large")
        return tf.make_ndarray(tensor)
    except (TypeError, ValueError, OverflowError, KeyError) as error:
        raise invalid_argument(
            f"Input {name!r} is not a proper tensor: {error}"
        ) from error


def _highest_version(model_dir):
    folders = os.listdir(model_dir) if os.path.isdir(model_dir) else []
    versions = [int(x) for x in folders if re.fullmatch("[1-9][0-9]{0,17}", x)]
    if not versions:
        raise ValueError(
            f"{model_dir} holds no version of a model. Expected a folder with "
            "folders 1, 2, … in it, as `export_model` writes them."
        )
    return max(versions)


def check_names(infos, inputs):
    """Raises an `InvalidArgumentError` where other inputs have come."""
    if set(inputs) != set(infos):
        missing = sorted(set(infos) - set(inputs))
        unknown = sorted(set(inputs) - set(infos))
        raise invalid_argument(
            f"The signature's inputs are {sorted(infos)}. Missing: "
            f"{missing}. Unknown: {unknown}"
        )


def _check_inputs(signature, inputs):
    check_names(signature.inputs, inputs)
    for name, info in signature.inputs.items():
        value, dtype = inputs[name], tf.as_dtype(info.dtype)
        if tf.as_dtype(value.dtype) != dtype:
            raise invalid_argument(
                f"Input {name!r} is expected to be {dtype.name}. Received: "
                f"{tf.as_dtype(value.dtype).name}"
            )
        shape = tf.TensorShape(info.tensor_shape)
        if not shape.is_compatible_with(value.shape):
            raise invalid_argument(
                f"Input {name!r} is expected to have shape {shape}. Received: "
                f"{value.shape}"
            )
