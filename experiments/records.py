"""Finished runs, as records of their configurations and results.

Runs come from a folder in which the experiments left theirs, or from
`docs/results/`, where `runs.json` and `curves.zip` hold the published ones.
Which runs belong to one row of a table follows from their arguments alone.
"""

import dataclasses
import io
import json
import pathlib
import zipfile
from collections.abc import Callable
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_relational.file_io import read_json

PUBLISHED = pathlib.Path(__file__).parents[1] / "docs" / "results"
PAPERS = pathlib.Path(__file__).with_name("papers.json")

# Files from another run of the same seed: their digests are no settings.
OF_A_SEED = ("detector", "grown_from")
# Options that belong to a machine, and not to a result.
MACHINE_OPTIONS = ("directory", "export", "ray", "verbose", *OF_A_SEED)
# Arguments that do not change the training from a seed. The length of a run is
# read from its result: there a run that was continued has its last length.
NOT_SETTINGS = {
    *MACHINE_OPTIONS,
    "seed",
    "resume",
    "num_batches",
    "num_steps",
}
# How runs on videos were before there was a choice.
PAPERS_VIDEOS = {
    "networks": "convolutional",
    "image_size": 64,
    "loss": "binary_crossentropy",
}
# Options that an experiment got after runs of it had been published, with
# the values of those runs.
ADDED_LATER = {
    "bouncing_balls": PAPERS_VIDEOS | {"units": 100},
    "goto_object_maze": {
        "num_schemata": 4,
        "schema_keys": "shared",
        "dynamics": "lstm",
        "key_rate": 1.0,
        "room_size": 6,
    },
    "intuitive_physics": PAPERS_VIDEOS
    | {"units": 85, "num_object_files": 6, "num_frames": 50},
    "single_ball": PAPERS_VIDEOS
    | {"schema_keys": "shared", "balance": 0.0, "bulb_radius": 2},
}


@dataclasses.dataclass(frozen=True)
class Record:
    """One finished run."""

    name: str  # Of the run's folder.
    config: dict  # Content of `config.json`: arguments, machine and time.
    result: dict  # Content of `result.json`.
    curves: dict[str, str]  # Text of each `curves.csv`, by its path.

    @property
    def experiment(self) -> str:
        return self.config["experiment"]

    @property
    def arguments(self) -> dict:
        return self.config["arguments"]

    @property
    def length(self) -> int:
        """Number of batches, steps or epochs that the run was trained for."""
        for unit in ("epochs", "batches", "steps"):
            if unit in self.result:
                return self.result[unit]
        raise ValueError(
            f"The result of the run {self.name} should say how long it was, "
            "in batches, steps or epochs. Received: "
            f"{', '.join(self.result)}"
        )

    @property
    def settings(self) -> dict:
        """The arguments that all seeds of one setting share.

        The digest of a file stands in place of its path, or `True`, if each
        seed has another. An option that is off or was not given is left out: an
        older version may not have had it.
        """
        before = ADDED_LATER.get(self.experiment, {})
        data = self.config.get("data") or {}
        files = {
            name: True if name in OF_A_SEED else digest
            for name, digest in data.items()
            if digest is not None
        }
        arguments = {
            name: value
            for name, value in (before | self.arguments).items()
            if name not in NOT_SETTINGS
            and value is not None
            and value is not False
        }
        return arguments | files

    def read_curves(self, file: str = "curves.csv") -> np.ndarray:
        """Learning curves, as a structured array with one row a point."""
        text = io.StringIO(self.curves[file])
        return np.genfromtxt(text, delimiter=",", names=True, ndmin=1)


def read_runs(directory: pathlib.Path | str = PUBLISHED) -> list[Record]:
    """Reads the finished runs, sorted by name.

    The folder holds runs at any depth, or a `runs.json` and a `curves.zip`.
    """
    directory = pathlib.Path(directory)
    if (directory / "runs.json").exists():
        return _read_published(directory)
    records = {}
    for path in sorted(directory.glob("**/result.json")):
        folder = path.parent
        if not (folder / "config.json").exists():
            continue
        if folder.name in records:
            raise ValueError(
                f"There are two runs {folder.name} in {directory}. Rename one "
                "of them, or give the folder that holds the other"
            )
        records[folder.name] = _checked(
            folder.name,
            read_json(folder / "config.json"),
            read_json(path),
            {
                file.relative_to(folder).as_posix(): file.read_text("utf-8")
                for file in sorted(folder.glob("**/curves.csv"))
            },
        )
    if not records:
        raise FileNotFoundError(
            f"There are no finished runs in {directory}. A run leaves a "
            "config.json when it starts and a result.json when it has finished"
        )
    return [records[name] for name in sorted(records)]


