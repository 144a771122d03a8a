"""Writes the playground as static files: a page that needs no server.

    python -m tools.write_playground build/pages/play \\
        build/node_modules/onnxruntime-web/dist

The first folder is written, and the second is that of ONNX Runtime Web, which
runs the models in the browser. What was exported before is kept in
build/playground until the library changes, whose presets are files of it.
"""

import argparse
import json
import pathlib
import shutil

from keras_relational import playground
from keras_relational.file_io import write_atomically
from keras_relational.playground.server import STATIC
from tools.library_state import ROOT
from tools.library_state import library_state

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
    kept = CACHE / library_state().hexdigest()[:16]
    kept.mkdir(parents=True, exist_ok=True)
    for entry in presets.presets():
        for file in exported(presets, entry["name"], kept):
            shutil.copy(file, folder / "presets" / file.name)
    for old in set(CACHE.iterdir()) - {kept}:
        shutil.rmtree(old)


def exported(
    presets: playground.Playground, name: str, folder: pathlib.Path
) -> tuple[pathlib.Path, pathlib.Path]:
    """The files of a preset: its network, and what its page needs beside it."""
    network, description = folder / f"{name}.onnx", folder / f"{name}.json"
    if not description.exists():
        print(f"Exporting {name} ...", flush=True)
        presets.network(name).write_onnx(network)
        # Written last: where it is, the network is whole.
        described = json.dumps(presets.describe(name))
        write_atomically(description, described.encode())
    return network, description


if __name__ == "__main__":
    main()
