"""Encoder, central module and output MLP of the Relations Game."""

import keras

from keras_relational.layers import AppendCoordinates
from keras_relational.layers import MultiHeadAttentionPooling
from keras_relational.layers import PrediNet
from keras_relational.layers import RelationNetwork
from keras_relational.layers import StridedConv2D

CENTRAL_MODULES = ("predinet", "mlp1", "mlp2", "relation_network", "mha")


def relations_classifier(
    central="predinet",
    num_classes=2,
    num_tasks=0,
    num_heads=32,
    num_relations=16,
    key_dim=16,
):
    """Builds a classifier of Relations Game images, on any central module.

    One convolution, coordinates, a central module, an MLP with one hidden
    layer: Figs. 1b and 3 and Table S2 of [Shanahan et al., 2020](
    https://arxiv.org/abs/1905.10307), with k = 32 heads as their section 4 says
    and Table S2 does not. Every central module returns
    `num_heads * (num_relations + 4)` numbers. Initial weights are truncated
    normal of deviation 0.1 and biases 0.1, as in the authors' model, but for
    the weights of positions of `"mha"` (see `MultiHeadAttentionPooling`); call
    `keras.utils.set_random_seed` first for the same ones every time.

    The layers are named `"encoder"`, `"coordinates"`, `"central"`, `"hidden"`
    and `"logits"`.

    Args:
        central: One of `CENTRAL_MODULES`. `"mlp1"` and `"mlp2"` are one and two
            dense layers, `"mha"` is `MultiHeadAttentionPooling`.
        num_classes: Number of labels; 4 for the task `"colour_and_shape"`.
        num_tasks: With 1 or more, the model takes a task id beside each image,
            whose one-hot code joins the central module's output; that of an id
            of `num_tasks` or more is all zeros.
        num_heads: k in the paper.
        num_relations: j in the paper.
        key_dim: Size of PrediNet's keys; those of `"mha"` have size 16.

    Returns:
        `keras.Model` from uint8 images `(batch, 36, 36, 3)`, or from a pair of
        those and uint8 task ids `(batch,)`, to logits `(batch, num_classes)`.
        Pixels are divided by 256 inside.

    Raises:
        ValueError: If `central` is not one of `CENTRAL_MODULES`.

    Example:

    >>> relations_classifier("predinet").output_shape
    (None, 2)
    """
    if central not in CENTRAL_MODULES:
        raise ValueError(
            f"Unknown central module {central!r}. Expected one of: "
            f"{', '.join(CENTRAL_MODULES)}"
        )
    images = keras.Input((36, 36, 3), dtype="uint8", name="image")
    x = keras.layers.Rescaling(1 / 256, name="rescaling")(images)
    x = StridedConv2D(
        32, 12, strides=6, activation="relu", name="encoder", **_initial()
    )(x)
    x = AppendCoordinates(high=0.8, name="coordinates")(x)
    x = _central_module(central, num_heads, num_relations, key_dim)(x)
    inputs = images
    if num_tasks:
        tasks = keras.Input((), dtype="uint8", name="task")
        inputs = (images, tasks)
        code = keras.layers.CategoryEncoding(
            num_tasks, output_mode="one_hot", name="task_code"
        )(tasks)
        x = keras.layers.Concatenate(name="with_task")([x, code])
    x = keras.layers.Dense(8, activation="relu", name="hidden", **_initial())(x)
    x = keras.layers.Dense(num_classes, name="logits", **_initial())(x)
    return keras.Model(inputs, x, name=f"{central}_relations_classifier")


def _central_module(central, num_heads, num_relations, key_dim):
    head_size = num_relations + 4
    units = num_heads * head_size
    if central == "predinet":
        return PrediNet(
            num_heads,
            num_relations,
            key_dim,
            kernel_initializer=_initial_kernel(),
            name="central",
        )
    if central == "relation_network":
        return RelationNetwork(
            units, 256, kernel_initializer=_initial_kernel(), name="central"
        )
    if central == "mha":
        return MultiHeadAttentionPooling(
            num_heads,
            key_dim=16,
            value_dim=head_size,
            kernel_initializer=_initial_kernel(),
            name="central",
        )
    widths = (units,) if central == "mlp1" else (1024, units)
    return keras.Sequential(
        [
            keras.layers.Flatten(),
            *(
                keras.layers.Dense(width, activation="relu", **_initial())
                for width in widths
            ),
        ],
        name="central",
    )


def _initial_kernel():
    return keras.initializers.TruncatedNormal(stddev=0.1)


def _initial():
    """Fresh initializers: one that is shared draws the same values again."""
    return {
        "kernel_initializer": _initial_kernel(),
        "bias_initializer": keras.initializers.Constant(0.1),
    }
