"""Trains an ESBN, NTM, LSTM or CoRelNet on rules, tests on other fillers.

Sinha et al., 2020, A Memory-Augmented Neural Network Model of Abstract Rule
Learning, Tables 2 to 13. The paper has with the defaults: ESBN 99 percent, NTM
28, LSTM 28, and chance is 25. The other tasks and their settings are from Webb
et al., 2021, whose ESBN has --confidence and --normalization: same/different
with --withheld 98 100, relational match to sample 95, identity rules 99
percent. A CoRelNet (Kerg et al., 2022) has --normalization.
"""

import math

import keras
import numpy as np
from keras import ops

from experiments import command_line
from experiments.esbn import pictures
from experiments.esbn.evaluation import decoder_targets
from experiments.esbn.evaluation import nearest_filler
from experiments.esbn.evaluation import rule_accuracy
from experiments.esbn.settings import settings_of
from experiments.generated_batches import shuffled
from keras_relational import layers
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import distribution_of_three
from keras_relational.models.rule_learner import FILLERS
from keras_relational.models.rule_learner import SEQUENTIAL

LINES = ["accuracy in training: {train:.1%}, with other fillers: {test:.1%}"]
NEXT = "python -m experiments.esbn --sequential lstm"
TASKS, MODES = distribution_of_three.TASKS, distribution_of_three.MODES
SYMBOLS = {
    "vector": distribution_of_three.one_hot,
    "image": distribution_of_three.glyphs,
}
NUM_POINTS = 20  # Of the learning curves.
NUM_TESTED = 2_000  # For a point of the curves.


def main(command):
    add = command.option
    add("--task", TASKS, "distribution_of_three", "the task")
    add("--sequential", SEQUENTIAL, "esbn", "the network")
    add("--mode", MODES, "multiple_choice", "choose or generate a filler")
    add("--fillers", FILLERS, "image", "vector needs --pretrained")
    add("--images", command_line.existing_folder, None, "PNG files to read")
    add("--pretrained", bool, False, "train the autoencoder first, freeze it")
    add("--withheld", int, 95, "number of fillers for the test, M", low=0)
    add("--confidence", bool, False, "of what the ESBN retrieves")
    add("--normalization", bool, False, "of the embeddings, over time")
    add("--reorder-options", bool, False, "each time a problem is shown")
    add("--learning-rate", float, None, "of Adam (default: the paper's)")
    add("--epochs", int, None, "passes over the data (default: the paper's)")
    args = command.parse_run(export="a SavedModel")

    settings = settings_of(args)
    data = {}
    if args.images:
        fillers = distribution_of_three.load_images(args.images)
        data["images"] = runs.data_digest(fillers)
    else:
        fillers = SYMBOLS[args.fillers]()
    fillers, train, test = distribution_of_three.split_fillers(
        fillers,
        withheld=args.withheld,
        task=args.task,
        mode=args.mode,
        num_train=settings.num_train,
        seed=args.seed,
    )

    keras.utils.set_random_seed(args.seed)
    autoencoder = models.filler_autoencoder(
        args.fillers,
        num_fillers=len(fillers),
        batch_normalization=settings.batch_normalization,
    )
    with command.open_run(
        always=["task", "mode", "sequential"], data=data
    ) as run:
        share = None
        if args.pretrained:
            share = pretrain_autoencoder(autoencoder, fillers, run)
        model = task_rule_learner(
            args.task,
            autoencoder,
            sequential=args.sequential,
            mode=args.mode,
            confidence=args.confidence,
            normalization=args.normalization,
        )
        result = train_rule_learner(
            model,
            fillers,
            train,
            test,
            withheld=args.withheld,
            settings=settings,
            run=run,
            seed=args.seed,
            verbose=args.verbose,
            reorder_options=args.reorder_options,
        )
        result["learning_rate"] = settings.learning_rate
        result["reconstructed"] = share
        pictures.draw(model, test, fillers, run.directory)
        command.finish(run, model, result, LINES, NEXT)


def task_rule_learner(
    task,
    autoencoder,
    sequential="esbn",
    mode="multiple_choice",
    confidence=False,
    normalization=False,
):
    """The `models.rule_learner` of a task.

    The context of the normalization is the whole sequence, in relational match
    to sample each pair, as in Webb et al., 2021.
    """
    has_pairs = task == "relational_match_to_sample"
    num_steps = None
    if sequential == "corelnet":
        steps = {"same_different": 2, "relational_match_to_sample": 6}
        num_steps = steps.get(task, 9)
    return models.rule_learner(
        autoencoder,
        sequential=sequential,
        mode=mode,
        num_options=2 if has_pairs or task == "same_different" else 4,
        confidence=confidence,
        normalization=layers.TemporalContextNormalization(
            segment_lengths=(2, 2, 2) if has_pairs else None,
            name="normalization",
        )
        if normalization
        else None,
        num_steps=num_steps,
    )


