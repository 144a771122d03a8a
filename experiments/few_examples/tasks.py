"""The tasks of few examples: data, and a small model of each mechanism.

Altabaa et al., 2024, *Abstractors and relational cross-attention*, section 4:
pairwise order and sorting. Altabaa and Lafferty, 2023, *Learning hierarchical
relational representations through relational convolutions*: the Relations Game
and SET. Webb et al., 2021, *Emergent Symbols through Binding in External
Memory*: rules over fillers never seen before.
"""

import keras
import numpy as np

from keras_relational import models
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import ordered_objects
from keras_relational.datasets import relations_game
from keras_relational.datasets import set_game
from keras_relational.models.reasoners import SORTERS
from keras_relational.models.reasoners import shift_right
from keras_relational.random_streams import stream

# By task, the mechanisms that can do it.
TASKS = {
    "pairwise_order": models.SET_REASONERS,
    "sorting": SORTERS,
    "set_game": models.SET_REASONERS,
    "same": models.SET_REASONERS,
    "occurs": models.SET_REASONERS,
    "xoccurs": models.SET_REASONERS,
    "between": models.SET_REASONERS,
    "match_rows": models.SET_REASONERS,
    **dict.fromkeys(distribution_of_three.TASKS, models.SET_REASONERS),
}
NUM_EXAMPLES = {"train": 5_000, "validation": 1_000, "test": 2_000}


def model_and_data(task, reasoner, num_train=2_000, seed=0):
    """A model, and training, validation and test data, each `(x, labels)`.

    Sorting and SET have `num_train` training examples. The number of the other
    tasks is fixed.
    """
    keras.utils.set_random_seed(seed)
    if task == "sorting":
        parts = ordered_objects.load_sequences(num_train, seed=seed)
        data = tuple(((x, shift_right(y)), y) for x, y in parts)
        return models.sorter(reasoner, num_entities=10, num_features=12), data
    if task == "pairwise_order":
        data = ordered_objects.load_pairs(seed=seed)
    elif task == "set_game":
        data = set_game.load_data(num_train, seed=seed)
    elif task in distribution_of_three.TASKS:
        data = _rules(task, seed)
    else:
        data = tuple(_tiles(task, part, seed) for part in NUM_EXAMPLES)
    x, y = data[0]
    model = models.set_classifier(
        reasoner,
        num_entities=x.shape[1],
        num_features=x.shape[2],
        num_classes=int(y.max()) + 1,
    )
    return model, data


def _rules(task, seed):
    """Problems of a rule as sequences of random vectors, options included."""
    number = NUM_EXAMPLES["train"]
    known, test = distribution_of_three.load_data(
        withheld=50,
        task=task,
        mode="multiple_choice",
        num_train=number + NUM_EXAMPLES["validation"],
        num_test=NUM_EXAMPLES["test"],
        seed=seed,
    )
    rng = np.random.default_rng(stream(seed, "objects_beside_batches"))
    shape = distribution_of_three.NUM_FILLERS, 32
    vectors = rng.normal(size=shape).astype("float32")

    def part(problems, chosen):
        labels = problems.labels[chosen].astype("int32")
        return vectors[problems.fillers[chosen]], labels

    train, validation = slice(number), slice(number, None)
    return part(known, train), part(known, validation), part(test, slice(None))


def _tiles(task, part, seed):
    """Images as sets of their nine tiles `(number, 9, 432)`, and labels."""
    images, labels, _ = relations_game.generate(
        task,
        NUM_EXAMPLES[part],
        "hexominoes" if part == "test" else "pentominoes",
        stream(seed, f"{part}_beside_batches"),
    )
    return relations_game.tiles(images), labels
