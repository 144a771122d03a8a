"""PrediNet: Table 1, its variants, and transfer.

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*.
Figures are percent, mean ± standard deviation over the seeds.
"""

import numpy as np

from experiments.predinet.transfer import STAGES
from experiments.records import Record
from experiments.records import group_by_seed
from experiments.records import mean_text
from experiments.records import read_paper
from experiments.records import table
from keras_relational.analysis.learning_curves import draw_curves
from keras_relational.analysis.learning_curves import label_of
from keras_relational.analysis.plotting import label_ends
from keras_relational.analysis.plotting import new_figure
from keras_relational.datasets import relations_game
from keras_relational.models.relations_classifier import CENTRAL_MODULES

# Of Table 1: k = 32 heads, j = 16 relations.
PAPER_SETTING = {"optimizer": "sgd", "num_heads": 32, "num_relations": 16}
FIG_4 = ["between"], ["column_ABA", "column_AAB", "column_ABB"]


def tables(records: list[Record]) -> dict[str, str]:
    """Tables of these runs, by name."""
    single = [x for x in records if x.experiment == "predinet_relations_game"]
    transfer = [x for x in records if x.experiment == "predinet_transfer"]
    chosen = {
        "predinet_single": [x for x in single if _is_papers(x)],
        "predinet_variants": [x for x in single if not _is_papers(x)],
        "predinet_transfer": [x for x in transfer if _is_fig_4(x)],
        "predinet_other_transfers": [x for x in transfer if not _is_fig_4(x)],
    }
    return {
        name: transfer_table(runs) if "transfer" in name else single_table(runs)
        for name, runs in chosen.items()
        if runs
    }


def single_table(records: list[Record]) -> str:
    """One row a task, module and set of objects.

    Table 1 has "the top 10 batches" of the paper's curves: here the ten best
    points, and `ten_best_of_few_images`. † marks curves of fewer than 100
    points, ‡ the older stripes, which were near misses.
    """
    paper = read_paper("predinet")["single_tasks"]["figures"]
    columns = ("task", "central", "stripes", "published")
    rows, common = group_by_seed(records, columns)
    lines = []
    for row in sorted(rows, key=_task_and_module):
        task, central = row.settings["task"], row.settings["central"]
        figures = {}
        if _is_papers(row.records[0]):
            figures = dict(enumerate(paper.get(task, {}).get(central, ())))
        curves = [record.read_curves() for record in row.records]
        names = [
            name
            for name in curves[0].dtype.names
            if name.endswith("_accuracy")
            and all(name in curve.dtype.names for curve in curves)
        ]
        for column, name in enumerate(names):
            objects = name.removesuffix("_accuracy")
            best = [np.sort(curve[name])[-10:].mean() for curve in curves]
            few = " †" if min(map(len, curves)) < 100 else ""
            lines.append(
                {
                    "task": task,
                    "objects": _objects(objects, row.records[0]),
                    "module": central,
                    "options": row.options,
                    "batches": f"{row.length:,}",
                    "seeds": row.seeds,
                    "last batch": _percent(
                        record.result[objects] for record in row.records
                    ),
                    "ten best": _percent(best) + few,
                    "250 images": _percent(
                        ten_best_of_few_images(curve[name]) for curve in curves
                    ),
                    "paper": figures.get(column, ""),
                    "minutes": "" if column else row.minutes,
                }
            )
    # One below the other, all modules on one set of objects.
    lines.sort(key=lambda x: (x["options"], _place(x["task"]), x["objects"]))
    figures = "last batch", "ten best", "250 images", "paper"
    return table(lines, common, figures, within=("task", "objects"))


def ten_best_of_few_images(accuracies: np.ndarray) -> float:
    """The measure of the authors' notebook, expected for a learning curve.

    It is the ten best of 200 tests on 250 images each, which are lucky ones: a
    network at chance has 0.56. The mean of 1,000 simulations is returned.
    """
    points = np.linspace(0, len(accuracies) - 1, 200)
    shares = np.interp(points, np.arange(len(accuracies)), accuracies)
    right = np.random.default_rng(0).binomial(250, shares, (1_000, 200))
    return float(np.sort(right / 250, axis=1)[:, -10:].mean())


