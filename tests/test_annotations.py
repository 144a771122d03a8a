"""Every public name stands in the map of its package, and states its types."""

import importlib
import inspect
import re
import types

import pytest

PACKAGES = (
    "keras_relational",
    "keras_relational.analysis",
    "keras_relational.datasets",
    "keras_relational.environments",
    "keras_relational.layers",
    "keras_relational.models",
    "keras_relational.playground",
    "keras_relational.runs",
    "keras_relational.serving",
    "keras_relational.training",
)
# These need tf-agents or Gymnasium, so no package imports them by itself.
MODULES = (
    "keras_relational.agents.actor_learner",
    "keras_relational.agents.agent",
    "keras_relational.agents.distributed",
    "keras_relational.agents.training",
    "keras_relational.environments.gymnasium_environment",
    "keras_relational.environments.tf_agents_environment",
)


def public_values(module):
    """What a module exports, with the contents of the modules among it."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and getattr(value, "__module__", None) == module.__name__
        ]
    for name in names:
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            # The test of a package covers its own contents.
            if value.__name__ not in PACKAGES:
                yield from public_values(value)
        else:
            yield value


def public_functions(value):
    """A function itself, or the public methods that a class defines."""
    if inspect.isfunction(value):
        yield value
    for name, method in vars(value).items() if inspect.isclass(value) else ():
        # Of a property, or of a class method or a static one.
        method = getattr(method, "fget", getattr(method, "__func__", method))
        is_public = not name.startswith("_") or name in ("__init__", "__call__")
        if is_public and inspect.isfunction(method):
            # A dataclass' `__init__` is not in a file.
            if inspect.unwrap(method).__code__.co_filename != "<string>":
                yield method


def missing_annotations(function):
    needed = [*inspect.signature(function).parameters]
    if function.__name__ != "__init__":
        needed.append("return")
    given = {"self", "cls", *function.__annotations__}
    return [name for name in needed if name not in given]


@pytest.mark.parametrize("name", [*PACKAGES, *MODULES])
def test_every_public_name_is_annotated(name):
    incomplete = {}
    for value in public_values(importlib.import_module(name)):
        for function in public_functions(value):
            missing = missing_annotations(function)
            if missing:
                path = f"{function.__module__}.{function.__qualname__}"
                incomplete[path] = missing
    assert not incomplete, "\n".join(
        f"{path} lacks annotations of: {', '.join(missing)}"
        for path, missing in sorted(incomplete.items())
    )


def test_a_missing_annotation_is_found():
    class Half:
        def __init__(self, size: int, *rest):
            pass

        def call(self, x: int):
            pass

        @property
        def whole(self) -> int:
            return 1

        @classmethod
        def none(cls, x):
            pass

        def _private(self, x):
            pass

    found = {
        function.__name__: missing_annotations(function)
        for function in public_functions(Half)
    }
    assert found == {
        "__init__": ["rest"],
        "call": ["return"],
        "whole": [],
        "none": ["x", "return"],
    }


@pytest.mark.parametrize("package", PACKAGES[1:])
def test_the_docstring_of_a_package_maps_what_is_public(package):
    module = importlib.import_module(package)
    mapped = set(
        re.findall(r"\w+", " ".join(re.findall("`.*?`", module.__doc__)))
    )
    assert not set(module.__all__) - mapped
