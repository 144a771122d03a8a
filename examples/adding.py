"""Trains SCOFF, RIMs or an LSTM to add two or four numbers of 50; then others.

Table 3 of Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge
in Structured, Dynamical Environments: mean error, here mean squared error, on
sequences of 200 with two to ten numbers marked, after 100 epochs. With ten:
SCOFF 0.0539, RIMs 0.8904, LSTM 11.3595. Learning rate and sizes as in appendix
B: 300 units in all, five times 60 in SCOFF and RIMs, sizes of attention a head.
It does not say how large the encoder is (here one layer of 64, for all three),
or how many RIMs and object files are active (3 of 5, and one: what its appendix
calls SCOFF has inactive ones). Of SCOFF, Fig. 6 (a) is drawn. Killed, it
continues when it is started again.
"""

import argparse
import json
import pathlib

import keras

from keras_relational import analysis
from keras_relational import layers
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import adding


def main():
    args = parse_arguments()
    keras.utils.set_random_seed(args.seed)
    model = keras.Sequential(
        [
            keras.Input((None, 2), name="sequence"),
            # For vectors, what SCOFF sees is put out by an MLP (section 3).
            keras.layers.Dense(64, "relu", name="encoder"),
            new_core(args),
            keras.layers.Dense(1, name="sum"),
        ],
        name="adding",
    )
    model.compile(
        training.adam(args.learning_rate),
        "mse",
        jit_compile=keras.backend.backend() != "torch",
    )
    model.optimizer.build(model.trainable_variables)
    inputs, targets = adding.generate(
        args.num_train, adding.TRAIN_LENGTH, adding.TRAIN_VALUES, [args.seed, 0]
    )
    tests = {
        number: adding.generate(
            args.num_test, adding.TEST_LENGTH, number, [args.seed, number]
        )
        for number in adding.TEST_VALUES
    }
    name = f"adding-{args.core}{args.options}-seed{args.seed}"
    directory = args.directory / name
    batches_per_epoch = len(targets) // 64

    def errors(size):
        return {
            number: model.evaluate(
                x[:size], y[:size, None], batch_size=250, verbose=0
            )
            for number, (x, y) in tests.items()
        }

    with runs.Run(
        directory,
        "adding",
        {k: v for k, v in vars(args).items() if k != "options"},
        ("epochs", "num_test", "verbose", "export"),
    ) as run:
        curves = training.fit(
            model,
            lambda first: training.Minibatches(
                inputs, targets[:, None], 64, None, first, args.seed
            ),
            args.epochs * batches_per_epoch,
            batches_per_epoch,
            measure=lambda: {f"error_{k}": v for k, v in errors(500).items()},
            run=run,
            verbose=args.verbose,
        )
    run.save_model(model)
    result = {
        "run": name,
        "epochs": int(curves["batches"][-1]) // batches_per_epoch,
        "minutes": round(float(curves["minutes"][-1]), 1),
        "errors": errors(args.num_test),
    }
    print(json.dumps(run.finish(result)))
    if args.core == "scoff":
        x, _ = adding.generate(1, 20, 4, [args.seed, 1])
        figure = analysis.plot_schemata(
            analysis.object_files(model, x), labels=x[0, :, 1].astype(int)
        )
        analysis.save_figure(figure, directory / "schemata.png")


def new_core(args):
    if args.core == "lstm":
        return keras.layers.LSTM(300, name="core")
    attention = {"num_heads": 4, "key_dim": 64, "value_dim": 60}
    shared = {"dynamics": "lstm", "dropout": 0.1, "name": "core", **attention}
    active = args.num_active
    if active is None:
        active = {"rims": 3, "scoff": 1}[args.core]
    if args.core == "rims":
        return layers.RIMs(60, 5, active, **shared)
    return layers.SCOFF(60, 5, 2, num_active=active, **shared)


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
    add("--core", choices=("scoff", "rims", "lstm"), default="scoff")
    active = "object files or modules, of 5, updated in a step; default: 1, 3"
    add("--num-active", type=int, help=active)
    rate = "as the text says; Table 2 has 0.01"
    add("--learning-rate", type=float, default=0.001, help=rate)
    add("--epochs", type=int, default=100)
    add("--num-train", type=int, default=50_000, help="training sequences")
    add("--num-test", type=int, default=20_000, help="of each of seven tests")
    add("--seed", type=int, default=0, help="fixes data, weights and order")
    add("--directory", type=pathlib.Path, default="runs")
    add("--verbose", type=int, default=1, help="0, or 1 for a progress bar")
    args = parser.parse_args()
    args.options = options_in_name(
        parser, args, ("num_active", "learning_rate", "num_train")
    )
    return args


if __name__ == "__main__":
    main()
