"""The scripts that print tables of finished runs."""

import json
import pathlib
import runpy

import pytest

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


@pytest.fixture
def printed(tmp_path, monkeypatch, capsys):
    """What a script prints of runs with these results."""

    def run(script, *results):
        for number, result in enumerate(results):
            folder = tmp_path / str(number) / result["run"]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "result.json").write_text(json.dumps(result))
        line = [script, "--directory", str(tmp_path)]
        monkeypatch.setattr("sys.argv", line)
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_predinet_beyond_table_1(printed, tmp_path):
    """Any task may be trained, one without a figure of the paper too."""
    runs = [
        f"{task}-predinet-sgd-k32-j16-seed0" for task in ("match_rows", "same")
    ]
    for number, run in enumerate(runs):
        folder = tmp_path / str(number) / run
        folder.mkdir(parents=True)
        table = "batches,hexominoes_accuracy\n1000,0.5\n2000,0.75\n"
        (folder / "curves.csv").write_text(table)
    text = printed(
        "predinet_tables.py",
        *({"run": run, "minutes": 1.5, "hexominoes": 0.75} for run in runs),
    )
    settings = "predinet | sgd, 32, 16 | 2,000 | 0 | 75.0 | 62.5 †"
    same, match_rows = text.splitlines()[2:4]
    assert same == f"| same | hexominoes | {settings} | 100 | 1.5 |"
    assert match_rows == f"| match_rows | hexominoes | {settings} |  | 1.5 |"


def test_predinet_on_published_images(printed, tmp_path):
    run = "same-predinet-sgd-k32-j16-num_train9-published_0a1b2c3d-seed0"
    (tmp_path / "0" / run).mkdir(parents=True)
    table = "batches,published_accuracy\n1000,0.5\n"
    (tmp_path / "0" / run / "curves.csv").write_text(table)
    text = printed(
        "predinet_tables.py", {"run": run, "minutes": 1.5, "published": 0.5}
    )
    settings = "sgd, 32, 16, num_train9, published_0a1b2c3d"
    assert f"| same | published | predinet | {settings} |" in text


def test_predinet_of_another_length(printed, tmp_path):
    """Is not averaged; nor is one run counted twice."""
    names = [f"same-predinet-sgd-k32-j16-seed{seed}" for seed in (0, 1)]
    for number, run in enumerate([*names, names[0]]):
        folder = tmp_path / str(number) / run
        folder.mkdir(parents=True)
        more = ",published_accuracy" if number == 0 else ""
        table = f"batches,hexominoes_accuracy{more}\n{1000 * (number + 1)},0.5"
        table += ",0.25\n" if more else "\n"
        (folder / "curves.csv").write_text(table)
    runs = [
        {"run": run, "minutes": 1.5, "hexominoes": 0.5, "published": 0.25}
        for run in names
    ]
    text = printed("predinet_tables.py", *runs)
    assert "| sgd, 32, 16 | 1,000 | 0 |" in text
    assert "| sgd, 32, 16 | 2,000 | 1 |" in text
    (tmp_path / "2" / names[0] / "curves.csv").write_text(
        "batches,hexominoes_accuracy\n1000,0.5\n"
    )
    with pytest.raises(ValueError, match=f"two runs {names[0]}"):
        printed("predinet_tables.py", *runs, runs[0])


