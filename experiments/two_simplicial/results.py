"""Agents on BoxWorld and bridge BoxWorld.

Clift et al., 2019, *Logic and the 2-Simplicial Transformer*. What each agent
solves of fixed puzzles, beside a random player, and Fig. 6.
"""

from experiments.records import Record
from experiments.records import group_by_seed
from experiments.records import table
from keras_relational import analysis
from keras_relational.analysis.learning_curves import draw_curves
from keras_relational.analysis.learning_curves import label_of
from keras_relational.analysis.plotting import label_ends
from keras_relational.analysis.plotting import new_figure

# Arguments of the smallest puzzle, one box on 3 by 6 tiles: the defaults.
SMALLEST = {
    "world": ("box",),
    "rows": (None, 3),
    "columns": (None, 6),
    "solution_length": (None, [1, 1]),
    "num_distractors": (None, [0, 0]),
}
TAUGHT = "boxworld_teacher", "boxworld_positions"
SOLVED = "solved, sampled", "solved, greedy"


# The settings of a puzzle and of the network that plays it.
AGENTS = (
    "world",
    "rows",
    "columns",
    "solution_length",
    "num_distractors",
    "network",
)


def tables(records: list[Record]) -> dict[str, str]:
    """Tables of these runs, by name."""
    agents = [x for x in records if x.experiment == "boxworld_impala"]
    chosen = {
        "boxworld_smallest": [x for x in agents if _is_smallest(x)],
        "boxworld_larger": [x for x in agents if not _is_smallest(x)],
    }
    found = {name: boxworld_table(x) for name, x in chosen.items() if x}
    taught: dict = {}
    for record in records:
        if record.experiment in TAUGHT:
            size = _puzzles(record.arguments).replace(" ", "_")
            taught.setdefault(f"boxworld_teacher_{size}", []).append(record)
    return found | {name: teacher_table(x) for name, x in taught.items()}


def boxworld_table(records: list[Record]) -> str:
    """One row a run: agents of two seeds never make the same steps."""
    columns = (
        *AGENTS,
        "num_iterations",
        "preset",
    )
    # These options only add measurements. The training is the same.
    apart = ("shortest", "by_level")
    rows, common = group_by_seed(records, columns, apart)
    lines = []
    for row in sorted(rows, key=_place):
        for record in row.records:
            result = record.result
            line = {
                "puzzles": _puzzles(record.arguments)
                + _boxes(record.arguments),
                "network": record.arguments["network"],
                "blocks": record.arguments["num_iterations"],
                "begun with": _preset(record.arguments),
                "options": row.options,
                "seed": record.arguments["seed"],
                "million steps": f"{record.length / 1e6:.1f}",
                "minutes": result["minutes"],
            }
            for player in ("sampled", "greedy", "random"):
                line[f"solved, {player}"] = _solved(result[player])
            for player in ("sampled", "greedy"):
                line[f"length, {player}"] = f"{result[player]['length']:.1f}"
            shortest = result.get("shortest_length")
            line["shortest"] = "" if shortest is None else f"{shortest:.1f}"
            lines.append(line)
    return table(lines, common, SOLVED, within=("puzzles", "begun with"))


def teacher_table(records: list[Record]) -> str:
    """One row a run with a teacher, or without one for comparison."""
    columns = (
        *AGENTS,
        "teacher_share",
        "teacher_moves",
        "num_taught",
        "curriculum",
        "preset",
        "num_batches",
        "attention_weight",
    )
    rows, common = group_by_seed(records, columns)
    lines = []
    for row in sorted(rows, key=_taught_place):
        for record in row.records:
            result, arguments = record.result, record.arguments
            teacher, steps = result["teacher"], record.length
            if record.experiment == "boxworld_positions":
                steps *= arguments["batch_size"]
            line = {
                "puzzles": _puzzles(arguments) + _boxes(arguments),
                "network": arguments["network"],
                "begun with": _preset(arguments),
                "teacher": _teacher(arguments),
                "options": row.options,
                "seed": arguments["seed"],
                "million steps": f"{steps / 1e6:.1f}",
                "minutes": result["minutes"],
            }
            for player in ("sampled", "greedy", "random"):
                line[f"solved, {player}"] = _solved(result[player])
            line["length, sampled"] = f"{result['sampled']['length']:.1f}"
            line["length, teacher"] = f"{teacher['length']:.1f}"
            for name in ("withheld", "longer"):
                elsewhere = result.get(name, {})
                line[f"solved, {name}"] = _solved(elsewhere.get("sampled"))
            lines.append(line)
    return table(lines, common, SOLVED)


