"""Trains a scorer of visual analogies, and tests it on values never seen.

In the style of Table 3 of Webb et al., 2020, Learning Representations that
Support Extrapolation. The paper's accuracies, on the problems of Hill et al.,
2019: TCN (source/target) 74.2, TCN (entire analogy) 67.6, batch norm. 66.1, and
62 for Hill et al.'s network without any. Chance is 25, and 27 to 28 for what
sees no more of a problem than whether it is about quantities, of which there is
no xor. Problems are our own here, or the published files, of which the authors
take some 56,000 batches. Ours with --no-distraction --candidates random
--image-size 48 --learning-rate 1e-3 are learned in 10,000, 25 minutes on one
core; as they are by default, 4,000 do not begin to. Killed, it continues when
it is started again.
"""

import argparse
import glob
import json
import pathlib
import re

import keras
import numpy as np

from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import visual_analogies


def main():
    args = parse_arguments()
    size = args.image_size
    if args.published:
        train, test = (matching_files(x) for x in args.published)
        test = visual_analogies.load_npz(test[: args.num_test], image_size=size)
        tests = {"test": test}
    else:
        test = test_problems(args, "test", 10**9)
        # As many new ones with familiar values.
        near = test_problems(args, "train", 10**9 + 1)
        tests = {"test": test[:2], "near": near[:2]}
    keras.utils.set_random_seed(args.seed)
    model = models.visual_analogy_scorer(args.normalization, size)
    model.compile(
        training.adam(args.learning_rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        # XLA is slow at convolutions on a CPU, and JAX knows nothing else.
        jit_compile=keras.backend.backend() == "jax",
    )
    model.optimizer.build(model.trainable_variables)
    kind = args.candidates
    if args.published:
        pattern = "_".join(pathlib.Path(args.published[0]).parts[-2:])
        kind = "published_" + re.sub(r"\W+", "_", pattern).strip("_")
        # Of a folder of a million files, about a hundred.
        some = visual_analogies.load_npz(train[:: len(train) // 100 + 1])
        names = [pathlib.Path(path).name for path in train]
        kind += f"_{runs.data_digest(names, *some, *test)}"
    name = f"{args.normalization}-{kind}-{size}px{args.options}-seed{args.seed}"
    directory = args.directory / name

    def batches(first):
        if args.published:
            return training.VisualAnalogyFiles(
                train, 32, size, first, args.seed
            )
        return training.VisualAnalogyBatches(
            32,
            "train",
            args.candidates,
            size,
            first,
            args.seed,
            not args.no_distraction,
        )

    def accuracies(number):
        # In batches as in training, which some normalizations look at.
        return {
            name: training.accuracy(model, x[:number], y[:number], 32)
            for name, (x, y) in tests.items()
        }

    def measure():
        return {f"{k}_accuracy": v for k, v in accuracies(512).items()}

    with runs.Run(
        directory,
        "visual_analogies",
        vars(args),
        ("num_batches", "num_test", "published", "verbose", "export"),
    ) as run:
        curves = training.fit(
            model,
            batches,
            num_batches=args.num_batches,
            batches_per_epoch=min(1_000, args.num_batches),
            measure=measure,
            run=run,
            verbose=args.verbose,
        )
    run.save_model(model)
    result = {
        "run": name,
        "batches": int(curves["batches"][-1]),
        "minutes": round(float(curves["minutes"][-1]), 1),
        **accuracies(args.num_test),
    }
    if not args.published:
        result["test_shares"] = shares(model, test)
        result["near_shares"] = shares(model, near)
    print(json.dumps(run.finish(result)))


def test_problems(args, regime, seed):
    return visual_analogies.generate(
        args.num_test,
        regime,
        args.candidates,
        args.image_size,
        [args.seed, seed],
        not args.no_distraction,
    )


def matching_files(pattern):
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise ValueError(
            f"There is no file of that pattern. Received: {pattern!r}"
        )
    return paths


def shares(model, problems):
    """Of problems solved, by relation and by domain of the target row."""
    scores = model.predict(problems.images, batch_size=32, verbose=0)
    right = scores.argmax(axis=1) == problems.labels
    targets = problems.domains[:, 1]
    return {
        name: float(np.mean(right[kinds == number]))
        for names, kinds in (
            (visual_analogies.RELATIONS, problems.relations),
            (visual_analogies.DOMAINS, targets),
        )
        for number, name in enumerate(names)
        if (kinds == number).any()
    }


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
    known = models.ROW_NORMALIZATIONS
    add("--normalization", choices=known, default="source_target")
    kinds = visual_analogies.CANDIDATES
    add("--candidates", choices=kinds, default="contrasting")
    easier = "rows that vary in one domain alone"
    add("--no-distraction", action="store_true", help=easier)
    add("--image-size", type=int, default=80, help="a multiple of 16")
    add("--learning-rate", type=float, default=1e-4, help="of Adam")
    add("--num-batches", type=int, default=20_000, help="of 32 problems each")
    add("--num-test", type=int, default=4_000, help="test problems")
    files = {"nargs": 2, "metavar": ("TRAIN", "TEST")}
    published = "patterns of published files, such as 'folder/*_train_lbc_*'"
    add("--published", help=published, **files)
    add("--seed", type=int, default=0, help="fixes data, weights and order")
    add("--directory", type=pathlib.Path, default="runs/visual_analogies")
    add("--verbose", type=int, default=1, help="0, or 1 for a progress bar")
    args = parser.parse_args()
    args.options = options_in_name(
        parser, args, ("no_distraction", "learning_rate")
    )
    if args.published and args.no_distraction:
        parser.error("--no-distraction is not for --published problems")
    return args


if __name__ == "__main__":
    main()
