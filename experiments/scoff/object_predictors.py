"""Models from where objects are to where each of them is next.

All but one have as many weights for any number of objects: SCOFF, and a GRU
that all objects share, alone or with attention between objects. One GRU over
all objects has a place for each, and its weights are those of `NUM_PLACES`.
"""

import keras
import numpy as np
from keras import ops

from keras_relational import layers
from keras_relational import models

CORES = ("scoff", "attention", "shared_gru", "gru")
NUM_PLACES = 8
LENGTH = 0.1  # Of a step, about: the unit of the read-out.


def object_predictor(
    core,
    num_objects,
    units=32,
    num_bumps=7,
    num_schemata=1,
    num_message_heads=2,
    key_scale=3.0,
    sharpness=None,
):
    """A model from positions `(batch, time, num_objects, 2)` to the next ones.

    States start from the first positions. A dense layer reads how an object
    moves from its state and its position. With a `sharpness` objects may have
    another order at each step: the position of a file of SCOFF is where it
    attends, and file i predicts the object that was number i at first. `"gru"`
    takes and gives `NUM_PLACES` objects, and has `num_objects * units` units.
    """
    if core == "gru":
        return gru_predictor(num_objects * units, num_bumps)
    positions = keras.Input((None, num_objects, 2), name="positions")
    x = PositionCode(num_bumps, name="code")(positions)
    first = keras.layers.Dense(units, name="first_state")(x[:, 0])
    first = keras.layers.Reshape((num_objects * units,))(first)
    place = positions
    if core == "scoff":
        h, scores = scoff(
            x,
            first,
            num_objects,
            units,
            num_message_heads,
            key_scale,
            num_schemata=num_schemata,
        )
        if sharpness is not None:
            attended = ops.log(scores + 1e-9)
            attended = ops.softmax(sharpness * attended, axis=-1)
            place = ops.matmul(attended, positions)
    else:
        heads = num_message_heads if core == "attention" else 0
        cell = SharedGRUCell(units, num_objects, heads)
        recurrent = keras.layers.RNN(cell, return_sequences=True, name="core")
        h = recurrent(x, initial_state=[first])
    h = keras.layers.Reshape((-1, num_objects, units))(h)
    known = keras.layers.Concatenate()([h, place])
    change = LENGTH * keras.layers.Dense(2, name="read_out")(known)
    return _declared(positions, place + change)


def scoff(
    x, first, num_files, units, num_message_heads, key_scale, num_schemata=1
):
    """States of SCOFF's files at each step, and what each attends to.

    The second is `(batch, time, num_files, positions)`.
    """
    recurrent = layers.SCOFF(
        units,
        num_object_files=num_files,
        num_schemata=num_schemata,
        key_dim=units,
        value_dim=units,
        num_message_heads=num_message_heads,
        message_key_dim=16,
        message_value_dim=16,
        gated_messages=num_message_heads > 0,
        position_dim=0,
        return_sequences=True,
        name="core",
    )
    h, (scores, *_) = recurrent(
        x, initial_state=[first], return_attention_scores=True
    )
    cell = recurrent.cell
    for kernel in (cell.query_kernel, cell.key_kernel):
        kernel.assign(key_scale * kernel)
    # The first positions start the files in place of these.
    cell.initial_mean.trainable = cell.initial_scale.trainable = False
    return h, scores[:, :, 0]


def gru_predictor(units, num_bumps=7):
    """One GRU over `NUM_PLACES` places: x, y, and 1 where an object is."""
    shape = NUM_PLACES, 3
    places = keras.Input((None, *shape), name="places")
    positions, is_there = places[..., :2], places[..., 2:]
    x = PositionCode(num_bumps, name="code")(positions)
    x = keras.layers.Concatenate()([x * is_there, is_there])
    x = keras.layers.Reshape((-1, x.shape[-2] * x.shape[-1]))(x)
    first = keras.layers.Dense(units, name="first_state")(x[:, 0])
    recurrent = keras.layers.GRU(units, return_sequences=True, name="core")
    h = recurrent(x, initial_state=[first])
    flat = keras.layers.Reshape((-1, 2 * NUM_PLACES))(positions)
    known = keras.layers.Concatenate()([h, flat])
    change = keras.layers.Dense(2 * NUM_PLACES, name="read_out")(known)
    change = LENGTH * change
    change = keras.layers.Reshape((-1, NUM_PLACES, 2))(change)
    return _declared(places, (positions + change) * is_there)


def _declared(inputs, predicted):
    model = keras.Model(inputs, predicted, name="object_predictor")
    return models.declare(model, {"predicted": "raw"}, parts={"core": "core"})


