"""Learning curves for TensorBoard."""

import importlib.util
import math
import pathlib
import time
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from keras_relational.file_io import errors_name


class TensorBoardCurves:
    """Writes curves to a folder that TensorBoard shows, if it is installed.

    A run that continues writes all of its curves to a new file, and removes the
    old files, whose last points would appear twice. The curve `unit`, such as
    `"batches"`, counts the progress.
    """

    def __init__(self, directory: pathlib.Path, unit: str) -> None:
        self.directory = directory
        self.unit = unit
        self._path: pathlib.Path | None = None

    def write(self, curves: Mapping[str, Sequence[float]]) -> None:
        """Writes the last point of each curve, or in the first call all points.

        All curves have the same length. Points that are NaN are left out.
        """
        if not _is_installed():
            return
        last = len(curves[self.unit]) - 1
        if self._path is not None:
            self._append(self._path, curves, [last])
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        old = list(self.directory.glob("events.out.tfevents.*"))
        name = f"events.out.tfevents.{time.time_ns():020d}.curves"
        self._path = self.directory / name
        version = "brain.Event:2"
        self._append(self._path, curves, range(last + 1), version)
        for path in old:
            path.unlink()

    def _append(
        self,
        path: pathlib.Path,
        curves: Mapping[str, Sequence[float]],
        rows: Iterable[int],
        version: str | None = None,
    ) -> None:
        from tensorboard.compat.proto import event_pb2
        from tensorboard.plugins.scalar import summary_v2
        from tensorboard.summary.writer.record_writer import RecordWriter

        # With this start, "relative" time in TensorBoard is training time.
        began = time.time() - 60 * curves["minutes"][-1]
        with errors_name(path), open(path, "ab") as file:
            writer = RecordWriter(file)
            if version is not None:
                event = event_pb2.Event(wall_time=began, file_version=version)
                writer.write(event.SerializeToString())
            for row in rows:
                event = event_pb2.Event(
                    wall_time=began + 60 * curves["minutes"][row],
                    step=int(curves[self.unit][row]),
                )
                for name, curve in curves.items():
                    if not math.isnan(curve[row]):
                        summary = summary_v2.scalar_pb(name, curve[row])
                        event.summary.MergeFrom(summary)
                writer.write(event.SerializeToString())


def _is_installed() -> bool:
    try:
        return importlib.util.find_spec("tensorboard") is not None
    except (ImportError, ValueError):
        return False
