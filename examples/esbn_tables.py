"""Tables of finished runs of abstract rules, as Tables 8 to 13 of their paper.

Sinha et al., 2020, A Memory-Augmented Neural Network Model of Abstract Rule
Learning. Reads what esbn_rules.py left in a folder, and prints Markdown tables
in percent, mean ± standard error over the seeds, as the paper has them. Its
figures, of 10 networks, stand beside.
"""

import argparse
import collections
import pathlib
import re

from keras_relational import analysis

RUN = (
    r"(distribution_of_three|identity_rules|relational_match_to_sample"
    r"|same_different)-(pretrained|end_to_end)-(image|vector)"
    r"-(multiple_choice|generative)-(esbn|ntm|lstm)-M(\d+)(.*)-seed(\d+)"
)
WITHHELD = (0, 50, 85, 95, 97)
# Training and test accuracy for each number of fillers withheld.
PAPER = {
    ("pretrained", "vector", "generative"): {
        "lstm": ((100, 100, 100, 100, 77), (99, 100, 60, 2, 0)),
        "ntm": ((100, 100, 100, 98, 93), (100, 100, 70, 3, 0)),
        "esbn": ((99, 99, 99, 100, 100), (98, 98, 98, 97, 96)),
    },
    ("pretrained", "vector", "multiple_choice"): {
        "lstm": ((100, 100, 100, 100), (98, 95, 80, 29)),
        "ntm": ((100, 100, 100, 100), (99, 97, 85, 28)),
        "esbn": ((100, 100, 100, 100), (99, 100, 99, 97)),
    },
    ("pretrained", "image", "generative"): {
        "lstm": ((100, 100, 100, 100, 100), (100, 14, 1, 0, 0)),
        "ntm": ((100, 100, 100, 100, 100), (100, 22, 2, 0, 0)),
        "esbn": ((99, 100, 100, 100, 100), (99, 99, 99, 99, 99)),
    },
    ("pretrained", "image", "multiple_choice"): {
        "lstm": ((100, 100, 100, 100), (93, 82, 67, 28)),
        "ntm": ((93, 100, 100, 91), (57, 86, 66, 26)),
        "esbn": ((100, 100, 100, 100), (100, 99, 99, 99)),
    },
    ("end_to_end", "image", "generative"): {
        "lstm": ((100, 99, 100, 100, 100), (100, 0, 0, 0, 0)),
        "ntm": ((100, 99, 100, 100, 100), (100, 0, 0, 0, 0)),
        "esbn": ((100, 100, 100, 100, 100), (100, 7, 1, 0, 1)),
    },
    ("end_to_end", "image", "multiple_choice"): {
        "lstm": ((99, 100, 100, 100), (93, 85, 70, 28)),
        "ntm": ((98, 99, 100, 100), (95, 91, 82, 28)),
        "esbn": ((100, 100, 100, 100), (100, 100, 100, 99)),
    },
}
COLUMNS = (
    *("network", "withheld", "options", "batches", "seeds", "training"),
    *("test", "paper: training", "test", "minutes a run"),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--directory", type=pathlib.Path, default="runs", help="of the runs"
    )
    args = parser.parse_args()
    tables = collections.defaultdict(lambda: collections.defaultdict(list))
    for _, result in analysis.finished_runs(args.directory):
        if match := re.fullmatch(RUN, result["run"]):
            *table, network, withheld, options, seed = match.groups()
            options = re.sub(r"-(?=[a-z])", ", ", options).removeprefix(", ")
            row = network, int(withheld), options, result["batches"]
            runs = tables[tuple(table)][row]
            analysis.add_run(runs, seed, (result,), result["run"])
    for (task, *kind), rows in sorted(tables.items()):
        paper = PAPER.get(tuple(kind), {})
        if task != "distribution_of_three":
            paper = {}
        lines = [cells(row, runs, paper) for row, runs in sorted(rows.items())]
        table = analysis.markdown_table(COLUMNS, lines)
        print(f"\n{', '.join([task, *kind])}\n\n{table}")


def cells(row, runs, paper):
    network, withheld, options, batches = row
    seeds, results = zip(*sorted(runs, key=str), strict=True)
    published = "", ""
    # Fewer epochs of the same; how many batches they are stands beside.
    is_papers = re.fullmatch(r"(epochs\d+)?", options)
    if network in paper and withheld in WITHHELD and is_papers:
        column = WITHHELD.index(withheld)
        published = [shares[column] for shares in paper[network]]
    return (
        network,
        withheld,
        options,
        f"{batches:,}",
        ", ".join(seeds),
        *(
            analysis.mean_text(
                [100 * result[name] for result in results], standard_error=True
            )
            for name in ("train", "test")
        ),
        *published,
        ", ".join(str(result["minutes"]) for result in results),
    )


if __name__ == "__main__":
    main()
