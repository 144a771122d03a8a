"""Which candidate completes an analogy?"""

import keras
from keras import ops

from keras_relational import layers

NORMALIZATIONS = (*layers.NORMALIZATIONS, "layer_recurrent", "batch_dropout")
# Those of Table 3.
ROW_NORMALIZATIONS = ("source_target", "temporal_context", "batch", "none")


def analogy_scorer(
    normalization="temporal_context", image_size=128, num_candidates=7
):
    """Builds a model that scores the candidates of A is to B as C is to what.

    With embeddings z of the images, for each candidate X

        score = w · LSTM(normalize(z_A, z_B, z_C, z_X)) + b

    and a softmax over the scores would tell how likely it is that X is the
    answer. The encoder has four convolutions and three dense layers: section
    4.1 of [Webb et al., 2020](https://arxiv.org/abs/2007.05059). Every image is
    encoded once, whatever number of candidates it is part of, and all
    candidates are scored in one batch. Initial weights are Glorot uniform and
    biases zero, that of the forget gate too; call
    `keras.utils.set_random_seed` first for the same ones every time.

    The two parts are layers named `"encoder"`, from images to embeddings
    `(batch, images, 256)`, and `"scorer"`, a `keras.Model` of embeddings,
    `context` and `candidates`, with layers `"sequences"`, `"normalization"`,
    `"recurrent"` and `"score"`.

    Args:
        normalization: One of `layers.NORMALIZATIONS`; `"layer_recurrent"`, for
            `layers.LayerNormLSTMCell` instead; or `"batch_dropout"`, for
            `"batch"` and 50 % dropout after it: the rows of Table 1.
        image_size: Height and width of the images; a multiple of 16.
        num_candidates: Number of candidates of a problem, or None for any.

    Returns:
        `keras.Model` from a dictionary of `images`, uint8 `(batch, images,
        image_size, image_size, 3)`, and integers that say which of them are
        `context`, `(batch, 3)`, and `candidates`, `(batch, num_candidates)`, to
        scores `(batch, num_candidates)`. Pixels are divided by 255 inside.

    Raises:
        ValueError: If there is no such normalization, or no such size.

    Example:

    >>> analogy_scorer(image_size=32).output_shape
    (None, 7)
    """
    _check(normalization, NORMALIZATIONS, image_size)
    inputs = {
        "images": keras.Input(
            (None, image_size, image_size, 3), dtype="uint8", name="images"
        ),
        "context": keras.Input((3,), dtype="int32", name="context"),
        "candidates": keras.Input(
            (num_candidates,), dtype="int32", name="candidates"
        ),
    }
    encoder = keras.Sequential(
        [
            keras.Input((image_size, image_size, 3)),
            keras.layers.Rescaling(1 / 255),
            *(
                keras.layers.Conv2D(
                    32, 4, strides=2, padding="same", activation="relu"
                )
                for _ in range(4)
            ),
            keras.layers.Flatten(),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(256),
        ],
        name="image_encoder",
    )
    scores = _scorer(normalization, num_candidates)(
        {
            "embeddings": layers.TimeFolded(encoder, name="encoder")(
                inputs["images"]
            ),
            "context": inputs["context"],
            "candidates": inputs["candidates"],
        }
    )
    scores = keras.layers.Identity(name="logits")(scores)
    return keras.Model(inputs, scores, name=f"{normalization}_analogy_scorer")


def _scorer(normalization, num_candidates):
    """From embeddings to scores."""
    inputs = {
        "embeddings": keras.Input((None, 256), name="embeddings"),
        "context": keras.Input((3,), dtype="int32", name="context"),
        "candidates": keras.Input(
            (num_candidates,), dtype="int32", name="candidates"
        ),
    }
    sequences = CandidateSequences(name="sequences")(**inputs)
    cell = keras.layers.LSTMCell(
        256, recurrent_initializer="glorot_uniform", unit_forget_bias=False
    )
    dropout = 0
    if normalization == "layer_recurrent":
        normalization = "none"
        cell = layers.LayerNormLSTMCell(
            256, recurrent_initializer="glorot_uniform"
        )
    if normalization == "batch_dropout":
        normalization, dropout = "batch", 0.5
    normalized = layers.normalization(normalization)
    scores = _scores(sequences, normalized, cell, dropout)
    return keras.Model(inputs, scores, name="scorer")


