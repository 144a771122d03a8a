"""Teaches an agent of BoxWorld to see which colours match, and what loses.

It learns from single positions: the expert actions, and two hints. One asks its
heads to attend to equal colours, the other which locks lose. Go on with the
experiment `teacher` and --preset, where the agent plays and has no hints.
"""

import keras

from experiments import command_line
from experiments.agents import solved_share
from experiments.two_simplicial import puzzles
from experiments.two_simplicial.evaluation import evaluate
from experiments.two_simplicial.position_student import PositionBatches
from experiments.two_simplicial.position_student import position_student
from keras_relational import training

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
    rate = keras.optimizers.schedules.PolynomialDecay(
        args.learning_rate, args.num_batches, 0.0
    )
    student = position_student(model, rate, args.attention_weight)

    def batches(first):
        return PositionBatches(
            world, args.batch_size, initial_batch=first, seed=args.seed
        )

    with command.open_run(
        always=["world", "network"],
        may_differ=["num_test", "test_length"],
        data=data,
    ) as run:
        training.fit(
            student,
            batches,
            num_batches=args.num_batches,
            batches_per_epoch=1_000,
            measure=solved_share(world, model),
            run=run,
            verbose=args.verbose,
        )
        metrics = evaluate(
            world,
            model,
            args.num_test,
            run.directory,
            players=puzzles.PLAYERS,
            others=others,
        )
        command.finish(run, model, metrics, LINES, NEXT)
