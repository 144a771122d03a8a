"""The times that no version can beat: the largest products of a step, alone.

A loop of training steps does nothing but the products of one kernel: outputs,
the gradients of inputs and kernel, and the update of the kernel by SGD. It has
no bias, no activation, and nothing between. Every program that leaves out no
product takes this time.
"""

import numpy as np
from keras import ops

from benchmarks.measuring import matrix_product_rate
from benchmarks.measuring import median_seconds
from keras_relational.environments.compilation import compiled

# Rows, inputs and outputs of a product, and how many of them share a kernel
# before its update.
KERNELS = {
    "PrediNet, queries, batch 10": (10, 850, 1024, 1),
    "Relation network, all pairs, batch 10": (6_250, 256, 640, 1),
    "ESBN, its controller, batch 32, 10 steps": (32, 768, 2_048, 10),
    "SCOFF, all gates, batch 64, 50 steps": (384, 200, 1_200, 50),
}


def main():
    print(f"{'':50s}{'a step':>10s}{'of rate':>9s}{'kernel':>10s}")
    for name, sizes in KERNELS.items():
        rows, inner, outer, repeats = sizes
        seconds = seconds_of_a_step(*sizes)
        floor = 6 * rows * inner * outer * repeats / matrix_product_rate()
        print(
            f"{name:50s}{1e3 * seconds:7.2f} ms{floor / seconds:9.0%}"
            f"{4 * inner * outer / 2**20:6.1f} MiB",
            flush=True,
        )


def seconds_of_a_step(rows, inner, outer, repeats):
    """Seconds of a training step of one kernel."""
    rng = np.random.default_rng(0)
    # About a second.
    steps = max(4, int(2e10 / (rows * inner * outer * repeats)))
    inputs = rng.normal(size=(repeats, rows, inner)).astype("float32")
    kernel = rng.normal(size=(inner, outer)).astype("float32") / inner

    def one(repeat, carry):
        kernel, gradient, x = carry
        outputs = ops.matmul(x[repeat], kernel)
        gradient = gradient + ops.matmul(ops.transpose(x[repeat]), outputs)
        of_inputs = ops.matmul(outputs, ops.transpose(kernel))
        # Into the inputs of a later step, so that it is needed.
        x = ops.slice_update(x, (repeat, 0, 0), 1e-3 * of_inputs[None])
        return kernel, gradient, x

    def step(_, carry):
        kernel, x = carry
        carry = kernel, ops.zeros_like(kernel), x
        kernel, gradient, x = ops.fori_loop(0, repeats, one, carry)
        return kernel - 1e-9 * gradient, x

    run = compiled(lambda kernel, x: ops.fori_loop(0, steps, step, (kernel, x)))
    kernel, inputs = map(ops.convert_to_tensor, (kernel, inputs))
    seconds = median_seconds(
        lambda: ops.convert_to_numpy(run(kernel, inputs)[0])
    )
    return seconds / steps
