"""Small operations on tensors that `keras.ops` does not have."""

import functools
from collections.abc import Callable
from collections.abc import Sequence

import keras
from keras import ops


def at_least_float32(tensor: keras.KerasTensor) -> keras.KerasTensor:
    """Casts half precision to float32, and leaves float64 as it is.

    Dot products of long vectors overflow in float16.

    Args:
        tensor: Float tensor.

    Returns:
        Tensor in float32 or float64.
    """
    dtype = keras.backend.result_type(tensor.dtype, "float32")
    return ops.cast(tensor, dtype)


def float32_or_more(layer: keras.layers.Layer) -> str:
    """The `input_dtype` of a layer that normalizes its inputs first.

    Half precision would round away small differences between inputs.
    """
    return keras.backend.result_type(layer.compute_dtype, "float32")


def shapes_match(
    shape: Sequence[int | None], other: Sequence[int | None]
) -> bool:
    """Tells whether two shapes may be equal.

    Args:
        shape: A shape. `None` stands for an unknown size.
        other: The shape to compare it with.

    Returns:
        `True` if both have the same rank and all known sizes agree.
    """
    return len(shape) == len(other) and all(
        None in pair or pair[0] == pair[1]
        for pair in zip(shape, other, strict=True)
    )


def update_row(
    rows: keras.KerasTensor, index: keras.KerasTensor, row: keras.KerasTensor
) -> keras.KerasTensor:
    """Replaces one entry along the first axis.

    `keras.ops.slice_update` would do the same, but on TensorFlow it always
    becomes an XLA operation, which TensorFlow Serving refuses on a CPU.

    Args:
        rows: Tensor `(n, ...)`.
        index: Scalar integer tensor, the entry to replace.
        row: Tensor of shape `rows.shape[1:]`, the new entry.

    Returns:
        Tensor like `rows`.
    """
    if keras.backend.backend() == "jax":
        zeros = [0] * len(row.shape)
        return ops.slice_update(rows, (index, *zeros), row[None])
    return ops.scatter_update(rows, ops.reshape(index, (1, 1)), row[None])


def recomputed(step: Callable) -> Callable:
    """`keras.remat` on JAX, for a step of a recurrent layer.

    The gradient then computes each step again. To read all that a step has
    computed takes longer, and ten times the memory. In the loop of TensorFlow
    `keras.remat` does not find the variables.
    """
    return keras.remat(step) if keras.backend.backend() == "jax" else step


def custom_gradient(function: Callable) -> Callable:
    """`keras.ops.custom_gradient` with the same interface on all backends.

    Args:
        function: Takes tensors as positional arguments. Returns a tensor and
            a gradient function. The gradient function takes the gradient of
            that tensor and returns a tuple with one gradient for each
            argument of `function`.

    Returns:
        Function that takes the same arguments and returns the tensor.
    """

    def outputs_and_gradient(*arguments):
        outputs, gradient = function(*arguments)

        def keras_gradient(*arguments, upstream=None):
            # TensorFlow and JAX pass the upstream gradient by position. Torch
            # passes the arguments of `function`, and `upstream` by name.
            return gradient(arguments[0] if upstream is None else upstream)

        return outputs, keras_gradient

    return functools.wraps(function)(ops.custom_gradient(outputs_and_gradient))
