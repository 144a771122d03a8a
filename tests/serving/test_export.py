"""What an export holds: signatures, a graph, and warm-up requests."""

import collections
import os
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_models import build
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2
from tiny_servable import answer
from tiny_servable import exported

from keras_relational import serving
from keras_relational.models import relations_classifier
from keras_relational.serving import export


@pytest.fixture
def small():
    """Any model with logits will do where only files matter."""
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])


def test_nothing_is_compiled_with_xla(small, tmp_path):
    """Not even where the model trains so: servers on a CPU have no XLA."""
    small.compile("sgd", "mse", jit_compile=True)
    folder = serving.export_model(small, tmp_path, outputs="logits")
    with open(os.path.join(folder, "saved_model.pb"), "rb") as file:
        graphs = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs
    functions = graphs[0].graph_def.library.function
    assert functions
    for function in functions:
        assert not function.attr["_XlaMustCompile"].b


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("relations_classifier", "predinet"),
        ("boxworld_agent", "relational"),
        ("boxworld_agent", "simplicial"),
        ("analogy_scorer", ""),
        ("rule_learner", ""),
        ("rule_learner", "ntm"),
        ("roll_out_model", ""),
    ],
)
def test_no_operation_is_one_of_xla(name, variant):
    """Which servers on a CPU refuse, even where nothing is compiled."""
    model = build(name, variant)
    specs = keras.tree.map_structure(
        lambda x: tf.TensorSpec(x.shape, x.dtype), model.input
    )
    graph = tf.function(model).get_concrete_function(specs).graph
    definition = graph.as_graph_def()
    nodes = [*definition.node]
    for function in definition.library.function:
        nodes += function.node_def
    operations = {node.op for node in nodes}
    assert "MatMul" in operations
    assert not [name for name in operations if name.startswith("Xla")]


def test_reduced_precision_is_float32_outside(images, tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = relations_classifier(num_heads=4, num_relations=3, key_dim=5)
    outputs = answer(exported(model, tmp_path)["propositions"], image=images)
    dtypes = {name: str(value.dtype) for name, value in outputs.items()}
    assert dtypes.pop("label") == "int64"
    assert set(dtypes.values()) == {"float32"}
    np.testing.assert_allclose(outputs["probabilities"].sum(axis=1), 1, 1e-6)


def test_baselines_have_one_signature(tmp_path):
    model = relations_classifier("mlp1", num_heads=4, num_relations=3)
    model_dir = tmp_path / "nested" / "mlp1"  # Made where it is missing.
    signatures = exported(model, model_dir, version=12)
    assert os.listdir(model_dir) == ["12"]
    assert "serving_default" in signatures
    assert "propositions" not in signatures


@keras.saving.register_keras_serializable("test_export")
class Halves(keras.layers.Layer):
    """A central module that has propositions, and attends to nothing."""

    def call(self, inputs):
        return inputs / 2

    def propositions(self, inputs):
        return {"halves": self(inputs), "whole": inputs}


def test_any_central_layer_with_propositions(tmp_path):
    features = keras.Input((4,), name="features")
    scale = keras.Input((1,), name="scale")
    model = keras.Model(
        {"scale": scale, "features": features},
        Halves(name="central")(features * scale),
    )
    signature = exported(model, tmp_path, outputs="logits")["propositions"]
    x = np.arange(8).reshape(2, 4)
    outputs = answer(signature, features=x, scale=[[1], [3]])
    whole = x * [[1], [3]]
    assert sorted(outputs) == ["halves", "label", "probabilities", "whole"]
    np.testing.assert_allclose(outputs["whole"], whole)
    np.testing.assert_allclose(outputs["halves"], whole / 2)
    np.testing.assert_array_equal(outputs["label"], [3, 3])


def test_an_existing_version_is_refused(small, tmp_path):
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "mine").write_text("kept")
    with pytest.raises(FileExistsError, match="higher `version`"):
        serving.export_model(small, tmp_path, 5, "logits")
    assert os.listdir(tmp_path) == ["5"]
    assert os.listdir(tmp_path / "5") == ["mine"]
    assert (tmp_path / "5" / "mine").read_text() == "kept"


def test_a_version_that_appears_meanwhile_is_kept(small, tmp_path, monkeypatch):
    """Two exports of one version at a time: the second one gives way."""
    write = export._write_saved_model

    def write_late(*arguments):
        (tmp_path / "1").mkdir()
        (tmp_path / "1" / "mine").write_text("kept")
        write(*arguments)

    monkeypatch.setattr(export, "_write_saved_model", write_late)
    with pytest.raises(FileExistsError, match="higher `version`"):
        serving.export_model(small, tmp_path, outputs="logits")
    assert os.listdir(tmp_path) == ["1"]
    assert os.listdir(tmp_path / "1") == ["mine"]


def test_a_failed_export_leaves_nothing(small, tmp_path, monkeypatch):
    def fail(folder):
        assert os.path.exists(os.path.join(folder, "saved_model.pb"))
        raise OSError("no space left")

    monkeypatch.setattr(export, "write_warmup_requests", fail)
    with pytest.raises(OSError, match="no space left"):
        serving.export_model(small, tmp_path, outputs="logits")
    assert os.listdir(tmp_path) == []


def test_servers_of_other_users_may_read(small, tmp_path):
    folder = serving.export_model(small, tmp_path, outputs="logits")
    (tmp_path / "plain").mkdir()
    assert os.stat(folder).st_mode == os.stat(tmp_path / "plain").st_mode


@pytest.mark.parametrize("version", [0, -1, 1.0, "1", True, None])
def test_bad_version(version, small, tmp_path):
    with pytest.raises(ValueError, match="`version` must be a positive int"):
        serving.export_model(small, tmp_path, version, "logits")
    assert os.listdir(tmp_path) == []


def test_models_that_are_not_built_are_refused(tmp_path):
    model = keras.Sequential([keras.layers.Dense(2)])
    with pytest.raises(ValueError, match=r"Give it a keras\.Input, or "):
        serving.export_model(model, tmp_path, outputs="logits")
    assert os.listdir(tmp_path) == []


def test_other_backends_are_refused(small, tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(RuntimeError, match="KERAS_BACKEND=tensorflow"):
        serving.export_model(small, tmp_path, outputs="logits")


def test_without_the_extra(small, tmp_path, monkeypatch):
    name = "tensorflow_serving.apis.prediction_log_pb2"
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"keras_relational\[serving\]"):
        serving.export_model(small, tmp_path, outputs="logits")
    assert os.listdir(tmp_path) == []


def test_one_request_for_each_signature_and_batch_size(multi_task_dir):
    """The file is where, and what, TensorFlow Serving documents."""
    path = multi_task_dir / "3/assets.extra/tf_serving_warmup_requests"
    batch_sizes = collections.defaultdict(list)
    for record in tf.data.TFRecordDataset(str(path)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        inputs = {
            name: tf.make_ndarray(value)
            for name, value in request.inputs.items()
        }
        assert sorted(inputs) == ["image", "task"]
        assert {value.dtype.name for value in inputs.values()} == {"uint8"}
        batch_size = len(inputs["task"])
        assert inputs["image"].shape == (batch_size, 36, 36, 3)
        batch_sizes[request.model_spec.signature_name].append(batch_size)
    assert batch_sizes == {"serving_default": [1, 32], "propositions": [1, 32]}
