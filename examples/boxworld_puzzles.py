"""The options of the BoxWorld examples, and the world that they ask for."""

from keras_relational.environments import boxworld

SIZES = "rows", "columns", "solution_length", "num_distractors"
SMALLEST = {"box": (3, 6, (1, 1), (0, 0)), "bridge": ()}
WORLDS = {"box": boxworld.BoxWorld, "bridge": boxworld.BridgeBoxWorld}
RANGE = {"nargs": 2, "metavar": ("LOW", "HIGH")}


def add_options(add):
    """Adds the kind of puzzle and its sizes to the options."""
    add("--world", WORLDS, "box", "the kind of puzzle")
    add("--rows", int, None, "default: 3, for bridge 7")
    add("--columns", int, None, "default: 6, for bridge 9")
    add("--solution-length", int, None, "default: 1 1, for bridge 1 3", **RANGE)
    add("--num-distractors", int, None, "default: 0 0", low=0, **RANGE)
    add("--max-episode-steps", int, 120, "0: no limit", low=0)


def add_test_options(add):
    """Adds options for tests on puzzles unlike those of training."""
    add("--withhold-pairs", bool, False, "of colours of lock and key; box only")
    add("--test-length", int, None, "of more tests; default: none", **RANGE)


def make_world(command, args, **changes):
    """The world of the options. `changes` replace some of its arguments."""
    given = {k: getattr(args, k) for k in SIZES if getattr(args, k)}
    if args.world == "bridge" and "num_distractors" in given:
        command.error("--num-distractors is for --world box")
    size = dict(zip(SIZES, SMALLEST[args.world], strict=False)) | given
    size["max_episode_steps"] = args.max_episode_steps or None
    return WORLDS[args.world](**{**size, **changes})


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
