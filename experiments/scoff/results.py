"""SCOFF: adding, balls, added ones, scenes of intuitive physics, and a maze.

Goyal et al., 2020, *Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments*: Tables 1 and 3, Figs. 3, 4 and 5, and the
shares of section 5. Figures are mean ± standard deviation over the seeds.
"""

import numpy as np

from experiments.records import Record
from experiments.records import Row
from experiments.records import group_by_seed
from experiments.records import mean_text
from experiments.records import read_paper
from experiments.records import table
from keras_relational import analysis
from keras_relational.analysis.plotting import draw_line
from keras_relational.analysis.plotting import label_ends
from keras_relational.analysis.plotting import new_figure


def tables(records: list[Record]) -> dict[str, str]:
    """Tables of these runs, by name."""
    chosen = {}
    for record in records:
        chosen.setdefault(_table_name(record), []).append(record)
    return {
        name: make(chosen[name])
        for name, make in TABLES.items()
        if name in chosen
    }


def adding_table(records: list[Record]) -> str:
    """Mean squared error by the number of values to add."""
    paper = read_paper("scoff")["adding"]
    numbers = [str(number) for number in paper["columns"]]
    rows, common = group_by_seed(records, ("core",), apart=("epochs",))
    lines = [
        {
            "core": row.settings["core"],
            "options": row.options,
            "epochs": row.length,
            "seeds": row.seeds,
            "minutes": row.minutes,
            **_means([x.result["errors"] for x in row.records], numbers, 4),
        }
        for row in _sorted(rows, "core")
    ]
    for core, errors in paper["figures"].items():
        line = dict.fromkeys(lines[0], "")
        line |= {"core": f"paper: {core}", "epochs": paper["epochs"]}
        lines.append(line | dict(zip(numbers, errors, strict=True)))
    return table(lines, common, numbers, smaller=True)


def adding_ablation_table(records: list[Record]) -> str:
    """Errors on short and long sequences, by what differs from the library."""
    rows, _ = group_by_seed(records, ("core",))
    lines = []
    for row in sorted(rows, key=_order_of_changes):
        results = [record.result for record in row.records]
        line = {
            "core": row.settings["core"],
            "changes": _changes(row.settings),
            "batches": f"{row.length:,}",
            "seeds": len(results),
            "minutes a run": mean_text([x["minutes"] for x in results]),
        }
        for title, figures, name in (
            ("two numbers, short", "last", "error_2_short"),
            ("two, long", "last", "error_2_long"),
            ("ten, short", "last", "error_10_short"),
            ("ten, long", "last", "error_10_long"),
            ("offset of ten, short", "last", "offset_10_short"),
            ("offset of ten, long", "last", "offset_10_long"),
            ("ten, long, chosen", "chosen", "error_10_long"),
        ):
            line[title] = mean_text([x[figures][name] for x in results], 3)
        lines.append(line)
    return table(lines)


def added_objects_table(records: list[Record]) -> str:
    """Errors of next steps and of roll-outs, by the number of balls."""
    columns = "core", "shuffle", "num_schemata"
    rows, common = group_by_seed(records, columns)
    found = [
        (_core(row.settings), row, [x.result for x in row.records])
        for row in _sorted(rows, "core", "num_schemata")
    ]
    # The same for all runs of a seed.
    of_seeds = {x.arguments["seed"]: x.result for x in records}
    found += [
        (name, None, [x[name] for x in of_seeds.values()])
        for name in SAME_VELOCITY
        if name in records[0].result
    ]
    tested = sorted({int(x) for r in records for x in r.result["next_step"]})
    shown = [x for x in (2, 4, 6, 8) if x in tested] or tested
    shown_figures = [
        name
        for name in ADDED_FIGURES
        if any(name in result for *_, results in found for result in results)
    ]
    lines = []
    for name, row, results in found:
        line = {
            "core": name.replace("_", " "),
            "options": row.options if row else "",
            "batches": f"{row.length:,}" if row else "",
            "seeds": len(results),
            "minutes": row.minutes if row else "",
            "weights": f"{results[0]['weights']:,}" if row else "",
        }
        for figure in shown_figures:
            for number in map(str, shown):
                each = [x.get(figure, {}).get(number) for x in results]
                each = [x for x in each if x is not None]
                title = f"{ADDED_FIGURES[figure]}, {number}"
                line[title] = mean_text(each, 3)
        lines.append(line)
    errors = [
        f"{ADDED_FIGURES[figure]}, {number}"
        for figure in shown_figures
        if figure not in ("found", "kept")
        for number in shown
    ]
    return table(lines, common, errors, smaller=True)


