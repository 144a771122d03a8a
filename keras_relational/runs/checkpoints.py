"""Checkpoints of a Keras model in training, as NumPy's `.npz` files."""

import json
import pathlib
import re
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import ml_dtypes
import numpy as np

from keras_relational.datasets.npz import read_npz
from keras_relational.file_io import MAX_TEXT_BYTES
from keras_relational.file_io import atomic_file
from keras_relational.runs.curves import check_curves
from keras_relational.runs.processes import array_from_first
from keras_relational.runs.processes import from_first

NUM_GENERATIONS = 2


class ModelCheckpoints:
    """The last two checkpoints of a model and its optimizer, in a folder.

    A file `checkpoint-NUMBER.npz` holds all variables of the model and of its
    optimizer, including random seeds, and the learning curves so far. Each
    variable keeps its dtype. The file contains no pickles.

    Args:
        model: A compiled `keras.Model`. The model and its optimizer are built.
        directory: Folder of the files.
    """

    unit = "batches"

    def __init__(self, model: keras.Model, directory: pathlib.Path) -> None:
        self.model = model
        self.directory = directory

    def numbers(self) -> list[int]:
        """The numbers of the checkpoints, from the newest to the oldest."""
        found = (
            re.fullmatch(r"checkpoint-(\d+)\.npz", path.name)
            for path in self.directory.glob("checkpoint-*.npz")
        )
        return sorted((int(x[1]) for x in found if x), reverse=True)

    def path(self, number: int) -> pathlib.Path:
        """The path of a checkpoint."""
        return self.directory / f"checkpoint-{number}.npz"

    def save(self, number: int, curves: Mapping[str, Sequence[float]]) -> None:
        """Writes a checkpoint, and removes all but the newest two.

        Its number is the number of batches so far.
        """
        arrays: dict[str, Any] = {}
        for name, variable in self._variables().items():
            dtype = _dtype(variable)
            array = keras.ops.convert_to_numpy(variable).astype(dtype)
            arrays[name] = array.view(_stored_dtype(dtype))
        with atomic_file(self.path(number)) as file:
            np.savez(file, curves=json.dumps(dict(curves)), **arrays)
        for old in self.numbers()[NUM_GENERATIONS:]:
            self.path(old).unlink()

    def restore(self, number: int) -> dict[str, list[float]]:
        """Assigns all variables from a checkpoint, or none of them.

        Returns the curves. A `ValueError` says if the file is damaged, or of
        another model.
        """
        path, variables = self.path(number), self._variables()
        # Of process 0 alone, if several train the model together.
        values = [
            np.zeros(x.shape, _assigned_dtype(x)) for x in variables.values()
        ]

        def read() -> dict[str, list[float]]:
            curves, values[:] = _read(path, variables)
            return curves

        try:
            curves = from_first(read)
        # A damaged file can raise errors of any class.
        except Exception as error:
            raise ValueError(
                f"{path} is damaged, or of another model or optimizer: "
                f"{error or repr(error)} Put an intact copy in its place, or "
                "delete it to begin again."
            ) from error
        for variable, value in zip(variables.values(), values, strict=True):
            variable.assign(array_from_first(value))
        return curves

    def remove_newer(self, number: int) -> None:
        """Removes the checkpoints after this one, which are damaged."""
        for newer in self.numbers():
            if newer > number:
                self.path(newer).unlink()

    def _variables(self) -> dict[str, Any]:
        """Variables by their names in the file."""
        variables = [*self.model.variables, *self.model.optimizer.variables]
        named = {}
        for number, variable in enumerate(variables):
            dtype = _dtype(variable)
            suffix = "" if _is_known(dtype) else f"_{dtype.name}"
            named[f"variable_{number}{suffix}"] = variable
        return named


def _read(
    path: pathlib.Path, variables: Mapping[str, Any]
) -> tuple[dict[str, list[float]], list[np.ndarray]]:
    """Reads the curves, and a value for each variable of this model."""
    shapes = {name: tuple(x.shape) for name, x in variables.items()}

    def check(headers: Mapping[str, Any]) -> None:
        for name, (shape, dtype) in headers.items():
            if name == "curves":
                if shape or dtype.itemsize > 4 * MAX_TEXT_BYTES:
                    raise ValueError("its curves are not text, or too long")
            elif dtype.kind not in "biuf":
                raise ValueError(f"{name!r} holds {dtype}, not numbers")
        found = {k: x.shape for k, x in headers.items() if k != "curves"}
        if found != shapes:
            raise ValueError(
                f"it holds {len(found)} variables, and this run has "
                f"{len(shapes)}, or their shapes or types differ"
            )
        for name, variable in variables.items():
            expected = _stored_dtype(_dtype(variable))
            if headers[name].dtype != expected:
                raise ValueError(
                    f"{name!r} is of type {headers[name].dtype}, and should be "
                    f"{expected}"
                )

    arrays = read_npz(path, None, "the checkpoint of a run", check)
    curves = json.loads(str(arrays.pop("curves")))
    check_curves(curves, ModelCheckpoints.unit)
    return curves, [
        arrays[name].view(_dtype(variable)).astype(_assigned_dtype(variable))
        for name, variable in variables.items()
    ]


def _dtype(variable: Any) -> np.dtype:
    """The dtype of a variable. `ml_dtypes` has the dtypes that NumPy lacks."""
    name = keras.backend.standardize_dtype(variable.dtype)
    return np.dtype(getattr(ml_dtypes, name, name))


def _is_known(dtype: np.dtype) -> bool:
    """Tells whether `.npz` files record this dtype, unlike bfloat16."""
    return dtype.kind in "biuf" and dtype.isbuiltin == 1


def _stored_dtype(dtype: np.dtype) -> np.dtype:
    if _is_known(dtype):
        return dtype
    return np.dtype(f"uint{8 * dtype.itemsize}")


def _assigned_dtype(variable: Any) -> np.dtype:
    """The dtype of a value for a variable.

    Not every backend takes bfloat16 and the like from NumPy. float32 holds all
    their values.
    """
    dtype = _dtype(variable)
    return dtype if _is_known(dtype) else np.dtype("float32")
