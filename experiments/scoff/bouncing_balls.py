"""Trains a predictor of bouncing balls, and lets it go on by itself.

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge, Fig. 7:
errors of 10 and 30 frames after 15 true ones. The defaults take 6 to 11 hours.
"""

import functools

import keras
import numpy as np

from experiments.scoff import videos
from experiments.scoff.schemata import draw_object_files
from experiments.scoff.schemata import schemata_in_use
from experiments.scoff.video_cores import CORES
from experiments.scoff.video_cores import predictor
from keras_relational import analysis
from keras_relational import models
from keras_relational.analysis.plotting import save_gif
from keras_relational.datasets import bouncing_balls
from keras_relational.models.image_model import to_pixels
from keras_relational.models.video_predictor import VIDEO_NETWORKS
from keras_relational.random_streams import stream

SLOTS = "modules or slots (default: 8 for tasks with 678balls, else 4)"
ERRORS = "errors of 10 and 30 frames: {error_10:.4f}, {error_30:.4f}"
NEXT = "python -m experiments.scoff bouncing_balls --core gru"


def main(command):
    add = command.option
    add("--task", bouncing_balls.TASKS, "4balls", "the kind of video")
    add("--core", CORES, "scoff", "scoff is the paper's SCOFF-ab")
    add("--units", int, 100, "of a module or slot")
    add("--num-object-files", int, None, SLOTS)
    add("--num-schemata", int, 4, "of scoff and scoff_sparse")
    add("--gated-messages", bool, False, "bounds the messages of SCOFF")
    add("--networks", VIDEO_NETWORKS, "convolutional", "around the core")
    add("--image-size", int, 64, "pixels, a divisor of 64", low=8)
    add("--loss", videos.LOSSES, "binary_crossentropy", "of each pixel")
    add("--learning-rate", float, 1e-4, "of Adam, as in Table 4")
    add("--num-batches", int, 2_000, "training steps")
    add("--batch-size", int, 64, "videos of a batch")
    add("--num-frames", int, 51, "of a training video; tests: 51", low=2)
    add("--num-given", int, None, "true frames in training (default: all)")
    add("--num-test", int, 500, "test videos")
    args = command.parse_run(export="a SavedModel that predicts 10 frames")

    keras.utils.set_random_seed(args.seed)
    generate = functools.partial(
        bouncing_balls.generate, args.task, image_size=args.image_size
    )
    train = functools.partial(generate, num_frames=args.num_frames)
    sample = generate(50, seed=stream(args.seed, "sample_beside_batches"))
    test_seed = stream(args.seed, "test_beside_batches")
    test = generate(args.num_test, seed=test_seed)
    model = bouncing_balls_predictor(args, sample.mean() / 255)
    given = args.num_given or args.num_frames - 1
    trained = models.roll_out_model(
        model, num_frames=args.num_frames - given, all_frames=True
    )
    with command.open_run(["task", "core"], ["num_batches", "num_test"]) as run:
        videos.train_predictor(command, trained, train, given)
        metrics = roll_out_metrics(model, test, run.directory)
        rolling = models.roll_out_model(model, num_frames=10)
        command.finish(run, model, metrics, [ERRORS], NEXT, rolling)


def bouncing_balls_predictor(options, mean_pixel):
    """The `video_predictor` of bouncing balls, with one of five cores."""
    slots = options.num_object_files or (8 if "678" in options.task else 4)
    return predictor(
        options,
        slots,
        num_channels=3 if options.task.startswith("colored") else 1,
        mean_pixel=mean_pixel,
    )


def roll_out_metrics(model, frames, directory):
    """Errors of 10 and 30 frames after 15, also of two simple predictions."""
    metrics = _of_frames(videos.roll_out_errors(model, frames))
    simple = videos.simple_roll_out_errors(frames)
    metrics |= {name: _of_frames(errors) for name, errors in simple.items()}
    draw_roll_out(model, frames[0], directory)
    if hasattr(models.part(model, "core"), "num_schemata"):
        found = analysis.object_files(model, frames[:200, :-1])
        metrics["schemata_in_use"] = schemata_in_use(found)
        draw_object_files(found, directory, frames[0])
    return metrics


def _of_frames(errors):
    metrics = {f"error_{n}": float(errors[:n].mean()) for n in (10, 30)}
    return {**metrics, "error_of_frames": errors.tolist()}


def draw_roll_out(model, video, directory):
    """Writes `rolled_out.gif`: 45 true frames, beside 15 true, 30 predicted."""
    video = to_pixels(video[None])[0]
    rolling = models.roll_out_model(model, num_frames=30)
    rolled = rolling.predict(video[None, :15], verbose=0)[0]
    rolled = np.concatenate([video[:15] / 255, rolled])
    save_videos([video[:45], rolled], directory / "rolled_out.gif")


def save_videos(shown, path, milliseconds=100, scale=3):
    """Writes videos, uint8 or floats between 0 and 1, side by side to a GIF."""
    edges = [(0, 0), (1, 1), (1, 1), (0, 0)]
    rows = np.concatenate(
        [
            np.pad(_as_uint8(video), edges, constant_values=99)
            for video in shown
        ],
        axis=2,
    )
    rows = rows.repeat(scale, axis=1).repeat(scale, axis=2)
    if rows.shape[-1] == 1:
        rows = rows[..., 0]
    save_gif(rows, path, milliseconds)


def _as_uint8(video):
    if np.asarray(video).dtype == np.uint8:
        return video
    return np.rint(255 * np.clip(video, 0, 1)).astype("uint8")
