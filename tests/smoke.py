"""Tries an installed distribution: run it outside the source tree.

It checks which files the distribution holds, trains, saves and loads a small
model, and loads the presets. `make dist` runs it on JAX, where no TensorFlow is
installed.
"""

import importlib.metadata
import importlib.util
import pathlib
import tempfile

import keras
import numpy as np

import keras_relational
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import relations_game


def check(condition, message):
    if not condition:
        raise SystemExit(f"The distribution is wrong: {message}")


def check_files():
    root = pathlib.Path(keras_relational.__file__).parents[1]
    check(root.name == "site-packages", f"imported from {root}")
    distribution = importlib.metadata.distribution("keras_relational")
    check(
        distribution.version == keras_relational.__version__,
        f"metadata of version {distribution.version}",
    )
    files = [file.as_posix() for file in distribution.files]
    folders = {file.split("/")[0] for file in files}
    metadata = f"keras_relational-{distribution.version}.dist-info"
    check(folders == {"keras_relational", metadata}, f"folders {folders}")
    for file in ("keras_relational/py.typed", f"{metadata}/licenses/LICENSE"):
        check(file in files, f"no {file}")


def check_a_model():
    x, y, _ = relations_game.generate("same", 40, seed=0)
    model = models.relations_classifier(
        "predinet", num_heads=2, num_relations=2, key_dim=2
    )
    training.train_classifier(
        model, x, y, num_batches=500, batches_per_epoch=500
    )
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.keras"
        model.save(path)
        loaded = keras.models.load_model(path)
    x = x[:8].astype("float32") / 255
    answers = [keras.ops.convert_to_numpy(m(x)) for m in (model, loaded)]
    check(np.array_equal(*answers), "a loaded model answers otherwise")


def check_presets():
    names = models.preset_names()
    check(len(names) >= 9, f"presets {names}")
    for name in names:
        model, card = models.from_preset(name), models.preset_metadata(name)
        check(model.count_params() == card["parameters"], f"preset {name}")
    x, y, _ = relations_game.generate("between", 200, "hexominoes", seed=1)
    logits = models.from_preset("predinet_between").predict(x, verbose=0)
    check(np.mean(logits.argmax(-1) == y) > 0.9, "predinet_between answers")


if __name__ == "__main__":
    has_tensorflow = importlib.util.find_spec("tensorflow") is not None
    check(not has_tensorflow, "TensorFlow is installed")
    check_files()
    check_a_model()
    check_presets()
