"""Training on videos, and the errors of predicted frames."""

import numpy as np

from experiments.generated_batches import generated
from keras_relational import models
from keras_relational import training
from keras_relational.models.image_model import to_pixels

LOSSES = ("binary_crossentropy", "mean_squared_error")


def train_predictor(command, model, make_videos, num_given=None):
    """Trains a predictor of frames in the open run of a command."""
    args = command.args
    training.compile_model(
        model, args.learning_rate, args.loss, convolutional=True
    )
    training.fit(
        model,
        generated(
            given_and_targets(make_videos, num_given),
            args.batch_size,
            args.seed,
        ),
        num_batches=args.num_batches,
        batches_per_epoch=100,
        run=command.run,
        verbose=args.verbose,
    )


def given_and_targets(make_videos, num_given=None):
    """A function that makes the frames that a model sees, and their targets.

    The model sees `num_given` frames, by default all but the last, and predicts
    all but the first. `make_videos` takes a number of videos and a `seed`, and
    returns uint8 frames `(n, time, height, width, channels)`.
    """
    given = slice(-1 if num_given is None else num_given)

    def generate(n, seed):
        frames = to_pixels(make_videos(n, seed=seed))
        return frames[:, given], frames[:, 1:] / np.float32(255)

    return generate


def pixel_errors(predict, inputs, targets, axis, batch_size):
    """Mean squared errors over `axis` of predictions of uint8 images."""
    errors = []
    for i in range(0, len(targets), batch_size):
        rows = slice(i, i + batch_size)
        true = to_pixels(targets[rows]) / np.float32(255)
        errors.append(np.mean((predict(inputs[rows]) - true) ** 2, axis=axis))
    return np.concatenate(errors)


def roll_out_errors(
    predictor, videos, num_given=15, num_frames=30, batch_size=50
):
    """Mean squared error of each frame that is predicted from predictions.

    Fig. 7 of Goyal et al., 2020, shows errors relative to those of a GRU.
    """
    return _errors_of_frames(
        models.roll_out_model(predictor, num_frames).predict_on_batch,
        videos,
        num_given,
        num_frames,
        batch_size,
    )


def simple_roll_out_errors(videos, num_given=15, num_frames=30):
    """`roll_out_errors` of two predictions: the mean image, the last frame."""
    videos = to_pixels(videos)
    mean = np.float32(videos.mean((0, 1)) / 255)
    predictions = {
        "mean_image": lambda given: mean,
        "last_frame": lambda given: given[:, -1:] / np.float32(255),
    }
    return {
        name: _errors_of_frames(predict, videos, num_given, num_frames)
        for name, predict in predictions.items()
    }


def _errors_of_frames(predict, videos, num_given, num_frames, batch_size=50):
    time = num_given + num_frames
    if videos.shape[1] < time:
        raise ValueError(
            f"{num_given} frames given and {num_frames} predicted need videos "
            f"of {time} frames. Received: videos.shape={videos.shape}"
        )
    errors = pixel_errors(
        predict,
        videos[:, :num_given],
        videos[:, num_given:time],
        axis=(2, 3, 4),
        batch_size=batch_size,
    )
    return errors.mean(axis=0)
