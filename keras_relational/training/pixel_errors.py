from collections.abc import Callable

import numpy as np


def pixel_errors(
    predict: Callable[[np.ndarray], np.ndarray],
    inputs: np.ndarray,
    targets: np.ndarray,
    axis: tuple[int, ...],
    batch_size: int,
) -> np.ndarray:
    """Mean squared errors of predicted images, computed batch by batch.

    Args:
        predict: Function from a batch of `inputs` to predicted images, with
            pixels between 0 and 1.
        inputs: Array with one row an example.
        targets: uint8 array of the true images, with one row an example.
        axis: Axes over which the mean is taken.
        batch_size: Number of examples predicted at once.

    Returns:
        Array with one row an example, without those axes.
    """
    errors = []
    for i in range(0, len(targets), batch_size):
        rows = slice(i, i + batch_size)
        true = targets[rows] / np.float32(255)
        errors.append(np.mean((predict(inputs[rows]) - true) ** 2, axis=axis))
    return np.concatenate(errors)
