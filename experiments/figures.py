"""Draws learning curves of finished runs, as the papers' figures have them.

By default of the published runs, into `docs/results/`.
"""

import argparse
import pathlib

from experiments.few_examples import results as few_examples
from experiments.predinet import results as predinet
from experiments.records import PUBLISHED
from experiments.records import read_runs
from experiments.scoff import results as scoff
from experiments.two_simplicial import results as two_simplicial
from keras_relational import analysis


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    folder = {"type": pathlib.Path, "metavar": "FOLDER", "default": PUBLISHED}
    parser.add_argument("--runs", help="folder of the runs", **folder)
    parser.add_argument("--output", help="folder for the pictures", **folder)
    args = parser.parse_args()
    try:
        records = read_runs(args.runs)
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(error) from error
    args.output.mkdir(parents=True, exist_ok=True)
    for paper in (predinet, two_simplicial, scoff, few_examples):
        for name, figure in paper.figures(records).items():
            path = args.output / f"{name}.svg"
            analysis.save_figure(figure, path)
            print(path)


if __name__ == "__main__":
    main()
