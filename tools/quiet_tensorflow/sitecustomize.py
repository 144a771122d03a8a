"""Drops the lines that TensorFlow logs while it is imported.

The Makefile puts this folder on `PYTHONPATH`, where each Python process that it
starts, and each that those start, imports this file.
"""

import importlib.util
import pathlib
import runpy
import sys

PACKAGE = pathlib.Path(__file__).parents[2] / "keras_relational"
# Without the package, which would import TensorFlow.
without_log = runpy.run_path(str(PACKAGE / "quiet_tensorflow.py"))[
    "without_log"
]


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
            spec.loader.exec_module = without_log()(spec.loader.exec_module)
        return spec


sys.meta_path.insert(0, QuietTensorFlow)
