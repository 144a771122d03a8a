"""Small models, as each function that builds a model builds them."""

import numpy as np

from keras_relational import layers
from keras_relational import models
from keras_relational.models.reasoners import SORTERS
from keras_relational.models.relations_classifier import CENTRAL_MODULES
from keras_relational.models.rule_learner import FILLERS
from keras_relational.models.video_predictor import VIDEO_NETWORKS


def cell():
    return layers.SCOFFCell(4, 2, 2)


def core():
    return layers.SCOFF(
        *(4, 2, 2), num_active=1, return_sequences=True, return_state=True
    )


def fillers():
    return np.random.default_rng(0).integers(256, size=(5, 32, 32))


# By builder: how it builds small models.
VARIANTS = {
    "analogy_scorer": {"": ["temporal_context", 16, None]},
    "boxworld_agent": {
        **{x: [x, (5, 6, 3)] for x in models.NETWORKS},
        "memory": ["relational", (5, 6, 3), 4, 1, 2, "unsigned", cell],
    },
    "filler_autoencoder": {x: [x] for x in FILLERS},
    "over_fillers": {
        "": [lambda: models.rule_learner(models.filler_autoencoder()), fillers]
    },
    "relations_classifier": {x: [x] for x in CENTRAL_MODULES}
    | {"tasks": ["predinet", 2, 3, 2]},
    "roll_out_model": {
        "": [lambda: models.video_predictor(core(), 1, 2, 0.5, False, 16), 2]
    },
    "rule_learner": {
        "": [models.filler_autoencoder],
        "generative": [models.filler_autoencoder, "esbn", "generative"],
        "ntm": [models.filler_autoencoder, "ntm", "generative"],
        "lstm": [models.filler_autoencoder, "lstm"],
        "normalized": [
            models.filler_autoencoder,
            "esbn",
            "multiple_choice",
            4,
            True,
            layers.TemporalContextNormalization,
        ],
        # Of four options and nine steps.
        "corelnet": [
            models.filler_autoencoder,
            "corelnet",
            "multiple_choice",
            4,
            False,
            None,
            9,
        ],
    },
    "set_classifier": {x: [x, 3, 4] for x in models.SET_REASONERS},
    "sorter": {x: [x, 3, 4] for x in SORTERS},
    "video_predictor": {
        x: [core, 1, 1, 0.5, False, 16, x] for x in VIDEO_NETWORKS
    },
    "visual_analogy_scorer": {"": ["source_target", 16]},
}
CASES = [(x, y) for x, variants in VARIANTS.items() for y in variants]
# What `over_fillers` returns is for training alone.
SAVED = [case for case in CASES if case[0] != "over_fillers"]


def arguments(name, variant):
    return [x() if callable(x) else x for x in VARIANTS[name][variant]]


def build(name, variant):
    return getattr(models, name)(*arguments(name, variant))
