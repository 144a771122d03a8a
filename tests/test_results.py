"""The published runs, the pages that show them, and runs of a user's own."""

import copy
import json
import re
import shutil

import pytest

from experiments import add_runs
from experiments import figures
from experiments import preset_pages
from experiments import records
from experiments import tables
from experiments.preset_figures import headline
from keras_relational import models

ADDING = {
    "epochs": 2,
    "minutes": 1.5,
    "errors": dict.fromkeys(("2", "3", "4", "5", "8", "9", "10"), 0.5),
}


def make_run(folder, result=ADDING, **arguments):
    """What an example leaves behind, as far as it is read."""
    folder.mkdir(parents=True)
    arguments = {"core": "lstm", "epochs": 2, "seed": 0, **arguments}
    config = {"format": 1, "experiment": "adding", "arguments": arguments}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "curves.csv").write_text("batches,minutes,loss\n10,1.5,0.25\n")
    if result:
        (folder / "result.json").write_text(json.dumps(result))


@pytest.fixture
def published(tmp_path):
    """A copy of `docs/results/` in which a test may write."""
    return shutil.copytree(records.PUBLISHED, tmp_path / "results")


def test_pages_show_the_runs_figures():
    changed = tables.update_pages(records.PUBLISHED, write=False)
    assert not changed, "run: python -m experiments.tables"


def test_the_page_of_presets_shows_their_cards():
    page = preset_pages.PAGE.read_text()
    assert page == preset_pages.updated(page), (
        "run: python -m experiments.preset_pages"
    )
    for name in models.preset_names():
        card = models.preset_metadata(name)
        assert card["headline"] == headline(card["run"], card["figures"])


def test_the_page_of_exports_has_every_preset():
    page = (preset_pages.PAGE.parent / "export.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| .* MB \|$", page, re.MULTILINE)
    assert rows == [*models.preset_names()]


def test_every_picture_is_shown_and_every_link_leads_somewhere():
    shown = set()
    for page in records.PUBLISHED.glob("*.md"):
        for target in re.findall(
            r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()
        ):
            if not target.startswith("https://"):
                assert (page.parent / target).exists(), f"{page}: {target}"
                shown.add(target)
    pictures = [
        path.name
        for path in records.PUBLISHED.iterdir()
        if path.suffix in {".png", ".svg"}
    ]
    assert {*pictures} <= shown


def test_published_runs_say_what_they_were():
    runs = records.read_runs()
    assert len(runs) >= 267
    assert [run.name for run in runs] == sorted(run.name for run in runs)
    for run in runs:
        assert isinstance(run.arguments["seed"], int)
        assert run.length > 0
        assert "seed" not in run.settings
        # Without null: no arguments of a run are all unknown.
        assert run.settings
        assert {*run.config} >= {"command", "data", "machine", "started"}
        assert run.curves


def test_a_changed_figure_changes_its_page(published):
    path = published / "runs.json"
    content = json.loads(path.read_text())
    for run in content["runs"]:
        if run["name"] == "adding-lstm-seed0":
            run["result"]["errors"]["2"] = 9.5
    path.write_text(json.dumps(content))
    assert tables.update_pages(published, write=False) == [
        published / "scoff.md"
    ]
    assert "9.5000" not in (published / "scoff.md").read_text()
    assert tables.update_pages(published) == [published / "scoff.md"]
    assert (
        "| lstm | 12 | 0 | 30.9 | 9.5000 |"
        in (published / "scoff.md").read_text()
    )
    assert tables.update_pages(published) == []


def test_a_page_cannot_name_a_table_without_runs(published):
    with (published / "scoff.md").open("a") as page:
        page.write("<!-- table: hexagons -->\n<!-- end -->\n")
    with pytest.raises(ValueError, match=r"scoff\.md.*no runs: hexagons"):
        tables.update_pages(published)


def test_no_table_is_left_out(published):
    (published / "scoff.md").unlink()
    with pytest.raises(
        ValueError, match=r"No page .* adding, adding_ablation, ball_coord"
    ):
        tables.update_pages(published)


def test_writing_the_same_runs_gives_the_same_bytes(published):
    before = [
        (published / name).read_bytes() for name in ("runs.json", "curves.zip")
    ]
    runs = records.read_runs(published)
    records.write_runs(runs[::-1], published)
    assert (published / "runs.json").read_bytes() == before[0]
    assert records.read_runs(published) == runs
    records.write_runs(runs, published)
    again = (published / "curves.zip").read_bytes()
    records.write_runs(runs, published)
    assert (published / "curves.zip").read_bytes() == again


