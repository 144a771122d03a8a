"""Scores the candidates that may complete an analogy."""

import typing

import keras
from keras import ops

from keras_relational import layers
from keras_relational.models.convolutions import check_channels_last
from keras_relational.models.convolutions import encoder_convolutions
from keras_relational.models.declared_roles import declare
from keras_relational.validation import check_choice

NORMALIZATIONS = (*layers.NORMALIZATIONS, "layer_recurrent", "batch_dropout")
# The rows of Table 3.
ROW_NORMALIZATIONS = ("source_target", "temporal_context", "batch", "none")


def analogy_scorer(
    normalization: str = "temporal_context",
    image_size: int = 128,
    num_candidates: int | None = 7,
) -> keras.Model:
    """Builds a model that scores the candidates for D in A : B = C : D.

    With embeddings z of the images, the score of a candidate X is

        score = w · LSTM(normalize(z_A, z_B, z_C, z_X)) + b

    A softmax over the scores is the probability that X is the answer. The
    encoder has four convolutions and three dense layers, as in section 4.1 of
    [Webb et al., 2020](https://arxiv.org/abs/2007.05059). The model encodes
    each image once, even if several candidates use it, and scores all
    candidates in one batch. Initial weights are Glorot uniform. All biases are
    zero, including the bias of the forget gate. For reproducible weights call
    `keras.utils.set_random_seed` first.

    The model declares these parts: `"encoder"`, from images to embeddings
    `(batch, images, 256)`, and `"scorer"`, a `keras.Model` from embeddings,
    `context` and `candidates` to scores. Parts inside the scorer are
    `"sequences"`, `"normalization"`, `"recurrent"` and `"score"`.

    Args:
        normalization: A row of Table 1: one of `layers.NORMALIZATIONS`,
            `"layer_recurrent"` or `"batch_dropout"`. With `"layer_recurrent"`,
            `layers.LayerNormLSTMCell` replaces the LSTM. `"batch_dropout"` is
            `"batch"`, followed by 50 % dropout.
        image_size: Height and width of the images, a multiple of 16.
        num_candidates: Number of candidates of a problem, or `None` for any
            number.

    Returns:
        `keras.Model` that returns scores `(batch, num_candidates)`. Its input
        is a dictionary: `images`, uint8 `(batch, images, image_size,
        image_size, 3)`, and two tensors of indices into the images: `context`
        `(batch, 3)` for A, B and C, and `candidates` `(batch, num_candidates)`.
        The model divides pixels by 255.

    Raises:
        ValueError: If `normalization` is unknown, `image_size` is not a
            multiple of 16, or Keras' data format is not channels last.

    Example:

    >>> analogy_scorer(image_size=32).output_shape
    (None, 7)
    """
    check_channels_last()
    check_choice("normalization", normalization, NORMALIZATIONS)
    _check_image_size(image_size)
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
                convolution(32, 4, strides=2, padding="same", activation="relu")
                for convolution in encoder_convolutions(4)
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
    model = keras.Model(inputs, scores, name=f"{normalization}_analogy_scorer")
    inside = ("sequences", "normalization", "recurrent", "score")
    return declare(
        model,
        {"logits": "logits"},
        parts={
            "encoder": "encoder",
            "scorer": "scorer",
            **{name: f"scorer/{name}" for name in inside},
        },
    )


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
    normalized = named_normalization(normalization)
    scores = _scores(sequences, normalized, cell, dropout)
    return keras.Model(inputs, scores, name="scorer")


