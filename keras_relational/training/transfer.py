"""The four-stage protocol, which tests if a central module can be reused.

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*,
section 4 and Fig. 3. `transfer_figures` sums up a run whose stages may come one
after the other.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_relational import models
from keras_relational import runs
from keras_relational.models.image_model import as_image_model
from keras_relational.training.supervised import predictions
from keras_relational.training.supervised import train_classifier

STAGES = {
    1: "target from scratch",
    2: "pre-training on the curriculum",
    3: "target, encoder and central module frozen",
    4: "target, encoder frozen",
}


# `((images, task_ids), labels)`.
Examples = tuple[tuple[np.ndarray, np.ndarray], np.ndarray]


def four_stage_transfer(
    build: Callable[[], keras.Model],
    curriculum: Examples,
    target: Examples,
    curriculum_tests: Mapping[str, Examples],
    target_tests: Mapping[str, Examples],
    stages: Iterable[int] = (1, 2, 3, 4),
    num_batches: int = 100_000,
    run: runs.Run | None = None,
    seed: int = 0,
    **training_arguments: Any,
) -> tuple[dict[int, keras.Model], dict[int, dict[str, np.ndarray]]]:
    """Trains one architecture through the stages and takes learning curves.

    1. The target task is learned from scratch.
    2. A second network is trained on the curriculum.
    3. Its encoder and central module are frozen, a fresh output MLP learns the
       target task.
    4. Its encoder alone is frozen; a fresh central module and output MLP learn
       the target task.

    The outputs of frozen layers never change, so stages 3 and 4 compute them
    once for each image and train the layers behind them on these.

    Args:
        build: Function without arguments that returns a model with new initial
            weights. Its inputs are images and task ids, and it has the layers
            of `models.relations_classifier`: `"coordinates"`, the last of the
            encoder, and `"central"`.
        curriculum: Pair `((images, task_ids), labels)` to pre-train on.
        target: Such a pair for the target tasks.
        curriculum_tests: Dictionary of names and such pairs: held-out sets to
            measure stage 2 on.
        target_tests: Dictionary of names and such pairs: held-out sets to
            measure the other stages on.
        stages: Numbers of the stages that are returned. Stages 3 and 4 need
            stage 2, which is then trained in any case.
        num_batches: Number of training steps of each stage.
        run: `runs.Run` to keep curves and checkpoints in, a part of it for each
            stage: `stage_1` to `stage_4`. By default nothing is written.
        seed: Non-negative integer that fixes initial weights and the order of
            the examples.
        **training_arguments: Further arguments of `train_classifier`;
            `optimizer` must be left out or be a string.

    Returns:
        Pair `(trained, curves)` of dictionaries from the number of a stage: to
        its whole network, with the frozen layers, and to its learning curves,
        as `train_classifier` returns them.

    Raises:
        ValueError: If a stage is not one of the four, or if stages 3 or 4 in
            the run were begun on a stage 2 of another length.
    """
    stages = tuple(stages)
    unknown = set(stages) - set(STAGES)
    if unknown:
        raise ValueError(
            f"Stages are numbered 1 to 4. Received: stages={stages}"
        )
    if run is not None:
        _check_pretrained(run.directory, num_batches)
    trained, curves = {}, {}

    def fresh_model(stage):
        # Different for each pair of a seed and a stage.
        keras.utils.set_random_seed(seed * len(STAGES) + stage)
        return build()

    def train(stage, model, data, tests):
        curves[stage] = train_classifier(
            model,
            *data,
            validation=tests,
            num_batches=num_batches,
            run=run,
            part=f"stage_{stage}",
            seed=seed,
            **training_arguments,
        )

    if 1 in stages:
        trained[1] = fresh_model(1)
        train(1, trained[1], target, target_tests)
    if set(stages) - {1}:
        trained[2] = fresh_model(2)
        train(2, trained[2], curriculum, curriculum_tests)
    for stage, last_frozen in ((3, "central"), (4, "coordinates")):
        if stage in stages:
            model = fresh_model(stage)
            frozen = _up_to(model, last_frozen)
            reused = _up_to(trained[2], last_frozen)
            frozen.set_weights(reused.get_weights())
            train(
                stage,
                _behind(model, last_frozen),
                _through(frozen, target),
                {k: _through(frozen, test) for k, test in target_tests.items()},
            )
            # Keras cannot save a model that was cut, so this is a copy.
            trained[stage] = build()
            trained[stage].set_weights(model.get_weights())
    stages = sorted(stages)
    return {x: trained[x] for x in stages}, {x: curves[x] for x in stages}


def _check_pretrained(directory, num_batches):
    """Refuses to go on with stages 3 and 4 on another stage 2."""
    built_on_it = [directory / f"stage_{stage}" for stage in (3, 4)]
    if not any(any(x.glob("checkpoint-*.npz")) for x in built_on_it):
        return
    path = directory / "stage_2" / "curves.csv"
    batches = runs.read_curves(path).get("batches")
    if not batches:
        raise ValueError(f"{path} should tell the batches of stage 2.")
    if batches[-1] != num_batches:
        raise ValueError(
            f"Stages 3 or 4 in {directory} were begun after {batches[-1]} "
            f"batches of stage 2. Received: num_batches={num_batches}. Use "
            "the same, or another directory."
        )


def _up_to(model, last_part):
    features = models.part(model, last_part).output
    return as_image_model(keras.Model(model.inputs[0], features))


def _behind(model, last_part):
    features = models.part(model, last_part).output
    behind = keras.Model([features, model.inputs[1]], model.output)
    behind.dtype_policy = model.dtype_policy  # Keras takes the global one.
    return behind


def _through(frozen, data):
    (images, task_ids), labels = data
    features = predictions(frozen, images)
    return (features, task_ids), labels


def transfer_figures(
    curves: Mapping[int, Mapping[str, np.ndarray]],
    before: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, dict[str, float]]:
    """What each stage has come to, and how long it took.

    Args:
        curves: Dictionary from stage to curves, as `four_stage_transfer`
            returns.
        before: What this function returned for the same run before, with other
            stages. Figures of stages that were not trained this time are kept.

    Returns:
        Dictionary of `minutes` and `stripes`, the accuracy on held-out stripes.
        Both are dictionaries from stage, as text, to a number.

    Example:

    >>> curves = {3: {"minutes": np.array([2.0]),
    ...               "stripes_accuracy": np.array([0.9])}}
    >>> transfer_figures(curves, {"minutes": {"1": 5.0}, "stripes": {"1": 0.6}})
    {'minutes': {'1': 5.0, '3': 2.0}, 'stripes': {'1': 0.6, '3': 0.9}}
    """
    before = before or {}
    figures = {}
    for name, curve, digits in (
        ("minutes", "minutes", 1),
        ("stripes", "stripes_accuracy", None),
    ):
        figures[name] = dict(before.get(name, {}))
        for stage, of_stage in curves.items():
            last = float(of_stage[curve][-1])
            figures[name][str(stage)] = round(last, digits) if digits else last
    return figures
