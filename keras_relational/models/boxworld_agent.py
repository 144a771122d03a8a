"""Networks of BoxWorld agents: from an image to a policy and a value."""

import keras
from keras import ops

from keras_relational.layers import AppendCoordinates
from keras_relational.layers import EpisodicRNN
from keras_relational.layers import RelationalTransformerBlock
from keras_relational.layers import SCOFFCell
from keras_relational.layers import SimplicialTransformerBlock
from keras_relational.layers import SlotPooling
from keras_relational.layers import StridedConv2D
from keras_relational.layers import VirtualEntities

NETWORKS = ("relational", "simplicial", "convolutional")


def boxworld_agent(
    network="simplicial",
    image_shape=(7, 10, 3),
    num_actions=4,
    num_iterations=2,
    num_virtual_entities=2,
    score="unsigned",
    cell=None,
):
    """Builds the network of an agent that plays BoxWorld.

    Two 2×2 convolutions of 12 and 24 features make entities of the image, to
    which their position is appended; a Transformer block is applied to them,
    the largest of each feature taken, and four dense layers of 256 lead to
    logits and value. Sizes as in section 4 of [Clift et al., 2019](
    https://arxiv.org/abs/1909.00668): entities of size 64, two 1-simplicial
    heads of 32, one 2-simplicial head of 48, 64 hidden units. The weights of
    the block are the same in every iteration, its normalizations are not.

    With a `cell` the last dense layer feeds a recurrent layer, and that the
    policy and the value: the agent remembers. It then takes sequences of
    frames, of any length, and wipes its memory where an episode begins. Several
    object files of a `SCOFFCell` go through `SlotPooling` first, so that they
    are exchangeable, as in section 4 of [Goyal et al., 2020](
    https://arxiv.org/abs/2006.16225).

    The layers are named `"entities"`, `"block"`, `"virtual_entities"`,
    `"core"`, `"policy"` and `"value"`.

    Args:
        network: `"relational"`, `"simplicial"`, or `"convolutional"`: a small
            network to compare with, the two convolutions and two dense layers
            of 256.
        image_shape: `(rows, columns + 1, 3)`, at least `(3, 3, 3)`.
        num_actions: Number of actions.
        num_iterations: How often the block is applied.
        num_virtual_entities: M in the paper, for `"simplicial"`.
        score: As for `TwoSimplicialAttention`, for `"simplicial"`.
        cell: Optional Keras RNN cell, such as `keras.layers.GRUCell(256)`.

    Returns:
        `keras.Model` from uint8 images `(batch, *image_shape)` to the pair of
        logits `(batch, num_actions)` and values `(batch,)`. Pixels are divided
        by 255 inside. With a `cell` it is a model from the list of images
        `(batch, time, *image_shape)`, booleans `(batch, time)`, `True` for the
        first frame of an episode, and the states of the cell, each `(batch,
        size)`, to the list of logits `(batch, time, num_actions)`, values
        `(batch, time)`, and the states after the last frame.

    Raises:
        ValueError: If `network` is unknown or the image too small.

    Example:

    >>> logits, value = boxworld_agent("relational").output_shape
    >>> logits, value
    ((None, 4), (None,))
    """
    if network not in NETWORKS:
        raise ValueError(
            f"Unknown network {network!r}. Expected one of: "
            f"{', '.join(NETWORKS)}"
        )
    if min(image_shape[:2]) < 3:
        raise ValueError(
            "Two 2 by 2 convolutions need images of 3 by 3 pixels or more. "
            f"Received: image_shape={tuple(image_shape)}"
        )
    time = () if cell is None else (None,)
    images = keras.Input((*time, *image_shape), dtype="uint8", name="image")
    x = images if cell is None else ops.reshape(images, (-1, *image_shape))
    x = keras.layers.Rescaling(1 / 255, name="rescaling")(x)
    for filters in (12, 24):
        x = StridedConv2D(
            filters, 2, activation="relu", name=f"convolution_{filters}"
        )(x)
    if network == "convolutional":
        x = keras.layers.Flatten(name="flatten")(x)
        num_layers = 2
    else:
        x = _after_transformer(
            x, network, num_iterations, num_virtual_entities, score
        )
        num_layers = 4
    for i in range(num_layers):
        x = keras.layers.Dense(256, activation="relu", name=f"hidden_{i}")(x)
    inputs, states = images, []
    if cell is not None:
        core = EpisodicRNN(cell, name="core")
        is_first = keras.Input(time, dtype="bool", name="is_first")
        states = [
            keras.Input((size,), name=f"state_{i}")
            for i, size in enumerate(keras.tree.flatten(cell.state_size))
        ]
        inputs = [images, is_first, *states]
        x, *states = core(x, is_first, states)
        if isinstance(cell, SCOFFCell) and cell.num_object_files > 1:
            x = SlotPooling(cell.num_object_files, 256, name="slot_pooling")(x)
    logits = keras.layers.Dense(num_actions, use_bias=False, name="policy")(x)
    value = keras.layers.Dense(1, use_bias=False, name="value_column")(x)
    value = ops.squeeze(value, -1)
    value = keras.layers.Identity(name="value")(value)
    outputs = (logits, value, *states)
    return keras.Model(inputs, outputs, name=f"{network}_agent")


def _after_transformer(x, network, num_iterations, num_virtual_entities, score):
    x = keras.layers.Dense(62, use_bias=False, name="embedding")(x)
    x = AppendCoordinates(-1.0, 1.0, order="yx", name="coordinates")(x)
    entities = keras.layers.Reshape((-1, 64), name="entities")(x)
    if network == "relational":
        entities = RelationalTransformerBlock(
            num_heads=2,
            key_dim=32,
            hidden_units=64,
            num_iterations=num_iterations,
            name="block",
        )(entities)
    else:
        virtual_entities = VirtualEntities(
            num_virtual_entities, name="virtual_entities"
        )(entities)
        entities, _ = SimplicialTransformerBlock(
            num_heads=2,
            key_dim=32,
            num_simplicial_heads=1,
            simplicial_key_dim=48,
            hidden_units=64,
            num_iterations=num_iterations,
            score=score,
            name="block",
        )(entities, virtual_entities)
    return keras.layers.GlobalMaxPooling1D(name="pooling")(entities)
