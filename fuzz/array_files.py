"""Archives of arrays, and what harms who reads them."""

import io
import struct
import zipfile

import numpy as np

from fuzz import draws


def make_relations(folder):
    from keras_relational.datasets import relations_game

    images, labels, tasks = relations_game.generate("between", 3, seed=0)
    np.savez_compressed(
        folder / "between.npz",
        images=images,
        labels=labels[:, None],
        tasks=tasks[:, None],
    )


def read_relations(folder):
    from keras_relational.datasets import relations_game

    return relations_game.load_npz(folder / "between.npz")


def make_visual_analogies(folder):
    rng = np.random.default_rng(0)
    for number in range(2):
        panels = np.zeros((9, 160, 160), "uint8")
        panels[:, :8, :8] = rng.integers(256, size=(9, 8, 8))
        save = (np.savez, np.savez_compressed)[number]
        save(folder / f"{number}.npz", image=panels, target=np.int64(number))


def read_visual_analogies(folder):
    from keras_relational.datasets import visual_analogies

    return visual_analogies.load_npz(folder)


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
