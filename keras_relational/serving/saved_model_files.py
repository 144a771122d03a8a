"""Signatures and warm-up requests in the files of a SavedModel.

TensorFlow Serving runs the warm-up requests before it serves a model.
"""

import os

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.core.protobuf import saved_model_pb2

from keras_relational.serving.serving_api import serving_api

# None may exceed the `max_batch_size` of a server.
_BATCH_SIZES = (1, 32)
WARMUP_FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")


def write_warmup_requests(saved_model: str | os.PathLike) -> None:
    """Adds a request of zeros for each signature and batch size.

    The first request to a new model is slow, because TensorFlow allocates
    memory and optimizes the graphs. TensorFlow Serving therefore runs the
    requests in `assets.extra/tf_serving_warmup_requests` before a version
    becomes available.
    """
    predict_pb2 = serving_api("predict_pb2")
    prediction_log_pb2 = serving_api("prediction_log_pb2")
    path = os.path.join(saved_model, WARMUP_FILE)
    signatures = read_signatures(saved_model)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tf.io.TFRecordWriter(path) as writer:
        for name, signature in sorted(signatures.items()):
            if signature.method_name != "tensorflow/serving/predict":
                continue  # Initialization, which no request asks for.
            for batch_size in _BATCH_SIZES:
                request = predict_pb2.PredictRequest()
                request.model_spec.signature_name = name
                for key, info in signature.inputs.items():
                    # Sizes that are not fixed become 1.
                    sizes = [max(x.size, 1) for x in info.tensor_shape.dim[1:]]
                    dtype = tf.as_dtype(info.dtype).as_numpy_dtype
                    zeros = np.zeros([batch_size, *sizes], dtype)
                    request.inputs[key].CopyFrom(tf.make_tensor_proto(zeros))
                log = prediction_log_pb2.PredictionLog()
                log.predict_log.request.CopyFrom(request)
                writer.write(log.SerializeToString())


def read_warmup_requests(saved_model: str | os.PathLike) -> list:
    """The `PredictRequest` messages of a SavedModel, if there are any."""
    prediction_log_pb2 = serving_api("prediction_log_pb2")
    path = os.path.join(saved_model, WARMUP_FILE)
    if not os.path.exists(path):
        return []
    return [
        prediction_log_pb2.PredictionLog.FromString(
            record.numpy()
        ).predict_log.request
        for record in tf.data.TFRecordDataset(path)
    ]


def read_signatures(
    saved_model: str | os.PathLike,
) -> dict[str, meta_graph_pb2.SignatureDef]:
    """The signatures of a SavedModel by name, without loading the model.

    A `ValueError` says if the folder has no SavedModel with the tag `"serve"`.
    """
    path = os.path.join(saved_model, "saved_model.pb")
    try:
        with open(path, "rb") as file:
            graphs = saved_model_pb2.SavedModel.FromString(file.read())
    except (FileNotFoundError, DecodeError) as error:
        raise ValueError(
            f"{saved_model} is not a SavedModel: {path} is missing or damaged. "
            "`export_model` writes one."
        ) from error
    for graph in graphs.meta_graphs:
        if "serve" in graph.meta_info_def.tags:
            return dict(graph.signature_def)
    raise ValueError(
        f"{path} has no graph with the tag 'serve'. `export_model` writes one."
    )
