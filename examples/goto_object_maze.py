"""Trains an agent with a memory to find an object in a maze, with IMPALA.

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments, section 5 and appendix D: rooms of 6 by 6
cells, then, without training, of 10 by 10, where an agent with SCOFF, one
object file and four schemata, finds it in 82 % of episodes, with a GRU in 56 %
and with one of as many parameters in 74 %. Sizes as in Table 5, but for
--units; they train with PPO. The agent chooses schemata without noise, and has
no dropout, as it learns from what it did. The schemata are LSTMs: with GRUs, to
whose h messages are added, it grew beyond all bounds in episodes of 324 steps.
Killed, it continues when it is started again.
"""

import argparse
import json
import pathlib

from keras_relational.training import impala  # first: it needs Keras 2 too

# isort: split
import keras
import numpy as np

from keras_relational import analysis
from keras_relational import layers
from keras_relational import legacy_keras
from keras_relational import models
from keras_relational import runs
from keras_relational import serving
from keras_relational.environments import goto_object_maze
from keras_relational.environments import tf_agents_environment
from keras_relational.training import agent_runs

CORES = ("scoff", "gru", "gru_of_equal_size")
# So small that steps of RMSprop are as those of Adam, which they train with.
EPSILON = 1e-5
# A tenth of that for BoxWorld, as what is won is a tenth.
ENTROPY_REGULARIZATION = 5e-4
UPDATES_PER_EPOCH = 300


def main():
    args = parse_arguments()
    world = goto_object_maze.GotoObjectMaze(num_objects=args.num_objects)
    environment = tf_agents_environment.WorldTFEnvironment(
        world, batch_size=args.batch_size, seed=args.seed
    )
    keras.utils.set_random_seed(args.seed)
    model = models.boxworld_agent(
        "convolutional",
        world.image_shape,
        len(world.actions),
        cell=new_cell(args.core, args.units),
    )
    agent = impala.ImpalaAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        model,
        learning_rate=args.learning_rate,
        entropy_regularization=ENTROPY_REGULARIZATION,
        epsilon=EPSILON,
    )
    name = f"maze-{args.core}{args.options}-seed{args.seed}"
    directory = args.directory / name
    # Seeds that training does not get to see.
    seeds = 10**9 + np.arange(args.num_test)
    larger = goto_object_maze.GotoObjectMaze(10, num_objects=args.num_objects)

    def measure():
        played = analysis.play(larger, seeds[:100], model, greedy=False)
        return {"solved_in_10_by_10": float(played["solved"].mean())}

    with runs.Run(
        directory,
        "goto_object_maze",
        vars(args),
        ("num_steps", "num_test", "export", "verbose"),
    ) as run:
        curves = agent_runs.train_agent(
            impala.ActorLearner(agent, environment, seed=args.seed),
            args.num_steps,
            world.success_reward,
            run=run,
            updates_per_epoch=UPDATES_PER_EPOCH,
            measure=measure,
        )
    run.save_model(model)
    figure = analysis.plot_learning_curves(
        {args.core: [curves]}, "solved", "steps"
    )
    analysis.save_figure(figure, directory / "curves.png")

    result = {
        "run": name,
        "parameters": model.count_params(),
        "steps": int(curves["steps"][-1]),
        "minutes": round(float(curves["minutes"][-1]), 1),
    }
    for tested in (world, larger):
        for player, played in {
            "sampled": analysis.play(tested, seeds, model, greedy=False),
            "random": analysis.play(tested, seeds),
        }.items():
            result[f"{player}_{tested.room_size}"] = {
                "solved": float(played["solved"].mean()),
                "length": float(played["lengths"].mean()),
            }
    print(json.dumps(run.finish(result)))
    if args.core == "scoff":
        episode = analysis.record(world, seeds[0], model, greedy=False)
        found = analysis.episode_object_files(model, episode["images"])
        figure = analysis.plot_schemata(found)
        analysis.save_figure(figure, directory / "schemata.png")
    if args.export:
        print(f"Exported: {serving.export_model(model, args.export)}")


def new_cell(core, units):
    scoff = layers.SCOFFCell(
        units,
        num_object_files=1,
        num_schemata=4,
        dynamics="lstm",
        num_heads=4,
        value_dim=256,
        message_key_dim=16,
    )
    if core == "scoff":
        return scoff
    if core == "gru":
        return keras.layers.GRUCell(units)
    # 3 (u² + 256 u + 2 u) weights, after a dense layer of 256.
    scoff.build((None, 256))
    return keras.layers.GRUCell(
        round((129**2 + scoff.count_params() / 3) ** 0.5 - 129)
    )


def options_in_name(parser, args, names):
    return runs.run_name(
        "",
        {name: getattr(args, name) for name in names},
        {name: parser.get_default(name) for name in names},
    )


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--core", choices=CORES, default="scoff")
    add("--units", type=int, default=128, help="of the memory; the paper: 510")
    add("--num-objects", type=int, default=1)
    add("--num-steps", type=int, default=8_000_000)
    add("--batch-size", type=int, default=64, help="mazes at a time")
    rate = "as in Table 5, which is of Adam; this is RMSprop"
    add("--learning-rate", type=float, default=3e-4, help=rate)
    add("--num-test", type=int, default=1_000, help="fixed mazes")
    add("--export", help="folder for a SavedModel that can be served")
    add("--seed", type=int, default=0)
    add("--directory", type=pathlib.Path, default="runs")
    args = parser.parse_args()
    options = ("units", "num_objects", "batch_size", "learning_rate")
    args.options = options_in_name(parser, args, options)
    legacy_keras.check_backend("Agents that train")
    runs.check_export(args.export)
    return args


if __name__ == "__main__":
    main()
