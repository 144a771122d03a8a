"""What importing costs, and what runs without TensorFlow."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

import keras_relational
from keras_relational import quiet_tensorflow

ROOT = pathlib.Path(__file__).parents[1]

# The tests of agents set the first in their process, and `make test` the second
# for TensorFlow: JAX does not know all of these flags.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("TF_USE_LEGACY_KERAS", "XLA_FLAGS")
}
BLOCK = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            return None
        return self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
"""


def run_python(options, environment):
    return subprocess.run(
        [sys.executable, *options],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )


def run_blocked(code, blocked, backend="jax"):
    """Runs code in an interpreter to which some packages do not exist."""
    script = BLOCK.format(blocked=blocked) + textwrap.dedent(code)
    return run_python(["-c", script], {**ENVIRONMENT, "KERAS_BACKEND": backend})


def test_the_block_blocks():
    done = run_blocked("import tensorflow", {"tensorflow"})
    assert done.returncode == 1
    assert "No module named 'tensorflow'" in done.stderr


EXPERIMENTS = """
import glob, runpy, sys

for line in {lines!r}:
    words = line.format(folder={folder!r}).split()
    words = [x for word in words for x in glob.glob(word) or [word]]
    sys.argv = words[1:]
    runpy.run_module("experiments." + words[0], run_name="__main__")
assert {blocked!r}.isdisjoint(sys.modules)
"""
NO_TENSORFLOW = {"tensorflow", "tensorboard"}


def run_experiments(lines, folder, backend="jax", blocked=NO_TENSORFLOW):
    """Runs commands in one interpreter, the table of their runs the last one.

    Returns what they print, and the folders of the runs.
    """
    lines = [
        *(f"{line.split()[0]} {line} --directory {{folder}}" for line in lines),
        "tables tables --runs {folder}",
    ]
    code = EXPERIMENTS.format(lines=lines, folder=str(folder), blocked=blocked)
    done = run_blocked(code, blocked, backend)
    assert done.returncode == 0, done.stderr
    runs = [
        path.parent
        for path in folder.glob("*/config.json")
        # Other runs share an autoencoder, which is no result of its own.
        if "-autoencoder-" not in path.parent.name
    ]
    for run in runs:
        assert (run / "result.json").exists()
        assert (run / "model.keras").exists()
        assert list(run.rglob("curves.csv"))
    return done.stdout, runs


GAME = "predinet relations_game --num-heads 2 --num-train 40 --num-test 20"


@pytest.mark.any_backend
def test_an_experiment_runs_without_tensorflow(tmp_path):
    printed, (run,) = run_experiments([f"{GAME} --num-batches 20"], tmp_path)
    settings = "num_heads=2, num_relations=16, num_test=20, num_train=40"
    row = "task between; module predinet; batches 20; seeds 0"
    assert f"All rows: {row}; {settings}, optimizer=sgd.\n" in printed
    assert "| hexominoes | " in printed
    assert '"batches": 20' in (run / "result.json").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "num_runs", "printed", "drawn"),
    [
        (
            [
                f"{GAME} --num-batches 1000",
                "predinet transfer --num-batches 1000 --num-train 40 "
                "--num-test 20 --central mlp1 --stages 3",
                "predinet look_inside --model {folder}/*game*/model.keras "
                "--task between --num-images 60",
            ],
            2,
            [
                "| between | column ABA, AAB, ABB | mlp1 | 1,000 | 0 |",
                "Accuracy on held-out hexominoes",
            ],
            ["*.png"],
        ),
        (
            [
                "context_normalization vaec --image-size 32 --num-batches 2",
                "context_normalization visual_analogies --num-batches 2 "
                "--num-test 40",
                "context_normalization dynamic_objects --num-batches 2 "
                "--num-autoencoder-batches 2 --num-train 500 --num-test 40",
            ],
            2 + 4,
            [
                "## vaec_translation_32\n",
                "## visual_analogies_contrasting_80\n",
                # The minutes stand between them if they are equal.
                "All rows: batches 2; seeds 0; ",
                "; num_autoencoder_batches=2, ",
                '| batch_training_statistics | <span class="shade-6">0.',
            ],
            ["*/embeddings.png"],
        ),
        (
            [
                "esbn --epochs 2",
                "esbn --epochs 2 --task same_different --withheld 98 "
                "--confidence --normalization",
                "esbn --epochs 2 --fillers vector --pretrained "
                "--mode generative --sequential ntm",
            ],
            3,
            [
                "All rows: epochs=2.\n",
                "| 95 | esbn | 40 | 0 | ",
                "All rows: confidence, epochs=2, normalization.\n",
                "| 98 | esbn | 20 | 0 | ",
            ],
            [],
        ),
        (
            [
                "scoff adding --epochs 1 --num-train 128 --num-test 250",
                "scoff single_ball --num-batches 1 --num-train 50 "
                "--num-test 9 --balance 0.01",
            ],
            2,
            [],
            [
                "adding-scoff-num_train128-seed0",
                "single_ball-fixed-balance0.01-num_train50-seed0",
            ],
        ),
    ],
    ids=["predinet", "context_normalization", "esbn", "scoff"],
)
def test_experiments_run_without_tensorflow(
    lines, num_runs, printed, drawn, tmp_path
):
    found, runs = run_experiments(lines, tmp_path)
    assert len(runs) == num_runs
    for text in printed:
        assert text in found
    for pattern in drawn:
        assert list(tmp_path.glob(pattern)), pattern


