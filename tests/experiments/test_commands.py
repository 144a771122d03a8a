"""What the commands of the experiments name and refuse, before they train."""

import contextlib
import pathlib
import re
import runpy
import shutil

import keras
import numpy as np
import pytest
from PIL import Image

from experiments import command_line
from experiments import records
from experiments.predinet import heads
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import intuitive_physics
from keras_relational.datasets import relations_game
from keras_relational.datasets import vaec

ROOT = pathlib.Path(__file__).parents[2]


# What libraries say when they are imported.
NOTICES = ("Gym has", "Please upgrade to Gym", "See the migration guide")


class BegunError(Exception):
    """Raised in place of training."""


@pytest.fixture
def run_of(tmp_path, monkeypatch):
    """The folder in which a script begins to train."""

    def begin(*arguments, run=None, **_):
        given = [x for x in (*arguments, run) if isinstance(x, runs.Run)]
        raise BegunError(given[0].directory)

    monkeypatch.setattr(training, "fit", begin)
    monkeypatch.setattr(training, "train_classifier", begin)

    def run(experiment, *options):
        options = *map(str, options), "--directory", str(tmp_path)
        with pytest.raises(BegunError) as begun:
            start(monkeypatch, experiment, *options)
        return begun.value.args[0].name

    return run


# An option and a bad value for it, for each experiment.
BAD_VALUES = {
    "scoff added_objects": [
        ("--core", "gru", "--shuffle"),
        ("--core", "gru", "--tested", "4", "9"),
        ("--core", "attention", "--shuffle", "--set-loss"),
        ("--set-loss",),
        ("--num-objects", "1"),
        ("--num-bumps", "-1"),
    ],
    "scoff adding": [("--epochs", "0"), ("--core", "transformer")],
    "scoff adding_ablation": [
        ("--lengths", "3"),
        ("--core", "rims", "--gated-messages"),
        ("--dynamics", "gru", "--forget-bias", "5"),
    ],
    "scoff ball_coordinates": [("--num-axes", "4"), ("--num-frames", "6")],
    "two_simplicial impala": [("--num-steps", "none"), ("--rows", "0")],
    "two_simplicial play": [
        ("--model-dir", "nofolder"),
        ("--puzzle", "-1"),
        ("--preset", "nopreset"),
        ("--preset", "boxworld_3x18_relational", "--model-dir", "."),
        (),
        ("--rest-url", "http://127.0.0.1:1"),
    ],
    "two_simplicial positions": [
        ("--network", "convolutional"),
        ("--attention-weight", "-1"),
        ("--batch-size", "0"),
        ("--world", "bridge", "--withhold-pairs"),
    ],
    "two_simplicial teacher": [
        ("--teacher-share", "2"),
        ("--num-taught", "-1"),
        ("--world", "bridge", "--withhold-pairs"),
        ("--test-length", "9", "9"),
        ("--ray", "127.0.0.1:1"),
        ("--num-actors", "2"),
        ("--preset", "boxworld_3x18_relational", "--network", "simplicial"),
    ],
    "scoff bouncing_balls": [("--num-batches", "-1"), ("--learning-rate", "0")],
    "context_normalization dynamic_objects": [
        ("--num-train", "0"),
        ("--normalization", "layer"),
    ],
    "esbn": [
        ("--withheld", "200"),
        ("--images", "nofolder"),
    ],
    "scoff find_objects": [("--num-objects", "6"), ("--tested", "4", "9")],
    "scoff follow_objects": [
        (),
        ("--detector", "nofile"),
        ("--detector", "setup.cfg", "--tested", "9"),
    ],
    "few_examples": [
        ("--task", "sorting", "--reasoners", "lstm"),
        ("--num-train", "0"),
        ("--num-seeds", "0"),
    ],
    "scoff maze": [
        ("--units", "0"),
        ("--core", "lstm"),
        ("--core", "gru", "--key-rate", "10"),
    ],
    "scoff intuitive_physics": [
        ("--folder", "nofolder"),
        ("--num-frames", "19"),
        ("--core", "gru", "--gated-messages"),
    ],
    "predinet look_inside": [("--model", "none.keras"), ("--num-images", "0")],
    "predinet relations_game": [
        ("--num-batches", "0"),
        ("--num-train", "0"),
        ("--published", "nofile.npz"),
        ("--seed", "-1"),
        ("--directory", "setup.cfg"),
    ],
    "predinet transfer": [("--stages", "5"), ("--curriculum", "nothing")],
    "scoff single_ball": [("--dynamics", "none"), ("--num-frames", "3")],
    "context_normalization vaec": [
        ("--image-size", "33"),
        ("--export", "docs", "--num-test", "3"),
    ],
    "context_normalization visual_analogies": [
        ("--published", "no*", "no*"),
        ("--num-test", "0"),
    ],
}
BAD_LINES = [
    (name, options) for name, lines in BAD_VALUES.items() for options in lines
]


