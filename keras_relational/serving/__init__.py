"""Exports models, and serves them over REST and gRPC.

- Export: `export_model` writes a SavedModel for TensorFlow Serving.
- Ask a server: `predict_rest`, `predict_grpc` and `model_status`. A refusal
  raises a `ServingError`.
- Serve during development: `serve` runs a stand-in for TensorFlow Serving and
  yields a `Server`. `python -m keras_relational.serving` does the same from a
  shell.
"""

from keras_relational.serving.client import ServingError
from keras_relational.serving.client import model_status
from keras_relational.serving.client import predict_grpc
from keras_relational.serving.client import predict_rest
from keras_relational.serving.export import export_model
from keras_relational.serving.server import Server
from keras_relational.serving.server import serve

__all__ = [
    "Server",
    "ServingError",
    "export_model",
    "model_status",
    "predict_grpc",
    "predict_rest",
    "serve",
]
