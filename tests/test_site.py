"""The documentation site: what it makes of docstrings, constants and links."""

import importlib
import json
import re
import tomllib
import unicodedata

import griffe
import keras
import pytest

import keras_relational
from keras_relational import layers
from tools import docstring_sections
from tools import gather_pages

FORMULAS = tomllib.loads((gather_pages.SITE / "formulas.toml").read_text())
# Commands of TeX that plain text has a sign for. All others vanish.
SIGNS = {"top": "T", "cdot": "·", "sum": "Σ", "leftarrow": "←", "sim": "~"}
SIGNS |= {"langle": "⟨", "rangle": "⟩", "otimes": "⊗", "circ": "∘", "sqrt": "√"}
SIGNS |= {"tilde": "\u0303", "hat": "\u0302", "tanh": "tanh", "Big/": "/"}
GREEK = ("alpha", "beta", "gamma", "epsilon", "theta", "mu", "sigma")
SIGNS |= {x: unicodedata.lookup(f"Greek small letter {x}") for x in GREEK}
SIGNS["varepsilon"] = SIGNS["epsilon"]


@pytest.fixture(scope="module")
def package():
    root = str(gather_pages.ROOT)
    return griffe.load("keras_relational", search_paths=[root])


def signs(text):
    """The signs of a formula, without blanks, brackets and marks of indices."""
    text = unicodedata.normalize("NFKD", text.replace("\N{MINUS SIGN}", "-"))
    for word in ("gamma", "beta", "epsilon"):
        text = text.replace(word, SIGNS[word])
    return re.sub(r"[\s_^{}()\[\],.`]", "", text)


def signs_of_tex(tex):
    """The same of a formula in TeX."""
    group = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
    tex = re.sub(r"\\(begin|end)\{\w+\}|\\phantom\{\{\}=\{\}\}|&", "", tex)
    tex = re.sub(rf"\\frac{group}{group}", r"\1/\2", tex)
    tex = re.sub(r"\\(tilde|hat)\{(\w)\}", r"\2\\\1 ", tex)
    tex = re.sub(r"\\text\{([^}]*)\}", lambda x: x[1].replace("\\", ""), tex)
    command = r"\\(Big/|[a-zA-Z]+|.)"
    return signs(re.sub(command, lambda x: SIGNS.get(x[1], ""), tex))


@pytest.mark.parametrize("name", layers.__all__)
def test_formula(name, package):
    """A layer's formula says in TeX what its docstring says in plain text."""
    found = package[gather_pages.public_names("layers")[name]]
    if name not in FORMULAS:
        layer = getattr(layers, name)
        is_layer = isinstance(layer, type) and issubclass(
            layer, keras.layers.Layer
        )
        # That of another layer, which the docstring names.
        assert not is_layer or "has the equations" in found.docstring.value
        return
    text = found.docstring.value
    blocks = docstring_sections.formulas_in(text)
    if blocks:
        plain = [signs(x[0]) for x in blocks]
        assert [signs_of_tex(x) for x in FORMULAS[name]] == plain
    else:
        (formula,) = FORMULAS[name]
        assert signs_of_tex(formula) in signs(text)


def test_values_of_constants(package):
    """Values in the reference are those of the modules."""
    shown = {}
    for name in ("datasets", "models"):
        for path in gather_pages.public_names(name).values():
            obj = package[path]
            for x in obj.members.values() if obj.is_module else [obj]:
                if docstring_sections.is_constant(x):
                    shown[x.path] = docstring_sections.value_of(x)
    values = {k: v for k, v in shown.items() if isinstance(v, str)}
    assert "keras_relational.models.reasoners.SET_REASONERS" in values
    assert "keras_relational.datasets.relations_game.TASKS" in values
    for path, value in values.items():
        module, name = path.rsplit(".", 1)
        expected = getattr(importlib.import_module(module), name)
        assert value == repr(expected), path


