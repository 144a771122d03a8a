"""Where the heads of a central module look, and how much each one decides."""

from collections.abc import Iterable
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_relational import models
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.analysis.compiled_parts import once_for_each_model
from keras_relational.analysis.plotting import Figure
from keras_relational.analysis.plotting import new_figure
from keras_relational.layers import MultiHeadAttentionPooling
from keras_relational.layers import PrediNet
from keras_relational.training.supervised import predictions

# Pixels: the field and the stride of the encoder of the Relations Game.
_FIELD, _STRIDE = 12, 6


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
        images: Images `(batch, height, width, channels)`.
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
    maps = predictions(_maps(model), images, batch_size).astype("float32")
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


def layer_with_heads(
    model: keras.Model,
) -> PrediNet | MultiHeadAttentionPooling:
    """The part `"central"` of a model; a `ValueError` if it has no heads."""
    layer = models.part(model, "central")
    if isinstance(layer, PrediNet | MultiHeadAttentionPooling):
        return layer
    raise ValueError(
        "Only a PrediNet and a MultiHeadAttentionPooling have heads to look "
        "at. Received a model whose central module is a "
        f"{type(layer).__name__}."
    )


def plot_attention_maps(
    images: np.ndarray, maps: np.ndarray, heads: Iterable[int] | None = None
) -> Figure:
    """Draws heat maps of attention over images of the Relations Game.

    Each row shows one image: first the image alone, then once for each head
    and map. A cell of a heat map is centred on the pixels that its location
    sees. Reference: Fig. 6a of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307).

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


def head_effects(
    model: keras.Model,
    x: np.ndarray | Sequence[np.ndarray],
    others: np.ndarray | Sequence[np.ndarray],
    batch_size: int = 250,
) -> np.ndarray:
    """How much each head decides: its effect on the logits of each image.

    The effect of a head is the model's logits less the logits that result if
    the head's output is replaced by its mean output over other images. A head
    that says the same about all images has no effect.

    Args:
        model: As for `attention_maps`.
        x: The model's input: uint8 images `(batch, 36, 36, 3)`, or a pair of
            images and task ids.
        others: Further inputs of the model, from which the means are taken.
        batch_size: Number of images in a batch of the computation.

    Returns:
        Array `(batch, num_heads, num_classes)`.

    Raises:
        ValueError: If the central module has no heads.

    Example:

    >>> from keras_relational import models
    >>> model = models.relations_classifier("predinet")
    >>> images = np.zeros((5, 36, 36, 3), "uint8")
    >>> head_effects(model, images[:1], images).shape
    (1, 32, 2)
    """
    of_heads, always = head_contributions(model, x, batch_size)
    means = head_contributions(model, others, batch_size)[0].mean(axis=0)
    hidden, last = models.part(model, "hidden"), models.part(model, "logits")
    last_kernel, last_bias = map(as_float32, (last.kernel, last.bias))

    def logits(before):
        return as_float32(hidden.activation(before)) @ last_kernel + last_bias

    before = of_heads.sum(axis=1, keepdims=True) + always[:, None]
    return logits(before) - logits(before - of_heads + means)


def head_contributions(
    model: keras.Model,
    x: np.ndarray | Sequence[np.ndarray],
    batch_size: int = 250,
) -> tuple[np.ndarray, np.ndarray]:
    """The part of each head in the first layer of the output MLP.

    Returns `(batch, num_heads, units)`, and the part without heads, of the bias
    and the one-hot code of a task, `(batch, units)`.
    """
    layer, hidden = layer_with_heads(model), models.part(model, "hidden")
    kernel, bias = map(as_float32, (hidden.kernel, hidden.bias))
    features = predictions(_features(model), x, batch_size).astype("float32")
    size, num_heads = layer.output.shape[-1], layer.num_heads
    of_heads = np.einsum(
        "bhs,hsu->bhu",
        features[:, :size].reshape(len(features), num_heads, -1),
        kernel[:size].reshape(num_heads, -1, len(bias)),
        optimize=True,
    )
    return of_heads, features[:, size:] @ kernel[size:] + bias


@once_for_each_model
def _features(model):
    """A model to the central output and the one-hot code of a task, in one."""
    hidden = models.part(model, "hidden")
    return CompiledPart(model, keras.Model(model.inputs, hidden.input))


def as_float32(tensor: keras.KerasTensor) -> np.ndarray:
    """A tensor of any precision as a float32 array."""
    return ops.convert_to_numpy(tensor).astype("float32")
