"""`python -m keras_relational.demo`: one question to each kind of preset."""

import re

import pytest

from keras_relational import demo
from keras_relational import models
from keras_relational.playground.kinds import kind_of

pytestmark = pytest.mark.any_backend

# What an answer of each kind of preset looks like.
ANSWERS = {
    "boxworld": r"Its moves: (\w+ )*\w+\..*The puzzle is (solved|lost)",
    "relations": r"Its answer: (yes|no) \(probability [01]\.\d{3}\)",
    "set_game": r"(\d \w+ \w+ \w+ ){5}Its answer: (yes|no) \(probability [01]",
    "sorting": r"given:( \d+){10} sorted:(( \d+){10}) right:\2$",
    "rules": r"options: .*Its answer: \d+ \(probability [01]\.\d{3}\)",
    "analogies": r"(\w+, region \d: level \d+ is to \d+ as \d+ is to \d+\.)",
    "video": r"axis: +([hv])\1{19}([hv])\2{19} schema: [12]{40}",
}


def kind(preset):
    return kind_of(models.preset_metadata(preset), preset).page


def presets():
    """The first of each kind, and, slow, the others."""
    seen = set()
    for preset in models.preset_names():
        is_new = kind(preset) not in seen
        seen.add(kind(preset))
        yield pytest.param(preset, marks=[] if is_new else pytest.mark.slow)


@pytest.mark.parametrize("preset", [*presets()])
def test_asks_a_preset_of_each_kind(preset):
    text = demo.answer(preset, seed=3)
    assert text.startswith(f"{preset}: ")
    one_line = re.sub(r"\s+", " ", text)
    assert re.search(ANSWERS[kind(preset)], one_line), text


def test_the_command_asks_the_question_that_the_seed_chooses(
    monkeypatch, capsys
):
    monkeypatch.setattr("sys.argv", ["demo", "--seed", "1"])
    demo.main()
    first, second = (demo.answer("predinet_between", seed) for seed in (0, 1))
    assert capsys.readouterr().out == second + "\n"
    assert first != second


def test_refuses_presets_without_a_question(tmp_path):
    models.save_to_preset(models.filler_autoencoder("vector"), tmp_path)
    with pytest.raises(ValueError, match="no page and no question"):
        demo.answer(str(tmp_path))


@pytest.mark.parametrize(
    ("options", "words", "status"),
    [
        (["--preset", "none"], "`preset` must be one of", 1),
        (["--seed", "-1"], "--seed goes from 0", 2),
    ],
)
def test_the_command_says_what_is_wrong_in_one_line(
    options, words, status, monkeypatch, capsys
):
    monkeypatch.setattr("sys.argv", ["demo", *options])
    with pytest.raises(SystemExit) as end:
        demo.main()
    assert end.value.code == status
    assert words in capsys.readouterr().err.strip().splitlines()[-1]
