"""Trains a predictor of possible scenes: does it see what is impossible?

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments, section 5: relative errors on the three
blocks of IntPhys, in which objects vanish (O1), change (O2) or jump (O3) behind
an occluder. 0.5 is chance; the paper shows its errors in a figure only. 500
batches with --learning-rate 1e-3 --batch-size 8 take half an hour on one core,
and leave both cores at chance. The scenes are our own. With --folder the
predictor is also tested on the published ones.
"""

import command_line
import keras

from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import intuitive_physics

FOLDER = "the published development set, to test on too"
LINES = ["relative error in O1: {O1:.3f}, in O2: {O2:.3f}, in O3: {O3:.3f}"]
NEXT = "python examples/intuitive_physics.py --core relational_memory"
HEADS = {"scoff": 4, "relational_memory": 5}


def main(command):
    add = command.option
    add("--core", HEADS, "scoff", "the recurrent layer; scoff is SCOFF-ab")
    add("--num-schemata", int, 4, "of scoff")
    add("--learning-rate", float, 3e-4, "of Adam, as in Table 6")
    add("--num-batches", int, 1_000, "training steps")
    add("--batch-size", int, 64, "videos of a batch")
    add("--num-sets", int, 100, "test sets of each block, of four videos")
    add("--folder", command_line.existing_folder, None, FOLDER)
    args = command.parse_run()

    published = {}
    for block in intuitive_physics.BLOCKS if args.folder else ():
        published[block] = intuitive_physics.read_published(args.folder, block)
    tests = training.physics_tests(args.num_sets, args.seed)
    keras.utils.set_random_seed(args.seed)
    shape = 85, 6, args.num_schemata, HEADS[args.core]
    core, positions = models.video_core(args.core, *shape), args.core == "scoff"
    model = models.video_predictor(core, 3, positions=positions)
    training.compile_video_predictor(model, args.learning_rate)

    def batches(first):
        data = intuitive_physics.generate_possible
        return training.VideoBatches(data, args.batch_size, first, args.seed)

    may_differ = ["num_batches", "num_sets", "folder"]
    with command.open_run(["core"], may_differ) as run:
        logged = {"run": run, "verbose": args.verbose}
        training.fit(model, batches, args.num_batches, 100, **logged)
        errors = training.relative_errors(model, tests)
        command.finish(run, model, errors, LINES, NEXT)
    if args.folder:
        # The same predictor: a run of its own, that only tests.
        data = {"folder": runs.data_digest(*published.values())}
        with command.open_run(["core"], may_differ, data) as run:
            errors = training.relative_errors(model, published)
            command.finish(run, None, errors, LINES, NEXT)


if __name__ == "__main__":
    command_line.start(main, __file__, __doc__)
