"""The guides of the documentation, run as a reader would run them."""

import pathlib
import re

import pytest

GUIDES = pathlib.Path(__file__).parents[1] / "docs" / "guides"
# They train for half a minute or more.
SLOW = (
    "comparing_mechanisms",
    "esbn",
    "predinet",
    "scoff",
    "two_simplicial_attention",
)
CASES = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
    for name in sorted(x.stem for x in GUIDES.glob("*.md"))
]


@pytest.mark.parametrize("name", CASES)
def test_guide(name, tmp_path, monkeypatch):
    """All its blocks of Python, in order. Each ends with checks of its own."""
    text = (GUIDES / f"{name}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert "assert" in blocks[-1]
    monkeypatch.chdir(tmp_path)
    names = {"__name__": name}
    for block in blocks:
        exec(compile(block, f"{name}.md", "exec"), names)  # noqa: S102