def start(monkeypatch, experiment, *options):
    """Runs `python -m experiments.EXPERIMENT OPTIONS` in this process."""
    paper, *name = experiment.split()
    monkeypatch.setattr("sys.argv", ["__main__.py", *name, *options])
    runpy.run_module(f"experiments.{paper}", run_name="__main__")


def in_process(monkeypatch, experiment, *options):
    """The exit status of an experiment that ends by itself."""
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as end:
        start(monkeypatch, experiment, *options)
    return end.value.code


def test_every_experiment_is_tested():
    found = set()
    for path in (ROOT / "experiments").glob("*/__main__.py"):
        names = re.findall(r'^        "(\w+)":', path.read_text(), re.MULTILINE)
        paper = path.parent.name
        found |= {f"{paper} {name}" for name in names} or {paper}
    assert found == set(BAD_VALUES)


def test_options_that_came_later_have_a_value_in_earlier_runs(monkeypatch):
    """Else a run of today and one of before have no row in common."""
    today = {}

    def parse_run(command, export=None):
        arguments = vars(command.parse_args([]))
        config = {"experiment": command.experiment, "arguments": arguments}
        today[command.experiment] = records.Record("", config, {}, {}).settings
        raise BegunError

    monkeypatch.setattr(command_line.Command, "parse_run", parse_run)
    for experiment in BAD_VALUES:
        with contextlib.suppress(BegunError, SystemExit):
            start(monkeypatch, experiment)
    for record in records.read_runs():
        known = {*record.settings, *record.arguments}
        assert today[record.experiment].keys() <= known, record.name


@pytest.mark.parametrize("preset", models.preset_names())
def test_a_lineage_goes_back_to_nothing(preset, monkeypatch):
    """And its last command, today, has the arguments of the preset's run."""
    parse = command_line.Command.parse_run

    def parsed(self, *args, **kwargs):
        raise BegunError(vars(parse(self, *args, **kwargs)))

    monkeypatch.setattr(command_line.Command, "parse_run", parsed)
    card, made = models.preset_metadata(preset), [None]
    for step in card["lineage"]:
        paper, options = re.fullmatch(
            r"python -m experiments\.(\w+) (.*)", step["command"]
        ).groups()
        with pytest.raises(BegunError) as begun:
            start(monkeypatch, paper, *options.split())
        given = begun.value.args[0]
        before = given.pop("preset", None)
        assert before in made or str(before) in made
        made.append(step["makes"])
    assert made[-1] == preset
    expected = dict(card["run"]["arguments"])
    expected.pop("preset", None)
    assert {name: given[name] for name in expected} == expected


@pytest.mark.parametrize(("name", "options"), BAD_LINES)
def test_bad_values_end_in_one_line(
    name, options, tmp_path, monkeypatch, capsys
):
    where = () if "--directory" in options else ("--directory", str(tmp_path))
    assert in_process(monkeypatch, name, *options, *where) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    (line,) = (x for x in lines if not x.startswith(NOTICES))
    assert line.startswith(f"python -m experiments.{name}: error: ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", BAD_VALUES)
def test_help_tells_every_default(name, monkeypatch, capsys):
    assert in_process(monkeypatch, name, "--help") == 0
    text = capsys.readouterr().out
    options = re.split(r"\n  (?=--)", text)[1:]
    assert options
    for option in options:
        assert "default" in option, option


ADDING = ("scoff adding", "--num-train", "64", "--num-test", "10")


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "fit", stop)
    assert in_process(monkeypatch, *ADDING, "--directory", str(tmp_path)) == 130
    (line,) = capsys.readouterr().err.strip().splitlines()
    (run,) = tmp_path.iterdir()
    assert "Stopped. The same command goes on" in line
    assert str(run) in line
    assert "python -m experiments.scoff adding --num-train 64" in line


def bug():
    raise ValueError("Raised neither in the library nor in an experiment.")


@pytest.mark.parametrize(
    ("function", "is_for_the_user"),
    [(lambda: heads.content_masks(np.zeros((1, 2))), True), (bug, False)],
)
def test_errors_of_experiments_are_told_from_bugs(function, is_for_the_user):
    with pytest.raises(ValueError, match=r"images|nor in") as error:
        function()
    found = command_line._is_for_the_user(error.value)
    assert found == is_for_the_user


