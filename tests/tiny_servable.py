"""A model that loads in no time, for tests of the server alone."""

import os
import tempfile

import numpy as np
import tensorflow as tf

from keras_relational import serving
from keras_relational.serving import saved_model_files

X = np.array([[1, 2.5], [3, 4]], "float32")


def save_multiplier(path, version=1, factor=2):
    """Writes a version that multiplies; all at once, as `export_model` does."""
    module = tf.Module()
    module.factor = tf.Variable(factor, dtype=tf.float32)
    module.multiply = tf.function(
        lambda x: {"y": module.factor * x},
        input_signature=[tf.TensorSpec((None, 2), tf.float32, name="x")],
    )
    with tempfile.TemporaryDirectory(dir=path, prefix=".export-") as aside:
        folder = os.path.join(aside, str(version))
        tf.saved_model.save(
            module, folder, {"serving_default": module.multiply}
        )
        saved_model_files.write_warmup_requests(folder)
        os.rename(folder, os.path.join(path, str(version)))


def factor_of(server, network="rest"):
    """What the server multiplies by."""
    if network == "rest":
        outputs = serving.predict_rest(
            server.rest_url, {"x": X}, server.model_name
        )
        return (outputs["outputs"] / X).item(0)
    outputs = serving.predict_grpc(
        server.grpc_address, {"x": X}, server.model_name
    )
    return (outputs["y"] / X).item(0)