def visual_analogy_scorer(normalization="source_target", image_size=80):
    """Builds a model that scores the candidates of a 2 × 3 matrix.

    With embeddings z of the panels, for each candidate X

        score = w · RNN(normalize(z_1, …, z_5, z_X)) + b

    where the encoder has four convolutions and z is what they put out, 800
    numbers for images of 80 pixels, and the RNN has 64 units: the network of
    Hill et al., 2019, as [Webb et al., 2020](https://arxiv.org/abs/2007.05059),
    sections 4.1 and 5.2, take it. Every panel is encoded once. The paper does
    not say what RNN it is, nor its initial weights; here it is a simple one,
    and they are He normal for the convolutions and Glorot normal for the rest,
    biases zero; call `keras.utils.set_random_seed` first for the same ones
    every time.

    The layers are named `"encoder"`, `"normalization"`, `"recurrent"` and
    `"score"`.

    Args:
        normalization: One of `ROW_NORMALIZATIONS`, the rows of Table 3:
            `"source_target"`, temporal context normalization with a context for
            either row of the matrix; `"temporal_context"`, with a single one;
            `"batch"`; or `"none"`.
        image_size: Height and width of the images; a multiple of 16.

    Returns:
        `keras.Model` from uint8 images `(batch, 9, image_size, image_size, 1)`,
        five panels and four candidates, to scores `(batch, 4)`. Pixels are
        divided by 255 inside.

    Raises:
        ValueError: If there is no such normalization, or no such size.

    Example:

    >>> visual_analogy_scorer().output_shape
    (None, 4)
    """
    _check(normalization, ROW_NORMALIZATIONS, image_size)
    images = keras.Input(
        (9, image_size, image_size, 1), dtype="uint8", name="images"
    )
    encoder = keras.Sequential(
        [
            keras.Input((image_size, image_size, 1)),
            keras.layers.Rescaling(1 / 255),
            *(
                keras.layers.Conv2D(
                    32,
                    3,
                    strides=2,
                    padding="same",
                    activation="relu",
                    kernel_initializer="he_normal",
                )
                for _ in range(4)
            ),
            keras.layers.Flatten(),
        ],
        name="image_encoder",
    )
    z = layers.TimeFolded(encoder, name="encoder")(images)
    sequences = ops.concatenate(
        [ops.repeat(z[:, None, :5], 4, axis=1), z[:, 5:, None]], axis=2
    )
    if normalization == "source_target":
        normalized = layers.TemporalContextNormalization((3, 3))
    else:
        normalized = layers.normalization(normalization)
    cell = keras.layers.SimpleRNNCell(
        64,
        kernel_initializer="glorot_normal",
        recurrent_initializer="glorot_normal",
    )
    scores = _scores(
        sequences, normalized, cell, score_initializer="glorot_normal"
    )
    scores = keras.layers.Identity(name="logits")(scores)
    return keras.Model(
        images, scores, name=f"{normalization}_visual_analogy_scorer"
    )


def _scores(
    sequences, normalized, cell, dropout=0, score_initializer="glorot_uniform"
):
    """`(batch, candidates, terms, features)` → `(batch, candidates)`."""
    normalized.name = "normalization"
    z = normalized(sequences)
    if dropout:
        # With a shape torch draws from the layer's own state, which a
        # checkpoint holds, and else from one of the process.
        z = keras.layers.Dropout(
            dropout, noise_shape=(None,) * len(z.shape), name="dropout"
        )(z)
    # A candidate is a sequence as well as an example is.
    recurrent = keras.layers.RNN(cell, unroll=True)
    z = layers.TimeFolded(recurrent, name="recurrent")(z)
    scores = keras.layers.Dense(
        1, kernel_initializer=score_initializer, name="score"
    )(z)
    return keras.layers.Reshape((-1,), name="scores")(scores)


def _check(normalization, known, image_size):
    if normalization not in known:
        raise ValueError(
            f"Unknown normalization {normalization!r}. Expected one of: "
            f"{', '.join(known)}"
        )
    if image_size < 16 or image_size % 16:
        raise ValueError(
            "`image_size` must be a multiple of 16, as there are four "
            f"convolutions of stride 2. Received: image_size={image_size}"
        )


@keras.saving.register_keras_serializable(package="keras_relational")
class CandidateSequences(keras.layers.Layer):
    """The terms of an analogy, once for each candidate, and the candidate.

    Call arguments:
        embeddings: Tensor `(batch, images, features)`.
        context: Integer tensor `(batch, terms)`, which of them are the terms.
        candidates: Integer tensor `(batch, candidates)`, the same.

    Returns:
        Tensor `(batch, candidates, terms + 1, features)`.
    """

    def call(self, embeddings, context, candidates):
        batch, num_candidates = ops.shape(candidates)
        num_terms = context.shape[1]
        context = ops.broadcast_to(
            context[:, None], (batch, num_candidates, num_terms)
        )
        order = ops.concatenate([context, candidates[..., None]], axis=-1)
        order = ops.reshape(order, (batch, -1, 1))
        sequences = ops.take_along_axis(embeddings, order, axis=1)
        return ops.reshape(
            sequences,
            (batch, num_candidates, num_terms + 1, embeddings.shape[-1]),
        )

    def compute_output_shape(
        self, embeddings_shape, context_shape, candidates_shape
    ):
        batch, num_candidates = candidates_shape
        num_terms, features = context_shape[1] + 1, embeddings_shape[-1]
        return (batch, num_candidates, num_terms, features)
