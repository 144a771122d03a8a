"""How fast worlds are played, an image each step."""

import gymnasium
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


def rate_of_play(world, batch=1024, steps=100):
    """Steps a second of random play, an image each step.

    Finished episodes are replaced by freshly made ones.
    """

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


if __name__ == "__main__":
    main()
