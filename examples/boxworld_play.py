"""Plays a BoxWorld puzzle by asking a served agent for each move.

The puzzle is one that training never draws. Its frames become a GIF. Train an
agent and export it before, and name the same kind of puzzle:

    python examples/boxworld_teacher.py --export agent
    python examples/boxworld_play.py --model-dir agent
"""

import contextlib
import pathlib

import boxworld_puzzles
import command_line
import numpy as np
from keras import ops

from keras_relational import serving
from keras_relational.analysis.plotting import save_gif
from keras_relational.environments.compilation import compiled
from keras_relational.random_streams import unseen_world_seeds

TO = pathlib.Path("runs/puzzles")
TILE = np.ones((16, 16, 1), "uint8")


def main(command):
    add, exported = command.option, command_line.existing_folder
    add("--model-dir", exported, None, "an agent, to be served here")
    add("--rest-url", str, None, "server of the agent, if one runs already")
    add("--model-name", str, "relations", "name of the agent on the server")
    boxworld_puzzles.add_options(add)
    add("--puzzle", int, 0, "number of the puzzle", low=0)
    add("--sampled", bool, False, "draw moves from the policy")
    add("--directory", command_line.folder, TO, "folder to write to")
    args = command.parse_args()
    if (args.model_dir is None) == (args.rest_url is None):
        command.error("give either --model-dir or --rest-url")
    world = boxworld_puzzles.make_world(command, args)
    with contextlib.ExitStack() as stack:
        url = args.rest_url
        if url is None:
            url = stack.enter_context(serving.serve(args.model_dir)).rest_url
        images, reward = play(world, url, args)
    path = args.directory / f"puzzle_{args.puzzle}.gif"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_gif([np.kron(x, TILE) for x in images], path, 300)
    end = "solved" if reward >= world.success_reward else "not solved"
    print(f"{end} after {len(images) - 1} moves. Look at {path}")


def play(world, url, args):
    rng = np.random.default_rng(args.puzzle)
    state = world.reset(unseen_world_seeds(args.puzzle + 1)[-1:])
    images, step, over = [world.render(state)], compiled(world.step), False
    while not over:
        request = {"image": ops.convert_to_numpy(images[-1])}
        answer = serving.predict_rest(url, request, args.model_name)
        move = answer["label"].astype("int32")
        if args.sampled:
            (chances,) = answer["probabilities"].astype("float64")
            move[:] = rng.choice(len(chances), p=chances / chances.sum())
        state, reward, terminated, truncated = step(state, move)
        images.append(world.render(state))
        over = bool(terminated[0] or truncated[0])
    return np.concatenate(list(map(ops.convert_to_numpy, images))), reward[0]


if __name__ == "__main__":
    command_line.start(main, __file__, __doc__)
