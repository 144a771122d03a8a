"""Compiles pure functions of tensors on the backend that Keras runs on."""

import functools
from collections.abc import Callable

import keras


def compiled(function: Callable) -> Callable:
    """Compiles a pure function of nested tensors or arrays with XLA.

    Keras compiles models, but it has no compiler of plain functions. The
    environments are plain functions. On PyTorch a `ValueError` says so.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        # TensorFlow warns if the same lines of code are traced many times,
        # even as different functions. Each `partial` is new to it.
        function = functools.partial(function)
        return tf.function(function, jit_compile=True, autograph=False)
    if backend == "jax":
        import jax

        return jax.jit(function)
    raise ValueError(
        "Environments run on Keras' TensorFlow and JAX backends. Received: "
        f"backend {backend!r}. Set KERAS_BACKEND before Keras is imported."
    )
