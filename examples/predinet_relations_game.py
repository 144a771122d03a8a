"""Trains PrediNet, or a baseline, on one task of the Relations Game.

Table 1 of Shanahan et al., 2020, An Explicitly Relational Neural Network
Architecture: accuracy on objects never seen in training, after 100,000 batches
of 10. The paper's PrediNet, hexominoes / stripes: same 100 / 100, between
99.3 / 98.8, occurs 97.6 / 96.3, xoccurs 95.4 / 94.3, colour_and_shape 94.2.
A run takes some 3 minutes on 2 cores, the relation network's about an hour.
Killed, it continues when it is started again.
"""

import argparse
import pathlib

import keras

from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import relations_game


def main():
    args = parse_arguments()
    # The four-label task needs objects that differ in shape: no stripes.
    four_labels = args.task == "colour_and_shape"
    held_out = ["hexominoes"] if four_labels else ["hexominoes", "stripes"]
    x, y, _ = relations_game.generate(
        args.task, args.num_train, seed=[args.seed, 0]
    )
    tests = {
        object_set: relations_game.generate(
            args.task, args.num_test, object_set, seed=[args.seed, 1]
        )[:2]
        for object_set in held_out
    }
    if args.published:
        tests["published"] = relations_game.load_npz(args.published)[:2]
        digest = runs.data_digest(*tests["published"])
        args.options += f"-published_{digest}"

    keras.utils.set_random_seed(args.seed)
    model = models.relations_classifier(
        args.central,
        num_classes=4 if four_labels else 2,
        num_heads=args.num_heads,
        num_relations=args.num_relations,
    )
    optimizers = {
        "sgd": keras.optimizers.SGD(0.01),
        "adam": keras.optimizers.Adam(1e-4),
    }
    name = (
        f"{args.task}-{args.central}-{args.optimizer}-k{args.num_heads}"
        f"-j{args.num_relations}{args.options}-seed{args.seed}"
    )
    directory = args.directory / name
    with runs.Run(
        directory,
        "predinet_relations_game",
        vars(args),
        ("num_batches", "num_test", "published", "verbose", "export"),
    ) as run:
        curves = training.train_classifier(
            model,
            x,
            y,
            num_batches=args.num_batches,
            batches_per_epoch=1_000,
            optimizer=optimizers[args.optimizer],
            # A point of the curve needs fewer images than the final figure.
            validation={k: (x[:2000], y[:2000]) for k, (x, y) in tests.items()},
            run=run,
            seed=args.seed,
            verbose=args.verbose,
        )
    run.save_model(model)
    result = {
        "run": name,
        "batches": int(curves["batches"][-1]),
        "minutes": round(float(curves["minutes"][-1]), 1),
        **{k: training.accuracy(model, *test) for k, test in tests.items()},
    }
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
    add("--task", choices=relations_game.TASKS, default="between")
    add("--central", choices=models.CENTRAL_MODULES, default="predinet")
    add("--optimizer", choices=("sgd", "adam"), default="sgd")
    add("--num-heads", type=int, default=32, help="k in the paper")
    add("--num-relations", type=int, default=16, help="j in the paper")
    batches = "of 10 images each; a multiple of 1,000"
    add("--num-batches", type=int, default=100_000, help=batches)
    add("--num-train", type=int, default=250_000, help="training images")
    add("--num-test", type=int, default=10_000, help="images of each test set")
    add("--published", metavar="NPZ", help="a published file to test on too")
    add("--seed", type=int, default=0, help="fixes data, weights and order")
    add("--directory", type=pathlib.Path, default="runs/relations_game")
    add("--verbose", type=int, default=1, help="0, or 1 for a progress bar")
    args = parser.parse_args()
    args.options = options_in_name(parser, args, ["num_train"])
    return args


if __name__ == "__main__":
    main()
