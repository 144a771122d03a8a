"""How fast worlds are played, an image each step."""

import gymnasium
import keras
import numpy as np
from keras import ops

from benchmarks.measuring import median_seconds
from keras_relational import counter_based_random
from keras_relational.environments import boxworld
from keras_relational.environments import compilation
from keras_relational.environments import goto_object_maze


def main():
    for name, world in {
        "Bridge BoxWorld": boxworld.BridgeBoxWorld(max_episode_steps=120),
        "Maze": goto_object_maze.GotoObjectMaze(),
    }.items():
        print(f"{name}: {rate_of_play(world):,.0f} steps a second")
    for name in ("BridgeBoxWorld", "GotoObjectMaze"):
        rates = [rate_of_gymnasium(name), rate_of_gymnasium(name, 32)]
        print(f"{name}, Gymnasium: {rates[0]:,.0f} steps a second")
        print(f"{name}, Gymnasium, 32 at a time: {rates[1]:,.0f}")
    if keras.backend.backend() == "tensorflow":
        for name, rate in rates_of_tf_agents().items():
            print(
                f"BridgeBoxWorld, tf-agents, 256 at a time, {name}: {rate:,.0f}"
            )


def rate_of_play(world, batch=1024, steps=100):
    """Steps a second of random play, an image each step, without end."""

    def play(state):
        def step(_, carry):
            state, brightness = carry
            actions = 4 * counter_based_random.random_uniform(
                state["seed"], state["episode"], state["steps"]
            )
            state, _, *ends = world.step(state, ops.cast(actions, "int32"))
            state = world.restart(state, ends[0] | ends[1])
            # So that the image is needed.
            pixels = ops.cast(world.render(state)[:, :, :, 0], "int32")
            return state, brightness + ops.sum(pixels)

        zero = ops.convert_to_tensor(0, "int32")
        return ops.fori_loop(0, steps, step, (state, zero))

    play = compilation.compiled(play)
    state = world.reset(np.arange(batch))
    seconds = median_seconds(lambda: ops.convert_to_numpy(play(state)[1]))
    return batch * steps / seconds


def rate_of_gymnasium(name, num_envs=None, steps=2_000):
    """Steps a second of random play through Gymnasium."""
    name = f"keras_relational:keras_relational/{name}-v0"
    rng = np.random.default_rng(0)
    if num_envs is None:
        env = gymnasium.make(name, max_episode_steps=120)
        actions = rng.integers(4, size=steps)
    else:
        env = gymnasium.make_vec(name, num_envs=num_envs, max_episode_steps=120)
        actions = rng.integers(4, size=(steps, num_envs))
    env.reset(seed=0)

    def play():
        for action in actions:
            *_, terminated, truncated, _ = env.step(action)
            # A vector environment begins new episodes itself.
            if num_envs is None and (terminated or truncated):
                env.reset()

    return steps * (num_envs or 1) / median_seconds(play)


def rates_of_tf_agents(batch=256, steps=200):
    """Steps a second of random play through tf-agents, by kind of loop."""
    import tensorflow as tf

    from keras_relational.environments import tf_agents_environment

    environment = tf_agents_environment.WorldTFEnvironment(
        boxworld.BridgeBoxWorld(max_episode_steps=120), batch
    )
    rng = np.random.default_rng(0)
    actions = tf.constant(rng.integers(4, size=(steps, batch)), tf.int32)
    one_by_one = tf.unstack(actions)  # It takes half as long as a step.

    def play():
        for action in one_by_one:
            step = environment.step(action)
        return step.observation.numpy()

    @tf.function
    def play_in_a_graph():
        brightness = tf.constant(0)
        for action in actions:
            image = environment.step(action).observation
            brightness += tf.reduce_sum(tf.cast(image[..., 0], tf.int32))
        return brightness

    return {
        "one call a step": batch * steps / median_seconds(play),
        "in a graph": batch
        * steps
        / median_seconds(lambda: play_in_a_graph().numpy()),
    }
