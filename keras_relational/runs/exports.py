"""Checks before training that a run can export its model."""

import importlib.util
import pathlib
import shutil

import keras


def check_export(path: pathlib.Path | str | None, version: int = 1) -> None:
    """Raises an error if the export after training would fail.

    It also removes the files that a killed export left in the folder. So no
    other process may export to this folder at the same time.

    Args:
        path: Folder of the model, the `path` of `serving.export_model`, or
            `None` for no export.
        version: Positive integer, the version to write.

    Raises:
        RuntimeError: If Keras runs on another backend than TensorFlow, or the
            extra `serving` is not installed.
        ValueError: If the version exists already.
    """
    if path is None:
        return
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            "A model is exported on TensorFlow only. Set the environment "
            "variable KERAS_BACKEND=tensorflow. Received: "
            f"KERAS_BACKEND={keras.backend.backend()}"
        )
    if importlib.util.find_spec("tensorflow_serving") is None:
        raise RuntimeError(
            "An export needs the extra `serving`, which is not installed. Run: "
            "pip install 'keras_relational[serving]'"
        )
    target = pathlib.Path(path) / str(version)
    if target.exists():
        raise ValueError(
            f"{target} exists, and a version is never overwritten. Export to "
            "another folder."
        )
    for folder in pathlib.Path(path).glob(".export-*"):
        shutil.rmtree(folder)
