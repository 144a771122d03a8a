"""The guides of the documentation, run as a reader would run them."""

import ast
import os
import pathlib
import re
import subprocess
import sys

import keras
import pytest

from keras_relational import layers
from tools.guide_settings import OTHER_START

GUIDES = pathlib.Path(__file__).parents[1] / "docs" / "guides"
NAMES = sorted(path.stem for path in GUIDES.glob("*.md"))


def blocks_of(name):
    text = (GUIDES / f"{name}.md").read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_guide(name, tmp_path, monkeypatch):
    """All its blocks of Python, in order. Each ends with checks of its own."""
    *_, last = blocks = blocks_of(name)
    assert "assert" in last
    monkeypatch.chdir(tmp_path)
    if name in OTHER_START:
        environment = {**os.environ, **OTHER_START[name]}
        program = [sys.executable, "-c", "\n".join(blocks)]
        subprocess.run(program, env=environment, check=True, timeout=500)
        return
    names = {"__name__": name}
    for block in blocks:
        exec(compile(block, f"{name}.md", "exec"), names)  # noqa: S102


@pytest.mark.parametrize("name", NAMES)
def test_what_a_guide_imports_exists(name):
    for block in blocks_of(name):
        for statement in ast.parse(block).body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                exec(ast.unparse(statement), {})  # noqa: S102


def test_the_guide_on_masks_has_every_layer():
    text = (GUIDES / "masks.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", text, re.M)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    public = [getattr(layers, name) for name in layers.__all__]
    assert sorted(named) == sorted(
        x.__name__
        for x in public
        if isinstance(x, type) and issubclass(x, keras.layers.Layer)
    )
