"""The readers of the library, and a good file for each."""

import contextlib
import dataclasses
import functools
import io
import json
import os
import struct
import sys
import tempfile
import warnings
import zipfile
import zlib

import numpy as np

from fuzz import draws


@dataclasses.dataclass(frozen=True)
class Reader:
    """What reads a kind of file.

    Attributes:
        make: Writes what it reads into a folder, the same every time.
        read: Reads it back from the folder.
        share: How many of the damaged files are its own, in relation.
        intact: Whether the format has checksums, so that what can be read is as
            it was. Without them a digit may become another one unnoticed.
        bombs: Functions of `(rng, path)` that write what is made to harm.
        files: Which files of the folder are damaged, as a pattern.
        called: What the error has to call the file: a function of its path.
        seconds: What it may take longer than the others.
    """

    make: object
    read: object
    share: float = 1.0
    intact: bool = True
    bombs: tuple = ()
    files: str = "*"
    called: object = str
    seconds: float = 0.0


# npz


def _make_relations(folder):
    from keras_relational.datasets import relations_game

    images, labels, tasks = relations_game.generate("between", 3, seed=0)
    np.savez_compressed(
        folder / "between.npz",
        images=images,
        labels=labels[:, None],
        tasks=tasks[:, None],
    )


def _read_relations(folder):
    from keras_relational.datasets import relations_game

    return relations_game.load_npz(folder / "between.npz")


def _make_visual_analogies(folder):
    rng = np.random.default_rng(0)
    for number in range(2):
        panels = np.zeros((9, 160, 160), "uint8")
        panels[:, :8, :8] = rng.integers(256, size=(9, 8, 8))
        save = (np.savez, np.savez_compressed)[number]
        save(folder / f"{number}.npz", image=panels, target=np.int64(number))


def _read_visual_analogies(folder):
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


_NPZ_BOMBS = (_zip_of_zeros, _claims, _odd_headers, _pickles, _many_entries)


# PNG


def _make_png(folder):
    from PIL import Image

    rng = np.random.default_rng(0)
    colours = rng.integers(256, size=(24, 20, 3), dtype="uint8")
    image = Image.fromarray(colours)
    image.save(folder / "colour.png")
    image.convert("L").save(folder / "grey.png")
    image.quantize(16).save(folder / "palette.png")
    image.convert("1").save(folder / "bits.png")
    deep = (colours[..., 0].astype("uint16") << 8) + colours[..., 1]
    Image.fromarray(deep).save(folder / "deep.png")


def _read_png(folder):
    from keras_relational.datasets import png

    paths = sorted(folder.glob("*.png"))
    return [png.read_png(path, "RGB", 16) for path in paths]


def _make_fillers(folder):
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(3):
        image = rng.integers(256, size=(20, 20), dtype="uint8")
        Image.fromarray(image).save(folder / f"{number}.png")


def _read_fillers(folder):
    from keras_relational.datasets import distribution_of_three

    return distribution_of_three.load_images(folder)


def _make_clips(folder):
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(4):
        scene = folder / "O1" / "01" / str(number + 1) / "scene"
        scene.mkdir(parents=True)
        for frame in range(2):
            image = rng.integers(256, size=(16, 16, 3), dtype="uint8")
            Image.fromarray(image).save(scene / f"scene_{frame + 1:03d}.png")
        status = {"header": {"is_possible": number % 2 > 0}, "more": [1.5] * 9}
        scene.with_name("status.json").write_text(json.dumps(status))


def _read_clips(folder):
    from keras_relational.datasets import intuitive_physics

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
    from PIL import Image

    kind = draws.choice(rng, ("GIF", "BMP", "EPS", "TIFF", "PDF", "JPEG"))
    Image.new("RGB", (4, 4)).save(path, kind)


_PNG_BOMBS = (_png_bomb, _other_image)


# HDF5


def _make_vaec(folder):
    import h5py

    from keras_relational.datasets import vaec

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


