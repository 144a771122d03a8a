"""Reading published PNG files."""

import numpy as np


def read_png(path, mode, size=None):
    """Reads one image.

    Args:
        path: Path of the file.
        mode: `"L"` for grey, `"RGB"` for colour.
        size: Height and width, in pixels, to bring it to, each pixel the mean
            of what it covers; its own by default.

    Returns:
        uint8 array `(height, width)`, or `(height, width, 3)`.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: If it is not a PNG, or truncated.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "PNG files are read with Pillow, which is not installed. Run: "
            "pip install 'keras_relational[plots]'"
        ) from error
    try:
        with Image.open(path) as image:
            image = image.convert(mode)
            if size and image.size != (size, size):
                image = image.resize((size, size), Image.Resampling.BOX)
            return np.array(image)
    except (OSError, SyntaxError) as error:
        raise ValueError(f"{path} cannot be read as a PNG: {error}") from error
