"""What importing costs, and what runs without TensorFlow."""

import os
import pathlib
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


def run_blocked(code, blocked, backend="jax"):
    """Runs code in an interpreter to which some packages do not exist."""
    script = BLOCK.format(blocked=blocked) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**ENVIRONMENT, "KERAS_BACKEND": backend},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_the_block_blocks():
    done = run_blocked("import tensorflow", {"tensorflow"})
    assert done.returncode == 1
    assert "No module named 'tensorflow'" in done.stderr


@pytest.mark.any_backend
def test_supervised_examples_run_without_tensorflow(tmp_path):
    small = ["--num-train", "40", "--num-test", "20", "--verbose", "0"]
    done = run_blocked(
        f"""
        import pathlib, runpy, sys

        def run(example, *arguments):
            paper, *name = example.split()
            sys.argv = [paper, *name, *arguments]
            runpy.run_module("experiments." + paper, run_name="__main__")

        small = {small!r}
        run(
            "predinet relations_game", *small, "--num-batches", "1000",
            "--num-heads", "2", "--directory", {str(tmp_path / "game")!r},
        )
        run(
            "predinet transfer", *small, "--num-batches", "1000",
            "--central", "mlp1", "--stages", "3",
            "--directory", {str(tmp_path / "transfer")!r},
        )
        sys.argv = ["tables", "--runs", {str(tmp_path)!r}]
        runpy.run_module("experiments.tables", run_name="__main__")
        (model,) = pathlib.Path({str(tmp_path)!r}).glob("game/*/model.keras")
        run(
            "predinet look_inside", "--model", str(model), "--task", "between",
            "--num-images", "60", "--directory", {str(tmp_path / "looks")!r},
        )
        assert "tensorflow" not in sys.modules
        """,
        {"tensorflow", "tensorboard"},
    )
    assert done.returncode == 0, done.stderr
    settings = "num_heads=2, num_relations=16, num_test=20, num_train=40"
    assert f"All rows: {settings}, optimizer=sgd.\n" in done.stdout
    assert "| between | hexominoes | predinet | 1,000 | 0 |" in done.stdout
    row = "| between | column ABA, AAB, ABB | 1,000 | mlp1 | 0 |"
    assert row in done.stdout
    assert "Accuracy on held-out hexominoes" in done.stdout
    assert list(tmp_path.glob("looks/*.png"))
    results = [x.read_text() for x in tmp_path.glob("game/*/result.json")]
    assert all('"batches": 1000' in result for result in results)
    assert len(results) == 1
    assert list(tmp_path.glob("game/*/model.keras"))
    assert list(tmp_path.glob("transfer/*/stage_3/curves.csv"))


