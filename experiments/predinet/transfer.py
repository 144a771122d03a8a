"""Is what PrediNet learned on one set of tasks of use for another?

Shanahan et al., 2020, An Explicitly Relational Neural Network Architecture,
Figs. 3 to 5: the four-stage protocol, tested on held-out stripes. In Fig. 4 the
curriculum is `between` and the targets are three column patterns. Only
PrediNet, with its central module frozen (stage 3), gets to 90 percent. In Fig.
5e all five row patterns follow all five column patterns: PrediNet has 85
percent, the others are at chance. All stages take some 10 minutes on 2 cores,
with --central relation_network hours. The network of the last stage is saved.
"""

from keras_relational import models
from keras_relational import training
from keras_relational.datasets import relations_game
from keras_relational.random_streams import stream

NUM_TASKS = 5  # The length of a task's one-hot code, as published.
# The task of colour and shape has four labels, and no stripes.
TASKS = [x for x in relations_game.TASKS if x != "colour_and_shape"]
COLUMNS = ["column_ABA", "column_AAB", "column_ABB"]
STAGES = list(training.STAGES)
MANY = {"nargs": "+", "metavar": "TASK"}
NEXT = "python -m experiments.predinet transfer --central mha"


def main(command):
    add = command.option
    add("--curriculum", TASKS, ["between"], "tasks to pre-train on", **MANY)
    tasks = f"tasks to transfer to; one or more of {', '.join(TASKS)}"
    add("--target", TASKS, COLUMNS, tasks, **MANY)
    add("--central", models.CENTRAL_MODULES, "predinet", "central module")
    add("--stages", STAGES, STAGES, "stages to train", nargs="+")
    add("--num-batches", int, 100_000, "training steps of each stage, of 10")
    add("--num-train", int, 250_000, "training images", low=10)
    add("--num-test", int, 2_000, "test images")
    args = command.parse_run()
    for name in ("curriculum", "target"):
        if len(getattr(args, name)) > NUM_TASKS:
            command.error(f"--{name} takes up to {NUM_TASKS} tasks")

    def data(name, tasks, size, objects="pentominoes"):
        seed = stream(args.seed, name)
        x, y, ids = relations_game.generate(tasks, size, objects, seed)
        return (x, ids), y

    def tests(name, tasks):
        return {"stripes": data(name, tasks, args.num_test, "stripes")}

    always = ["curriculum", "target", "central"]
    with command.open_run(always, ["stages", "num_test"]) as run:
        trained, curves = training.four_stage_transfer(
            lambda: models.relations_classifier(args.central, 2, NUM_TASKS),
            data("curriculum", args.curriculum, args.num_train),
            data("target", args.target, args.num_train),
            tests("curriculum_test", args.curriculum),
            tests("target_test", args.target),
            *(args.stages, args.num_batches, run, args.seed),
            verbose=args.verbose,
        )
        figures = training.transfer_figures(curves, run.result)
        stripes, last = figures["stripes"], max(trained)
        lines = [f"stripes after stage {n}: {stripes[n]:.1%}" for n in stripes]
        figures |= {"batches": args.num_batches, "saved": stripes[str(last)]}
        command.finish(run, trained[last], figures, lines, NEXT)
