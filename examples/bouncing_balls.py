"""Trains a predictor of bouncing balls, and rolls it out.

Figs. 7 to 12 of Goyal et al., 2020, Factorizing Declarative and Procedural
Knowledge in Structured, Dynamical Environments: error of 10 and 30 frames
predicted after 15 true ones, relative to a GRU's, after some 100 epochs of
50,000 videos, or 782 batches, on a GPU two days. Sizes as in Table 4, those of
attention a head, but for the number of object files, which is 4 there; in
section 5 it is 8 for 678Balls, as here. Of sparse SCOFF's object files and of
RIMs', LSTMs of 100 units, half are active: the paper does not say how many. The
loss is binary cross-entropy, errors are mean squares, of which it says nothing
either. The videos are new ones all the time. SCOFF sees positions, the others
one vector a frame. Killed, it continues when it is started again.
"""

import argparse
import functools
import json
import pathlib

import keras
import numpy as np

from keras_relational import analysis
from keras_relational import layers
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import bouncing_balls

CORES = ("scoff", "scoff_sparse", "rims", "relational_memory", "gru")


def main():
    args = parse_arguments()
    keras.utils.set_random_seed(args.seed)
    generate = functools.partial(bouncing_balls.generate, args.task)
    # No seed of a batch: those are pairs, which zeros at the end do not change.
    test = generate(args.num_test, seed=[args.seed, 0, 1])
    num_slots = args.num_object_files
    if num_slots is None:
        num_slots = 8 if "678" in args.task else 4
    core = new_core(args.core, num_slots, args.num_schemata)
    some = generate(50, seed=[args.seed, 0, 2])
    model = models.video_predictor(
        core,
        num_channels=test.shape[-1],
        mean_pixel=some.mean() / 255,
        positions=args.core.startswith("scoff"),
    )
    model.compile(
        training.adam(args.learning_rate),
        "binary_crossentropy",
        # XLA is slow at convolutions on a CPU, and JAX knows nothing else.
        jit_compile=keras.backend.backend() == "jax",
    )
    model.optimizer.build(model.trainable_variables)
    core = args.core
    if core.startswith("scoff"):
        core = f"{core}{args.num_schemata}"
    name = f"bouncing_balls-{args.task}-{core}{args.options}-seed{args.seed}"
    directory = args.directory / name
    with runs.Run(
        directory,
        "bouncing_balls",
        {k: v for k, v in vars(args).items() if k != "options"},
        ("num_batches", "num_test", "verbose", "export"),
    ) as run:
        curves = training.fit(
            model,
            lambda first: training.VideoBatches(
                functools.partial(generate, num_frames=args.num_frames),
                *(args.batch_size, first, args.seed),
            ),
            args.num_batches,
            batches_per_epoch=min(100, args.num_batches),
            run=run,
            verbose=args.verbose,
        )
    run.save_model(model)
    errors = training.roll_out_errors(model, test)
    result = {
        "run": name,
        "batches": int(curves["batches"][-1]),
        "minutes": round(float(curves["minutes"][-1]), 1),
        "error_10": float(errors[:10].mean()),
        "error_30": float(errors.mean()),
        "error_of_frames": errors.tolist(),
    }
    if core.startswith("scoff"):
        found = analysis.object_files(model, test[:200, :-1])
        result["schemata_in_use"] = analysis.schemata_in_use(found)
    print(json.dumps(run.finish(result)))
    if core.startswith("scoff"):
        figure = analysis.plot_schemata(found)
        analysis.save_figure(figure, directory / "schemata.png")
        figure = analysis.plot_spatial_attention(test[0], found)
        analysis.save_figure(figure, directory / "attention.png")
    rolled = models.roll_out_model(model, 30).predict(test[:1, :15], verbose=0)
    videos = [test[0, :45], np.concatenate([test[0, :15] / 255, rolled[0]])]
    analysis.save_videos(videos, directory / "rolled_out.gif")
    if args.export:
        from keras_relational import serving

        rolling = models.roll_out_model(model, 10)
        print(f"Exported: {serving.export_model(rolling, args.export)}")


def new_core(core, num_slots, num_schemata):
    """Of as many units in all as so many object files of 100."""
    returned = {"return_sequences": True, "return_state": True}
    if core == "gru":
        return keras.layers.GRU(100 * num_slots, **returned)
    if core == "relational_memory":
        cell = layers.RelationalMemoryCell(100, num_slots, num_heads=4)
        return keras.layers.RNN(cell, **returned)
    attention = {"value_dim": 100, "dropout": 0.1, **returned}
    if core == "rims":
        return layers.RIMs(100, num_slots, num_slots // 2, **attention)
    active = num_slots // 2 if core == "scoff_sparse" else None
    return layers.SCOFF(
        *(100, num_slots, num_schemata), num_active=active, **attention
    )


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
    add("--task", choices=bouncing_balls.TASKS, default="4balls")
    add("--core", choices=CORES, default="scoff", help="scoff: dense, SCOFF-ab")
    slots = "modules or slots; default: 4, for 678Balls 8"
    add("--num-object-files", type=int, help=slots)
    add("--num-schemata", type=int, default=4)
    add("--learning-rate", type=float, default=1e-4, help="as in Table 4")
    batches = "a multiple of 100, or less"
    add("--num-batches", type=int, default=2_000, help=batches)
    add("--batch-size", type=int, default=64, help="videos")
    frames = "of a training video; tests have 51"
    add("--num-frames", type=int, default=51, help=frames)
    add("--num-test", type=int, default=500, help="test videos")
    add("--export", help="folder for a SavedModel that predicts 10 frames")
    add("--seed", type=int, default=0, help="fixes data, weights and order")
    add("--directory", type=pathlib.Path, default="runs")
    add("--verbose", type=int, default=1, help="0, or 1 for a progress bar")
    args = parser.parse_args()
    frames = ("num_frames", "num_test")
    options = ("num_object_files", "learning_rate", "batch_size", *frames)
    args.options = options_in_name(parser, args, options)
    runs.check_export(args.export)
    return args


if __name__ == "__main__":
    main()
