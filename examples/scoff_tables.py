"""Tables of finished runs of SCOFF, beside its paper's.

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments: Tables 1 and 3, Figs. 3, 4 and 5, and the
shares of section 5. Reads what adding.py, single_ball.py, bouncing_balls.py,
goto_object_maze.py and intuitive_physics.py left in a folder, and prints
Markdown tables, mean ± standard deviation over the seeds.
"""

import argparse
import collections
import pathlib
import re

from keras_relational import analysis
from keras_relational.datasets import adding
from keras_relational.datasets import intuitive_physics

# Mean error with 2, 3, 4, 5, 8, 9 and 10 numbers, after 100 epochs.
ADDING = {
    "lstm": (0.8731, 1.3017, 1.6789, 2.0334, 4.8872, 7.3730, 11.3595),
    "rims": (0.0007, 0.0009, 0.0014, 0.0045, 0.0555, 0.1958, 0.8904),
    "scoff": (0.0005, 0.0007, 0.0013, 0.0030, 0.0191, 0.0379, 0.0539),
}
# Relative error on O1, O2 and O3.
INTUITIVE_PHYSICS = {
    "relational_memory": (0.43, 0.39, 0.46),
    "scoff": (0.34, 0.35, 0.42),
}
# Percent of episodes solved in rooms of 10 by 10 cells.
MAZE = {"scoff": 82, "gru": 56, "gru_of_equal_size": 74}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--directory", type=pathlib.Path, default="runs", help="of the runs"
    )
    args = parser.parse_args()
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for _, result in analysis.finished_runs(args.directory):
        match = re.fullmatch(
            rf"({'|'.join(TABLES)})-(.+)-seed(\d+)", result["run"]
        )
        if match:
            kind, setting, result["seed"] = match.groups()
            (length,) = (result[x] for x in LENGTHS if x in result)
            # An agent's steps end with an update, with any seed at another.
            length = round(length, -4) if kind == "maze" else length
            runs = found[kind][setting, length]
            seed = int(result["seed"])
            analysis.add_run(runs, seed, (result,), result["run"])
    for kind, table in TABLES.items():
        if kind in found:
            settings = {
                key: [result for _, result in sorted(runs, key=lambda x: x[0])]
                for key, runs in found[kind].items()
            }
            print(f"\n{table(settings)}")


def adding_table(settings):
    numbers = [str(number) for number in adding.TEST_VALUES]
    rows = [
        (*beginning(*item), *means(item[1], lambda r: r["errors"], numbers, 4))
        for item in settings.items()
    ]
    rows += [(f"paper: {x}", 100, "", "", *ADDING[x]) for x in ADDING]
    names = ("adding", "epochs", "seeds", "minutes a run")
    return analysis.markdown_table([*names, *numbers], rows)


def single_ball_table(settings):
    """A row for each run: a mean of confusions would tell nothing."""
    rows = [
        (
            *beginning(setting, [run]),
            number + 1,
            f"{run['information'][number]:.2f}",
            "; ".join(" ".join(map(str, row)) for row in table),
        )
        for setting, runs in settings.items()
        for run in runs
        for number, table in enumerate(run["contingency"])
    ]
    names = ("single ball", "batches", "seed", "minutes", "object file")
    counts = "steps of each schema, dynamics by dynamics"
    return analysis.markdown_table([*names, "information", counts], rows)


def bouncing_balls_table(settings):
    """Errors, and those divided by a GRU's of the same task and seed."""
    grus = {
        (setting, length, run["seed"]): run
        for (setting, length), runs in settings.items()
        for run in runs
    }
    errors = ("error_10", "error_30")
    rows = []
    for (setting, length), runs in settings.items():
        task, _, *options = setting.split("-")
        gru = "-".join([task, "gru", *options])
        pairs = [(run, grus.get((gru, length, run["seed"]))) for run in runs]
        ratios = ["", ""]
        if all(gru for _, gru in pairs):
            ratios = [
                analysis.mean_text([run[x] / gru[x] for run, gru in pairs], 2)
                for x in errors
            ]
        in_use = ", ".join(str(run.get("schemata_in_use", "")) for run in runs)
        row = beginning((setting, length), runs)
        absolute = means(runs, lambda run: run, errors, 4)
        rows.append((*row, *absolute, *ratios, in_use))
    names = ("bouncing balls", "batches", "seeds", "minutes a run")
    names += ("error, 10 frames", "30", "relative to GRU, 10", "30")
    return analysis.markdown_table([*names, "schemata in use"], rows)


def maze_table(settings):
    players = ("sampled_6", "random_6", "sampled_10", "random_10")
    rows = [
        (
            *beginning((setting, length), runs),
            f"{runs[0]['parameters']:,}",
            *means(
                runs,
                lambda run: {x: 100 * run[x]["solved"] for x in players},
                players,
            ),
            MAZE.get(setting, ""),
        )
        for (setting, length), runs in settings.items()
    ]
    names = ("maze", "steps", "seeds", "minutes a run", "parameters")
    shares = ("solved, 6 by 6, %", "random", "10 by 10", "random", "paper")
    return analysis.markdown_table([*names, *shares], rows)


def intuitive_physics_table(settings):
    blocks = intuitive_physics.BLOCKS
    rows = [
        (
            *beginning((setting, length), runs),
            *means(runs, lambda run: run, blocks, 2),
            ", ".join(map(str, INTUITIVE_PHYSICS.get(setting, ()))),
        )
        for (setting, length), runs in settings.items()
    ]
    names = ("intuitive physics", "batches", "seeds", "minutes a run")
    return analysis.markdown_table([*names, *blocks, "paper"], rows)


TABLES = {
    "adding": adding_table,
    "single_ball": single_ball_table,
    "bouncing_balls": bouncing_balls_table,
    "maze": maze_table,
    "intuitive_physics": intuitive_physics_table,
}
LENGTHS = ("epochs", "batches", "steps")


def beginning(setting_and_length, runs):
    """The first four cells of a row."""
    setting, length = setting_and_length
    seeds = ", ".join(run["seed"] for run in runs)
    minutes = ", ".join(str(run["minutes"]) for run in runs)
    return setting, f"{length:,}", seeds, minutes


def means(runs, figures, names, digits=1):
    """Of these names among the figures of a run."""
    return [
        analysis.mean_text([figures(run)[name] for run in runs], digits)
        for name in names
    ]


if __name__ == "__main__":
    main()
