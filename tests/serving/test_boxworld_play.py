"""The example that asks a served agent for every move."""

import runpy

import numpy as np
import pytest
from PIL import Image

from keras_relational import analysis
from keras_relational import models
from keras_relational import serving
from keras_relational.environments import boxworld
from keras_relational.random_streams import unseen_world_seeds


@pytest.mark.parametrize(
    ("source", "sampled"),
    [("--model-dir", False), ("--model-dir", True), ("--preset", False)],
)
def test_a_served_agent_plays(source, sampled, tmp_path, monkeypatch, capsys):
    world = boxworld.BoxWorld(3, 9, (1, 2), (0, 0), max_episode_steps=9)
    model = models.boxworld_agent("convolutional", world.image_shape)
    line = [source, str(tmp_path / "agent"), "--puzzle", "2"]
    puzzles = {"rows": 3, "columns": 9, "solution_length": [1, 2]}
    puzzles |= {"world": "box", "num_distractors": [0, 0]}
    if source == "--preset":
        card = {"run": {"arguments": puzzles}}
        models.save_to_preset(model, tmp_path / "agent", card)
    else:
        serving.export_model(model, tmp_path / "agent")
        line += ["--columns", "9", "--solution-length", "1", "2"]
    line += ["--directory", str(tmp_path / "drawn"), "--max-episode-steps", "9"]
    line += ["--sampled"] if sampled else []
    monkeypatch.setattr("sys.argv", ["__main__.py", "play", *line])
    runpy.run_module("experiments.two_simplicial", run_name="__main__")
    path = tmp_path / "drawn" / "puzzle_2.gif"
    assert f"Look at {path}" in capsys.readouterr().out
    seed = unseen_world_seeds(3)[2]
    if not sampled:
        expected = analysis.record(world, seed, model)["images"]
        with Image.open(path) as gif:
            durations = []
            for number in range(gif.n_frames):
                gif.seek(number)
                durations.append(gif.info["duration"])
            # Frames that are alike are stored once, and shown for longer.
            assert sum(durations) == 300 * len(expected)
            last = np.asarray(gif.convert("RGB"))[8::16, 8::16]
        np.testing.assert_allclose(last, expected[-1], atol=8)
