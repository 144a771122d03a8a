"""Adds finished runs to `docs/results/runs.json` and `curves.zip`.

Options that say where files lie, and whether to show the progress, are left out
of the configuration: they belong to a machine and not to the result. A run
keeps the name of its folder. One that is there already is left as it is;
another one of the same name is refused. Then `python -m experiments.tables`
writes the tables again.
"""

import argparse
import dataclasses
import pathlib
import shlex

from experiments.records import MACHINE_OPTIONS
from experiments.records import PUBLISHED
from experiments.records import Record
from experiments.records import read_runs
from experiments.records import write_runs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "folder", type=pathlib.Path, help="a run's folder, or one of runs"
    )
    args = parser.parse_args()
    try:
        added = add_runs(args.folder, PUBLISHED)
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(error) from error
    for record in added:
        print(f"Added: {record.name}")
    print(
        f"{len(added)} runs added to {PUBLISHED / 'runs.json'}. "
        "Next: python -m experiments.tables"
    )


def add_runs(folder: pathlib.Path, directory: pathlib.Path) -> list[Record]:
    """Adds finished runs to those in `directory`; returns those added."""
    known = {record.name: record for record in read_runs(directory)}
    added = []
    for record in map(without_paths, read_runs(folder)):
        if record.name not in known:
            added.append(record)
        elif record != known[record.name]:
            raise ValueError(
                f"There is another run {record.name} in "
                f"{directory / 'runs.json'}. Rename the folder of the new one"
            )
    if added:
        write_runs([*known.values(), *added], directory)
    return added


def without_paths(record: Record) -> Record:
    """The run without the options of `MACHINE_OPTIONS`."""
    config = _with_short_command(record.config)
    config["arguments"] = {
        k: v for k, v in record.arguments.items() if k not in MACHINE_OPTIONS
    }
    if "continued" in config:
        later = config["continued"]
        config["continued"] = [_with_short_command(start) for start in later]
    return dataclasses.replace(record, config=config)


def _with_short_command(config):
    """A copy whose `command`, if it has one, lacks `MACHINE_OPTIONS`."""
    if not config.get("command"):
        return dict(config)
    words = shlex.split(config["command"])
    flags = {f"--{name.replace('_', '-')}" for name in MACHINE_OPTIONS}
    # `--directory runs` is two words, and `--directory=runs` is one.
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if before not in flags and word.partition("=")[0] not in flags
    ]
    return {**config, "command": shlex.join(kept)}


if __name__ == "__main__":
    main()
