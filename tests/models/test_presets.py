"""Presets: what is saved comes back, damage is found, and cards tell all."""

import json

import keras
import numpy as np
import pytest

from keras_relational import models

pytestmark = pytest.mark.any_backend

SHAPE = (4, 5, 8, 3)
IMAGES = np.random.default_rng(0).integers(256, size=SHAPE, dtype="uint8")


def small_agent():
    keras.utils.set_random_seed(0)
    return models.boxworld_agent("simplicial", (5, 8, 3))


def test_comes_back(tmp_path):
    model = small_agent()
    card = {"figures": {"solved": 0.9}, "license": "MIT"}
    models.save_to_preset(model, tmp_path / "new" / "agent", card)
    loaded = models.from_preset(tmp_path / "new" / "agent")
    for one, other in zip(model(IMAGES), loaded(IMAGES), strict=True):
        np.testing.assert_array_equal(
            *map(keras.ops.convert_to_numpy, (one, other))
        )
    assert models.roles(loaded) == models.roles(model)
    metadata = models.preset_metadata(str(tmp_path / "new" / "agent"))
    assert metadata["figures"] == {"solved": 0.9}
    assert metadata["license"] == "MIT"
    assert metadata["parameters"] == model.count_params()
    assert metadata["keras_version"] == keras.version()


def test_half_precision_halves_the_file(tmp_path):
    model = small_agent()
    for name, half in (("whole", False), ("half", True)):
        models.save_to_preset(model, tmp_path / name, half_precision=half)
    sizes = [
        (tmp_path / name / "model.keras").stat().st_size
        for name in ("whole", "half")
    ]
    assert sizes[1] < 0.6 * sizes[0]
    loaded = models.from_preset(tmp_path / "half")
    assert models.roles(loaded) == models.roles(model)
    for one, other in zip(model.weights, loaded.weights, strict=True):
        assert other.dtype == one.dtype
        half = keras.ops.convert_to_numpy(one).astype("float16")
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(other), half.astype("float32")
        )


def test_refuses_weights_too_large_for_half_precision(tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.set_weights([np.array([[7e4]]), np.zeros(1)])
    with pytest.raises(ValueError, match=r"too large .* 70000\.0 in /layers"):
        models.save_to_preset(model, tmp_path, half_precision=True)
    assert not (tmp_path / "model.keras").exists()


def test_replaces_a_preset(tmp_path):
    models.save_to_preset(small_agent(), tmp_path, {"sha256": "mine"})
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    models.save_to_preset(model, tmp_path)
    assert models.from_preset(tmp_path).count_params() == 8
    assert sorted(x.name for x in tmp_path.iterdir()) == [
        "metadata.json",
        "model.keras",
    ]


def test_finds_damage(tmp_path):
    models.save_to_preset(small_agent(), tmp_path)
    content = (tmp_path / "model.keras").read_bytes()
    changed = bytearray(content)
    changed[len(content) // 2] ^= 1
    for damaged in (bytes(changed), content[:-1], b""):
        (tmp_path / "model.keras").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"its SHA-256 is .*, expected"):
            models.from_preset(tmp_path)
    (tmp_path / "model.keras").write_bytes(content)
    models.from_preset(tmp_path)
    for text, message in (("[1]", "JSON object"), ("{", "intact JSON")):
        (tmp_path / "metadata.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            models.from_preset(tmp_path)
    (tmp_path / "metadata.json").unlink()
    with pytest.raises(ValueError, match="`preset` must be one of boxworld"):
        models.from_preset(tmp_path)


def test_runs_no_code_of_a_preset(tmp_path):
    x = keras.Input((3,))
    unsafe = keras.layers.Lambda(lambda x: x, output_shape=(3,))
    models.save_to_preset(keras.Model(x, unsafe(x)), tmp_path)
    with pytest.raises(ValueError, match=r"(?i)unsafe|lambda"):
        models.from_preset(tmp_path)


def test_refuses_what_json_cannot_store(tmp_path):
    for value in (np.float32(1.0), float("nan"), {1, 2}):
        with pytest.raises(ValueError, match="JSON can store"):
            models.save_to_preset(small_agent(), tmp_path / "x", {"a": value})
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", models.preset_names())
def test_presets_of_the_library(name):
    metadata = models.preset_metadata(name)
    model = models.from_preset(name)
    assert metadata["parameters"] == model.count_params()
    assert metadata["license"] == "Apache-2.0"
    assert metadata["run"]["command"].startswith("python examples/")
    assert metadata["figures"]["minutes"] > 0
    # No path of the machine that trained it.
    assert "directory" not in metadata["run"]["arguments"]
    assert '"/' not in json.dumps(metadata)
    assert models.roles(model).outputs
