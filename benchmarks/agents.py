"""Agents that act and learn: bridge BoxWorld, 32 episodes, 40 steps.

The gradient of all frames at once is compared with the gradient in parts.
"""

import statistics

from benchmarks import measuring
from benchmarks.two_simplicial_attention import simplicial_flops
from keras_relational import models
from keras_relational.environments import boxworld


def main():
    print(
        "IMPALA, 32 episodes, 40 steps: acting; learning from all frames at "
        "once and in parts of up to 48; both"
    )
    print(
        "                act ms  once ms  parts ms  ratio  frames/s  of rate"
        "  trajectory kB  weights kB"
    )
    for network in models.NETWORKS:
        whole, parts = (new_learner(network, n) for n in (None, 48))
        act = measuring.median_seconds(
            lambda t=parts: t.act()[0].reward.numpy()
        )
        # Forward to act; forward and backward to learn.
        flops = agent_flops(network) * (1_280 + 3 * 1_312)
        times = measuring.interleaved(
            [
                measuring.seconds_of(lambda t=t: t.train()[0].loss.numpy())
                for t in (whole, parts)
            ]
        )
        seconds = [statistics.median(x) for x in times]
        once, pieces = (s - act for s in seconds)
        print(
            f"{network:15s}{act * 1e3:7.1f}{once * 1e3:9.1f}"
            f"{pieces * 1e3:10.1f}{once / pieces:7.2f}"
            f"{1_280 / seconds[1]:10,.0f}"
            f"{flops / measuring.matrix_product_rate() / seconds[1]:9.0%}"
            f"{kilobytes(parts.act()):15,.0f}"
            f"{kilobytes(parts.agent.network.values):12,.0f}",
            flush=True,
        )


def kilobytes(nest):
    """What an actor on another machine sends, and what is sent to it."""
    import tensorflow as tf

    return sum(x.numpy().nbytes for x in tf.nest.flatten(nest)) / 1_000


def new_learner(network, microbatch_frames):
    from keras_relational.agents.actor_learner import actor_learner

    model = models.boxworld_agent(network)
    return actor_learner(
        boxworld.BridgeBoxWorld(), model, microbatch_frames=microbatch_frames
    )


def agent_flops(network, n=40):
    convolutions = 54 * 12 * 12 + n * 48 * 24
    if network == "convolutional":
        return 2 * (convolutions + n * 24 * 256 + 256 * 256 + 5 * 256)
    block = 3 * n * 64 * 64 + 2 * n * n * 64 + 2 * n * 64 * 64
    if network == "simplicial":
        block += simplicial_flops(n, 2) / 2 + n * 48 * 64
    head = 64 * 256 + 3 * 256 * 256 + 5 * 256
    return 2 * (convolutions + n * 24 * 62 + 2 * block + head)
