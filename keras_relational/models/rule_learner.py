"""Fillers in, an answer out: encoder, something that reasons, decoder.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*, section 4.
"""

import keras
from keras import ops

from keras_relational import layers
from keras_relational.models.initial_weights import uniform

SEQUENTIAL = ("esbn", "ntm", "lstm")
FILLERS = ("image", "vector")
UNITS = 512
KEY_DIM = 256


def filler_autoencoder(
    fillers="image", num_fillers=100, batch_normalization=False
):
    """Builds an autoencoder of fillers.

    For images of 32 × 32 pixels: three convolutions and two dense layers to an
    embedding of 128 numbers, and as many back, the last with one kernel, where
    the paper prints 32. For one-hot vectors: one dense layer each, to 10
    numbers and back. Sections 4.1.3, 4.1.4 and A.1 of
    [Sinha et al., 2020](https://arxiv.org/abs/2012.01944): weights are Kaiming
    normal before ReLU and Xavier normal before sigmoid and softmax; biases, of
    which it says nothing, uniform within ±1/√fan-in, as PyTorch has them. Call
    `keras.utils.set_random_seed` first for the same ones every time. The two
    halves are layers named `"encoder"` and `"decoder"`.

    Args:
        fillers: `"image"` or `"vector"`.
        num_fillers: Size of the vectors.
        batch_normalization: Whether there is one before each nonlinearity; for
            images.

    Returns:
        `keras.Model` from uint8 images `(batch, 32, 32)`, which are divided by
        255 inside, to images between 0 and 1, or from float vectors `(batch,
        num_fillers)` to shares that sum to 1.

    Raises:
        ValueError: If there are no such fillers.

    Example:

    >>> filler_autoencoder().output_shape
    (None, 32, 32)
    """
    if fillers not in FILLERS:
        raise ValueError(
            f"Unknown fillers {fillers!r}. Expected one of: "
            f"{', '.join(FILLERS)}"
        )
    if fillers == "vector":
        inputs = keras.Input((num_fillers,), name="fillers")
        encoder = [*_hidden(keras.layers.Dense, num_fillers, units=10)]
        decoder = [
            keras.layers.Dense(
                num_fillers, activation="softmax", **_initial(10, "glorot")
            )
        ]
        size = 10
    else:
        inputs = keras.Input((32, 32), dtype="uint8", name="fillers")
        encoder, decoder = _image_layers(batch_normalization)
        size = 128
    encoder = keras.Sequential(
        [keras.Input(inputs.shape[1:]), *encoder], name="encoder"
    )
    decoder = keras.Sequential([keras.Input((size,)), *decoder], name="decoder")
    predicted = keras.layers.Identity(name="predicted")(
        decoder(encoder(inputs))
    )
    return keras.Model(inputs, predicted, name=f"{fillers}_autoencoder")


def _image_layers(batch_normalization):
    convolution = {"kernel_size": 4, "strides": 2, "padding": "same"}

    def hidden(layer, fan_in, **arguments):
        return _hidden(layer, fan_in, batch_normalization, **arguments)

    conv, transposed = keras.layers.Conv2D, keras.layers.Conv2DTranspose
    encoder = [
        keras.layers.Rescaling(1 / 255),
        keras.layers.Reshape((32, 32, 1)),
        *hidden(conv, 16, filters=32, **convolution),
        *hidden(conv, 16 * 32, filters=32, **convolution),
        *hidden(conv, 16 * 32, filters=32, **convolution),
        keras.layers.Flatten(),
        *hidden(keras.layers.Dense, 512, units=256),
        *hidden(keras.layers.Dense, 256, units=128),
    ]
    decoder = [
        *hidden(keras.layers.Dense, 128, units=256),
        *hidden(keras.layers.Dense, 256, units=512),
        keras.layers.Reshape((4, 4, 32)),
        # PyTorch counts the outputs here: 4 × 4 a channel.
        *hidden(transposed, 16 * 32, filters=32, **convolution),
        *hidden(transposed, 16 * 32, filters=32, **convolution),
        *_with_nonlinearity(
            transposed(1, **convolution, **_initial(16, "glorot")),
            keras.layers.Activation("sigmoid"),
            batch_normalization,
        ),
        keras.layers.Reshape((32, 32)),
    ]
    return encoder, decoder


