"""Trains predictors of moving squares on small ones, tests them on large ones.

Webb et al., 2020, Learning Representations that Support Extrapolation, Table 4:
mean squared error of the predicted images. The paper's: TCN 0.0056, batch norm.
0.0095, batch norm. (train stats) 0.0507, no norm. 0.0675. All methods share an
autoencoder, which takes 22 minutes on one core. A predictor takes one more.
"""

import keras
import numpy as np

from experiments.context_normalization.object_predictor import image_autoencoder
from experiments.context_normalization.object_predictor import object_predictor
from experiments.generated_batches import generated
from experiments.generated_batches import shuffled
from keras_relational import models
from keras_relational import training
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.plotting import save_figure
from keras_relational.datasets import dynamic_objects
from keras_relational.models.image_model import to_pixels
from keras_relational.random_streams import stream

METHODS = ["temporal_context", "batch", "batch_training_statistics", "none"]
IMAGES = "training steps of the autoencoder, of 32 images each; paper: 200,000"
LINES = ["errors of the two test sets: {errors[0]:.4f} and {errors[1]:.4f}"]
NEXT = "python -m experiments.tables --runs runs"


def main(command):
    add = command.option
    add("--normalization", METHODS, METHODS, "one or more methods", nargs="+")
    add("--num-autoencoder-batches", int, 25_000, IMAGES)
    add("--num-batches", int, 20_000, "training steps, of 32 sequences each")
    add("--num-train", int, 20_000, "training sequences", low=32)
    add("--num-test", int, 500, "sequences of each of two test sets")
    args = command.parse_run()

    keras.utils.set_random_seed(args.seed)
    autoencoder = image_autoencoder()
    training.compile_model(autoencoder, 5e-4, "mse", convolutional=True)
    with command.open_run(
        may_differ=["num_batches", "num_train", "num_test", "normalization"],
        name="dynamic_objects-autoencoder",
        normalization=None,
    ) as run:
        training.fit(
            autoencoder,
            generated(single_frames, seed=args.seed),
            num_batches=args.num_autoencoder_batches,
            batches_per_epoch=1_000,
            run=run,
            verbose=args.verbose,
        )
    train = dynamic_objects.generate(
        args.num_train, seed=stream(args.seed, "train")
    )
    z = frame_embeddings(autoencoder, train)
    tests = sequences_of_large_squares(args.num_test, args.seed)
    for name in args.normalization:
        keras.utils.set_random_seed(args.seed)
        model = object_predictor(autoencoder, name)
        predictor = models.part(model, "predictor")
        training.compile_model(predictor, 5e-4, "mse")
        with command.open_run(
            always=["normalization"],
            may_differ=["num_batches", "num_test"],
            normalization=name,
        ) as run:
            training.fit(
                predictor,
                shuffled(z[:, :-1], z[:, 1:], batch_size=32, seed=args.seed),
                num_batches=args.num_batches,
                batches_per_epoch=1_000,
                run=run,
                verbose=args.verbose,
            )
            if name == "batch_training_statistics":
                models.part(model, "normalization").adapt([z[:500, :-1]])
            sequence = tests[0][0]
            predicted = model.predict(sequence[None, :-1], verbose=0)[0]
            save_figure(
                plot_predicted_frames(sequence, {"predicted": predicted}),
                run.directory / "predicted.png",
            )
            errors = [prediction_error(model, x) for x in tests]
            command.finish(run, model, {"errors": errors}, LINES, NEXT)


def single_frames(n, seed):
    """Images `(n, 64, 64, 1)` of squares of all widths, also from 0 to 1.

    Only the predictor has to extrapolate: its training sequences show small
    squares. Webb et al., 2020, name in section 7 their two other tasks as those
    in which the encoder has seen no object of the test domain.
    """
    images = dynamic_objects.generate(
        n, dynamic_objects.ALL_WIDTHS, num_frames=1, seed=seed
    )[:, 0]
    return images, images.astype("float32") / 255


def frame_embeddings(autoencoder, sequences, batch_size=10):
    """Embeddings `(n, time, features)` of the frames of sequences."""
    frames = to_pixels(sequences).reshape(-1, *sequences.shape[2:])
    encoder = models.part(autoencoder, "encoder")
    z = training.predictions(encoder, frames, batch_size * sequences.shape[1])
    return z.reshape(*sequences.shape[:2], -1)


def sequences_of_large_squares(num_test, seed=0):
    """Two test sets, which differ from the batches drawn of this seed."""
    return [
        dynamic_objects.generate(
            num_test, dynamic_objects.TEST_WIDTHS, seed=stream(seed, name)
        )
        for name in ("test_beside_batches", "second_test_beside_batches")
    ]


def prediction_error(model, sequences, batch_size=32):
    """Mean squared error of all images but the first, pixels from 0 to 1.

    Some normalizations use the statistics of the batch.
    """
    errors = []
    for i in range(0, len(sequences), batch_size):
        batch = sequences[i : i + batch_size]
        predicted = model.predict_on_batch(batch[:, :-1])
        true = to_pixels(batch[:, 1:]) / np.float32(255)
        errors.append(np.mean((predicted - true) ** 2, axis=(1, 2, 3, 4)))
    return float(np.concatenate(errors).mean())


def plot_predicted_frames(sequence, predictions, every=3):
    """A row of true frames, and one of each model's, without the first."""
    frames = sequence[1:] / 255
    rows = {"true": frames, **predictions}
    shown = range(len(frames) - 1, -1, -every)[::-1]
    figure = new_figure(0.9 * len(shown) + 1, 0.95 * len(rows) + 0.4)
    grid = figure.subplots(len(rows), len(shown), squeeze=False)
    for panels, (name, images) in zip(grid, rows.items(), strict=True):
        for panel, number in zip(panels, shown, strict=True):
            panel.imshow(images[number], cmap="gray", vmin=0, vmax=1)
            panel.set(xticks=[], yticks=[])
        panels[0].set_ylabel(name.replace("_", "\n"), fontsize="small")
    for panel, number in zip(grid[0], shown, strict=True):
        panel.set_title(number + 2, fontsize="small")  # Counted from 1.
    return figure
