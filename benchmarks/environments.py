"""How fast worlds are played, an image each step."""

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


if __name__ == "__main__":
    main()
