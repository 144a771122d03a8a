"""Trains predictors of moving squares on small ones, tests them on large ones.

Webb et al., 2020, Learning Representations that Support Extrapolation, Table 4:
mean squared error of the predicted images. The paper's: TCN 0.0056, batch norm.
0.0095, batch norm. (train stats) 0.0507, no norm. 0.0675. All methods share an
autoencoder, which takes 22 minutes on one core. A predictor takes one more.
"""

import keras

from keras_relational import analysis
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import dynamic_objects
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
    autoencoder = models.image_autoencoder()
    training.compile_model(autoencoder, 5e-4, "mse", convolutional=True)
    others = ["num_batches", "num_train", "num_test", "normalization"]
    shared = {"name": "dynamic_objects-autoencoder", "normalization": None}
    with command.open_run(may_differ=others, **shared) as run:
        training.fit(
            *(autoencoder, lambda i: training.FrameBatches(32, i, args.seed)),
            *(args.num_autoencoder_batches, 1_000),
            **{"run": run, "verbose": args.verbose},
        )
    seed = stream(args.seed, "train")
    train = dynamic_objects.generate(args.num_train, seed=seed)
    z = training.frame_embeddings(autoencoder, train)
    tests = training.dynamic_object_tests(args.num_test, args.seed)
    data = z[:, :-1], z[:, 1:], 32, None
    names = ["normalization"], ["num_batches", "num_test"]
    for name in args.normalization:
        keras.utils.set_random_seed(args.seed)
        model = models.object_predictor(autoencoder, name)
        predictor = models.part(model, "predictor")
        training.compile_model(predictor, 5e-4, "mse")
        with command.open_run(*names, normalization=name) as run:
            training.fit(
                predictor,
                lambda i: training.Minibatches(*data, i, args.seed),
                *(args.num_batches, 1_000),
                **{"run": run, "verbose": args.verbose},
            )
            if name == "batch_training_statistics":
                models.part(model, "normalization").adapt([z[:500, :-1]])
            analysis.draw_predicted_frames(model, tests[0][0], run.directory)
            errors = [training.prediction_error(model, x) for x in tests]
            command.finish(run, model, {"errors": errors}, LINES, NEXT)
