"""`examples/context_normalization.py`, at small size."""

import pathlib
import runpy
import sys

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_it_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ["--epochs", "1", "--num-problems", "640"]
    monkeypatch.setattr(sys, "argv", ["context_normalization.py", *options])
    found = runpy.run_path(str(EXAMPLES / "context_normalization.py"))
    assert "normalized, LSTM: " in capsys.readouterr().out
    x, y = found["tests"][5]
    assert x.shape == (640, 7, 4, 4)
    # From A to B is as from C to the first candidate, and to no other.
    steps = x[:, :, 1] - x[:, :, 0] - (x[:, :, 3] - x[:, :, 2])
    assert (abs(steps).sum(-1) == 0).argmax(1).tolist() == y.tolist()
    assert ((abs(steps).sum(-1) == 0).sum(1) == 1).all()
    assert (tmp_path / "analogies" / "saved_model.pb").exists()
    png = (tmp_path / "context_normalization.png").read_bytes()
    assert png.startswith(b"\x89PNG")
