"""Tables and curves of finished PrediNet runs, as Table 1 and Figs. 4, 5, S11.

Reads what predinet_relations_game.py and predinet_transfer.py left in a folder,
prints Markdown tables, mean ± standard deviation over the seeds, and draws the
learning curves beside them.
"""

import argparse
import collections
import json
import pathlib
import re

import numpy as np

from keras_relational import analysis
from keras_relational import models

SINGLE = r"(\w+)-(\w+)-(sgd|adam)-(k\d+-j\d+)-seed(\d+)"
TRANSFER = r"([\w+]+-to-[\w+]+)-(\w+)-seed(\d+)"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--directory", type=pathlib.Path, default="runs", help="of the runs"
    )
    args = parser.parse_args()
    single = collections.defaultdict(lambda: collections.defaultdict(list))
    transfer = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in sorted(args.directory.glob("**/result.json")):
        result = json.loads(path.read_text())
        if match := re.fullmatch(SINGLE, result["run"]):
            task, central, optimizer, sizes, _ = match.groups()
            curves = read_curves(path.parent)
            single[task, optimizer, sizes][central].append((result, curves))
        elif match := re.fullmatch(TRANSFER, result["run"]):
            stages = {
                int(stage): read_curves(path.parent / f"stage_{stage}")
                for stage in result["stripes"]
            }
            transfer[match[1]][match[2]].append(stages)
    for (task, optimizer, sizes), runs in single.items():
        print(f"\n### {task}, {optimizer}, {sizes}\n")
        print_single(runs)
    for name, runs in transfer.items():
        print(f"\n### {name}, stripes after the last batch\n")
        print_transfer(runs)
        figure = analysis.plot_transfer_curves(runs)
        figure.savefig(args.directory / f"{name}.png", dpi=100)


def print_single(runs):
    """One row a module and object set: at the end, and the ten best points.

    The paper's Table 1 summarises "the top 10 batches" of its curves.
    """
    print(
        "| central module | objects | seeds | last batch | ten best | minutes |"
    )
    print("|---|---|---|---|---|---|")
    for central in sorted(runs, key=models.CENTRAL_MODULES.index):
        results, curves = zip(*runs[central], strict=True)
        minutes = "/".join(str(result["minutes"]) for result in results)
        for name in curves[0].dtype.names:
            if name.endswith("_accuracy"):
                objects = name.removesuffix("_accuracy")
                last = [result[objects] for result in results]
                best = [np.sort(c[name])[-10:].mean() for c in curves]
                print(
                    f"| {central} | {objects} | {len(results)} | "
                    f"{spread(last)} | {spread(best)} | {minutes} |"
                )


def print_transfer(runs):
    print("| central module | seeds | stage 1 | stage 2 | stage 3 | stage 4 |")
    print("|---|---|---|---|---|---|")
    for central in sorted(runs, key=models.CENTRAL_MODULES.index):
        cells = [
            spread(
                [
                    stages[stage]["stripes_accuracy"][-1]
                    for stages in runs[central]
                    if stage in stages
                ]
            )
            for stage in (1, 2, 3, 4)
        ]
        seeds = len(runs[central])
        print(f"| {central} | {seeds} | {' | '.join(cells)} |")


def read_curves(directory):
    path = directory / "curves.csv"
    return np.genfromtxt(path, delimiter=",", names=True, ndmin=1)


def spread(shares):
    if not shares:
        return "-"
    percent = 100 * np.array(shares)
    return f"{percent.mean():.1f} ± {percent.std():.1f}"


if __name__ == "__main__":
    main()
