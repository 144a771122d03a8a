"""Where in an image the heads attend: Figs. 6a and S9 of the PrediNet paper.

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*.
"""

from collections.abc import Iterable

import keras
import numpy as np
from keras import ops

from keras_relational import models
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.analysis.compiled_parts import once_for_each_model
from keras_relational.analysis.compiled_parts import predict
from keras_relational.analysis.components import layer_with_heads
from keras_relational.analysis.plotting import Figure
from keras_relational.analysis.plotting import new_figure
from keras_relational.layers import PrediNet

# Pixels: a tile of the board, and the field and stride of the encoder.
_TILE, _FIELD, _STRIDE = 12, 12, 6


def attention_maps(
    model: keras.Model, images: np.ndarray, batch_size: int = 250
) -> np.ndarray:
    """How each head distributes its attention over each image.

    A head of PrediNet has two maps, softmax(Q1 Kᵀ) and softmax(Q2 Kᵀ). The
    output of an MHA head is Σᵢ aᵢ Vᵢ, where the weights a = wᵀ softmax(Q Kᵀ)
    have signs. Its one map is |aᵢ| / Σ |a|: the share of each location in the
    output. Reference: Fig. 6a of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307). The map of an MHA is our definition.

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"` or `"mha"`, or any model that declares such a part
            `"central"`.
        images: uint8 array `(batch, 36, 36, 3)`.
        batch_size: Number of images in a batch of the computation.

    Returns:
        float32 array `(batch, num_heads, num_maps, height, width)`, with 2
        maps for PrediNet and 1 for MHA. Each map sums to 1.

    Raises:
        ValueError: If the central module has no heads, or its input is not an
            image.

    Example:

    >>> from keras_relational import models
    >>> model = models.relations_classifier("predinet")
    >>> attention_maps(model, np.zeros((3, 36, 36, 3), "uint8")).shape
    (3, 32, 2, 5, 5)
    """
    layer = layer_with_heads(model)
    # The first tensor is the input. A mask may follow.
    shape = tuple(keras.tree.flatten(layer.input)[0].shape)
    if len(shape) != 4:
        raise ValueError(
            "Heat maps need a central module that reads an image (batch, "
            "height, width, m). Received one that reads a set of shape "
            f"{shape}"
        )
    _, height, width, _ = shape
    maps = predict(_maps(model), images, batch_size).astype("float32")
    return maps.reshape(*maps.shape[:3], height, width)


@once_for_each_model
def _maps(model):
    """A model from images to maps `(batch, num_heads, num_maps, n)`."""
    layer = layer_with_heads(model)
    before = keras.Model(model.inputs[0], keras.tree.flatten(layer.input))

    def read(images):
        entities, *masks = keras.tree.flatten(before(images))
        mask = masks[0] if masks else None
        _, scores = layer(entities, mask=mask, return_attention_scores=True)
        if isinstance(layer, PrediNet):
            return ops.stack(scores, axis=2)
        weights = ops.transpose(layer.position_kernel)[:, None]
        weights, scores = (ops.cast(x, "float32") for x in (weights, scores))
        parts = ops.abs(ops.matmul(weights, scores))
        total = ops.sum(parts, axis=-1, keepdims=True)
        return parts / ops.maximum(total, float(np.finfo("float32").tiny))

    return CompiledPart(model, read)


def as_float32(tensor: keras.KerasTensor) -> np.ndarray:
    """Converts a tensor of any precision to a float32 array.

    Args:
        tensor: Float tensor.
    """
    return ops.convert_to_numpy(tensor).astype("float32")


