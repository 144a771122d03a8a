"""Files of data, and what harms who reads them.

They are archives of arrays, images, HDF5 files as published, JSON and tables.
"""

import io
import json
import struct
import zipfile
import zlib

import h5py
import numpy as np
from PIL import Image

from fuzz import draws
from keras_relational.datasets import intuitive_physics
from keras_relational.datasets import png
from keras_relational.datasets import relations_game
from keras_relational.datasets import vaec


def make_relations(folder):
    images, labels, tasks = relations_game.generate("between", 3, seed=0)
    np.savez_compressed(
        folder / "between.npz",
        images=images,
        labels=labels[:, None],
        tasks=tasks[:, None],
    )


def make_visual_analogies(folder):
    rng = np.random.default_rng(0)
    for number in range(2):
        panels = np.zeros((9, 160, 160), "uint8")
        panels[:, :8, :8] = rng.integers(256, size=(9, 8, 8))
        save = (np.savez, np.savez_compressed)[number]
        save(folder / f"{number}.npz", image=panels, target=np.int64(number))


def _zip_of_zeros(rng, path):
    """Hundreds of MiB of zeros in an array, which take little as a file."""
    with np.load(path) as file:
        names = [*file.files]
    pieces = int(rng.integers(300, 500))
    with zipfile.ZipFile(
        path, "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as archive:
        for name in names[: int(rng.integers(1, 3))]:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                _write_header(file, (pieces, 2**20), "|u1")
                for _ in range(pieces):
                    file.write(bytes(2**20))


def _claims(rng, path):
    """Headers that claim what is not there."""
    shape = draws.choice(
        rng,
        (
            (10**6, 36, 36, 3),
            (2**62, 2**62),
            (-1, 36, 36, 3),
            (2**31, 1),
            (0, 36, 36, 3),
            (9, 160, 160),
            (1,) * 40,
            (10**30,),
        ),
    )
    kind = draws.choice(rng, ("|u1", "<f8", "|O", "<U1000000", "|V8", "<M8[s]"))
    _each_array(path, lambda file: _write_header(file, shape, kind))


def _odd_headers(rng, path):
    header = draws.choice(
        rng,
        (
            b"(" * 9000,
            b"{'descr': [('a', '<f8')] * 9, 'shape': ()}",
            b"{'descr': '|u1', 'fortran_order': 1, 'shape': 3}",
            b"{'descr': '|u1', 'fortran_order': False, 'shape': (9**9**9,)}",
            b"{'descr': '|u1', 'fortran_order': False, 'shape': ('a',)}",
            b"{'descr': " + b"[" * 4000,
            b"\xff" * 100,
            b"",
        ),
    )
    version = draws.choice(rng, (b"\1\0", b"\2\0", b"\3\0", b"\x09\0"))
    length = draws.choice(rng, (len(header), 0, 2**15, 2**16 - 1))
    size = struct.pack("<I" if version != b"\1\0" else "<H", length)
    content = b"\x93NUMPY" + version + size + header + bytes(100)
    _each_array(path, lambda file: file.write(content))


def _write_header(file, shape, kind):
    header = io.BytesIO()
    np.lib.format.write_array_header_2_0(
        header, {"descr": kind, "fortran_order": False, "shape": shape}
    )
    file.write(header.getvalue())


def _each_array(path, write):
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with archive.open(name, "w") as file:
                write(file)


def _pickles(rng, path):
    """Arrays of objects, which NumPy pickles: these would write a file."""

    class Harm:
        def __reduce__(self):
            return (open, (str(path) + ".harm", "w"))

    with np.load(path) as file:
        names = [*file.files]
    array = np.array([Harm()] * int(rng.integers(1, 4)), object)
    np.savez(path, **dict.fromkeys(names, array))


def _many_entries(rng, path):
    """A directory of more entries than memory should be spent on."""
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(int(10 ** rng.uniform(2, 4))):
            archive.writestr(f"{i}{'x' * 200}.npy", b"")


NPZ_BOMBS = (_zip_of_zeros, _claims, _odd_headers, _pickles, _many_entries)


def make_png(folder):
    rng = np.random.default_rng(0)
    colours = rng.integers(256, size=(24, 20, 3), dtype="uint8")
    image = Image.fromarray(colours)
    image.save(folder / "colour.png")
    image.convert("L").save(folder / "grey.png")
    image.quantize(16).save(folder / "palette.png")
    image.convert("1").save(folder / "bits.png")
    deep = (colours[..., 0].astype("uint16") << 8) + colours[..., 1]
    Image.fromarray(deep).save(folder / "deep.png")


def read_png(folder):
    paths = sorted(folder.glob("*.png"))
    return [png.read_png(path, "RGB", 16) for path in paths]


def make_fillers(folder):
    rng = np.random.default_rng(0)
    for number in range(3):
        image = rng.integers(256, size=(20, 20), dtype="uint8")
        Image.fromarray(image).save(folder / f"{number}.png")


def make_clips(folder):
    rng = np.random.default_rng(0)
    for number in range(4):
        scene = folder / "O1" / "01" / str(number + 1) / "scene"
        scene.mkdir(parents=True)
        for frame in range(2):
            image = rng.integers(256, size=(16, 16, 3), dtype="uint8")
            Image.fromarray(image).save(scene / f"scene_{frame + 1:03d}.png")
        status = {"header": {"is_possible": number % 2 > 0}, "more": [1.5] * 9}
        scene.with_name("status.json").write_text(json.dumps(status))


def read_clips(folder):
    return intuitive_physics.read_published(folder, "O1", 16)


def _png_bomb(rng, path):
    """An image of a size that it does not have, or that inflates to it."""
    side = int(draws.choice(rng, (2**31 - 1, 60_000, 8192, 4096, 0)))
    high = int(draws.choice(rng, (side, 1, 20)))
    depth, colour = draws.choice(rng, ((8, 2), (16, 6), (1, 0), (8, 3), (9, 9)))
    header = struct.pack(">IIBBBBB", side, high, depth, colour, 0, 0, 0)
    packer, pixels = zlib.compressobj(1), b""
    for _ in range(int(rng.integers(1, 300))):
        pixels += packer.compress(bytes(2**20))
    chunks = [(b"IHDR", header), (b"IDAT", pixels + packer.flush())]
    text = zlib.compress(bytes(2**26), 1)
    extra = draws.choice(rng, (b"zTXt", b"iCCP", b"acTL", b"PLTE"))
    if extra != b"PLTE" or colour == 3:
        content = b"a\0\0" + text if extra != b"PLTE" else bytes(768)
        chunks.insert(1, (extra, content))
    chunks.append((b"IEND", b""))
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + b"".join(
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
            for kind, content in chunks
        )
    )


