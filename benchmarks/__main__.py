"""Speed, as ratios to a plain implementation measured in the same run.

`make bench` runs all subjects on an otherwise idle machine; `python -m
benchmarks esbn scoff` runs some. Each pair is first shown to compute the same
to 1e-4, but for the block of the package `dual-attention`. It runs with the
same compiler setting, but for the training step of PrediNet's classifier: there
plain Keras is what `fit` does when it is told nothing.
"""

import argparse

import keras

from benchmarks import measuring
from benchmarks import processes

SUBJECTS = (
    "predinet",
    "analogies",
    "moving_squares",
    "esbn",
    "two_simplicial_attention",
    "scoff",
    "successors",
    "bounds",
    "data",
    "environments",
    "agents",
    "imports",
    "serving",
)
ON_TENSORFLOW = ("agents", "serving")


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "subjects",
        nargs="*",
        metavar="SUBJECT",
        help=f"one or more of: {', '.join(SUBJECTS)}; all by default",
    )
    subjects = parser.parse_args().subjects or SUBJECTS
    for subject in subjects:
        if subject not in SUBJECTS:
            parser.error(
                f"no subject {subject!r}. Known: {', '.join(SUBJECTS)}"
            )
    measuring.print_header()
    for subject in subjects:
        if subject in ON_TENSORFLOW and keras.backend.backend() != "tensorflow":
            print(f"{subject} needs TensorFlow: left out.")
            continue
        # In a process of its own, which gives its memory back.
        processes.in_a_process(processes.run_main, f"benchmarks.{subject}")


if __name__ == "__main__":
    main()
