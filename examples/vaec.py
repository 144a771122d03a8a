"""Trains an analogy scorer on VAEC, and tests it on all six regions.

Tables 1 and 2 of Webb et al., 2020, Learning Representations that Support
Extrapolation: accuracy in region 1, trained on, to 6, after 10,000 batches of
32 (the paper's layer norm. and no norm.: 500,000). The paper's TCN in the
translation regime: 99.1, 77.0, 73.2, 72.5, 71.7, 61.6 percent, in the scale
regime 98.8, 77.8, 61.2, 54.4, 51.2, 48.7; chance is 14.3. A step takes
some 0.25 seconds on 2 cores with images of 128 pixels, 0.06 with images of 32.
Killed, it continues when it is started again.
"""

import argparse
import pathlib

import keras

from keras_relational import analysis
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import vaec


def main():
    args = parse_arguments()
    if args.published:
        regions = [vaec.load_hdf5(path) for path in args.published]
    else:
        regions = [
            vaec.generate(args.regime, region, [args.seed, region])
            for region in vaec.REGIONS
        ]
    keras.utils.set_random_seed(args.seed)
    model = models.analogy_scorer(args.normalization, args.image_size)
    # The paper's, for what does not learn with the other.
    learning_rate = 1e-4 if args.normalization == "none" else 5e-4
    model.compile(
        training.adam(learning_rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        # XLA is slow at convolutions on a CPU, and JAX knows nothing else.
        jit_compile=keras.backend.backend() == "jax",
    )
    model.optimizer.build(model.trainable_variables)

    def measure():
        training.adapt_normalization(model, regions[0])
        return {
            f"region_{region}_accuracy": training.solved_analogies(
                model, vaec.Problems(*(x[:2048] for x in regions[region - 1]))
            ).mean()
            for region in (1, 2, 6)
        }

    regime = args.regime
    size = f"{args.image_size}px"
    if args.published:
        # Moved levels leave the lowest behind, levels further apart do not.
        regime = "translation" if regions[1].levels.min() else "scale"
        size += f"-published_{runs.data_digest(*sum(regions, ()))}"
    name = f"{regime}-{args.normalization}-{size}-seed{args.seed}"
    directory = args.directory / name
    with runs.Run(
        directory,
        "vaec",
        vars(args),
        ("num_batches", "num_test", "published", "verbose", "export"),
    ) as run:
        curves = training.fit(
            model,
            lambda first: training.AnalogyBatches(
                regions[0], 32, args.image_size, first, args.seed
            ),
            num_batches=args.num_batches,
            batches_per_epoch=min(1_000, args.num_batches),
            measure=measure,
            run=run,
            verbose=args.verbose,
        )
    training.adapt_normalization(model, regions[0])
    accuracies = [
        analysis.accuracy_by_dimension(
            problems, training.solved_analogies(model, problems)
        )
        for problems in regions
    ]
    run.save_model(model)
    for figure, file in (
        (analysis.plot_accuracy_by_region({name: accuracies}), "accuracy.png"),
        (analysis.plot_level_embeddings(model), "embeddings.png"),
    ):
        analysis.save_figure(figure, directory / file)
    result = {
        "run": name,
        "batches": int(curves["batches"][-1]),
        "minutes": round(float(curves["minutes"][-1]), 1),
        "regions": accuracies,
    }
    print(run.finish(result))
    if args.export:
        from keras_relational import serving

        print(f"Exported: {serving.export_model(model, args.export)}")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--regime", choices=vaec.REGIMES, default="translation")
    names = {"choices": models.NORMALIZATIONS, "metavar": "NAME"}
    known = f"one of {', '.join(models.NORMALIZATIONS)}"
    add("--normalization", default="temporal_context", help=known, **names)
    add("--image-size", type=int, default=128, help="32, 64 or 128 pixels")
    add("--num-batches", type=int, default=10_000, help="of 32 problems each")
    paths = {"nargs": 6, "metavar": "HDF5"}
    add("--published", help="the published files, trained on first", **paths)
    add("--export", help="folder for a SavedModel that can be served")
    add("--seed", type=int, default=0, help="fixes data, weights and order")
    add("--directory", type=pathlib.Path, default="runs/vaec")
    add("--verbose", type=int, default=1, help="0, or 1 for a progress bar")
    args = parser.parse_args()
    runs.check_export(args.export)
    return args


if __name__ == "__main__":
    main()
