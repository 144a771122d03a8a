"""`examples/esbn.py`, at small size."""

import pathlib
import runpy
import sys

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_it_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ["--num-problems", "64", "--epochs", "1"]
    monkeypatch.setattr(sys, "argv", ["esbn.py", *options])
    found = runpy.run_path(str(EXAMPLES / "esbn.py"))
    assert "ESBN: other symbols " in capsys.readouterr().out
    assert found["found"].key_scores.shape == (1, 10, 9)
    png = (tmp_path / "esbn_retrieval.png").read_bytes()
    assert png.startswith(b"\x89PNG")
