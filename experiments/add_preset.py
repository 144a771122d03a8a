"""Adds the model of a finished run to the presets of the library.

The card says how the run was made and what came out. Options that say where
files lie are left out.
"""

import argparse
import pathlib

import keras

from experiments.add_runs import without_paths
from experiments.records import read_runs
from keras_relational import models

PRESETS = pathlib.Path(models.__file__).parents[1] / "presets"
LICENSE = "Apache-2.0"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path, help="the run's folder")
    parser.add_argument("name", help="name of the preset")
    args = parser.parse_args()
    try:
        add_preset(args.folder, PRESETS / args.name)
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(error) from error
    print(f"Added: {PRESETS / args.name}")


def add_preset(folder: pathlib.Path, preset_dir: pathlib.Path) -> None:
    """Makes a preset of a run's model.

    Args:
        folder: Folder of a single finished run, with its `model.keras`.
        preset_dir: Folder of the preset, which is made or replaced.

    Raises:
        FileNotFoundError: If the run has not finished.
        ValueError: If there are several runs in the folder.
    """
    records = read_runs(folder)
    if len(records) > 1:
        raise ValueError(
            f"A preset is the model of one run. Received: {folder}, with "
            f"{', '.join(record.name for record in records)}"
        )
    (record,) = map(without_paths, records)
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    card = {"license": LICENSE, "run": record.config, "figures": record.result}
    models.save_to_preset(model, preset_dir, card)


if __name__ == "__main__":
    main()
