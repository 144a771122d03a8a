"""Trains an agent on BoxWorld with a teacher, and then without one.

The teacher, `expert_moves` of BoxWorld, knows the right moves in any state. The
agent learns them where its own moves and the teacher's lead. After --num-taught
steps IMPALA goes on alone. boxworld_impala.py has no teacher, as in the paper.
"""

import keras

from experiments import command_line
from experiments.two_simplicial import puzzles
from keras_relational import analysis
from keras_relational.environments.curriculum import Curriculum
from keras_relational.training import agent_runs
from keras_relational.training import impala

FALL = keras.optimizers.schedules.PolynomialDecay
RATES = {"epsilon": 1e-5, "value_estimation_loss_coef": 0.02}
UNROLL = 5
LINES = ["solved: {greedy[solved]:.1%}, by random moves {random[solved]:.1%}"]
NEXT = "python -m experiments.two_simplicial teacher --world bridge"


def main(command):
    add = command.option
    puzzles.add_agent_options(add, "relational")
    puzzles.add_options(add)
    puzzles.add_test_options(add)
    add("--curriculum", bool, False, "puzzles grow with the share solved")
    add("--teacher-share", command_line.number, 1.0, "of the loss, at first")
    add("--teacher-moves", command_line.number, 0.5, "share of them, at first")
    add("--num-taught", int, 0, "steps with a teacher; 0: all", low=0)
    add("--num-steps", int, 2_000_000, "the update that reaches it is the last")
    add("--batch-size", int, 64, "puzzles at a time")
    add("--learning-rate", float, 5e-4, "of RMSProp, falls to 0 in a line")
    add("--num-test", int, 1_000, "fixed puzzles to play at the end")
    args = command.parse_run(export="a SavedModel of the agent")
    board, others = puzzles.make_test_worlds(command, args)
    world = Curriculum(board) if args.curriculum else board
    model, data = puzzles.make_agent(command, args, world)
    steps = args.batch_size * UNROLL
    fall = FALL(args.learning_rate, -(-args.num_steps // steps), 0.0)
    rates = {k: getattr(args, k) for k in ("teacher_share", "teacher_moves")}
    rates |= RATES | {"learning_rate": fall, "unroll_length": UNROLL}
    rates["teacher_updates"] = -(-args.num_taught // steps) or None
    sizes = args.batch_size, args.seed
    learner = impala.actor_learner(world, model, *sizes, **rates)
    measure = puzzles.solved_alone(board, model)
    may_differ = ["num_steps", "num_test", "test_length"]
    with command.open_run(["world", "network"], may_differ, data) as run:
        plan = args.num_steps, board.success_reward, run, None, 500, False
        curves = agent_runs.train_agent(learner, *plan, measure, args.verbose)
        drawn = args.network, run.directory, "solved_alone"
        analysis.draw_solved_share(curves, *drawn)
        test = args.num_test, run.directory, False, puzzles.PLAYERS
        figures = analysis.agent_figures(board, model, *test, others)
        command.finish(run, model, figures, LINES, NEXT)
