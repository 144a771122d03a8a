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
