"""Random numbers as a function of a seed and counters.

The numbers are the same on every machine, backend and compiler, and there is no
hidden state. The generators of the backends guarantee neither.
"""

import keras
import numpy as np
from keras import ops

# On torch, Keras stores uint32 in 64 bits. This mask cuts off the upper half.
ALL_BITS = np.uint32(0xFFFFFFFF)


def random_bits(
    seed: keras.KerasTensor | np.ndarray | int,
    *counters: keras.KerasTensor | np.ndarray | int,
) -> keras.KerasTensor:
    """32 random bits for a seed and counters, uint32; on torch int64.

    The function adds the counters one after the other. After each it mixes the
    bits by the integer hash "lowbias32" of Wellons. Seed and counters are below
    2³², and broadcast to each other's shape.
    """
    bits = _mix(ops.cast(seed, "uint32"))
    for counter in counters:
        bits = _mix(ops.add(bits, ops.cast(counter, "uint32")))
    return bits


def random_uniform(
    seed: keras.KerasTensor | np.ndarray | int,
    *counters: keras.KerasTensor | np.ndarray | int,
) -> keras.KerasTensor:
    """Uniform random numbers in [0, 1), a float32 tensor: see `random_bits`.

    They are multiples of 2⁻²⁴, which float32 holds exactly.
    """
    bits = ops.right_shift(random_bits(seed, *counters), np.uint32(8))
    return ops.cast(ops.cast(bits, "int32"), "float32") * 2.0**-24


def random_draws(
    logits: keras.KerasTensor | np.ndarray,
    seed: keras.KerasTensor | np.ndarray | int,
    *counters: keras.KerasTensor | np.ndarray | int,
) -> keras.KerasTensor:
    """Draws an integer for each row of logits, from the softmax of the row.

    The draw is the argmax of the logits plus Gumbel noise. Logits are floats
    `(batch, n)`, and seed and counters broadcast to `(batch, 1)`: see
    `random_bits`. Returns an int32 tensor `(batch,)`.
    """
    logits = ops.cast(logits, "float32")
    columns = np.arange(logits.shape[-1], dtype="uint32")
    uniform = random_uniform(seed, *counters, columns)
    noise = -ops.log(-ops.log(uniform))
    return ops.cast(ops.argmax(logits + noise, axis=-1), "int32")


def random_ranks(
    numbers: keras.KerasTensor | np.ndarray,
) -> keras.KerasTensor:
    """The rank of each number in its row, an int32 tensor like the numbers.

    Equal numbers are ranked by position. The ranks of random numbers are a
    random permutation. No sort is needed.

    Example:

    >>> ops.convert_to_numpy(random_ranks(np.array([0.5, 0.1, 0.5]))).tolist()
    [1, 0, 2]
    """
    earlier = ops.tri(numbers.shape[-1], k=-1, dtype="bool")
    mine, others = numbers[..., :, None], numbers[..., None, :]
    before = (others < mine) | ((others == mine) & earlier)
    return ops.sum(ops.cast(before, "int32"), axis=-1)


def _mix(x):
    x = ops.bitwise_and(ops.add(x, np.uint32(0x9E3779B9)), ALL_BITS)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(shift)))
        x = ops.bitwise_and(ops.multiply(x, np.uint32(factor)), ALL_BITS)
    return ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16)))
