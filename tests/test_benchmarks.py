import subprocess
import sys

PARENT = """
from benchmarks import processes

child = "import time; print('ready', flush=True); time.sleep(300)"
processes.in_a_process(exec, child)
"""


def test_a_child_ends_with_its_parent():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout.readline() == "ready\n"
        parent.kill()
        # The pipe is open until the child ends too.
        parent.communicate(timeout=60)