def test_scoff(printed):
    def adding(core, seed, error):
        errors = {str(n): error * n for n in (2, 3, 4, 5, 8, 9, 10)}
        name = f"adding-{core}-seed{seed}"
        run = {"run": name, "epochs": 25, "minutes": 9.5}
        return {**run, "errors": errors}

    def balls(core, seed, error, **more):
        name = f"bouncing_balls-4balls-{core}-seed{seed}"
        run = {"run": name, "batches": 1000, "minutes": 60.0, **more}
        return {**run, "error_10": error, "error_30": 2 * error}

    def maze(seed, steps, share):
        played = {"solved": share, "length": 9.0}
        return {
            "run": f"maze-gru_of_equal_size-seed{seed}",
            "parameters": 12345,
            "steps": steps,
            "minutes": 45.0,
            **dict.fromkeys(("sampled_6", "random_6"), played),
            **dict.fromkeys(("sampled_10", "random_10"), played),
        }

    text = printed(
        "scoff_tables.py",
        adding("scoff", 0, 0.1),
        adding("scoff", 1, 0.3),
        adding("lstm", 0, 1.0),
        {
            "run": "single_ball-fixed-seed2",
            "batches": 2000,
            "minutes": 30.0,
            "contingency": [[[7, 0], [1, 8]]],
            "information": [0.625],
        },
        balls("scoff4", 0, 0.02, schemata_in_use=3),
        balls("scoff4", 1, 0.03, schemata_in_use=4),
        balls("gru", 0, 0.04),
        balls("gru", 1, 0.04),
        balls("rims", 2, 0.01),
        # Of a GRU that was trained alike.
        balls("rims-batch_size16", 0, 0.03),
        balls("gru-batch_size16", 0, 0.06),
        maze(0, 1_000_234, 0.25),
        maze(1, 1_000_301, 0.75),
        {
            "run": "intuitive_physics-scoff-seed0",
            "batches": 500,
            "minutes": 20.0,
            **{"O1": 0.1, "O2": 0.2, "O3": 0.3},
        },
        {"run": "scoff-seed0", "batches": 1, "minutes": 1.0},
    )
    for row in (
        "| scoff | 25 | 0, 1 | 9.5, 9.5 | 0.4000 ± 0.2828 |",
        "| paper: scoff | 100 |  |  | 0.0005 |",
        "| fixed | 2,000 | 2 | 30.0 | 1 | 0.62 | 7 0; 1 8 |",
        "| 4balls-scoff4 | 1,000 | 0, 1 | 60.0, 60.0 | 0.0250 ± 0.0071 | "
        "0.0500 ± 0.0141 | 0.62 ± 0.18 | 0.62 ± 0.18 | 3, 4 |",
        "| 4balls-gru | 1,000 | 0, 1 | 60.0, 60.0 | 0.0400 ± 0.0000 |",
        # No GRU of that seed.
        "| 4balls-rims | 1,000 | 2 | 60.0 | 0.0100 | 0.0200 |  |  |  |",
        "| 4balls-rims-batch_size16 | 1,000 | 0 | 60.0 | 0.0300 | 0.0600 | "
        "0.50 | 0.50 |  |",
        "| gru_of_equal_size | 1,000,000 | 0, 1 | 45.0, 45.0 | 12,345 | "
        + 4 * "50.0 ± 35.4 | "
        + "74 |",
        "| scoff | 500 | 0 | 20.0 | 0.10 | 0.20 | 0.30 | 0.34, 0.35, 0.42 |",
    ):
        assert row in text


def test_one_run_is_not_two_seeds(printed):
    run = {"run": "bouncing_balls-4balls-gru-seed0", "error_10": 0.02}
    run |= {"error_30": 0.03, "batches": 100, "minutes": 2.0}
    longer = {**run, "batches": 200}
    assert "| 4balls-gru | 200 | 0 |" in printed("scoff_tables.py", run, longer)
    with pytest.raises(ValueError, match=f"two runs {run['run']}"):
        printed("scoff_tables.py", run, longer, {**run, "error_10": 0.03})


def test_esbn(printed):
    def run(options, seed, share):
        name = "distribution_of_three-end_to_end-image-multiple_choice-esbn"
        return {
            "run": f"{name}-M95{options}-seed{seed}",
            "batches": 18000,
            "minutes": 21.5,
            "train": 1.0,
            "test": share,
        }

    text = printed(
        "esbn_tables.py",
        *(run("", 0, 0.98), run("", 1, 0.96)),
        run("-epochs300", 0, 0.95),
        run("-confidence-learning_rate5e-05", 0, 0.9),
    )
    for row in (
        "| esbn | 95 |  | 18,000 | 0, 1 | 100.0 ± 0.0 | 97.0 ± 1.0 | 100 | 99 "
        "| 21.5, 21.5 |",
        "| esbn | 95 | epochs300 | 18,000 | 0 | 100.0 | 95.0 | 100 | 99 "
        "| 21.5 |",
        "| esbn | 95 | confidence, learning_rate5e-05 | 18,000 | 0 | 100.0 | "
        "90.0 |  |  | 21.5 |",
    ):
        assert row in text


