"""What pages run: the presets' networks, here and as files for a browser."""

import json

import numpy as np
import pytest

from keras_relational import models
from keras_relational import playground

onnxruntime = pytest.importorskip("onnxruntime")

QUICK = ("corelnet_match_rows", "predinet_between")


@pytest.fixture(scope="module")
def presets():
    return playground.Playground()


def inputs_of(network, batch):
    """Numbers that each input may have: indices too."""
    rng = np.random.default_rng(0)
    return {
        name: rng.integers(
            2, size=[batch, *(size or 6 for size in spec.shape[1:])]
        ).astype(spec.dtype)
        for name, spec in network.input_specs.items()
    }


@pytest.mark.parametrize(
    "preset",
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
        for name in models.preset_names()
    ],
)
def test_a_browser_gets_the_same_network_in_under_4_mb(
    preset, presets, tmp_path
):
    network, path = presets.network(preset), tmp_path / "network.onnx"
    network.write_onnx(path)
    assert path.stat().st_size < 4e6
    session = onnxruntime.InferenceSession(path)
    names = [x.name for x in session.get_outputs()]
    for batch in (1, 3):
        inputs = inputs_of(network, batch)
        expected = network.run(inputs)
        assert set(names) == set(expected)
        found = session.run(names, inputs)
        for name, values in zip(names, found, strict=True):
            # TCN divides by spreads that are nearly 0 in such images.
            atol = 0.05 if preset.startswith("tcn") else 1e-3
            np.testing.assert_allclose(values, expected[name], atol=atol)


def test_the_site_has_all_that_a_page_asks_for(tmp_path, monkeypatch):
    from tools import write_playground

    monkeypatch.setattr(write_playground, "CACHE", tmp_path / "kept")
    runtime, folder = tmp_path / "runtime", tmp_path / "site"
    runtime.mkdir()
    for name in write_playground.RUNTIME:
        (runtime / name).write_text(name)
    presets = playground.Playground(QUICK[:1])
    write_playground.write(folder, runtime, presets)
    listed = json.loads((folder / "presets.json").read_text())
    assert listed["runner"] == "onnx"
    assert listed["presets"] == presets.presets()
    described = json.loads((folder / f"presets/{QUICK[0]}.json").read_text())
    assert described["tasks"] == ["match_rows"]
    for name in ("index.html", "playground.js", "onnxruntime/ort.wasm.min.mjs"):
        assert (folder / name).exists()
    # Nothing is exported again, and what is no longer there goes.
    written = (folder / f"presets/{QUICK[0]}.onnx").read_bytes()
    (folder / "old.txt").write_text("old")
    (tmp_path / "kept" / "old").mkdir()
    monkeypatch.setattr(presets, "network", None)
    write_playground.write(folder, runtime, presets)
    assert (folder / f"presets/{QUICK[0]}.onnx").read_bytes() == written
    assert not (folder / "old.txt").exists()
    assert not (tmp_path / "kept" / "old").exists()
