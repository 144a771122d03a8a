"""Trains an agent with a memory to find an object in a maze, with IMPALA.

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge, section 5.
In rooms of 10 by 10, larger than those of training, the paper's SCOFF finds it
in 82 % of episodes, a GRU in 56 %, and one of as many parameters in 74 %.
"""

import keras
import numpy as np

from experiments.agents import draw_solved_share
from experiments.agents import play_each
from experiments.agents import player_means
from experiments.agents import solved_share
from experiments.command_line import existing_file
from keras_relational import analysis
from keras_relational import models
from keras_relational import runs
from keras_relational.agents.actor_learner import ActorLearner
from keras_relational.agents.agent import ImpalaAgent
from keras_relational.agents.training import train_agent
from keras_relational.analysis.schemata import episode_object_files
from keras_relational.analysis.schemata import plot_schemata
from keras_relational.environments.goto_object_maze import GotoObjectMaze
from keras_relational.environments.tf_agents_environment import (
    WorldTFEnvironment,
)
from keras_relational.layers import SCOFFCell
from keras_relational.legacy_keras import check_backend
from keras_relational.random_streams import unseen_world_seeds

MEMORIES = ("scoff", "gru", "gru_of_equal_size")
INPUT_SIZE = 256  # Of the dense layer before the memory.
SOLVED = "rooms of {0} by {0}: found in {{sampled_{0}[solved]:.1%}} of mazes, "
SOLVED += "with random moves in {{random_{0}[solved]:.1%}}"
GROWN_FROM = "model.keras of an agent with one schema, which each schema copies"
KEY_RATE = "how many times as fast the keys that choose a schema learn"
NEXT = "python -m experiments.scoff maze --core gru_of_equal_size"


def main(command):
    add = command.option
    add("--core", MEMORIES, "scoff", "the agent's memory")
    add("--units", int, 128, "of the memory; the paper: 510")
    add("--num-schemata", int, 4, "of scoff")
    add("--schema-keys", ("shared", "separate"), "shared", "of scoff")
    add("--dynamics", ("lstm", "gru"), "lstm", "what a schema of scoff is")
    add("--key-rate", float, 1.0, KEY_RATE)
    add("--grown-from", existing_file, None, GROWN_FROM, metavar="FILE")
    add("--room-size", int, 6, "cells along a side of a room, in training")
    add("--num-objects", int, 1, "objects in a maze")
    add("--num-steps", int, 8_000_000, "the update that reaches it is the last")
    add("--batch-size", int, 64, "mazes at a time")
    add("--learning-rate", float, 3e-4, "of RMSProp; Table 5 has it for Adam")
    add("--num-test", int, 1_000, "fixed mazes to play at the end")
    args = command.parse_run(export="a SavedModel of the agent")
    if args.key_rate != 1 and args.core != "scoff":
        raise ValueError(
            f"--key-rate is of --core scoff alone: {args.core} has no keys"
        )
    check_backend("Agents that train")
    world = GotoObjectMaze(args.room_size, args.num_objects)
    larger = GotoObjectMaze(10, args.num_objects)
    keras.utils.set_random_seed(args.seed)
    model = models.boxworld_agent(
        "convolutional",
        world.image_shape,
        num_actions=len(world.actions),
        cell=memory(
            args.core,
            args.units,
            num_schemata=args.num_schemata,
            schema_keys=args.schema_keys,
            dynamics=args.dynamics,
        ),
    )
    data = {}
    if args.grown_from:
        grow(model, args.grown_from)
        data["grown_from"] = runs.data_digest(*model.get_weights())
    # With a small ε RMSProp is like Adam. Rewards are a tenth of BoxWorld's.
    environment = WorldTFEnvironment(world, args.batch_size, args.seed)
    agent = MazeAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        model,
        learning_rate=args.learning_rate,
        epsilon=1e-5,
        entropy_regularization=5e-4,
        key_rate=args.key_rate,
    )
    learner = ActorLearner(agent, environment, seed=args.seed)
    with command.open_run(
        always=["core"],
        may_differ=["grown_from", "num_steps", "num_test"],
        data=data,
    ) as run:
        curves = train_agent(
            learner,
            args.num_steps,
            world.success_reward,
            run=run,
            updates_per_epoch=300,
            measure=solved_share(larger, model, "solved_in_10_by_10"),
            verbose=args.verbose,
        )
        draw_solved_share(curves, args.core, run.directory)
        seeds = unseen_world_seeds(args.num_test)
        metrics = {"parameters": model.count_params()}
        for tested in (world, larger):
            played = play_each(tested, seeds, model, ["sampled", "random"])
            for player, means in player_means(played).items():
                metrics[f"{player}_{tested.room_size}"] = means
        if args.core == "scoff":
            episode = analysis.record(world, seeds[0], model, greedy=False)
            found = episode_object_files(model, episode["images"])
            path = run.directory / "schemata.png"
            analysis.save_figure(plot_schemata(found), path)
        lines = [SOLVED.format(size) for size in (args.room_size, 10)]
        command.finish(run, model, metrics, lines, NEXT)


class MazeAgent(ImpalaAgent):
    """Has a learning rate of its own for the keys that choose a schema.

    It is `key_rate` times that of the other weights.
    """

    def __init__(self, *args, key_rate=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.key_rate = key_rate

    def update(self, state, trajectory):
        after, info = super().update(state, trajectory)
        weights = list(after["weights"])
        for i, weight in enumerate(self.network.model.trainable_variables):
            if weight.name.startswith(("schema_query", "schema_key")):
                step = weights[i] - state["weights"][i]
                weights[i] += (self.key_rate - 1) * step
        return {**after, "weights": weights}, info


def memory(
    name="scoff",
    units=128,
    num_schemata=4,
    schema_keys="shared",
    dynamics="lstm",
):
    """An RNN cell, the memory of the agent.

    Sizes as in Table 5 of Goyal et al., 2020, which has 510 units. With GRUs as
    schemata, one head reads values of 64, a quarter of the work, and there are
    no messages: a single object file has no other to read. Its messages to
    itself made the state of GRUs grow beyond all bounds in episodes of 324
    steps, and the agent forgot all it had learned. `"gru_of_equal_size"` has
    about as many parameters as the SCOFF, after a layer of 256.
    """
    if name == "gru":
        return keras.layers.GRUCell(units)
    scoff = SCOFFCell(
        units,
        num_object_files=1,
        num_schemata=num_schemata,
        schema_keys=schema_keys,
        dynamics=dynamics,
        num_heads=1 if dynamics == "gru" else 4,
        value_dim=64 if dynamics == "gru" else 256,
        message_key_dim=16,
        num_message_heads=0 if dynamics == "gru" else 4,
    )
    if name == "scoff":
        return scoff
    # A GRU has 3 (u² + 256 u + 2 u) parameters; solved for u.
    scoff.build((None, INPUT_SIZE))
    half = INPUT_SIZE // 2 + 1
    return keras.layers.GRUCell(
        round((half**2 + scoff.count_params() / 3) ** 0.5 - half)
    )


def grow(model, path):
    """Gives all schemata the weights of the only one of a trained agent.

    The keys of the schemata stay as they are, for equal ones would never part.
    """
    trained = keras.saving.load_model(path, compile=False)
    of_keys = ("schema_key_kernel", "schema_key_bias")
    for weight, value in zip(model.weights, trained.get_weights(), strict=True):
        if weight.name not in of_keys:
            weight.assign(np.broadcast_to(value, weight.shape))
