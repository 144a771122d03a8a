"""Trains a predictor of bouncing balls, and lets it go on by itself.

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge, Fig. 7:
errors of 10 and 30 frames after 15 true ones. The defaults take 6 to 11 hours.
"""

import functools

import keras

from keras_relational import analysis
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import bouncing_balls
from keras_relational.random_streams import stream

SLOTS = "modules or slots (default: 8 for tasks with 678balls, else 4)"
ERRORS = "errors of 10 and 30 frames: {error_10:.4f}, {error_30:.4f}"
NEXT = "python -m experiments.scoff bouncing_balls --core gru"


def main(command):
    add = command.option
    add("--task", bouncing_balls.TASKS, "4balls", "the kind of video")
    add("--core", models.VIDEO_CORES, "scoff", "scoff is the paper's SCOFF-ab")
    add("--units", int, 100, "of a module or slot")
    add("--num-object-files", int, None, SLOTS)
    add("--num-schemata", int, 4, "of scoff and scoff_sparse")
    add("--gated-messages", bool, False, "bounds the messages of SCOFF")
    add("--networks", models.VIDEO_NETWORKS, "convolutional", "around the core")
    add("--image-size", int, 64, "pixels, a divisor of 64", low=8)
    add("--loss", training.VIDEO_LOSSES, "binary_crossentropy", "of each pixel")
    add("--learning-rate", float, 1e-4, "of Adam, as in Table 4")
    add("--num-batches", int, 2_000, "training steps")
    add("--batch-size", int, 64, "videos of a batch")
    add("--num-frames", int, 51, "of a training video; tests: 51", low=2)
    add("--num-given", int, None, "true frames in training (default: all)")
    add("--num-test", int, 500, "test videos")
    args = command.parse_run(export="a SavedModel that predicts 10 frames")

    keras.utils.set_random_seed(args.seed)
    size = {"image_size": args.image_size}
    generate = functools.partial(bouncing_balls.generate, args.task, **size)
    train = functools.partial(generate, num_frames=args.num_frames)
    sample = generate(50, seed=stream(args.seed, "sample_beside_batches"))
    test_seed = stream(args.seed, "test_beside_batches")
    test = generate(args.num_test, seed=test_seed)
    slots = args.num_object_files, args.num_schemata, args.gated_messages
    core = args.core, args.units, *slots
    frames = sample.mean() / 255, args.image_size, args.networks
    model = models.bouncing_balls_predictor(args.task, *core, *frames)
    given = args.num_given or args.num_frames - 1
    trained = models.roll_out_model(model, args.num_frames - given, True)
    training.compile_video_predictor(trained, args.learning_rate, args.loss)

    def batches(first):
        size = args.batch_size
        return training.VideoBatches(train, size, first, args.seed, given)

    with command.open_run(["task", "core"], ["num_batches", "num_test"]) as run:
        logged = {"run": run, "verbose": args.verbose}
        training.fit(trained, batches, args.num_batches, 100, **logged)
        figures = analysis.roll_out_figures(model, test, run.directory)
        rolling = models.roll_out_model(model, 10)
        command.finish(run, model, figures, [ERRORS], NEXT, rolling)