@pytest.mark.slow
def test_larger_experiments_of_object_files_run(tmp_path):
    lines = [
        "scoff bouncing_balls --core scoff_sparse --num-object-files 2 "
        "--num-batches 1 --num-test 2",
        "scoff intuitive_physics --num-batches 1 --num-sets 1",
        "scoff maze --num-steps 1000 --num-test 2 --units 8 --batch-size 4",
    ]
    run_experiments(lines, tmp_path, "tensorflow", {"torch"})
    for name, pictures in (
        (
            "bouncing_balls-4balls-scoff_sparse-num_object_files2-seed0",
            ["attention.png", "rolled_out.gif", "schemata.png"],
        ),
        ("intuitive_physics-scoff-seed0", []),
        ("goto_object_maze-scoff-units8-batch_size4-seed0", ["schemata.png"]),
    ):
        for picture in ("result.json", *pictures):
            assert (tmp_path / name / picture).exists()


def test_serving_without_tensorflow_says_so():
    done = run_blocked("import keras_relational.serving", {"tensorflow"})
    assert "No module named 'tensorflow'" in done.stderr


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_importing_leaves_the_heavy_extras_alone(backend):
    blocked = {"matplotlib", "tf_agents", "tf_keras", "ray", "gymnasium"}
    blocked |= {"grpc", "tensorflow"} - {backend}
    done = run_blocked("import keras_relational", blocked, backend)
    assert done.returncode == 0, done.stderr


@pytest.mark.any_backend
@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_a_backend_that_is_not_installed_is_named(backend):
    done = run_blocked("import keras_relational", {backend}, backend)
    assert done.returncode == 1
    *_, error = done.stderr.strip().splitlines()
    assert f"pip install 'keras_relational[{backend}]'" in error
    assert "KERAS_BACKEND" in error


# As a user starts Python, who has none of the Makefile's variables.
PLAIN = {
    name: value
    for name, value in ENVIRONMENT.items()
    if name not in ("PYTHONPATH", "TF_CPP_MIN_LOG_LEVEL")
}


@pytest.mark.parametrize(
    ("options", "first"),
    [
        (["-m", "keras_relational.demo"], "predinet_between: "),
        (["-mkeras_relational.serving", "--help"], "usage: "),
        (
            [
                "-Bmkeras_relational.environments.boxworld",
                "--render={folder}/x",
            ],
            "",
        ),
    ],
)
def test_commands_print_their_own_lines_alone(options, first, tmp_path):
    options = [option.format(folder=tmp_path) for option in options]
    done = run_python(options, PLAIN)
    assert done.stdout.startswith(first)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_log_of_another_program_is_left_alone(tmp_path):
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("import keras_relational")
    (package / "__main__.py").write_text(
        "import os\nprint(os.environ.get('TF_CPP_MIN_LOG_LEVEL'))"
    )
    environment = {**PLAIN, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = run_python(["-m", "mine", "keras_relational"], environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout != "3\n"
    assert "absl::InitializeLog()" in done.stderr


def test_only_the_log_is_dropped(capfd):
    log = (
        "WARNING: All log messages before absl::InitializeLog() is called are\n"
        "I0000 00:00:1795885750.888110   13133 port.cc:153] oneDNN is on.\n"
    )

    @quiet_tensorflow.without_log()
    def fail():
        os.write(2, f"{log}Kept, with its é.\n{log}".encode())
        raise ImportError

    with pytest.raises(ImportError):
        fail()
    os.write(2, log.encode())
    assert capfd.readouterr().err == f"Kept, with its é.\n{log}"


def test_citation_and_changelog_have_the_version():
    version = keras_relational.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {version}\n" in citation
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_tf_agents_has_one_version():
    """In the Makefile, the requirements, the error and the documentation."""
    files = ["Makefile", "setup.cfg", "README.md"]
    files += ["keras_relational/**/*.py", "docs/**/*.md"]
    paths = [path for pattern in files for path in ROOT.glob(pattern)]
    found = {
        (path.name, version)
        for path in paths
        for version in re.findall(r"tf-agents==([\d.]*\d)", path.read_text())
    }
    assert len({version for _, version in found}) == 1, found
    assert {name for name, _ in found} >= {"Makefile", "legacy_keras.py"}


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'layer'"):
        _ = keras_relational.layer
