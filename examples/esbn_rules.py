"""Trains an ESBN, NTM or LSTM on abstract rules, tests it on other fillers.

Tables 8 to 13 of Sinha et al., 2020, A Memory-Augmented Neural Network Model of
Abstract Rule Learning, with the settings of Tables 2 to 7. The paper, end to
end, multiple choice, images, 95 of 100 withheld: ESBN 99, NTM 28, LSTM 28
percent (chance 25). The other tasks are those of Webb et al., 2021, Emergent
Symbols through Binding in External Memory, with the settings of that paper. Its
ESBN has --confidence and --normalization: same/different, 98 withheld, 100,
relational match to sample, 95 withheld, 95, identity rules, 95 withheld, 99
percent. Killed, it continues when it is started again.
"""

import argparse
import json
import math
import pathlib

import keras
import numpy as np

from keras_relational import analysis
from keras_relational import layers
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import distribution_of_three

MAY_DIFFER = ("images", "verbose", "export")


def main():
    args = parse_arguments()
    if args.images:
        fillers = distribution_of_three.load_images(args.images)
        digest = runs.data_digest(fillers)
        args.options = f"-images{args.images.name}_{digest}{args.options}"
    elif args.fillers == "vector":
        fillers = distribution_of_three.one_hot()
    else:
        fillers = distribution_of_three.glyphs()
    # Which of them are withheld.
    fillers = np.random.default_rng([args.seed, 2]).permutation(fillers)
    kind = "pretrained" if args.pretrained else "end_to_end"
    if args.task == "distribution_of_three":
        preset = training.preset(
            kind, args.fillers, args.mode, args.sequential, args.withheld
        )
    else:
        preset = training.other_task_preset(
            args.task, args.sequential, args.withheld, args.normalization
        )
    sizes = max(preset.num_train, 10_000), 10_000
    total = distribution_of_three.num_problems(args.task, len(fillers))
    if args.withheld == 0 and total is not None and total < sum(sizes):
        sizes = total // 2, total // 2  # Few images of one's own.
    train, test = distribution_of_three.load_data(
        *(args.withheld, args.task, args.mode, *sizes),
        num_fillers=len(fillers),
        seed=args.seed,
    )
    name = (
        f"{args.task}-{kind}-{args.fillers}-{args.mode}-{args.sequential}"
        f"-M{args.withheld}{args.options}-seed{args.seed}"
    )
    directory = args.directory / name
    keras.utils.set_random_seed(args.seed)
    autoencoder = models.filler_autoencoder(
        args.fillers, len(fillers), preset.batch_normalization
    )
    reconstructed = None
    if args.pretrained:
        with runs.Run(directory, "esbn_rules", vars(args), MAY_DIFFER) as run:
            reconstructed = training.train_autoencoder(
                autoencoder, fillers, run=run
            )
        print(f"Fillers reconstructed: {reconstructed:.0%}")
        if reconstructed < 0.5:
            raise SystemExit(
                "The autoencoder reconstructs less than half of the fillers: "
                "its sigmoid may be stuck at 0. Start again with another --seed"
            )
        autoencoder.trainable = False
    normalization = None
    if args.normalization:
        # A pair each, of three; elsewhere over the whole sequence.
        pairs = args.task == "relational_match_to_sample"
        normalization = layers.TemporalContextNormalization(
            segment_lengths=(2, 2, 2) if pairs else None, name="normalization"
        )
    model = models.rule_learner(
        autoencoder,
        args.sequential,
        args.mode,
        num_options=int(train.labels.max()) + 1,
        confidence=args.confidence,
        normalization=normalization,
    )
    # Those withheld do not even count in a batch normalization.
    seen = fillers[: len(fillers) - args.withheld]
    trained = models.over_fillers(model, seen)
    tested = models.over_fillers(model, fillers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    targets, candidates = train.labels, None
    if args.mode == "generative":
        candidates = training.as_put_out(fillers)
        loss = "mse" if args.fillers == "image" else training.cross_entropy
        targets = candidates[train.labels]
    learning_rate = args.learning_rate
    if learning_rate is None:
        learning_rate = preset.learning_rate
    trained.compile(
        training.adam(learning_rate),
        loss,
        jit_compile=keras.backend.backend() != "torch",
    )
    trained.optimizer.build(trained.trainable_variables)
    # The last batch of an epoch may be a small one in the papers; not here.
    batches = math.ceil(min(len(targets), preset.num_train) / 32)
    batches *= preset.epochs if args.epochs is None else args.epochs
    batches = math.ceil(batches / 20)
    with runs.Run(directory, "esbn_rules", vars(args), MAY_DIFFER) as run:
        curves = training.fit(
            trained,
            lambda first: training.Minibatches(
                train.fillers, targets, 32, None, first, args.seed
            ),
            num_batches=20 * batches,
            batches_per_epoch=batches,
            measure=lambda: {
                "test": training.rule_accuracy(
                    tested, type(test)(*(x[:2000] for x in test)), candidates
                )
            },
            run=run,
            verbose=args.verbose,
        )
    run.save_model(model)
    result = {
        "run": name,
        "batches": int(curves["batches"][-1]),
        "learning_rate": learning_rate,
        "reconstructed": reconstructed,
        "minutes": round(float(curves["minutes"][-1]), 1),
        "train": training.rule_accuracy(tested, train, candidates),
        "test": training.rule_accuracy(tested, test, candidates),
    }
    print(json.dumps(run.finish(result)))
    draw(model, test, fillers, directory, args)
    if args.export:
        from keras_relational import serving

        print(f"Exported: {serving.export_model(model, args.export)}")


def draw(model, test, fillers, directory, args):
    """What an ESBN binds, and what is predicted: as in Figs. 8 and 12 to 14."""
    problems = fillers[test.fillers[:300]]
    figures = {}
    if args.sequential == "esbn":
        found = analysis.bindings(model, problems)
        figures["retrieval.png"] = analysis.plot_retrieval(found)
        figures["keys.png"] = analysis.plot_keys(found)
    if args.mode == "generative" and args.fillers == "image":
        predicted = model.predict(problems[:6], verbose=0)
        figures["predictions.png"] = analysis.plot_predictions(
            predicted, test.labels[:6], fillers
        )
    for name, figure in figures.items():
        analysis.save_figure(figure, directory / name)


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
    tasks = distribution_of_three.TASKS
    add("--task", choices=tasks, default="distribution_of_three")
    add("--sequential", choices=models.SEQUENTIAL, default="esbn")
    modes = distribution_of_three.MODES
    add("--mode", choices=modes, default="multiple_choice")
    add("--fillers", choices=models.FILLERS, default="image")
    images = "PNG files of your own instead"
    add("--images", type=pathlib.Path, metavar="FOLDER", help=images)
    add("--pretrained", action="store_true", help="and frozen autoencoder")
    add("--withheld", type=int, default=95, help="M in the paper")
    add("--confidence", action="store_true", help="of keys read, Webb 2021")
    add("--normalization", action="store_true", help="of values, the same")
    add("--learning-rate", type=float, help="default: that of the paper")
    add("--epochs", type=int, help="default: that of the paper")
    add("--export", help="folder for a SavedModel that can be served")
    add("--seed", type=int, default=0, help="fixes data, weights and order")
    add("--directory", type=pathlib.Path, default="runs/rules")
    add("--verbose", type=int, default=1, help="0, or 1 for a progress bar")
    args = parser.parse_args()
    args.options = options_in_name(
        parser, args, ("confidence", "normalization", "learning_rate", "epochs")
    )
    pairs = ("same_different", "relational_match_to_sample")
    if args.task in pairs and args.sequential == "esbn" and not args.confidence:
        parser.error(
            f"an ESBN sees whether two fillers are alike only with "
            f"--confidence, which {args.task} needs"
        )
    if args.images and args.fillers == "vector":
        parser.error("--images are fillers of their own: leave out --fillers")
    if args.fillers == "vector" and not args.pretrained:
        parser.error(
            "--fillers vector needs --pretrained: end to end, no weight of a "
            "filler that is withheld would be trained"
        )
    if args.normalization and args.mode == "generative":
        parser.error("--normalization is for --mode multiple_choice")
    if args.confidence and args.sequential != "esbn":
        parser.error("--confidence is for --sequential esbn")
    if args.epochs is not None and args.epochs < 1:
        parser.error(f"--epochs must be 1 or more: {args.epochs}")
    runs.check_export(args.export)
    return args


if __name__ == "__main__":
    main()
