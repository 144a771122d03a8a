"""Keeps TensorFlow's log out of the output of a command."""

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

# TensorFlow 2.21 writes these lines from C++ before it reads its log level, so
# that `TF_CPP_MIN_LOG_LEVEL` does not stop them.
_LOG = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\) is called"
    rb"|[IWE]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\]"
)


@contextlib.contextmanager
def without_log() -> Iterator[None]:
    """Drops the lines that TensorFlow logs while a block imports it.

    While the block runs, standard error goes to a temporary file. Afterwards,
    also if the block fails, all other lines are written where they belong.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            log.seek(0)
            for line in log:
                if not _LOG.match(line):
                    os.write(2, line)


def without_log_in_commands() -> contextlib.AbstractContextManager[None]:
    """`without_log`, if Python runs `python -m keras_relational...`.

    Python imports the package before the command's module. A user who wants to
    see the log sets TF_CPP_MIN_LOG_LEVEL to a number below 3.
    """
    package = __name__.split(".")[0]
    # Until the module is found, "-m" stands for it in `sys.argv`.
    if (
        sys.argv[:1] == ["-m"]
        and sys.stderr is not None
        and re.match(rf"(-\w*?m)?{package}\b", sys.orig_argv[-len(sys.argv)])
        and os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") == "3"
    ):
        return without_log()
    return contextlib.nullcontext()
