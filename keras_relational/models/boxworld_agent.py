"""Networks of agents, from an image to a policy and a value."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_relational import layers
from keras_relational.layers._max_pooling import EntityMaxPooling
from keras_relational.layers._strided_convolution import StridedConv2D
from keras_relational.models.convolutions import check_channels_last
from keras_relational.models.declared_roles import declare
from keras_relational.validation import check_choice

NETWORKS = ("relational", "simplicial", "convolutional")


def boxworld_agent(
    network: str = "simplicial",
    image_shape: Sequence[int] = (7, 10, 3),
    num_actions: int = 4,
    num_iterations: int = 2,
    num_virtual_entities: int = 2,
    score: str = "unsigned",
    cell: keras.layers.Layer | None = None,
) -> keras.Model:
    """Builds the network of an agent that plays BoxWorld.

    Two 2 × 2 convolutions of 12 and 24 features turn the image into entities,
    and each entity gets its position. A Transformer block updates the entities.
    A maximum over the entities pools them. Four dense layers of 256 units then
    lead to logits and a value. The sizes are those in section 4 of [Clift et
    al., 2019](https://arxiv.org/abs/1909.00668): entities of size 64, two
    1-simplicial heads of 32, one 2-simplicial head of 48, and 64 hidden units.
    All iterations share the block's attention and dense weights, but each
    iteration has its own layer normalizations.

    With a `cell` the agent has a memory: the last dense layer feeds a recurrent
    layer, which feeds the policy and the value. The agent then takes sequences
    of frames of any length. Its memory is reset where an episode begins. If the
    cell has several object files, such as a `SCOFFCell`, `SlotPooling` follows
    the recurrent layer. It makes the object files exchangeable, as in section 4
    of [Goyal et al., 2020](https://arxiv.org/abs/2006.16225).

    The model declares the part `"policy"`. All networks but the convolutional
    one have the parts `"entities"` and `"block"`. The simplicial network has
    `"virtual_entities"`, too. With a cell, `"core"` is the recurrent layer.

    Args:
        network: `"relational"`, `"simplicial"`, or `"convolutional"`. The
            convolutional network is a small baseline: the two convolutions and
            two dense layers of 256 units.
        image_shape: Shape of an image, `(rows, columns + 1, 3)`, at least `(3,
            3, 3)`.
        num_actions: Number of actions.
        num_iterations: Number of times that the block is applied.
        num_virtual_entities: Number of virtual entities of `"simplicial"`, M in
            the paper.
        score: `score` of `layers.TwoSimplicialAttention`, for `"simplicial"`.
        cell: Optional Keras RNN cell, such as `keras.layers.GRUCell(256)`.

    Returns:
        `keras.Model` from uint8 images `(batch, *image_shape)` to a pair:
        logits `(batch, num_actions)` and values `(batch,)`. The model divides
        pixels by 255. With a `cell` the input is a list: images `(batch, time,
        *image_shape)`, booleans `(batch, time)` that are `True` for the first
        frame of an episode, and the states of the cell, each `(batch, size)`.
        The output is a list, too: logits `(batch, time, num_actions)`, values
        `(batch, time)`, and the states after the last frame.

    Raises:
        ValueError: If `network` is unknown, the image is too small, or Keras'
            data format is not channels last.

    Example:

    >>> logits, value = boxworld_agent("relational").output_shape
    >>> logits, value
    ((None, 4), (None,))
    """
    check_channels_last()
    check_choice("network", network, NETWORKS)
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
    inputs, states, parts = images, [], ["policy"]
    if network != "convolutional":
        parts += ["entities", "block"]
    if network == "simplicial":
        parts.append("virtual_entities")
    if cell is not None:
        parts.append("core")
        core = layers.EpisodicRNN(cell, name="core")
        is_first = keras.Input(time, dtype="bool", name="is_first")
        states = [
            keras.Input((size,), name=f"state_{i}")
            for i, size in enumerate(keras.tree.flatten(cell.state_size))
        ]
        inputs = [images, is_first, *states]
        x, *states = core(x, is_first, states)
        num_object_files = getattr(cell, "num_object_files", 1)
        if num_object_files > 1:
            x = layers.SlotPooling(num_object_files, 256, name="slot_pooling")(
                x
            )
    logits = keras.layers.Dense(num_actions, use_bias=False, name="policy")(x)
    value = keras.layers.Dense(1, use_bias=False, name="value_column")(x)
    value = ops.squeeze(value, -1)
    outputs = (logits, value, *states)
    model = keras.Model(inputs, outputs, name=f"{network}_agent")
    return declare(
        model,
        {"policy": "logits", "value": "raw"},
        states=[f"state_{i}" for i in range(len(states))],
        parts={name: name for name in parts},
    )


def _after_transformer(x, network, num_iterations, num_virtual_entities, score):
    x = keras.layers.Dense(62, use_bias=False, name="embedding")(x)
    x = layers.AppendCoordinates(-1.0, 1.0, order="yx", name="coordinates")(x)
    entities = keras.layers.Reshape((-1, 64), name="entities")(x)
    if network == "relational":
        entities = layers.RelationalTransformerBlock(
            num_heads=2,
            key_dim=32,
            hidden_units=64,
            num_iterations=num_iterations,
            name="block",
        )(entities)
    else:
        virtual_entities = layers.VirtualEntities(
            num_virtual_entities, name="virtual_entities"
        )(entities)
        entities, _ = layers.SimplicialTransformerBlock(
            num_heads=2,
            key_dim=32,
            num_simplicial_heads=1,
            simplicial_key_dim=48,
            hidden_units=64,
            num_iterations=num_iterations,
            score=score,
            name="block",
        )(entities, virtual_entities)
    return EntityMaxPooling(name="pooling")(entities)