def test_docstrings_on_the_site():
    text = "Says `TASKS` and `other`.\n\n    >>> TASKS\n    `TASKS`"
    linked = docstring_sections.with_links(
        text, {"TASKS": "[`TASKS`][a.TASKS]"}
    )
    assert linked.startswith("Says [`TASKS`][a.TASKS] and `other`.\n")
    assert ">>> TASKS" in linked
    text = "First.\n\nWith x,\n\n    y = x\n\nThe rest.\n\nArgs:\n    x: One."
    typeset = docstring_sections.with_formulas(text, ["<b>y</b>"])
    assert "y = x" not in typeset
    assert re.search(r"With x,\n\n.*<b>y</b></div>\n+The rest.", typeset, re.S)


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        (
            "docs/guides/masks.md",
            "../reference/layers.md",
            "../reference/layers/index.md",
        ),
        (
            "docs/guides/serving.md",
            "../../serving/README.md",
            "../serving.md",
        ),
        ("docs/architecture.md", "results/README.md#x", "results/README.md#x"),
        ("serving/README.md", "../docs/export.md", "export.md"),
        ("CONTRIBUTING.md", "docs/symbols.md", "symbols.md"),
        ("docs/guides/esbn.md", "../../README.md", "../index.md"),
        ("docs/export.md", "https://a.b/docs/c.md", "https://a.b/docs/c.md"),
        ("docs/export.md", "#onnx", "#onnx"),
    ],
)
def test_links_lead_to_the_same_file(page, link, expected):
    assert gather_pages.moved(f"[a]({link})", page) == f"[a]({expected})"


def test_pictures_are_there():
    """Strict as it is, the site is built without a picture that is missing."""
    missing = [
        f"{page.name}: {picture}"
        for page in (gather_pages.ROOT / "docs").rglob("*.md")
        for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text())
        if not (page.parent / picture).exists()
    ]
    assert not missing


def test_version():
    config = (gather_pages.ROOT / "mkdocs.yml").read_text()
    version = keras_relational.__version__
    assert f"site_name: keras_relational {version}\n" in config


PAGE = """\
# A page

With [another](other.md) and ![one](a.png).

```python
x = 1  # [a](b)
print(x)
```

It prints:

```text
1
```

More.

```python
x
```

The tests of the library run this page and check what it says:

```python
assert x == 1
```
"""


def test_page_with_outputs(tmp_path, monkeypatch):
    """Outputs stand below their code, but where the page itself has them."""
    monkeypatch.setattr(gather_pages, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(gather_pages, "PAGES", tmp_path / "pages")
    (tmp_path / "pages").mkdir()
    cells = [("markdown", []), ("code", [{"text": ["1\n"]}])]
    cells += [("code", [{"data": {"text/plain": ["1"]}}])]
    cells = [
        {"cell_type": kind, "metadata": {}, "outputs": outputs}
        for kind, outputs in cells
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    text = gather_pages.with_outputs(PAGE, "a.md")
    assert "(a.png).\n\n[Download as a notebook](a.ipynb)" in text
    assert text.count("```text\n1\n```") == 2
    assert text.count('class="output"') == 1
    assert "\nx\n```\n\n<div" in text
    assert '??? note "The tests of the library run this page and' in text
    assert "    assert x == 1\n    ```" in text
    assert gather_pages.with_outputs(PAGE, "without_notebook.md") == PAGE


def test_notebook_of_a_page():
    run_pages = importlib.import_module("tools.run_pages")
    notebook, checks = run_pages.notebook_of(PAGE, {"KERAS_BACKEND": "jax"})
    assert checks == "assert x == 1\n"
    title, start, first, between, second = (x.source for x in notebook.cells)
    assert title == "# A page\n\nWith another and ."
    assert 'os.environ["KERAS_BACKEND"] = "jax"' in start
    assert first == "x = 1  # [a](b)\nprint(x)"
    assert (between, second) == ("More.", "x")
