"""Trains a predictor of one ball: does each of its dynamics get a schema?

Goyal et al., 2020 (SCOFF), Figs. 3, 4 and 15: a schema for each of three fixed
dynamics, or of two that switch. The defaults take 100 minutes on one core.
"""

import keras

from experiments import command_line
from keras_relational import analysis
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import single_ball
from keras_relational.random_streams import stream

LINES = ["share of the dynamics that the schema tells: {information[0]:.3f}"]
NEXT = "python -m experiments.scoff single_ball --dynamics switching"


def main(command):
    add = command.option
    add("--dynamics", single_ball.VIDEOS, "fixed", "how the ball moves")
    add("--num-object-files", int, 1, "object files")
    add("--num-schemata", int, None, "default: one for each of the dynamics")
    add("--units", int, 100, "of an object file")
    add("--schema-keys", ("shared", "separate"), "shared", "of all schemata")
    add("--balance", command_line.number, 0.0, "loss for using all schemata")
    add("--networks", models.VIDEO_NETWORKS, "convolutional", "around the core")
    add("--image-size", int, 64, "pixels, a divisor of 64", low=8)
    add("--bulb-radius", int, 2, "pixels of 64, if not fixed")
    add("--num-frames", int, None, "default: 20, or 51 if switching", low=7)
    add("--num-stacked", int, 5, "frames seen at each step")
    add("--loss", training.VIDEO_LOSSES, "binary_crossentropy", "of each pixel")
    add("--learning-rate", float, 1e-4, "of Adam, as in Table 7")
    add("--num-batches", int, 2_000, "training steps")
    add("--batch-size", int, 50, "videos of a batch, as in Table 7")
    add("--num-train", int, 10_000, "training videos")
    add("--num-test", int, 500, "test videos")
    args = command.parse_run()
    keras.utils.set_random_seed(args.seed)
    kinds, _ = single_ball.VIDEOS[args.dynamics]
    schemata = args.num_schemata or kinds

    def data(name, number):
        kind = args.dynamics, number, args.num_frames, stream(args.seed, name)
        size = args.image_size, args.bulb_radius
        return single_ball.generate_videos(*kind, *size)

    train, *_ = data("train", args.num_train)
    test, labels, _ = data("test", args.num_test)
    sizes = args.units, args.num_object_files, schemata, args.schema_keys
    more = args.balance, args.num_stacked, train.mean() / 255
    network = args.image_size, args.networks
    model = models.single_ball_predictor(*sizes, *more, *network)
    training.compile_video_predictor(model, args.learning_rate, args.loss)
    data = training.VideoSamples(train), args.batch_size

    def batches(first):
        return training.VideoBatches(*data, first, args.seed)

    with command.open_run(["dynamics"], ["num_batches", "num_test"]) as run:
        logged = {"run": run, "verbose": args.verbose}
        training.fit(model, batches, args.num_batches, 100, **logged)
        figures = analysis.ball_figures(model, test, labels, run.directory)
        command.finish(run, model, figures, LINES, NEXT)
