"""Pages and docstrings have no line that Markdown takes for something else.

A sentence that is wrapped before "31." becomes a list on the site, one wrapped
before "- " a list too, one before "#" a title, and one before ">" a quotation.
"""

import ast
import inspect
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PAGES = (
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "serving" / "README.md",
)
MODULES = sorted((ROOT / "keras_relational").rglob("*.py"))

# An item of a list with its indentation; a title, a quotation, or a line under
# a title.
ITEM = re.compile(r"( *)(?:([-+*])|(\d+)([.)]))(?: |$)")
OTHER = re.compile(r" *(?:#{1,6}|>(?!>>)|(?:-{2,}|=+) *$)")
FENCE = re.compile(r" *(?:```|~~~)")


def misread(text):
    """Lines that begin a list, a title or a quotation, and should not.

    An item of a list is preceded by an empty line, by another item of the same
    list, or, if it is in a list inside a list, by a colon. A numbered list
    begins with 1.
    """
    found, before, in_code, fenced = [], "", False, False
    # The items that are open: how far they are indented, their bullet or
    # number.
    items = []
    for number, line in enumerate(text.split("\n"), 1):
        if FENCE.match(line):
            before, fenced = "", not fenced
        elif not fenced:
            if before:
                in_code = in_code and line.startswith("    ")
            else:
                deep = 4 * (1 + len(items))
                in_code = line.startswith(deep * " ")
            if not in_code:
                now = _items(items, line, before)
                if now is None or (before and OTHER.match(line)):
                    found.append(f"{number}: {line.strip()}")
                items = items if now is None else now
            before = line.strip()
    return found


def _items(items, line, before):
    """The items that are open after a line, or `None` if it is no item."""
    indent = len(line) - len(line.lstrip())
    match = ITEM.match(line)
    if match is None:
        # A line that is not indented ends the list, after an empty line.
        if line.strip() and not before:
            items = [item for item in items if item[0] < indent]
        return items
    bullet, number = match[2] or match[4], match[3]
    here = [item for item in items if item[0] <= indent]
    same = [x for x in here if x[0] == indent and x[1] == bullet]
    follows = same and (
        number is None or int(number) == int(same[-1][2] or 0) + 1
    )
    nested = here and indent >= here[-1][0] + 4 and before.endswith(":")
    begins = number in (None, "1") and (nested or not before)
    if not follows and not begins:
        return None
    return [x for x in here if x[0] < indent] + [(indent, bullet, number)]


@pytest.mark.parametrize(
    "text",
    [
        "Theirs has\n31. Ours has one layer.",
        "- Ours has 93 %, theirs\n  31. Ours has one layer.",
        "- The first.\n- Ours\n  - as said - is better.",
        "The seeds 1, 2\n2) and 3.",
        "It has four\n- or five - items.",
        "a\n+ b",
        "a\n* b",
        "See issue\n#58.",
        "n is\n> 5.",
        "a\n---",
        "1. The first\n2. second.\n   4. Of it.",
        "1. The first\n3. second.",
        "As said.\n\n31. Ours has one layer.",
    ],
)
def test_lines_that_are_misread(text):
    assert misread(text)
    assert misread(f"# Title\n\n{text}\n\nThe end.")


@pytest.mark.parametrize(
    "text",
    [
        "Two:\n\n- one\n  and more\n- two\n\n- three",
        "Two:\n\n1. one\n   and more\n2. two\n\n3. three\n\nNext:\n\n1. one",
        "- one\n\n  still one\n- two",
        "- one\n\n    - nested\n    - again\n- two",
        "- one:\n    - nested\n      and more\n    - again\n- two",
        "Code:\n\n    a\n    - b\n    > c\n    2. d",
        "- Code:\n\n        a\n        - b",
        "```\na\n- b\n# c\n```\n\nText",
        "It has\n-1 and\n0.5 of it, 2.5 of that\n10 % of it\n*all* **of** it.",
        ">>> a = 1\n>>> a\n1",
        "| a |\n|---|\n| b |",
    ],
)
def test_lines_that_are_read_as_meant(text):
    assert not misread(text)


@pytest.mark.parametrize("path", PAGES, ids=lambda x: str(x.relative_to(ROOT)))
def test_page(path):
    assert not misread(path.read_text())


def test_docstrings():
    found = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef
            ) and (text := ast.get_docstring(node)):
                for section in _sections(text):
                    if lines := misread(section):
                        name = getattr(node, "name", "module")
                        found[f"{path.relative_to(ROOT)}, {name}"] = lines
    assert not found


def _sections(docstring):
    """The parts of a docstring that the site renders one by one.

    What follows `Args:` and the like is indented.
    """
    parts = re.split(r"^([A-Z][a-z ]+:)\n(?=    )", docstring, flags=re.M)
    yield parts[0]
    for body in parts[2::2]:
        end = re.search(r"^(?=\S)", body, flags=re.M)
        end = end.start() if end else len(body)
        yield inspect.cleandoc("\n" + body[:end])
        yield body[end:]
