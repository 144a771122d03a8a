"""Predicts the next image of a sequence: an LSTM inside an autoencoder."""

import keras

from keras_relational import layers
from keras_relational.models.analogy_scorer import named_normalization
from keras_relational.models.convolutions import check_channels_last
from keras_relational.models.convolutions import in_turn
from keras_relational.models.declared_roles import declare
from keras_relational.models.declared_roles import part
from keras_relational.models.initial_weights import uniform
from keras_relational.models.initial_weights import uniform_lstm

IMAGE_SHAPE = (64, 64, 1)


def image_autoencoder(embedding_size: int = 10) -> keras.Model:
    """Builds an autoencoder of grey images of 64 × 64 pixels.

    The encoder has three convolutions and three dense layers. The decoder has
    the same layers in reverse. Both are as in section 4.3 of [Webb et al.,
    2020](https://arxiv.org/abs/2007.05059). Initial weights are uniform within
    ±1/√n for a unit with n inputs, which is PyTorch's default. For reproducible
    weights call `keras.utils.set_random_seed` first. With these weights the
    output hardly depends on the image at first. The first gradients are about
    1e-9, so train by Adam with an ε of 1e-8. The model declares the parts
    `"encoder"` and `"decoder"`.

    Args:
        embedding_size: Positive integer.

    Returns:
        `keras.Model` from uint8 images `(batch, 64, 64, 1)` to images of the
        same shape with pixels between 0 and 1. The model divides pixels by 255.

    Raises:
        ValueError: If Keras' data format is not channels last.

    Example:

    >>> image_autoencoder().output_shape
    (None, 64, 64, 1)
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
                    **uniform(16 * channels),
                )
                for convolution, channels in zip(
                    in_turn(3), (1, 32, 32), strict=True
                )
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
            # PyTorch counts the outputs of a transposed convolution: 4 × 4
            # for each channel.
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
    model = keras.Model(
        images, decoder(encoder(images)), name="image_autoencoder"
    )
    return declare(
        model,
        {"predicted": "raw"},
        parts={"encoder": "encoder", "decoder": "decoder"},
    )


def object_predictor(
    autoencoder: keras.Model, normalization: str = "temporal_context"
) -> keras.Model:
    """Builds a model that predicts the image after each image of a sequence.

    With embeddings z, moments μ and σ of the normalization, and an LSTM of 20
    units, the predicted embedding is

        ẑ_{t+1} = σ (W LSTM(normalize(z_1), …, normalize(z_t)) + b) + μ

    The decoder turns it into an image. Reference: section 3.3 and equation (4)
    of [Webb et al., 2020](https://arxiv.org/abs/2007.05059). The context of
    `"temporal_context"` is all images of the input, z_1 to z_{T−1}, as in
    sections 3.1 and 3.3. So the moments of a step depend on later images, too.
    Nothing else does.

    The model declares the parts `"encoder"`, `"predictor"` and `"decoder"`. The
    predictor is a `keras.Model` from embeddings to predicted embeddings. Parts
    inside it are `"normalization"`, `"recurrent"` and `"prediction"`. You can
    train the predictor alone on embeddings, or the whole model on images.

    Args:
        autoencoder: Model of `image_autoencoder`. The new model shares its
            weights.
        normalization: One of `layers.NORMALIZATIONS`. `"layer"` is not allowed,
            because it cannot be undone.

    Returns:
        `keras.Model` from uint8 images `(batch, time, 64, 64, 1)` to images of
        the same shape with pixels between 0 and 1. The number of steps may
        vary. With `"batch_training_statistics"` it must be 19, because the
        moments of each step are stored.

    Raises:
        ValueError: If the normalization is unknown or cannot be undone.

    Example:

    >>> object_predictor(image_autoencoder()).output_shape
    (None, None, 64, 64, 1)
    """
    normalized = named_normalization(normalization)
    undone = hasattr(normalized, "denormalize")
    if not undone and normalization != "none":
        raise ValueError(
            "Predictions are denormalized, and the normalization "
            f"{normalization!r} cannot be undone. Expected 'none' or a "
            "normalization over a context"
        )
    encoder, decoder = (
        part(autoencoder, "encoder"),
        part(autoencoder, "decoder"),
    )
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
