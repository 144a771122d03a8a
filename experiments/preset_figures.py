"""Checks that presets reach the figures on their cards.

Each preset of the library is loaded and tested again, on the data that its run
was tested on, which training never draws. Prints a line for each figure, and
exits with 1 if one differs by more than 0.005.
"""

import argparse
import functools
import operator
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any
from typing import NamedTuple

import keras
import numpy as np

from experiments.agents import play_each
from experiments.agents import player_means
from experiments.context_normalization.vaec import solved_analogies
from experiments.esbn.evaluation import decoder_targets
from experiments.esbn.evaluation import rule_accuracy
from experiments.few_examples.tasks import model_and_data
from experiments.scoff.single_ball import ball_metrics
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import relations_game
from keras_relational.datasets import single_ball
from keras_relational.datasets import vaec
from keras_relational.environments import boxworld
from keras_relational.random_streams import stream
from keras_relational.random_streams import unseen_world_seeds

TOLERANCE = 0.005
# What the tests of few examples are about.
_FEW_EXAMPLES = {
    "pairwise_order": "new pairs of known objects",
    "sorting": "places in sequences that it never saw",
    "set_game": "hands with sets that it never saw",
    **dict.fromkeys(
        relations_game.TASKS, "images of hexominoes, which it never saw"
    ),
    **dict.fromkeys(
        distribution_of_three.TASKS, "problems with symbols that it never saw"
    ),
}


class Kind(NamedTuple):
    """Presets of one experiment."""

    # From the model and the arguments of its run to figures, as in its result.
    evaluate: Callable[[keras.Model, dict], dict[str, Any]]
    # Text with places for the dictionary that `words` returns.
    headline: str
    # From the arguments of the run and its result. By default the result.
    words: Callable[[dict, dict], dict[str, Any]] = lambda _, result: result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = models.preset_names()
    parser.add_argument("presets", nargs="*", default=names, help="all")
    differences = []
    for preset in parser.parse_args().presets:
        card = models.preset_metadata(preset)
        run = card["run"]
        found = evaluate(models.from_preset(preset), run)
        for name, value in leaves(found):
            expected = functools.reduce(operator.getitem, name, card["figures"])
            label = ".".join(map(str, name))
            print(f"{preset} {label}: {value:.4f}, on its card {expected:.4f}")
            differences.append(abs(value - expected))
    if max(differences) > TOLERANCE:
        raise SystemExit(f"A figure differs by {max(differences):.4f}")


def evaluate(model: keras.Model, run: dict[str, Any]) -> dict[str, Any]:
    """Tests a model as its run did; `run` is the run's `config.json`."""
    return KINDS[run["experiment"]].evaluate(model, run["arguments"])


def headline(run: dict[str, Any], figures: dict[str, Any]) -> str:
    """The figures of a run, its `result.json`, in a few words."""
    kind = KINDS[run["experiment"]]
    text = kind.headline.format(**kind.words(run["arguments"], figures))
    return text.replace("%", " %")


def leaves(figures: Any, name: tuple = ()) -> list[tuple[tuple, float]]:
    """The numbers in nested dictionaries and lists, each with its keys."""
    if isinstance(figures, dict):
        items = list(figures.items())
    elif isinstance(figures, list):
        items = list(enumerate(figures))
    else:
        return [(name, figures)]
    return [x for key, value in items for x in leaves(value, (*name, key))]


def _relations_game(model, arguments):
    object_sets = ["hexominoes", "stripes"]
    if arguments["task"] == "colour_and_shape":
        object_sets = ["hexominoes"]
    figures = {}
    for object_set in object_sets:
        images, labels, _ = relations_game.generate(
            arguments["task"],
            arguments["num_test"],
            object_set,
            seed=stream(arguments["seed"], "test"),
        )
        figures[object_set] = training.accuracy(model, images, labels)
    return figures