def content_masks(images: np.ndarray) -> np.ndarray:
    """Which locations of the encoded image show an object.

    A location sees 12 × 12 pixels, and the next location sees the pixels 6
    further to the right or below. The mask is 0 if none of these pixels
    contains an object, 1 if more than 90 % do, and .5 otherwise. Reference: the
    content mask of [Shanahan et al., 2020](https://arxiv.org/abs/1905.10307),
    section S2.2.

    A pixel counts as an object if anything is drawn on its tile, even if the
    pixel itself is black. The coloured pixels of an object never fill more than
    56 % of a tile, so if only these counted, no mask could be 1.

    Args:
        images: uint8 array `(batch, 36, 36, 3)` of the Relations Game.

    Returns:
        float32 array `(batch, 5, 5)` of 0, .5 and 1.

    Raises:
        ValueError: If the images have another shape.

    Example:

    >>> image = np.zeros((1, 36, 36, 3), "uint8")
    >>> image[0, 16:19, 16:19] = 64  # one block, on the middle tile
    >>> content_masks(image)[0].tolist()[2]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    images = np.asarray(images)
    if images.shape[1:] != (36, 36, 3):
        raise ValueError(
            "Content masks are defined for images of the Relations Game, "
            f"(batch, 36, 36, 3). Received: images.shape={images.shape}"
        )
    tiles = images.reshape(-1, 3, _TILE, 3, _TILE, 3).any(axis=(2, 4, 5))
    pixels = tiles.repeat(_TILE, axis=1).repeat(_TILE, axis=2)
    fields = np.lib.stride_tricks.sliding_window_view(
        pixels, (_FIELD, _FIELD), axis=(1, 2)
    )[:, ::_STRIDE, ::_STRIDE]
    share = fields.mean(axis=(3, 4))
    return np.select([share > 0.9, share > 0], [1, 0.5]).astype("float32")


def object_attention(maps: np.ndarray, images: np.ndarray) -> np.ndarray:
    """How much each head attends to objects (1) or to the background (0).

    The sum over the locations of attention × `content_masks`. Reference: the
    top of Fig. S9 of [Shanahan et al., 2020](https://arxiv.org/abs/1905.10307),
    which uses 1,000 images.

    Args:
        maps: Array `(batch, num_heads, num_maps, 5, 5)` of `attention_maps`.
        images: The uint8 images `(batch, 36, 36, 3)` of these maps.

    Returns:
        float32 array `(batch, num_heads, num_maps)` in 0..1.

    Raises:
        ValueError: If the shapes of maps and images do not match.
    """
    masks = content_masks(images)
    if (len(maps), *maps.shape[3:]) != masks.shape:
        raise ValueError(
            "Maps (batch, num_heads, num_maps, 5, 5) and images (batch, 36, "
            "36, 3) must belong to the same batch. Received: maps.shape="
            f"{maps.shape}, images.shape={images.shape}"
        )
    return np.einsum("bhmyx,byx->bhm", maps, masks)


def attended_locations(maps: np.ndarray) -> np.ndarray:
    """The mean location that each head attends to.

    The sum over the locations of attention × index. The index counts the
    locations row by row from 0. If the result hardly changes between images,
    the head attends to a fixed location or, for a result near the middle, to
    all locations evenly. A head that chooses one of 5 × 5 locations at random
    has a standard deviation of 7.2. Reference: the position mask of [Shanahan
    et al., 2020](https://arxiv.org/abs/1905.10307), section S2.2 and middle of
    Fig. S9.

    Args:
        maps: Array `(batch, num_heads, num_maps, height, width)` of
            `attention_maps`.

    Returns:
        float32 array `(batch, num_heads, num_maps)`, in 0..height × width − 1.

    Example:

    >>> maps = np.zeros((1, 1, 1, 5, 5), "float32")
    >>> maps[..., 1, 2] = 1
    >>> attended_locations(maps).item()
    7.0
    """
    height, width = maps.shape[3:]
    indices = np.arange(height * width, dtype="float32").reshape(height, width)
    return np.einsum("bhmyx,yx->bhm", maps, indices)


def object_heads(objects: np.ndarray, threshold: float = 0.9) -> np.ndarray:
    """The heads that attend to objects in all of their maps.

    For such a head, the mean of `object_attention` over the images is at least
    `threshold` in every map. Reference: the heads "attending to two objects" of
    [Shanahan et al., 2020](https://arxiv.org/abs/1905.10307), sections S2.2 and
    S2.3. The paper gives no threshold.

    Args:
        objects: Array `(batch, num_heads, num_maps)` of `object_attention`.
        threshold: Number between 0 and 1.

    Returns:
        Integer array of the numbers of heads, from 0, ascending. It may be
        empty.

    Example:

    >>> object_heads(np.array([[[0.95, 1.0], [0.95, 0.2]]]))
    array([0])
    """
    return np.flatnonzero((objects.mean(axis=0) >= threshold).all(axis=-1))


def head_weights(model: keras.Model) -> np.ndarray:
    """How much weight the output MLP gives to each head.

    The mean absolute value of the weights from the head's outputs to the part
    `"hidden"`. Reference: the bottom of Fig. S9 of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307).

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"` or `"mha"`, or any model that declares such a part
            `"central"`.

    Returns:
        float32 array `(num_heads,)`.

    Raises:
        ValueError: If the central module has no heads.

    Example:

    >>> from keras_relational import models
    >>> head_weights(models.relations_classifier("predinet")).shape
    (32,)
    """
    layer = layer_with_heads(model)
    kernel = as_float32(models.part(model, "hidden").kernel)
    # Further rows of the kernel belong to the one-hot code of a task.
    of_heads = np.abs(kernel[: layer.output.shape[-1]])
    return of_heads.reshape(layer.num_heads, -1).mean(axis=1)


def plot_attention_maps(
    images: np.ndarray, maps: np.ndarray, heads: Iterable[int] | None = None
) -> Figure:
    """Draws heat maps of attention over images: Fig. 6a.

    Each row shows one image: first the image alone, then once for each head
    and map. A cell of a heat map is centred on the pixels that its location
    sees.

    Args:
        images: uint8 array `(batch, 36, 36, 3)` of a few images.
        maps: Array `(batch, num_heads, num_maps, 5, 5)` of `attention_maps`.
        heads: Numbers of the heads to draw, from 0. By default the first four,
            as in the paper.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the shapes of maps and images do not match.
    """
    if len(maps) != len(images):
        raise ValueError(
            "There must be maps for each image. Received: "
            f"maps.shape={maps.shape}, images.shape={images.shape}"
        )
    num_maps, height, width = maps.shape[2:]
    if heads is None:
        heads = range(min(4, maps.shape[1]))
    shown = [(head, number) for head in heads for number in range(num_maps)]
    columns = 1 + len(shown)
    figure = new_figure(1.2 * columns + 0.8, 1.25 * len(images) + 0.3)
    axes = figure.subplots(len(images), columns, squeeze=False)
    # From the centre of the first location's pixels to the centre of the last.
    first = (_FIELD - _STRIDE) / 2 - 0.5
    extent = (first, first + _STRIDE * width, first + _STRIDE * height, first)
    highest = max(maps[:, head, number].max() for head, number in shown)
    for row, image, of_image in zip(axes, images, maps, strict=True):
        row[0].imshow(image)
        for panel, (head, number) in zip(row[1:], shown, strict=True):
            panel.imshow(image.mean(axis=-1), cmap="gray", vmin=0, vmax=400)
            heat = panel.imshow(
                of_image[head, number],
                cmap="inferno",
                vmin=0,
                vmax=highest,
                alpha=0.8 * of_image[head, number] / highest,
                extent=extent,
            )
            panel.set(xlim=(-0.5, 35.5), ylim=(35.5, -0.5))
    axes[0, 0].set_title("image")
    for panel, (head, number) in zip(axes[0, 1:], shown, strict=True):
        which = f", E{number + 1}" if num_maps > 1 else ""
        panel.set_title(f"head {head}{which}")
    for panel in axes.flat:
        panel.set(xticks=[], yticks=[])
    figure.colorbar(heat, ax=axes, label="attention", shrink=0.8)
    return figure


def plot_head_attention(
    objects: np.ndarray,
    locations: np.ndarray,
    weights: np.ndarray,
    threshold: float = 0.9,
) -> Figure:
    """Draws what each head attends to, and its weight: Fig. S9.

    Three plots over the heads show the attention to objects, the attended
    location, and the weight in the output MLP. The first two have mean and
    standard deviation over the images. The heads of `object_heads` are shaded.

    Args:
        objects: Array `(batch, num_heads, num_maps)` of `object_attention`.
        locations: Array of the same shape, of `attended_locations`.
        weights: Array `(num_heads,)` of `head_weights`.
        threshold: Number between 0 and 1, the threshold of `object_heads`. It
            is drawn as a line.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    num_heads, num_maps = objects.shape[1:]
    heads = np.arange(num_heads)
    figure = new_figure(max(6, 0.32 * num_heads), 7.5)
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    for panel, values in ((top, objects), (middle, locations)):
        for number in range(num_maps):
            shift = 0.3 * (number - (num_maps - 1) / 2)
            panel.errorbar(
                heads + shift,
                values[:, :, number].mean(axis=0),
                values[:, :, number].std(axis=0),
                fmt="o",
                markersize=4,
                elinewidth=1,
                color=f"C{number}",
                label=f"E{number + 1}" if num_maps > 1 else None,
            )
    top.axhline(threshold, color="black", linewidth=1, linestyle="--")
    top.set(ylim=(-0.05, 1.3), ylabel="attention to objects")
    middle.set(ylabel="location (0 to 24, row by row)")
    bottom.bar(heads, weights, color="tab:gray")
    bottom.set(
        xlabel="head (shaded: an object head)",
        xticks=heads,
        xlim=(-0.6, num_heads - 0.4),
        ylabel="mean |weight| in output MLP",
    )
    for panel in (top, middle, bottom):
        for head in object_heads(objects, threshold):
            panel.axvspan(
                head - 0.5, head + 0.5, color="gold", alpha=0.3, lw=0, zorder=0
            )
    if num_maps > 1:
        top.legend(ncols=num_maps, loc="upper right")
    return figure
