"""Gathers the pages of the documentation site in build/pages.

The site has the pages of docs/ with what `run_pages.py` made of them, a few
pages of other folders, and one page for each public name, made from its
docstring. Nothing of the package is imported. A public name without a docstring
is an error, and so is a formula that KaTeX cannot read.
"""

import ast
import base64
import json
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib

import griffe

ROOT = pathlib.Path(__file__).parents[1]
BUILD = ROOT / "build"
PAGES = BUILD / "pages"
SITE = ROOT / "tools" / "site"
PICTURES = {
    "image/png": ".png",
    "image/gif": ".gif",
    "image/svg+xml": ".svg",
}
NOTEBOOKS = BUILD / "notebooks"
# A block of code of a page, and the last one, which is for the tests.
CODE = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
CHECKS = re.compile(
    r"^(The tests of the library run this page[^\n]*):\n\n"
    r"(^```python\n(.*?)^```\n)",
    re.MULTILINE | re.DOTALL,
)
# What a page itself says that the code above it prints.
PRINTED = re.compile(r"\n(?:It prints:\n\n)?```text\n.*?^```\n", re.M | re.S)
# Pages outside of docs/, which is the root of the site.
FURTHER_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "serving/README.md")
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
# Where a layer stands in the navigation: by its folder, or by its name.
GROUPS = {
    "relations": "Relations",
    "transformer": "Transformers",
    "slots": "Slots",
    "memory": "Memory",
    "normalizations": "Normalization",
    "around": "Around them",
}
AROUND = ("AppendCoordinates", "EpisodicRNN", "TimeFolded")


def main():
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for page in [
        *ROOT.glob("docs/**/*.md"),
        *map(ROOT.joinpath, FURTHER_PAGES),
    ]:
        name = page.relative_to(ROOT).as_posix()
        text = with_outputs(page.read_text(), place_in_site(name))
        write(PAGES / place_in_site(name), moved(text, name))
    (PAGES / "assets").mkdir()
    shutil.copy(SITE / "site.css", PAGES / "assets")
    package = griffe.load("keras_relational", search_paths=[str(ROOT)])
    missing = [x for name in PACKAGES for x in write_package(package, name)]
    if missing:
        raise SystemExit(f"No docstring: {', '.join(missing)}")
    write(BUILD / "reference.json", json.dumps(known()))
    write(PAGES / "reference" / "SUMMARY.md", navigation())
    write(PAGES / "gallery.md", gallery_page())


def known():
    """What `docstring_sections.py` is to know of the public names."""
    paths = public_names("layers")
    formulas = tomllib.loads((SITE / "formulas.toml").read_text())
    return {
        "imports": import_lines(),
        "formulas": {
            f"keras_relational.{paths[name]}": lines
            for name, lines in typeset(formulas).items()
        },
    }


def place_in_site(name):
    """The place of a file of the repository in the site."""
    if name == "README.md":
        return "index.md"
    if name == "serving/README.md":  # As a README it would head its section.
        return "serving.md"
    name = name.removeprefix("docs/")
    package = re.fullmatch(r"reference/(\w+)\.md", name)
    return f"reference/{package[1]}/index.md" if package else name


def moved(text, page):
    """The text of a page, with its links to where files are in the site."""
    folder = posixpath.dirname(page)
    new_folder = posixpath.dirname(place_in_site(page))

    def link(found):
        target = posixpath.normpath(posixpath.join(folder, found[2]))
        new = posixpath.relpath(place_in_site(target), new_folder or ".")
        return f"{found[1]}{new}"

    # Neither an address nor a place in the page itself.
    return re.sub(r"(\]\(\s*)(?!\w+:|#)([^)#\s]+)", link, text)


def with_outputs(text, place):
    """A page with what its code prints and draws, and a link to its notebook.

    Its pictures and its notebook are written beside it.
    """
    source = (NOTEBOOKS / place).with_suffix(".ipynb")
    if not source.exists():
        return text
    beside = (PAGES / place).with_suffix(".ipynb")
    shutil.copy(source, beside)
    cells = [
        x
        for x in json.loads(source.read_text())["cells"]
        if x["cell_type"] == "code" and "tags" not in x["metadata"]
    ]
    text = CHECKS.sub(_folded, text)
    if len(CODE.findall(text)) != len(cells):
        raise SystemExit(f"{place} has changed: python -m tools.run_pages")
    drawn = [x for cell in cells for x in cell["outputs"] if "data" in x]
    outputs = iter([x["outputs"] for x in cells])

    def block(found):
        shown = [
            _shown(x, f"{beside.stem}-{1 + drawn.index(x)}", beside.parent)
            if "data" in x
            else f"```text\n{''.join(x['text']).rstrip()}\n```"
            for x in next(outputs)
        ]
        if not shown or PRINTED.match(text, found.end()):
            return found[0]
        lines = ['<div class="output" markdown>', *shown, "</div>\n"]
        return "\n".join([found[0], "\n\n".join(lines)])

    text = CODE.sub(block, text)
    link = f"[Download as a notebook]({beside.name}){{ download .notebook }}"
    # Below the first paragraph, which says what the page is about.
    return re.sub(
        r"^(# .*\n\n(?:.+\n)+)", rf"\1\n{link}\n", text, count=1, flags=re.M
    )


