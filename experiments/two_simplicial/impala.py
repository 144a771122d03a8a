"""Trains an agent on BoxWorld or bridge BoxWorld with IMPALA.

Clift et al., 2019, Logic and the 2-Simplicial Transformer, Figs. 6 to 15. The
defaults, one box on 3 by 6 tiles, take 20 minutes, bridge puzzles 10⁹ steps.
"""

from experiments.agents import draw_solved_share
from experiments.two_simplicial import puzzles
from experiments.two_simplicial.evaluation import evaluate
from keras_relational.agents.actor_learner import actor_learner
from keras_relational.agents.training import train_agent

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
    model, data = puzzles.make_agent(
        command,
        args,
        world,
        num_iterations=args.num_iterations,
        recurrent_units=args.recurrent_units,
    )
    learner = actor_learner(world, model, batch_size=32, seed=args.seed)
    with command.open_run(
        always=["world", "network"],
        may_differ=["num_steps", "num_test", "shortest", "by_level"],
        data=data,
    ) as run:
        curves = train_agent(
            learner,
            args.num_steps,
            world.success_reward,
            run=run,
            by_level=args.by_level,
            verbose=args.verbose,
        )
        draw_solved_share(curves, args.network, run.directory)
        metrics = evaluate(
            world, model, args.num_test, run.directory, shortest=args.shortest
        )
        command.finish(run, model, metrics, LINES, NEXT)