def _read_vaec(folder):
    from keras_relational.datasets import vaec

    return vaec.load_hdf5(folder / "analogies.hy")


def _hdf5_bomb(rng, path):
    """Arrays in chunks, which may be of any size, and links elsewhere."""
    import h5py

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


# Text


def _make_json(folder):
    content = {"header": {"is_possible": True}, "levels": [[1, 2.5, None]] * 9}
    (folder / "level.json").write_text(json.dumps(content))


def _read_json(folder):
    from keras_relational import files

    return files.read_json(folder / "level.json")


def _make_curves(folder):
    rows = [f"{i},{i / 7},{0.5 + i / 100}" for i in range(1, 20)]
    text = "\r\n".join(["updates,minutes,solved", *rows, ""])
    (folder / "curves.csv").write_text(text)


def _read_curves(folder):
    from keras_relational import files

    return files.read_curves(folder / "curves.csv")


def _text_bomb(rng, path):
    number = int(10 ** rng.uniform(3, 6.5))
    text = draws.choice(
        rng,
        ("[", '{"a":', "9", '"', ",", "1,2,3\r\n", "[],", "é", "\x00", "nan,"),
    )
    content = (text * number).encode()[: 10 * 2**20]
    path.write_bytes(draws.choice(rng, (b"", b"[", b"updates\r\n")) + content)


# Checkpoints


def _make_supervised(folder):
    _supervised(folder)


def _read_supervised(folder):
    return _supervised(folder)


def _supervised(folder):
    """Trains to the second epoch, or reads that it was trained so far."""
    import keras

    from keras_relational import training

    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    x = np.random.default_rng(0).standard_normal((20, 3)).astype("float32")
    curves = training.train_classifier(
        model,
        x,
        (x[:, 0] > 0).astype("int64"),
        num_batches=4,
        batches_per_epoch=2,
        steps_per_execution=1,
        batch_size=5,
        directory=folder,
        verbose=0,
    )
    return curves, [np.array(x) for x in model.weights]


def _make_agent(folder):
    _agent_run(folder, False)


def _read_agent(folder):
    return _agent_run(folder, True)


def _agent_run(folder, resume):
    """Trains for one update, or reads that it was trained so far."""
    from keras_relational.training import agent_runs

    actor_learner = _actor_learner()
    curves = agent_runs.train_agent(
        actor_learner,
        num_steps=1,
        success_reward=10.0,
        directory=folder,
        resume=resume,
        updates_per_epoch=1,
        verbose=False,
    )
    return curves, [x.numpy() for x in _state_of(actor_learner)]


def _state_of(actor_learner):
    import tensorflow as tf

    return tf.nest.flatten(actor_learner.state)


@functools.cache
def _actor_learner():
    """One for all: what it is after a read is what was read."""
    from keras_relational.training import impala

    # isort: split
    import keras

    from keras_relational.environments import boxworld
    from keras_relational.environments import tf_agents_environment

    keras.utils.set_random_seed(0)
    world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0), max_episode_steps=10)
    environment = tf_agents_environment.WorldTFEnvironment(world, 2, 0)
    image = keras.Input((3, 7, 3), dtype="uint8", name="image")
    x = keras.ops.cast(keras.ops.reshape(image, (-1, 63)), "float32")
    logits = keras.layers.Dense(4, name="policy")(x)
    value = keras.ops.squeeze(keras.layers.Dense(1)(x), -1)
    agent = impala.ImpalaAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        keras.Model(image, (logits, value)),
    )
    return impala.ActorLearner(agent, environment, unroll_length=2)


# SavedModels


def _make_saved_models(folder):
    from fuzz import servers
    from fuzz.targets import targets

    for version in (1, 2):
        servers.export(targets()[0], folder, version, seed=version)