def find_objects_table(records: list[Record]) -> str:
    """The share of balls that slots find, by the number of balls."""
    rows, common = group_by_seed(records, ())
    lines = []
    for row in rows:
        found = [record.result["found"] for record in row.records]
        line = {
            "options": row.options,
            "batches": f"{row.length:,}",
            "seeds": len(found),
            "minutes": row.minutes,
        }
        for number in sorted(found[0], key=int):
            line[f"found, {number}"] = mean_text([x[number] for x in found], 3)
        lines.append(line)
    return table(lines, common)


def single_ball_table(records: list[Record]) -> str:
    """One row a run and object file: a mean of these counts says nothing."""
    rows, common = group_by_seed(records, ("dynamics",))
    lines = [
        {
            "dynamics": row.settings["dynamics"],
            "options": row.options,
            "batches": f"{row.length:,}",
            "seed": record.arguments["seed"],
            "minutes": record.result["minutes"],
            "object file": number,
            "information": f"{information:.2f}",
            "steps of each schema, dynamics by dynamics": "; ".join(
                " ".join(map(str, counts)) for counts in contingency
            ),
        }
        for row in _sorted(rows, "dynamics")
        for record in row.records
        for number, (contingency, information) in enumerate(
            zip(
                record.result["contingency"],
                record.result["information"],
                strict=True,
            ),
            start=1,
        )
    ]
    return table(lines, common)


def information_table(records: list[Record]) -> str:
    """Single balls with linear networks, or their coordinates, by seed."""
    name = _table_name(records[0])
    columns = INFORMATION[name]
    titles = {"num_axes": "axes", "bulb_radius": "bulbs"}
    rows, common = group_by_seed(records, columns)
    lines = []
    for row in _sorted(rows, *columns):
        found = [x.result["settled"]["information"][0] for x in row.records]
        line = {
            titles.get(x, x.replace("_", " ")): row.settings[x] for x in columns
        }
        if "loss" in line:
            line["loss"] = line["loss"].replace("_", " ")
        line |= {
            "options": row.options,
            "batches": f"{row.length:,}" if name == "ball_coordinates" else "",
            "minutes": row.minutes,
            "information by seed": ", ".join(f"{x:.2f}" for x in found),
            "mean": f"{sum(found) / len(found):.2f}",
        }
        for low in (0.4, 0.8):
            count = sum(x >= low for x in found)
            line[f"at least {low}"] = f"{count} of {len(found)}"
        lines.append(line)
    return table(lines, common, ("mean",))


