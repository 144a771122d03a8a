import keras
import pytest

from keras_relational import runs


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="models are exported on TensorFlow only",
)
def test_check_export_refuses_before_any_work(tmp_path, monkeypatch):
    pytest.importorskip("tensorflow_serving")
    runs.check_export(None)
    runs.check_export(str(tmp_path))
    (tmp_path / "1").mkdir()
    with pytest.raises(ValueError, match="is never overwritten"):
        runs.check_export(str(tmp_path))
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    runs.check_export(None)
    with pytest.raises(RuntimeError, match="KERAS_BACKEND=tensorflow"):
        runs.check_export(str(tmp_path / "other"))


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="models are exported on TensorFlow only",
)
def test_what_a_killed_export_left_is_removed(tmp_path):
    pytest.importorskip("tensorflow_serving")
    left = tmp_path / ".export-abc" / "1"
    left.mkdir(parents=True)
    (left / "saved_model.pb").write_bytes(b"half")
    (tmp_path / "2").mkdir()
    runs.check_export(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["2"]
