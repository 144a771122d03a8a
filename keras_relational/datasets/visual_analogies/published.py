"""Reads the problems that the authors of Hill et al., 2019, published."""

import math
import pathlib
from collections.abc import Sequence

import numpy as np

from keras_relational.datasets.npz import read_npz
from keras_relational.validation import check_choice

IMAGE_SIZE = 160
NUM_PANELS = 9  # 3 of the source, 2 of the target, 4 candidates.


def load_npz(
    paths: pathlib.Path | str | Sequence[pathlib.Path | str],
    image_size: int = IMAGE_SIZE,
) -> tuple[np.ndarray, np.ndarray]:
    """Reads published problems. Each file holds one problem.

    Args:
        paths: Path of a file, sequence of such paths, or path of a folder.
        image_size: Height and width of the images that are returned, 160 or 80.
            For 80 every other pixel is left out. Webb et al., 2020, halve the
            images, too, but do not say how.

    Returns:
        `(images, labels)`: uint8 `(n, 9, image_size, image_size, 1)`, five
        panels and four candidates, and uint8 `(n,)`, the index of the answer
        among the candidates. The problems of a folder are in the order of their
        file names.

    Raises:
        ValueError: If a file is damaged, if it lacks the array `image` or
            `target` or has it in another shape or range, if there are no files,
            or if `image_size` is neither 160 nor 80.
        FileNotFoundError: If there is no such file.
    """
    check_choice("image size", image_size, (IMAGE_SIZE, IMAGE_SIZE // 2))
    if isinstance(paths, str | pathlib.Path):
        folder = pathlib.Path(paths)
        paths = sorted(folder.glob("*.npz")) if folder.is_dir() else [folder]
        if not paths:
            raise ValueError(f"There is no .npz file in {folder}.")
    step = IMAGE_SIZE // image_size
    images, labels = [], []
    for path in paths:
        image, label = _read_npz(path)
        # A view would keep the whole image in memory.
        images.append(image[:, ::step, ::step, None].copy())
        labels.append(label)
    if not images:
        raise ValueError("`paths` is empty. It must name a file.")
    return np.stack(images), np.array(labels, "uint8")


def _read_npz(path):
    # The other arrays are pickles, which are not read.
    limits = {"image": 256, "target": 4}
    arrays = read_npz(
        path, tuple(limits), "a visual analogy", _check_headers, limits
    )
    shape = NUM_PANELS, IMAGE_SIZE, IMAGE_SIZE
    return arrays["image"].reshape(shape), arrays["target"].item()


def _check_headers(headers):
    shape = NUM_PANELS, IMAGE_SIZE, IMAGE_SIZE
    for name, shapes in (
        ("image", (shape, (math.prod(shape),))),
        ("target", ((),)),
    ):
        # Axes of size one are ignored.
        sizes = tuple(n for n in headers[name].shape if n != 1)
        if sizes not in shapes or headers[name].dtype.kind not in "iuf":
            raise ValueError(
                f"{name!r} should hold {math.prod(shapes[0])} numbers, of "
                f"shape {shapes[0]} or flat. Received: shape "
                f"{headers[name].shape}, dtype {headers[name].dtype}"
            )
