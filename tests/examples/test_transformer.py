import pathlib
import runpy

import numpy as np

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "transformer.py"


def test_transformer(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ["--num-images", "128", "--epochs", "1"]
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), *options])
    found = runpy.run_path(str(EXAMPLE))
    assert "dual_attention: right about" in capsys.readouterr().out
    for scores in found["of_heads"]:
        assert scores.shape == (4, 2, 9, 9)
        np.testing.assert_allclose(scores.sum(-1), 1, atol=1e-5)
    png = (tmp_path / "transformer_attention.png").read_bytes()
    assert png.startswith(b"\x89PNG")
