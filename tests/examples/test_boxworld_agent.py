import pathlib
import runpy

from PIL import Image

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "boxworld_agent.py"


def test_boxworld_agent(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), "--num-steps", "640"])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "solves" in capsys.readouterr().out
    with Image.open("boxworld_agent.gif") as gif:
        assert gif.n_frames > 1