def test_extrapolation(printed):
    """SCOFF's runs of the adding task have errors too."""
    dynamic = {"batches": 20_000, "minutes": 1.0, "errors": [0.005, 0.007]}
    text = printed(
        "extrapolation_tables.py",
        {**dynamic, "run": "temporal_context-seed0"},
        {**dynamic, "run": "batch_training_statistics-seed0"},
        {**dynamic, "run": "batch-num_train500-seed0"},
        {**dynamic, "run": "adding-scoff-seed0", "errors": {"2": 0.1}},
        {**dynamic, "run": "autoencoder-seed0"},
    )
    for row in (
        "| temporal_context | 20,000 | 0 | 0.0060 | 0.0056 | 1.0 |",
        "| batch_training_statistics | 20,000 | 0 | 0.0060 | 0.0507 | 1.0 |",
        "| dynamic objects, num_train500 | batches |",
    ):
        assert row in text
    assert text.count("20,000") == 3


def test_extrapolation_of_analogies(printed):
    def vaec(name, seed, share):
        shares = [{"all": share / region} for region in range(1, 7)]
        run = {"run": f"{name}-seed{seed}", "batches": 10_000, "minutes": 9.5}
        return {**run, "regions": shares}

    def panels(name, **shares):
        run = {"run": f"{name}-seed0", "batches": 500, "minutes": 2.0}
        return {**run, **shares}

    text = printed(
        "extrapolation_tables.py",
        vaec("translation-temporal_context-32px", 0, 1.0),
        vaec("translation-temporal_context-32px", 1, 0.6),
        vaec("translation-none-32px", 0, 0.6),
        vaec("scale-none-128px-published_0a1b2c3d", 0, 0.6),
        panels("source_target-contrasting-80px", test=0.5, near=0.75),
        panels("none-random-48px-no_distraction-learning_rate0.001", test=0.3),
        panels("batch-published_x_train_lbc-80px", test=0.25),
    )
    lines = [line.strip() for line in text.splitlines()]
    place = lines.index(
        "| translation, 32 pixels | batches | seeds | 1 | 2 | 3 | 4 | 5 | 6 | "
        "2 to 6 | paper | minutes a run |"
    )
    assert lines[place + 2 : place + 4] == [
        "| temporal_context | 10,000 | 0, 1 | 80.0 ± 28.3 | 40.0 ± 14.1 | "
        "26.7 ± 9.4 | 20.0 ± 7.1 | 16.0 ± 5.7 | 13.3 ± 4.7 | 23.2 ± 8.2 | "
        "99.1, 77.0, 73.2, 72.5, 71.7, 61.6 | 9.5, 9.5 |",
        "| none | 10,000 | 0 | 60.0 | 30.0 | 20.0 | 15.0 | 12.0 | 10.0 | 17.4 "
        "| 94.8, 23.9, 23.4, 19.1, 17.8, 16.7 | 9.5 |",
    ]
    for start in (
        "| scale, 128 pixels, published_0a1b2c3d | batches |",
        "| source_target | 500 | 0 | 50.0 | 75.0 | 74.2 |",
        "| batch | 500 | 0 | 25.0 | 66.1 |",
        "| visual analogies, random, 48 pixels, no_distraction, "
        "learning_rate0.001 | batches |",
        "| none | 500 | 0 | 30.0 | 62 |",
    ):
        assert any(line.startswith(start) for line in lines)


@pytest.mark.parametrize(
    "script",
    [
        "predinet_tables.py",
        "extrapolation_tables.py",
        "esbn_tables.py",
        "scoff_tables.py",
    ],
)
def test_of_no_runs_there_is_no_empty_table(printed, script):
    with pytest.raises(FileNotFoundError, match="no finished runs in"):
        printed(script)
