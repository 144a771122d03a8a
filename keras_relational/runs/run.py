"""A run: a folder with the configuration and the result of an experiment."""

import json
import pathlib
import warnings
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import Self

import keras

from keras_relational.file_io import atomic_path
from keras_relational.file_io import read_json
from keras_relational.file_io import write_atomically
from keras_relational.runs import config
from keras_relational.runs.curves import read_curves
from keras_relational.runs.lock import FolderLock
from keras_relational.runs.log import remove_partial_files
from keras_relational.runs.processes import from_first
from keras_relational.runs.processes import is_first


class Run:
    """A folder for a run of an experiment, to be used in a `with` statement.

    On entry it creates and locks the folder, and writes `config.json`. If the
    folder holds the same run already, training continues. If it holds another
    run, a `ValueError` lists the differences.

    Args:
        directory: Path of the folder. Each run has its own. `runs.run_name`
            makes a name for it.
        experiment: Name of the experiment, such as `"adding"`.
        arguments: Dictionary of all arguments of the command, defaults
            included: numbers, text, paths, and lists of them.
        may_differ: Names of arguments that may differ when the run is started
            again, such as the number of epochs. Paths may always differ.
        data: Dictionary from a name of each input file or data set to its
            digest, as `runs.data_digest` makes it.

    Attributes:
        directory: `pathlib.Path` of the folder.
        name: Name of the folder.
        config: Dictionary, the content of `config.json`.
        result: Dictionary, the content of `result.json`, or `None` if the run
            has not finished.

    Raises:
        ValueError: On entry, if the folder holds another run, if it holds files
            of a run without a `config.json`, or if `config.json` is damaged.
        RuntimeError: On entry, if another process uses the folder.

    Example:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Run(folder, "sums", {"seed": 3}) as run:
    ...         result = run.finish({"accuracy": 0.5})
    ...     with Run(folder, "sums", {"seed": 3}) as run:
    ...         run.result["accuracy"]
    0.5
    """

    def __init__(
        self,
        directory: pathlib.Path | str,
        experiment: str,
        arguments: Mapping[str, object],
        may_differ: Iterable[str] = (),
        data: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = pathlib.Path(directory)
        self.name = self.directory.name
        self.config: dict[str, Any] | None = None
        self.result: dict[str, Any] | None = None
        self._started_with = (experiment, arguments, data or {})
        self._may_differ = tuple(may_differ)
        self._lock: FolderLock | None = None
        self._logs: list[tuple[str | None, Any]] = []

    def __enter__(self) -> Self:
        self.config, self.result = from_first(self._open)
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.release()

    def add_log(self, log: Any, part: str | None) -> pathlib.Path:
        """Registers a `TrainingLog`, and creates and returns its folder.

        `part` names the part of the run; `None` is its only training. `finish`
        adds the progress of the log to the result.
        """
        if self.config is None:
            raise RuntimeError(
                f"The run in {self.directory} has not been started: use it in "
                "a `with` statement."
            )
        self._logs.append((part, log))
        directory = self.directory / (part or "")
        if is_first():
            directory.mkdir(exist_ok=True)
        return directory

    def has_new_results(self) -> None:
        """Removes `result.json`: the run continues, so it is out of date."""
        if is_first():
            (self.directory / "result.json").unlink(missing_ok=True)

    def save_model(
        self, model: keras.Model, name: str = "model.keras"
    ) -> pathlib.Path:
        """Saves a model in the folder, and returns the path of the file."""
        path = self.directory / name
        if is_first():
            with atomic_path(path) as partial:
                model.save(partial)
        return path

    def finish(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """Writes `result.json`, which marks the run as finished.

        Args:
            figures: Dictionary of metrics that JSON can store.

        Returns:
            Dictionary, the content of the file: the date as `finished`, the
            `minutes` of all trainings in the folder, the progress as `batches`
            or `steps`, and the metrics. A metric replaces another entry of the
            same name.

        Raises:
            OSError: If the file cannot be written. The error names it.
        """
        result: dict[str, Any] = {"finished": config.now()}
        if self._logs:
            result["minutes"] = round(self._minutes(), 1)
        for part, log in self._logs:
            if part is None:
                result[log.unit] = log.done
        content = json.dumps({**result, **figures}, indent=1)
        written = json.loads(content)
        self.result = written
        if is_first():
            write_atomically(self.directory / "result.json", content.encode())
        return written

    def _minutes(self) -> float:
        """Minutes of all trainings, those of earlier commands included."""
        minutes = {log.directory: log.minutes for _, log in self._logs}
        for path in self.directory.glob("**/curves.csv"):
            if path.parent in minutes:
                continue
            try:
                minutes[path.parent] = read_curves(path)["minutes"][-1]
            except (ValueError, LookupError) as error:
                warnings.warn(
                    f"The minutes of {path.parent} are not counted: {error}",
                    stacklevel=3,
                )
        return sum(minutes.values())

    def _open(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Locks the folder, and returns its configuration and its result."""
        self.directory.mkdir(parents=True, exist_ok=True)
        lock = FolderLock(self.directory)
        try:
            remove_partial_files(self.directory)
            configuration, result = self._read_or_write_config(), None
            if (path := self.directory / "result.json").exists():
                result = read_json(path)
        except BaseException:
            lock.release()
            raise
        self._lock = lock
        return configuration, result

    def _read_or_write_config(self) -> dict[str, Any]:
        experiment, arguments, data = self._started_with
        path = self.directory / "config.json"
        start = config.this_start()
        new = config.new_config(experiment, arguments, data, start)
        try:
            saved = read_json(path)
        except FileNotFoundError:
            self._check_is_empty()
        else:
            _check_format(saved, path)
            self._check_differences(saved)
            continued = [*saved.get("continued", []), start]
            new = {
                **saved,
                "arguments": new["arguments"],
                "continued": continued,
            }
        write_atomically(path, json.dumps(new, indent=1).encode())
        return new

    def _check_differences(self, saved: Mapping[str, Any]) -> None:
        found = config.differences(saved, *self._started_with, self._may_differ)
        if found:
            raise ValueError(
                f"{self.directory} holds another run. The difference: "
                f"{'; '.join(found)}. Use another directory, give the same "
                "arguments to continue that run, or delete the folder."
            )

    def _check_is_empty(self) -> None:
        for pattern in ("curves.csv", "checkpoint*", "result.json"):
            if any(self.directory.glob(pattern)):
                raise ValueError(
                    f"{self.directory} holds files of a run without its "
                    "config.json, which says what run it is. Use another "
                    "directory, or delete the folder."
                )


def _check_format(saved: Any, path: pathlib.Path) -> None:
    is_known = isinstance(saved, dict) and saved.get("format") == config.FORMAT
    if not is_known or not {"experiment", "arguments", "data"} <= set(saved):
        raise ValueError(
            f"{path} cannot be read: expected the description of a run in "
            f"format {config.FORMAT}. Received: {str(saved)[:80]}"
        )
