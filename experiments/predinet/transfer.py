"""Is what PrediNet learned on one set of tasks of use for another?

Shanahan et al., 2020, An Explicitly Relational Neural Network Architecture,
Figs. 3 to 5: the four-stage protocol, tested on held-out stripes. In Fig. 4 the
curriculum is `between` and the targets are three column patterns. Only
PrediNet, with its central module frozen (stage 3), gets to 90 percent. In Fig.
5e all five row patterns follow all five column patterns: PrediNet has 85
percent, the others are at chance. All stages take some 10 minutes on 2 cores,
with --central relation_network hours. The network of the last stage is saved.
"""

import keras

from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import relations_game
from keras_relational.models.image_model import as_image_model
from keras_relational.models.relations_classifier import CENTRAL_MODULES
from keras_relational.random_streams import stream

NUM_TASKS = 5  # The length of a task's one-hot code, as published.
# The task of colour and shape has four labels, and no stripes.
TASKS = [x for x in relations_game.TASKS if x != "colour_and_shape"]
COLUMNS = ["column_ABA", "column_AAB", "column_ABB"]
STAGES = {
    1: "target from scratch",
    2: "pre-training",
    3: "target, encoder and central module frozen",
    4: "target, encoder frozen",
}
MANY = {"nargs": "+", "metavar": "TASK"}
NEXT = "python -m experiments.predinet transfer --central mha"


def main(command):
    add = command.option
    add("--curriculum", TASKS, ["between"], "tasks to pre-train on", **MANY)
    tasks = f"tasks to transfer to; one or more of {', '.join(TASKS)}"
    add("--target", TASKS, COLUMNS, tasks, **MANY)
    add("--central", CENTRAL_MODULES, "predinet", "central module")
    add("--stages", list(STAGES), list(STAGES), "stages to train", nargs="+")
    add("--num-batches", int, 100_000, "training steps of each stage, of 10")
    add("--num-train", int, 250_000, "training images", low=10)
    add("--num-test", int, 2_000, "test images")
    args = command.parse_run()
    for name in ("curriculum", "target"):
        if len(getattr(args, name)) > NUM_TASKS:
            command.error(f"--{name} takes up to {NUM_TASKS} tasks")

    options = vars(args)
    always = ["curriculum", "target", "central"]
    with command.open_run(always, may_differ=["stages", "num_test"]) as run:
        trained, curves = four_stage_transfer(
            lambda: models.relations_classifier(args.central, 2, NUM_TASKS),
            curriculum=training_data(options, "curriculum"),
            target=training_data(options, "target"),
            curriculum_tests={
                "stripes": held_out_stripes(options, "curriculum")
            },
            target_tests={"stripes": held_out_stripes(options, "target")},
            stages=args.stages,
            num_batches=args.num_batches,
            run=run,
            seed=args.seed,
            verbose=args.verbose,
        )
        metrics = stage_metrics(curves, run.result)
        stripes, last = metrics["stripes"], max(trained)
        lines = [f"stripes after stage {n}: {stripes[n]:.1%}" for n in stripes]
        metrics |= {"batches": args.num_batches, "saved": stripes[str(last)]}
        command.finish(run, trained[last], metrics, lines, NEXT)


def training_data(arguments, name):
    """Images with task ids, and labels, of `"curriculum"` or `"target"`."""
    images, labels, task_ids = relations_game.generate(
        arguments[name],
        arguments["num_train"],
        seed=stream(arguments["seed"], name),
    )
    return (images, task_ids), labels


def held_out_stripes(arguments, name):
    """Stripes with task ids, and labels: the test of such `training_data`."""
    images, labels, task_ids = relations_game.generate(
        arguments[name],
        arguments["num_test"],
        "stripes",
        seed=stream(arguments["seed"], f"{name}_test"),
    )
    return (images, task_ids), labels


def four_stage_transfer(
    build,
    curriculum,
    target,
    curriculum_tests,
    target_tests,
    stages=tuple(STAGES),
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

    The outputs of frozen layers never change, so stages 3 and 4, which need
    stage 2, compute them once for each image. `curriculum` and `target` are
    pairs `((images, task_ids), labels)`; the tests are dictionaries of such
    pairs. Returns two dictionaries by stage: its whole network, and its curves.
    """
    if run is not None:
        _check_pretrained(run.directory, num_batches)
    trained, curves = {}, {}

    def fresh_model(stage):
        # Different for each pair of a seed and a stage.
        keras.utils.set_random_seed(seed * len(STAGES) + stage)
        return build()

    def train(stage, model, data, tests):
        curves[stage] = training.train_classifier(
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


def _up_to(model, last_layer):
    features = models.part(model, last_layer).output
    return as_image_model(keras.Model(model.inputs[0], features))


def _behind(model, last_layer):
    features = models.part(model, last_layer).output
    behind = keras.Model([features, model.inputs[1]], model.output)
    behind.dtype_policy = model.dtype_policy  # Keras takes the global one.
    return behind


def _through(frozen, data):
    (images, task_ids), labels = data
    return (training.predictions(frozen, images), task_ids), labels


def stage_metrics(curves, before=None):
    """The `minutes` and the accuracy on `stripes`, by stage as text.

    Stages of `before`, the run's last figures, are kept if not trained now.
    """
    before = before or {}
    metrics = {}
    for name, curve, digits in (
        ("minutes", "minutes", 1),
        ("stripes", "stripes_accuracy", None),
    ):
        metrics[name] = dict(before.get(name, {}))
        for stage, of_stage in curves.items():
            last = float(of_stage[curve][-1])
            metrics[name][str(stage)] = round(last, digits) if digits else last
    return metrics


def preset_metrics(model, arguments):
    """Accuracy on stripes in the tasks of the last stage."""
    name = "curriculum" if arguments["stages"] == [2] else "target"
    x, y = held_out_stripes(arguments, name)
    return {"saved": training.accuracy(model, x, y)}


def preset_headline(arguments, metrics):
    return (
        f"right about {metrics['saved']:.1%} of stripes, which it never saw, "
        "in tasks for which only its last layers were trained"
    )
