"""Adds the model of a finished run to the presets of the library.

The weights are stored in half precision. The model is then tested again. The
card has the run's configuration and its metrics, without the options that say
where files lie. `docs/presets.md` gets a row for it.
"""

import argparse
import pathlib

import keras

from experiments.add_runs import without_paths
from experiments.preset_figures import evaluate
from experiments.preset_figures import headline
from experiments.records import PUBLISHED
from experiments.records import read_runs
from keras_relational import models

PRESETS = pathlib.Path(models.__file__).parents[1] / "presets"
PAGE = PUBLISHED.parent / "presets.md"
LICENSE = "Apache-2.0"
# The text of `docs/presets.md` above its table: edit it here, not there.
HEAD = """\
# Presets

Trained models that come with the library. `models.from_preset(name)` loads one,
and `models.preset_metadata(name)` is its card: how it was trained, and all its
figures. `python -m keras_relational.demo --preset NAME` asks it a question. The
[playground](playground.md) has pages for most of them. All figures are of data
that training never draws.

`models.save_to_preset` makes presets of your own. If its path ends with `.zip`,
it makes an archive. Publish its address and its SHA-256, which `sha256sum`
prints. Others load it by `models.from_preset(address, file_hash=...)`. It is
downloaded once and checked, and none of its code is run.

Presets of images take pixels from 0 to 255, or floats from 0 to 1. They know
images like those that they were trained on, and no others:

- `predinet_between`: objects on black, at the places of the training images.
  Of 1,000 images of hexominoes it gets 99.4 % right, 61.3 % on a white ground,
  and 97.2, 84.7 and 58.8 % after a shift by 1, 2 and 3 pixels to the right and
  down.
- `esbn_distribution_of_three`: white symbols on black. The authors' images are
  black on white. Of their problems it solves 98.4 %, and 99.9 % of those with
  black and white exchanged, as
  `datasets.distribution_of_three.load_images(folder, invert=True)` reads them.
- `boxworld_9x9_relational`: puzzles as `environments.boxworld.BoxWorld` places
  them. It solves 11 % of those of another public program, which places keys and
  locks freely.

| preset | size | result | licence | last command |
|---|---|---|---|---|"""


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
    PAGE.write_text(presets_page())
    print(f"Added: {PRESETS / args.name}, and its row in {PAGE}")


def add_preset(folder: pathlib.Path, preset_dir: pathlib.Path) -> None:
    """Makes a preset of the model of a single finished run, or replaces it."""
    records = read_runs(folder)
    if len(records) > 1:
        raise ValueError(
            f"A preset is the model of one run. Received: {folder}, with "
            f"{', '.join(record.name for record in records)}"
        )
    (record,) = map(without_paths, records)
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    models.save_to_preset(model, preset_dir, half_precision=True)
    run = record.config
    model = models.from_preset(preset_dir)
    metrics = _updated(record.result, evaluate(model, run))
    card = {"license": LICENSE, "headline": headline(run, metrics)}
    card |= {"run": run, "figures": metrics}
    models.save_to_preset(model, preset_dir, card, half_precision=True)


def presets_page() -> str:
    """A table of the presets of the library, from their cards."""
    lines = [HEAD]
    for name in models.preset_names():
        card = models.preset_metadata(name)
        size = (PRESETS / name / "model.keras").stat().st_size / 1e6
        lines.append(
            f"| `{name}` | {size:.1f} MB | {card['headline']} "
            f"| {card['license']} | `{card['run']['command']}` |"
        )
    return "\n".join(lines) + "\n"


def _updated(old, new):
    """Nested dictionaries and lists with some of their values replaced."""
    if isinstance(new, dict):
        return {**old, **{k: _updated(old[k], new[k]) for k in new}}
    if isinstance(new, list):
        return [_updated(*pair) for pair in zip(old, new, strict=True)]
    return new


if __name__ == "__main__":
    main()
