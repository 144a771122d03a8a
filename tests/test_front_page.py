"""The start page and the README, run as a reader would run them."""

import contextlib
import io
import pathlib
import re

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[1]
START = (ROOT / "docs" / "index.md").read_text()
README = (ROOT / "README.md").read_text()


def blocks_of(text, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def run(blocks):
    """Runs the blocks in one namespace. Returns what they print."""
    names, printed = {"__name__": "page"}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in blocks:
            exec(compile(block, "page", "exec"), names)  # noqa: S102
    return names, printed.getvalue()


def percentages(text):
    return {x: float(y) for x, y in re.findall(r"(.+): ([\d.]+)%", text)}


def test_start_page_prints_what_it_says():
    names, printed = run(blocks_of(START))
    found = percentages(printed)
    (said,) = blocks_of(START, "text")
    said = percentages(said)
    assert found.keys() == said.keys()
    # Another backend rounds elsewhere.
    np.testing.assert_allclose(
        list(found.values()), list(said.values()), atol=1.0
    )
    assert f"The network has {names['model'].count_params()} weights" in START


def test_readme_has_the_problem_of_the_start_page():
    (_, problem), (said,) = blocks_of(START), blocks_of(START, "text")
    assert problem in blocks_of(README)
    assert said.strip().replace("\n", "\n    ") in README


@pytest.mark.slow
def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, _ = blocks_of(START)
    run([data, *blocks_of(README)])
    assert (tmp_path / "relations" / "1" / "saved_model.pb").exists()
    assert (tmp_path / "relations.onnx").exists()
