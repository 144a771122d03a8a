"""Training and testing on abstract rules, with the settings of their papers.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*; for the other three tasks [Webb et al., 2021](
https://arxiv.org/abs/2012.14601), *Emergent Symbols through Binding in External
Memory*.
"""

from typing import Any
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_relational import models
from keras_relational import runs
from keras_relational.layers._operations import at_least_float32
from keras_relational.models.image_model import to_pixels
from keras_relational.training.supervised import adam
from keras_relational.training.supervised import predictions


class Preset(NamedTuple):
    """Settings of a paper, for batches of 32 problems and Adam."""

    learning_rate: float
    epochs: int
    batch_normalization: bool
    num_train: int


WITHHELD = (0, 50, 85, 95, 97)

# Tables 2 to 7: learning rates, epochs, batch normalization, for each M.
_PRESETS: dict[tuple[str, str, str], dict[str, tuple]] = {
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
# Table 1: the number of problems of an epoch, for each M.
_NUM_TRAIN = (10_000, 10_000, 10_000, 360, 36)

# Webb et al., 2021: the values of M, and for each of them the epochs (Table 6)
# and the size of the training set (Tables 1, 2 and 4).
_OTHER_TASKS = {
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


def preset(
    training: str, fillers: str, mode: str, sequential: str, withheld: int
) -> Preset:
    """The settings of Sinha et al., 2020, Tables 2 to 7.

    They are for batches of 32 and Adam. Table 6 prints those of the NTM for M =
    0 and 50 alone: for larger M those of M = 50 are used. Table 3 prints one
    setting a row, which is used for all M.

    Args:
        training: `"pretrained"` or `"end_to_end"`.
        fillers: `"image"`, or, with `"pretrained"`, `"vector"`.
        mode: `"multiple_choice"` or `"generative"`.
        sequential: `"esbn"`, `"ntm"` or `"lstm"`.
        withheld: M, the number of fillers that are withheld. There are settings
            for 0, 50, 85, 95 and, in mode `"generative"`, 97. Other numbers get
            the settings of the next larger one.

    Returns:
        `Preset` of the learning rate, the number of epochs, `True` if the
        autoencoder has batch normalization, and the number of problems of an
        epoch.

    Raises:
        ValueError: If the paper has no such settings.

    Example:

    >>> preset("end_to_end", "image", "multiple_choice", "esbn", 95)
    Preset(learning_rate=5e-05, epochs=1500, batch_normalization=True, \
num_train=360)
    """
    try:
        rates, epochs, batch_normalization = _PRESETS[training, fillers, mode][
            sequential
        ]
    except KeyError:
        known = "; ".join(" ".join(names) for names in _PRESETS)
        raise ValueError(
            f"There are no settings for {training!r}, {fillers!r}, {mode!r}, "
            f"{sequential!r}. Expected lstm, ntm or esbn, and one of: {known}"
        ) from None
    column = _column(WITHHELD[: len(epochs)], withheld)
    return Preset(
        rates[column],
        epochs[column],
        bool(batch_normalization),
        _NUM_TRAIN[column],
    )


def other_task_preset(
    task: str, sequential: str, withheld: int, normalization: bool
) -> Preset:
    """The settings of Webb et al., 2021, for the tasks beside Sinha et al.'s.

    They are for batches of 32 and Adam, and come from Tables 5 and 6, and for
    the sizes of training sets from Tables 1, 2 and 4.

    Args:
        task: `"same_different"`, `"relational_match_to_sample"` or
            `"identity_rules"`.
        sequential: `"esbn"`, `"ntm"` or `"lstm"`.
        withheld: M, the number of fillers that are withheld. There are settings
            for 0, 50, 85, 95 and, in the same/different task, 98. Other numbers
            get the settings of the next larger one.
        normalization: If `False`, the model has no temporal context
            normalization. An ESBN then learns at a tenth of the rate.

    Returns:
        `Preset` of the learning rate, the number of epochs, `False` (there is
        no batch normalization), and the number of problems of an epoch.

    Raises:
        ValueError: If the paper has no such settings.

    Example:

    >>> other_task_preset("same_different", "esbn", 98, True).epochs
    100
    """
    if task not in _OTHER_TASKS:
        raise ValueError(
            f"There are no settings for {task!r}. Expected one of: "
            f"{', '.join(_OTHER_TASKS)}"
        )
    numbers, epochs, sizes = _OTHER_TASKS[task]
    column = _column(numbers, withheld)
    slow = sequential == "esbn" and not normalization
    rate = 5e-5 if slow else 5e-4
    return Preset(rate, epochs[column], False, sizes[column])


def _column(numbers, withheld):
    """The column of a table for a number of withheld fillers."""
    column = np.searchsorted(numbers, withheld)
    if not 0 <= column < len(numbers):
        raise ValueError(
            f"There are settings for up to {numbers[-1]} withheld fillers. "
            f"Received: withheld={withheld}"
        )
    return column


def cross_entropy(
    target: keras.KerasTensor, probabilities: keras.KerasTensor
) -> keras.KerasTensor:
    """Cross entropy of probabilities, such as the outputs of a softmax.

        −Σ_i target_i log probabilities_i

    On JAX, Keras' own function replaces probabilities below 1e-7 by 1e-7. A
    decoder that is frozen and confident then passes no gradient.

    Args:
        target: Tensor `(..., n)`.
        probabilities: Tensor `(..., n)` that sums to 1 over the last axis.

    Returns:
        Tensor `(...,)`.
    """
    target = at_least_float32(target)
    probabilities = ops.maximum(at_least_float32(probabilities), 1e-30)
    return -ops.sum(target * ops.log(probabilities), axis=-1)


def nearest_filler(predicted: np.ndarray, fillers: np.ndarray) -> np.ndarray:
    """The filler that each prediction is nearest to, by mean squared error.

    Reference: section 3.3.2 of Sinha et al., 2020.

    Args:
        predicted: Array `(batch, ...)`.
        fillers: Array `(num_fillers, ...)`, in the same units.

    Returns:
        Integer array `(batch,)`, numbers of fillers.

    Example:

    >>> nearest_filler(np.array([[0.9, 0.2]]), np.eye(2))
    array([0])
    """
    predicted, fillers = (
        np.reshape(x, (len(x), -1)).astype("float32")
        for x in (predicted, fillers)
    )
    # |p − f|² without |p|², which is the same for all fillers.
    distances = (fillers**2).sum(1) - 2 * predicted @ fillers.T
    return distances.argmin(axis=1)


def rule_accuracy(
    model: keras.Model,
    problems: Any,
    fillers: np.ndarray | None = None,
    batch_size: int = 250,
) -> float:
    """The share of problems whose answer is right.

    Args:
        model: A `keras.Model` as `models.over_fillers` builds, from numbers of
            fillers to scores of the options, or to a predicted filler.
        problems: `distribution_of_three.Problems`.
        fillers: All fillers, as the model puts them out. Needed if the model
            predicts a filler, and refused if it scores options.
        batch_size: Number of problems computed at once.

    Returns:
        Number between 0 and 1.

    Raises:
        ValueError: If the model predicts a filler and `fillers` is `None`, or
            it scores options and `fillers` is given.
    """
    outputs = predictions(model, problems.fillers, batch_size)
    predicts = "logits" not in models.roles(model).outputs.values()
    if fillers is None and predicts:
        raise ValueError(
            "A model that predicts fillers needs `fillers` to compare them "
            f"with. Received: fillers=None, output shape {outputs.shape}"
        )
    if fillers is not None and not predicts:
        raise ValueError(
            "A model that scores options is not compared with `fillers`: leave "
            f"them out. Received: output shape {outputs.shape}"
        )
    if fillers is None:
        answers = outputs.argmax(axis=1)
    else:
        answers = nearest_filler(outputs, fillers)
    return float(np.mean(answers == problems.labels))


def train_autoencoder(
    autoencoder: keras.Model,
    fillers: np.ndarray,
    epochs: int = 500,
    run: runs.Run | None = None,
    verbose: int | str = 0,
) -> float:
    """Trains an autoencoder on all fillers, for models that are pre-trained.

    It uses Adam and batches of 10; on images the mean squared error and a
    learning rate of 5e-4, on vectors the cross entropy and 0.01 (sections 4.5
    and A.3 of Sinha et al., 2020). From some initial weights the sigmoid of an
    image is driven to 0 at all pixels, where it has no gradient, and stays
    there: look at the share that is returned.

    Args:
        autoencoder: A `keras.Model` as `models.filler_autoencoder` builds. It
            is trained in place.
        fillers: All fillers, as the autoencoder takes them.
        epochs: Positive integer.
        run: `runs.Run` to save the autoencoder in, as `autoencoder.keras`. If
            it is there already, its weights are loaded, and nothing is trained.
        verbose: As in `keras.Model.fit`.

    Returns:
        The share of fillers that are reconstructed, as `reconstructed_share`
        takes it.
    """
    name = "autoencoder.keras"
    if run is not None and (run.directory / name).exists():
        # Weights alone: a model that is loaded whole would draw initial
        # weights, and those of layers made later would differ.
        autoencoder.load_weights(run.directory / name)
        return reconstructed_share(autoencoder, fillers)
    vectors = fillers.ndim == 2
    autoencoder.compile(
        adam(0.01 if vectors else 5e-4),
        cross_entropy if vectors else "mse",
        jit_compile=keras.backend.backend() == "jax",
    )
    autoencoder.fit(
        fillers,
        as_put_out(fillers),
        batch_size=10,
        epochs=epochs,
        verbose=verbose,
    )
    if run is not None:
        run.save_model(autoencoder, name)
    return reconstructed_share(autoencoder, fillers)


def reconstructed_share(autoencoder: keras.Model, fillers: np.ndarray) -> float:
    """The share of fillers that are the nearest one to their reconstruction.

    Args:
        autoencoder: A `keras.Model` as `models.filler_autoencoder` builds.
        fillers: All fillers, as the autoencoder takes them.

    Returns:
        Number between 0 and 1.
    """
    nearest = nearest_filler(
        predictions(autoencoder, fillers), as_put_out(fillers)
    )
    return float(np.mean(nearest == np.arange(len(fillers))))


def as_put_out(fillers: np.ndarray) -> np.ndarray:
    """Fillers as models put them out: in float32, pixels between 0 and 1.

    Args:
        fillers: uint8 images `(n, height, width)`, or vectors `(n, size)`.

    Returns:
        Array of the same shape.
    """
    if fillers.ndim > 2:
        fillers = to_pixels(fillers) / 255
    return fillers.astype("float32")
