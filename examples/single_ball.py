"""Trains a predictor of one ball: is there a schema for each of its dynamics?

Section 5 of Goyal et al., 2020, Factorizing Declarative and Procedural
Knowledge in Structured, Dynamical Environments: one object file and as many
schemata as dynamics, three, or two that switch in the middle; after some five
frames there is one schema for each (Figs. 3, 4 and 15). Learning rate, batch
and sizes of attention, taken for those of a head, as in Table 7, five frames
stacked as in F.1; the loss, of which it says nothing, is binary cross-entropy.
A batch of 50 videos of 19 steps takes 3 seconds on one core of a virtual Zen 3.
Killed, it continues when it is started again.
"""

import argparse
import json
import pathlib

import keras
import numpy as np

from keras_relational import analysis
from keras_relational import layers
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import single_ball

BURN_IN = 5


def main():
    args = parse_arguments()
    keras.utils.set_random_seed(args.seed)
    switching = args.dynamics == "switching"
    if switching:
        generate, kinds = single_ball.generate_switching, 2
    else:
        generate, kinds = single_ball.generate, 3
    # Over 51 frames an acceleration could hardly be seen from one to the next.
    num_frames, num_schemata = args.num_frames, args.num_schemata
    if num_frames is None:
        num_frames = 51 if switching else 20
    if num_schemata is None:
        num_schemata = kinds
    train, _, _ = generate(args.num_train, num_frames, seed=[args.seed, 0])
    test, labels, _ = generate(args.num_test, num_frames, seed=[args.seed, 1])
    core = layers.SCOFF(
        *(args.units, args.num_object_files, num_schemata),
        num_heads=4,
        temperature=args.temperature,
        dropout=0.1,
        return_sequences=True,
        return_state=True,
    )
    model = models.video_predictor(
        core, num_stacked=args.num_stacked, mean_pixel=train.mean() / 255
    )
    model.compile(
        training.adam(args.learning_rate),
        "binary_crossentropy",
        # XLA is slow at convolutions on a CPU, and JAX knows nothing else.
        jit_compile=keras.backend.backend() == "jax",
    )
    model.optimizer.build(model.trainable_variables)
    name = f"single_ball-{args.dynamics}{args.options}-seed{args.seed}"
    directory = args.directory / name
    with runs.Run(
        directory,
        "single_ball",
        {k: v for k, v in vars(args).items() if k != "options"},
        ("epochs", "num_batches", "num_test", "verbose", "export"),
    ) as run:
        curves = training.fit(
            model,
            lambda first: training.VideoBatches(
                lambda n, seed: train[
                    np.random.default_rng(seed).integers(len(train), size=n)
                ],
                *(args.batch_size, first, args.seed),
            ),
            args.num_batches,
            batches_per_epoch=min(100, args.num_batches),
            run=run,
            verbose=args.verbose,
        )
    run.save_model(model)
    if not switching:
        labels = np.repeat(labels[:, None], test.shape[1], axis=1)
    # The last frame of each pair is predicted by the dynamics of the first.
    found = analysis.object_files(model, test[:, :-1])
    schemata = found.schemata.argmax(-1)[:, BURN_IN:]
    tables = [
        analysis.contingency(
            schemata[..., k], labels[:, BURN_IN:-1], core.num_schemata
        )
        for k in range(args.num_object_files)
    ]
    num_given = num_frames // 3
    errors = training.roll_out_errors(
        model, test[:200], num_given, num_frames - num_given
    )
    result = {
        "run": name,
        "batches": int(curves["batches"][-1]),
        "minutes": round(float(curves["minutes"][-1]), 1),
        "contingency": [table.tolist() for table in tables],
        "information": [analysis.mutual_information(x) for x in tables],
        "roll_out_error": float(errors.mean()),
    }
    print(json.dumps(run.finish(result)))
    figure = analysis.plot_schemata(found, labels=labels[0, :-1])
    analysis.save_figure(figure, directory / "schemata.png")


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
    add("--dynamics", choices=("fixed", "switching"), default="fixed")
    add("--num-object-files", type=int, default=1)
    add("--num-schemata", type=int, help="default: as many as dynamics")
    add("--units", type=int, default=100, help="of an object file")
    add("--temperature", type=float, default=1.0, help="of choices in training")
    add("--num-frames", type=int, help="default: 20 if fixed, 51 if switching")
    add("--num-stacked", type=int, default=5, help="frames seen at each step")
    add("--learning-rate", type=float, default=1e-4, help="as in Table 7")
    batches = "a multiple of 100, or less"
    add("--num-batches", type=int, default=2_000, help=batches)
    add("--batch-size", type=int, default=50, help="videos")
    add("--num-train", type=int, default=10_000, help="training videos")
    add("--num-test", type=int, default=500, help="test videos")
    add("--seed", type=int, default=0, help="fixes data, weights and order")
    add("--directory", type=pathlib.Path, default="runs")
    add("--verbose", type=int, default=1, help="0, or 1 for a progress bar")
    args = parser.parse_args()
    sizes = ("num_object_files", "num_schemata", "units", "temperature")
    frames = ("num_frames", "num_stacked")
    options = (*sizes, *frames, "learning_rate", "batch_size", "num_train")
    if args.num_frames is not None and args.num_frames < BURN_IN + 2:
        parser.error(
            f"--num-frames must be {BURN_IN + 2} or more: schemata are counted "
            f"from the step after {BURN_IN} others on"
        )
    args.options = options_in_name(parser, args, options)
    return args


if __name__ == "__main__":
    main()
