"""Compiling pure functions of tensors on whichever backend Keras runs."""

import functools

import keras


def compiled(function):
    """The same function, compiled by XLA.

    Keras compiles models, but offers no compiler of functions; environments
    are the one part of this package that has functions and no model.

    Args:
        function: A pure function of nested tensors or arrays.

    Returns:
        A function of the same arguments.

    Raises:
        ValueError: If the backend is neither TensorFlow nor JAX.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        # TensorFlow warns of code that is traced again and again, and takes
        # functions made by the same lines for one. Different `partial`s it
        # tells apart.
        function = functools.partial(function)
        return tf.function(function, jit_compile=True, autograph=False)
    if backend == "jax":
        import jax

        return jax.jit(function)
    raise ValueError(
        "Environments run on Keras' TensorFlow and JAX backends. Received: "
        f"backend {backend!r}. Set KERAS_BACKEND before Keras is imported."
    )
