"""Tables of finished runs of extrapolation, as Tables 1 to 4 of their paper.

Webb et al., 2020, Learning Representations that Support Extrapolation. Reads
what vaec.py, visual_analogies.py and dynamic_objects.py left in a folder, and
prints Markdown tables, mean ± standard deviation over the seeds, in percent
but for the errors of predicted images. The paper's figures stand below.
"""

import argparse
import collections
import pathlib
import re

import numpy as np

from keras_relational import analysis

VAEC = r"(translation|scale)-(\w+)-(\d+)px(-published\w*|)-seed(\d+)"
VISUAL_ANALOGIES = (
    r"(\w+)-(contrasting|random|published\w*)-(\d+)px(|-.+)-seed(\d+)"
)
PAPER = {
    "translation": {
        "temporal_context": (99.1, 77.0, 73.2, 72.5, 71.7, 61.6),
        "sub_batch": (83.4, 56.1, 51.7, 50.5, 47.0, 46.3),
        "sliding_window": (68.2, 44.8, 35.4, 34.8, 36.7, 36.6),
        "temporal_and_batch": (98.0, 42.5, 33.6, 37.0, 36.7, 36.5),
        "layer_recurrent": (100.0, 52.1, 44.5, 35.7, 27.4, 23.3),
        "misaligned": (55.3, 41.5, 35.4, 33.3, 31.6, 31.6),
        "batch": (99.5, 29.0, 26.8, 28.0, 29.0, 30.8),
        "batch_dropout": (99.0, 27.5, 22.6, 24.4, 26.0, 26.8),
        "layer": (99.0, 25.2, 22.9, 22.4, 21.6, 17.2),
        "none": (94.8, 23.9, 23.4, 19.1, 17.8, 16.7),
        "batch_training_statistics": (99.9, 33.5, 19.1, 10.2, 13.5, 6.3),
    },
    "scale": {
        "temporal_context": (98.8, 77.8, 61.2, 54.4, 51.2, 48.7),
        "layer_recurrent": (100.0, 44.1, 28.1, 23.4, 20.2, 18.3),
        "batch_training_statistics": (99.9, 40.2, 25.7, 21.2, 21.3, 19.9),
        "batch": (99.2, 18.3, 17.7, 18.4, 20.1, 21.2),
        "none": (94.4, 20.9, 17.6, 17.6, 16.7, 16.7),
    },
    "visual_analogies": {
        "source_target": 74.2,
        "temporal_context": 67.6,
        "batch": 66.1,
        "none": 62,
    },
    "dynamic_objects": {
        "temporal_context": 0.0056,
        "batch": 0.0095,
        "batch_training_statistics": 0.0507,
        "none": 0.0675,
    },
}
DYNAMIC_OBJECTS = rf"({'|'.join(PAPER['dynamic_objects'])})(|-.+)-seed(\d+)"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--directory", type=pathlib.Path, default="runs", help="of the runs"
    )
    args = parser.parse_args()
    tables = collections.defaultdict(lambda: collections.defaultdict(list))
    for _, result in analysis.finished_runs(args.directory):
        name = result["run"]
        if match := re.fullmatch(VAEC, name):
            regime, row, size, published, seed = match.groups()
            title = f"{regime}, {size} pixels{published}"
            kind = (regime, title.replace("-", ", "))
            values = [100 * region["all"] for region in result["regions"]]
            values.append(np.mean(values[1:]))
        elif match := re.fullmatch(VISUAL_ANALOGIES, name):
            row, candidates, size, options, seed = match.groups()
            title = f"visual analogies, {candidates}, {size} pixels"
            title += options.replace("-", ", ")
            kind = ("visual_analogies", title)
            values = [100 * result["test"]]
            if "near" in result:
                values.append(100 * result["near"])
        elif match := re.fullmatch(DYNAMIC_OBJECTS, name):
            row, options, seed = match.groups()
            title = "dynamic objects" + options.replace("-", ", ")
            kind = ("dynamic_objects", title)
            values = [np.mean(result["errors"])]
        else:
            continue
        runs = tables[kind][result["batches"], row]
        analysis.add_run(runs, seed, (values, result["minutes"]), name)
    for (paper, title), rows in sorted(tables.items()):
        print_table(title, rows, PAPER[paper], COLUMNS[paper])


REGIONS = [*(f"{i}" for i in range(1, 7)), "2 to 6"]
COLUMNS = {
    "translation": REGIONS,
    "scale": REGIONS,
    "visual_analogies": ["test", "familiar values"],
    "dynamic_objects": ["error"],
}


def print_table(title, rows, paper, names):
    some_run = next(iter(rows.values()))[0]
    names = names[: len(some_run[1])]
    digits = 4 if names == ["error"] else 1
    head = [title, "batches", "seeds", *names, "paper", "minutes a run"]
    order, lines = list(paper), []

    def place(item):
        (batches, row), _ = item
        # What the paper does not have stands at the end.
        return batches, order.index(row) if row in order else len(order), row

    for (batches, row), runs in sorted(rows.items(), key=place):
        seeds, values, minutes = zip(*runs, strict=True)
        published = np.atleast_1d(paper.get(row, ())).tolist()
        cells = [
            row,
            f"{batches:,}",
            ", ".join(seeds),
            *(analysis.mean_text(x, digits) for x in zip(*values, strict=True)),
            ", ".join(map(str, published)),
            ", ".join(map(str, minutes)),
        ]
        lines.append(cells)
    print(f"\n{analysis.markdown_table(head, lines)}")


if __name__ == "__main__":
    main()
