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
    """Packs a colour.

    Args:
        red: Integer from 0 to 255.
        green: Integer from 0 to 255.
        blue: Integer from 0 to 255.

    Returns:
        Integer.
    """
    return red + (green << 8) + (blue << 16)


def pack_hsv(hue: float, saturation: float, value: float) -> int:
    """Packs a colour that is given by hue, saturation and value.

    Red, green and blue are each rounded to the nearest of 0 to 255.

    Args:
        hue: Number from 0 to 1.
        saturation: Number from 0 to 1.
        value: Number from 0 to 1.

    Returns:
        Integer.
    """
    rgb = colorsys.hsv_to_rgb(hue, saturation, value)
    return pack_rgb(*(round(255 * channel) for channel in rgb))


def unpack_rgb(colours: keras.KerasTensor) -> keras.KerasTensor:
    """Unpacks colours into pixels.

    Args:
        colours: int32 tensor or array `(...)` of packed colours.

    Returns:
        uint8 tensor or array `(..., 3)`: red, green and blue.
    """
    if isinstance(colours, np.ndarray):
        # The lowest three of four bytes. This is several times faster.
        pixels = np.ascontiguousarray(colours, "<i4")[..., None].view("uint8")
        return np.ascontiguousarray(pixels[..., :3])
    channels = ops.right_shift(colours[..., None], np.array(SHIFTS, "int32"))
    return ops.cast(ops.bitwise_and(channels, np.int32(255)), "uint8")


def pack_pixels(images: np.ndarray) -> np.ndarray:
    """Packs pixels into colours: the inverse of `unpack_rgb`.

    Args:
        images: uint8 array `(..., 3)`: red, green and blue.

    Returns:
        int32 array `(...)` of packed colours.

    Raises:
        ValueError: If the pixels are not integers.
    """
    if images.dtype.kind not in "ui":
        raise ValueError(
            "`images` must be integers from 0 to 255. Received: "
            f"images.dtype={images.dtype}"
        )
    return images.astype("int32") @ np.array([1 << x for x in SHIFTS], "int32")
