"""Tables and curves of finished PrediNet runs, as Table 1 and Figs. 4, 5, S11.

Reads what predinet_relations_game.py and predinet_transfer.py left in a folder,
prints Markdown tables, percent, mean ± standard deviation over the seeds, and
draws the learning curves of each transfer beside them.
"""

import argparse
import collections
import pathlib
import re

import numpy as np

from keras_relational import analysis
from keras_relational import models
from keras_relational.datasets import relations_game

SINGLE = (
    r"(\w+)-(\w+)-(sgd|adam)-k(\d+)-j(\d+)(?:-(num_train\d+))?"
    r"(?:-(published_\w+))?-seed(\d+)"
)
TRANSFER = (
    r"([\w+]+)-to-([\w+]+)-(\w+?)(?:-num_batches\d+)?(-num_train\d+)?-seed(\d+)"
)
# Table 1 of the paper, hexominoes and stripes, in the order of CENTRAL_MODULES.
PAPER = {
    "same": (
        (100, 100),
        (95.8, 92.5),
        (96.2, 93.2),
        (72.5, 73.6),
        (99.4, 98.2),
    ),
    "between": (
        (99.3, 98.8),
        (98.8, 97.0),
        (98.7, 97.3),
        (70.1, 67.6),
        (95.0, 91.2),
    ),
    "occurs": (
        (97.6, 96.3),
        (91.6, 79.0),
        (93.0, 82.6),
        (60.4, 61.1),
        (96.0, 84.1),
    ),
    "xoccurs": (
        (95.4, 94.3),
        (80.7, 77.4),
        (82.9, 78.6),
        (55.0, 54.0),
        (54.7, 53.6),
    ),
    "colour_and_shape": ((94.2,), (55.0,), (55.6,), (41.8,), (89.0,)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--directory", type=pathlib.Path, default="runs", help="of the runs"
    )
    args = parser.parse_args()
    single, transfer = (collections.defaultdict(list) for _ in range(2))
    for path, result in analysis.finished_runs(args.directory):
        if match := re.fullmatch(SINGLE, result["run"]):
            task, central, *settings, seed = match.groups()
            task = relations_game.TASKS.index(task)
            curves = read_curves(path)
            batches = int(curves["batches"][-1])
            key = (
                tuple(filter(None, settings)),
                task,
                module(central),
                batches,
            )
            run = (result, curves)
            analysis.add_run(single[key], seed, run, result["run"])
        elif match := re.fullmatch(TRANSFER, result["run"]):
            curriculum, target, central, options, seed = match.groups()
            target += options or ""
            key = (curriculum, target, result["batches"], module(central))
            run = (result, path)
            analysis.add_run(transfer[key], seed, run, result["run"])
    print_single(single)
    print_transfer(transfer)
    draw_transfer(transfer, args.directory)


def print_single(single):
    """The paper's Table 1 summarises "the top 10 batches" of its curves."""
    lines = []
    for (settings, task, central, batches), runs in sorted(single.items()):
        task_name = relations_game.TASKS[task]
        seeds, results, curves = zip(*sorted(runs, key=str), strict=True)
        minutes = ", ".join(str(result["minutes"]) for result in results)
        names = [
            name
            for name in curves[0].dtype.names
            if name.endswith("_accuracy")
            and all(name in curve.dtype.names for curve in curves)
        ]
        for column, name in enumerate(names):
            objects = name.removesuffix("_accuracy")
            best = [np.sort(c[name])[-10:].mean() for c in curves]
            # Curves of a few runs have 20 points, the others 100.
            mark = " †" if min(map(len, curves)) < 100 else ""
            paper = ""
            if settings == ("sgd", "32", "16") and task_name in PAPER:
                paper = dict(enumerate(PAPER[task_name][central])).get(column)
            cells = [
                task_name,
                objects,
                models.CENTRAL_MODULES[central],
                ", ".join(settings),
                f"{batches:,}",
                ", ".join(seeds),
                spread([result[objects] for result in results]),
                spread(best) + mark,
                paper or "",
                "" if column else minutes,
            ]
            lines.append(cells)
    names = ("task", "objects", "module", "optimizer, k, j", "batches", "seeds")
    names += ("last batch", "ten best", "paper", "minutes a run")
    print(analysis.markdown_table(names, lines))


def print_transfer(transfer):
    lines = []
    for (*names, central), runs in sorted(transfer.items()):
        seeds, results, _ = zip(*sorted(runs, key=str), strict=True)
        stages = [
            spread([r["stripes"][s] for r in results if s in r["stripes"]])
            for s in "1234"
        ]
        minutes = sum(sum(r["minutes"].values()) for r in results)
        cells = (
            *names,
            models.CENTRAL_MODULES[central],
            ", ".join(seeds),
            *stages,
            f"{minutes:.0f}",
        )
        lines.append(cells)
    names = ("curriculum", "target", "batches", "module", "seeds")
    names += (*(f"stage {s}" for s in "1234"), "minutes")
    print(f"\n{analysis.markdown_table(names, lines)}")


def draw_transfer(transfer, directory):
    figures = collections.defaultdict(dict)
    for (curriculum, target, batches, central), runs in transfer.items():
        figures[f"{curriculum}-to-{target}-{batches}"][
            models.CENTRAL_MODULES[central]
        ] = [
            {
                int(s): read_curves(path / f"stage_{s}")
                for s in result["stripes"]
            }
            for _, result, path in runs
        ]
    for name, curves in figures.items():
        figure = analysis.plot_transfer_curves(curves)
        analysis.save_figure(figure, directory / f"{name}.png", dpi=100)


def module(name):
    return models.CENTRAL_MODULES.index(name)


def read_curves(directory):
    path = directory / "curves.csv"
    return np.genfromtxt(path, delimiter=",", names=True, ndmin=1)


def spread(shares):
    return analysis.mean_text([100 * share for share in shares])


if __name__ == "__main__":
    main()
