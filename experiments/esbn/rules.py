"""Trains an ESBN, NTM, LSTM or CoRelNet on rules, tests on other fillers.

Sinha et al., 2020, A Memory-Augmented Neural Network Model of Abstract Rule
Learning, Tables 2 to 13. The paper has with the defaults: ESBN 99 percent, NTM
28, LSTM 28, and chance is 25. The other tasks and their settings are from Webb
et al., 2021, whose ESBN has --confidence and --normalization: same/different
with --withheld 98 100, relational match to sample 95, identity rules 99
percent. A CoRelNet (Kerg et al., 2022) has --normalization.
"""

import keras

from experiments import command_line
from keras_relational import analysis
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import distribution_of_three as rules

LINES = ["accuracy in training: {train:.1%}, with other fillers: {test:.1%}"]
NEXT = "python -m experiments.esbn --sequential lstm"


def main(command):
    add = command.option
    add("--task", rules.TASKS, "distribution_of_three", "the task")
    add("--sequential", models.SEQUENTIAL, "esbn", "the network")
    add("--mode", rules.MODES, "multiple_choice", "choose or generate a filler")
    add("--fillers", models.FILLERS, "image", "vector needs --pretrained")
    add("--images", command_line.existing_folder, None, "PNG files to read")
    add("--pretrained", bool, False, "train the autoencoder first, freeze it")
    add("--withheld", int, 95, "number of fillers for the test, M", low=0)
    add("--confidence", bool, False, "of what the ESBN retrieves")
    add("--normalization", bool, False, "of the embeddings, over time")
    add("--reorder-options", bool, False, "each time a problem is shown")
    add("--learning-rate", float, None, "of Adam (default: the paper's)")
    add("--epochs", int, None, "passes over the data (default: the paper's)")
    args = command.parse_run(export="a SavedModel")

    settings = training.rule_settings(
        *(args.task, args.sequential, args.mode, args.fillers),
        *(args.pretrained, args.withheld, args.confidence, args.normalization),
        *(args.learning_rate, args.epochs, args.reorder_options),
    )
    fillers = training.rule_fillers(args.fillers, args.images)
    data = {"images": runs.data_digest(fillers)} if args.images else {}
    kind = args.task, args.mode, args.withheld, settings.num_train, args.seed
    fillers, train, test = training.rule_problems(fillers, *kind)

    keras.utils.set_random_seed(args.seed)
    sizes = len(fillers), settings.batch_normalization
    autoencoder = models.filler_autoencoder(args.fillers, *sizes)
    with command.open_run(["task", "mode", "sequential"], data=data) as run:
        share = None
        if args.pretrained:
            share = training.pretrain_autoencoder(autoencoder, fillers, run)
        kind = args.sequential, args.mode, args.confidence, args.normalization
        model = models.task_rule_learner(args.task, autoencoder, *kind)
        figures = training.train_rule_learner(
            *(model, fillers, train, test, args.withheld, settings),
            *(run, args.seed, args.verbose, args.reorder_options),
        )
        figures["learning_rate"] = settings.learning_rate
        figures["reconstructed"] = share
        analysis.draw_rule_learner(model, test, fillers, run.directory)
        command.finish(run, model, figures, LINES, NEXT)
