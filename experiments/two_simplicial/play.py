"""Plays a BoxWorld puzzle by asking a served agent for each move.

The puzzle is one that training never draws. Its frames become a GIF. A preset
of the library knows its kind of puzzle. With an agent of your own, exported by
the experiment `teacher`, give the options of the puzzles of its training:

    python -m experiments.two_simplicial play --preset boxworld_3x18_relational
    python -m experiments.two_simplicial play --model-dir agent
"""

import contextlib
import pathlib
import tempfile

import numpy as np

from experiments import command_line
from experiments.two_simplicial import puzzles
from keras_relational import analysis
from keras_relational import models
from keras_relational import serving
from keras_relational.analysis.plotting import save_gif
from keras_relational.random_streams import unseen_world_seeds

TO = pathlib.Path("runs/puzzles")
TILE = np.ones((16, 16, 1), "uint8")


def main(command):
    add = command.option
    exported = command_line.existing_folder
    add(
        "--preset",
        puzzles.preset_or_folder,
        None,
        "a trained agent, to be served here",
    )
    add("--model-dir", exported, None, "an exported agent, to be served here")
    add("--rest-url", str, None, "server of an agent, if one runs already")
    add("--model-name", str, "relations", "name of the agent on the server")
    puzzles.add_options(add)
    add("--puzzle", int, 0, "number of the puzzle", low=0)
    add("--sampled", bool, False, "draw moves from the policy")
    add("--directory", command_line.folder, TO, "folder to write to")
    args = command.parse_args()
    folder, url = args.model_dir, args.rest_url
    rng = np.random.default_rng(args.puzzle)
    if [args.preset, folder, url].count(None) != 2:
        command.error("give one of --preset, --model-dir and --rest-url")

    def ask(image):
        request = {"image": image[None]}
        answer = serving.predict_rest(url, request, args.model_name)
        if not args.sampled:
            return int(answer["label"][0])
        chances = answer["probabilities"][0].astype("float64")
        return rng.choice(len(chances), p=chances / chances.sum())

    with contextlib.ExitStack() as stack:
        if args.preset is not None:
            puzzles.take_puzzles(args, args.preset)
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            serving.export_model(models.from_preset(args.preset), folder)
        if folder is not None:
            url = stack.enter_context(serving.serve(folder)).rest_url
        world = puzzles.make_world(command, args)
        seed = unseen_world_seeds(args.puzzle + 1)[-1]
        played = analysis.record(world, seed, ask)
    path = args.directory / f"puzzle_{args.puzzle}.gif"
    path.parent.mkdir(parents=True, exist_ok=True)
    frames = [np.kron(image, TILE) for image in played["images"]]
    save_gif(frames, path, milliseconds=300)
    end = "solved" if played["solved"] else "not solved"
    print(f"{end} after {len(played['actions'])} moves. Look at {path}")
