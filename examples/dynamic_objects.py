"""Trains a predictor of moving squares on small ones, and tests it on large.

Table 4 of Webb et al., 2020, Learning Representations that Support
Extrapolation: mean squared error of the predicted images. The paper's: TCN
0.0056, batch norm. 0.0095, batch norm. (train stats) 0.0507, no norm. 0.0675.
The autoencoder is trained once for all normalizations of a seed, in some 22
minutes on one core; each predictor takes one. Killed, it continues when it is
started again.
"""

import argparse
import json
import pathlib

import keras

from keras_relational import analysis
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import dynamic_objects

NORMALIZATIONS = (
    "temporal_context",
    "batch",
    "batch_training_statistics",
    "none",
)


def main():
    args = parse_arguments()
    keras.utils.set_random_seed(args.seed)
    autoencoder = models.image_autoencoder()
    compile_model(autoencoder)
    with runs.Run(
        args.directory
        / f"autoencoder{args.autoencoder_options}-seed{args.seed}",
        "dynamic_objects",
        vars(args),
        ("num_batches", "num_train", "num_test", "normalization", "options"),
    ) as run:
        training.fit(
            autoencoder,
            lambda first: training.FrameBatches(32, first, args.seed),
            args.num_autoencoder_batches,
            batches_per_epoch=min(1_000, args.num_autoencoder_batches),
            run=run,
            verbose=args.verbose,
        )
    sequences = dynamic_objects.generate(args.num_train, seed=[args.seed, 0])
    z = training.frame_embeddings(autoencoder, sequences)
    tests = [
        dynamic_objects.generate(
            args.num_test,
            dynamic_objects.TEST_WIDTHS,
            # Not those of the autoencoder's batches.
            seed=[args.seed, 0, i],
        )
        for i in (1, 2)
    ]
    for normalization in args.normalization:
        train_predictor(args, autoencoder, normalization, z, tests)


def train_predictor(args, autoencoder, normalization, z, tests):
    keras.utils.set_random_seed(args.seed)
    model = models.object_predictor(autoencoder, normalization)
    predictor = model.get_layer("predictor")
    compile_model(predictor, keras.backend.backend() != "torch")
    name = f"{normalization}{args.options}-seed{args.seed}"
    directory = args.directory / name
    with runs.Run(
        directory,
        "dynamic_objects",
        vars(args),
        ("num_batches", "num_test", "normalization", "verbose"),
    ) as run:
        curves = training.fit(
            predictor,
            lambda first: training.Minibatches(
                z[:, :-1], z[:, 1:], 32, None, first, args.seed
            ),
            args.num_batches,
            batches_per_epoch=min(1_000, args.num_batches),
            run=run,
            verbose=args.verbose,
        )
    if normalization == "batch_training_statistics":
        predictor.get_layer("normalization").adapt([z[:500, :-1]])
    run.save_model(model)
    sequence = tests[0][:1]
    predictions = {normalization: model.predict(sequence[:, :-1], verbose=0)[0]}
    figure = analysis.plot_predicted_frames(sequence[0], predictions)
    analysis.save_figure(figure, directory / "predicted.png")
    result = {
        "run": name,
        "batches": int(curves["batches"][-1]),
        "minutes": round(float(curves["minutes"][-1]), 1),
        "errors": [training.prediction_error(model, x) for x in tests],
    }
    print(json.dumps(run.finish(result)))


def compile_model(model, jit_compile=False):
    # XLA is slow at convolutions on a CPU, and JAX knows nothing else.
    jit_compile = jit_compile or keras.backend.backend() == "jax"
    model.compile(training.adam(5e-4), "mse", jit_compile=jit_compile)
    model.optimizer.build(model.trainable_variables)


def options_in_name(parser, args, names):
    return runs.run_name(
        "",
        {name: getattr(args, name) for name in names},
        {name: parser.get_default(name) for name in names},
    )


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    names = {"nargs": "+", "choices": NORMALIZATIONS, "metavar": "NAME"}
    known = f"of {', '.join(NORMALIZATIONS)}; default: all of them"
    add("--normalization", default=NORMALIZATIONS, help=known, **names)
    images = "of 32 images; the paper's have 200,000, and converge by 25,000"
    add("--num-autoencoder-batches", type=int, default=25_000, help=images)
    add("--num-batches", type=int, default=20_000, help="of 32 sequences")
    add("--num-train", type=int, default=20_000, help="training sequences")
    add("--num-test", type=int, default=500, help="of each of two test sets")
    add("--seed", type=int, default=0, help="fixes data, weights and order")
    add("--directory", type=pathlib.Path, default="runs/dynamic_objects")
    add("--verbose", type=int, default=1, help="0, or 1 for a progress bar")
    args = parser.parse_args()
    names = ["num_autoencoder_batches"]
    args.autoencoder_options = options_in_name(parser, args, names)
    names.append("num_train")
    args.options = options_in_name(parser, args, names)
    return args


if __name__ == "__main__":
    main()
