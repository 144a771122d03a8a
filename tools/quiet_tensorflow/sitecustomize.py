"""Drops the lines that TensorFlow logs while it is imported.

TensorFlow 2.21 writes them from C++ before it reads its log level, so
`TF_CPP_MIN_LOG_LEVEL` does not stop them. The Makefile puts this folder on
`PYTHONPATH`, where each Python process that it starts, and each that those
start, imports this file. While such a process imports TensorFlow, its standard
error goes to a temporary file. Afterwards every line that is not known noise is
written where it belongs.
"""

import importlib.util
import os
import re
import sys
import tempfile

NOISE = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\) is called"
    rb"|I\d{4} [\d:.]+ +\d+ (port|cudart_stub|cpu_feature_guard)\.cc:"
)


def quietly(exec_module):
    def run(module):
        stderr = os.dup(2)
        with tempfile.TemporaryFile() as log:
            os.dup2(log.fileno(), 2)
            try:
                exec_module(module)
            finally:
                sys.stderr.flush()
                os.dup2(stderr, 2)
                os.close(stderr)
                log.seek(0)
                for line in log:
                    if not NOISE.match(line):
                        os.write(2, line)

    return run


class QuietTensorFlow:
    """Finds TensorFlow as Python does, and wraps what imports it."""

    is_searching = False

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "tensorflow" or cls.is_searching:
            return None
        cls.is_searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            cls.is_searching = False
        if spec is not None:
            spec.loader.exec_module = quietly(spec.loader.exec_module)
        return spec


sys.meta_path.insert(0, QuietTensorFlow)