def _transfer(model, arguments):
    name = "curriculum" if arguments["stages"] == [2] else "target"
    images, labels, task_ids = relations_game.generate(
        arguments[name],
        arguments["num_test"],
        "stripes",
        seed=stream(arguments["seed"], f"{name}_test"),
    )
    return {"saved": training.accuracy(model, (images, task_ids), labels)}


def _vaec(model, arguments):
    regions = []
    for region in vaec.REGIONS:
        seed = stream(arguments["seed"], "region", region)
        problems = vaec.generate(arguments["regime"], region, seed)
        solved = solved_analogies(model, problems)
        regions.append({"all": float(np.mean(solved))})
    return {"regions": regions}


def _rules(model, arguments):
    vectors = arguments["fillers"] == "vector"
    fillers, _, test = distribution_of_three.split_fillers(
        distribution_of_three.one_hot()
        if vectors
        else distribution_of_three.glyphs(),
        withheld=arguments["withheld"],
        task=arguments["task"],
        mode=arguments["mode"],
        seed=arguments["seed"],
    )
    tested, candidates = models.over_fillers(model, fillers), None
    if arguments["mode"] == "generative":
        candidates = decoder_targets(fillers)
    return {"test": rule_accuracy(tested, test, candidates)}


def _single_ball(model, arguments):
    kind = [arguments[x] for x in ("dynamics", "num_test", "num_frames")]
    size = [arguments[x] for x in ("image_size", "bulb_radius")]
    seed = stream(arguments["seed"], "test")
    videos, axes, _ = single_ball.generate_videos(*kind, seed, *size)
    with tempfile.TemporaryDirectory() as folder:
        figures = ball_metrics(model, videos, axes, pathlib.Path(folder))
    kept = {"information": figures["settled"]["information"]}
    return {"settled": kept, "roll_out_error": figures["roll_out_error"]}


def _few_examples(model, arguments):
    (name,), (number,) = arguments["reasoners"], arguments["num_train"]
    task = arguments["task"], name, number, arguments["seed"]
    _, (_, _, test) = model_and_data(*task)
    return {name: [{"accuracy": [training.accuracy(model, *test)]}]}


def _words_of_few_examples(arguments, result):
    (name,) = arguments["reasoners"]
    (share,) = result[name][0]["accuracy"]
    return {"share": share, "examples": _FEW_EXAMPLES[arguments["task"]]}


def _boxworld(model, arguments):
    pairs = {"key_lock_pairs": "seen"} if arguments["withhold_pairs"] else {}
    world = boxworld.world_of_options(arguments, **pairs)
    seeds = unseen_world_seeds(arguments["num_test"])
    players = "greedy", "sampled"
    played = play_each(world, seeds, model, players)
    solved = player_means(played)
    return {x: {"solved": solved[x]["solved"]} for x in players}


_AGENT = Kind(
    _boxworld,
    "solves {sampled[solved]:.1%} of new puzzles by drawn moves, "
    "{greedy[solved]:.1%} by the likeliest",
)
KINDS = {
    "boxworld_positions": _AGENT,
    "boxworld_teacher": _AGENT,
    "esbn_rules": Kind(
        _rules, "solves {test:.1%} of problems with symbols it never saw"
    ),
    "few_examples": Kind(
        _few_examples,
        "right about {share:.1%} of {examples}",
        _words_of_few_examples,
    ),
    "predinet_relations_game": Kind(
        _relations_game,
        "right about {hexominoes:.1%} of hexominoes and {stripes:.1%} of "
        "stripes, which it never saw",
    ),
    "predinet_transfer": Kind(
        _transfer,
        "right about {saved:.1%} of stripes, which it never saw, in tasks for "
        "which only its last layers were trained",
    ),
    "single_ball": Kind(
        _single_ball,
        "the schema that it chooses has {settled[information][0]:.0%} of the "
        "information about the axis",
    ),
    "vaec": Kind(
        _vaec,
        "solves {regions[0][all]:.1%} in the region of training, "
        "{regions[1][all]:.1%} in the next one, {regions[5][all]:.1%} in the "
        "farthest",
    ),
}


if __name__ == "__main__":
    main()
