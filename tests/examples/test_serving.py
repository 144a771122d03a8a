"""`examples/serving.py`, with few epochs."""

import pathlib
import runpy
import sys

import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_both_ways_to_ask_agree(monkeypatch, capsys):
    pytest.importorskip("tensorflow")
    monkeypatch.setattr(sys, "argv", ["serving.py", "--epochs", "2"])
    found = runpy.run_path(str(EXAMPLES / "serving.py"))
    rest, grpc = found["over_rest"], found["over_grpc"]
    np.testing.assert_array_equal(rest["label"], grpc["label"])
    np.testing.assert_allclose(
        rest["probabilities"], grpc["probabilities"], atol=1e-5
    )
    assert "Refused: " in capsys.readouterr().out
