"""The controller of an ESBN over all steps, with a gradient written by hand.

`esbn.esbn_steps` is a plain loop with the same result. Tests check that both
are equal. This function exists because it trains faster under XLA, and the
library trains with XLA on TensorFlow and JAX.

Measured by `benchmarks/esbn.py` on 25 November 2026, with TensorFlow 2.21 on
two cores of an Intel Xeon (AVX-512, AMX). Sizes: 512 units, keys of 256
numbers, 9 values of 128 numbers, batch 32. The figures compare the medians of
alternating rounds. With XLA, `esbn_steps` took 1.2 times as long to train (1.22
to 1.25 in four runs), and 1.3 times with 32 values. Without XLA it took about
1.1 times as long. Prediction took 1.0 to 1.15 times as long, with XLA and
without. These times are of an earlier form of this function. Compiled for a
GPU, the same training step launches 193 operations and takes 16 MiB. With
`esbn_steps` it launches 494 and takes 46 MiB; with `esbn_steps` and each step
computed again by the gradient, 390 and 17 MiB.
"""

from collections.abc import Callable

import keras
import numpy as np
from keras import ops

from keras_relational.layers._operations import custom_gradient
from keras_relational.layers._operations import update_row


@custom_gradient
def esbn_recurrence(
    key_scores: keras.KerasTensor,
    confidence: keras.KerasTensor,
    valid: keras.KerasTensor,
    kernel: keras.KerasTensor,
    recurrent_kernel: keras.KerasTensor,
    bias: keras.KerasTensor,
    write_kernel: keras.KerasTensor,
    write_bias: keras.KerasTensor,
) -> tuple[keras.KerasTensor, Callable]:
    """The outputs h_t and the written keys k_w,t of all steps.

    Two things make it fast. First, the batch is the last axis inside the loop,
    so each example is a column. On a CPU the product of a large kernel with a
    few columns takes half as long as the product of a few rows with that
    kernel. Second, the gradient of each weight is one product over all steps.
    Automatic differentiation would add up one product for each step.

    Args:
        key_scores: Float tensor `(batch, steps, steps)`, the weights with which
            each step reads the keys of earlier steps. A padded step has those
            of the last real one.
        confidence: Float tensor `(batch, steps, 1)`, or `(batch, steps, 0)` for
            an ESBN without confidence.
        valid: Float tensor `(batch, steps, 1)`, 1 for a real step and 0 for a
            padded one.
        kernel: Kernel of the LSTM `(size, 4 * units)`, where `size` is
            `key_dim`, plus one with confidence.
        recurrent_kernel: Recurrent kernel of the LSTM `(units, 4 * units)`.
        bias: Bias of the LSTM `(4 * units,)`.
        write_kernel: Kernel `(units, key_dim + 1)` of the written key and of
            the gate of the key that is read.
        write_bias: Bias `(key_dim + 1,)` of that key and gate.

    Returns:
        Tensor `(batch, steps, units + key_dim)`: h_t, then k_w,t.
    """
    batch, steps = ops.shape(key_scores)[:2]
    units, key_dim = recurrent_kernel.shape[0], write_kernel.shape[1] - 1
    size = kernel.shape[0]
    # The batch becomes the last axis.
    key_scores, confidence, valid = (
        ops.transpose(x, (1, 2, 0)) for x in (key_scores, confidence, valid)
    )
    kernels = ops.concatenate([kernel, recurrent_kernel], axis=0)
    # The kernels are transposed before the loop. In the loop, XLA would fold
    # the transpose into a product that takes twice as long.
    to_gates, to_head = ops.transpose(kernels), ops.transpose(write_kernel)
    bias, write_bias = bias[:, None], write_bias[:, None]

    def zeros(*shape):
        return ops.zeros(shape, key_scores.dtype)

    # A step writes one row of each log: on a GPU each write is a launch. The
    # rows of later steps are zero, and so is the first state. The second log is
    # for the gradient alone: what reads it in this loop would keep it.
    # XLA on TensorFlow slices `log[t, part]` wrongly in this loop.
    of_h, of_c, of_key, of_gate = _slices(units, units, key_dim, 1)
    of_k, of_slopes = _slices(size, 5 * units)

    def forward(t, logs):
        results, saved = logs
        before = ops.maximum(t - 1, 0)
        h, c, gate = (results[before][of] for of in (of_h, of_c, of_gate))
        keys = key_scores[before][:, None] * results[:, of_key]
        k = gate * ops.concatenate(
            [ops.sum(keys, axis=0), confidence[before]], axis=0
        )
        gates = ops.matmul(to_gates, ops.concatenate([k, h], axis=0)) + bias
        i, f, g, o = ops.split(gates, 4, axis=0)
        i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
        # These gates keep the state of a padded step.
        is_valid = valid[t] > 0
        i, f, o = (
            ops.where(is_valid, x, y) for x, y in ((i, 0), (f, 1), (o, 0))
        )
        by_i, by_g = g * i * (1 - i), i * (1 - g * g)
        c = f * c + i * g
        tanh_c = ops.tanh(c)
        by_o, by_c = tanh_c * o * (1 - o), o * (1 - tanh_c * tanh_c)
        h = ops.where(is_valid, o * tanh_c, h)
        head = ops.matmul(to_head, h) + write_bias
        key, gate = ops.relu(head[:key_dim]), ops.sigmoid(head[key_dim:])
        result = ops.concatenate([h, c, key, gate], axis=0)
        slopes = ops.concatenate([k, by_i, by_g, by_o, by_c, f], axis=0)
        return update_row(results, t, result), update_row(saved, t, slopes)

    logs = [zeros(steps, of.stop, batch) for of in (of_gate, of_slopes)]
    results, saved = ops.fori_loop(0, steps, forward, tuple(logs))
    hs, keys = results[:, of_h], results[:, of_key]
    outputs = ops.transpose(ops.concatenate([hs, keys], axis=1), (2, 0, 1))

    def gradient(upstream):
        upstream = ops.transpose(upstream, (1, 2, 0))
        to_key, to_gate = write_kernel[:, :key_dim], write_kernel[:, key_dim:]
        of_dgates, of_dc, of_dmean, of_dhead = _slices(
            4 * units, units, size, key_dim + 1
        )

        def backward(number, carry):
            t = steps - 1 - number
            before, after = ops.maximum(t - 1, 0), ops.minimum(t + 1, steps - 1)
            dx, dkeys, log = carry
            dk, dh = dx[:size], dx[size:]
            key, gate = results[t][of_key], results[t][of_gate]
            dmean = dk * gate
            dgate = ops.sum(dk * saved[after][of_k], axis=0) * (1 - gate)
            dkeys = dkeys + key_scores[t][:, None] * dmean[:key_dim]
            dkey = ops.where(key > 0, dkeys[t] + upstream[t][units:], 0)
            dh = dh + upstream[t][:units] + to_gate * dgate
            dh = dh + ops.matmul(to_key, dkey)
            by_i, by_g, by_o, by_c, f = ops.split(
                saved[t][of_slopes], 5, axis=0
            )
            earlier_c = ops.where(t > 0, results[before][of_c], 0)
            by_f = earlier_c * f * (1 - f)
            dc = log[after][of_dc] + dh * by_c
            row = dc * by_i, dc * by_f, dc * by_g, dh * by_o, dc * f
            row = ops.concatenate([*row, dmean, dkey, dgate], axis=0)
            log = update_row(log, t, row)
            dx = ops.matmul(kernels, log[t][of_dgates])
            # A padded step passes its gradient to the step before.
            passed = ops.concatenate([ops.zeros_like(dk), dh], axis=0)
            return ops.where(valid[t] > 0, dx, passed), dkeys, log

        start = zeros(size + units, batch), zeros(steps, key_dim, batch)
        log = zeros(steps, of_dhead.stop, batch)
        *_, log = ops.fori_loop(0, steps, backward, (*start, log))
        dgates, dmeans = log[:, of_dgates], log[:, of_dmean]
        dheads = log[:, of_dhead]
        earlier_h = ops.concatenate([zeros(1, units, batch), hs[:-1]], axis=0)
        xs = ops.concatenate([saved[:, of_k], earlier_h], axis=1)
        dkernels = _kernel_gradient(xs, dgates)
        keys = outputs[..., units:]
        return (
            ops.einsum("tkb,bsk->bts", dmeans[:, :key_dim], keys),
            ops.transpose(dmeans[:, key_dim:], (2, 0, 1)),
            ops.zeros_like(ops.transpose(valid, (2, 0, 1))),
            dkernels[:size],
            dkernels[size:],
            ops.sum(dgates, axis=(0, 2)),
            _kernel_gradient(hs, dheads),
            ops.sum(dheads, axis=(0, 2)),
        )

    return outputs, gradient


def _slices(*sizes):
    """Where parts of these sizes are in a row."""
    ends = np.cumsum(sizes).tolist()
    return [
        slice(end - size, end) for size, end in zip(sizes, ends, strict=True)
    ]


def _kernel_gradient(inputs, outputs_gradient):
    """Gradient of the kernel in `outputs = kernelᵀ inputs`, over all steps."""
    inputs = ops.reshape(
        ops.transpose(inputs, (1, 0, 2)), (inputs.shape[1], -1)
    )
    outputs_gradient = ops.reshape(
        ops.transpose(outputs_gradient, (0, 2, 1)),
        (-1, outputs_gradient.shape[1]),
    )
    return ops.matmul(inputs, outputs_gradient)
