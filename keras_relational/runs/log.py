"""The log of one training: its learning curves and its checkpoints."""

import pathlib
import warnings
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_relational.file_io import is_partial
from keras_relational.runs.curves import write_curves
from keras_relational.runs.processes import from_first
from keras_relational.runs.processes import is_first
from keras_relational.runs.tensorboard import TensorBoardCurves


class TrainingLog:
    """Writes learning curves and checkpoints, and finds where to continue.

    `training.fit` and `agents.training.train_agent` use it. Before the first
    epoch they call `restore`, which loads the newest intact checkpoint. After
    every epoch they call `add` with a row of the curves. `add` writes the row
    to `curves.csv` and to `tensorboard/`, and saves a checkpoint.

    Args:
        run: A `Run`. With `None` the curves are kept in memory only.
        part: Name of this training, for runs that train several networks. Its
            files are in a subfolder of this name. `None` for a run with one
            training.
        unit: Name of the curve that counts the progress, such as `"batches"`.
        open_checkpoints: Function that takes a folder and returns an object
            such as `ModelCheckpoints`.

    Attributes:
        curves: Dictionary of names and lists of numbers, one number for each
            epoch.
        directory: Folder of the log, or `None`.
    """

    def __init__(
        self,
        run: Any,
        part: str | None,
        unit: str,
        open_checkpoints: Callable[[pathlib.Path], Any],
    ) -> None:
        self.run = run
        self.unit = unit
        self.curves: dict[str, list[float]] = {}
        self.directory: pathlib.Path | None = None
        if run is None:
            return
        self.directory = run.add_log(self, part)
        if is_first():
            remove_partial_files(self.directory)
        self._tensorboard = TensorBoardCurves(
            self.directory / "tensorboard", unit
        )
        self._checkpoints = open_checkpoints(self.directory)

    @property
    def done(self) -> int:
        """Number of batches or steps so far."""
        return int(self.curves[self.unit][-1]) if self.curves else 0

    @property
    def minutes(self) -> float:
        """Minutes of training so far, including those before a break."""
        return self.curves["minutes"][-1] if self.curves else 0.0

    def restore(self, goal: int) -> None:
        """Loads the newest intact checkpoint, if there is one.

        It prints where the training continues, and warns if a checkpoint is
        damaged. `goal` is the number of batches or steps at which the training
        ends. A `ValueError` says if no checkpoint can be restored.
        """
        if self.run is None:
            return
        numbers = from_first(self._checkpoints.numbers)
        first_error = None
        for number in numbers:
            try:
                self.curves = self._checkpoints.restore(number)
            except ValueError as error:
                first_error = first_error or error
                continue
            break
        else:
            if first_error is not None:
                raise first_error
            return
        if first_error is not None:
            warnings.warn(
                f"{first_error} This run goes on from the checkpoint before: "
                f"{self._checkpoints.path(number)}",
                stacklevel=3,
            )
            if is_first():
                self._checkpoints.remove_newer(number)
        if not is_first():
            return
        if self.done < goal:
            print(
                f"Continues {self.directory} after {self.done:,} of {goal:,} "
                f"{self.unit}."
            )
        else:
            print(
                f"{self.directory} has made its {self.done:,} {self.unit}: "
                "nothing is trained."
            )

    def drop_last_row(self) -> None:
        """Removes the row of an incomplete last epoch."""
        for curve in self.curves.values():
            curve.pop()

    def add(self, row: Mapping[str, float], number: int | None = None) -> None:
        """Adds a row to the curves and, with a run, saves a checkpoint.

        If a curve has no number for an epoch, it gets NaN there. The number of
        the checkpoint is by default the number of batches or steps so far.
        """
        epochs = len(self.curves.get(self.unit, ()))
        for name in {**self.curves, **row}:
            curve = self.curves.setdefault(name, epochs * [float("nan")])
            curve.append(_plain(row.get(name, float("nan"))))
        if self.directory is None or not is_first():
            return
        self.run.has_new_results()
        write_curves(self.directory / "curves.csv", self.curves)
        self._tensorboard.write(self.curves)
        # The checkpoint is saved last. After a kill, training continues from it
        # and writes any later rows of the files above again.
        self._checkpoints.save(
            self.done if number is None else number, self.curves
        )


def remove_partial_files(directory: pathlib.Path) -> None:
    """Removes unfinished files of a killed process from a folder."""
    for path in directory.glob("*.partial*"):
        if is_partial(path):
            path.unlink()


def _plain(number: float) -> float:
    """The same number, as a Python type that JSON can store."""
    if isinstance(number, int | np.integer):
        return int(number)
    return float(number)