def bouncing_balls_table(records: list[Record]) -> str:
    """Errors, also relative to a GRU of the same setting and seed."""
    rows, common = group_by_seed(records, ("task", "core", "num_schemata"))
    grus = {
        (_key_of_gru(row), record.arguments["seed"]): record.result
        for row in rows
        for record in row.records
        if row.settings["core"] == "gru"
    }
    lines = []
    for row in _sorted(rows, "task", "core", "num_schemata"):
        results = [record.result for record in row.records]
        of_grus = [
            grus.get((_key_of_gru(row), record.arguments["seed"]))
            for record in row.records
        ]
        line = {
            "task": row.settings["task"],
            "core": _core(row.settings),
            "options": row.options,
            "batches": f"{row.length:,}",
            "seeds": row.seeds,
            "minutes": row.minutes,
        }
        frames = {"error_10": "10 frames", "error_30": "30 frames"}
        for name, column in frames.items():
            line[f"error, {column}"] = _means(results, [name], 4)[name]
        simple = [result.get("mean_image") for result in results]
        line["error of a mean image"] = (
            _means(simple, ["error_30"], 4)["error_30"] if all(simple) else ""
        )
        for name, column in frames.items():
            ratios = []
            if all(of_grus):
                pairs = zip(results, of_grus, strict=True)
                ratios = [own[name] / gru[name] for own, gru in pairs]
            line[f"of the GRU's, {column}"] = mean_text(ratios, 2)
        in_use = [result.get("schemata_in_use", "") for result in results]
        line["schemata in use"] = ", ".join(str(x) for x in in_use if x)
        lines.append(line)
    # Errors, and not what is relative to them.
    errors = [x for x in lines[0] if x.startswith("error, ")]
    lines.sort(key=lambda line: (line["task"], line["batches"]))
    within = "task", "batches"
    return table(lines, common, errors, within, smaller=True)


def intuitive_physics_table(records: list[Record]) -> str:
    """Relative error of telling possible from impossible clips, by block."""
    paper = read_paper("scoff")["intuitive_physics"]
    rows, common = group_by_seed(records, ("core",))
    lines = []
    for row in _sorted(rows, "core"):
        line = {
            "core": row.settings["core"],
            "options": row.options,
            "batches": f"{row.length:,}",
            "seeds": row.seeds,
            "minutes": row.minutes,
            **_means([x.result for x in row.records], paper["columns"], 2),
        }
        if _table_name(records[0]) == "intuitive_physics":
            figures = paper["figures"].get(row.settings["core"], ())
            line["paper"] = ", ".join(map(str, figures))
        lines.append(line)
    return table(lines, common, paper["columns"], smaller=True)


def maze_table(records: list[Record]) -> str:
    """Percent of fixed mazes solved, beside a random player.

    All agents were trained in rooms of one size.
    """
    paper = read_paper("scoff")["maze"]["figures"]

    def rounded(record):
        # Training ends with an update, after other steps for each seed.
        return round(record.length, -4)

    columns = "core", "num_schemata", "dynamics", "schema_keys", "batch_size"
    columns += ("room_size",)
    rows, common = group_by_seed(records, columns, length=rounded)
    size = records[0].settings["room_size"]
    players = {
        f"{player}_{number}": f"{title}, {number} by {number}"
        for number in (size, 10)
        for player, title in (("sampled", "solved"), ("random", "random"))
    }
    lines = []
    for row in _sorted(rows, "core"):
        results = [record.result for record in row.records]
        keys = row.settings["schema_keys"] + " keys"
        line = {
            "core": row.settings["core"],
            # A GRU of equal size is as large as the SCOFF with these.
            "schemata": ""
            if row.settings["core"] == "gru"
            else f"{_schemata(row.settings)}, {keys}",
            "batch": row.settings.get("batch_size", ""),
            "options": row.options,
            "million steps": f"{row.length / 1e6:.1f}",
            "seeds": row.seeds,
            "minutes": row.minutes,
            "parameters": f"{results[0]['parameters']:,}",
        }
        for name, column in players.items():
            shares = [100 * result[name]["solved"] for result in results]
            # A random player plays alike beside each seed.
            random = f"{np.mean(shares):.1f}"
            line[column] = random if "random" in name else mean_text(shares)
        if size == 6:  # As in the paper.
            line["paper, 10 by 10"] = paper.get(row.settings["core"], "")
        lines.append(line)
    solved = [x for x in lines[0] if x.startswith(("solved", "paper"))]
    return table(lines, common, solved)


