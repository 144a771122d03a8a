"""Finds the missing filler of a sequence by an abstract rule.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*, section 4.
"""

import keras
import numpy as np
from keras import ops

from keras_relational import layers
from keras_relational.models.convolutions import check_channels_last
from keras_relational.models.convolutions import encoder_convolutions
from keras_relational.models.declared_roles import declare
from keras_relational.models.declared_roles import part
from keras_relational.models.declared_roles import roles
from keras_relational.models.image_model import reads_pixels
from keras_relational.models.image_model import to_pixels
from keras_relational.models.pytorch_default import pytorch_default
from keras_relational.validation import check_choice

SEQUENTIAL = ("esbn", "ntm", "lstm", "corelnet")
MODES = ("multiple_choice", "generative")
FILLERS = ("image", "vector")
UNITS = 512
KEY_DIM = 256
CORELNET_UNITS = 256


def filler_autoencoder(
    fillers: str = "image",
    num_fillers: int = 100,
    batch_normalization: bool = False,
) -> keras.Model:
    """Builds an autoencoder of fillers.

    For images of 32 × 32 pixels the encoder has three convolutions and two
    dense layers. An embedding has 128 numbers. The decoder has the same layers
    in reverse. Its last layer has one filter, since the images are grey. The
    paper prints 32. For one-hot vectors the encoder is one dense layer with 10
    outputs, and the decoder is one dense layer. Reference: sections 4.1.3,
    4.1.4 and A.1 of [Sinha et al., 2020](https://arxiv.org/abs/2012.01944).
    Initial weights are Kaiming normal before ReLU and Xavier normal before
    sigmoid and softmax. The paper does not mention biases. Here they are
    uniform within ±1/√fan-in, which is PyTorch's default. For reproducible
    weights call `keras.utils.set_random_seed` first.

    The model declares the parts `"encoder"` and `"decoder"`.

    Args:
        fillers: `"image"` or `"vector"`.
        num_fillers: Size of the vectors.
        batch_normalization: Boolean. If `True`, batch normalization precedes
            each nonlinearity. It has no effect on vectors.

    Returns:
        `keras.Model`. For images it maps uint8 `(batch, 32, 32)` to images of
        the same shape with pixels between 0 and 1. It divides pixels by 255.
        For vectors it maps floats `(batch, num_fillers)` to probabilities of
        the same shape.

    Raises:
        ValueError: If `fillers` is unknown, or if Keras' data format is not
            channels last, for images.

    Example:

    >>> filler_autoencoder().output_shape
    (None, 32, 32)
    """
    check_choice("fillers", fillers, FILLERS)
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
    model = keras.Model(
        inputs, decoder(encoder(inputs)), name=f"{fillers}_autoencoder"
    )
    return declare(
        model,
        {"predicted": "raw"},
        parts={"encoder": "encoder", "decoder": "decoder"},
    )


def _image_layers(batch_normalization):
    check_channels_last()
    convolution = {"kernel_size": 4, "strides": 2, "padding": "same"}

    def hidden(layer, fan_in, **arguments):
        return _hidden(layer, fan_in, batch_normalization, **arguments)

    first, second, third = encoder_convolutions(3)
    transposed = keras.layers.Conv2DTranspose
    encoder = [
        keras.layers.Rescaling(1 / 255),
        keras.layers.Reshape((32, 32, 1)),
        *hidden(first, 16, filters=32, **convolution),
        *hidden(second, 16 * 32, filters=32, **convolution),
        *hidden(third, 16 * 32, filters=32, **convolution),
        keras.layers.Flatten(),
        *hidden(keras.layers.Dense, 512, units=256),
        *hidden(keras.layers.Dense, 256, units=128),
    ]
    decoder = [
        *hidden(keras.layers.Dense, 128, units=256),
        *hidden(keras.layers.Dense, 256, units=512),
        keras.layers.Reshape((4, 4, 32)),
        # PyTorch counts the outputs of a transposed convolution: 4 × 4 for
        # each channel.
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
        **pytorch_default(fan_in),
        "kernel_initializer": keras.initializers.VarianceScaling(
            scale, mode, "untruncated_normal"
        ),
    }


