"""Extrapolation: Tables 1 to 4.

Webb et al., 2020, *Learning Representations that Support Extrapolation*.
Figures are mean ± standard deviation over the seeds, in percent, but for the
errors of predicted images.
"""

import numpy as np

from experiments.records import Record
from experiments.records import group_by_seed
from experiments.records import mean_text
from experiments.records import read_paper
from experiments.records import table


def tables(records: list[Record]) -> dict[str, str]:
    """Tables of these runs, by name."""
    chosen = {}
    for record in records:
        if record.experiment in TABLES and _predicts(record):
            name = TABLES[record.experiment][0](record)
            chosen.setdefault(name, []).append(record)
    return {
        name: TABLES[of_name[0].experiment][1](of_name)
        for name, of_name in chosen.items()
    }


def vaec_table(records: list[Record]) -> str:
    """Accuracy in the regions that a scorer was trained on (1) or not."""
    regime = records[0].arguments["regime"]

    def figures(results):
        shares = [[100 * x["all"] for x in run["regions"]] for run in results]
        of_regions = zip(*shares, strict=True)
        cells = {str(i): mean_text(x) for i, x in enumerate(of_regions, 1)}
        cells["2 to 6"] = mean_text([np.mean(x[1:]) for x in shares])
        return cells

    columns = ("regime", "image_size", "published")
    return _normalizations(records, columns, figures, regime)


def visual_analogies_table(records: list[Record]) -> str:
    """Accuracy on values never seen, and on as many problems with others."""

    def figures(results):
        return {
            column: mean_text([100 * x[name] for x in results if name in x])
            for name, column in (("test", "test"), ("near", "familiar"))
        }

    columns = ("candidates", "image_size", "published")
    return _normalizations(records, columns, figures, "visual_analogies")


def dynamic_objects_table(records: list[Record]) -> str:
    """Mean squared error of predicted images, over two sets of sequences."""

    def figures(results):
        errors = [np.mean(result["errors"]) for result in results]
        return {"error": mean_text(errors, digits=4)}

    return _normalizations(records, (), figures, "dynamic_objects")


def _normalizations(records, columns, figures, kind):
    """One row a normalization, in the paper's order."""
    paper = read_paper("context_normalization")[kind]["figures"]
    order, regions = list(paper), kind in ("translation", "scale")
    rows, common = group_by_seed(records, ("normalization", *columns))

    def place(row):
        name = _name(row)
        # Rows that the paper does not have stand at the end.
        known = order.index(name) if name in order else len(order)
        return row.options, row.length, known, name

    lines = []
    for row in sorted(rows, key=place):
        found = figures([record.result for record in row.records])
        published = _papers(paper.get(_name(row), ()), regions)
        lines.append(
            {
                "normalization": _name(row),
                "options": row.options,
                "batches": f"{row.length:,}",
                "seeds": row.seeds,
                **found,
                **published,
                "minutes": row.minutes,
            }
        )
    smaller = kind == "dynamic_objects"
    return table(lines, common, [*found, *published], smaller=smaller)


def _papers(figures, regions):
    """The paper's one figure, or that of region 1 and the mean of the others.

    There may be none.
    """
    first, *others = np.atleast_1d(figures).tolist() or [""]
    if not regions:
        return {"paper": first}
    mean = f"{np.mean(others):.1f}" if others else ""
    return {"paper, 1": first, "paper, 2 to 6": mean}


def _name(row):
    """One, whether it was given as such or as a list of one."""
    name = row.settings["normalization"]
    return name[0] if isinstance(name, list) else name


def _predicts(record):
    # The autoencoder that the predictors of moving squares share does not.
    return record.experiment != "dynamic_objects" or "errors" in record.result


def _files(record):
    digest = record.settings.get("published")
    return f"_published_{digest}" if digest else ""


def _vaec_name(record):
    arguments = record.arguments
    size = f"{arguments['regime']}_{arguments['image_size']}"
    return f"vaec_{size}{_files(record)}"


def _visual_analogies_name(record):
    kind = _files(record) or f"_{record.arguments['candidates']}"
    return f"visual_analogies{kind}_{record.arguments['image_size']}"


# By experiment: functions for the name of a run's table, and for the table.
TABLES = {
    "vaec": (_vaec_name, vaec_table),
    "visual_analogies": (_visual_analogies_name, visual_analogies_table),
    "dynamic_objects": (
        lambda record: "dynamic_objects",
        dynamic_objects_table,
    ),
}