def pretrain_autoencoder(autoencoder, fillers, run=None):
    """Trains an autoencoder, freezes it, and returns `reconstructed_share`."""
    share = train_autoencoder(autoencoder, fillers, run=run)
    if share < 0.5:
        raise ValueError(
            "The autoencoder must reconstruct at least half of the fillers. It "
            f"reconstructs {share:.0%}: its sigmoid may be stuck at 0. Start "
            "again with another seed."
        )
    autoencoder.trainable = False
    return share


def train_autoencoder(autoencoder, fillers, epochs=500, run=None):
    """Trains an autoencoder on all fillers, or loads it from the run.

    Sections 4.5 and A.3 of Sinha et al., 2020. From some initial weights the
    sigmoid is driven to 0, where it has no gradient: look at the share.
    """
    name = "autoencoder.keras"
    if run is not None and (run.directory / name).exists():
        # Weights alone: a model that is loaded whole would draw initial
        # weights, and those of layers made later would differ.
        autoencoder.load_weights(run.directory / name)
        return reconstructed_share(autoencoder, fillers)
    vectors = fillers.ndim == 2
    autoencoder.compile(
        training.supervised.adam(0.01 if vectors else 5e-4),
        cross_entropy if vectors else "mse",
        jit_compile=keras.backend.backend() == "jax",
    )
    autoencoder.fit(
        fillers,
        decoder_targets(fillers),
        batch_size=10,
        epochs=epochs,
        verbose=0,
    )
    if run is not None:
        run.save_model(autoencoder, name)
    return reconstructed_share(autoencoder, fillers)


def reconstructed_share(autoencoder, fillers):
    """The share of fillers that are the nearest one to their reconstruction."""
    nearest = nearest_filler(
        training.predictions(autoencoder, fillers), decoder_targets(fillers)
    )
    return float(np.mean(nearest == np.arange(len(fillers))))


def train_rule_learner(
    model,
    fillers,
    train,
    test,
    withheld,
    settings,
    run=None,
    seed=0,
    verbose="auto",
    reorder_options=False,
):
    """Trains a model of `models.rule_learner`, and returns its accuracies.

    All batches are of 32, and the training is rounded up to 20 equal parts.
    Batch normalization does not see the withheld fillers, the last ones.
    """
    trained = models.over_fillers(model, fillers[: len(fillers) - withheld])
    tested = models.over_fillers(model, fillers)
    candidates, shown = None, train
    if reorder_options:
        shown = distribution_of_three.option_orders(train)
    targets = shown.labels
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if "decoder" in models.roles(model).parts:  # It generates fillers.
        candidates = decoder_targets(fillers)
        targets = candidates[train.labels]
        loss = cross_entropy if fillers.ndim == 2 else "mse"
    training.compile_model(trained, settings.learning_rate, loss)
    epoch = math.ceil(min(len(train.labels), settings.num_train) / 32)
    batches_per_point = math.ceil(epoch * settings.epochs / NUM_POINTS)
    some = type(test)(*(x[:NUM_TESTED] for x in test))
    training.fit(
        trained,
        shuffled(shown.fillers, targets, batch_size=32, seed=seed),
        num_batches=NUM_POINTS * batches_per_point,
        batches_per_epoch=batches_per_point,
        measure=lambda: {"test": rule_accuracy(tested, some, candidates)},
        run=run,
        verbose=verbose,
    )
    return {
        "train": rule_accuracy(tested, train, candidates),
        "test": rule_accuracy(tested, test, candidates),
    }


def cross_entropy(target, probabilities):
    """−Σ_i target_i log probabilities_i, over the last axis.

    On JAX, Keras' own function replaces probabilities below 1e-7, so that a
    confident decoder that is frozen passes no gradient.
    """
    target = ops.cast(target, "float32")
    probabilities = ops.maximum(ops.cast(probabilities, "float32"), 1e-30)
    return -ops.sum(target * ops.log(probabilities), axis=-1)


def preset_metrics(model, arguments):
    """Accuracy on problems of fillers that training never shows."""
    fillers, _, test = distribution_of_three.split_fillers(
        SYMBOLS[arguments["fillers"]](),
        withheld=arguments["withheld"],
        task=arguments["task"],
        mode=arguments["mode"],
        seed=arguments["seed"],
    )
    tested, candidates = models.over_fillers(model, fillers), None
    if arguments["mode"] == "generative":
        candidates = decoder_targets(fillers)
    return {"test": rule_accuracy(tested, test, candidates)}


def preset_headline(arguments, metrics):
    return f"solves {metrics['test']:.1%} of problems with symbols it never saw"
