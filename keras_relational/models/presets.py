"""Presets: trained models, each a folder or archive of a model and its card."""

import contextlib
import datetime
import functools
import hashlib
import io
import json
import pathlib
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import h5py
import keras
import numpy as np

from keras_relational.file_io import atomic_path
from keras_relational.file_io import read_json
from keras_relational.file_io import write_atomically
from keras_relational.models.image_model import as_image_model

_SHIPPED = pathlib.Path(__file__).parents[1] / "presets"
_MODEL = "model.keras"
_WEIGHTS = "model.weights.h5"  # In the archive that the model is.
_METADATA = "metadata.json"


def preset_names() -> tuple[str, ...]:
    """Names of the presets that come with the library, in sorted order."""
    return tuple(sorted(x.parent.name for x in _SHIPPED.glob(f"*/{_METADATA}")))


def from_preset(
    preset: str | pathlib.Path, file_hash: str | None = None
) -> keras.Model:
    """Loads a trained model.

    No code that comes with the model is run.

    Args:
        preset: One of `preset_names()`; or a folder or archive that
            `save_to_preset` made; or the URL of an archive. A name means the
            library's preset, whatever folders there are. A URL is downloaded
            once, into the folder `keras_relational` of Keras' cache, as
            `keras.utils.get_file` does.
        file_hash: SHA-256 of the archive, 64 hexadecimal digits. A URL needs
            it.

    Returns:
        `keras.Model` with its trained weights. It is not compiled for training.
        A model that divides images of uint8 by 255 or 256 also takes them as
        floats, from 0 to 255 or from 0 to 1.

    Raises:
        ValueError: If there is no such preset, its files are damaged, or the
            archive has another SHA-256.
        OSError: If the archive cannot be downloaded.

    Example:

    >>> agent = from_preset("boxworld_3x18_relational")
    >>> agent.input_shape
    (None, 3, 19, 3)
    """
    with _folder(preset, file_hash) as folder:
        path = folder / _MODEL
        found, expected = _sha256(path), _card(folder).get("sha256")
        if found != expected:
            raise ValueError(
                f"{path} is not the model of {folder / _METADATA}: its SHA-256 "
                f"is {found}, expected {expected}. Get the preset again."
            )
        model = keras.saving.load_model(path, compile=False, safe_mode=True)
    return as_image_model(model)


def preset_metadata(
    preset: str | pathlib.Path, file_hash: str | None = None
) -> dict[str, Any]:
    """Reads the card of a preset.

    Args:
        preset: As in `from_preset`.
        file_hash: As in `from_preset`.

    Returns:
        Dictionary. `sha256`, `parameters`, `keras_version` and `date_saved`
        describe the file of the model. The rest is the `metadata` of
        `save_to_preset`. For the presets of the library it is:

        - `license`: an SPDX identifier.
        - `headline`: the main result.
        - `question`: what the model answers.
        - `inputs`, `outputs`: what goes in and comes out, a text by its name.
        - `trained_on`: the data of training.
        - `held_out`: the share that is right, by the kind of data, also of data
          that it does badly on.
        - `limits`: where it ends, a list of texts.
        - `example`: a program, and what it `prints`.
        - `lineage`: all commands that made it, from the first one on. Each is a
          `command` with the name of the model that it `makes`.
        - `run`, `figures`: the last run, and its results on data that training
          never draws.

    Raises:
        ValueError: If there is no such preset, its card is damaged, or the
            archive has another SHA-256.
        OSError: If the archive cannot be downloaded.

    Example:

    >>> preset_metadata("predinet_between")["question"]
    'Do three objects stand in a line, and are the outer two the same?'
    """
    with _folder(preset, file_hash) as folder:
        return _card(folder)


def _card(folder):
    path = folder / _METADATA
    metadata = read_json(path)
    if not isinstance(metadata, dict):
        raise ValueError(
            f"{path} must hold a JSON object. Received: {metadata!r:.100}"
        )
    return metadata


def save_to_preset(
    model: keras.Model,
    preset_dir: str | pathlib.Path,
    metadata: Mapping[str, Any] | None = None,
    half_precision: bool = False,
) -> None:
    """Saves a trained model as a preset.

    `from_preset(preset_dir)` loads it again. The folder or archive holds
    `model.keras`, architecture and weights in Keras' format, and
    `metadata.json`.

    Args:
        model: `keras.Model`.
        preset_dir: Path of a folder, or of an archive if it ends with `.zip`.
            It is made if it does not exist. A preset in its place is replaced.
            The name of a preset of the library alone is refused, because
            `from_preset` would load that one. `sha256sum` prints the
            `file_hash` of an archive.
        metadata: Mapping that JSON can store, for the card. Any keys will do.
            Those of the library's cards, which `preset_metadata` lists, tell
            others what they need: the question, what goes in and comes out,
            the data of training, the results, where it ends and the licence.
        half_precision: If `True`, float32 weights are stored as float16, which
            halves the file. The loaded model has float32 weights again. Test it
            before you publish it: weights are rounded to 11 bits. A weight with
            numbers too large or too small for that stays float32. In a matrix
            that has negative numbers, such as a kernel, a small number is
            rounded like the largest ones of its row and its column.

    Raises:
        ValueError: If JSON cannot store the metadata, or the path is the name
            of a preset of the library.
        OSError: If a file cannot be written. The error names it.

    Example:

    >>> import tempfile
    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_to_preset(model, folder, {"license": "MIT"})
    ...     preset_metadata(folder)["parameters"]
    8
    """
    given = dict(metadata or {})
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`metadata` must be a mapping that JSON can store: {error}. "
            f"Received: metadata={metadata!r:.200}"
        ) from error
    folder = pathlib.Path(preset_dir)
    # "./name" is refused, too: as a `Path` it is the same as the name.
    if str(folder) in preset_names():
        raise ValueError(
            f"{str(folder)!r} is the name of a preset of the library, which "
            "from_preset would load. Take another name, or a folder elsewhere, "
            f"such as {str('presets' / folder)!r}. Received: preset_dir="
            f"{str(preset_dir)!r}"
        )
    if folder.suffix == ".zip":
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory() as unpacked,
            atomic_path(folder) as partial,
            zipfile.ZipFile(partial, "w") as archive,
        ):
            save_to_preset(model, unpacked, given, half_precision)
            for name in (_MODEL, _METADATA):
                archive.write(pathlib.Path(unpacked) / name, name)
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _MODEL
    with atomic_path(path) as partial:
        model.save(partial)
        if half_precision:
            _halve_weights(partial)
    now = datetime.datetime.now(datetime.UTC)
    card = given | {
        "keras_version": keras.version(),
        "parameters": model.count_params(),
        "date_saved": now.isoformat(timespec="seconds"),
        "sha256": _sha256(path),
    }
    text = json.dumps(card, indent=1, ensure_ascii=False)
    write_atomically(folder / _METADATA, text.encode())


