"""Trains an agent with a memory to find an object in a maze, with IMPALA.

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge, section 5.
In rooms of 10 by 10, larger than those of training, the paper's SCOFF finds it
in 82 % of episodes, a GRU in 56 %, and one of as many parameters in 74 %.
"""

import keras

from keras_relational import analysis
from keras_relational import models
from keras_relational.environments.goto_object_maze import GotoObjectMaze
from keras_relational.random_streams import unseen_world_seeds
from keras_relational.training import agent_runs
from keras_relational.training import impala

PLAYERS = ["sampled", "random"]
# With a small ε RMSProp is like Adam. Rewards are a tenth of BoxWorld's.
RATES = {"epsilon": 1e-5, "entropy_regularization": 5e-4}
SOLVED = "rooms of {0} by {0}: found in {{sampled_{0}[solved]:.1%}} of mazes, "
SOLVED += "with random moves in {{random_{0}[solved]:.1%}}"
NEXT = "python -m experiments.scoff maze --core gru_of_equal_size"


def main(command):
    add = command.option
    add("--core", models.MAZE_MEMORIES, "scoff", "the agent's memory")
    add("--units", int, 128, "of the memory; the paper: 510")
    add("--num-schemata", int, 4, "of scoff")
    add("--schema-keys", ("shared", "separate"), "shared", "of scoff")
    add("--dynamics", ("lstm", "gru"), "lstm", "what a schema of scoff is")
    add("--num-objects", int, 1, "objects in a maze")
    add("--num-steps", int, 8_000_000, "the update that reaches it is the last")
    add("--batch-size", int, 64, "mazes at a time")
    add("--learning-rate", float, 3e-4, "of RMSProp; Table 5 has it for Adam")
    add("--num-test", int, 1_000, "fixed mazes to play at the end")
    args = command.parse_run(export="a SavedModel of the agent")
    world, larger = (GotoObjectMaze(size, args.num_objects) for size in (6, 10))
    keras.utils.set_random_seed(args.seed)
    schemata = args.num_schemata, args.schema_keys, args.dynamics
    memory = models.maze_memory(args.core, args.units, *schemata)
    sizes = world.image_shape, len(world.actions)
    model = models.boxworld_agent("convolutional", *sizes, cell=memory)
    rates = {"learning_rate": args.learning_rate, **RATES}
    batch = args.batch_size, args.seed
    learner = impala.actor_learner(world, model, *batch, **rates)

    def measure():
        played = analysis.play(larger, unseen_world_seeds(100), model, False)
        return {"solved_in_10_by_10": float(played["solved"].mean())}

    with command.open_run(["core"], ["num_steps", "num_test"]) as run:
        plan = args.num_steps, world.success_reward, run, None, 300, False
        curves = agent_runs.train_agent(learner, *plan, measure, args.verbose)
        analysis.draw_solved_share(curves, args.core, run.directory)
        seeds = unseen_world_seeds(args.num_test)
        figures = {"parameters": model.count_params()}
        for tested in (world, larger):
            played = analysis.play_each(tested, seeds, model, PLAYERS)
            for player, means in analysis.player_means(played).items():
                figures[f"{player}_{tested.room_size}"] = means
        if args.core == "scoff":
            analysis.draw_agent_schemata(world, seeds[0], model, run.directory)
        lines = [SOLVED.format(size) for size in (6, 10)]
        command.finish(run, model, figures, lines, NEXT)
