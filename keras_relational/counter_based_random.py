"""Random numbers as a function of a seed and of counters.

The same on every machine, backend and compiler, which the generators of the
backends are not, and with no state but what the caller counts.
"""

import numpy as np
from keras import ops

# Keras' torch has 64 bits for uint32: what is above 32 is cut off.
ALL_BITS = np.uint32(0xFFFFFFFF)


def random_bits(seed, *counters):
    """32 random bits for a seed and counters, which broadcast together.

    Each is added in turn and mixed in with the integer hash of Wellons,
    "lowbias32": two products and three shifted exclusive-ors.

    Args:
        seed: Integer tensor or array, below 2³².
        *counters: Likewise.

    Returns:
        uint32 tensor; on torch the same numbers in int64.
    """
    bits = _mixed(ops.cast(seed, "uint32"))
    for counter in counters:
        bits = _mixed(ops.add(bits, ops.cast(counter, "uint32")))
    return bits


def random_uniform(seed, *counters):
    """Numbers in [0, 1), multiples of 2⁻²⁴: exact in float32.

    Args:
        seed: As for `random_bits`.
        *counters: As for `random_bits`.

    Returns:
        float32 tensor.
    """
    bits = ops.right_shift(random_bits(seed, *counters), np.uint32(8))
    return ops.cast(ops.cast(bits, "int32"), "float32") * 2.0**-24


def random_draws(logits, seed, *counters):
    """Draws from a softmax: an integer for each row of logits.

    The largest of the logits with Gumbel noise is such a draw.

    Args:
        logits: Float tensor `(batch, n)`.
        seed: As for `random_bits`, of a shape that broadcasts to `(batch, 1)`.
        *counters: Likewise.

    Returns:
        int32 tensor `(batch,)`.
    """
    logits = ops.cast(logits, "float32")
    places = np.arange(logits.shape[-1], dtype="uint32")
    uniform = random_uniform(seed, *counters, places)
    noise = -ops.log(-ops.log(uniform))
    return ops.cast(ops.argmax(logits + noise, axis=-1), "int32")


def random_ranks(numbers):
    """The rank of each number in its row, equal ones in their order.

    Of random numbers it is a random permutation, without a sort.

    Args:
        numbers: Tensor `(..., n)`.

    Returns:
        int32 tensor `(..., n)`, in each row the integers 0 to n − 1.
    """
    earlier = ops.tri(numbers.shape[-1], k=-1, dtype="bool")
    mine, others = numbers[..., :, None], numbers[..., None, :]
    before = (others < mine) | ((others == mine) & earlier)
    return ops.sum(ops.cast(before, "int32"), axis=-1)


def _mixed(x):
    x = ops.bitwise_and(ops.add(x, np.uint32(0x9E3779B9)), ALL_BITS)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(shift)))
        x = ops.bitwise_and(ops.multiply(x, np.uint32(factor)), ALL_BITS)
    return ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16)))
