"""Checks that a run can export its model, before any work."""

import importlib.util
import pathlib
import shutil

import keras


def check_export(path: pathlib.Path | str | None, version: int = 1) -> None:
    """Refuses an export that could not be made after the training.

    It also removes what a killed export left in the folder, so no other process
    should export to it at the time.

    Args:
        path: Folder of the model, as `serving.export_model` takes it, or
            `None` for no export.
        version: Positive integer, the version that is to be written.

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
