"""Products of slots, or of positions, and kernels."""

import itertools

import keras
from keras import ops

from keras_relational.layers._attention import project
from keras_relational.layers._attention import weighted_sum


def project_each(
    x: keras.KerasTensor, kernels: keras.KerasTensor
) -> keras.KerasTensor:
    """`(batch, n, m)` times `(n, m, k)`: each of the n has its own kernel."""
    return ops.swapaxes(ops.matmul(ops.swapaxes(x, 0, 1), kernels), 0, 1)


class Products:
    """Products of slots with several kernels, made as one product.

    The kernels are `(m, k)`, or `(n, m, k)` if each of the n slots has its own.
    They are joined here, so once for all steps of a sequence. Called with
    `(batch, n, m)`, it returns a list of `(batch, n, k)`, one for each kernel.
    """

    def __init__(self, *kernels: keras.KerasTensor):
        self.kernel = ops.concatenate(kernels, axis=-1)
        sizes = [kernel.shape[-1] for kernel in kernels]
        self.ends = list(itertools.accumulate(sizes))[:-1]

    def __call__(self, x: keras.KerasTensor) -> list[keras.KerasTensor]:
        multiply = project if len(self.kernel.shape) == 2 else project_each
        product = multiply(x, self.kernel)
        return (
            ops.split(product, self.ends, axis=-1) if self.ends else [product]
        )


def project_attended(
    weights: keras.KerasTensor,
    values: keras.KerasTensor,
    kernel: keras.KerasTensor,
) -> keras.KerasTensor:
    """`project(z, kernel)`, where `z_k = Σ_p weights_k,p values_p`.

    The weights are `(batch, heads, slots, positions)`, the values `(batch,
    heads, positions, value_dim)`, the kernel is `(heads * value_dim, ...)`.
    """
    num_slots, n = weights.shape[2:]
    if n >= num_slots:
        return project(weighted_sum(weights, values), kernel)
    # With fewer positions than slots it is less work to multiply the values by
    # the kernel first. Each head has its own rows of the kernel. The result is
    # (batch, positions * heads, ...).
    heads, _, size = values.shape[1:]
    rows = ops.reshape(ops.swapaxes(values, 1, 2), (-1, heads, size))
    values = project_each(rows, ops.reshape(kernel, (heads, size, -1)))
    values = ops.reshape(values, (-1, n * heads, values.shape[-1]))
    weights = ops.transpose(weights, (0, 2, 3, 1))
    weights = ops.reshape(weights, (-1, num_slots, n * heads))
    shape = (-1, num_slots, *kernel.shape[1:])
    return ops.reshape(ops.matmul(weights, values), shape)
