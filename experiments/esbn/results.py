"""Abstract rules: Tables 8 to 13.

Sinha et al., 2020, *A Memory-Augmented Neural Network Model of Abstract Rule
Learning*. Figures are percent, mean ± standard error over the seeds, as the
paper has them.
"""

from experiments.records import Record
from experiments.records import group_by_seed
from experiments.records import mean_text
from experiments.records import read_paper
from experiments.records import table

# With any of these a run is not one of the paper's.
NOT_THE_PAPERS = ("images", "confidence", "normalization", "learning_rate")


def tables(records: list[Record]) -> dict[str, str]:
    """Tables of these runs, by name: one a task and kind of problem."""
    chosen = {}
    for record in records:
        if record.experiment == "esbn_rules":
            chosen.setdefault(_name(record), []).append(record)
    return {name: rules_table(name, chosen[name]) for name in sorted(chosen)}


def rules_table(name: str, records: list[Record]) -> str:
    """One row a network and number of fillers withheld in training."""
    paper = read_paper("esbn").get(name)
    columns = (
        "task",
        "pretrained",
        "fillers",
        "mode",
        "sequential",
        "withheld",
    )
    rows, common = group_by_seed(records, columns)

    def place(row):
        network, withheld = row.settings["sequential"], row.settings["withheld"]
        return withheld, network, row.options, row.length

    lines = []
    for row in sorted(rows, key=place):
        results = [record.result for record in row.records]
        training, test = _papers(paper, row)
        lines.append(
            {
                "withheld": row.settings["withheld"],
                "network": row.settings["sequential"],
                "options": row.options,
                "batches": f"{row.length:,}",
                "seeds": row.seeds,
                "training": _percent(x["train"] for x in results),
                "test": _percent(x["test"] for x in results),
                "paper, training": training,
                "paper, test": test,
                "minutes": row.minutes,
            }
        )
    return table(lines, common, ("test", "paper, test"), within=("withheld",))


def _name(record):
    arguments = record.arguments
    kind = "pretrained" if arguments["pretrained"] else "end_to_end"
    return "_".join(
        [arguments["task"], kind, arguments["fillers"], arguments["mode"]]
    )


def _papers(paper, row):
    """The paper's two figures, also beside a run of fewer epochs."""
    withheld, network = row.settings["withheld"], row.settings["sequential"]
    if (
        paper is None
        or network not in paper["figures"]
        or withheld not in paper["columns"]
        or any(row.settings.get(name) for name in NOT_THE_PAPERS)
    ):
        return "", ""
    figures = paper["figures"][network]
    column = paper["columns"].index(withheld)
    return figures["training"][column], figures["test"][column]


def _percent(shares):
    return mean_text([100 * share for share in shares], standard_error=True)
