"""Trains a predictor of one ball: does each of its dynamics get a schema?

Goyal et al., 2020 (SCOFF), Figs. 3, 4 and 15: a schema for each of three fixed
dynamics, or of two that switch. The defaults take 100 minutes on one core.
"""

import pathlib
import tempfile

import keras
import numpy as np

from experiments import command_line
from experiments.scoff import videos
from experiments.scoff.schemata import schema_metrics
from experiments.scoff.video_cores import video_core
from keras_relational import models
from keras_relational.datasets import single_ball
from keras_relational.models.video_predictor import VIDEO_NETWORKS
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
    add("--networks", VIDEO_NETWORKS, "convolutional", "around the core")
    add("--image-size", int, 64, "pixels, a divisor of 64", low=8)
    add("--bulb-radius", int, 2, "pixels of 64, if not fixed")
    add("--num-frames", int, None, "default: 20, or 51 if switching", low=7)
    add("--num-stacked", int, 5, "frames seen at each step")
    add("--loss", videos.LOSSES, "binary_crossentropy", "of each pixel")
    add("--learning-rate", float, 1e-4, "of Adam, as in Table 7")
    add("--num-batches", int, 2_000, "training steps")
    add("--batch-size", int, 50, "videos of a batch, as in Table 7")
    add("--num-train", int, 10_000, "training videos")
    add("--num-test", int, 500, "test videos")
    args = command.parse_run()
    keras.utils.set_random_seed(args.seed)
    num_dynamics, _ = single_ball.VIDEOS[args.dynamics]

    train, _ = videos_of(vars(args), "train")
    test, labels = videos_of(vars(args), "test")
    model = single_ball_predictor(
        units=args.units,
        num_object_files=args.num_object_files,
        num_schemata=args.num_schemata or num_dynamics,
        schema_keys=args.schema_keys,
        balance=args.balance,
        num_stacked=args.num_stacked,
        mean_pixel=train.mean() / 255,
        image_size=args.image_size,
        networks=args.networks,
    )

    def sample(n, seed):
        """Draws training videos; one may come again in the same batch."""
        rng = np.random.default_rng(seed)
        return train[rng.integers(len(train), size=n)]

    with command.open_run(["dynamics"], ["num_batches", "num_test"]) as run:
        videos.train_predictor(command, model, sample)
        metrics = ball_metrics(model, test, labels, run.directory)
        command.finish(run, model, metrics, LINES, NEXT)


def videos_of(arguments, part):
    """The videos and labels of `"train"` or `"test"`."""
    images, labels, _ = single_ball.generate_videos(
        arguments["dynamics"],
        arguments[f"num_{part}"],
        num_frames=arguments["num_frames"],
        seed=stream(arguments["seed"], part),
        image_size=arguments["image_size"],
        bulb_radius=arguments["bulb_radius"],
    )
    return images, labels


def single_ball_predictor(
    units=100,
    num_object_files=1,
    num_schemata=3,
    schema_keys="shared",
    balance=0.0,
    num_stacked=1,
    mean_pixel=0.5,
    image_size=64,
    networks="convolutional",
):
    """The `video_predictor` of one ball, with a SCOFF core.

    With linear networks a frame is one vector. Attention has nothing to choose
    then, and there is no dropout.
    """
    core = video_core(
        "scoff",
        units,
        num_object_files,
        num_schemata,
        num_heads=4,
        value_dim=64,
        schema_keys=schema_keys,
        balance=balance,
        dropout=0.0 if networks == "linear" else 0.1,
    )
    return models.video_predictor(
        core,
        num_stacked=num_stacked,
        mean_pixel=mean_pixel,
        positions=networks != "linear",
        image_size=image_size,
        networks=networks,
    )


def ball_metrics(model, frames, labels, directory):
    """The `schema_metrics`, and the error of a roll-out after a third."""
    metrics = schema_metrics(model, frames, labels, directory)
    given = frames.shape[1] // 3
    errors = videos.roll_out_errors(
        model,
        frames[:200],
        num_given=given,
        num_frames=frames.shape[1] - given,
    )
    metrics["roll_out_error"] = float(errors.mean())
    return metrics


def preset_metrics(model, arguments):
    """The information of the schema about the axis, and a roll-out's error."""
    test, labels = videos_of(arguments, "test")
    with tempfile.TemporaryDirectory() as folder:
        found = ball_metrics(model, test, labels, pathlib.Path(folder))
    kept = {"information": found["settled"]["information"]}
    return {"settled": kept, "roll_out_error": found["roll_out_error"]}


def preset_headline(arguments, metrics):
    share = metrics["settled"]["information"][0]
    return (
        f"the schema that it chooses has {share:.0%} of the information about "
        "the axis"
    )
