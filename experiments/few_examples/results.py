"""Few examples: the tables and pictures of all tasks of `tasks.py`.

Numbers are percent, mean ± standard error over the seeds. Those of the paper,
Altabaa et al., 2024, are the learning curves in its authors' repository.
"""

import numpy as np
from matplotlib.figure import Figure

from experiments.few_examples.tasks import TASKS
from experiments.records import Record
from experiments.records import mean_text
from experiments.records import read_paper
from experiments.records import table
from keras_relational import analysis
from keras_relational import models

# The mechanisms whose lines have a colour, the same one in each picture.
IN_COLOUR = (
    "abstractor",
    "transformer",
    "corelnet",
    "relational convolution",
    "esbn",
)


def tables(records: list[Record]) -> dict[str, str]:
    """A table a task, and one of all tasks."""
    by_task = _by_task(records)
    if not by_task:
        return {}
    return {
        "few_examples": overview(by_task),
        **{
            f"few_examples_{task}": accuracy_table(task, record)
            for task, record in by_task.items()
        },
    }


def figures(records: list[Record]) -> dict[str, Figure]:
    """A picture a task: the lines of all mechanisms."""
    drawn = {}
    for task, record in _by_task(records).items():
        curves = {_words(name): x for name, x in _curves(record).items()}
        first = {name: curves[name] for name in IN_COLOUR if name in curves}
        drawn[f"few_examples_{task}"] = analysis.plot_learning_curves(
            first | curves, "accuracy", "examples"
        )
    return drawn


def overview(by_task: dict[str, Record]) -> str:
    """Mean test accuracy with the most examples, by mechanism and task."""
    lines: dict[str, dict[str, str]] = {x: {} for x in models.SET_REASONERS}
    for task in (x for x in TASKS if x in by_task):
        curves = _curves(by_task[task])
        for name, line in lines.items():
            shares = [100 * run["accuracy"][-1] for run in curves.get(name, ())]
            line[task] = f"{np.mean(shares):.1f}" if shares else ""
    return table(
        [
            {"mechanism": x} | line
            for x, line in lines.items()
            if any(line.values())
        ]
    )


def accuracy_table(task: str, record: Record) -> str:
    """Test accuracy, by mechanism and number of training examples."""
    paper = read_paper("abstractor").get(task, {"figures": {}})
    lines = []
    for name, runs in _curves(record).items():
        numbers = runs[0]["examples"]
        lines.append({"mechanism": name, "seeds": str(len(runs))})
        for index, number in enumerate(numbers):
            shares = [100 * run["accuracy"][index] for run in runs]
            lines[-1][f"{number:,}"] = mean_text(shares, standard_error=True)
        if name in paper["figures"]:
            of_paper = dict(
                zip(paper["columns"], paper["figures"][name], strict=True)
            )
            seeds = str(paper["networks"])
            lines.append({"mechanism": f"{name}, paper", "seeds": seeds})
            for number in numbers:
                lines[-1][f"{number:,}"] = of_paper.get(number, "")
    return table(lines)


def _by_task(records):
    return {
        record.arguments["task"]: record
        for record in records
        if record.experiment == "few_examples"
    }


def _curves(record):
    names = [x for x in models.SET_REASONERS if x in record.result]
    return {name: record.result[name] for name in names}


def _words(name):
    return name.replace("_", " ")
