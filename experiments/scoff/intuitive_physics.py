"""Trains a predictor of possible scenes: does it see what is impossible?

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments, section 5: relative errors on the three
blocks of IntPhys, in which objects vanish (O1), change (O2) or jump (O3) behind
an occluder. 0.5 is chance. The paper's settings, the defaults, need more than
hours; docs/results/scoff.md has smaller ones for minutes. Scenes are our own.
"""

import functools

import keras
import numpy as np

from experiments import command_line
from experiments.scoff import videos
from experiments.scoff.video_cores import predictor
from keras_relational import runs
from keras_relational.datasets import intuitive_physics
from keras_relational.models.video_predictor import VIDEO_NETWORKS
from keras_relational.random_streams import stream

CORES = ("scoff", "relational_memory", "gru")
LINES = ["relative error in O1: {O1:.3f}, in O2: {O2:.3f}, in O3: {O3:.3f}"]
NEXT = "python -m experiments.scoff intuitive_physics --core relational_memory"


def main(command):
    add = command.option
    add("--core", CORES, "scoff", "scoff is SCOFF-ab")
    add("--units", int, 85, "of an object file, or of a row of memory")
    add("--num-object-files", int, 6, "or rows of memory")
    add("--num-schemata", int, 4, "of scoff")
    add("--gated-messages", bool, False, "bounds the messages of SCOFF")
    add("--networks", VIDEO_NETWORKS, "convolutional", "around the core")
    add("--image-size", int, 64, "pixels, a divisor of 64", low=8)
    add("--num-frames", int, 50, "of a video", low=20)
    add("--loss", videos.LOSSES, "binary_crossentropy", "of each pixel")
    add("--learning-rate", float, 3e-4, "of Adam, as in Table 6")
    add("--num-batches", int, 1_000, "training steps")
    add("--batch-size", int, 64, "videos of a batch")
    add("--num-sets", int, 100, "test sets of each block, of four videos")
    add("--folder", command_line.existing_folder, None, "published dev set")
    args = command.parse_run()

    published = {}
    if args.folder:
        published = {
            block: intuitive_physics.read_published(
                args.folder, block, args.image_size
            )
            for block in intuitive_physics.BLOCKS
        }
    tests = physics_tests(
        args.num_sets,
        seed=args.seed,
        num_frames=args.num_frames,
        image_size=args.image_size,
    )
    make_videos = functools.partial(
        intuitive_physics.generate_possible,
        num_frames=args.num_frames,
        image_size=args.image_size,
    )
    keras.utils.set_random_seed(args.seed)
    model = intuitive_physics_predictor(args)
    may_differ = ["num_batches", "num_sets", "folder"]
    with command.open_run(["core"], may_differ) as run:
        videos.train_predictor(command, model, make_videos)
        errors = relative_errors(model, tests)
        command.finish(run, model, errors, LINES, NEXT)
    if args.folder:
        # The same predictor: a run of its own, that only tests.
        data = {"folder": runs.data_digest(*published.values())}
        with command.open_run(["core"], may_differ, data) as run:
            errors = relative_errors(model, published)
            command.finish(run, None, errors, LINES, NEXT)


def intuitive_physics_predictor(options):
    """The `video_predictor` of intuitive physics, with heads as in Table 6."""
    return predictor(
        options,
        options.num_object_files,
        num_heads=5 if options.core == "relational_memory" else 4,
        num_channels=3,
    )


def physics_tests(
    num_sets=100,
    seed=0,
    num_frames=intuitive_physics.NUM_FRAMES,
    image_size=intuitive_physics.IMAGE_SHAPE[0],
):
    """Sets of each block, of two possible videos and two impossible ones."""
    return {
        block: intuitive_physics.generate(
            block,
            num_sets,
            num_frames=num_frames,
            seed=stream(seed, "block_beside_batches", number),
            image_size=image_size,
        )
        for number, block in enumerate(intuitive_physics.BLOCKS, start=1)
    }


def plausibility(predictor, frames, batch_size=50):
    """How plausible videos are to a predictor: minus the error of its frames.

    This is the log-likelihood under a Gaussian, up to a factor and a constant.
    Goyal et al., 2020, section 5, use "model likelihood", and say no more.
    """
    return -videos.pixel_errors(
        predictor.predict_on_batch,
        frames[:, :-1],
        frames[:, 1:],
        axis=(1, 2, 3, 4),
        batch_size=batch_size,
    )


def relative_error(plausibilities):
    """The share of matched sets in which the possible videos seem less likely.

    `plausibilities` are `(num_sets, 4)`, first two possible videos, then two
    impossible ones. A set whose sums are equal counts half.
    """
    plausibilities = np.asarray(plausibilities)
    if np.isnan(plausibilities).any():
        raise ValueError(
            "The plausibility of a video is NaN, so it cannot be compared: has "
            "the predictor diverged?"
        )
    pairs = plausibilities.reshape(-1, 2, 2).sum(axis=2)
    difference = pairs[:, 0] - pairs[:, 1]
    return float(np.mean((difference < 0) + (difference == 0) / 2))


def relative_errors(model, tests):
    """The relative error of a predictor on each block."""
    return {
        block: relative_error(
            plausibility(model, sets.reshape(-1, *sets.shape[2:])).reshape(
                -1, 4
            )
        )
        for block, sets in tests.items()
    }
