"""`examples/predinet.py`, at small size."""

import pathlib
import runpy
import sys

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_it_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ["--num-images", "200", "--epochs", "1"]
    monkeypatch.setattr(sys, "argv", ["predinet.py", *options])
    found = runpy.run_path(str(EXAMPLES / "predinet.py"))
    assert "Accuracy on stripes: " in capsys.readouterr().out
    assert found["maps"].shape == (4, 32, 2, 5, 5)
    png = (tmp_path / "predinet_attention.png").read_bytes()
    assert png.startswith(b"\x89PNG")