@pytest.mark.slow
def test_the_other_examples_run_without_tensorflow(tmp_path):
    done = run_blocked(
        f"""
        import runpy, sys

        def run(example, *arguments):
            paper, *name = example.split()
            sys.argv = [
                paper, *name, *arguments, "--verbose", "0",
                "--directory", {str(tmp_path)!r} + "/" + example,
            ]
            runpy.run_module("experiments." + paper, run_name="__main__")

        run(
            "context_normalization vaec",
            "--image-size", "32", "--num-batches", "2",
        )
        run(
            "context_normalization visual_analogies",
            "--num-batches", "2", "--num-test", "40",
        )
        run(
            "context_normalization dynamic_objects",
            "--num-autoencoder-batches", "2",
            "--num-batches", "2", "--num-train", "500", "--num-test", "40",
        )
        run("esbn", "--epochs", "2")
        run(
            "esbn", "--epochs", "2", "--task", "same_different",
            "--withheld", "98", "--confidence", "--normalization",
        )
        run(
            "esbn", "--epochs", "2", "--fillers", "vector",
            "--pretrained", "--mode", "generative", "--sequential", "ntm",
        )
        sys.argv = ["tables", "--runs", {str(tmp_path)!r}]
        runpy.run_module("experiments.tables", run_name="__main__")
        assert "tensorflow" not in sys.modules
        """,
        {"tensorflow", "tensorboard"},
    )
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*/*/result.json"))) == 2 + 4 + 3
    assert len(list(tmp_path.glob("*/*/model.keras"))) == 2 + 4 + 3
    assert list(tmp_path.glob("vaec.py/*/embeddings.png"))
    for row in (
        "## vaec_translation_32\n",
        "## visual_analogies_contrasting_80\n",
        "| batch_training_statistics | 2 | 0 | 0.",
        "All rows: epochs=2.\n",
        "| esbn | 95 | 40 | 0 | ",
        "All rows: confidence, epochs=2, normalization.\n",
        "| esbn | 98 | ",
    ):
        assert row in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "arguments", "run"),
    [
        (
            "scoff adding",
            ["--epochs", "1", "--num-train", "128", "--num-test", "250"],
            "adding-scoff-num_train128-seed0",
        ),
        (
            "scoff single_ball",
            [
                *("--num-batches", "1", "--num-train", "50"),
                *("--num-test", "9", "--balance", "0.01"),
            ],
            "single_ball-fixed-balance0.01-num_train50-seed0",
        ),
    ],
)
def test_smaller_examples_of_object_files_run_without_tensorflow(
    example, arguments, run, tmp_path
):
    paper, *name = example.split()
    line = [
        paper,
        *name,
        *arguments,
        "--verbose",
        "0",
        "--directory",
        str(tmp_path),
    ]
    done = run_blocked(
        f"""
        import runpy, sys

        sys.argv = {line!r}
        runpy.run_module("experiments.{paper}", run_name="__main__")
        assert "tensorflow" not in sys.modules
        """,
        {"tensorflow", "tensorboard"},
    )
    assert done.returncode == 0, done.stderr
    for file in ("result.json", "model.keras", "curves.csv"):
        assert (tmp_path / run / file).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "arguments", "run", "pictures"),
    [
        (
            "scoff bouncing_balls",
            [
                *("--core", "scoff_sparse", "--num-object-files", "2"),
                *("--num-batches", "1", "--num-test", "2"),
            ],
            "bouncing_balls-4balls-scoff_sparse-num_object_files2-seed0",
            ["attention.png", "rolled_out.gif", "schemata.png"],
        ),
        (
            "scoff intuitive_physics",
            ["--num-batches", "1", "--num-sets", "1"],
            "intuitive_physics-scoff-seed0",
            [],
        ),
        (
            "scoff maze",
            [
                *("--num-steps", "1000", "--num-test", "2"),
                *("--units", "8", "--batch-size", "4"),
            ],
            "goto_object_maze-scoff-units8-batch_size4-seed0",
            ["schemata.png"],
        ),
    ],
)
def test_larger_examples_of_object_files_run(
    example, arguments, run, pictures, tmp_path
):
    paper, *name = example.split()
    line = [paper, *name, *arguments, "--directory", str(tmp_path)]
    done = run_blocked(
        f"""
        import runpy, sys

        sys.argv = {line!r}
        runpy.run_module("experiments.{paper}", run_name="__main__")
        """,
        {"torch"},
        "tensorflow",
    )
    assert done.returncode == 0, done.stderr
    for file in ("result.json", "model.keras", "curves.csv", *pictures):
        assert (tmp_path / run / file).exists()


def test_serving_without_tensorflow_says_so():
    done = run_blocked("import keras_relational.serving", {"tensorflow"})
    assert "No module named 'tensorflow'" in done.stderr


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_importing_leaves_the_heavy_extras_alone(backend):
    done = run_blocked(
        "import keras_relational",
        {"matplotlib", "tf_agents", "tf_keras", "ray", "gymnasium", "grpc"},
        backend,
    )
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
    done = subprocess.run(
        [sys.executable, *options],
        env=PLAIN,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.startswith(first)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_log_of_another_program_is_left_alone(tmp_path):
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("import keras_relational")
    (package / "__main__.py").write_text(
        "import os\nprint(os.environ.get('TF_CPP_MIN_LOG_LEVEL'))"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mine", "keras_relational"],
        env={**PLAIN, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
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


def test_public_names_exist():
    for name in keras_relational.__all__:
        package = getattr(keras_relational, name)
        for public in getattr(package, "__all__", ()):
            assert getattr(package, public) is not None
    with pytest.raises(AttributeError, match="no attribute 'layer'"):
        _ = keras_relational.layer
