"""Runs the code of the pages as a reader would, and keeps it as notebooks.

A notebook in build/notebooks has a page's text and code, and what the code
prints and draws. `gather_pages.py` puts both on the site. A page that fails is
an error. A page is run again only if it, the library or this file has changed.
"""

import base64
import os
import pathlib
import re
import sys
import tempfile
import time

import nbclient
import nbformat
from nbformat import v4

from tools.gather_pages import CHECKS
from tools.gather_pages import CODE
from tools.gather_pages import NOTEBOOKS
from tools.gather_pages import PICTURES
from tools.gather_pages import PRINTED
from tools.gather_pages import ROOT
from tools.guide_settings import OTHER_START
from tools.library_state import library_state

DOCS = ROOT / "docs"
# Beside the guides.
PAGES = ("index.md", "export.md")
SETTINGS = {"MPLBACKEND": "agg", "TF_CPP_MIN_LOG_LEVEL": "3"}
LIBRARY = (f"{ROOT}", f"{ROOT}/tools/quiet_tensorflow")


def main():
    pages = [DOCS / x for x in PAGES] + sorted(DOCS.glob("guides/*.md"))
    key = library_state()
    key.update(pathlib.Path(__file__).read_bytes())
    wanted = set()
    for page in pages:
        target = NOTEBOOKS / page.relative_to(DOCS).with_suffix(".ipynb")
        wanted.add(target)
        text = page.read_text()
        whole = key.copy()
        whole.update(text.encode())
        if CODE.search(text) and key_of(target) != whole.hexdigest():
            start = time.monotonic()
            notebook = run(text, OTHER_START.get(page.stem, {}), page.name)
            notebook.metadata["key"] = whole.hexdigest()
            target.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook, target)
            seconds = time.monotonic() - start
            print(f"{page.relative_to(ROOT)}: {seconds:.0f} s", flush=True)
    for path in set(NOTEBOOKS.rglob("*.ipynb")) - wanted:
        path.unlink()


def key_of(path):
    """What a notebook was made from, or `None` if there is none."""
    if path.exists():
        return nbformat.read(path, as_version=4).metadata.get("key")
    return None


def notebook_of(text, environment):
    """A page as a notebook, and the code of its checks.

    Links to other pages become plain text: a notebook is read elsewhere.
    """
    checks = CHECKS.search(text)
    cells = []
    for i, part in enumerate(CODE.split(CHECKS.sub("", text))):
        if i % 2:
            cells.append(v4.new_code_cell(part.strip()))
        elif part.strip():
            part = re.sub(
                rf"\A{PRINTED.pattern}", "", part, flags=PRINTED.flags
            )
            part = re.sub(r"!\[[^]]*\]\([^)]*\)", "", part)
            part = re.sub(r"\[([^]]*)\]\((?!\w+:)[^)]*\)", r"\1", part)
            cells.append(v4.new_markdown_cell(part.strip()))
    settings = {k: v for k, v in environment.items() if k != "PYTHONPATH"}
    if settings:
        lines = [f'os.environ["{k}"] = "{v}"' for k, v in settings.items()]
        start = "\n".join(["import os", "", *lines])
        cells.insert(1, v4.new_code_cell(start))
        cells[1].metadata["tags"] = ["start"]
    # The same cells have the same names in each build.
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    notebook = v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    return notebook, checks and checks[3]


def run(text, environment, name):
    """The notebook of a page, with its outputs."""
    notebook, checks = notebook_of(text, environment)
    if checks:
        notebook.cells.append(v4.new_code_cell(checks))
    path = os.pathsep.join(LIBRARY)
    kernel = {**os.environ, **SETTINGS, "PYTHONPATH": path}
    with tempfile.TemporaryDirectory() as folder:
        client = nbclient.NotebookClient(
            notebook,
            timeout=900,
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": folder}},
        )
        with client.setup_kernel(env=kernel):
            before = set()
            for i, cell in enumerate(notebook.cells):
                if cell.cell_type != "code":
                    continue
                try:
                    client.execute_cell(cell, i)
                except nbclient.exceptions.CellExecutionError as error:
                    sys.exit(f"{name} does not run:\n{error}")
                pictures = set(pictures_in(folder))
                keep_outputs(cell, sorted(pictures - before))
                before = pictures
    if checks:
        notebook.cells.pop()
    return notebook


def pictures_in(folder):
    files = pathlib.Path(folder).iterdir()
    return [x for x in files if x.suffix in PICTURES.values()]


def keep_outputs(cell, pictures):
    """Leaves of a cell what it prints and returns, and adds its pictures.

    Neither TensorFlow's log, which has names of temporary folders, nor an
    object of which one sees no more than its address.
    """
    printed = [x.text for x in cell.outputs if x.get("name") == "stdout"]
    printed = re.sub(r"^INFO:.*\n", "", "".join(printed), flags=re.MULTILINE)
    cell.outputs = [
        x
        for x in cell.outputs
        if x.output_type != "stream"
        and not re.search(
            r" at 0x\w+>$", x.get("data", {}).get("text/plain", "")
        )
    ]
    if printed:
        cell.outputs.insert(0, v4.new_output("stream", text=printed))
    cell.metadata.pop("execution", None)
    for picture in pictures:
        (kind,) = [k for k, v in PICTURES.items() if v == picture.suffix]
        data = picture.read_bytes()
        is_text = kind == "image/svg+xml"
        data = data.decode() if is_text else base64.b64encode(data).decode()
        cell.outputs.append(
            v4.new_output(
                "display_data",
                data={kind: data},
                metadata={"name": picture.name},
            )
        )


if __name__ == "__main__":
    main()
