"""Makes our docstrings ready for the documentation site.

Keras' section "Call arguments" becomes a list of arguments, and examples
(`>>>`) become blocks of code. A public name gets the line that imports it, a
layer its formulas in place of the plain text, and a constant its value. Names
of classes and constants become links. `gather_pages.py` writes what is to be
known, in build/reference.json.
"""

import ast
import json
import pathlib
import re

import griffe

# An example, up to an empty line or the end.
_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n *\S.*)*", re.MULTILINE)
# A formula: a block of indented lines after an empty line, above the arguments.
_FORMULA = re.compile(r"(?<=\n\n)(?: {4,}\S.*\n?|\n(?= {4}))+", re.MULTILINE)
_SECTION = re.compile(
    r"^(?:Args|Call arguments|Other Parameters|Returns|Raises|Example)\b.*:",
    re.MULTILINE,
)
_NAME = re.compile(r"(?<![`\[])`([A-Za-z_.]+)`(?![`\]])")
# From the page of a name, such as reference/layers/ESBN.md.
_STYLE = '<link rel="stylesheet" href="../../assets/katex/katex.min.css">'


class Sections(griffe.Extension):
    """Changes docstrings as they are read."""

    def __init__(self):
        known = json.loads(pathlib.Path("build/reference.json").read_text())
        self.imports = known["imports"]
        self.formulas = known["formulas"]

    def on_package(self, *, pkg, **kwargs):
        for obj in _objects(pkg):
            if is_constant(obj) and obj.value:
                obj.value = value_of(obj)
        for obj in _objects(pkg):
            text = obj.docstring.value if obj.docstring else ""
            text = with_links(prepared(text), self.targets(obj))
            text = with_formulas(text, self.formulas.get(obj.path, ()))
            if line := self.imports.get(obj.path):
                first, *rest = text.split("\n\n", 1)
                text = "\n\n".join([first, f"```python\n{line}\n```", *rest])
            if obj.docstring:
                obj.docstring.value = text
            elif text or is_constant(obj):
                # What has no docstring is not shown.
                obj.docstring = griffe.Docstring(
                    text or "A constant.", parent=obj
                )

    def targets(self, obj):
        """What stands for a name in a docstring: a link, or its values."""
        names = {}
        for path in self.imports:
            _, package, *_, name = path.split(".")
            names[f"{package}.{name}"] = f"[`{package}.{name}`][{path}]"
            if name[0].isupper():
                names[name] = f"[`{name}`][{path}]"
        module = obj if obj.is_module else obj.module
        for x in filter(is_constant, module.members.values()):
            if {module.path, x.path} & self.imports.keys():
                names[x.name] = f"[`{x.name}`][{x.path}]"
            else:
                names[x.name] = f"`{x.name}`: `{x.value}`"
        names.pop(obj.name, None)
        return names


def _objects(obj):
    """An object and all inside, without those imported from elsewhere."""
    yield obj
    for member in obj.members.values():
        if not member.is_alias:
            yield from _objects(member)


def is_constant(obj):
    """Whether an object is a public constant of its own module."""
    return (
        not obj.is_alias
        and obj.is_attribute
        and obj.name.isupper()
        and not obj.name.startswith("_")
    )


def prepared(docstring):
    """A docstring that the site can show."""
    title = "Other Parameters: Call arguments"
    docstring = docstring.replace("\nCall arguments:", f"\n{title}")

    def block(found):
        indent = found[1]
        return f"{indent}```pycon\n{found[0]}\n{indent}```"

    return _EXAMPLE.sub(block, docstring)


def with_links(docstring, targets):
    """A docstring with something else in place of some names in it."""

    def link(found):
        return targets.get(found[1], found[0])

    lines = docstring.split("\n")
    return "\n".join(
        line
        if line.strip().startswith(("```", ">>>"))
        else _NAME.sub(link, line)
        for line in lines
    )


def formulas_in(docstring):
    """The formulas of a docstring, in plain text: where each is."""
    section = _SECTION.search(docstring)
    text = docstring[: section.start()] if section else docstring
    return list(_FORMULA.finditer(text))


def with_formulas(docstring, formulas):
    """A docstring with typeset formulas in place of those in plain text.

    A docstring without gets them after its first line.
    """
    if not formulas:
        return docstring
    blocks = [f'<div class="formula">{x}</div>\n' for x in formulas]
    blocks[0] = f"{_STYLE}\n\n{blocks[0]}"
    places = formulas_in(docstring)
    if not places:
        first, *rest = docstring.split("\n\n", 1)
        return "\n\n".join([first, *blocks, *rest])
    for place, block in reversed(list(zip(places, blocks, strict=True))):
        start, end = place.span()
        docstring = f"{docstring[:start]}{block}\n{docstring[end:]}"
    return docstring


def value_of(constant):
    """The value of a constant, if it can be had from other constants alone."""
    try:
        return repr(_evaluated(str(constant.value), constant.module))
    except NameError:
        return constant.value


def _evaluated(expression, module):
    """The value of an expression. Of a dictionary, its keys suffice."""
    tree = ast.parse(expression, mode="eval")
    known = {"__builtins__": {"range": range, "tuple": tuple}}
    for node in ast.walk(tree):
        member = isinstance(node, ast.Name) and module.members.get(node.id)
        if member and not member.is_alias and member.is_attribute:
            value = ast.parse(str(member.value), mode="eval").body
            if isinstance(value, ast.Dict):
                keys = [ast.literal_eval(key) for key in value.keys]
                known[node.id] = dict.fromkeys(keys)
            else:
                known[node.id] = _evaluated(str(member.value), module)
    return eval(compile(tree, "constant", "eval"), known)  # noqa: S307
