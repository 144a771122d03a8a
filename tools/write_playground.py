"""Writes the playground as static files: a page that needs no server.

    python -m tools.write_playground build/pages/play \\
        build/node_modules/onnxruntime-web/dist

The first folder is written, and the second is that of ONNX Runtime Web, which
runs the models in the browser. What was exported before is kept in
build/playground until the preset or the code changes.
"""

import argparse
import hashlib
import json
import pathlib
import shutil

from keras_relational import models
from keras_relational import playground
from keras_relational.file_io import write_atomically
from keras_relational.playground.server import STATIC

ROOT = pathlib.Path(__file__).parents[1]
CACHE = ROOT / "build" / "playground"
RUNTIME = (
    "ort.wasm.min.mjs",
    "ort-wasm-simd-threaded.mjs",
    "ort-wasm-simd-threaded.wasm",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("runtime", type=pathlib.Path)
    args = parser.parse_args()
    write(args.folder, args.runtime, playground.Playground())


def write(
    folder: pathlib.Path,
    runtime: pathlib.Path,
    presets: playground.Playground,
) -> None:
    """Writes pages, models and runtime into a folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(STATIC, folder)
    (folder / "onnxruntime").mkdir()
    for name in RUNTIME:
        shutil.copy(runtime / name, folder / "onnxruntime" / name)
    listed = {"runner": "onnx", "home": "../", "presets": presets.presets()}
    (folder / "presets.json").write_text(json.dumps(listed))
    (folder / "presets").mkdir()
    kept = set()
    for entry in presets.presets():
        for file in exported(presets, entry["name"]):
            shutil.copy(file, folder / "presets" / file.name)
            kept.add(file.parent)
    for old in set(CACHE.iterdir()) - kept:
        shutil.rmtree(old)


def exported(
    presets: playground.Playground, name: str
) -> tuple[pathlib.Path, pathlib.Path]:
    """The files of a preset: its network, and what its page needs beside it."""
    folder = CACHE / _state(name)
    network, description = folder / f"{name}.onnx", folder / f"{name}.json"
    if not description.exists():
        print(f"Exporting {name} ...", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        presets.network(name).write_onnx(network)
        # Written last: where it is, the network is whole.
        described = json.dumps(presets.describe(name))
        write_atomically(description, described.encode())
    return network, description


def _state(name):
    """A hash of all that the files of a preset follow from."""
    found = hashlib.sha256(models.preset_metadata(name)["sha256"].encode())
    for path in sorted((ROOT / "keras_relational").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


if __name__ == "__main__":
    main()
