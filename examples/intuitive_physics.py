"""Trains a predictor of possible scenes: does it see what is impossible?

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments, section 5: relative error on IntPhys' three
blocks, objects that vanish (O1), change (O2) or jump (O3) behind an occluder.
Learning rate and attention as in Table 6, whose values of 85 for each of 6
object files are taken for its size, which it does not have, too; the relational
memory has as many units. All object files are updated (SCOFF-ab). The loss is
binary cross-entropy, plausibility mean squared error. The scenes are ours, or,
with --folder, those tested on are the published ones, by the predictor that was
trained on ours. Killed, it continues when it is started again.
"""

import argparse
import pathlib

import keras

from keras_relational import layers
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import intuitive_physics


def main():
    args = parse_arguments()
    keras.utils.set_random_seed(args.seed)
    published = {}
    if args.folder:
        for block in intuitive_physics.BLOCKS:
            published[block] = intuitive_physics.read_published(
                args.folder, block
            )
    returned = {"return_sequences": True, "return_state": True}
    if args.core == "scoff":
        core = layers.SCOFF(
            *(85, 6, args.num_schemata),
            **{"num_heads": 4, "value_dim": 85, "dropout": 0.1, **returned},
        )
    else:
        cell = layers.RelationalMemoryCell(85, 6, num_heads=5)
        core = keras.layers.RNN(cell, **returned)
    model = models.video_predictor(core, num_channels=3)
    model.compile(
        training.adam(args.learning_rate),
        "binary_crossentropy",
        # XLA is slow at convolutions on a CPU, and JAX knows nothing else.
        jit_compile=keras.backend.backend() == "jax",
    )
    model.optimizer.build(model.trainable_variables)
    name = f"intuitive_physics-{args.core}{args.options}-seed{args.seed}"
    directory = args.directory / name
    with runs.Run(
        directory,
        "intuitive_physics",
        vars(args),
        ("num_batches", "num_sets", "verbose", "export"),
    ) as run:
        curves = training.fit(
            model,
            lambda first: training.VideoBatches(
                intuitive_physics.generate_possible,
                *(args.batch_size, first, args.seed),
            ),
            args.num_batches,
            batches_per_epoch=min(100, args.num_batches),
            run=run,
            verbose=args.verbose,
        )
    run.save_model(model)
    if args.folder:
        digest = runs.data_digest(*published.values())
        folder = f"{args.folder.name}_{digest}"
        name = name.replace("-seed", f"-on_{folder}-seed")
        with runs.Run(
            args.directory / name,
            "intuitive_physics",
            vars(args),
            ("num_batches", "num_sets", "verbose"),
            {"folder": digest},
        ) as run:
            pass
    result = {
        "run": name,
        "batches": int(curves["batches"][-1]),
        "minutes": round(float(curves["minutes"][-1]), 1),
    }
    # No seed of a batch: those are pairs, which zeros at the end do not change.
    for number, block in enumerate(intuitive_physics.BLOCKS, start=1):
        if args.folder:
            sets = published[block]
        else:
            sets = intuitive_physics.generate(
                block, args.num_sets, seed=[args.seed, 0, number]
            )
        videos = sets.reshape(-1, *sets.shape[2:])
        plausibility = training.plausibility(model, videos)
        result[block] = training.relative_error(plausibility.reshape(-1, 4))
    print(run.finish(result))


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
    cores = ("scoff", "relational_memory")
    add("--core", choices=cores, default="scoff")
    add("--num-schemata", type=int, default=4)
    add("--learning-rate", type=float, default=3e-4, help="as in Table 6")
    batches = "a multiple of 100, or less"
    add("--num-batches", type=int, default=1_000, help=batches)
    add("--batch-size", type=int, default=64, help="videos")
    add("--num-sets", type=int, default=100, help="test sets of each block")
    add("--folder", type=pathlib.Path, help="of the published development set")
    add("--seed", type=int, default=0, help="fixes data, weights and order")
    add("--directory", type=pathlib.Path, default="runs")
    add("--verbose", type=int, default=1, help="0, or 1 for a progress bar")
    args = parser.parse_args()
    if args.folder and not args.folder.is_dir():
        parser.error(f"there is no folder {args.folder}")
    options = ("num_schemata", "learning_rate", "batch_size")
    args.options = options_in_name(parser, args, options)
    return args


if __name__ == "__main__":
    main()
