"""What the cards of the presets and their page say is what happens."""

import pathlib
import re

import pytest

from keras_relational import models

pytestmark = pytest.mark.any_backend

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "presets.md"


@pytest.mark.parametrize("name", models.preset_names())
def test_an_example_prints_what_its_card_says(name, capsys):
    card = models.preset_metadata(name)
    exec(card["example"], {})  # noqa: S102
    assert capsys.readouterr().out == card["prints"]


def test_the_page_goes_on_with_images_of_ones_own(
    tmp_path, monkeypatch, capsys
):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text().split("<!-- cards: presets -->")[0]
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    names = {}
    exec("\n".join(blocks), names)  # noqa: S102
    assert names["right"] > 0.95
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Which pattern do three digits show?"
