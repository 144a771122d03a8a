"""Training and testing on abstract rules, with the settings of their papers.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*; for the other three tasks [Webb et al., 2021](
https://arxiv.org/abs/2012.14601), *Emergent Symbols through Binding in External
Memory*.
"""

import collections

import keras
import numpy as np
from keras import ops

from keras_relational import runs
from keras_relational.layers.shared import at_least_float32
from keras_relational.training.supervised import adam

Preset = collections.namedtuple(
    "Preset", ("learning_rate", "epochs", "batch_normalization", "num_train")
)

WITHHELD = (0, 50, 85, 95, 97)

# Tables 2 to 7: learning rates, epochs, batch normalization, for each M.
_PRESETS = {
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
# Table 1: the size of a training set, an epoch.
_NUM_TRAIN = (10_000, 10_000, 10_000, 360, 36)

# Of Webb et al.: M, and for each Table 6, epochs, and Tables 1, 2 and 4, sizes
# of training sets.
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


def preset(training, fillers, mode, sequential, withheld):
    """The settings of Tables 2 to 7, for batches of 32 and Adam.

    Of the NTM in Table 6 only those of M = 0 and 50 are printed; the rest are
    taken to be those of M = 50. Table 3 prints one setting a row, which is
    taken for all M.

    Args:
        training: `"pretrained"` or `"end_to_end"`.
        fillers: `"image"` or `"vector"`, pre-trained.
        mode: `"multiple_choice"` or `"generative"`.
        sequential: `"esbn"`, `"ntm"` or `"lstm"`.
        withheld: M: 0, 50, 85, 95, or, generative, 97; for another number the
            settings are those of the next one.

    Returns:
        `Preset` of the learning rate, the number of epochs, whether there is
        batch normalization in the autoencoder, and how many problems make an
        epoch.

    Raises:
        ValueError: If there are none.

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


def other_task_preset(task, sequential, withheld, normalization):
    """The settings of Webb et al., 2021, for batches of 32 and Adam.

    Their Tables 5 and 6, and 1, 2 and 4 for the sizes of training sets.

    Args:
        task: `"same_different"`, `"relational_match_to_sample"` or
            `"identity_rules"`.
        sequential: As for `preset`.
        withheld: M: 0, 50, 85, 95, or, same/different, 98; for another number
            the settings are those of the next one.
        normalization: Whether there is temporal context normalization: an ESBN
            without it learns at a tenth of the rate.

    Returns:
        `Preset`, as `preset` returns.

    Raises:
        ValueError: If there are none.

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
    """Of a table, for so many fillers withheld or the next number it has."""
    column = np.searchsorted(numbers, withheld)
    if not 0 <= column < len(numbers):
        raise ValueError(
            f"There are settings for up to {numbers[-1]} withheld fillers. "
            f"Received: withheld={withheld}"
        )
    return column


def cross_entropy(target, shares):
    """Cross entropy of shares that sum to 1, such as a softmax's.

        −Σ_i target_i log shares_i

    Keras' own takes shares below 1e-7 for 1e-7 on JAX, and with a decoder that
    is sure of itself and frozen, no gradient is left.

    Args:
        target: Tensor `(..., n)`.
        shares: Tensor `(..., n)`.

    Returns:
        Tensor `(...,)`.
    """
    target, shares = at_least_float32(target), at_least_float32(shares)
    return -ops.sum(target * ops.log(ops.maximum(shares, 1e-30)), axis=-1)


def nearest_filler(predicted, fillers):
    """Which filler each prediction is nearest to, by mean squared error.

    Section 3.3.2 of Sinha et al., 2020.

    Args:
        predicted: Array `(batch, ...)`.
        fillers: Array `(num_fillers, ...)`, in the same units.

    Returns:
        Integer array `(batch,)`.

    Example:

    >>> nearest_filler(np.array([[0.9, 0.2]]), np.eye(2))
    array([0])
    """
    predicted, fillers = (
        np.reshape(x, (len(x), -1)).astype("float32")
        for x in (predicted, fillers)
    )
    # |p − f|² without |p|², which all have in common.
    distances = (fillers**2).sum(1) - 2 * predicted @ fillers.T
    return distances.argmin(axis=1)


def rule_accuracy(model, problems, fillers=None, batch_size=250):
    """The share of problems whose answer is right.

    Args:
        model: A `keras.Model` of `models.over_fillers`, from numbers of fillers
            to scores, or to a filler.
        problems: `distribution_of_three.Problems`.
        fillers: For predictions alone: all fillers, as the model puts them out.
        batch_size: Number of problems computed at once.

    Returns:
        Number between 0 and 1.

    Raises:
        ValueError: If fillers are predicted and `fillers` is None, or options
            are scored and it is not.
    """
    outputs = model.predict(problems.fillers, batch_size=batch_size, verbose=0)
    predicts = any(layer.name == "decoder" for layer in model.layers)
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
    if predicts:
        answers = nearest_filler(outputs, fillers)
    else:
        answers = outputs.argmax(axis=1)
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
        autoencoder: As `models.filler_autoencoder` builds. It is trained in
            place.
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


def reconstructed_share(autoencoder, fillers):
    """The share of fillers whose reconstruction is nearest to them.

    Args:
        autoencoder: As `models.filler_autoencoder` builds.
        fillers: All fillers, as it takes them.

    Returns:
        Number between 0 and 1.
    """
    nearest = nearest_filler(
        autoencoder.predict(fillers, verbose=0), as_put_out(fillers)
    )
    return float(np.mean(nearest == np.arange(len(fillers))))


def as_put_out(fillers):
    """Fillers as models put them out: float32, pixels between 0 and 1.

    Args:
        fillers: uint8 images `(n, height, width)`, or vectors `(n, size)`.

    Returns:
        Array of the same shape.
    """
    return (fillers if fillers.ndim == 2 else fillers / 255).astype("float32")
