"""Checks whose errors say what was expected and received."""

import contextlib
import numbers
from collections.abc import Iterable
from collections.abc import Iterator


def check_positive_integers(**arguments: object) -> None:
    """Raises a `ValueError` unless all arguments are positive integers.

    The error names the first argument that is not. NumPy's integers are
    allowed, such as the result of `np.prod(shape)`. `True` is not.
    """
    for name, value in arguments.items():
        if (
            not isinstance(value, numbers.Integral)
            or isinstance(value, bool)
            or value < 1
        ):
            raise ValueError(
                f"`{name}` must be a positive integer. Received: {name}={value}"
            )


def check_dropout(dropout: float) -> None:
    """Raises a `ValueError` unless it is a number from 0 to below 1."""
    if not isinstance(dropout, numbers.Real) or not 0 <= dropout < 1:
        raise ValueError(
            "`dropout` must be at least 0 and less than 1. Received: "
            f"dropout={dropout!r}"
        )


def check_choice(name: str, value: object, choices: Iterable) -> None:
    """Raises a `ValueError` unless a value is one of the choices.

    `name` names the value in the error, such as `"object set"`.
    """
    choices = list(choices)
    if value not in choices:
        raise ValueError(
            f"Unknown {name} {value!r}. Expected one of: "
            f"{', '.join(map(str, choices))}"
        )


@contextlib.contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Makes an `ImportError` of a block say which extra brings the package.

    The error begins with `what`, a plural noun such as `"Figures"`.
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{what} need a package that is not installed ({error}). Run: "
            f"pip install 'keras_relational[{extra}]'"
        ) from error