def _hidden(layer, fan_in, batch_normalization=False, **arguments):
    return _with_nonlinearity(
        layer(**arguments, **_initial(fan_in, "he")),
        keras.layers.ReLU(),
        batch_normalization,
    )


def _with_nonlinearity(layer, nonlinearity, batch_normalization):
    if not batch_normalization:
        return [layer, nonlinearity]
    normalization = keras.layers.BatchNormalization(epsilon=1e-5, momentum=0.9)
    return [layer, normalization, nonlinearity]


def _initial(fan_in, kind):
    scale, mode = {"he": (2, "fan_in"), "glorot": (1, "fan_avg")}[kind]
    return {
        **uniform(fan_in),
        "kernel_initializer": keras.initializers.VarianceScaling(
            scale, mode, "untruncated_normal"
        ),
    }


def rule_learner(
    autoencoder,
    sequential="esbn",
    mode="multiple_choice",
    num_options=4,
    confidence=False,
    normalization=None,
):
    """Builds a model that is shown fillers, and says which one is missing.

    Each filler is encoded; an ESBN, an NTM or an LSTM, with 512 units and keys
    and memory of 256 numbers, sees the embeddings one after the other; and a
    linear layer on its last output scores the options, or the embedding that it
    predicts is decoded: section 4 of [Sinha et al., 2020](
    https://arxiv.org/abs/2012.01944). An ESBN predicts what it retrieves, the
    others by a linear layer.

    The parts are layers named `"encoder"`, `"reasoner"` (a `keras.Model` from
    embeddings to scores, or to an embedding) and `"decoder"`. Images are
    encoded one step after the other, where it is known when compiling how many
    steps there are, and so does batch normalization take its statistics.

    Args:
        autoencoder: As `filler_autoencoder` builds. The model shares its
            weights.
        sequential: One of `SEQUENTIAL`.
        mode: `"multiple_choice"` or `"generative"`.
        num_options: Number of scores.
        confidence: As for `layers.ESBN`. By default there is none, as in that
            paper. With two fillers, as in same/different, an ESBN without one
            is at chance: pass `True`, and a normalization.
        normalization: Optional layer through which the sequence of embeddings
            goes first, for multiple choice: a
            `layers.TemporalContextNormalization`.

    Returns:
        `keras.Model` from fillers `(batch, time, ...)`, of any number, to
        scores `(batch, num_options)`, or to a filler as the autoencoder puts it
        out.

    Raises:
        ValueError: If there is no such component or mode, `normalization` is no
            layer, a prediction would be one of normalized embeddings, or
            something else than an ESBN is to have a confidence.

    Example:

    >>> rule_learner(filler_autoencoder()).output_shape
    (None, 4)
    """
    modes = ("multiple_choice", "generative")
    if sequential not in SEQUENTIAL or mode not in modes:
        raise ValueError(
            f"`sequential` must be one of: {', '.join(SEQUENTIAL)}, and `mode` "
            f"one of: {', '.join(modes)}. Received: sequential={sequential!r}, "
            f"mode={mode!r}"
        )
    if not isinstance(normalization, keras.layers.Layer | None):
        raise ValueError(
            "`normalization` must be a layer, such as "
            "TemporalContextNormalization(). Received: "
            f"normalization={normalization!r}"
        )
    if normalization is not None and mode == "generative":
        raise ValueError(
            "Normalized embeddings are for multiple choice: the decoder takes "
            f"those of the encoder. Received: normalization={normalization!r}, "
            "mode='generative'"
        )
    if confidence and sequential != "esbn":
        raise ValueError(
            "Only the ESBN has a confidence. Received: confidence=True, "
            f"sequential={sequential!r}"
        )
    encoder, decoder = map(autoencoder.get_layer, ("encoder", "decoder"))
    reasoner = _reasoner(
        encoder.output_shape[-1],
        sequential,
        mode,
        num_options,
        confidence,
        normalization,
    )
    (shape,) = (x.shape[1:] for x in autoencoder.inputs)
    fillers = keras.Input(
        (None, *shape), dtype=autoencoder.inputs[0].dtype, name="fillers"
    )
    is_image = len(shape) > 1
    encoded = layers.TimeFolded(encoder, unroll=is_image, name="encoder")(
        fillers
    )
    outputs = reasoner(encoded)
    if mode == "generative":
        outputs = decoder(outputs)
    kind = "predicted" if mode == "generative" else "logits"
    outputs = keras.layers.Identity(name=kind)(outputs)
    return keras.Model(fillers, outputs, name=f"{sequential}_{mode}")


