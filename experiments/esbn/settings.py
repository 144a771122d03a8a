"""The papers' settings, for batches of 32 problems and Adam.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*; for the other three tasks [Webb et al., 2021](
https://arxiv.org/abs/2012.14601), *Emergent Symbols through Binding in External
Memory*; for a CoRelNet [Kerg et al., 2022](https://arxiv.org/abs/2206.05056).
"""

import math
from typing import NamedTuple

import numpy as np


class Settings(NamedTuple):
    """How a rule learner is trained."""

    learning_rate: float
    epochs: int
    batch_normalization: bool
    num_train: int  # Problems of an epoch.


WITHHELD = (0, 50, 85, 95, 97)  # M, the columns of the tables.

# Sinha et al., 2020, Tables 2 to 7: learning rates, epochs, and whether the
# autoencoder has batch normalization. Table 6 prints the settings of the NTM
# for M = 0 and 50 alone: for larger M those of M = 50 are used. Table 3 prints
# one setting a row, which is used for all M.
TABLES = {
    ("pretrained", "vector", "generative"): {
        "lstm": ((5e-5, 5e-5, 5e-5, 5e-4, 5e-4), (80, 80, 80, 1500, 2000), 0),
        "ntm": ((5e-5,) * 5, (80, 80, 80, 1500, 2000), 0),
        "esbn": ((5e-5,) * 5, (80, 80, 80, 1500, 2000), 0),
    },
    ("pretrained", "vector", "multiple_choice"): {
        name: ((5e-4,) * 4, (50,) * 4, 0) for name in ("lstm", "ntm", "esbn")
    },
    ("pretrained", "image", "generative"): {
        "lstm": ((5e-5,) * 5, (200, 200, 200, 1500, 2500), 0),
        "ntm": ((5e-5,) * 5, (150, 150, 150, 1500, 2500), 0),
        "esbn": ((5e-5,) * 5, (50, 50, 50, 1500, 2500), 0),
    },
    ("pretrained", "image", "multiple_choice"): {
        "lstm": ((5e-4,) * 4, (200, 200, 200, 1500), 1),
        "ntm": ((5e-4,) * 4, (150, 150, 150, 1500), 1),
        "esbn": ((5e-5,) * 4, (50, 50, 50, 1500), 0),
    },
    ("end_to_end", "image", "generative"): {
        "lstm": ((5e-4,) * 5, (100, 150, 100, 100, 150), 0),
        "ntm": ((5e-4,) * 5, (100, 150, 150, 150, 150), 0),
        "esbn": ((5e-5,) * 5, (250, 250, 250, 1500, 2500), 1),
    },
    ("end_to_end", "image", "multiple_choice"): {
        "lstm": ((5e-4,) * 4, (150, 100, 100, 100), 0),
        "ntm": ((5e-4,) * 4, (150, 150, 100, 100), 0),
        "esbn": ((5e-5,) * 4, (150, 150, 150, 1500), 1),
    },
}
NUM_TRAIN = (10_000, 10_000, 10_000, 360, 36)  # Table 1.

# Webb et al., 2021: the values of M, and for each of them the epochs (Table 6)
# and the size of the training set (Tables 1, 2 and 4).
OTHER_TASKS = {
    "same_different": (
        (0, 50, 85, 95, 98),
        (50, 50, 50, 100, 100),
        (18_810, 4_900, 420, 40, 4),
    ),
    "relational_match_to_sample": (
        (0, 50, 85, 95),
        (50, 50, 50, 200),
        (10_000, 10_000, 10_000, 480),
    ),
    "identity_rules": (
        (0, 50, 85, 95),
        (50, 50, 50, 50),
        (10_000, 10_000, 10_000, 8_640),
    ),
}


def settings_of(args):
    """The settings for the options of the command.

    A CoRelNet has those of Kerg et al., 2022: a learning rate of 5e-4 and 5,000
    batches, here whole epochs of the task's training set.
    """
    _check(args)
    is_corelnet = args.sequential == "corelnet"
    # For a CoRelNet, the data are those of the other networks.
    network = "lstm" if is_corelnet else args.sequential
    if args.task == "distribution_of_three":
        training = "pretrained" if args.pretrained else "end_to_end"
        kind = training, args.fillers, args.mode
        settings = sinha(kind, network, args.withheld)
    else:
        settings = webb(args.task, network, args.withheld, args.normalization)
    if is_corelnet:
        batches_per_epoch = math.ceil(settings.num_train / 32)
        settings = settings._replace(
            learning_rate=5e-4,
            epochs=math.ceil(5_000 / batches_per_epoch),
            batch_normalization=False,
        )
    return settings._replace(
        learning_rate=args.learning_rate or settings.learning_rate,
        epochs=args.epochs or settings.epochs,
    )


def sinha(kind, network, withheld):
    """The settings of Sinha et al., 2020; `kind` is one of `TABLES`."""
    rates, epochs, batch_normalization = TABLES[kind][network]
    column = _column(WITHHELD[: len(epochs)], withheld)
    return Settings(
        learning_rate=rates[column],
        epochs=epochs[column],
        batch_normalization=bool(batch_normalization),
        num_train=NUM_TRAIN[column],
    )


def webb(task, network, withheld, normalization):
    """The settings of Webb et al., 2021, Tables 5 and 6."""
    numbers, epochs, sizes = OTHER_TASKS[task]
    column = _column(numbers, withheld)
    slow = network == "esbn" and not normalization
    return Settings(
        learning_rate=5e-5 if slow else 5e-4,
        epochs=epochs[column],
        batch_normalization=False,
        num_train=sizes[column],
    )


def _column(numbers, withheld):
    """The column of a table: that of the number, or of the next larger one."""
    column = np.searchsorted(numbers, withheld)
    if column == len(numbers):
        raise ValueError(
            f"There are settings for up to {numbers[-1]} withheld fillers. "
            f"Received: --withheld {withheld}"
        )
    return column


def _check(args):
    """Refuses options that do not go together."""
    pairs = args.task in ("same_different", "relational_match_to_sample")
    generative = args.mode == "generative"
    is_esbn = args.sequential == "esbn"
    for refused, message in (
        (
            pairs and is_esbn and not args.confidence,
            f"{args.task} needs --confidence: without it an ESBN cannot tell "
            "whether two fillers are the same",
        ),
        (
            args.confidence and not is_esbn,
            f"--confidence is for the ESBN, not for {args.sequential}",
        ),
        (
            args.normalization and generative,
            "--normalization is for multiple choice: the decoder takes "
            "embeddings of the encoder",
        ),
        (
            args.fillers == "vector" and not args.pretrained,
            "--fillers vector needs --pretrained: end to end, no weight of a "
            "withheld filler would be trained",
        ),
        (
            args.fillers == "vector" and args.images,
            "--images is for --fillers image",
        ),
        (
            args.reorder_options and (generative or pairs),
            "--reorder-options is for multiple choice among four options",
        ),
        (
            args.sequential == "corelnet" and generative,
            "a CoRelNet scores options: it is for multiple choice",
        ),
    ):
        if refused:
            raise ValueError(message)
