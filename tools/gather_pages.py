"""Gathers the pages of the documentation site in build/pages.

The site has the files of the repository in their places, so that the links
between them hold, and one page for each public name, made from its docstring.
Nothing of the package is imported. A public name without a docstring is an
error.
"""

import ast
import pathlib
import re
import shutil

import griffe

ROOT = pathlib.Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
COPIED = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff")
COPIED += ("docs", "serving/README.md")
PACKAGES = ("layers", "models", "datasets", "environments", "training")
PACKAGES += ("agents", "analysis", "runs", "serving", "playground")
# Modules that one imports by name, because they need an extra.
FURTHER = {
    "environments": (
        "batched_world",
        "gymnasium_environment",
        "tf_agents_environment",
    ),
    "agents": ("actor_learner", "agent", "distributed", "teacher", "training"),
}


def main():
    shutil.rmtree(PAGES, ignore_errors=True)
    for name in COPIED:
        source, copy = ROOT / name, PAGES / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
    package = griffe.load("keras_relational", search_paths=[str(ROOT)])
    missing = [x for name in PACKAGES for x in write_package(package, name)]
    if missing:
        raise SystemExit(f"No docstring: {', '.join(missing)}")
    write(PAGES / "docs" / "gallery.md", gallery_page())


def write_package(package, name):
    """Writes the pages of a package. Returns what has no docstring."""
    lines = [f"# {name}", f"::: keras_relational.{name}\n{OVERVIEW}"]
    lines += ["| name | |\n|---|---|"]
    folder, missing, taken = PAGES / "docs" / "reference" / name, [], set()
    for public, path in sorted(public_names(name).items(), key=_by_name):
        found = package[path]
        if not found.docstring and found.kind is not griffe.Kind.ATTRIBUTE:
            missing.append(path)
        # `Roles` and `roles` are one file on some machines.
        stem = public if public.lower() not in taken else f"{public}-2"
        taken.add(stem.lower())
        first = found.docstring.value.split("\n")[0] if found.docstring else ""
        lines[-1] += f"\n| [`{public}`]({name}/{stem}.md) | {first} |"
        page = f"# {public}\n\n::: keras_relational.{path}\n{OPTIONS}"
        write(folder / f"{stem}.md", page)
    write(folder.with_suffix(".md"), "\n\n".join(lines) + "\n")
    return missing


def public_names(name):
    """Public names of a package, each with the path of what it names."""
    source = ROOT / "keras_relational" / name / "__init__.py"
    names, exported = {}, []
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            module = node.module.removeprefix("keras_relational.")
            names |= {x.name: f"{module}.{x.name}" for x in node.names}
        elif isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            exported = ast.literal_eval(node.value)
    further = {x: f"{name}.{x}" for x in FURTHER.get(name, ())}
    return {x: names[x] for x in exported} | further


def gallery_page():
    """All pictures of the pages in docs/, each under its page."""
    lines = ["# Gallery\n\nAll pictures of these pages, each with its title."]
    for page in sorted((ROOT / "docs").rglob("*.md")):
        place, text = page.relative_to(ROOT / "docs"), page.read_text()
        pictures = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", text)
        if pictures:
            title = text.split("\n")[0].removeprefix("# ")
            lines.append(f"## [{title}]({place.as_posix()})")
        for caption, picture in pictures:
            path = (place.parent / picture).as_posix()
            lines.append(f"![{caption}]({path})\n\n{caption}")
    return "\n\n".join(lines) + "\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _by_name(item):
    """Classes and functions before constants, each by the alphabet."""
    name, _ = item
    return name.isupper(), name.lower()


OPTIONS = """\
    options:
      show_root_heading: false
      show_root_toc_entry: false
"""
OVERVIEW = f"{OPTIONS}      members: false\n"


if __name__ == "__main__":
    main()
