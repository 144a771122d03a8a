"""How reusable is what a central module has learned? The four-stage protocol.

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*,
section 4 and Fig. 3.
"""

import keras

from keras_relational import runs
from keras_relational.training.supervised import train_classifier

STAGES = {
    1: "target from scratch",
    2: "pre-training on the curriculum",
    3: "target, encoder and central module frozen",
    4: "target, encoder frozen",
}


def four_stage_transfer(
    build,
    curriculum,
    target,
    curriculum_tests,
    target_tests,
    stages=(1, 2, 3, 4),
    num_batches=100_000,
    run=None,
    seed=0,
    **training_arguments,
):
    """Trains one architecture through the stages and takes learning curves.

    1. The target task is learned from scratch.
    2. A second network is trained on the curriculum.
    3. Its encoder and central module are frozen, a fresh output MLP learns the
       target task.
    4. Its encoder alone is frozen; a fresh central module and output MLP learn
       the target task.

    What frozen layers make of an image never changes, so stages 3 and 4
    compute it once for each image and train the layers behind it on that.

    Args:
        build: Function without arguments that returns a fresh model with
            initial weights of its own, laid out as `relations_classifier`:
            inputs images and task ids, layers `"coordinates"` (the last of the
            encoder) and `"central"`.
        curriculum: Pair `((images, task_ids), labels)` to pre-train on.
        target: The same, for the target tasks.
        curriculum_tests: Dictionary of such pairs: held-out sets to measure
            stage 2 on.
        target_tests: The same, for the other stages.
        stages: Those whose curves are wanted; stage 2 is trained for stages 3
            and 4 in any case.
        num_batches: Number of training steps of each stage.
        run: `runs.Run` to keep curves and checkpoints in, a part of it for each
            stage: `stage_1` to `stage_4`. By default nothing is written.
        seed: Non-negative integer that fixes initial weights and order.
        **training_arguments: Further arguments of `train_classifier`;
            `optimizer` must be left out or be a string.

    Returns:
        Dictionary from stage to the curves that `train_classifier` returns.

    Raises:
        ValueError: For a stage that is not one of the four, or if stages 3 or
            4 in the run were begun on a stage 2 of another length.
    """
    unknown = set(stages) - set(STAGES)
    if unknown:
        raise ValueError(
            f"Stages are numbered 1 to 4. Received: stages={tuple(stages)}"
        )
    if run is not None:
        _check_pretrained(run.directory, num_batches)
    curves = {}

    def fresh_model(stage):
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
        train(1, fresh_model(1), target, target_tests)
    if set(stages) - {1}:
        pretrained = fresh_model(2)
        train(2, pretrained, curriculum, curriculum_tests)
    for stage, last_frozen in ((3, "central"), (4, "coordinates")):
        if stage in stages:
            model = fresh_model(stage)
            frozen, trained = _cut(model, last_frozen)
            for layer in frozen.layers:
                layer.set_weights(
                    pretrained.get_layer(layer.name).get_weights()
                )
            train(
                stage,
                trained,
                _through(frozen, target),
                {k: _through(frozen, test) for k, test in target_tests.items()},
            )
    return {stage: curves[stage] for stage in sorted(stages)}


def _check_pretrained(directory, num_batches):
    """Stages 3 and 4 go on only with what they were begun on."""
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


def _cut(model, layer_name):
    """Cuts a model behind a layer, into two that share its weights."""
    images, tasks = model.inputs
    features = model.get_layer(layer_name).output
    return (
        keras.Model(images, features),
        keras.Model([features, tasks], model.output),
    )


def _through(frozen, data):
    (images, task_ids), labels = data
    features = frozen.predict(images, batch_size=250, verbose=0)
    return (features, task_ids), labels
