"""Agents that act and learn: bridge BoxWorld, 32 episodes, 40 steps."""

from benchmarks.measuring import matrix_product_rate
from benchmarks.measuring import median_seconds
from benchmarks.two_simplicial_attention import simplicial_flops
from keras_relational import models
from keras_relational.environments import boxworld


def main():
    from keras_relational.environments import tf_agents_environment
    from keras_relational.training import impala

    print(
        "IMPALA, 32 episodes, 40 steps       act     learn   frames/s  of rate"
    )
    for network in models.NETWORKS:
        environment = tf_agents_environment.WorldTFEnvironment(
            boxworld.BridgeBoxWorld(), batch_size=32
        )
        model = models.boxworld_agent(network)
        agent = impala.ImpalaAgent(
            environment.time_step_spec(), environment.action_spec(), model
        )
        training_ = impala.ActorLearner(agent, environment)
        act = median_seconds(lambda t=training_: t.act()[0].reward.numpy())
        trajectory, _ = training_.act()
        learn = median_seconds(
            lambda a=agent, t=trajectory: a.learn(t).loss.numpy()
        )
        both = median_seconds(lambda t=training_: t.train()[0].loss.numpy())
        # Forward to act; forward and backward to learn.
        flops = agent_flops(network) * (1_280 + 3 * 1_312)
        print(
            f"    {network:24s}{act * 1e3:7.1f} ms{learn * 1e3:7.1f} ms"
            f"{1_280 / both:11,.0f}{flops / matrix_product_rate() / both:9.0%}",
            flush=True,
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


if __name__ == "__main__":
    main()
