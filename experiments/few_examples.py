"""Few examples: order, sorting, sets of cards and the Relations Game.

Altabaa et al., 2024, *Abstractors and relational cross-attention*, section 4,
and Altabaa and Lafferty, 2023, on relational convolutions.
Figures are percent, mean ± standard error over the seeds. Those of the paper
are the learning curves in its authors' repository.
"""

from matplotlib.figure import Figure

from experiments.records import Record
from experiments.records import read_paper
from experiments.records import table
from keras_relational import analysis
from keras_relational import models
from keras_relational.analysis import mean_text


def tables(records: list[Record]) -> dict[str, str]:
    """A table a task: a row a mechanism, a column a number of examples."""
    return {
        f"few_examples_{task}": accuracy_table(task, record)
        for task, record in _by_task(records).items()
    }


def figures(records: list[Record]) -> dict[str, Figure]:
    """A picture a task: the lines of all mechanisms."""
    return {
        f"few_examples_{task}": analysis.plot_learning_curves(
            _curves(record), "accuracy", "examples"
        )
        for task, record in _by_task(records).items()
    }


def accuracy_table(task: str, record: Record) -> str:
    """Test accuracy, by mechanism and number of training examples.

    Args:
        task: One of `training.FEW_EXAMPLES`.
        record: The run of `examples/few_examples.py`.

    Returns:
        Markdown text.
    """
    paper = read_paper("abstractor").get(task, {"figures": {}})
    lines = []
    for name, runs in _curves(record).items():
        numbers = runs[0]["examples"]
        lines.append({"mechanism": name, "seeds": str(len(runs))})
        for place, number in enumerate(numbers):
            shares = [100 * run["accuracy"][place] for run in runs]
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
