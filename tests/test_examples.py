"""What the example scripts name and refuse, before they train."""

import pathlib
import re
import runpy
import shutil

import numpy as np
import pytest
from PIL import Image

from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import intuitive_physics
from keras_relational.datasets import relations_game
from keras_relational.datasets import vaec

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


class BegunError(Exception):
    """Raised in place of training."""


@pytest.fixture
def run_of(tmp_path, monkeypatch):
    """The folder in which a script begins to train."""

    def begin(*_, run, **__):
        raise BegunError(run.directory)

    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr(training, "fit", begin)
    monkeypatch.setattr(training, "train_classifier", begin)
    monkeypatch.setattr(training, "train_rule_learner", begin)
    monkeypatch.syspath_prepend(EXAMPLES)  # As when a script is started.

    def run(script, *options):
        line = [script, *map(str, options), "--directory", str(tmp_path)]
        monkeypatch.setattr("sys.argv", line)
        with pytest.raises(BegunError) as begun:
            runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return begun.value.args[0].name

    return run


def assert_told_apart(run, first, second, tmp_path):
    """Files of other content, and not files that were moved."""
    moved = tmp_path / "moved" / first.name
    (shutil.copytree if first.is_dir() else shutil.copy)(
        first, moved.parent.mkdir() or moved
    )
    assert run(first) == run(moved) != run(second)


def test_the_readme_trains_an_esbn_to_see_what_is_the_same():
    """On vectors that it has never seen; by its defaults it is at chance."""
    text = (EXAMPLES.parent / "README.md").read_text()
    (code,) = (
        code
        for code in re.findall(r"```python\n(.+?)```", text, re.DOTALL)
        if "confidence=True" in code
    )
    names = {}
    exec(code, names)  # noqa: S102
    assert names["accuracy"] == 1.0
    # The same without what it says is needed.
    exec(code.replace("confidence=True", "confidence=False"), names)  # noqa: S102
    assert names["accuracy"] < 0.55


def test_images_of_another_folder_are_another_run(run_of, tmp_path):
    for seed, parent in enumerate("ab"):
        folder = tmp_path / parent / "faces"
        folder.mkdir(parents=True)
        images = np.random.default_rng(seed).integers(0, 256, (5, 32, 32))
        for number, image in enumerate(images.astype("uint8")):
            Image.fromarray(image).save(folder / f"{number}.png")
    line = ("esbn_rules.py", "--withheld", "0", "--images")
    assert_told_apart(
        lambda folder: run_of(*line, folder),
        tmp_path / "a" / "faces",
        tmp_path / "b" / "faces",
        tmp_path,
    )


def test_published_vaec_files_are_runs_of_their_own(
    run_of, tmp_path, monkeypatch
):
    def problems(path):
        seed = int(pathlib.Path(path).read_text())
        return vaec.Problems(
            *(x[:40] for x in vaec.generate("scale", 1, seed=seed))
        )

    monkeypatch.setattr(vaec, "load_hdf5", problems)
    for seed, parent in enumerate("ab"):
        (tmp_path / parent).mkdir()
        (tmp_path / parent / "train.hy").write_text(str(seed))
    line = ("vaec.py", "--image-size", 32, "--published")
    assert_told_apart(
        lambda path: run_of(*line, *[path] * 6),
        tmp_path / "a" / "train.hy",
        tmp_path / "b" / "train.hy",
        tmp_path,
    )


def test_published_visual_analogies_are_runs_of_their_own(run_of, tmp_path):
    for seed, parent in enumerate("ab"):
        folder = tmp_path / parent / "problems"
        folder.mkdir(parents=True)
        images = np.random.default_rng(seed).integers(0, 256, (3, 9, 160, 160))
        for number, image in enumerate(images):
            path = folder / f"{number}.npz"
            np.savez(path, image=image.astype("float64").ravel(), target=1)
    assert_told_apart(
        lambda folder: run_of(
            "visual_analogies.py", "--published", *[folder / "*.npz"] * 2
        ),
        tmp_path / "a" / "problems",
        tmp_path / "b" / "problems",
        tmp_path,
    )


def test_published_relations_games_are_runs_of_their_own(run_of, tmp_path):
    for seed, parent in enumerate("ab"):
        images, labels, tasks = relations_game.generate("same", 9, seed=seed)
        (tmp_path / parent).mkdir()
        np.savez(
            tmp_path / parent / "same.npz",
            images=images,
            labels=labels[:, None],
            tasks=tasks[:, None],
        )
    sizes = ("--num-train", "10", "--num-test", "10")
    line = ("predinet_relations_game.py", "--task", "same", *sizes)
    own = run_of(*line)

    def run(path):
        name = run_of(*line, "--published", path)
        assert name != own
        return name

    paths = (tmp_path / x / "same.npz" for x in "ab")
    assert_told_apart(run, *paths, tmp_path)


def test_published_intuitive_physics_has_results_of_its_own(
    run_of, tmp_path, monkeypatch
):
    def read(folder, block):
        seed = int((folder / "seed").read_text())
        return np.full((1, 4, 2, 64, 64, 3), seed, "uint8")

    def finish(run, figures):
        if run.config["data"]:  # The second run, on the published files.
            raise BegunError(run.directory)
        return figures

    errors = {"O1": 0.5, "O2": 0.5, "O3": 0.5}
    monkeypatch.setattr(intuitive_physics, "read_published", read)
    monkeypatch.setattr(training, "fit", lambda *_, **__: None)
    monkeypatch.setattr(runs.Run, "save_model", lambda *_: None)
    monkeypatch.setattr(training, "relative_errors", lambda *_: errors)
    monkeypatch.setattr(runs.Run, "finish", finish)
    for seed, parent in enumerate("ab"):
        folder = tmp_path / parent / "dev"
        folder.mkdir(parents=True)
        (folder / "seed").write_text(str(seed))
    assert_told_apart(
        lambda folder: run_of(
            "intuitive_physics.py", "--num-sets", 1, "--folder", folder
        ),
        tmp_path / "a" / "dev",
        tmp_path / "b" / "dev",
        tmp_path,
    )
