"""Colours packed into integers, so that a board is an array of integers.

A colour is red + 256 green + 65536 blue, each from 0 to 255.
"""

import colorsys

import keras
import numpy as np
from keras import ops

# Where red, green and blue begin in a packed colour.
SHIFTS = (0, 8, 16)


def pack_rgb(red: int, green: int, blue: int) -> int:
    """Packs red, green and blue, each from 0 to 255."""
    return red + (green << 8) + (blue << 16)


def pack_hsv(hue: float, saturation: float, value: float) -> int:
    """Packs hue, saturation and value, each from 0 to 1."""
    rgb = colorsys.hsv_to_rgb(hue, saturation, value)
    return pack_rgb(*(round(255 * channel) for channel in rgb))


def unpack_rgb(colours: keras.KerasTensor) -> keras.KerasTensor:
    """Unpacks int32 colours `(...)`, a tensor or array, to uint8 `(..., 3)`."""
    if isinstance(colours, np.ndarray):
        # The lowest three of four bytes. This is several times faster.
        pixels = np.ascontiguousarray(colours, "<i4")[..., None].view("uint8")
        return np.ascontiguousarray(pixels[..., :3])
    channels = ops.right_shift(colours[..., None], np.array(SHIFTS, "int32"))
    return ops.cast(ops.bitwise_and(channels, np.int32(255)), "uint8")


def pack_pixels(images: np.ndarray) -> np.ndarray:
    """Packs integer pixels `(..., 3)` to int32 colours `(...)`."""
    if images.dtype.kind not in "ui":
        raise ValueError(
            "`images` must be integers from 0 to 255. Received: "
            f"images.dtype={images.dtype}"
        )
    return images.astype("int32") @ np.array([1 << x for x in SHIFTS], "int32")