@keras.saving.register_keras_serializable(package="experiments")
class PositionCode(keras.layers.Layer):
    """Appends Gaussian bumps to x and y: `(..., 2)` → `(..., 2 + num²)`.

    The bumps stand on a grid from -1 to 1, one step apart and as wide.
    """

    def __init__(self, num, **kwargs):
        super().__init__(**kwargs)
        self.num = num

    def call(self, positions):
        if not self.num:
            return positions
        centres = np.linspace(-1, 1, self.num, dtype="float32")
        width = 2 / max(1, self.num - 1)
        away = (ops.expand_dims(positions, -1) - centres) / width
        x, y = ops.split(ops.exp(-0.5 * ops.square(away)), 2, axis=-2)
        bumps = x * ops.swapaxes(y, -1, -2)
        shape = (*ops.shape(positions)[:-1], self.num**2)
        bumps = ops.reshape(bumps, shape)
        return ops.concatenate([positions, bumps], axis=-1)

    def compute_output_shape(self, shape):
        return (*shape[:-1], 2 + self.num**2)

    def get_config(self):
        return {**super().get_config(), "num": self.num}


@keras.saving.register_keras_serializable(package="experiments")
class SharedGRUCell(keras.layers.Layer):
    """One GRU for each object, all with the same weights.

    With heads each attends to the inputs and states of all, its own among them
    as in SCOFF, and what it reads is a part of its input. Inputs are `(batch,
    num_objects, m)`, the state is `(batch, num_objects * units)`.
    """

    def __init__(self, units, num_objects, num_heads=0, key_dim=16, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.num_objects = num_objects
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.state_size = self.output_size = num_objects * units
        self.gru = keras.layers.GRUCell(units, name="gru")
        self.attention = None
        if num_heads:
            self.attention = keras.layers.MultiHeadAttention(
                num_heads, key_dim, output_shape=units, name="attention"
            )

    def build(self, input_shape):
        features = input_shape[-1]
        if self.attention is not None:
            seen = (None, self.num_objects, features + self.units)
            self.attention.build(seen, seen)
            features += self.units
        self.gru.build((None, features))

    def call(self, inputs, states):
        objects = -1, self.num_objects, self.units
        h = ops.reshape(states[0], objects)
        if self.attention is not None:
            seen = ops.concatenate([inputs, h], axis=-1)
            read = self.attention(seen, seen)
            inputs = ops.concatenate([inputs, read], axis=-1)
        inputs = ops.reshape(inputs, (-1, inputs.shape[-1]))
        h, _ = self.gru(inputs, [ops.reshape(h, (-1, self.units))])
        h = ops.reshape(h, (-1, self.state_size))
        return h, [h]

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "num_objects": self.num_objects,
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
        }


@keras.saving.register_keras_serializable(package="experiments")
class CompetingGRUCell(SharedGRUCell):
    """One GRU for each slot, which reads what the slots compete for.

    It reads a mean of the inputs as in slot attention: the softmax is over the
    slots, and the weights of a slot then sum to 1. Inputs are `(batch, n, m)`.
    The output is the state with the scores, `num_objects * (units + n)`.
    """

    def __init__(
        self, units, num_objects, num_heads=0, key_scale=1, key_dim=16, **kwargs
    ):
        super().__init__(units, num_objects, num_heads, key_dim, **kwargs)
        self.key_scale = key_scale
        self.normalization = keras.layers.LayerNormalization(name="norm")

    def build(self, input_shape):
        num_inputs, features = input_shape[1:]
        self.output_size = self.num_objects * (self.units + num_inputs)
        self.normalization.build((None, self.num_objects, self.units))
        self.query = keras.layers.Dense(features, use_bias=False, name="query")
        self.query.build((None, self.num_objects, self.units))
        super().build((None, self.num_objects, features))

    def call(self, inputs, states):
        h = ops.reshape(states[0], (-1, self.num_objects, self.units))
        queries = self.key_scale * self.query(self.normalization(h))
        logits = ops.matmul(queries, ops.swapaxes(inputs, 1, 2))
        scores = ops.softmax(logits / self.units**0.5, axis=1)
        # The last feature of an input is 0 where there is nothing.
        weights = scores * ops.expand_dims(inputs[..., -1], 1)
        total = ops.sum(weights, axis=-1, keepdims=True)
        read = ops.matmul(weights / (total + 1e-6), inputs)
        h, states = super().call(read, states)
        scores = ops.reshape(scores, (-1, self.output_size - h.shape[-1]))
        return ops.concatenate([h, scores], axis=-1), states

    def get_config(self):
        return {**super().get_config(), "key_scale": self.key_scale}