def figures(records: list[Record]) -> dict:
    """Shares of mazes solved, and errors of roll-outs."""
    mazes, balls, added = {}, {}, []
    for record in records:
        if _table_name(record) == "added_objects":
            added.append(record)
        elif _table_name(record) == "maze":
            curves = record.read_curves()
            mazes.setdefault(_memory(record), []).append(curves)
        elif _table_name(record) == "roll_outs":
            of_task = balls.setdefault(record.arguments["task"], {})
            core = record.arguments["core"]
            for name in (core, *SIMPLE) if core == "gru" else (core,):
                errors = record.result if name == core else record.result[name]
                lines = of_task.setdefault(name, [])
                lines.append(errors["error_of_frames"])
    drawn = {}
    if mazes:
        for name, curve in (
            ("maze", "solved"),
            ("maze_10_by_10", "solved_in_10_by_10"),
        ):
            drawn[name] = analysis.plot_learning_curves(mazes, curve, "steps")
    if balls:
        drawn["roll_outs"] = plot_roll_out_errors(balls)
    if added:
        rows, _ = group_by_seed(added, ("core", "num_schemata"))
        cores = [_core(row.settings) for row in rows]
        lines = {}
        for row in _sorted(rows, "core", "num_schemata"):
            name = _core(row.settings)
            if cores.count(name) > 1:
                name = f"{name} {row.options}".strip()
            lines[name] = [record.result for record in row.records]
        drawn["added_objects"] = plot_added_objects(lines)
    return drawn


def plot_added_objects(results):
    """Draws errors of next steps and of roll-outs by the number of balls.

    `results` has for each line those of each run. A line is their mean, its
    band one standard deviation to each side.
    """
    every = [result for runs in results.values() for result in runs]
    lines = dict(results)
    for name in SAME_VELOCITY:
        lines[name] = [result[name] for result in every]
    figure = new_figure(9.2, 3.6)
    panels = figure.subplots(1, 2)
    for panel, name in zip(panels, ("next_step", "roll_out"), strict=True):
        for line, runs in lines.items():
            numbers = sorted(runs[0][name], key=int)
            errors = [[run[name][x] for x in numbers] for run in runs]
            mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0)
            title = line.replace("_", " ")
            draw_line(panel, title, np.array(numbers, int), mean, spread)
        panel.set(xlabel="balls", title=ADDED_FIGURES[name])
        panel.set_ylim(bottom=0)
    panels[0].set_ylabel("error")
    label_ends(figure)
    return figure


def plot_roll_out_errors(errors):
    """Draws how errors grow over the frames of roll-outs, a panel a task.

    `errors` has for each task and line the errors of each run. A line is their
    mean, its band one standard deviation to each side.
    """
    figure = new_figure(4.4 * len(errors), 3.6)
    panels = figure.subplots(1, len(errors), sharey=True, squeeze=False)[0]

    def place(name):
        return SIMPLE.index(name) if name in SIMPLE else -1, name

    for panel, task in zip(panels, sorted(errors), strict=True):
        for name in sorted(errors[task], key=place):
            runs = errors[task][name]
            mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0)
            name = name.replace("_", " ")
            draw_line(panel, name, np.arange(1, len(mean) + 1), mean, spread)
        panel.set(title=task, xlabel="frame after the last true one")
    panels[0].set_ylabel("mean squared error")
    label_ends(figure)
    return figure


# Predictions without a model, which the run of any core also measures.
SIMPLE = "mean_image", "last_frame"

# Predictions without a model, which each run of `added_objects` measures.
SAME_VELOCITY = "same_velocity", "same_velocity_and_walls"
ADDED_FIGURES = {
    "found": "found",
    "next_step": "next step, relative",
    "next_step_of_kept": "of kept balls",
    "roll_out": "roll-out",
    "kept": "kept",
}

TABLES = {
    "added_objects": added_objects_table,
    "shuffled_objects": added_objects_table,
    "find_objects": find_objects_table,
    "follow_objects": added_objects_table,
    "adding": adding_table,
    "adding_ablation": adding_ablation_table,
    "single_ball": single_ball_table,
    "schemata": information_table,
    "ball_coordinates": information_table,
    "bouncing_balls": bouncing_balls_table,
    "roll_outs": bouncing_balls_table,
    "intuitive_physics": intuitive_physics_table,
    "scenes": intuitive_physics_table,
    "maze": maze_table,
    "small_mazes": maze_table,
}

