"""Presets: what is saved comes back, damage is found, and cards tell all."""

import functools
import hashlib
import http.server
import io
import pathlib
import threading
import zipfile

import h5py
import keras
import numpy as np
import pytest

from keras_relational import layers
from keras_relational import models

pytestmark = pytest.mark.any_backend

SHAPE = (4, 5, 8, 3)
IMAGES = np.random.default_rng(0).integers(256, size=SHAPE, dtype="uint8")


def small_agent():
    keras.utils.set_random_seed(0)
    return models.boxworld_agent("simplicial", (5, 8, 3))


def dense(units=2):
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(units)])


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


def stored(weights, folder):
    """Weights as half precision keeps them, and the types in the file."""
    normalization = keras.layers.BatchNormalization(epsilon=1e-12)
    model = keras.Sequential(
        [keras.Input((3,)), normalization, keras.layers.Dense(4)]
    )
    model.set_weights(weights)
    models.save_to_preset(model, folder, half_precision=True)
    found = []
    with (
        zipfile.ZipFile(folder / "model.keras") as archive,
        h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file,
    ):
        file.visititems(lambda _, x: found.append(getattr(x, "dtype", None)))
    types = [str(x) for x in found if x is not None]
    loaded = models.from_preset(folder)
    return loaded.get_weights(), sorted(types)


def test_small_and_large_numbers_outlive_half_precision(tmp_path):
    """A variance of zero would make other numbers of small differences."""
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(3, 4)).astype("float32")
    kernel[0, 0] = 1e-6  # Beside larger ones it hardly counts.
    weights = [np.ones(3), np.zeros(3), np.zeros(3), np.ones(3)]
    weights += [kernel, np.array([0.5, 1.0, 2.0, 3.0])]
    weights = [np.float32(x) for x in weights]
    plain, types = stored(weights, tmp_path)
    assert types == ["float16"] * 6
    for one, other in zip(weights, plain, strict=True):
        np.testing.assert_array_equal(other, one.astype("float16"))
    variance = np.float32([8.9e-9, 1.0, 1e5])
    small_column = kernel.copy()
    small_column[:, 1] = [1e-8, 1e-6, -1e-7]
    for place, value in (
        *((0, [1e-7, 1.0, 1.0]), (0, [1.0, 1.0, 70_000.0])),
        *((3, variance), (4, small_column), (4, 1e-6 * kernel)),
        *((4, 1e5 * kernel), (5, [3e-8, 1.0, 1.0, 1.0])),
    ):
        changed = weights.copy()
        changed[place] = np.float32(value)
        loaded, types = stored(changed, tmp_path)
        assert types == ["float16"] * 5 + ["float32"]
        np.testing.assert_array_equal(loaded[place], changed[place])


def test_small_variances_in_a_table_outlive_half_precision(tmp_path):
    """Those of `BatchContextNormalization`: one for each step and feature."""
    layer = layers.BatchContextNormalization(
        over_time=False, statistics="training", name="normalization"
    )
    model = keras.Sequential([keras.Input((2, 2)), layer])
    variance = np.float32([[8.9e-9, 1.0], [1.0, 8.9e-9]])
    layer.variance.assign(variance)
    models.save_to_preset(model, tmp_path, half_precision=True)
    loaded = models.from_preset(tmp_path).get_layer("normalization")
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(loaded.variance), variance
    )


def test_the_name_of_a_preset_of_the_library_is_refused(tmp_path, monkeypatch):
    """`from_preset` would load the library's. A folder elsewhere is fine."""
    monkeypatch.chdir(tmp_path)
    name = models.preset_names()[0]
    for path in (name, f"./{name}", f"{name}/", pathlib.Path(name)):
        with pytest.raises(ValueError, match=f"such as 'presets/{name}'"):
            models.save_to_preset(dense(), path)
    assert not list(tmp_path.iterdir())
    for path in (f"presets/{name}", tmp_path / name, f"{name}.zip"):
        models.save_to_preset(dense(), path)
        assert models.from_preset(path).count_params() == 8
    # Whatever folders there are, a name means the library's.
    assert models.preset_metadata(name)["license"] == "Apache-2.0"
    assert models.from_preset(f"./{name}").count_params() == 8


def test_replaces_a_preset(tmp_path):
    models.save_to_preset(dense(4), tmp_path, {"sha256": "mine"})
    models.save_to_preset(dense(), tmp_path)
    assert models.from_preset(tmp_path).count_params() == 8
    assert sorted(x.name for x in tmp_path.iterdir()) == [
        "metadata.json",
        "model.keras",
    ]


