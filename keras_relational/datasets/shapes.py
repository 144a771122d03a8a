"""Draws discs, squares and triangles, one on each image of a batch."""

import numpy as np

SHAPES = ("disc", "square", "triangle")

# Number of images in a block. The arrays of a block fit into the cache.
_BLOCK = 512


def draw(
    images: np.ndarray,
    centres: np.ndarray,
    sizes: np.ndarray,
    colours: np.ndarray,
    shapes: np.ndarray | None = None,
) -> None:
    """Draws one shape on each image, in place, with smooth edges.

    Pixel i reaches from i to i + 1. The share of the shape's colour in a pixel
    grows from 0, if the pixel's centre is half a pixel outside the edge, to 1,
    if it is half a pixel inside. Images are uint8 `(n, height, width,
    channels)`, centres `(n, 2)` from the left and from the top. A size is the
    radius of a disc, or half the width of another shape. A shape of size 0 is
    not drawn. `shapes` are indices into `SHAPES`; by default all are discs.

    >>> images = np.zeros((1, 8, 8, 1), "uint8")
    >>> draw(images, [[3, 4]], [2], [[255]])
    >>> images[0, 4, :, 0]
    array([  0, 234, 255, 255, 234,   0,   0,   0], dtype=uint8)
    """
    sizes = np.asarray(sizes, "float64")
    centres, colours = np.asarray(centres), np.asarray(colours, "float32")
    reach = int(np.ceil(2 * sizes.max())) + 1
    windows = np.lib.stride_tricks.sliding_window_view(
        images, (reach, reach), (1, 2), writeable=True
    )
    for start in range(0, len(images), _BLOCK):
        part = slice(start, start + _BLOCK)
        corners = np.ceil(centres[part] - sizes[part, None] - 1).astype(int)
        left, top = np.clip(corners, 0, np.array(windows.shape[2:0:-1]) - 1).T
        x, y = (
            (corner[:, None] + np.arange(0.5, reach) - centre[:, None])
            for corner, centre in zip((left, top), centres[part].T, strict=True)
        )
        share = _shares(
            x.astype("float32")[:, None],
            y.astype("float32")[:, :, None],
            sizes[part].astype("float32")[:, None, None],
            None if shapes is None else np.asarray(shapes[part]),
        )
        place = np.arange(len(images))[part], top, left
        old = windows[place].astype("float32")
        new = colours[part, :, None, None] - old
        new *= share[:, None]
        new += old
        new += np.float32(0.5)
        windows[place] = new.astype("uint8")


def downsample(images: np.ndarray, size: int) -> np.ndarray:
    """Makes images or videos smaller: each pixel is the mean of a square.

    From uint8 `(..., height, width, channels)` to `(..., size, size,
    channels)`. Means are rounded. A `ValueError` says if the images are no
    squares, or `size` is no divisor of their height.

    Example:

    >>> images = np.zeros((1, 4, 4, 1), "uint8")
    >>> images[:, 0, 0] = 200
    >>> downsample(images, 2)[0, :, :, 0]
    array([[50,  0],
           [ 0,  0]], dtype=uint8)
    """
    *others, height, width, channels = images.shape
    if height != width or size < 1 or height % size:
        raise ValueError(
            "Images must be squares, and `size` a divisor of their height. "
            f"Received: images.shape={images.shape}, size={size}"
        )
    side = height // size
    if side == 1:
        return images
    blocks = images.reshape(*others, size, side, size, side, channels)
    # Adding up slices is several times faster than `mean` over two axes.
    sums = np.zeros((*others, size, size, channels), "uint32")
    for row, column in np.ndindex(side, side):
        sums += blocks[..., row, :, column, :]
    return ((sums + side**2 // 2) // side**2).astype("uint8")


def _shares(x, y, size, shapes):
    """The share of each pixel that the shape covers, from 0 to 1."""
    inside = size - np.sqrt(x**2 + y**2)
    if shapes is not None:
        # The sides of a triangle rise two pixels for each pixel inwards.
        slope = ((y + size) / 2 - abs(x)) / np.float32(1.25**0.5)
        inside = np.choose(
            shapes[:, None, None],
            (
                inside,
                size - np.maximum(abs(x), abs(y)),
                np.minimum(slope, size - y),
            ),
        )
    return np.clip(inside + np.float32(0.5), 0, np.minimum(2 * size, 1))
