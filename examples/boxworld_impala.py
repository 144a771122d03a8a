"""Trains an agent on BoxWorld or bridge BoxWorld with IMPALA.

Clift et al., 2019, Logic and the 2-Simplicial Transformer, Figs. 6 to 15. The
defaults are the smallest puzzle: one box, the gem in it, on 3 by 6 tiles. Both
agents solve it, in little more than the fewest moves, within 20 minutes on 2
cores; the paper's bridge puzzles (--world bridge) take some 10⁹ steps.
"""

import argparse
import json
import pathlib

from keras_relational.training import impala  # first: it needs Keras 2 too

# isort: split
import keras
import numpy as np

from keras_relational import analysis
from keras_relational import legacy_keras
from keras_relational import models
from keras_relational import runs
from keras_relational import serving
from keras_relational.environments import boxworld
from keras_relational.environments import tf_agents_environment
from keras_relational.training import agent_runs

WORLDS = {"box": boxworld.BoxWorld, "bridge": boxworld.BridgeBoxWorld}
SMALLEST = {
    "box": {
        "rows": 3,
        "columns": 6,
        "solution_length": (1, 1),
        "num_distractors": (0, 0),
    },
    "bridge": {},  # As it is: the paper's.
}


def main():
    args = parse_arguments()
    given = {name: getattr(args, name) for name in SMALLEST["box"]}
    given = {name: value for name, value in given.items() if value}
    world = WORLDS[args.world](
        **{**SMALLEST[args.world], **given},
        max_episode_steps=args.max_episode_steps or None,
    )
    environment = tf_agents_environment.WorldTFEnvironment(
        world, batch_size=32, seed=args.seed
    )
    keras.utils.set_random_seed(args.seed)
    units = args.recurrent_units
    model = models.boxworld_agent(
        args.network,
        world.image_shape,
        num_iterations=args.num_iterations,
        cell=keras.layers.GRUCell(units) if units else None,
    )
    agent = impala.ImpalaAgent(
        environment.time_step_spec(), environment.action_spec(), model
    )
    with runs.Run(
        args.directory,
        "boxworld_impala",
        vars(args),
        (
            "num_steps",
            "num_test",
            "shortest",
            "by_level",
            "export",
            "verbose",
        ),
    ) as run:
        curves = agent_runs.train_agent(
            impala.ActorLearner(agent, environment, seed=args.seed),
            args.num_steps,
            world.success_reward,
            run=run,
            by_level=args.by_level,
        )
    run.save_model(model)
    figure = analysis.plot_learning_curves(
        {args.network: [curves]}, "solved", "steps"
    )
    analysis.save_figure(figure, args.directory / "curves.png")

    # Seeds that training does not get to see; there may be few puzzles.
    seeds = 10**9 + np.arange(args.num_test)
    result = {
        "run": args.directory.name,
        "steps": int(curves["steps"][-1]),
        "minutes": round(float(curves["minutes"][-1]), 1),
    }
    greedy = analysis.play(world, seeds, model)
    for player, played in {
        "greedy": greedy,
        "sampled": analysis.play(world, seeds, model, greedy=False),
        "random": analysis.play(world, seeds),
    }.items():
        result[player] = {
            "solved": float(played["solved"].mean()),
            "length": float(played["lengths"].mean()),
            "types": {
                str(level): figures
                for level, figures in analysis.by_level(played).items()
            },
        }
    if args.network != "convolutional" and greedy["solved"].any():
        seed = seeds[np.argmax(greedy["solved"])]
        episode = analysis.record(world, seed, model)
        picture = args.directory / "attention.gif"
        analysis.animate_attention(model, episode["images"], picture)
        print(f"A solved episode: {picture}")
    if args.shortest:
        lengths = analysis.shortest_lengths(world, seeds)
        result["shortest_length"] = float(lengths.mean())
    print(json.dumps(run.finish(result)))
    if args.export:
        print(f"Exported: {serving.export_model(model, args.export)}")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--network", choices=models.NETWORKS, default="simplicial")
    add("--num-iterations", type=int, default=2, help="of the block")
    add("--recurrent-units", type=int, default=0, help="of a GRU; 0: none")
    add("--world", choices=("box", "bridge"), default="box")
    add("--rows", type=int, help="default: 3, for bridge 7")
    add("--columns", type=int, help="default: 6, for bridge 9")
    range_ = {"type": int, "nargs": 2, "metavar": ("LOW", "HIGH")}
    add("--solution-length", help="default: 1 1, for bridge 1 3", **range_)
    add("--num-distractors", help="default: 0 0; not for bridge", **range_)
    add("--max-episode-steps", type=int, default=120, help="0: no cap")
    add("--num-steps", type=int, default=8_000_000)
    add("--num-test", type=int, default=1_000, help="fixed puzzles")
    add("--shortest", action="store_true", help="search the shortest ways")
    add("--by-level", action="store_true", help="share solved of each level")
    add("--export", help="folder for a SavedModel that can be served")
    add("--seed", type=int, default=0)
    add("--directory", type=pathlib.Path, default="runs/boxworld")
    args = parser.parse_args()
    if args.world == "bridge" and args.num_distractors:
        parser.error("--num-distractors is for --world box")
    legacy_keras.check_backend("Agents that train")
    runs.check_export(args.export)
    return args


if __name__ == "__main__":
    main()