def visual_analogy_scorer(
    normalization: str = "source_target", image_size: int = 80
) -> keras.Model:
    """Builds a model that scores the candidates of a 2 × 3 matrix.

    With embeddings z of the panels, the score of a candidate X is

        score = w · RNN(normalize(z_1, …, z_5, z_X)) + b

    The encoder has four convolutions, and z is their flattened output: 800
    numbers for images of 80 pixels. The RNN has 64 units. This is the network
    of Hill et al., 2019, as [Webb et al.,
    2020](https://arxiv.org/abs/2007.05059) use it in sections 4.1 and 5.2. The
    model encodes every panel once. The paper names neither the kind of RNN nor
    the initial weights. Here the RNN is a `SimpleRNN`. Initial weights are He
    normal for the convolutions and Glorot normal for the other layers, and
    biases are zero.

    The model declares the parts `"encoder"`, `"normalization"`, `"recurrent"`
    and `"score"`.

    Args:
        normalization: A row of Table 3: `"source_target"`,
            `"temporal_context"`, `"batch"` or `"none"`. The first two are
            temporal context normalization, with each row of the matrix or the
            whole matrix as a context.
        image_size: Height and width of the images, a multiple of 16.

    Returns:
        `keras.Model` from uint8 images `(batch, 9, image_size, image_size, 1)`,
        five panels and four candidates, to scores `(batch, 4)`. The model
        divides pixels by 255.

    Raises:
        ValueError: As `analogy_scorer` raises it.

    Example:

    >>> visual_analogy_scorer().output_shape
    (None, 4)
    """
    check_channels_last()
    check_choice("normalization", normalization, ROW_NORMALIZATIONS)
    _check_image_size(image_size)
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
        normalized = layers.TemporalContextNormalization(
            (3, 3), name="normalization"
        )
    else:
        normalized = named_normalization(normalization)
    cell = keras.layers.SimpleRNNCell(
        64,
        kernel_initializer="glorot_normal",
        recurrent_initializer="glorot_normal",
    )
    scores = _scores(
        sequences, normalized, cell, score_initializer="glorot_normal"
    )
    model = keras.Model(
        images, scores, name=f"{normalization}_visual_analogy_scorer"
    )
    parts = ("encoder", "normalization", "recurrent", "score")
    return declare(
        model, {"logits": "logits"}, parts={name: name for name in parts}
    )


def named_normalization(normalization: str) -> keras.layers.Layer:
    """The layer of one of `layers.NORMALIZATIONS`, named `"normalization"`."""
    layer = layers.normalization(normalization)
    config = {**layer.get_config(), "name": "normalization"}
    return type(layer).from_config(config)


def _scores(
    sequences, normalized, cell, dropout=0, score_initializer="glorot_uniform"
):
    """`(batch, candidates, terms, features)` → `(batch, candidates)`."""
    z = normalized(sequences)
    if dropout:
        # On torch, dropout without a noise shape draws from the global random
        # state. With a noise shape it draws from the layer's own seed, which
        # checkpoints hold.
        z = keras.layers.Dropout(
            dropout, noise_shape=(None,) * len(z.shape), name="dropout"
        )(z)
    # The recurrent layer reads a separate sequence for each candidate.
    recurrent = keras.layers.RNN(cell, unroll=True)
    z = layers.TimeFolded(recurrent, name="recurrent")(z)
    scores = keras.layers.Dense(
        1, kernel_initializer=score_initializer, name="score"
    )(z)
    return keras.layers.Reshape((-1,), name="scores")(scores)


def _check_image_size(image_size):
    if image_size < 16 or image_size % 16:
        raise ValueError(
            "`image_size` must be a multiple of 16, as there are four "
            f"convolutions of stride 2. Received: image_size={image_size}"
        )


@keras.saving.register_keras_serializable(package="keras_relational")
class CandidateSequences(keras.layers.Layer):
    """Completes the terms of an analogy with each of its candidates.

    Context `(batch, terms)` and candidates `(batch, candidates)` are indices
    into embeddings `(batch, images, features)`. Returns a tensor `(batch,
    candidates, terms + 1, features)`.
    """

    def call(
        self,
        embeddings: keras.KerasTensor,
        context: keras.KerasTensor,
        candidates: keras.KerasTensor,
    ) -> keras.KerasTensor:
        batch, num_candidates = ops.shape(candidates)
        num_terms = context.shape[1]
        context = ops.broadcast_to(
            context[:, None], (batch, num_candidates, num_terms)
        )
        candidates = ops.expand_dims(candidates, -1)
        order = ops.concatenate([context, candidates], axis=-1)
        order = ops.reshape(order, (batch, -1, 1))
        sequences = ops.take_along_axis(embeddings, order, axis=1)
        return ops.reshape(
            sequences,
            (batch, num_candidates, num_terms + 1, embeddings.shape[-1]),
        )

    def index_bounds(
        self,
        embeddings: keras.KerasTensor,
        context: keras.KerasTensor,
        candidates: keras.KerasTensor,
    ) -> dict[str, tuple[keras.KerasTensor, typing.Any, str]]:
        """The bounds of the indices that the layer looks up, for `serving`.

        An exported model refuses a request with an index out of bounds.
        """
        bound = ops.shape(embeddings)[1], "the number of images"
        return {
            "context": (context, *bound),
            "candidates": (candidates, *bound),
        }

    def compute_output_shape(
        self,
        embeddings_shape: tuple,
        context_shape: tuple,
        candidates_shape: tuple,
    ) -> tuple:
        batch, num_candidates = candidates_shape
        num_terms, features = context_shape[1] + 1, embeddings_shape[-1]
        return (batch, num_candidates, num_terms, features)
