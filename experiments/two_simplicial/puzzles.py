"""The options of the BoxWorld experiments, their worlds and their agents."""

import pathlib

import keras

from keras_relational import models
from keras_relational import runs
from keras_relational.environments import boxworld

PLAYERS = ("greedy", "sampled", "random", "teacher")
RANGE = {"nargs": 2, "metavar": ("LOW", "HIGH")}


def add_options(add):
    """Adds the kind of puzzle and its sizes to the options."""
    add("--world", boxworld.WORLDS, "box", "the kind of puzzle")
    add("--rows", int, None, "default: 3, for bridge 7")
    add("--columns", int, None, "default: 6, for bridge 9")
    add("--solution-length", int, None, "default: 1 1, for bridge 1 3", **RANGE)
    add("--num-distractors", int, None, "default: 0 0", low=0, **RANGE)
    add("--max-episode-steps", int, 120, "0: no limit", low=0)


def add_agent_options(add, network):
    """Adds the agent, by default the one with that network."""
    add("--network", models.NETWORKS, network, "the agent")
    add(
        "--preset",
        preset_or_folder,
        None,
        "trained agent to go on from; default: none",
    )


def add_test_options(add):
    """Adds options for tests on puzzles unlike those of training."""
    add("--withhold-pairs", bool, False, "of colours of lock and key; box only")
    add("--test-length", int, None, "of more tests; default: none", **RANGE)


def make_world(command, args, **changes):
    """The world of the options. `changes` replace some of its arguments."""
    if args.world == "bridge" and args.num_distractors:
        command.error("--num-distractors is for --world box")
    return boxworld.world_of_options(vars(args), **changes)


def preset_or_folder(text):
    """The type of an option: a preset's name, or the folder of one."""
    return text if text in models.preset_names() else pathlib.Path(text)


def take_puzzles(args, preset):
    """Sets the options to the puzzles that a preset was trained on."""
    trained = models.preset_metadata(preset).get("run", {}).get("arguments")
    if trained is None:
        raise ValueError(
            "The card of --preset does not say what puzzles it was trained on. "
            "Export the model, and give --model-dir and the puzzles"
        )
    for name in ("world", *boxworld.SIZES):
        setattr(args, name, trained[name])


def make_test_worlds(command, args):
    """The world to train in, and further worlds to test in, by name."""
    if args.withhold_pairs and args.world == "bridge":
        command.error("--withhold-pairs is for --world box")
    pairs = {"key_lock_pairs": "seen"} if args.withhold_pairs else {}
    world, others = make_world(command, args, **pairs), {}
    if args.withhold_pairs:
        # A single box, with the gem, has no pair.
        low, high = world.solution_length
        unseen = {"solution_length": (max(2, low), max(2, high))}
        unseen["key_lock_pairs"] = "withheld"
        others["withheld"] = make_world(command, args, **unseen)
    if args.test_length:
        longer = {"solution_length": args.test_length, **pairs}
        others["longer"] = make_world(command, args, **longer)
    return world, others


def make_agent(command, args, world, num_iterations=2, recurrent_units=0):
    """The agent of the options for a world, and the digests of its files."""
    keras.utils.set_random_seed(args.seed)
    cell = None
    if recurrent_units:
        cell = keras.layers.GRUCell(recurrent_units)
    model = models.boxworld_agent(
        args.network,
        world.image_shape,
        num_iterations=num_iterations,
        cell=cell,
    )
    if args.preset is None:
        return model, {}
    # Boards of all sizes have the same weights.
    trained = models.from_preset(args.preset).get_weights()
    if [x.shape for x in trained] != [x.shape for x in model.weights]:
        command.error("--preset holds another kind of agent than --network")
    model.set_weights(trained)
    digest = models.preset_metadata(args.preset)["sha256"]
    return model, {"preset": runs.data_digest([digest])}
