"""TensorFlow checkpoints of an agent in training."""

import json
import pathlib
import re
import shutil
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_relational.file_io import errors_name
from keras_relational.file_io import sync_to_disk
from keras_relational.runs.checkpoints import NUM_GENERATIONS
from keras_relational.runs.curves import check_curves


class AgentCheckpoints:
    """The last two checkpoints of an agent, in a run's folder `checkpoints/`.

    They hold all variables that `actor_learner.checkpointed` returns, including
    random seeds, and the learning curves so far.
    """

    unit = "steps"

    def __init__(self, actor_learner: Any, directory: pathlib.Path) -> None:
        self.directory = directory / "checkpoints"
        self._curves = _Curves()
        self._checkpoint = tf.train.Checkpoint(
            curves=self._curves, **actor_learner.checkpointed(self.directory)
        )
        self._manager: Any = None

    def numbers(self) -> list[int]:
        """The numbers of the checkpoints, from the newest to the oldest.

        It also removes files that a killed process left.
        """
        names = self._listed()
        for path in self.directory.glob("ckpt-*"):
            if path.name.partition(".")[0] not in names:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        numbers = [int(name.removeprefix("ckpt-")) for name in names]
        return sorted(numbers, reverse=True)

    def path(self, number: int) -> pathlib.Path:
        """The path of a checkpoint, without the endings of its files."""
        return self.directory / f"ckpt-{number}"

    def save(self, number: int, curves: Mapping[str, Sequence[float]]) -> None:
        """Writes a checkpoint, and removes all but the newest two."""
        self._curves.curves = curves
        if self._manager is None:
            self._manager = tf.train.CheckpointManager(
                self._checkpoint, str(self.directory), NUM_GENERATIONS
            )
        path = self.path(number)
        try:
            with errors_name(path):
                self._manager.save(checkpoint_number=number)
                for file in self.directory.glob(f"{path.name}.*"):
                    sync_to_disk(file)
                sync_to_disk(self.directory)
        except tf.errors.ResourceExhaustedError as error:
            raise OSError(
                f"{path} cannot be written: {_explained(error)}."
            ) from error

    def restore(self, number: int) -> dict[str, list[float]]:
        """Assigns all variables from a checkpoint, and returns its curves.

        A `ValueError` says if the checkpoint is damaged, or of another agent.
        Some variables may have been assigned by then.
        """
        path = self.path(number)
        try:
            status = self._checkpoint.restore(str(path))
            status.assert_consumed()
            # TensorFlow restores the save counter at the next save. A finished
            # run never saves again.
            status.expect_partial()
            check_curves(self._curves.curves, self.unit)
        # A damaged checkpoint can raise errors of any class.
        except Exception as error:
            raise ValueError(
                f"{path} cannot be restored: {_explained(error)}. Expected an "
                "intact checkpoint of the same agent and environment. Put an "
                "intact copy in its place, or start again in another directory."
            ) from error
        return dict(self._curves.curves)

    def remove_newer(self, number: int) -> None:
        """Removes the checkpoints after this one, which are damaged."""
        rest = [n for n in self.numbers() if n <= number]
        tf.compat.v1.train.update_checkpoint_state(
            str(self.directory),
            str(self.path(number)),
            [str(self.path(n)) for n in reversed(rest)],
        )
        self.numbers()  # Removes files that are not in the list any more.

    def _listed(self) -> list[str]:
        """Names in TensorFlow's list, without deleted ones but the newest."""
        path = self.directory / "checkpoint"
        if not path.exists():
            return []
        try:
            state = tf.train.get_checkpoint_state(str(self.directory))
            if state is None:
                raise ValueError("it names no checkpoint")
            newest = pathlib.Path(state.model_checkpoint_path).name
            paths = map(pathlib.Path, state.all_model_checkpoint_paths)
            names = [
                x.name
                for x in paths
                if x.name == newest
                or (self.directory / f"{x.name}.index").exists()
            ]
            are_numbered = all(re.fullmatch(r"ckpt-\d+", x) for x in names)
            if newest not in names or not are_numbered:
                raise ValueError(f"it names {names}, and {newest!r} as newest")
            return names
        except (ValueError, OSError) as error:
            raise ValueError(
                f"{path} cannot be read: {error}. Expected TensorFlow's list "
                "of the checkpoints beside it, with a line such as "
                'model_checkpoint_path: "ckpt-100".'
            ) from error


class _Curves(tf.train.experimental.PythonState):
    """Learning curves as a part of a checkpoint."""

    def __init__(self) -> None:
        self.curves: Mapping[str, Any] = {}

    def serialize(self) -> str:
        return json.dumps(dict(self.curves))

    def deserialize(self, string_value: str) -> None:
        self.curves = json.loads(string_value)


def _explained(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error) or repr(error)
    return text.strip().splitlines()[0].rstrip(".")