# The settings that are columns of an `information_table`.
INFORMATION = {
    "schemata": ("dynamics", "schema_keys", "balance", "loss", "bulb_radius"),
    "ball_coordinates": ("num_axes", "cue", "units", "schema_keys", "balance"),
}

# Tables of the runs with linear networks, which are no paper's.
LINEAR = {
    "single_ball": "schemata",
    "bouncing_balls": "roll_outs",
    "intuitive_physics": "scenes",
}


# Changes of `adding_ablation` from RIMs' program and from our trials.
SIX = {
    "embedding": "linear",
    "dropout": 0.2,
    "clip": 0.1,
    "gated_messages": True,
    "divisor": 5,
    "forget_bias": 10,
}

# The library's settings of `adding_ablation`.
UNCHANGED = {
    "embedding": "relu",
    "dropout": 0,
    "clip": 0,
    "divisor": 1,
    "forget_bias": 1,
    "dynamics": "lstm",
    "units": 60,
    "num_slots": 5,
    "lengths": [20],
    "short": 20,
    "long": 80,
    "learning_rate": 0.002,
    "num_test": 500,
}


def _changes(settings):
    """The settings of `adding_ablation` that are not the library's.

    Where all or all but one of `SIX` are among them, these are one change.
    """
    changed = {
        name: value
        for name, value in settings.items()
        if name != "core" and value != UNCHANGED.get(name)
    }
    shown = []
    missing = [x for x in SIX if changed.get(x) != SIX[x]]
    if len(missing) <= 1:
        shown = ["all six" + "".join(f" but {_words(x)}" for x in missing)]
        changed = {k: v for k, v in changed.items() if SIX.get(k) != v}
    for name, value in changed.items():
        values = value if isinstance(value, list) else [value]
        text = "" if value is True else " " + " ".join(map(str, values))
        shown.append(_words(name) + text)
    return ", ".join(shown)


def _words(name):
    return name.replace("_", " ")


def _order_of_changes(row):
    """The library first, then one change, then more."""
    changes = _changes(row.settings)
    num = changes.count(",") if changes else -1
    core = ("scoff", "rims", "lstm").index(row.settings["core"])
    return num, changes, core


def _memory(record):
    """The memory of an agent of the maze, and its batch size."""
    settings = record.settings
    name = settings["core"].replace("_", " ")
    if settings["core"] == "scoff":
        name += f", {_schemata(settings)}"
    return f"{name}, {settings['batch_size']}"


def _core(settings):
    """The core of a model; of SCOFF with its schemata if these are several."""
    core, number = settings["core"], settings.get("num_schemata", 1)
    several = "scoff" in core and number > 1
    return f"{core}, {number} schemata" if several else core


def _schemata(settings):
    """Number and kind of the schemata of a SCOFF, such as "4 LSTMs"."""
    number, kind = settings["num_schemata"], settings["dynamics"].upper()
    return f"{number} {kind}{'s' * (number > 1)}"


def _table_name(record):
    """Name of the table that has a run."""
    if record.arguments.get("networks") == "linear":
        return LINEAR[record.experiment]
    if record.experiment == "goto_object_maze":
        return "maze" if record.settings["room_size"] == 6 else "small_mazes"
    if record.arguments.get("shuffle"):
        return "shuffled_objects"
    return record.experiment


def _sorted(rows: list[Row], *names):
    return sorted(
        rows,
        key=lambda row: (
            row.options,
            *(row.settings.get(name, 0) for name in names),
            row.length,
        ),
    )


def _key_of_gru(row):
    """The settings and length that a row shares with its GRU."""
    settings = dict(row.settings)
    # The settings that may differ between cores.
    names = "core", "num_schemata", "gated_messages", "learning_rate", "units"
    for name in names:
        settings.pop(name, None)
    return str(sorted(settings.items())), row.length


def _means(results, names, digits):
    return {
        name: mean_text([result[name] for result in results], digits)
        for name in names
    }
