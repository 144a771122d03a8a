"""Is what PrediNet learned on one set of tasks of use for another?

The four-stage protocol of Shanahan et al., 2020, An Explicitly Relational
Neural Network Architecture (Figs. 3 to 5), on held-out stripes. In Fig. 4 the
curriculum is `between`, the targets are three column patterns, and only
PrediNet, with its central module frozen, gets to 90 %. In Fig. 5e all five row
patterns follow all five column patterns: PrediNet 85 %, the others at chance.
All four stages take some 10 minutes on 2 cores, the relation network's hours.
Killed, a run continues when it is started again.
"""

import argparse
import json
import pathlib

from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import relations_game
from keras_relational.file_io import read_json

# The task's one-hot code has length 5 whatever the tasks, as published.
NUM_TASKS = 5


def main():
    args = parse_arguments()
    name = "+".join(args.curriculum) + "-to-" + "+".join(args.target)
    name = f"{name}-{args.central}{args.options}-seed{args.seed}"
    directory = args.directory / name

    def data(stream, tasks, size, object_set):
        images, labels, task_ids = relations_game.generate(
            tasks, size, object_set, [args.seed, stream]
        )
        return (images, task_ids), labels

    def tests(stream, tasks):
        return {"stripes": data(stream, tasks, args.num_test, "stripes")}

    with runs.Run(
        directory,
        "predinet_transfer",
        {k: v for k, v in vars(args).items() if k != "options"},
        ("num_batches", "num_test", "verbose", "export"),
    ) as run:
        curves = training.four_stage_transfer(
            lambda: models.relations_classifier(
                args.central, num_tasks=NUM_TASKS
            ),
            curriculum=data(0, args.curriculum, args.num_train, "pentominoes"),
            target=data(1, args.target, args.num_train, "pentominoes"),
            curriculum_tests=tests(2, args.curriculum),
            target_tests=tests(3, args.target),
            stages=args.stages,
            run=run,
            seed=args.seed,
            num_batches=args.num_batches,
            verbose=args.verbose,
        )
    # Beside those of stages that were trained before, for as long.
    kept = {"minutes": {}, "stripes": {}}
    path = directory / "result.json"
    if path.exists():
        before = read_json(path)
        if before["batches"] == args.num_batches:
            kept = before
    minutes = {str(s): round(c["minutes"][-1], 1) for s, c in curves.items()}
    stripes = {str(s): c["stripes_accuracy"][-1] for s, c in curves.items()}
    result = {
        "run": name,
        "batches": args.num_batches,
        "minutes": {**kept["minutes"], **minutes},
        "stripes": {**kept["stripes"], **stripes},
    }
    print(json.dumps(run.finish(result)))


def options_in_name(parser, args, names):
    return runs.run_name(
        "",
        {name: getattr(args, name) for name in names},
        {name: parser.get_default(name) for name in names},
    )


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    # That of colour and shape has four labels, and hexominoes alone.
    names = [x for x in relations_game.TASKS if x != "colour_and_shape"]
    tasks = {"nargs": "+", "choices": names, "metavar": "TASK"}
    columns = [f"column_{pattern}" for pattern in ("ABA", "AAB", "ABB")]
    add("--curriculum", **tasks, default=["between"])
    add("--target", **tasks, default=columns, help=f"of: {tasks['choices']}")
    add("--central", choices=models.CENTRAL_MODULES, default="predinet")
    add("--stages", type=int, nargs="+", choices=training.STAGES)
    batches = "of 10, each stage; a multiple of 5,000"
    add("--num-batches", type=int, default=100_000, help=batches)
    add("--num-train", type=int, default=250_000, help="training images")
    add("--num-test", type=int, default=2_000, help="test images")
    add("--seed", type=int, default=0, help="fixes data, weights and order")
    add("--directory", type=pathlib.Path, default="runs/transfer")
    add("--verbose", type=int, default=1, help="0, or 1 for a progress bar")
    parser.set_defaults(stages=list(training.STAGES))
    args = parser.parse_args()
    # Stages 3 and 4 build on what so many batches of stage 2 have made.
    args.options = options_in_name(parser, args, ("num_batches", "num_train"))
    for option in ("curriculum", "target"):
        if len(getattr(args, option)) > NUM_TASKS:
            parser.error(f"--{option} takes up to {NUM_TASKS} tasks")
    return args


if __name__ == "__main__":
    main()
