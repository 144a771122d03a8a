"""Does each dynamics get a schema of its own?"""

import numpy as np

from keras_relational.analysis.schemata import ObjectFiles
from keras_relational.analysis.schemata import contingency
from keras_relational.analysis.schemata import mutual_information

BURN_IN = 5  # Steps until the schemata have settled.


def label_tables(
    found: ObjectFiles, labels: np.ndarray, burn_in: int = BURN_IN
) -> list[np.ndarray]:
    """How often each schema meets each label, for each object file.

    Goyal et al., 2020, Figs. 3 and 15: it takes some five frames until the
    schemata of a ball settle.

    Args:
        found: `ObjectFiles` of `n` sequences of `time` steps.
        labels: Integers `(n, time)`, the true dynamics at each step, or `(n,)`,
            the dynamics of each sequence. Labels of later steps are left out.
        burn_in: Number of steps that are left out at the beginning.

    Returns:
        List with an integer array `(number of labels, num_schemata)` for each
        object file, as `contingency` returns it.

    Raises:
        ValueError: If no step would be left, or the labels are of other
            sequences.
    """
    schemata = found.schemata.argmax(-1)
    if burn_in >= schemata.shape[1]:
        raise ValueError(
            f"The schemata of {schemata.shape[1]} steps cannot be counted "
            f"after the first {burn_in}. Take longer sequences, or a smaller "
            "`burn_in`."
        )
    labels = np.asarray(labels)
    if labels.ndim == 1:
        labels = np.repeat(labels[:, None], schemata.shape[1], axis=1)
    return [
        contingency(
            schemata[:, burn_in:, number],
            labels[:, burn_in : schemata.shape[1]],
            found.schemata.shape[-1],
        )
        for number in range(schemata.shape[2])
    ]


def label_information(
    found: ObjectFiles, labels: np.ndarray, burn_in: int = BURN_IN
) -> dict[str, list]:
    """What the schemata of each object file tell of the labels.

    Args:
        found: `ObjectFiles` of `n` sequences of `time` steps.
        labels: Integers `(n, time)` or `(n,)`, as for `label_tables`.
        burn_in: Number of steps that are left out at the beginning.

    Returns:
        Dictionary of `contingency`, the `label_tables` as lists, and
        `information`, for each of them a number between 0 (nothing) and 1 (the
        schema tells the label), as `mutual_information` returns it.

    Raises:
        ValueError: As for `label_tables`.
    """
    tables = label_tables(found, labels, burn_in)
    return {
        "contingency": [table.tolist() for table in tables],
        "information": [mutual_information(table) for table in tables],
    }
