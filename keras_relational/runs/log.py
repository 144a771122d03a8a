"""The log of one training: its learning curves and its checkpoints."""

import pathlib
import warnings
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_relational.file_io import is_partial
from keras_relational.runs.curves import write_curves
from keras_relational.runs.tensorboard import TensorBoardCurves


class TrainingLog:
    """Takes learning curves and checkpoints, and finds where to go on.

    `training.fit` and `agent_runs.train_agent` use it. After every epoch they
    call `add` with a row of the curves, which is written to `curves.csv`, to
    `tensorboard/` and, with all variables, to a checkpoint. Before the first
    one, `restore` takes up the newest checkpoint that is intact.

    Args:
        run: A `Run`, or `None`: then the curves are in memory alone.
        part: Name of the part of the run, for runs that train several networks.
            It has a folder of its own within that of the run.
        unit: Name of the curve that counts the progress, such as `"batches"`.
        open_checkpoints: Function from a folder to checkpoints, such as
            `ModelCheckpoints`.

    Attributes:
        curves: Dictionary of names and lists of numbers, one entry an epoch.
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
        remove_partial_files(self.directory)
        self._tensorboard = TensorBoardCurves(
            self.directory / "tensorboard", unit
        )
        self._checkpoints = open_checkpoints(self.directory)

    @property
    def done(self) -> int:
        """How far the training has come, in its unit."""
        return int(self.curves[self.unit][-1]) if self.curves else 0

    @property
    def minutes(self) -> float:
        """The time spent so far, all parts of the training together."""
        return self.curves["minutes"][-1] if self.curves else 0.0

    def restore(self, goal: int) -> None:
        """Takes up the newest checkpoint that is intact, if there is one.

        It says in a line that it does, and where the training goes on. Of a
        damaged checkpoint it warns.

        Args:
            goal: How far the training is to go, in its unit.

        Raises:
            ValueError: If there are checkpoints and none can be restored.
        """
        numbers = [] if self.run is None else self._checkpoints.numbers()
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
            self._checkpoints.remove_newer(number)
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
        """Removes the last row, that of an epoch which is then made up."""
        for curve in self.curves.values():
            curve.pop()

    def add(self, row: Mapping[str, float], number: int | None = None) -> None:
        """Adds a row to the curves and, with a run, takes a checkpoint.

        A curve that begins late, or is missing in this row, is NaN elsewhere.

        Args:
            row: Dictionary of names and numbers.
            number: Number of the checkpoint; by default the progress.
        """
        epochs = len(self.curves.get(self.unit, ()))
        for name in {**self.curves, **row}:
            curve = self.curves.setdefault(name, epochs * [float("nan")])
            curve.append(_plain(row.get(name, float("nan"))))
        if self.directory is None:
            return
        self.run.has_new_results()
        write_curves(self.directory / "curves.csv", self.curves)
        self._tensorboard.write(self.curves)
        # Last: what the files above have beyond the checkpoint is made again.
        self._checkpoints.save(
            self.done if number is None else number, self.curves
        )


def remove_partial_files(directory: pathlib.Path) -> None:
    """Removes files that a killed process left half written.

    Args:
        directory: Folder that no other process writes to.
    """
    for path in directory.glob("*.partial*"):
        if is_partial(path):
            path.unlink()


def _plain(number: float) -> float:
    """A number that JSON takes."""
    if isinstance(number, int | np.integer):
        return int(number)
    return float(number)
