"""What all tasks ask of their arguments."""

import numbers


def check_positive(**arguments):
    """Raises a `ValueError` naming the first that is no positive integer."""
    for name, number in arguments.items():
        if not isinstance(number, numbers.Integral) or number < 1:
            raise ValueError(
                f"`{name}` must be a positive integer. Received: "
                f"{name}={number}"
            )