def figures(records: list[Record]) -> dict:
    """Fig. 6, and the share that taught agents solve alone, over steps."""
    drawn = {}
    smallest: dict = {}
    for record in records:
        if record.experiment == "boxworld_impala" and _is_smallest(record):
            network = record.arguments["network"]
            smallest.setdefault(network, []).append(record.read_curves())
    if smallest:
        drawn["boxworld_3x6"] = analysis.plot_learning_curves(
            smallest, "solved", "steps"
        )
    taught: dict = {}
    lessons = [x for x in records if x.experiment == "boxworld_teacher"]
    # Of a run that was continued the longer one counts.
    for record in sorted(lessons, key=lambda x: x.result["steps"]):
        seeds = taught.setdefault(_name_of_lesson(record.arguments), {})
        seeds[record.arguments["seed"]] = record.read_curves()
    if taught:
        curves = {name: list(seeds.values()) for name, seeds in taught.items()}
        drawn["boxworld_teacher"] = plot_lessons(curves)
    return drawn


def plot_lessons(curves):
    """Draws a panel of agents on bridge puzzles, and one of the others."""
    curve, start = "solved_alone", "bridge, "
    by_end = sorted(curves, key=lambda name: -curves[name][0][curve][-1])
    panels_names = (
        [name for name in by_end if name.startswith(start)],
        [name for name in by_end if not name.startswith(start)],
    )
    figure = new_figure(7.2, 5.6)
    panels = figure.subplots(2, height_ratios=(3, 2))
    for panel, names in zip(panels, panels_names, strict=True):
        lines = {name.removeprefix(start): curves[name] for name in names}
        draw_curves(panel, lines, curve, "steps")
        panel.set_ylabel(label_of(curve))
    panels[0].set(title="bridge puzzles", xlabel="")
    panels[1].set_title("other puzzles")
    label_ends(figure)
    return figure


def _name_of_lesson(arguments):
    begun = _begun_with(arguments) or _short_teacher(arguments)
    name = f"{_puzzles(arguments)}, {arguments['network']}, {begun}"
    withheld = arguments.get("withhold_pairs")
    return name + (", pairs withheld" if withheld else "")


def _solved(played):
    """`"99.9 %"`, or nothing if a player has not played."""
    return f"{100 * played['solved']:.1f} %" if played else ""


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


def _boxes(arguments):
    """`", 1 to 5 boxes"`, and how many branches."""
    length, branches = (
        arguments.get(name) for name in ("solution_length", "num_distractors")
    )
    text = f", {length[0]} to {length[1]} boxes" if length else ""
    if branches:
        text += f", {branches[0]} to {branches[1]} branches"
    return text


def _teacher(arguments):
    """`"0.9 of the moves, 0.5 of the loss, falling for 2,000,000 steps"`."""
    if "attention_weight" in arguments:
        return "single positions, with hints"
    text = "none"
    if share := arguments.get("teacher_share"):
        text = f"{arguments['teacher_moves']} of the moves"
        text += f", {share} of the loss" if share < 1 else ""
        if steps := arguments.get("num_taught"):
            text += f", falling for {steps:,} steps"
    return text + (", curriculum" if arguments.get("curriculum") else "")


def _short_teacher(arguments):
    """The teaching of a run for a legend: the teacher's share of the moves."""
    text = "no teacher"
    if arguments.get("teacher_share"):
        text = f"teacher {arguments['teacher_moves']}"
        text += ", then none" if arguments.get("num_taught") else ""
    return text + (", curriculum" if arguments.get("curriculum") else "")


def _preset(arguments):
    """`"3x18"` for an agent that began as `boxworld_3x18_relational`."""
    name = (arguments.get("preset") or "").removeprefix("boxworld_")
    return name.removesuffix("_" + arguments["network"])


def _begun_with(arguments):
    name = _preset(arguments)
    return name and f"from {name}"


def _taught_place(row):
    settings = row.settings
    size = settings.get("rows") or 0, settings.get("columns") or 0
    box = settings["world"] == "box"
    kind = settings["network"], _teacher(settings), row.options
    seed = row.records[0].arguments["seed"]
    length = str(settings.get("solution_length"))
    return box, size, length, *kind, seed, row.length


def _place(row):
    network = row.settings["network"], row.settings["num_iterations"]
    size = row.settings.get("rows") or 0, row.settings.get("columns") or 0
    box = row.settings["world"] == "box"
    seed = row.records[0].arguments["seed"]
    return box, -size[0], size[1], row.options, network, seed, row.length