def _shown(output, stem, folder):
    """What a cell draws, as a file and a link to it, or what it returns."""
    for kind, suffix in PICTURES.items():
        if kind in output["data"]:
            data = "".join(output["data"][kind])
            is_text = kind == "image/svg+xml"
            data = data.encode() if is_text else base64.b64decode(data)
            (folder / f"{stem}{suffix}").write_bytes(data)
            caption = f"The picture {output['metadata']['name']}"
            return f"![{caption}]({stem}{suffix}){{ loading=lazy }}"
    return f"```text\n{''.join(output['data']['text/plain'])}\n```"


def _folded(checks):
    """What the tests check, folded away."""
    code = textwrap.indent(checks[2], "    ")
    return f'??? note "{checks[1]}"\n\n{code}'


def write_package(package, name):
    """Writes the pages of a package. Returns what has no docstring."""
    lines = [f"# {name}", f"::: keras_relational.{name}\n{OVERVIEW}"]
    lines += ["| name | |\n|---|---|"]
    folder, missing = PAGES / "reference" / name, []
    names = public_names(name)
    for public, stem in stems_of(names).items():
        found = package[names[public]]
        if not found.docstring and found.kind is not griffe.Kind.ATTRIBUTE:
            missing.append(names[public])
        text = found.docstring.value if found.docstring else "A constant."
        lines[-1] += f"\n| [`{public}`]({stem}.md) | {text.splitlines()[0]} |"
        page = f"::: keras_relational.{names[public]}\n{OPTIONS}"
        write(folder / f"{stem}.md", page)
    write(folder / "index.md", "\n\n".join(lines) + "\n")
    return missing


def navigation():
    """The part of the navigation that lists the reference, as Markdown."""
    lines = []
    for package in PACKAGES:
        lines.append(f"* [{package}]({package}/index.md)")
        groups = {}
        for name, path in public_names(package).items():
            groups.setdefault(group_of(package, name, path), []).append(name)
        stems = stems_of(public_names(package))
        for group in (None, *GROUPS.values()):
            indent = "    " if group is None else "        "
            if group in groups and group is not None:
                lines.append(f"    * {group}")
            lines += [
                f"{indent}* [{name}]({package}/{stem}.md)"
                for name, stem in stems.items()
                if name in groups.get(group, ())
            ]
    return "\n".join(lines) + "\n"


def group_of(package, name, path):
    """The group in the navigation of a name, or `None`: packages have none."""
    if package != "layers":
        return None
    folder = path.split(".")[1]
    here = "around" if name in AROUND else "relations"
    return GROUPS.get(folder, GROUPS[here])


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
    names = {x: names[x] for x in exported} | further
    return dict(sorted(names.items(), key=lambda item: item[0].lower()))


def stems_of(names):
    """The file of each name: `Roles` and `roles` are one on some machines."""
    stems, taken = {}, set()
    for name in names:
        stems[name] = name if name.lower() not in taken else f"{name}-2"
        taken.add(name.lower())
    return stems


def import_lines():
    """How each public name is imported, by the path of what it names."""
    return {
        f"keras_relational.{path}": f"from keras_relational.{package} "
        f"import {name}"
        for package in PACKAGES
        for name, path in public_names(package).items()
    }


def typeset(formulas):
    """Formulas in TeX, by name, as HTML. A wrong one is an error."""
    folder = str(BUILD / "node_modules")
    shutil.copytree(
        BUILD / "node_modules" / "katex" / "dist" / "fonts",
        PAGES / "assets" / "katex" / "fonts",
        ignore=shutil.ignore_patterns("*.ttf", "*.woff"),
    )
    shutil.copy(
        BUILD / "node_modules" / "katex" / "dist" / "katex.min.css",
        PAGES / "assets" / "katex",
    )
    node = pathlib.Path(sys.executable).parent / "node"
    done = subprocess.run(  # noqa: S603
        [node, SITE / "typeset.cjs", folder],
        input=json.dumps(formulas),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def gallery_page():
    """All pictures of the pages in docs/, as tiles that lead to their pages."""
    lines = ["# Gallery", "Each picture leads to its page."]
    lines += ['<div class="grid cards gallery" markdown>']
    for page in sorted((ROOT / "docs").rglob("*.md")):
        place, text = page.relative_to(ROOT / "docs"), page.read_text()
        title = re.search(r"^# (.*)", text, re.M)
        pictures = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", text)
        for caption, picture in pictures:
            path = (place.parent / picture).as_posix()
            caption = " ".join(caption.split())
            link = place.as_posix()
            lines.append(
                f"-   [![{caption}]({path}){{ loading=lazy }}]({link})\n\n"
                f"    {caption} · [{title[1]}]({link})"
            )
    return "\n\n".join([*lines, "</div>"]) + "\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


OPTIONS = """\
    options:
      heading_level: 1
"""
OVERVIEW = """\
    options:
      show_root_heading: false
      show_root_toc_entry: false
      members: false
"""


if __name__ == "__main__":
    main()
