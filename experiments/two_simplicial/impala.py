"""Trains an agent on BoxWorld or bridge BoxWorld with IMPALA.

Clift et al., 2019, Logic and the 2-Simplicial Transformer, Figs. 6 to 15. The
defaults, one box on 3 by 6 tiles, take 20 minutes, bridge puzzles 10⁹ steps.
"""

import keras

from experiments.two_simplicial import puzzles
from keras_relational import analysis
from keras_relational.training import agent_runs
from keras_relational.training import impala

LINES = ["solved: {greedy[solved]:.1%}, by random moves {random[solved]:.1%}"]
NEXT = "python -m experiments.two_simplicial impala --network relational"


def main(command):
    add = command.option
    puzzles.add_agent_options(add, "simplicial")
    add("--num-iterations", int, 2, "times that the block is applied")
    add("--recurrent-units", int, 0, "of a GRU, its memory; 0: none", low=0)
    puzzles.add_options(add)
    add("--num-steps", int, 8_000_000, "the update that reaches it is the last")
    add("--num-test", int, 1_000, "fixed puzzles to play at the end")
    add("--shortest", bool, False, "search for the fewest moves, too")
    add("--by-level", bool, False, "learning curves of each level, too")
    args = command.parse_run(export="a SavedModel of the agent")
    world = puzzles.make_world(command, args)
    sizes = {"num_iterations": args.num_iterations}
    if args.recurrent_units:
        sizes["cell"] = keras.layers.GRUCell(args.recurrent_units)
    model, data = puzzles.make_agent(command, args, world, **sizes)
    learner = impala.actor_learner(world, model, 32, args.seed)
    may_differ = ["num_steps", "num_test", "shortest", "by_level"]
    with command.open_run(["world", "network"], may_differ, data) as run:
        training = args.num_steps, world.success_reward, run
        logged = {"by_level": args.by_level, "verbose": args.verbose}
        curves = agent_runs.train_agent(learner, *training, **logged)
        analysis.draw_solved_share(curves, args.network, run.directory)
        test = args.num_test, run.directory, args.shortest
        figures = analysis.agent_figures(world, model, *test)
        command.finish(run, model, figures, LINES, NEXT)
