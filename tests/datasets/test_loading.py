"""Files that claim too much, or are something else, are refused."""

import io
import json
import struct
import tracemalloc
import zipfile

import h5py
import numpy as np
import pytest
from PIL import Image

from keras_relational.datasets import relations_game
from keras_relational.datasets import vaec
from keras_relational.datasets.png import read_png
from keras_relational.file_io import read_json


def test_other_formats_named_png_are_refused(tmp_path):
    for kind in ("GIF", "BMP", "EPS"):
        path = tmp_path / f"{kind}.png"
        Image.new("RGB", (4, 4)).save(path, kind)
        with pytest.raises(ValueError, match="does not begin as a PNG"):
            read_png(path, "L")


def test_the_upper_8_of_16_bits_are_kept(tmp_path):
    ramp = np.arange(0, 2**16, 256, dtype="uint16").reshape(16, 16) + 255
    path = tmp_path / "ramp.png"
    Image.fromarray(ramp).save(path)
    np.testing.assert_array_equal(read_png(path, "L"), ramp // 256)


def test_a_size_is_looked_at_before_pixels_are_made(tmp_path):
    path = tmp_path / "large.png"
    Image.new("L", (4, 4)).save(path)
    content = bytearray(path.read_bytes())
    content[16:24] = struct.pack(">II", 60_000, 60_000)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"large\.png"):
        read_png(path, "L")


def test_an_archive_is_not_inflated_before_its_shape_is_known(tmp_path):
    """100 MiB of zeros take 100 KiB in the file."""
    path = tmp_path / "bomb.npz"
    np.savez_compressed(
        path,
        images=np.zeros((10, 3_200, 3_200), "uint8"),
        labels=np.zeros((10, 1), "uint8"),
        tasks=np.zeros((10, 1), "uint8"),
    )
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"bomb\.npz.*shape"):
        relations_game.load_npz(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 2**20


def test_a_header_may_not_claim_more_than_its_file_has(tmp_path):
    path = tmp_path / "claims.npz"
    header = io.BytesIO()
    shape = (1_000_000, *relations_game.IMAGE_SHAPE)
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("images", "labels", "tasks"):
            archive.writestr(f"{name}.npy", header.getvalue())
    with pytest.raises(ValueError, match=r"claims\.npz.*should have"):
        relations_game.load_npz(path)


@pytest.mark.parametrize("damage", ["flipped", "truncated"])
@pytest.mark.parametrize("seed", range(20))
def test_damaged_archives_are_clear_errors_or_as_before(tmp_path, damage, seed):
    path = tmp_path / "images.npz"
    images, labels, tasks = relations_game.generate("between", 3, seed=0)
    np.savez_compressed(
        path, images=images, labels=labels[:, None], tasks=tasks[:, None]
    )
    rng = np.random.default_rng(seed)
    content = bytearray(path.read_bytes())
    place = int(rng.integers(len(content)))
    if damage == "flipped":
        content[place] ^= 1 << int(rng.integers(8))
    else:
        del content[place:]
    path.write_bytes(content)
    refused = False
    try:
        read = relations_game.load_npz(path)
    except ValueError as error:
        refused = str(path) in str(error)
    assert refused or (read[0] == images).all()


def test_hdf5_of_other_files_and_of_chunks_is_refused(tmp_path):
    shapes = vaec._SHAPES
    for kind in ("link", "chunks"):
        path = tmp_path / f"{kind}.hy"
        with h5py.File(path, "w") as file:
            group = file.create_group("0")
            for name, shape in shapes.items():
                if name != "imgs":
                    group[name] = np.zeros(shape, "int64")
                elif kind == "chunks":
                    group.create_dataset(
                        name, shape, "uint8", compression="gzip"
                    )
                else:
                    group[name] = h5py.ExternalLink("other.hy", "/x")
        with pytest.raises(ValueError, match=rf"{kind}\.hy.*imgs"):
            vaec.load_hdf5(path)


def test_json_that_nests_too_deeply_is_a_clear_error(tmp_path):
    path = tmp_path / "status.json"
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"status\.json cannot be read"):
        read_json(path)
    path.write_text(json.dumps({"a": 1}))
    assert read_json(path) == {"a": 1}
