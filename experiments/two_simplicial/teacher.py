"""Trains an agent on BoxWorld with a teacher, and then without one.

The teacher, `expert_moves` of BoxWorld, knows the expert actions in any state.
The agent learns them in states that its own moves and the teacher's lead to, as
in DAgger. After --num-taught steps IMPALA goes on alone. The experiment
`impala` has no teacher, as in the paper.

With --ray the actors play on the machines of a Ray cluster, and this process
learns from what they send.
"""

import functools

import keras

from experiments import command_line
from experiments.agents import draw_solved_share
from experiments.agents import solved_share
from experiments.two_simplicial import puzzles
from experiments.two_simplicial.curriculum import Curriculum
from experiments.two_simplicial.evaluation import evaluate
from keras_relational.agents import distributed
from keras_relational.agents.actor_learner import actor_learner
from keras_relational.agents.training import train_agent
from keras_relational.environments.tf_agents_environment import (
    WorldTFEnvironment,
)

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
    add(
        "--teacher-moves",
        command_line.number,
        0.5,
        "share of the moves, at first: β of DAgger",
    )
    add("--num-taught", int, 0, "steps with a teacher; 0: all", low=0)
    add("--num-steps", int, 2_000_000, "the update that reaches it is the last")
    add("--batch-size", int, 64, "puzzles at a time, of each actor")
    add("--learning-rate", float, 5e-4, "of RMSProp, falls to 0 in a line")
    add("--num-test", int, 1_000, "fixed puzzles to play at the end")
    add("--ray", str, None, "host:port of a Ray cluster; default: none")
    add("--num-actors", int, None, "processes there that play; default: none")
    args = command.parse_run(export="a SavedModel of the agent")
    if (args.ray is None) != (args.num_actors is None):
        command.error("give --ray and --num-actors together, or neither")
    board, others = puzzles.make_test_worlds(command, args)
    world = Curriculum(board) if args.curriculum else board
    model, data = puzzles.make_agent(command, args, world)
    steps = args.batch_size * UNROLL
    learner = actor_learner(
        world,
        model,
        batch_size=args.batch_size,
        seed=args.seed,
        unroll_length=UNROLL,
        # By frames: the first one of an episode is no step, and so the rate
        # is 0 before the last step, the sooner the shorter the episodes are.
        learning_rate=keras.optimizers.schedules.PolynomialDecay(
            args.learning_rate, -(-args.num_steps // steps), 0.0
        ),
        epsilon=1e-5,
        value_estimation_loss_coef=0.02,
        teacher_share=args.teacher_share,
        teacher_moves=args.teacher_moves,
        teacher_updates=-(-args.num_taught // steps) or None,
    )
    if args.ray is not None:
        distributed.connect(args.ray)
        learner = distributed.DistributedActorLearner(
            learner.agent,
            functools.partial(WorldTFEnvironment, world, args.batch_size),
            args.num_actors,
            UNROLL,
            args.seed,
        )
    with command.open_run(
        always=["world", "network"],
        may_differ=["num_steps", "num_test", "test_length"],
        data=data,
    ) as run:
        curves = train_agent(
            learner,
            args.num_steps,
            board.success_reward,
            run=run,
            updates_per_epoch=500,
            measure=solved_share(board, model),
            verbose=args.verbose,
        )
        draw_solved_share(curves, args.network, run.directory, "solved_alone")
        metrics = evaluate(
            board,
            model,
            args.num_test,
            run.directory,
            players=puzzles.PLAYERS,
            others=others,
        )
        command.finish(run, model, metrics, LINES, NEXT)