def test_another_run_in_the_folder_ends_in_one_line(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(runs, "run_name", lambda *_, **__: "one")
    with runs.Run(tmp_path / "one", "adding", {"core": "lstm"}):
        pass
    assert in_process(monkeypatch, *ADDING, "--directory", str(tmp_path)) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "holds another run. The difference: core" in line


@pytest.fixture
def assert_told_apart(run_of, tmp_path):
    """A function that runs a command on files of its own.

    Files of other content make another run, and files that were moved do not.
    """

    def assert_apart(name, write, run):
        for seed, parent in enumerate("ab"):
            (tmp_path / parent).mkdir()
            write(tmp_path / parent / name, seed)
        first, second = (tmp_path / parent / name for parent in "ab")
        moved = tmp_path / "moved" / name
        (shutil.copytree if first.is_dir() else shutil.copy)(
            first, moved.parent.mkdir() or moved
        )
        assert run_of(*run(first)) == run_of(*run(moved))
        assert run_of(*run(first)) != run_of(*run(second))

    return assert_apart


def test_images_of_another_folder_are_another_run(assert_told_apart):
    def write(folder, seed):
        folder.mkdir()
        images = np.random.default_rng(seed).integers(0, 256, (5, 32, 32))
        for number, image in enumerate(images.astype("uint8")):
            Image.fromarray(image).save(folder / f"{number}.png")

    assert_told_apart(
        "faces", write, lambda x: ("esbn", "--withheld", 0, "--images", x)
    )


def test_agents_go_on_from_presets_as_runs_of_their_own(tmp_path, monkeypatch):
    pytest.importorskip("tf_agents")
    from experiments.two_simplicial import impala
    from experiments.two_simplicial import teacher

    begun = []

    def begin(learner, steps, reward, run, *_, **__):
        begun.append((learner.agent.network.values, run.name))
        raise KeyboardInterrupt

    for module in (impala, teacher):
        monkeypatch.setattr(module, "train_agent", begin)
    for seed in (0, 1):
        keras.utils.set_random_seed(seed)
        agent = models.boxworld_agent("convolutional", (3, 7, 3))
        models.save_to_preset(agent, tmp_path / f"preset_{seed}")
        options = ["--network", "convolutional", "--directory", tmp_path]
        options += ["--preset", tmp_path / f"preset_{seed}"]
        for name in ("two_simplicial impala", "two_simplicial teacher"):
            in_process(monkeypatch, name, *map(str, options))
            for value, expected in zip(
                begun[-1][0], agent.get_weights(), strict=True
            ):
                np.testing.assert_array_equal(value, expected)
    assert len({name for _, name in begun}) == 4


def test_published_vaec_files_are_runs_of_their_own(
    assert_told_apart, monkeypatch
):
    def problems(path):
        seed = int(pathlib.Path(path).read_text())
        return vaec.Problems(
            *(x[:40] for x in vaec.generate("scale", 1, seed=seed))
        )

    monkeypatch.setattr(vaec, "load_hdf5", problems)
    line = ("context_normalization vaec", "--image-size", 32, "--published")
    assert_told_apart(
        "train.hy",
        lambda path, seed: path.write_text(str(seed)),
        lambda path: (*line, *[path] * 6),
    )


def test_published_visual_analogies_are_runs_of_their_own(assert_told_apart):
    def write(folder, seed):
        folder.mkdir()
        images = np.random.default_rng(seed).integers(0, 256, (3, 9, 160, 160))
        for number, image in enumerate(images):
            path = folder / f"{number}.npz"
            np.savez(path, image=image.astype("float64").ravel(), target=1)

    line = ("context_normalization visual_analogies", "--published")
    assert_told_apart(
        "problems", write, lambda folder: (*line, *[folder / "*.npz"] * 2)
    )


def test_published_relations_games_are_runs_of_their_own(
    assert_told_apart, run_of, tmp_path
):
    def write(path, seed):
        images, labels, tasks = relations_game.generate("same", 9, seed=seed)
        columns = {"labels": labels[:, None], "tasks": tasks[:, None]}
        np.savez(path, images=images, **columns)

    sizes = ("--num-train", 10, "--num-test", 10)
    line = ("predinet relations_game", "--task", "same", *sizes)
    published = (*line, "--published")
    assert_told_apart("same.npz", write, lambda path: (*published, path))
    assert run_of(*line) != run_of(*published, tmp_path / "a" / "same.npz")


def test_published_intuitive_physics_has_results_of_its_own(
    assert_told_apart, monkeypatch
):
    def write(folder, seed):
        folder.mkdir()
        (folder / "seed").write_text(str(seed))

    def read(folder, block, image_size):
        seed = int((folder / "seed").read_text())
        return np.full((1, 4, 2, image_size, image_size, 3), seed, "uint8")

    def finish(run, figures):
        if run.config["data"]:  # The second run, on the published files.
            raise BegunError(run.directory)
        return figures

    errors = {"O1": 0.5, "O2": 0.5, "O3": 0.5}
    monkeypatch.setattr(intuitive_physics, "read_published", read)
    monkeypatch.setattr(training, "fit", lambda *_, **__: None)
    monkeypatch.setattr(runs.Run, "save_model", lambda *_: None)
    monkeypatch.setattr(
        "experiments.scoff.intuitive_physics.relative_errors", lambda *_: errors
    )
    monkeypatch.setattr(runs.Run, "finish", finish)
    line = ("scoff intuitive_physics", "--num-sets", 1, "--folder")
    assert_told_apart("dev", write, lambda folder: (*line, folder))
