"""Checks that presets reach the figures on their cards.

Each preset of the library is loaded and tested again, on the data that its run
was tested on, which training never draws, and on data farther out, which its
card has under `held_out`. Prints a line for each figure, and exits with 1 if
one differs by more than 0.005.
"""

import argparse
import functools
import importlib
import operator
from typing import Any

import keras

from experiments import held_out
from keras_relational import models

TOLERANCE = 0.005
# By the experiment that a preset's card names, its module. There
# `preset_metrics(model, arguments)` tests a model as its run did, and
# `preset_headline(arguments, metrics)` puts the metrics in a few words.
MODULES = {
    "boxworld_positions": "two_simplicial.evaluation",
    "boxworld_teacher": "two_simplicial.evaluation",
    "esbn_rules": "esbn.rules",
    "few_examples": "few_examples.curves",
    "predinet_relations_game": "predinet.relations_game",
    "predinet_transfer": "predinet.transfer",
    "single_ball": "scoff.single_ball",
    "vaec": "context_normalization.vaec",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = models.preset_names()
    parser.add_argument("presets", nargs="*", default=names, help="all")
    differences = []
    for preset in parser.parse_args().presets:
        card = models.preset_metadata(preset)
        model = models.from_preset(preset)
        found = {
            "figures": evaluate(model, card["run"]),
            "held_out": held_out.shares(card["run"], model),
        }
        for name, value in leaves(found):
            expected = functools.reduce(operator.getitem, name, card)
            label = ".".join(map(str, name))
            print(f"{preset} {label}: {value:.4f}, on its card {expected:.4f}")
            differences.append(abs(value - expected))
    if max(differences) > TOLERANCE:
        raise SystemExit(f"A figure differs by {max(differences):.4f}")


def evaluate(model: keras.Model, run: dict[str, Any]) -> dict[str, Any]:
    """Tests a model as its run did; `run` is the run's `config.json`."""
    return _experiment(run).preset_metrics(model, run["arguments"])


def headline(run: dict[str, Any], metrics: dict[str, Any]) -> str:
    """The metrics of a run, its `result.json`, in a few words."""
    text = _experiment(run).preset_headline(run["arguments"], metrics)
    return text.replace("%", " %")


def leaves(metrics: Any, name: tuple = ()) -> list[tuple[tuple, float]]:
    """The numbers in nested dictionaries and lists, each with its keys."""
    if isinstance(metrics, dict):
        items = list(metrics.items())
    elif isinstance(metrics, list):
        items = list(enumerate(metrics))
    else:
        return [(name, metrics)]
    return [x for key, value in items for x in leaves(value, (*name, key))]


def _experiment(run):
    return importlib.import_module(f"experiments.{MODULES[run['experiment']]}")


if __name__ == "__main__":
    main()
