"""The controller of an ESBN over all steps, with a gradient written by hand.

`esbn.esbn_steps` is a plain loop with the same result, as tests check. This
function trains faster under XLA, with which the library trains.

With 512 units, keys of 256 numbers and 9 values, batch 32, `benchmarks/esbn.py`
found on two cores of a Xeon (25 November 2026, TensorFlow, an earlier form)
that `esbn_steps` takes 1.2 times as long to train with XLA, 1.1 times without.
Compiled for a GPU, this launches 192 operations and takes 15 MiB, `esbn_steps`
494 and 46 MiB, or 390 and 17 MiB if the gradient computes each step again.
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

    Two things make it fast. First, each example is a column inside the loop: on
    a CPU a large kernel times a few columns takes half as long as a few rows
    times that kernel. Second, the gradient of each weight is one product over
    all steps. Automatic differentiation would add up one for each step.

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
    confidence = ops.reshape(confidence, (steps, size - key_dim, batch))
    kernels = ops.concatenate([kernel, recurrent_kernel], axis=0)
    # The kernels are transposed before the loop. In the loop, XLA would fold
    # the transpose into a product that takes twice as long.
    to_gates, to_head = ops.transpose(kernels), ops.transpose(write_kernel)
    bias, write_bias = bias[:, None], write_bias[:, None]

    def zeros(*shape):
        return ops.zeros(shape, key_scores.dtype)

    # A step writes one row of each log: on a GPU each write is a launch. The
    # second is for the gradient alone. XLA on TensorFlow copies a log if all of
    # it is read before it is written, and slices `log[t, part]` wrongly here.
    of_h, of_key, of_gate, of_c = _slices(units, key_dim, 1, units)
    of_x, of_slopes = _slices(size + units, 5 * units)

    def forward(t, carry):
        x, results, saved = carry
        i, f, g, o = ops.split(ops.matmul(to_gates, x) + bias, 4, axis=0)
        i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
        # These gates keep the state of a padded step.
        is_valid = valid[t] > 0
        i, f, o = (
            ops.where(is_valid, x, y) for x, y in ((i, 0), (f, 1), (o, 0))
        )
        by_i, by_g = g * i * (1 - i), i * (1 - g * g)
        c = f * results[ops.maximum(t - 1, 0)][of_c] + i * g
        tanh_c = ops.tanh(c)
        by_o, by_c = tanh_c * o * (1 - o), o * (1 - tanh_c * tanh_c)
        h = ops.where(is_valid, o * tanh_c, x[size:])
        head = ops.matmul(to_head, h) + write_bias
        key, gate = ops.relu(head[:key_dim]), ops.sigmoid(head[key_dim:])
        row = ops.concatenate([h, key, gate, c], axis=0)
        results = update_row(results, t, row)
        row = ops.concatenate([x, by_i, by_g, by_o, by_c, f], axis=0)
        saved = update_row(saved, t, row)
        keys = key_scores[t][:, None] * results[:, of_key]
        mean = ops.concatenate([ops.sum(keys, axis=0), confidence[t]], axis=0)
        return ops.concatenate([gate * mean, h], axis=0), results, saved

    start = zeros(size + units, batch)
    logs = [zeros(steps, of.stop, batch) for of in (of_c, of_slopes)]
    _, results, saved = ops.fori_loop(0, steps, forward, (start, *logs))
    outputs = ops.transpose(results[:, : of_key.stop], (2, 0, 1))

    def gradient(upstream):
        upstream = ops.transpose(upstream, (1, 2, 0))
        to_key, to_gate = write_kernel[:, :key_dim], write_kernel[:, key_dim:]
        sizes = 4 * units, units, size, key_dim + 1
        of_dgates, of_dc, of_dmean, of_dhead = _slices(*sizes)

        def backward(number, carry):
            t = steps - 1 - number
            before, after = ops.maximum(t - 1, 0), ops.minimum(t + 1, steps - 1)
            dx, dkeys, log = carry
            dk, dh = dx[:size], dx[size:]
            key, gate = results[t][of_key], results[t][of_gate]
            dmean = dk * gate
            dgate = ops.sum(dk * saved[after][:size], axis=0) * (1 - gate)
            dkeys = dkeys + key_scores[t][:, None] * dmean[:key_dim]
            dkey = ops.where(key > 0, dkeys[t] + upstream[t][units:], 0)
            dh = dh + upstream[t][:units] + to_gate * dgate
            dh = dh + ops.matmul(to_key, dkey)
            slopes = saved[t][of_slopes]
            by_i, by_g, by_o, by_c, f = ops.split(slopes, 5, axis=0)
            by_f = f * (1 - f) * ops.where(t > 0, results[before][of_c], 0)
            dc = log[after][of_dc] + dh * by_c
            row = dc * by_i, dc * by_f, dc * by_g, dh * by_o, dc * f
            row = ops.concatenate([*row, dmean, dkey, dgate], axis=0)
            log = update_row(log, t, row)
            dx = ops.matmul(kernels, log[t][of_dgates])
            # A padded step passes its gradient to the step before.
            passed = ops.concatenate([ops.zeros_like(dk), dh], axis=0)
            return ops.where(valid[t] > 0, dx, passed), dkeys, log

        of_all = [zeros(steps, n, batch) for n in (key_dim, of_dhead.stop)]
        *_, log = ops.fori_loop(0, steps, backward, (start, *of_all))
        dgates, dmeans = log[:, of_dgates], log[:, of_dmean]
        dweights = _gradients(saved[:, of_x], dgates)
        dwrite_weights = _gradients(results[:, of_h], log[:, of_dhead])
        keys = outputs[..., units:]
        return (
            ops.einsum("tkb,bsk->bts", dmeans[:, :key_dim], keys),
            ops.transpose(dmeans[:, key_dim:], (2, 0, 1)),
            ops.zeros_like(ops.transpose(valid, (2, 0, 1))),
            dweights[:size],
            dweights[size:-1],
            dweights[-1],
            dwrite_weights[:-1],
            dwrite_weights[-1],
        )

    return outputs, gradient


def _slices(*sizes):
    """Where parts of these sizes are in a row."""
    ends = np.cumsum(sizes).tolist()
    return list(map(slice, [0, *ends], ends))


def _gradients(inputs, outputs_gradient):
    """Gradient of a kernel over all steps, and in the last row of a bias."""
    ones = ops.ones_like(inputs[:, :1])
    inputs = ops.transpose(ops.concatenate([inputs, ones], axis=1), (1, 0, 2))
    outputs_gradient = ops.transpose(outputs_gradient, (0, 2, 1))
    return ops.matmul(
        ops.reshape(inputs, (inputs.shape[0], -1)),
        ops.reshape(outputs_gradient, (-1, outputs_gradient.shape[2])),
    )
