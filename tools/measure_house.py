"""How large the project is, and who uses what: `python tools/measure_house.py`.

Prints lines of Python by part, and for each package with public names their
number and the kinds of places outside the package that use each.
"""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "keras_relational"
PARTS = ("experiments", "examples", "benchmarks", "fuzz", "tools")
COUNTED = ("training", "agents", "analysis", "models")


def main():
    print("lines of Python")
    for part in ("keras_relational", *PARTS, "tests"):
        print(f"  {part:24}{lines_in(ROOT / part):7,}")
    outside = sum(lines_in(ROOT / part) for part in PARTS)
    print(f"  {'between the two':24}{outside:7,}")
    print(f"lines of README.md {lines(ROOT / 'README.md'):9,}")
    print(f"largest constructor: {largest_constructor()}")
    for package in COUNTED:
        if (PACKAGE / package).is_dir():
            print_names(package)


def lines(path):
    return len(path.read_text().splitlines())


def lines_in(folder):
    return sum(lines(path) for path in folder.rglob("*.py"))


def largest_constructor():
    """The layer with most arguments of its own."""
    found = []
    for path in (PACKAGE / "layers").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                arguments = node.args.args[1:] + node.args.kwonlyargs
                names = [x.arg for x in arguments]
                found.append((len(names), f"{path.stem}: {len(names)}"))
    return max(found)[1]


def public_names(package):
    """The names in `__all__` of a package."""
    tree = ast.parse((PACKAGE / package / "__init__.py").read_text())
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(getattr(x, "id", None) == "__all__" for x in targets):
            return [x.value for x in node.value.elts]
    return []


def kind_of(path, package):
    """What kind of user a file is, or `None` for the package and for tests."""
    parts = path.relative_to(ROOT).parts
    if parts[0] == "tests" or parts[:2] == ("keras_relational", package):
        return None
    if parts[0] == "keras_relational":
        return parts[1].removesuffix(".py")
    if parts[0] == "docs":
        return "guide" if parts[1] == "guides" else "page"
    return parts[0].removesuffix(".md").lower()


def print_names(package):
    texts = {}
    for folder in ("keras_relational", *PARTS, "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md"):
                kind = kind_of(path, package)
                if kind:
                    texts.setdefault(kind, []).append(path.read_text())
    names = public_names(package)
    print(f"public names of {package}: {len(names)}")
    for name in names:
        used = re.compile(rf"(?<!def )(?<!class )\b{name}\b")
        kinds = [
            kind
            for kind, found in sorted(texts.items())
            if any(used.search(text) for text in found)
        ]
        print(f"  {name:36}{', '.join(kinds) or '-'}")


if __name__ == "__main__":
    main()