def _other_image(rng, path):
    kind = draws.choice(rng, ("GIF", "BMP", "EPS", "TIFF", "PDF", "JPEG"))
    Image.new("RGB", (4, 4)).save(path, kind)


PNG_BOMBS = (_png_bomb, _other_image)


def make_vaec(folder):
    problems = vaec.generate(seed=0)
    with h5py.File(folder / "analogies.hy", "w") as file:
        for number in range(2):
            group = file.create_group(str(number))
            levels = problems.levels[number].astype("int64")
            candidates = problems.candidates[number].astype("int64")
            a_b_c_d = [*problems.context[number], candidates[0]]
            group["imgs"] = vaec.render(levels)
            group["latent_class"] = levels
            group["ABCD"] = np.array(a_b_c_d, "int64")
            group["not_D"] = candidates[1:]
            group["analogy_dim"] = np.int64(problems.dimension[number])
            group["dist"] = np.int64(problems.distance[number])


def hdf5_bomb(rng, path):
    """Arrays in chunks, which may be of any size, and links elsewhere."""
    with h5py.File(path, "r+") as file:
        group = file[str(int(rng.integers(2)))]
        name = draws.choice(rng, list(group))
        shape = group[name].shape
        del group[name]
        how = rng.integers(5)
        if how == 0:
            group.create_dataset(
                name, (2**20, 2**20), "uint8", chunks=(2**10, 2**10)
            )
        elif how == 1:
            group[name] = h5py.ExternalLink("/dev/zero", "/x")
        elif how == 2:
            group[name] = h5py.SoftLink("/")
        elif how == 3:
            group.create_dataset(name, shape, "S100")
        else:
            group.create_group(name)


def make_json(folder):
    content = {"header": {"is_possible": True}, "levels": [[1, 2.5, None]] * 9}
    (folder / "level.json").write_text(json.dumps(content))


def make_curves(folder):
    rows = [f"{i},{i / 7},{0.5 + i / 100}" for i in range(1, 20)]
    text = "\r\n".join(["updates,minutes,solved", *rows, ""])
    (folder / "curves.csv").write_text(text)


def text_bomb(rng, path):
    number = int(10 ** rng.uniform(3, 6.5))
    text = draws.choice(
        rng,
        ("[", '{"a":', "9", '"', ",", "1,2,3\r\n", "[],", "é", "\x00", "nan,"),
    )
    content = (text * number).encode()[: 10 * 2**20]
    path.write_bytes(draws.choice(rng, (b"", b"[", b"updates\r\n")) + content)