def _read_saved_models(folder):
    """The answers of version 2, where the server serves it.

    Raises:
        ValueError: With what the server says, if it serves version 1 instead,
            as it should where 2 is damaged.
        RuntimeError: If it does neither.
    """
    from fuzz.targets import targets
    from keras_relational import serving

    inputs = targets()[0].inputs
    with _said() as said:
        try:
            with serving.serve(folder, "relations") as server:
                version = server.version
                answers = serving.predict_grpc(
                    server.grpc_address, inputs, "relations", timeout=60
                )
        except Exception as error:
            raise RuntimeError(
                f"The server does not start, or answer: {error!r}"
            ) from error
    if version == 2:
        return answers
    right = _answers_of_version_1(folder)
    if not all(np.allclose(answers[x], right[x], atol=1e-5) for x in right):
        raise RuntimeError("Version 1 is served with other answers")
    raise ValueError(f"Version {version} is served, and it says: {said()}")


_ANSWERS = {}


def _answers_of_version_1(folder):
    """They do not change: that version is never damaged."""
    import tensorflow as tf

    from fuzz.targets import targets

    if not _ANSWERS:
        model = tf.saved_model.load(os.path.join(folder, "1"))
        inputs = {k: tf.constant(v) for k, v in targets()[0].inputs.items()}
        outputs = model.signatures["serving_default"](**inputs)
        _ANSWERS.update({k: v.numpy() for k, v in outputs.items()})
    return _ANSWERS


@contextlib.contextmanager
def _said():
    """Yields a function that tells what went to stderr, or was warned of."""
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        os.dup2(file.fileno(), 2)

        def said():
            sys.stderr.flush()
            file.seek(0)
            warned = [str(warning.message) for warning in warned_of]
            return "\n".join([file.read(), *warned])

        try:
            with warnings.catch_warnings(record=True) as warned_of:
                warnings.simplefilter("always")
                text = []
                yield lambda: text[0]
                text.append(said())
        finally:
            os.dup2(before, 2)
            os.close(before)


def _version(path):
    """What the server calls the version of a file; only 2 is damaged."""
    return "Version 2 "


def _checkpoint(path):
    """The last part of a checkpoint's path without what its files end in."""
    return str(path).split(".index")[0].split(".data-")[0]


READERS = {
    "files.relations_npz": Reader(
        _make_relations, _read_relations, 1.5, bombs=_NPZ_BOMBS
    ),
    "files.visual_analogies_npz": Reader(
        _make_visual_analogies, _read_visual_analogies, bombs=_NPZ_BOMBS
    ),
    "files.png": Reader(_make_png, _read_png, 1.5, bombs=_PNG_BOMBS),
    "files.fillers_png": Reader(
        _make_fillers, _read_fillers, 0.5, bombs=_PNG_BOMBS
    ),
    "files.clips_png": Reader(
        _make_clips, _read_clips, 0.5, bombs=_PNG_BOMBS, files="*.png"
    ),
    "files.clips_json": Reader(
        _make_clips,
        _read_clips,
        0.5,
        intact=False,
        bombs=(_text_bomb,),
        files="*.json",
    ),
    "files.vaec_hdf5": Reader(
        _make_vaec, _read_vaec, 1.5, intact=False, bombs=(_hdf5_bomb,)
    ),
    "files.json": Reader(
        _make_json, _read_json, 0.5, intact=False, bombs=(_text_bomb,)
    ),
    "files.curves_csv": Reader(
        _make_curves, _read_curves, intact=False, bombs=(_text_bomb,)
    ),
    "files.training_checkpoint": Reader(
        _make_supervised,
        _read_supervised,
        bombs=_NPZ_BOMBS,
        files="checkpoint.npz",
    ),
    "files.agent_checkpoint": Reader(
        _make_agent,
        _read_agent,
        files="*checkpoints/*",
        called=_checkpoint,
    ),
    "files.saved_model": Reader(
        _make_saved_models,
        _read_saved_models,
        share=0.17,
        files="*2/*",
        called=_version,
        seconds=60,
    ),
}
