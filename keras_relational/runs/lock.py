"""A lock that lets one process at a time write to a folder."""

import contextlib
import os
import pathlib
import sys

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class FolderLock:
    """Holds the file `run.lock`, with the number of this process, in a folder.

    The operating system releases the lock when the process ends, even if it is
    killed. A `RuntimeError` says if another process, or another `FolderLock` of
    this process, holds it.
    """

    def __init__(self, directory: pathlib.Path) -> None:
        path = directory / "run.lock"
        self._file = open(path, "a+")
        try:
            self._lock()
        except OSError as error:
            self._file.seek(0)
            process = self._file.read().strip() or "unknown"
            self._file.close()
            raise RuntimeError(
                f"Another process writes to the run in {directory}: process "
                f"{process}. Wait until it ends, stop it, or use another "
                "directory."
            ) from error
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        """Lets other processes write to the folder."""
        if sys.platform == "win32":
            with contextlib.suppress(OSError):
                self._file.seek(_FAR)
                msvcrt.locking(self._file.fileno(), msvcrt.LK_UNLCK, 1)
        self._file.close()

    def _lock(self) -> None:
        if sys.platform == "win32":
            # On Windows other processes cannot read locked bytes. So the lock
            # is on a byte far behind the number of the process.
            self._file.seek(_FAR)
            msvcrt.locking(self._file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)


_FAR = 2**20
