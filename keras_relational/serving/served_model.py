"""The version of a model that is served. It changes when new ones appear."""

import collections
import contextlib
import gc
import os
import re
import sys
import threading
import typing
from collections.abc import Iterator

from keras_relational.serving.errors import not_found
from keras_relational.serving.errors import quoted
from keras_relational.serving.errors import shortened
from keras_relational.serving.servable import Servable
from keras_relational.serving.serving_api import serving_api

# Interval between two looks at the folder, the same as in TensorFlow Serving.
SECONDS_BETWEEN_LOOKS = 1


class ServedModel:
    """The highest version of a model that loads.

    If a version does not load, the server says so on stderr, once, and tries
    the next lower one. `watched` looks for new versions while a `with` block
    runs. It loads a new version beside the old one, and then the new one takes
    over. The old one is released after its last request. If there is no version
    that loads, a `ValueError` says so.
    """

    def __init__(self, model_dir: str | os.PathLike, name: str) -> None:
        self.name = name
        self._model_dir = os.fspath(model_dir)
        self._messages = serving_api("get_model_status_pb2")
        # A `Servable`, once one has loaded.
        self._servable: typing.Any = None
        self._lock = threading.Lock()
        # Requests under way.
        self._users: collections.Counter[Servable] = collections.Counter()
        # Version → (state, explanation).
        self._states: dict[int, tuple[int, str]] = {}
        # Version → its files when it did not load.
        self._broken: dict[int, list] = {}
        self._look()
        if self._servable is None:
            raise ValueError(self._why_nothing_loads())

    @property
    def version(self) -> int:
        """The version that is served now."""
        return self._servable.version

    @contextlib.contextmanager
    def servable(
        self, name: str, version: int | None = None
    ) -> Iterator[Servable]:
        """Keeps a `Servable` loaded for a request, while a `with` block runs.

        A `NotFoundError` says if another model or version is asked for.
        """
        with self._lock:
            servable = self._servable
            if name != self.name or version not in (None, servable.version):
                raise self._not_found(name, version)
            self._users[servable] += 1
        try:
            yield servable
        finally:
            with self._lock:
                self._users[servable] -= 1
                self._let_go(servable)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Looks for new versions while a `with` block runs."""
        stopped = threading.Event()

        def watch():
            while not stopped.wait(SECONDS_BETWEEN_LOOKS):
                self._look()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def status_response(
        self, name: str, version: int | None = None
    ) -> typing.Any:
        """A `GetModelStatusResponse` message with the states of versions.

        By default it has all versions that were ever loaded or tried.
        """
        with self._lock:
            if name != self.name or version not in (None, *self._states):
                raise self._not_found(name, version)
            states = sorted(self._states.items(), reverse=True)
        response = self._messages.GetModelStatusResponse()
        for number, (state, explanation) in states:
            if version in (None, number):
                status = response.model_version_status.add()
                status.version = number
                status.state = state
                # The code is UNKNOWN (2) or OK (0). Setting it also creates the
                # message `status`, which clients expect.
                status.status.error_code = 2 if explanation else 0
                status.status.error_message = explanation
        return response

    def _not_found(self, name, version):
        asked = (
            quoted(name) if version is None else f"{quoted(name)} v{version}"
        )
        return not_found(
            f"Servable not found: {asked}. Served here: {self.name!r} "
            f"v{self._servable.version}, the highest version that loads"
        )

    def _look(self):
        """Loads the highest version that loads, unless it is served already.

        It may be lower than the served one, if that one's folder was removed.
        """
        versions = self._versions()
        for version in set(self._broken) - set(versions):
            del self._broken[version]
        for version in versions:
            if self._servable and version == self._servable.version:
                return
            if self._load(version):
                return

    def _load(self, version):
        folder = os.path.join(self._model_dir, str(version))
        files = _files(folder)
        if self._broken.get(version) == files:
            return False
        states = self._messages.ModelVersionStatus
        self._set_state(version, states.LOADING)
        try:
            servable = Servable(folder)
        except Exception as error:  # A damaged file raises any class of error.
            self._broken[version] = files
            reason = " ".join(str(error).split()) or type(error).__name__
            reason = shortened(reason)
            self._set_state(version, states.END, reason)
            print(
                f"Version {version} of {self.name!r} does not load and is not "
                f"served: {reason}",
                file=sys.stderr,
                flush=True,
            )
            return False
        self._broken.pop(version, None)
        with self._lock:
            old, self._servable = self._servable, servable
            if old is not None:
                self._states[old.version] = (states.UNLOADING, "")
                self._let_go(old)
            self._states[version] = (states.AVAILABLE, "")
        del old
        gc.collect()  # A loaded model contains reference cycles.
        return True

    def _let_go(self, servable):
        """Releases a version that is replaced and not in use."""
        if servable is self._servable or self._users[servable]:
            return
        del self._users[servable]
        if servable.version != self._servable.version:
            end = self._messages.ModelVersionStatus.END
            self._states[servable.version] = (end, "")

    def _set_state(self, version, state, explanation=""):
        with self._lock:
            self._states[version] = (state, explanation)

    def _versions(self):
        """The numbers of the versions in the folder, the highest first."""
        try:
            names = os.listdir(self._model_dir)
        except OSError:
            return []
        # The name of an unfinished version is not a number.
        numbers = [x for x in names if re.fullmatch("[1-9][0-9]{0,17}", x)]
        return sorted(map(int, numbers), reverse=True)

    def _why_nothing_loads(self):
        if not self._broken:
            return (
                f"{self._model_dir} holds no version of a model. Expected a "
                "folder with folders 1, 2, … in it, as `export_model` writes "
                "them."
            )
        highest = max(self._broken)
        return (
            f"{self._model_dir} holds no version that loads. Tried: "
            f"{sorted(self._broken)}. The highest: {self._states[highest][1]}"
        )


def _files(folder):
    """The files in a folder with sizes and times, to notice changes."""
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            with contextlib.suppress(OSError):
                status = os.stat(path)
                found.append((path, status.st_size, status.st_mtime_ns))
    return sorted(found)
