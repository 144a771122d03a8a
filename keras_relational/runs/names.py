"""Names of runs, and digests of the data that they read."""

import hashlib
from collections.abc import Iterable
from collections.abc import Mapping

import numpy as np

from keras_relational.runs.config import holds_paths


def run_name(
    experiment: str,
    arguments: Mapping[str, object],
    defaults: Mapping[str, object],
    always: Iterable[str] = (),
    leave_out: Iterable[str] = (),
    data: Mapping[str, str] | None = None,
) -> str:
    """The name of a run: its experiment, its options, and its seed.

    Two runs that differ in an option have different names, so they are kept in
    different folders. Options at their default values are left out to keep
    names short.

    Args:
        experiment: Name of the experiment, such as `"adding"`.
        arguments: Dictionary of all arguments of the command.
        defaults: Dictionary of their default values.
        always: Names of arguments whose values are in every name. The values
            follow the experiment, without the names of the arguments.
        leave_out: Names of arguments that are never in a name, because they may
            change within a run, such as the number of epochs.
        data: Dictionary of digests of files that were read, as `Run` takes it.
            A `pathlib.Path` is never in a name, but a digest is.

    Returns:
        String.

    Example:

    >>> arguments = {"core": "scoff", "rate": 0.1, "masked": True, "seed": 3}
    >>> defaults = {"core": "scoff", "rate": 0.001, "masked": False, "seed": 0}
    >>> run_name("adding", arguments, defaults, always=["core"])
    'adding-scoff-rate0.1-masked-seed3'
    """
    always, leave_out = list(always), {*always, *leave_out, "seed"}
    parts = [experiment, *(_text(arguments[name]) for name in always)]
    for name, value in arguments.items():
        if name in leave_out or holds_paths(value):
            continue
        if value != defaults.get(name):
            parts.append(name + ("" if value is True else _text(value)))
    parts += [f"{name}_{digest}" for name, digest in (data or {}).items()]
    if "seed" in arguments:
        parts.append(f"seed{arguments['seed']}")
    return "-".join(parts)


def data_digest(*arrays: object) -> str:
    """A short hash of data that were read from files.

    The hash depends on the content of files and not on their paths. So a run
    continues if its files were moved, and is refused if they were changed.

    Args:
        *arrays: Arrays of numbers, or lists of strings.

    Returns:
        String of eight hexadecimal digits: a hash of types, shapes and values.
    """
    digest = hashlib.blake2b(digest_size=4)
    for array in map(np.ascontiguousarray, arrays):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.reshape(-1).view("uint8").data)
    return digest.hexdigest()


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return "+".join(map(str, value))
    return str(value)
