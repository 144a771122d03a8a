"""Adds the model of a finished run to the presets of the library.

The weights are stored in half precision. The model is then tested again. The
card has the run's configuration and its metrics, without the options that say
where files lie. A preset that is replaced keeps what its card says in words.
Write the words of a new one, and `python -m experiments.preset_pages` makes its
section of `docs/presets.md`.
"""

import argparse
import pathlib

import keras

from experiments import held_out
from experiments.add_runs import without_paths
from experiments.preset_figures import evaluate
from experiments.preset_figures import headline
from experiments.preset_pages import PRESETS
from experiments.preset_pages import WORDS
from experiments.records import read_runs
from keras_relational import models

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
    print(
        f"Added: {PRESETS / args.name}. "
        "Next: python -m experiments.preset_pages"
    )


def add_preset(folder: pathlib.Path, preset_dir: pathlib.Path) -> None:
    """Makes a preset of the model of a single finished run, or replaces it."""
    records = read_runs(folder)
    if len(records) > 1:
        raise ValueError(
            f"A preset is the model of one run. Received: {folder}, with "
            f"{', '.join(record.name for record in records)}"
        )
    (record,) = map(without_paths, records)
    words = {}
    if (preset_dir / "metadata.json").exists():
        before = models.preset_metadata(preset_dir)
        # The models before the old one are not those before the new one.
        kept = [key for key in WORDS if key != "lineage"]
        words = {key: before[key] for key in kept if key in before}
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    models.save_to_preset(model, preset_dir, half_precision=True)
    run = record.config
    model = models.from_preset(preset_dir)
    metrics = _updated(record.result, evaluate(model, run))
    card = {
        "license": LICENSE,
        "headline": headline(run, metrics),
        **words,
        "held_out": held_out.shares(run, model),
    }
    if run["arguments"].get("preset") is None:
        made = {"makes": preset_dir.name, "command": run["command"]}
        card["lineage"] = [made]
    card |= {"run": run, "figures": metrics}
    models.save_to_preset(model, preset_dir, card, half_precision=True)


def _updated(old, new):
    """Nested dictionaries and lists with some of their values replaced."""
    if isinstance(new, dict):
        return {**old, **{k: _updated(old[k], new[k]) for k in new}}
    if isinstance(new, list):
        return [_updated(*pair) for pair in zip(old, new, strict=True)]
    return new


if __name__ == "__main__":
    main()
