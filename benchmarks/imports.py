"""What `import keras_relational` takes after `import keras`."""

import os
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 7
MEASURED = """
import time
import keras

start = time.perf_counter()
import keras_relational

print(time.perf_counter() - start)
"""


def main():
    with tempfile.TemporaryDirectory() as bytecode:
        first, *others = (seconds(bytecode) for _ in range(1 + ROUNDS))
    print(
        f"import keras_relational, after keras: {first * 1e3:.0f} ms the first "
        f"time, then {statistics.median(others) * 1e3:.0f} ms "
        f"({min(others) * 1e3:.0f} to {max(others) * 1e3:.0f})",
        flush=True,
    )


def seconds(bytecode):
    """In a new process. The first one compiles the modules into `bytecode`."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.splitlines()[-1])
