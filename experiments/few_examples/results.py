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
        "few_examples_needed": examples_needed(by_task),
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
    return _by_mechanism(by_task, lambda numbers, means: f"{means[-1]:.1f}")


def examples_needed(by_task: dict[str, Record]) -> str:
    """The fewest examples from which on the mean is at least 90 percent."""

    def fewest(numbers, means):
        enough = None
        for number, mean in zip(numbers[::-1], means[::-1], strict=True):
            if mean < 90:
                break
            enough = number
        return f"{enough:,}" if enough else "never"

    return _by_mechanism(by_task, fewest, smaller=True)


def accuracy_table(task: str, record: Record) -> str:
    """Test accuracy, by mechanism and number of training examples."""
    paper = read_paper("abstractor").get(task, {"figures": {}})
    lines, curves = [], _curves(record)
    for name, runs in curves.items():
        numbers = runs[0]["examples"]
        lines.append({"mechanism": _words(name)})
        for index, number in enumerate(numbers):
            shares = [100 * run["accuracy"][index] for run in runs]
            lines[-1][f"{number:,}"] = mean_text(shares, standard_error=True)
        if name in paper["figures"]:
            of_paper = dict(
                zip(paper["columns"], paper["figures"][name], strict=True)
            )
            lines.append({"mechanism": f"{_words(name)}, paper"})
            for number in numbers:
                lines[-1][f"{number:,}"] = of_paper.get(number, "")
    seeds = sorted({len(runs) for runs in curves.values()})
    common = f"{' or '.join(map(str, seeds))} seeds"
    if len(lines) > len(curves):
        common += f", the paper's {paper['networks']}"
    return table(lines, common, [x for x in lines[0] if x != "mechanism"])


def _by_mechanism(by_task, cell, smaller=False):
    """A table of what `cell` makes of a task's numbers and mean accuracies."""
    lines: dict[str, dict[str, str]] = {x: {} for x in models.SET_REASONERS}
    tasks = {x: _words(x) for x in TASKS if x in by_task}
    for task, column in tasks.items():
        curves = _curves(by_task[task])
        for name, line in lines.items():
            runs = curves.get(name)
            line[column] = ""
            if runs:
                shares = 100 * np.array([run["accuracy"] for run in runs])
                line[column] = cell(runs[0]["examples"], shares.mean(axis=0))
    rows = [
        {"mechanism": _words(name)} | line
        for name, line in lines.items()
        if any(line.values())
    ]
    return table(rows, figures=[*tasks.values()], smaller=smaller)


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
