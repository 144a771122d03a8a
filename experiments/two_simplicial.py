"""Agents on BoxWorld and bridge BoxWorld.

Clift et al., 2019, *Logic and the 2-Simplicial Transformer*. What each agent
solves of fixed puzzles, beside a random player, and Fig. 6.
"""

from experiments.records import Record
from experiments.records import group_by_seed
from experiments.records import table
from keras_relational import analysis

# Arguments of the smallest puzzle, one box on 3 by 6 tiles: the defaults.
SMALLEST = {
    "world": ("box",),
    "rows": (None, 3),
    "columns": (None, 6),
    "solution_length": (None, [1, 1]),
    "num_distractors": (None, [0, 0]),
}


def tables(records: list[Record]) -> dict[str, str]:
    """Tables of these runs, by name."""
    agents = [x for x in records if x.experiment == "boxworld_impala"]
    chosen = {
        "boxworld_smallest": [x for x in agents if _is_smallest(x)],
        "boxworld_larger": [x for x in agents if not _is_smallest(x)],
    }
    return {name: boxworld_table(runs) for name, runs in chosen.items() if runs}


def boxworld_table(records: list[Record]) -> str:
    """One row a run: agents of two seeds never make the same steps."""
    columns = ("world", "rows", "columns", "network", "num_iterations")
    # What is measured and printed besides does not change what is learned.
    apart = ("shortest", "by_level")
    rows, common = group_by_seed(records, columns, apart)
    lines = []
    for row in sorted(rows, key=_place):
        for record in row.records:
            result = record.result
            line = {
                "puzzles": _puzzles(record.arguments),
                "network": record.arguments["network"],
                "blocks": record.arguments["num_iterations"],
                "options": row.options,
                "seed": record.arguments["seed"],
                "steps": f"{record.length:,}",
                "minutes": result["minutes"],
            }
            for player in ("greedy", "sampled", "random"):
                solved = f"{100 * result[player]['solved']:.1f} %"
                line[f"solved, {player}"] = solved
                line[f"length, {player}"] = f"{result[player]['length']:.1f}"
            shortest = result.get("shortest_length")
            line["shortest"] = "" if shortest is None else f"{shortest:.1f}"
            lines.append(line)
    return table(lines, common)


def figures(records: list[Record]) -> dict:
    """Fig. 6: the share solved of the smallest puzzles, over steps."""
    runs = {}
    for record in records:
        if record.experiment == "boxworld_impala" and _is_smallest(record):
            network = record.arguments["network"]
            runs.setdefault(network, []).append(record.read_curves())
    if not runs:
        return {}
    figure = analysis.plot_learning_curves(runs, "solved", "steps")
    return {"boxworld_3x6": figure}


def _is_smallest(record):
    return all(
        record.arguments.get(name) in values
        for name, values in SMALLEST.items()
    )


def _puzzles(arguments):
    rows, columns = arguments.get("rows"), arguments.get("columns")
    if arguments["world"] == "bridge":
        size = f", {rows or 7} by {columns or 9}" if rows or columns else ""
        return f"bridge{size}"
    return f"{rows or 3} by {columns or 6}"


def _place(row):
    network = row.settings["network"], row.settings["num_iterations"]
    size = row.settings.get("rows") or 0, row.settings.get("columns") or 0
    box = row.settings["world"] == "box"
    seed = row.records[0].arguments["seed"]
    return box, -size[0], size[1], row.options, network, seed, row.length
