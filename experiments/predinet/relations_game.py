"""Trains PrediNet, or a baseline, on one task of the Relations Game.

Shanahan et al., 2020, An Explicitly Relational Neural Network Architecture,
Table 1: accuracy on objects that were never seen in training, after 100,000
batches of 10. The paper's PrediNet has, on hexominoes / stripes, in percent:
same 100 / 100, between 99.3 / 98.8, occurs 97.6 / 96.3, xoccurs 95.4 / 94.3,
colour_and_shape 94.2. A run takes some 3 minutes on 2 cores, and with
--central relation_network about an hour.
"""

import keras

from experiments import command_line
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import relations_game
from keras_relational.models.relations_classifier import CENTRAL_MODULES
from keras_relational.random_streams import stream

OPTIMIZERS = {"sgd": keras.optimizers.SGD, "adam": keras.optimizers.Adam}
LEARNING_RATES = {"sgd": 0.01, "adam": 1e-4}
PUBLISHED = "a published NPZ file of the task, to test on too"
NEXT = "python -m experiments.predinet relations_game --central mha"


def main(command):
    add = command.option
    add("--task", relations_game.TASKS, "between", "the task")
    add("--central", CENTRAL_MODULES, "predinet", "central module")
    add("--optimizer", OPTIMIZERS, "sgd", "sgd learns at 0.01, adam at 0.0001")
    add("--num-heads", int, 32, "k in the paper")
    add("--num-relations", int, 16, "j in the paper")
    add("--num-batches", int, 100_000, "training steps, of 10 images each")
    add("--num-train", int, 250_000, "training images", low=10)
    add("--num-test", int, 10_000, "images of each test set")
    add("--published", command_line.existing_file, None, PUBLISHED)
    args = command.parse_run()

    x, y, _ = relations_game.generate(
        args.task, args.num_train, seed=stream(args.seed, "train")
    )
    tests, digests = held_out_sets(vars(args)), {}
    if args.published:
        images, labels, _ = relations_game.load_npz(args.published)
        tests["published"] = images, labels
        digests["published"] = runs.data_digest(images, labels)

    keras.utils.set_random_seed(args.seed)
    model = models.relations_classifier(
        args.central,
        num_classes=4 if args.task == "colour_and_shape" else 2,
        num_heads=args.num_heads,
        num_relations=args.num_relations,
    )
    with command.open_run(
        always=["task", "central"],
        may_differ=["num_batches", "num_test"],
        data=digests,
    ) as run:
        training.train_classifier(
            model,
            x,
            y,
            num_batches=args.num_batches,
            batch_size=10,
            optimizer=OPTIMIZERS[args.optimizer](
                LEARNING_RATES[args.optimizer]
            ),
            # A point of the curves needs fewer images than the result.
            validation={k: (x[:2000], y[:2000]) for k, (x, y) in tests.items()},
            batches_per_epoch=1_000,
            run=run,
            seed=args.seed,
            verbose=args.verbose,
        )
        metrics = {
            name: training.accuracy(model, images, labels)
            for name, (images, labels) in tests.items()
        }
        lines = [f"accuracy on {name}: {{{name}:.1%}}" for name in metrics]
        command.finish(run, model, metrics, lines, NEXT)


def held_out_sets(arguments):
    """Images and labels of other sets of objects than that of training."""
    tests = {}
    for object_set in ("hexominoes", "stripes"):
        # The shapes of stripes do not differ.
        if object_set == "stripes" and arguments["task"] == "colour_and_shape":
            continue
        images, labels, _ = relations_game.generate(
            arguments["task"],
            arguments["num_test"],
            object_set,
            seed=stream(arguments["seed"], "test"),
        )
        tests[object_set] = images, labels
    return tests


def preset_metrics(model, arguments):
    """Accuracy on other object sets, as in the run's result."""
    return {
        name: training.accuracy(model, images, labels)
        for name, (images, labels) in held_out_sets(arguments).items()
    }


def preset_headline(arguments, metrics):
    return (
        f"right about {metrics['hexominoes']:.1%} of hexominoes and "
        f"{metrics['stripes']:.1%} of stripes, which it never saw"
    )