def transfer_table(records: list[Record]) -> str:
    """Accuracy on held-out stripes after each of the four stages."""
    columns = ("curriculum", "target", "central", "stripes")
    # A run of one stage also trains the stages that it builds on.
    rows, common = group_by_seed(records, columns, apart=("stages",))

    def place(row):
        curriculum, target = (
            [relations_game.TASKS.index(task) for task in row.settings[name]]
            for name in ("curriculum", "target")
        )
        module = CENTRAL_MODULES.index(row.settings["central"])
        return curriculum, target, row.length, module

    lines = []
    for row in sorted(rows, key=place):
        results = [record.result for record in row.records]
        minutes = sum(map(_minutes, row.records))
        lines.append(
            {
                "curriculum": _tasks(row.settings["curriculum"]),
                "target": _tasks(row.settings["target"]),
                "module": row.settings["central"],
                "batches": f"{row.length:,}{_mark(row.records[0])}",
                "options": row.options,
                "seeds": row.seeds,
                **{
                    f"stage {stage}": _percent(
                        result["stripes"][stage]
                        for result in results
                        if stage in result["stripes"]
                    )
                    for stage in "1234"
                },
                "minutes, all seeds": f"{minutes:.0f}",
            }
        )
    stages = [f"stage {stage}" for stage in "1234"]
    return table(lines, common, stages, within=("curriculum", "target"))


def figures(records: list[Record]) -> dict:
    """Fig. 4: the learning curves of its four stages, as longest trained."""
    transfer = [
        record
        for record in records
        if record.experiment == "predinet_transfer" and _is_fig_4(record)
    ]
    if not transfer:
        return {}
    longest = max(record.length for record in transfer)
    runs = {}
    for record in transfer:
        if record.length == longest:
            stages = {
                int(stage): record.read_curves(f"stage_{stage}/curves.csv")
                for stage in sorted(record.result["stripes"])
            }
            runs.setdefault(record.arguments["central"], []).append(stages)
    runs = {x: runs[x] for x in CENTRAL_MODULES if x in runs}
    return {"predinet_transfer": plot_transfer_curves(runs)}


def plot_transfer_curves(runs):
    """Draws a line an architecture in a panel for each stage: Fig. 4.

    `runs` has for each architecture a dictionary from stage to curves for each
    seed. Lines are means over the seeds, bands one standard deviation wide.
    """
    curve = "stripes_accuracy"
    figure = new_figure(8.2, 5.6)
    panels = figure.subplots(2, 2, sharey=True)
    for panel, (stage, name) in zip(panels.flat, STAGES.items(), strict=True):
        of_stage = {
            architecture.replace("_", " "): [
                stages[stage] for stages in seeds if stage in stages
            ]
            for architecture, seeds in runs.items()
        }
        draw_curves(panel, of_stage, curve, "batches")
        panel.set_title(f"{stage}: {name}")
    for panel in panels[:, 0]:
        panel.set_ylabel(label_of(curve))
    label_ends(figure)
    return figure


def _is_papers(record):
    return PAPER_SETTING.items() <= record.arguments.items()


def _is_fig_4(record):
    tasks = record.arguments["curriculum"], record.arguments["target"]
    return tasks == FIG_4


def _task_and_module(row):
    return (
        row.options,
        _place(row.settings["task"]),
        CENTRAL_MODULES.index(row.settings["central"]),
        row.length,
    )


def _place(task):
    return relations_game.TASKS.index(task)


def _objects(objects, record):
    if objects == "stripes":
        return objects + _mark(record)
    digest = (record.config.get("data") or {}).get(objects)
    return f"{objects} {digest}" if digest else objects


def _mark(record):
    near_misses = record.settings.get("stripes") == "near_misses"
    return " ‡" if near_misses else ""


def _minutes(record):
    """The minutes of all stages that the run trained."""
    stages = [record.read_curves(file) for file in record.curves]
    return sum(curves["minutes"][-1] for curves in stages)


def _tasks(names):
    """`"column AAB, ABA"` for `["column_AAB", "column_ABA"]`."""
    kind, _, pattern = names[0].partition("_")
    if len(names) > 1 and all(name.startswith(f"{kind}_") for name in names):
        others = [name.removeprefix(f"{kind}_") for name in names[1:]]
        return f"{kind} {', '.join([pattern, *others])}"
    return ", ".join(names)


def _percent(shares):
    return mean_text([100 * share for share in shares])
