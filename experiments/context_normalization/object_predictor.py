"""Predicts the next image of a sequence: an LSTM inside an autoencoder.

[Webb et al., 2020](https://arxiv.org/abs/2007.05059), section 4.3.
"""

import keras

from keras_relational import layers
from keras_relational.models.analogy_scorer import named_normalization
from keras_relational.models.convolutions import check_channels_last
from keras_relational.models.convolutions import encoder_convolutions
from keras_relational.models.declared_roles import declare
from keras_relational.models.declared_roles import part
from keras_relational.models.pytorch_default import pytorch_default

IMAGE_SHAPE = (64, 64, 1)


def image_autoencoder():
    """An autoencoder of grey images of 64 × 64 pixels, as in section 4.3.

    Initial weights are uniform within ±1/√n for a unit with n inputs, which is
    PyTorch's default. The first gradients are about 1e-9, so compile it by
    `training.compile_model`, whose Adam has a small ε.
    """
    check_channels_last()
    encoder = keras.Sequential(
        [
            keras.Input(IMAGE_SHAPE),
            keras.layers.Rescaling(1 / 255),
            *(
                convolution(
                    32,
                    4,
                    strides=2,
                    padding="same",
                    activation="relu",
                    **pytorch_default(16 * channels),
                )
                for convolution, channels in zip(
                    encoder_convolutions(3), (1, 32, 32), strict=True
                )
            ),
            keras.layers.Flatten(),
            keras.layers.Dense(256, activation="relu", **pytorch_default(2048)),
            keras.layers.Dense(256, activation="relu", **pytorch_default(256)),
            keras.layers.Dense(10, **pytorch_default(256)),
        ],
        name="encoder",
    )
    decoder = keras.Sequential(
        [
            keras.Input((10,)),
            keras.layers.Dense(256, activation="relu", **pytorch_default(10)),
            keras.layers.Dense(256, activation="relu", **pytorch_default(256)),
            keras.layers.Dense(2048, activation="relu", **pytorch_default(256)),
            keras.layers.Reshape((8, 8, 32)),
            # PyTorch counts the outputs of a transposed convolution: 4 × 4
            # for each channel.
            *(
                keras.layers.Conv2DTranspose(
                    channels,
                    4,
                    strides=2,
                    padding="same",
                    activation="sigmoid" if channels == 1 else "relu",
                    **pytorch_default(16 * channels),
                )
                for channels in (32, 32, 1)
            ),
        ],
        name="decoder",
    )
    images = keras.Input(IMAGE_SHAPE, dtype="uint8", name="images")
    model = keras.Model(
        images, decoder(encoder(images)), name="image_autoencoder"
    )
    return declare(
        model,
        {"predicted": "raw"},
        parts={"encoder": "encoder", "decoder": "decoder"},
    )


def object_predictor(autoencoder, normalization="temporal_context"):
    """A model that predicts the image after each image of a sequence.

    With embeddings z, and moments μ and σ of the normalization,

        ẑ_{t+1} = σ (W LSTM(normalize(z_1), …, normalize(z_t)) + b) + μ

    The decoder turns it into an image (section 3.3 and equation 4). The context
    of `"temporal_context"` is z_1 to z_{T−1}, so the moments of a step depend
    on later images, too. The part `"predictor"` maps embeddings to predicted
    ones. `"batch_training_statistics"` needs 19 steps.
    """
    normalized = named_normalization(normalization)
    undone = hasattr(normalized, "denormalize")
    if not undone and normalization != "none":
        raise ValueError(
            "Predictions are denormalized, and the normalization "
            f"{normalization!r} cannot be undone. Expected 'none' or a "
            "normalization over a context"
        )
    encoder = part(autoencoder, "encoder")
    decoder = part(autoencoder, "decoder")
    size = encoder.output_shape[-1]
    time = 19 if normalization == "batch_training_statistics" else None

    inputs = keras.Input((time, size), name="embeddings")
    if undone:
        z, moments = normalized(inputs, return_moments=True)
    else:
        z = normalized(inputs)
    limit = 20**-0.5
    z = keras.layers.LSTM(
        20,
        return_sequences=True,
        kernel_initializer=keras.initializers.RandomUniform(-limit, limit),
        recurrent_initializer=keras.initializers.RandomUniform(-limit, limit),
        bias_initializer=keras.initializers.RandomUniform(-limit, limit),
        unit_forget_bias=False,
        name="recurrent",
    )(z)
    z = keras.layers.Dense(size, name="prediction", **pytorch_default(20))(z)
    if undone:
        z = normalized.denormalize(z, moments)
    predictor = keras.Model(inputs, z, name="predictor")

    images = keras.Input((time, *IMAGE_SHAPE), dtype="uint8", name="images")
    z = layers.TimeFolded(encoder, name="encoder")(images)
    predicted = layers.TimeFolded(decoder, name="decoder")(predictor(z))
    model = keras.Model(
        images, predicted, name=f"{normalization}_object_predictor"
    )
    outside = ("encoder", "predictor", "decoder")
    inside = ("normalization", "recurrent", "prediction")
    return declare(
        model,
        {"predicted": "raw"},
        parts={
            **{name: name for name in outside},
            **{name: f"predictor/{name}" for name in inside},
        },
    )
