import pathlib
import runpy

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "scoff.py"


def test_scoff(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ["--num-series", "64", "--epochs", "1"]
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), *options])
    found = runpy.run_path(str(EXAMPLE))
    said = capsys.readouterr().out
    assert "GRU: squared error" in said
    assert "of the information about the axis" in said
    assert found["table"].sum() == 500 * 14
    png = (tmp_path / "scoff_schemata.png").read_bytes()
    assert png.startswith(b"\x89PNG")