def _halve_weights(path):
    """Rewrites a `.keras` file with float16 in place of float32."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    halved = io.BytesIO()
    with (
        h5py.File(io.BytesIO(contents[_WEIGHTS])) as old,
        h5py.File(halved, "w") as new,
    ):
        _copy_halved(old, new)
    contents[_WEIGHTS] = halved.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def _copy_halved(old, new):
    new.attrs.update(old.attrs)
    for name, item in old.items():
        if isinstance(item, h5py.Group):
            _copy_halved(item, new.create_group(name))
            continue
        values = item[()]
        if item.dtype == "float32":
            values = _halved(values)
        new.create_dataset(name, data=values).attrs.update(item.attrs)


def _halved(values):
    """The values as float16, or as they are if that loses more than digits.

    Below 2⁻¹⁴ float16 keeps fewer than 11 bits, and below 2⁻²⁵ none. This
    matters for a variance, but not for one of many numbers in a larger sum.
    """
    with np.errstate(over="ignore"):
        half = values.astype("float16")
    size = np.abs(values)
    if values.ndim > 1 and (values < 0).any():
        axes = range(values.ndim)
        others = [tuple(x for x in axes if x != axis) for axis in axes]
        largest = [size.max(x, keepdims=True) for x in others]
        size = functools.reduce(np.minimum, largest)
    with np.errstate(invalid="ignore"):  # Infinity less infinity.
        fits = np.abs(half - values) <= 2.0**-11 * size
    return half if fits.all() else values


@contextlib.contextmanager
def _folder(preset, file_hash) -> Iterator[pathlib.Path]:
    """Yields the folder of a preset; an archive is unpacked for the block."""
    names, path = preset_names(), pathlib.Path(preset)
    if "://" in str(preset):
        path = _downloaded(str(preset), file_hash)
    if path.suffix == ".zip" and path.is_file():
        with tempfile.TemporaryDirectory() as unpacked:
            _unpack(path, file_hash, unpacked)
            yield pathlib.Path(unpacked)
        return
    folder = _SHIPPED / preset if preset in names else path
    files = (_MODEL, _METADATA)
    absent = [name for name in files if not (folder / name).is_file()]
    if absent:
        wrong = f"The folder {str(folder)!r} has no {' and no '.join(absent)}"
        if not folder.is_dir():
            wrong = f"There is no preset, folder or archive {str(folder)!r}"
        raise ValueError(
            f"{wrong}. `preset` must be one of {', '.join(names)}, or a folder "
            f"or a .zip archive with {_MODEL} and {_METADATA}, or the URL of "
            f"such an archive. Received: preset={str(preset)!r}"
        )
    if file_hash is not None:
        raise ValueError(
            "`file_hash` is the SHA-256 of an archive, and this preset is a "
            f"folder. Leave it out. Received: preset={str(preset)!r}, "
            f"file_hash={file_hash!r}"
        )
    yield folder


def _downloaded(url, file_hash):
    """The path of an archive in Keras' cache."""
    if not re.fullmatch("[0-9a-f]{64}", file_hash or ""):
        raise ValueError(
            f"The archive {url} needs `file_hash`, its SHA-256 of 64 lowercase "
            "hexadecimal digits, as its author tells it. Received: "
            f"file_hash={file_hash!r}"
        )
    try:
        path = keras.utils.get_file(
            f"{file_hash}.zip",
            url,
            file_hash=file_hash,
            cache_subdir="keras_relational",
            hash_algorithm="sha256",
        )
    except ValueError as error:
        raise ValueError(f"{url} is not the archive: {error}") from error
    except Exception as error:  # Keras raises no class of its own.
        raise OSError(f"{url} cannot be downloaded: {error}") from error
    return pathlib.Path(path)


def _unpack(path, file_hash, folder):
    """Writes the two files of an archive, and nothing else that is in it."""
    if file_hash is not None and (found := _sha256(path)) != file_hash:
        raise ValueError(
            f"{path} is another archive: its SHA-256 is {found}, expected "
            f"{file_hash}. Get it again."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            for name in (_MODEL, _METADATA):
                archive.extract(name, folder)
    except (KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is no intact archive of a preset: {error}. Get it again."
        ) from error


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
