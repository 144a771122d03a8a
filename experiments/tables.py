"""Writes the tables in `docs/results/` from the runs that lie there.

A page has a table between `<!-- table: NAME -->` and `<!-- end -->`. With
--check nothing is written, and a page that differs is an error. With --runs
the tables of your own runs are printed instead.
"""

import argparse
import json
import pathlib
import re
import sys

from benchmarks import launches
from experiments.context_normalization import results as context_normalization
from experiments.esbn import results as esbn
from experiments.few_examples import results as few_examples
from experiments.predinet import results as predinet
from experiments.records import PUBLISHED
from experiments.records import Record
from experiments.records import read_runs
from experiments.scoff import results as scoff
from experiments.two_simplicial import results as two_simplicial

PAPERS = (
    predinet,
    two_simplicial,
    context_normalization,
    esbn,
    scoff,
    few_examples,
)
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--check", action="store_true", help="write nothing")
    runs = "print the tables of the runs in this folder"
    modes.add_argument("--runs", type=pathlib.Path, metavar="FOLDER", help=runs)
    args = parser.parse_args()
    if args.runs:
        try:
            tables = all_tables(read_runs(args.runs))
        except (FileNotFoundError, ValueError) as error:
            raise SystemExit(error) from error
        for name, table in tables.items():
            print(f"## {name}\n\n{table}\n")
        return
    changed = update_pages(PUBLISHED, write=not args.check)
    for path in changed:
        print(f"{path} {'differs' if args.check else 'written'}")
    if changed and args.check:
        sys.exit(
            "Run `python -m experiments.tables` to write the tables of these "
            "pages again."
        )


def all_tables(records: list[Record]) -> dict[str, str]:
    """Tables of these runs, from name to Markdown text."""
    found = {}
    for paper in PAPERS:
        found |= paper.tables(records)
    return found


def update_pages(
    directory: pathlib.Path, write: bool = True
) -> list[pathlib.Path]:
    """Brings the tables of the pages in a folder up to date.

    The folder has `runs.json`, `curves.zip` and `launches.json`, which
    `benchmarks.launches` writes. Returns the pages that differed.
    """
    tables = all_tables(read_runs(directory))
    counted = json.loads((directory / "launches.json").read_text())
    tables["launches"] = launches.table(counted["rows"])
    changed, shown = [], set()
    for path in sorted(directory.glob("*.md")):
        before = path.read_text("utf-8")
        names = {name for _, name, _ in MARKED.findall(before)}
        if unknown := names - tables.keys():
            raise ValueError(
                f"{path} has tables of which there are no runs: "
                f"{', '.join(sorted(unknown))}. There are runs of: "
                f"{', '.join(sorted(tables))}"
            )
        shown |= names
        after = MARKED.sub(
            lambda match: f"{match[1]}\n{tables[match[2]]}\n\n{match[3]}",
            before,
        )
        if after != before:
            changed.append(path)
            if write:
                path.write_text(after, "utf-8")
    if missing := tables.keys() - shown:
        name = min(missing)
        raise ValueError(
            f"No page in {directory} shows these tables of its runs: "
            f"{', '.join(sorted(missing))}. Add two lines to one, "
            f"'<!-- table: {name} -->' and '<!-- end -->'"
        )
    return changed


if __name__ == "__main__":
    main()
