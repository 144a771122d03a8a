"""Teaches an agent of BoxWorld to see which colours match, and what loses.

It learns from single positions: the right moves, and two hints. One asks its
heads to attend to equal colours, the other which locks lose. Go on with
boxworld_teacher.py --preset, where the agent plays and has no hints.
"""

import keras

from experiments import command_line
from experiments.two_simplicial import puzzles
from keras_relational import analysis
from keras_relational import training

FALL = keras.optimizers.schedules.PolynomialDecay
LINES = ["solved: {sampled[solved]:.1%}, by random moves {random[solved]:.1%}"]
NEXT = "python -m experiments.two_simplicial positions --world bridge"


def main(command):
    add = command.option
    puzzles.add_agent_options(add, "relational")
    puzzles.add_options(add)
    puzzles.add_test_options(add)
    add("--num-batches", int, 20_000, "training steps")
    add("--batch-size", int, 64, "positions of a batch")
    add("--learning-rate", float, 5e-4, "of Adam, falls to 0 in a line")
    add("--attention-weight", command_line.number, 0.6, "of the hint of colour")
    add("--num-test", int, 1_000, "fixed puzzles to play at the end")
    args = command.parse_run(export="a SavedModel of the agent")
    if args.network == "convolutional":
        command.error("--network convolutional has no attention to teach")
    world, others = puzzles.make_test_worlds(command, args)
    model, data = puzzles.make_agent(command, args, world)
    fall = FALL(args.learning_rate, args.num_batches, 0.0)
    student = training.position_student(model, fall, args.attention_weight)

    def batches(first):
        sizes = args.batch_size, first, args.seed
        return training.PositionBatches(world, *sizes)

    measure = puzzles.solved_alone(world, model)
    may_differ = ["num_test", "test_length"]
    with command.open_run(["world", "network"], may_differ, data) as run:
        logged = {"run": run, "verbose": args.verbose}
        plan = args.num_batches, 1_000, measure
        training.fit(student, batches, *plan, **logged)
        test = args.num_test, run.directory, False, puzzles.PLAYERS
        figures = analysis.agent_figures(world, model, *test, others)
        command.finish(run, model, figures, LINES, NEXT)
