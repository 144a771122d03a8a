"""Which heads attend to objects, and how many are necessary.

Figs. S9 and S10 of Shanahan et al., 2020, *An Explicitly Relational Neural
Network Architecture*. Models are those of `models.relations_classifier` with
the central module `"predinet"` or `"mha"`.
"""

import keras
import numpy as np
from keras import ops

from keras_relational import models
from keras_relational.analysis.attention import as_float32
from keras_relational.analysis.attention import head_contributions
from keras_relational.analysis.attention import layer_with_heads
from keras_relational.analysis.plotting import new_figure

# Pixels: a tile of the board, and the field and stride of the encoder.
_TILE, _FIELD, _STRIDE = 12, 12, 6
# Of the attention, for an object head. The paper gives no threshold.
THRESHOLD = 0.9


def content_masks(images):
    """Which locations of the encoded images show an object: `(batch, 5, 5)`.

    A location sees 12 × 12 pixels, 6 further than the one before. The mask is 0
    if none of them contains an object, 1 if more than 90 % do, and .5 otherwise
    (section S2.2). A pixel counts if anything is drawn on its tile: the
    coloured pixels of an object never fill more than 56 % of a tile.
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


def object_attention(maps, images):
    """How much each head attends to objects (1) or to the background (0).

    The sum of attention × `content_masks` (top of Fig. S9), `(batch, num_heads,
    num_maps)`.
    """
    masks = content_masks(images)
    return np.einsum("bhmyx,byx->bhm", maps, masks)


def attended_locations(maps):
    """The mean location that each head attends to: `(batch, heads, maps)`.

    Locations count row by row from 0 (section S2.2 and middle of Fig. S9). A
    head that chooses one at random has a standard deviation of 7.2.
    """
    height, width = maps.shape[3:]
    indices = np.arange(height * width, dtype="float32").reshape(height, width)
    return np.einsum("bhmyx,yx->bhm", maps, indices)


def object_heads(objects, threshold=THRESHOLD):
    """The numbers of the heads that attend to objects in all of their maps.

    Of the mean `object_attention` over the images (sections S2.2 and S2.3).
    """
    return np.flatnonzero((objects.mean(axis=0) >= threshold).all(axis=-1))


def head_weights(model):
    """The mean absolute weight of each head in the output MLP (Fig. S9)."""
    layer = layer_with_heads(model)
    kernel = as_float32(models.part(model, "hidden").kernel)
    # Further rows of the kernel belong to the one-hot code of a task.
    of_heads = np.abs(kernel[: layer.output.shape[-1]])
    return of_heads.reshape(layer.num_heads, -1).mean(axis=1)


def plot_head_attention(objects, locations, weights, threshold=THRESHOLD):
    """Draws the attention of each head, and its weight: Fig. S9.

    Mean and standard deviation are over the images. Object heads are shaded.
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


def pruned_accuracy(model, x, labels, kept, batch_size=250):
    """Accuracy when only some heads are kept and the others give zeros.

    The first layer of the output MLP is linear in the heads. If head `h`
    contributes `C^h`, it computes `Σ kept^h C^h + b`. Encoder and central
    module therefore run once, and each set of heads, a row of the boolean
    `kept`, costs one product with `C` (section S2.3).
    """
    layer = layer_with_heads(model)
    kept, labels = np.asarray(kept), np.asarray(labels)
    of_heads, always = head_contributions(model, x, batch_size)
    hidden, last = models.part(model, "hidden"), models.part(model, "logits")
    last_kernel, last_bias = map(as_float32, (last.kernel, last.bias))
    # Units come before examples: (units, batch), (num_heads, units * batch).
    always = np.ascontiguousarray(always.T)
    of_heads = of_heads.transpose(1, 2, 0).reshape(layer.num_heads, -1)

    # A model from sets of heads to the number of right answers.
    sets = keras.Input((layer.num_heads,))
    before = ops.reshape(ops.matmul(sets, of_heads), (-1, *always.shape))
    after = hidden.activation(before + always)
    logits = ops.matmul(last_kernel.T, after) + last_bias[:, None]
    right = ops.equal(ops.argmax(logits, axis=1), labels.astype("int32"))
    count = keras.Model(sets, ops.sum(ops.cast(right, "int32"), axis=1))
    # A batch of sets should fit in a processor's cache: 1 million numbers.
    sets_at_once = max(1, 1_000_000 // always.size)
    kept = kept.astype("float32")
    counts = count.predict(kept, batch_size=sets_at_once, verbose=0)
    return counts / len(labels)


def pruning_curve(model, x, labels, heads=None, num_subsets=100, seed=0):
    """Accuracy with random subsets of q of the heads, for each number q.

    Fig. S10 shows mean and best of 100 subsets of each size. Row q − 1 of the
    result `(len(heads), num_subsets)` is for q heads.
    """
    num_heads = layer_with_heads(model).num_heads
    heads = np.arange(num_heads) if heads is None else np.unique(list(heads))
    sizes = np.arange(1, len(heads) + 1).repeat(num_subsets)
    order = np.random.default_rng(seed).random((len(sizes), len(heads)))
    kept = np.zeros((len(sizes), num_heads), bool)
    # A subset is the q heads with the lowest random numbers.
    kept[:, heads] = order.argsort(axis=1).argsort(axis=1) < sizes[:, None]
    accuracies = pruned_accuracy(model, x, labels, kept)
    return accuracies.reshape(len(heads), num_subsets)


def plot_pruning(accuracies):
    """Draws each `pruning_curve`, mean and best (dashed), by name: Fig. S10."""
    figure = new_figure(6, 4)
    panel = figure.subplots()
    for number, (name, of_sizes) in enumerate(accuracies.items()):
        sizes = np.arange(1, len(of_sizes) + 1)
        for values, style, statistic in (
            (of_sizes.mean(axis=1), "-", "mean"),
            (of_sizes.max(axis=1), "--", "best"),
        ):
            panel.plot(
                sizes,
                100 * values,
                style,
                marker=".",
                color=f"C{number}",
                label=f"{name}, {statistic}",
            )
    panel.set(xlabel="heads kept", ylabel="accuracy (%)")
    panel.grid(alpha=0.3)
    panel.legend()
    return figure