def _reasoner(size, sequential, mode, num_options, confidence, normalization):
    z = inputs = keras.Input((None, size), name="embeddings")
    if normalization is not None:
        z = normalization(z)
    predicts = mode == "generative"
    linear = {"units": size if predicts else num_options, "name": "output"}
    linear |= _initial(UNITS, "glorot")
    if sequential == "esbn":
        esbn = layers.ESBN(
            UNITS,
            KEY_DIM,
            return_retrieved=predicts,
            confidence=confidence,
            name="esbn",
        )
        if predicts:
            _, outputs = esbn(z)
            return keras.Model(inputs, outputs, name="reasoner")
        z = esbn(z)
    elif sequential == "ntm":
        cell = layers.NTMCell(UNITS, 10, KEY_DIM)
        z = keras.layers.RNN(cell, name="ntm")(z)
    else:
        limit = UNITS**-0.5
        z = keras.layers.LSTM(
            UNITS,
            kernel_initializer=layers.LSTMKernel(),
            recurrent_initializer=layers.LSTMKernel(),
            bias_initializer=keras.initializers.RandomUniform(-limit, limit),
            unit_forget_bias=False,
            name="lstm",
        )(z)
    outputs = keras.layers.Dense(**linear)(z)
    return keras.Model(inputs, outputs, name="reasoner")


def over_fillers(model, fillers):
    """The same model, on problems of a few fillers that are known before.

    In each batch every filler is encoded once, however often it is shown, or
    not at all. Batch normalization then takes its statistics over the fillers,
    each counted once.
    It is for training and tests; `model` is what is saved.

    Args:
        model: As `rule_learner` builds. The new one shares its weights.
        fillers: Array of all of them, as the model takes them.

    Returns:
        `keras.Model` from numbers of fillers, integers `(batch, time)`, to what
        `model` puts out.

    Example:

    >>> import numpy as np
    >>> model = rule_learner(filler_autoencoder())
    >>> over_fillers(model, np.zeros((5, 32, 32), "uint8")).input_shape
    (None, None)
    """
    numbers = keras.Input((None,), dtype="int32", name="numbers")
    encoder = model.get_layer("encoder").layer
    z = _EncodedFillers(encoder, fillers, name="encoded")(numbers)
    outputs = model.get_layer("reasoner")(z)
    if any(layer.name == "decoder" for layer in model.layers):
        outputs = model.get_layer("decoder")(outputs)
    return keras.Model(numbers, outputs, name=f"{model.name}_over_fillers")


class _EncodedFillers(keras.layers.Layer):
    """The embeddings of fillers, by their numbers."""

    def __init__(self, encoder, fillers, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.fillers = fillers

    def call(self, numbers, training=False):
        fillers = ops.convert_to_tensor(self.fillers)
        z = self.encoder(fillers, training=training)
        return ops.take(z, numbers, axis=0)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.encoder.output_shape[-1])