def write_runs(records: Sequence[Record], directory: pathlib.Path) -> None:
    """Writes `runs.json` and `curves.zip`: the same bytes for the same runs."""
    records = sorted(records, key=lambda record: record.name)
    runs = [
        {"name": record.name, "config": record.config, "result": record.result}
        for record in records
    ]
    text = json.dumps({"format": 1, "runs": runs}, indent=1, ensure_ascii=False)
    (directory / "runs.json").write_text(text + "\n", "utf-8")
    with zipfile.ZipFile(directory / "curves.zip", "w") as archive:
        for record in records:
            for file, curves in sorted(record.curves.items()):
                # Without a date: ZipInfo's own is the first of 1980.
                member = zipfile.ZipInfo(f"{record.name}/{file}")
                member.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(member, curves, compresslevel=9)


def read_paper(name: str) -> dict:
    """Figures of a paper, by its name in `experiments/papers.json`."""
    return read_json(PAPERS)[name]


class Row(NamedTuple):
    """Runs of one setting and length, one a seed."""

    settings: dict  # That all of them share.
    options: str  # Settings without a column that differ between rows.
    length: int  # Number of batches, steps or epochs.
    records: list[Record]  # Sorted by seed.

    @property
    def seeds(self) -> str:
        return ", ".join(str(x.arguments.get("seed")) for x in self.records)

    @property
    def minutes(self) -> str:
        """The mean over the runs."""
        minutes = [x.result["minutes"] for x in self.records]
        return f"{np.mean(minutes):.1f}"


def group_by_seed(
    records: Sequence[Record],
    columns: Sequence[str],
    apart: Sequence[str] = (),
    length: Callable[[Record], int] = lambda record: record.length,
) -> tuple[list[Row], str]:
    """Joins runs of one experiment that differ in nothing but the seed.

    Two runs of one row may differ in the arguments `apart`, too. Returns the
    rows, and the text of the settings that all rows share and that are not
    among `columns`.
    """
    groups = {}
    for record in records:
        settings = {k: v for k, v in record.settings.items() if k not in apart}
        key = json.dumps(settings, sort_keys=True), length(record)
        of_key = groups.setdefault(key, {})
        seed = record.arguments.get("seed")
        if seed in of_key:
            raise ValueError(
                f"There are two runs of one setting, length and seed: "
                f"{of_key[seed].name} and {record.name}. Leave one of them out"
            )
        of_key[seed] = record
    settings = [json.loads(key) for key, _ in groups]
    names = sorted({x for s in settings for x in s} - {*columns})
    values = {name: [s.get(name) for s in settings] for name in names}
    shared = [x for x in names if all(v == values[x][0] for v in values[x])]
    rows = [
        Row(
            own,
            _text(own, [x for x in names if x not in shared]),
            number,
            [of_key[seed] for seed in sorted(of_key, key=lambda x: x or 0)],
        )
        for own, ((_, number), of_key) in zip(
            settings, groups.items(), strict=True
        )
    ]
    return rows, _text(settings[0], shared) if settings else ""


def table(
    rows: Sequence[dict],
    common: str = "",
    figures: Sequence[str] = (),
    within: Sequence[str] = (),
    smaller: bool = False,
) -> str:
    """A Markdown table of dictionaries, below the settings that all rows share.

    A column is left out if all of its cells are empty. One whose cells are all
    alike is one of the shared settings.

    Args:
        rows: Dictionaries with the same keys.
        common: Text of the settings that all rows share.
        figures: Names of the columns to compare. Their cells are shaded, and
            the best is bold. The paper's are never bold: those of rows whose
            first cell, and of columns whose name, has "paper" in it.
        within: Names of the columns that rows share which are compared.
        smaller: Whether a smaller figure is better.
    """
    columns = [x for x in rows[0] if any(row[x] != "" for row in rows)]
    alike = [
        x
        for x in columns
        if x not in figures and all(row[x] == rows[0][x] for row in rows)
    ]
    if len(rows) == 1:
        alike = []
    settings = [f"{x} {rows[0][x]}" for x in alike] + [common] * bool(common)
    columns = [x for x in columns if x not in alike]
    shown = [{x: str(row[x]) for x in columns} for row in rows]
    for x in [x for x in figures if x in columns]:
        best = _best(rows, x, within, smaller)
        shades = _shades(rows, x, figures, smaller)
        for row, is_best, shade in zip(shown, best, shades, strict=True):
            row[x] = f"**{row[x]}**" if is_best else row[x]
            if shade:
                row[x] = f'<span class="shade-{shade}">{row[x]}</span>'
    cells = [columns, *([row[x] for x in columns] for row in shown)]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    lines.insert(1, len(columns) * "|---" + "|")
    text = "\n".join(lines)
    return f"All rows: {'; '.join(settings)}.\n\n{text}" if settings else text


