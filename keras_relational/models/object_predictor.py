"""What will the next image show? An autoencoder, and an LSTM inside it."""

import keras

from keras_relational import layers
from keras_relational.models.initial_weights import uniform
from keras_relational.models.initial_weights import uniform_lstm

IMAGE_SHAPE = (64, 64, 1)


def image_autoencoder(embedding_size=10):
    """Builds an autoencoder of grey images of 64 × 64 pixels.

    Three convolutions and three dense layers to an embedding, and as many back:
    section 4.3 of [Webb et al., 2020](https://arxiv.org/abs/2007.05059).
    Weights are uniform within ±1/√n, n the number of inputs of a unit, as
    PyTorch has it; call `keras.utils.set_random_seed` first for the same ones
    every time. With these the output hardly depends on the image at first, and
    gradients are some 1e-9: train with `training.adam`. The two halves are
    layers named `"encoder"` and `"decoder"`.

    Args:
        embedding_size: Positive integer.

    Returns:
        `keras.Model` from uint8 images `(batch, 64, 64, 1)` to images of the
        same shape between 0 and 1. Pixels are divided by 255 inside.

    Example:

    >>> image_autoencoder().output_shape
    (None, 64, 64, 1)
    """
    encoder = keras.Sequential(
        [
            keras.Input(IMAGE_SHAPE),
            keras.layers.Rescaling(1 / 255),
            *(
                keras.layers.Conv2D(
                    32,
                    4,
                    strides=2,
                    padding="same",
                    activation="relu",
                    **uniform(16 * channels),
                )
                for channels in (1, 32, 32)
            ),
            keras.layers.Flatten(),
            keras.layers.Dense(256, activation="relu", **uniform(2048)),
            keras.layers.Dense(256, activation="relu", **uniform(256)),
            keras.layers.Dense(embedding_size, **uniform(256)),
        ],
        name="encoder",
    )
    decoder = keras.Sequential(
        [
            keras.Input((embedding_size,)),
            keras.layers.Dense(
                256, activation="relu", **uniform(embedding_size)
            ),
            keras.layers.Dense(256, activation="relu", **uniform(256)),
            keras.layers.Dense(2048, activation="relu", **uniform(256)),
            keras.layers.Reshape((8, 8, 32)),
            # PyTorch counts the outputs here: 4 × 4 a channel.
            *(
                keras.layers.Conv2DTranspose(
                    channels,
                    4,
                    strides=2,
                    padding="same",
                    activation="sigmoid" if channels == 1 else "relu",
                    **uniform(16 * channels),
                )
                for channels in (32, 32, 1)
            ),
        ],
        name="decoder",
    )
    images = keras.Input(IMAGE_SHAPE, dtype="uint8", name="images")
    predicted = keras.layers.Identity(name="predicted")(
        decoder(encoder(images))
    )
    return keras.Model(images, predicted, name="image_autoencoder")


def object_predictor(autoencoder, normalization="temporal_context"):
    """Builds a model that predicts the next image for each of a sequence.

    With embeddings z, moments μ and σ of the normalization, and an LSTM of 20
    units,

        ẑ_{t+1} = σ (W LSTM(normalize(z_1), …, normalize(z_t)) + b) + μ

    is decoded to an image: section 3.3 and equation (4) of [Webb et al., 2020](
    https://arxiv.org/abs/2007.05059). The context of `"temporal_context"` are
    all images given, z_1 to z_{T−1}, as sections 3.1 and 3.3 have it; so the
    moments, and they alone, have seen what comes after step t.

    The parts are layers named `"encoder"`, `"predictor"` (a `keras.Model` from
    embeddings to predicted ones, with the layers `"normalization"`,
    `"recurrent"` and `"prediction"`) and `"decoder"`. Train the predictor on
    embeddings, or all of it on images.

    Args:
        autoencoder: As `image_autoencoder` builds. The model shares its
            weights.
        normalization: `"none"` or one of `layers.NORMALIZATIONS` that has
            moments to undo it with: any but `"layer"`.

    Returns:
        `keras.Model` from uint8 images `(batch, time, 64, 64, 1)`, of any
        number of steps (19 for `"batch_training_statistics"`, which keeps
        moments of each), to images of the same shape between 0 and 1.

    Raises:
        ValueError: If there is no such normalization.

    Example:

    >>> object_predictor(image_autoencoder()).output_shape
    (None, None, 64, 64, 1)
    """
    normalized = layers.normalization(normalization)
    normalized.name = "normalization"
    undone = hasattr(normalized, "denormalize")
    if not undone and normalization != "none":
        raise ValueError(
            "Predictions are denormalized, and what "
            f"{normalization!r} does cannot be undone. Expected 'none' or a "
            "normalization over a context"
        )
    encoder, decoder = map(autoencoder.get_layer, ("encoder", "decoder"))
    size = encoder.output_shape[-1]
    time = 19 if normalization == "batch_training_statistics" else None

    inputs = keras.Input((time, size), name="embeddings")
    if undone:
        z, moments = normalized(inputs, return_moments=True)
    else:
        z = normalized(inputs)
    z = keras.layers.LSTM(
        20, return_sequences=True, name="recurrent", **uniform_lstm(20)
    )(z)
    z = keras.layers.Dense(size, name="prediction", **uniform(20))(z)
    if undone:
        z = normalized.denormalize(z, moments)
    predictor = keras.Model(inputs, z, name="predictor")

    images = keras.Input((time, *IMAGE_SHAPE), dtype="uint8", name="images")
    z = layers.TimeFolded(encoder, name="encoder")(images)
    predicted = layers.TimeFolded(decoder, name="decoder")(predictor(z))
    predicted = keras.layers.Identity(name="predicted")(predicted)
    return keras.Model(
        images, predicted, name=f"{normalization}_object_predictor"
    )