def rule_learner(
    autoencoder: keras.Model,
    sequential: str = "esbn",
    mode: str = "multiple_choice",
    num_options: int = 4,
    confidence: bool = False,
    normalization: keras.layers.Layer | None = None,
    num_steps: int | None = None,
) -> keras.Model:
    """Builds a model that sees a sequence of fillers and finds the missing one.

    The model encodes each filler. An ESBN, an NTM or an LSTM then reads the
    embeddings one after the other. It has 512 units, and its keys and memory
    have 256 numbers. For multiple choice a linear layer on its last output
    scores the options. In the generative mode the model predicts an embedding,
    and the decoder turns it into a filler. An ESBN predicts the embedding that
    it retrieves. The other networks predict by a linear layer. Reference:
    section 4 of [Sinha et al., 2020](https://arxiv.org/abs/2012.01944).

    A CoRelNet does not read the embeddings in turn. It compares each with those
    before it. A dense layer of 256 units and a linear layer turn the
    similarities into scores. Reference: [Kerg et al., 2022](
    https://arxiv.org/abs/2206.05056), in the form of the authors' program.

    The model declares the parts `"encoder"`, `"reasoner"` and, in the
    generative mode, `"decoder"`. The reasoner is a `keras.Model` from
    embeddings to scores or to an embedding. Parts inside it are `"esbn"`,
    `"ntm"`, `"lstm"` or `"corelnet"`, and the linear layer `"output"`. If the
    number of steps is known when the model is compiled, the encoder processes
    images step by step. Batch normalization then uses the statistics of one
    step at a time.

    Args:
        autoencoder: Model of `filler_autoencoder`. The new model shares its
            weights.
        sequential: `"esbn"`, `"ntm"`, `"lstm"` or `"corelnet"`.
        mode: `"multiple_choice"` or `"generative"`.
        num_options: Number of scores.
        confidence: Boolean, the `confidence` of `layers.ESBN`. The first paper
            has none. With only two fillers, as in same/different, an ESBN
            without a confidence stays at chance. Pass `True` there, and a
            normalization.
        normalization: Optional layer that normalizes the sequence of
            embeddings, such as `layers.TemporalContextNormalization()`. It is
            allowed in multiple choice only.
        num_steps: Number of fillers of a sequence. By default sequences may be
            of any length. A CoRelNet needs the number.

    Returns:
        `keras.Model` from fillers `(batch, time, ...)`, of `num_steps` steps.
        It returns scores `(batch, num_options)`, or in the generative mode a
        filler, like the autoencoder.

    Raises:
        ValueError: If `sequential` or `mode` is unknown, if `normalization` is
            not a layer or is given in the generative mode, if `confidence` is
            `True` without an ESBN, or if a CoRelNet has no `num_steps` or is to
            generate fillers.

    Example:

    >>> rule_learner(filler_autoencoder()).output_shape
    (None, 4)
    """
    check_choice("sequential component", sequential, SEQUENTIAL)
    check_choice("mode", mode, MODES)
    if not isinstance(normalization, keras.layers.Layer | None):
        raise ValueError(
            "`normalization` must be a layer, such as "
            "TemporalContextNormalization(). Received: "
            f"normalization={normalization!r}"
        )
    if normalization is not None and mode == "generative":
        raise ValueError(
            "Normalized embeddings are for multiple choice: the decoder takes "
            "embeddings that are not normalized. Received: normalization="
            f"{normalization!r}, mode='generative'"
        )
    if confidence and sequential != "esbn":
        raise ValueError(
            "Only the ESBN has a confidence. Received: confidence=True, "
            f"sequential={sequential!r}"
        )
    if sequential == "corelnet" and (mode == "generative" or not num_steps):
        raise ValueError(
            "A CoRelNet scores options, from sequences of a known number of "
            "steps: pass num_steps=9, for example. Received: "
            f"num_steps={num_steps!r}, mode={mode!r}"
        )
    encoder, decoder = (
        part(autoencoder, "encoder"),
        part(autoencoder, "decoder"),
    )
    embeddings = keras.Input(
        (num_steps, encoder.output_shape[-1]), name="embeddings"
    )
    reasoner = _reasoner(
        embeddings, sequential, mode, num_options, confidence, normalization
    )
    (shape,) = (x.shape[1:] for x in autoencoder.inputs)
    fillers = keras.Input(
        (num_steps, *shape), dtype=autoencoder.inputs[0].dtype, name="fillers"
    )
    is_image = len(shape) > 1
    encoded = layers.TimeFolded(encoder, unroll=is_image, name="encoder")(
        fillers
    )
    outputs, kinds = reasoner(encoded), {"logits": "logits"}
    parts = {"encoder": "encoder", "reasoner": "reasoner"}
    if mode == "generative":
        outputs, kinds = decoder(outputs), {"predicted": "raw"}
        parts["decoder"] = "decoder"
    for layer in reasoner.layers:
        if layer.name in (sequential, "output"):
            parts[layer.name] = f"reasoner/{layer.name}"
    model = keras.Model(fillers, outputs, name=f"{sequential}_{mode}")
    return declare(model, kinds, parts=parts)


def _reasoner(inputs, sequential, mode, num_options, confidence, normalization):
    z = inputs if normalization is None else normalization(inputs)
    predicts = mode == "generative"
    units = inputs.shape[-1] if predicts else num_options
    linear = {"units": units, "name": "output"}
    fan_in = CORELNET_UNITS if sequential == "corelnet" else UNITS
    linear |= _initial(fan_in, "glorot")
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
    elif sequential == "corelnet":
        similarities = layers.CoRelNet(name="corelnet")(z)
        z = keras.layers.Dense(
            CORELNET_UNITS,
            activation="relu",
            name="hidden",
            **_initial(similarities.shape[-1], "he"),
        )(similarities)
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


def over_fillers(model: keras.Model, fillers: np.ndarray) -> keras.Model:
    """Builds a faster model for problems with a known set of fillers.

    The new model takes numbers of fillers instead of fillers. It encodes each
    filler once in each batch, even if the batch shows it many times. So batch
    normalization counts each filler once, too. Use the new model for training
    and tests, but save `model`.

    Args:
        model: Model of `rule_learner`. The new model shares its weights.
        fillers: Array of all fillers `(num_fillers, ...)`, in the form that the
            model takes.

    Returns:
        `keras.Model` from numbers of fillers, integers `(batch, time)`, to the
        outputs of `model`.

    Example:

    >>> import numpy as np
    >>> model = rule_learner(filler_autoencoder())
    >>> over_fillers(model, np.zeros((5, 32, 32), "uint8")).input_shape
    (None, None)
    """
    if reads_pixels(model):
        fillers = to_pixels(fillers)
    steps = model.input_shape[1]
    numbers = keras.Input((steps,), dtype="int32", name="numbers")
    encoder = part(model, "encoder").layer
    z = _EncodedFillers(encoder, fillers, name="encoded")(numbers)
    outputs = part(model, "reasoner")(z)
    declared = roles(model)
    if "decoder" in declared.parts:
        outputs = part(model, "decoder")(outputs)
    known = keras.Model(numbers, outputs, name=f"{model.name}_over_fillers")
    known.dtype_policy = model.dtype_policy  # Keras takes the global one.
    return declare(known, declared.outputs)


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
