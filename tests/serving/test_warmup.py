import collections

import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from keras_relational import serving
from keras_relational.serving import saved_model_files


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


def test_the_requests_run(multi_task_dir, multi_task_server):
    requests = saved_model_files.read_warmup_requests(multi_task_dir / "3")
    assert len(requests) == 4
    for request in requests:
        inputs = {
            name: tf.make_ndarray(value)
            for name, value in request.inputs.items()
        }
        outputs = serving.predict_grpc(
            multi_task_server.grpc_address,
            inputs,
            "multi_task",
            request.model_spec.signature_name,
        )
        assert outputs["label"].shape == inputs["task"].shape


def test_a_model_without_warmup_requests(tmp_path):
    assert saved_model_files.read_warmup_requests(tmp_path) == []


def test_not_a_saved_model(tmp_path):
    with pytest.raises(ValueError, match="is not a SavedModel"):
        saved_model_files.write_warmup_requests(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="is not a SavedModel"):
        saved_model_files.write_warmup_requests(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(ValueError, match="no graph with the tag 'serve'"):
        saved_model_files.write_warmup_requests(tmp_path)
