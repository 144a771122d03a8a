"""`examples/sensor_table.py`, at small size."""

import pathlib
import runpy
import sys

import numpy as np

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_it_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ["--epochs", "2"]
    monkeypatch.setattr(sys, "argv", ["sensor_table.py", *options])
    found = runpy.run_path(str(EXAMPLES / "sensor_table.py"))
    assert "normalize and compare, 580 weights" in capsys.readouterr().out
    for x, y in found["tests"].values():
        assert x.shape == (2_000, 80)
        assert abs(y.mean() - 0.5) < 0.05
    first, second = np.asarray(found["normalized"])[:2, :, 0]
    assert np.corrcoef(first, second)[0, 1] > 0.9  # They behave alike.
    assert (tmp_path / "sensor_table" / "saved_model.pb").exists()
    png = (tmp_path / "sensor_table.png").read_bytes()
    assert png.startswith(b"\x89PNG")
