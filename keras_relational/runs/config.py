"""The content of `config.json`: arguments, versions, commit and machine."""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys
from collections.abc import Container
from collections.abc import Mapping
from typing import Any

import keras

from keras_relational.version import __version__

FORMAT = 1
# Names of the packages that can change a result.
_LIBRARIES = ("keras", "numpy", "tensorflow", "jax", "torch", "tf-agents")


def new_config(
    experiment: str,
    arguments: Mapping[str, object],
    data: Mapping[str, str],
    start: Mapping[str, object],
) -> dict:
    """The content of `config.json` for a run that starts now."""
    return {
        "format": FORMAT,
        "experiment": experiment,
        "arguments": _as_json(arguments),
        "data": dict(data),
        **start,
        "continued": [],
    }


def this_start() -> dict:
    """The command, versions, machine and date, which each later start adds."""
    return {
        "command": _command(),
        "versions": _versions(),
        "commit": _commit(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "accelerator": _accelerator(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "started": now(),
    }


def now() -> str:
    """The time in UTC, to the second, in ISO 8601 format."""
    time = datetime.datetime.now(datetime.UTC)
    return time.isoformat(timespec="seconds")


def differences(
    saved: Mapping[str, Any],
    experiment: str,
    arguments: Mapping[str, object],
    data: Mapping[str, str],
    may_differ: Container[str] = (),
) -> list[str]:
    """Lists how a new start differs from `saved`, the folder's `config.json`.

    A path, or a list of paths, may always differ, because files can be moved.
    `data` shows whether their content is the same. Returns texts such as
    `"seed: was 0, now 1"`.
    """
    new = {
        "experiment": experiment,
        **{
            name: value
            for name, value in _as_json(arguments).items()
            if name not in may_differ and not holds_paths(arguments[name])
        },
        **{f"digest of {name}": digest for name, digest in data.items()},
    }
    before = {
        "experiment": saved["experiment"],
        **{
            name: value
            for name, value in (saved["arguments"] or {}).items()
            if name not in may_differ
            and not holds_paths(arguments.get(name, None))
        },
        **{f"digest of {k}": v for k, v in saved["data"].items()},
    }
    return [
        f"{name}: was {_shown(before, name)}, now {_shown(new, name)}"
        for name in dict.fromkeys([*before, *new])
        if _shown(before, name) != _shown(new, name)
    ]


def holds_paths(value: object) -> bool:
    """Tells whether an argument is a `pathlib.Path`, or a list of paths."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(holds_paths, value))
    return isinstance(value, pathlib.PurePath)


def _shown(values: Mapping[str, object], name: str) -> str:
    return json.dumps(values[name]) if name in values else "not given"


def _as_json(arguments: Mapping[str, object]) -> dict[str, Any]:
    """Arguments as JSON returns them: paths as text, tuples as lists."""

    def default(value: object) -> object:
        if isinstance(value, pathlib.PurePath):
            return str(value)
        if hasattr(value, "item"):  # NumPy's numbers.
            return value.item()
        raise TypeError(
            "The arguments of a run must be numbers, text, paths, or lists and "
            f"dictionaries of them. Received: {value!r}"
        )

    return json.loads(json.dumps(dict(arguments), default=default))


def _command() -> str | None:
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    script = sys.argv[0] if sys.argv else ""
    if spec is not None:
        program = ["-m", spec.name.removesuffix(".__main__")]
    elif script and os.path.exists(script):
        program = [os.path.relpath(script)]
    else:
        return None
    return shlex.join(["python", *program, *sys.argv[1:]])


def _versions() -> dict[str, str]:
    versions = {
        "python": platform.python_version(),
        "keras_relational": __version__,
        "backend": keras.backend.backend(),
    }
    for library in _LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _commit() -> str | None:
    """The commit of the library's source, if it is in a git repository."""
    folder = pathlib.Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(  # noqa: S603
            ["git", "-C", str(folder), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout.strip()

    try:
        # Without this check, a package that is installed inside another
        # project's repository would get the commit of that project.
        git("ls-files", "--error-unmatch", pathlib.Path(__file__).name)
        return git(
            "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"
        )
    except (OSError, subprocess.SubprocessError):
        return None


def _processor() -> str | None:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    names = [x.partition(":")[2] for x in lines if x.startswith("model name")]
    return names[0].strip() if names else platform.processor() or None


def _accelerator() -> str | None:
    """The name of the first GPU or TPU that Keras computes on."""
    backend = keras.backend.backend()
    module = sys.modules.get(backend)
    if module is None:
        return None
    if backend == "tensorflow":
        devices = module.config.list_physical_devices("GPU")
        details = module.config.experimental.get_device_details
        return details(devices[0]).get("device_name") if devices else None
    if backend == "jax":
        device = module.devices()[0]
        return None if device.platform == "cpu" else device.device_kind
    if backend == "torch" and module.cuda.is_available():
        return module.cuda.get_device_name(0)
    return None
