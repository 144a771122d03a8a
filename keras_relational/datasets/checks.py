"""What all tasks ask of their arguments."""


def check_positive(**numbers):
    """Raises a `ValueError` naming the first number that is less than 1."""
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(
                f"`{name}` must be a positive integer. Received: "
                f"{name}={number}"
            )
