"""`examples/demo.py`, at small size."""

import pathlib
import runpy
import sys

import keras
import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_it_trains_draws_serves_and_explains(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorflow")
    options = ["--num-images", "200", "--num-batches", "500"]
    options += ["--directory", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["demo.py", *options])
    runpy.run_path(str(EXAMPLES / "demo.py"))
    said = capsys.readouterr().out
    assert said.count("   Answer: ") == 2
    assert said.count("   Head ") == 2
    png = (tmp_path / "attention.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert keras.models.load_model(tmp_path / "model.keras").built
