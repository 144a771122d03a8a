"""`examples/transformer_block.py`, at small size."""

import pathlib
import runpy
import sys

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_it_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ["--epochs", "1"]
    monkeypatch.setattr(sys, "argv", ["transformer_block.py", *options])
    found = runpy.run_path(str(EXAMPLES / "transformer_block.py"))
    assert "Transformer block: " in capsys.readouterr().out
    assert found["x_test"].shape == (5_000, 9, 432)
    assert abs(found["y_test"].mean() - 0.5) < 0.05
    assert found["model"].get_layer("block").num_simplicial_heads == 1
    assert (tmp_path / "transformer_block" / "saved_model.pb").exists()
    png = (tmp_path / "transformer_block.png").read_bytes()
    assert png.startswith(b"\x89PNG")
