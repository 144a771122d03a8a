"""Trains a predictor of possible scenes: does it see what is impossible?

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments, section 5: relative errors on the three
blocks of IntPhys, in which objects vanish (O1), change (O2) or jump (O3) behind
an occluder. 0.5 is chance. The paper's settings, the defaults, need more than
hours; docs/results/scoff.md has smaller ones for minutes. Scenes are our own.
"""

import functools

import keras

from experiments import command_line
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import intuitive_physics

LINES = ["relative error in O1: {O1:.3f}, in O2: {O2:.3f}, in O3: {O3:.3f}"]
NEXT = "python -m experiments.scoff intuitive_physics --core relational_memory"


def main(command):
    add = command.option
    add("--core", models.PHYSICS_CORES, "scoff", "scoff is SCOFF-ab")
    add("--units", int, 85, "of an object file, or of a row of memory")
    add("--num-object-files", int, 6, "or rows of memory")
    add("--num-schemata", int, 4, "of scoff")
    add("--gated-messages", bool, False, "bounds the messages of SCOFF")
    add("--networks", models.VIDEO_NETWORKS, "convolutional", "around the core")
    add("--image-size", int, 64, "pixels, a divisor of 64", low=8)
    add("--num-frames", int, 50, "of a video", low=20)
    add("--loss", training.VIDEO_LOSSES, "binary_crossentropy", "of each pixel")
    add("--learning-rate", float, 3e-4, "of Adam, as in Table 6")
    add("--num-batches", int, 1_000, "training steps")
    add("--batch-size", int, 64, "videos of a batch")
    add("--num-sets", int, 100, "test sets of each block, of four videos")
    add("--folder", command_line.existing_folder, None, "published dev set")
    args = command.parse_run()

    size = {x: getattr(args, x) for x in ("num_frames", "image_size")}
    published = training.published_physics_tests(args.folder, args.image_size)
    tests = training.physics_tests(args.num_sets, args.seed, **size)
    make = functools.partial(intuitive_physics.generate_possible, **size)
    keras.utils.set_random_seed(args.seed)
    core = args.core, args.units, args.num_object_files, args.num_schemata
    others = args.gated_messages, args.image_size, args.networks
    model = models.intuitive_physics_predictor(*core, *others)
    training.compile_video_predictor(model, args.learning_rate, args.loss)

    def batches(first):
        return training.VideoBatches(make, args.batch_size, first, args.seed)

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