def test_runs_of_a_folder(tmp_path, monkeypatch, capsys):
    make_run(tmp_path / "of_adding" / "adding-lstm-seed0")
    make_run(tmp_path / "of_adding" / "adding-lstm-seed1", seed=1)
    make_run(tmp_path / "adding-lstm-seed2", result=None, seed=2)
    runs = records.read_runs(tmp_path)
    assert [run.name for run in runs] == [
        "adding-lstm-seed0",
        "adding-lstm-seed1",
    ]
    assert runs[0].read_curves()["loss"].tolist() == [0.25]
    monkeypatch.setattr("sys.argv", ["tables", "--runs", str(tmp_path)])
    tables.main()
    printed = capsys.readouterr().out
    assert "## adding" in printed
    assert "| lstm | 2 | 0, 1 | 1.5 | 0.5000 ± 0.0000 |" in printed


def test_stages_have_curves_of_their_own(tmp_path):
    make_run(tmp_path / "run")
    stage = tmp_path / "run" / "stage_2"
    stage.mkdir()
    (stage / "curves.csv").write_text("batches,loss\n10,0.5\n20,0.25\n")
    (run,) = records.read_runs(tmp_path)
    assert run.read_curves("stage_2/curves.csv")["batches"].tolist() == [10, 20]


def test_two_folders_of_one_name(tmp_path):
    for parent in ("one", "other"):
        make_run(tmp_path / parent / "run")
    with pytest.raises(ValueError, match="two runs run in"):
        records.read_runs(tmp_path)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", []),
        ("config.json", {"experiment": "adding"}),
        ("result.json", [0.5]),
    ],
)
def test_files_of_another_form(file, content, tmp_path):
    make_run(tmp_path / "run")
    (tmp_path / "run" / file).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"{file} of the run run"):
        records.read_runs(tmp_path)


def test_runs_json_of_another_form(published):
    (published / "runs.json").write_text("[]")
    with pytest.raises(ValueError, match="should hold a dictionary"):
        records.read_runs(published)


def test_damaged_curves(published):
    (published / "curves.zip").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"curves\.zip cannot be read"):
        records.read_runs(published)


def test_arguments_that_are_off_are_as_if_not_given():
    (run, *_) = records.read_runs()
    config = copy.deepcopy(run.config)
    config["arguments"] |= {"new_option": None, "new_flag": False}
    newer = records.Record(run.name, config, run.result, run.curves)
    assert newer.settings == run.settings


def test_add_runs(published, tmp_path):
    make_run(tmp_path / "runs" / "adding-mine-seed7", seed=7)
    (added,) = add_runs.add_runs(tmp_path / "runs", published)
    assert added.name == "adding-mine-seed7"
    runs = {run.name: run for run in records.read_runs(published)}
    assert runs["adding-mine-seed7"] == added
    assert len(runs) == 1 + len(records.read_runs())
    # Once more: nothing to do.
    assert add_runs.add_runs(tmp_path / "runs", published) == []
    (changed,) = tables.update_pages(published)
    assert "| lstm | " in changed.read_text()
    shutil.rmtree(tmp_path / "runs")
    make_run(tmp_path / "runs" / "adding-mine-seed7", seed=8)
    with pytest.raises(ValueError, match="another run adding-mine-seed7"):
        add_runs.add_runs(tmp_path / "runs", published)


def test_add_runs_leaves_out_paths(published, tmp_path):
    make_run(tmp_path / "runs" / "adding-mine-seed7", seed=7)
    folder = tmp_path / "runs" / "adding-mine-seed7"
    config = json.loads((folder / "config.json").read_text())
    config["arguments"] |= {"directory": "/home/me", "verbose": 0}
    config["command"] = (
        "python -m experiments.scoff adding --directory /home/me --seed 7 "
        "--verbose 0 --export=/home/me/model --grown-from /home/me/model.keras"
    )
    later = {"command": f"{config['command']} --resume", "commit": "abc"}
    config["continued"] = [later]
    (folder / "config.json").write_text(json.dumps(config))
    (added,) = add_runs.add_runs(tmp_path / "runs", published)
    command = "python -m experiments.scoff adding --seed 7"
    assert added.config["command"] == command
    assert added.config["continued"] == [
        {
            "command": "python -m experiments.scoff adding --seed 7 --resume",
            "commit": "abc",
        }
    ]
    assert not {"directory", "verbose"} & added.arguments.keys()
    assert added.arguments["seed"] == 7
    # The same run again is known, wherever it lies.
    assert add_runs.add_runs(tmp_path / "runs", published) == []


def test_figures_of_published_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["figures", "--output", str(tmp_path)])
    figures.main()
    # The pictures of models, and not of the curves of runs, are PNG files.
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in records.PUBLISHED.glob("*.svg")}
    assert "predinet_transfer.svg" in capsys.readouterr().out


@pytest.mark.parametrize("main", [tables.main, figures.main, add_runs.main])
def test_no_finished_runs_end_in_one_line(main, tmp_path, monkeypatch):
    make_run(tmp_path / "run", result=None)
    option = [] if main is add_runs.main else ["--runs"]
    monkeypatch.setattr("sys.argv", ["command", *option, str(tmp_path)])
    with pytest.raises(SystemExit, match="no finished runs in"):
        main()
