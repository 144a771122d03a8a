"""One way to compile the papers' models for `fit`."""

from collections.abc import Callable

import keras

from keras_relational.training.supervised import adam


def compile_model(
    model: keras.Model,
    learning_rate: float,
    loss: str | keras.losses.Loss | Callable,
    metrics: list[str] | None = None,
    convolutional: bool = False,
) -> None:
    """Compiles a model with Adam, and builds the optimizer's variables.

    XLA compiles the training step, except on PyTorch. On a CPU XLA is slow at
    convolutions, so with TensorFlow a model that has convolutions does without
    it. JAX always uses XLA.

    Args:
        model: `keras.Model` that is built. It is compiled in place.
        learning_rate: Positive number, the learning rate of `adam`.
        loss: As in `keras.Model.compile`.
        metrics: As in `keras.Model.compile`.
        convolutional: If `True`, XLA is used on JAX only.

    Example:

    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    >>> compile_model(model, 0.001, "mse")
    >>> model.optimizer.epsilon
    1e-08
    """
    backend = keras.backend.backend()
    uses_xla = backend == "jax" if convolutional else backend != "torch"
    model.compile(
        adam(learning_rate), loss, metrics=metrics, jit_compile=uses_xla
    )
    model.optimizer.build(model.trainable_variables)


def compile_video_predictor(model: keras.Model, learning_rate: float) -> None:
    """Compiles a model of `models.video_predictor` with binary cross-entropy.

    Args:
        model: `keras.Model` from frames to frames between 0 and 1. It is
            compiled in place.
        learning_rate: Positive number, the learning rate of `adam`.
    """
    loss = "binary_crossentropy"
    compile_model(model, learning_rate, loss, convolutional=True)


def compile_scorer(model: keras.Model, learning_rate: float) -> None:
    """Compiles a scorer of analogies with the cross-entropy of its logits.

    Args:
        model: `keras.Model` of `models.analogy_scorer` or
            `models.visual_analogy_scorer`. It is compiled in place.
        learning_rate: Positive number, the learning rate of `adam`.
    """
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    compile_model(model, learning_rate, loss, ["accuracy"], convolutional=True)