def test_an_archive_comes_back(tmp_path):
    path, model = tmp_path / "new" / "dense.zip", dense()
    models.save_to_preset(model, path, {"license": "MIT"})
    assert [x.name for x in path.parent.iterdir()] == ["dense.zip"]
    file_hash = hashlib.sha256(path.read_bytes()).hexdigest()
    for kwargs in ({}, {"file_hash": file_hash}):
        loaded = models.from_preset(str(path), **kwargs)
        for one, other in zip(model.weights, loaded.weights, strict=True):
            np.testing.assert_array_equal(
                *map(keras.ops.convert_to_numpy, (one, other))
            )
        assert models.preset_metadata(path, **kwargs)["license"] == "MIT"
    with pytest.raises(ValueError, match=f"SHA-256 is {file_hash}, expected a"):
        models.from_preset(path, file_hash="a" * 64)
    models.save_to_preset(dense(4), path)
    assert models.from_preset(path).output_shape == (None, 4)


def test_an_archive_that_is_none_is_refused(tmp_path):
    models.save_to_preset(dense(), tmp_path / "whole.zip")
    whole = (tmp_path / "whole.zip").read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 3] ^= 1
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "changed.zip").write_bytes(changed)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("../model.keras", "elsewhere")
    for name in ("cut", "changed", "other"):
        with pytest.raises(
            ValueError, match=f"{name}.zip is no intact archive"
        ):
            models.from_preset(tmp_path / f"{name}.zip")
    with pytest.raises(ValueError, match="`preset` must be one of"):
        models.from_preset(tmp_path / "absent.zip")
    models.save_to_preset(dense(), tmp_path / "folder")
    with pytest.raises(ValueError, match="this preset is a folder"):
        models.from_preset(tmp_path / "folder", file_hash="a" * 64)


def test_an_archive_is_downloaded_once(tmp_path, monkeypatch):
    monkeypatch.setattr(keras.src.backend.config, "_KERAS_DIR", str(tmp_path))
    models.save_to_preset(dense(), tmp_path / "www" / "dense.zip")
    path, asked = tmp_path / "www" / "dense.zip", []
    file_hash = hashlib.sha256(path.read_bytes()).hexdigest()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            asked.append(self.path)

    handler = functools.partial(Handler, directory=tmp_path / "www")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            for bad in (None, "a" * 63, file_hash.upper()):
                with pytest.raises(ValueError, match="needs `file_hash`"):
                    models.from_preset(f"{url}/dense.zip", file_hash=bad)
            assert not asked
            with pytest.raises(OSError, match=r"absent\.zip cannot be .* 404"):
                models.from_preset(f"{url}/absent.zip", file_hash="b" * 64)
            with pytest.raises(ValueError, match=r"is not the archive: .*hash"):
                models.from_preset(f"{url}/dense.zip", file_hash="c" * 64)
            asked.clear()
            for _ in range(2):
                loaded = models.from_preset(f"{url}/dense.zip", file_hash)
                assert loaded.count_params() == 8
            assert asked == ["/dense.zip"]
            # Half a download, as of a process that was killed.
            (cached,) = tmp_path.glob(f"keras_relational/{file_hash}.zip")
            cached.write_bytes(cached.read_bytes()[:100])
            models.preset_metadata(f"{url}/dense.zip", file_hash)
            assert len(asked) == 2
        finally:
            server.shutdown()
    # Without the server.
    assert models.from_preset(f"{url}/dense.zip", file_hash).built
    with pytest.raises(OSError, match="cannot be downloaded"):
        models.from_preset(f"{url}/dense.zip", "d" * 64)


def test_finds_damage(tmp_path):
    models.save_to_preset(dense(), tmp_path)
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
    with pytest.raises(ValueError, match="`preset` must be one of abstractor"):
        models.from_preset(tmp_path)


def test_says_first_what_is_wrong(tmp_path):
    path = tmp_path / "preset"
    with pytest.raises(ValueError, match=r"^There is no preset, folder or"):
        models.from_preset(path)
    path.mkdir()
    with pytest.raises(ValueError, match=r"no model\.keras and no metadata\.j"):
        models.from_preset(path)
    (path / "metadata.json").write_text("{}")
    with pytest.raises(ValueError, match=r"^The folder '.*' has no model\.k"):
        models.from_preset(path)


def test_runs_no_code_of_a_preset(tmp_path):
    x = keras.Input((3,))
    unsafe = keras.layers.Lambda(lambda x: x, output_shape=(3,))
    models.save_to_preset(keras.Model(x, unsafe(x)), tmp_path)
    with pytest.raises(ValueError, match=r"(?i)unsafe|lambda"):
        models.from_preset(tmp_path)


def test_refuses_what_json_cannot_store(tmp_path):
    for value in (np.float32(1.0), float("nan"), {1, 2}):
        with pytest.raises(ValueError, match="JSON can store"):
            models.save_to_preset(dense(), tmp_path / "x", {"a": value})
    assert not (tmp_path / "x").exists()