def mean_text(
    values: Sequence[float], digits: int = 1, standard_error: bool = False
) -> str:
    """A mean and its standard deviation, or error, over seeds: `"99.0 ± 0.7"`.

    With one value there is no spread, and with none the text is empty.
    """
    if not values:
        return ""
    text = f"{np.mean(values):.{digits}f}"
    if len(values) < 2:
        return text
    spread = np.std(values, ddof=1)
    if standard_error:
        spread /= len(values) ** 0.5
    return f"{text} ± {spread:.{digits}f}"


def _number(cell):
    """The number that a cell begins with, such as `"1,000 ± 10"`, or None."""
    try:
        return float(str(cell).split()[0].replace(",", ""))
    except (IndexError, ValueError):
        return None


def _best(rows, column, within, smaller):
    """For each row, whether its figure is the best, and another is not."""
    sign = -1 if smaller else 1
    groups, ours = {}, []
    for row in rows:
        key, number = tuple(row[x] for x in within), _number(row[column])
        if "paper" in f"{column} {next(iter(row.values()))}":
            number = None
        ours.append((key, number))
        if number is not None:
            groups.setdefault(key, []).append(sign * number)
    return [
        number is not None
        and min(groups[key]) < max(groups[key]) == sign * number
        for key, number in ours
    ]


def _shades(rows, column, figures, smaller):
    """A number from 0 to 6 for each row: the better, the darker.

    An error of ten times the best has 0. So has the least share of the table,
    or a half, whichever is less.
    """
    numbers = [_number(row[column]) for row in rows]
    if smaller:
        tiny = 1e-9  # An error of 0 has no logarithm.
        least = max(tiny, min(x for x in numbers if x is not None))

        def place(x):
            return 1 - np.log10(max(tiny, x) / least)

    else:
        every = [_number(row[x]) for x in figures for row in rows]
        every = [x for x in every if x is not None]
        high = 100 if max(every) > 1 else 1
        low = min(high / 2, *every)

        def place(x):
            return (x - low) / (high - low)

    return [
        0 if x is None else round(6 * min(max(place(x), 0), 1)) for x in numbers
    ]


def _read_published(directory):
    content = read_json(directory / "runs.json")
    if not isinstance(content, dict) or not isinstance(
        content.get("runs"), list
    ):
        raise ValueError(
            f"{directory / 'runs.json'} should hold a dictionary with a list "
            f"'runs'. Received: {str(content)[:80]}"
        )
    curves = {}
    try:
        with zipfile.ZipFile(directory / "curves.zip") as archive:
            for member in archive.namelist():
                run, _, file = member.partition("/")
                curves.setdefault(run, {})[file] = archive.read(member).decode()
    except zipfile.BadZipFile as error:
        raise ValueError(
            f"{directory / 'curves.zip'} cannot be read: {error}. Take an "
            "intact one from the repository"
        ) from error
    return [
        _checked(
            name=run["name"],
            config=run["config"],
            result=run["result"],
            curves=curves.get(run["name"], {}),
        )
        for run in content["runs"]
    ]


def _checked(name, config, result, curves):
    for file, content, needed in (
        ("config.json", config, ("experiment", "arguments")),
        ("result.json", result, ()),
    ):
        if not isinstance(content, dict) or not {*needed} <= content.keys():
            raise ValueError(
                f"The {file} of the run {name} should hold a dictionary"
                f"{' with ' if needed else ''}{' and '.join(needed)}. "
                f"Received: {str(content)[:80]}"
            )
    return Record(name, config, result, curves)


def _text(settings, names):
    """`"confidence, epochs=300"`."""
    found = []
    for name in names:
        value = settings.get(name)
        if value is True:
            found.append(name)
        elif value is not None:
            values = value if isinstance(value, list) else [value]
            found.append(f"{name}={' '.join(map(str, values))}")
    return ", ".join(found)
