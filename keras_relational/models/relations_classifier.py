"""Encoder, central module and output MLP of the Relations Game."""

import keras

from keras_relational import layers
from keras_relational.layers._strided_convolution import StridedConv2D
from keras_relational.models.convolutions import check_channels_last
from keras_relational.models.declared_roles import declare
from keras_relational.validation import check_choice

CENTRAL_MODULES = ("predinet", "mlp1", "mlp2", "relation_network", "mha")


def relations_classifier(
    central: str = "predinet",
    num_classes: int = 2,
    num_tasks: int = 0,
    num_heads: int = 32,
    num_relations: int = 16,
    key_dim: int = 16,
) -> keras.Model:
    """Builds a classifier of Relations Game images around a central module.

    The model is one convolution, coordinates, a central module, and an MLP with
    one hidden layer, as in Figs. 1b and 3 and Table S2 of [Shanahan et al.,
    2020](https://arxiv.org/abs/1905.10307). The default of k = 32 heads is from
    section 4 of the paper. Table S2 prints 16. Every central module returns
    `num_heads * (num_relations + 4)` numbers. As in the authors' model, initial
    weights are truncated normal with deviation 0.1, and initial biases are 0.1.
    The position weights of `"mha"` are an exception: they have the default of
    `MultiHeadAttentionPooling`. For reproducible weights call
    `keras.utils.set_random_seed` first.

    The model declares the parts `"encoder"`, `"coordinates"`, `"central"`,
    `"hidden"` and `"logits"`.

    Args:
        central: The central module: `"predinet"`, `"mlp1"` (one dense layer),
            `"mlp2"` (two dense layers), `"relation_network"` or `"mha"`
            (`MultiHeadAttentionPooling`).
        num_classes: Number of labels. The task `"colour_and_shape"` has 4.
        num_tasks: Number of tasks. With 1 or more, the model also takes a task
            id for each image. The one-hot code of the id is concatenated with
            the output of the central module. An id of `num_tasks` or more gives
            a code of zeros.
        num_heads: Number of heads, k in the paper.
        num_relations: Number of relations of a head, j in the paper.
        key_dim: Size of PrediNet's keys. The keys of `"mha"` have size 16.

    Returns:
        `keras.Model` from uint8 images `(batch, 36, 36, 3)` to logits `(batch,
        num_classes)`. With tasks, its input is a pair of images and uint8 task
        ids `(batch,)`. The model divides pixels by 256.

    Raises:
        ValueError: If `central` is not one of `CENTRAL_MODULES`, or Keras' data
            format is not channels last.

    Example:

    >>> relations_classifier("predinet").output_shape
    (None, 2)
    """
    check_channels_last()
    check_choice("central module", central, CENTRAL_MODULES)
    images = keras.Input((36, 36, 3), dtype="uint8", name="image")
    x = keras.layers.Rescaling(1 / 256, name="rescaling")(images)
    x = StridedConv2D(
        32, 12, strides=6, activation="relu", name="encoder", **_initial()
    )(x)
    x = layers.AppendCoordinates(high=0.8, name="coordinates")(x)
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
    model = keras.Model(inputs, x, name=f"{central}_relations_classifier")
    parts = ("encoder", "coordinates", "central", "hidden", "logits")
    return declare(
        model, {"logits": "logits"}, parts={name: name for name in parts}
    )


def _central_module(central, num_heads, num_relations, key_dim):
    head_size = num_relations + 4
    units = num_heads * head_size
    if central == "predinet":
        return layers.PrediNet(
            num_heads,
            num_relations,
            key_dim,
            kernel_initializer=_initial_kernel(),
            name="central",
        )
    if central == "relation_network":
        return layers.RelationNetwork(
            units, 256, kernel_initializer=_initial_kernel(), name="central"
        )
    if central == "mha":
        return layers.MultiHeadAttentionPooling(
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
    """New initializers, since a shared one would draw the same values twice."""
    return {
        "kernel_initializer": _initial_kernel(),
        "bias_initializer": keras.initializers.Constant(0.1),
    }
