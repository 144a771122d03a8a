"""What presets reach on examples near to those of their training, and farther.

`shares` gives the numbers that a card has under `held_out`: a share for each
kind of examples, in words. Each is of 1,000 examples. Training never draws
them, unless the words say so.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from experiments.scoff.schemata import label_information
from keras_relational import analysis
from keras_relational import training
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import ordered_objects
from keras_relational.datasets import relations_game
from keras_relational.datasets import set_game
from keras_relational.datasets import single_ball
from keras_relational.datasets import vaec
from keras_relational.environments import boxworld
from keras_relational.models.reasoners import greedy_decode
from keras_relational.models.reasoners import shift_right
from keras_relational.random_streams import stream
from keras_relational.random_streams import unseen_world_seeds

NUM_EXAMPLES = 1_000


def shares(run: Mapping[str, Any], model: keras.Model) -> dict[str, float]:
    """Tests a preset; `run` is that of its card."""
    kind = kind_of(run)
    if kind not in MEASURES:
        raise ValueError(
            f"{__name__} measures {', '.join(MEASURES)}. Add what a preset of "
            f"the kind {kind!r} shall be tested on"
        )
    found = MEASURES[kind](model, run["arguments"])
    return {words: round(float(share), 4) for words, share in found.items()}


def kind_of(run: Mapping[str, Any]) -> str:
    """The kind of a preset's questions: an experiment or a data set."""
    name = run["experiment"]
    if name == "few_examples":
        name = run["arguments"]["task"]
    tasks = *relations_game.TASKS, "predinet_relations_game"
    return "relations_game" if name in (*tasks, "predinet_transfer") else name


def _boards(model, arguments):
    tasks = arguments.get("target") or arguments["task"]
    cut = len(model.inputs[0].shape) == 3

    def share(images, labels, numbers):
        if cut:
            inputs = relations_game.tiles(images)
        elif len(model.inputs) == 2:
            inputs = images, numbers
        else:
            inputs = images
        return training.accuracy(model, inputs, labels)

    def draw(objects):
        return relations_game.generate(tasks, NUM_EXAMPLES, objects, seed=1)

    images, labels, numbers = draw("hexominoes")
    found = {
        "hexominoes": share(images, labels, numbers),
        "stripes": share(*draw("stripes")),
    }
    white = np.where(images.any(axis=-1, keepdims=True), images, np.uint8(255))
    found["hexominoes on a white ground"] = share(white, labels, numbers)
    for pixels in (1, 2, 3):
        moved = np.roll(images, (pixels, pixels), axis=(1, 2))
        unit = "pixel" if pixels == 1 else "pixels"
        words = f"hexominoes {pixels} {unit} farther right and down"
        found[words] = share(moved, labels, numbers)
    return found


def _hands(model, arguments):
    _, _, (hands, labels) = set_game.load_data(
        2, 2, NUM_EXAMPLES, seed=arguments["seed"]
    )
    attributes = hands.reshape(*hands.shape[:2], 4, 3)
    return {
        words: training.accuracy(model, x.reshape(hands.shape), labels)
        for words, x in {
            "hands with sets that training never shows": attributes,
            "the same, the cards in reverse order": attributes[:, ::-1],
            "the same, the attributes in reverse order": attributes[:, :, ::-1],
            "the same, values 0, 1, 2 renamed 1, 2, 0": np.roll(
                attributes, 1, axis=3
            ),
        }.items()
    }


def _sequences(model, arguments):
    def test(seed):
        return ordered_objects.load_sequences(1, 1, NUM_EXAMPLES, seed)[-1]

    def sorted_share(x, y):
        return (greedy_decode(model, x) == y).all(axis=1).mean()

    x, y = test(arguments["seed"])
    told = training.accuracy(model, (x, shift_right(y)), y)
    return {
        "places, those before being known": told,
        "whole sequences, without a mistake": sorted_share(x, y),
        "whole sequences of 48 other objects": sorted_share(
            *test(arguments["seed"] + 1)
        ),
    }


def _rules(model, arguments):
    symbols = distribution_of_three.glyphs()
    _, _, test = distribution_of_three.split_fillers(
        symbols,
        withheld=arguments["withheld"],
        task=arguments["task"],
        seed=arguments["seed"],
    )
    numbers, labels = (x[:NUM_EXAMPLES] for x in test)
    return {
        words: training.accuracy(model, images[numbers], labels)
        for words, images in {
            "symbols that training never shows": symbols,
            "the same, black on white": 255 - symbols,
            "the same, half as bright": symbols // 2,
            "the same, 4 pixels farther right and down": np.roll(
                symbols, (4, 4), axis=(1, 2)
            ),
        }.items()
    }


def _puzzles(model, arguments):
    world = boxworld.world_of_options(arguments)
    seeds = unseen_world_seeds(NUM_EXAMPLES)

    def play(world, greedy=False):
        return analysis.play(world, seeds, model, greedy=greedy)

    drawn = play(world)
    found = {
        "new puzzles, the moves drawn": drawn["solved"].mean(),
        "new puzzles, the likeliest moves": play(world, True)["solved"].mean(),
    }
    if arguments["world"] == "bridge":
        locks, bridges, _ = drawn["levels"].T
        for words, kind in (
            ("one lock and no bridge", (locks == 1) & (bridges == 0)),
            ("three locks and a bridge", (locks == 3) & (bridges > 0)),
        ):
            found[f"those with {words}, drawn"] = drawn["solved"][kind].mean()
    else:
        most = arguments["solution_length"][1]
        lengths = most + 1, most + 2
        longer = boxworld.world_of_options(arguments, solution_length=lengths)
        words = f"{most + 1} or {most + 2} boxes, drawn"
        found[words] = play(longer)["solved"].mean()
    elsewhere = play(_from_the_right(world))["solved"].mean()
    found["the player begins at the top right, drawn"] = elsewhere
    return found


def _from_the_right(world):
    """The same puzzles, with the player in another corner."""
    reset = world.reset

    def moved(seeds, *args, **kwargs):
        state = reset(seeds, *args, **kwargs)
        corner = keras.ops.full_like(state["player"], world.columns - 1)
        return {**state, "player": corner}

    world.reset = moved
    return world


def _videos(model, arguments):
    def information(bulb_radius):
        frames, axes, _ = single_ball.generate_videos(
            arguments["dynamics"],
            NUM_EXAMPLES,
            arguments["num_frames"],
            [1, 0],
            arguments["image_size"],
            bulb_radius,
        )
        found = analysis.object_files(model, frames)
        return label_information(found, axes)["information"][0]

    radius = arguments["bulb_radius"]
    return {
        "of the information about the axis, in the schema of a frame from the "
        "sixth on": information(radius),
        "the same, with bulbs of half the radius": information(radius // 2),
    }


def _analogies(model, arguments):
    def solved(region, black=False):
        problems = vaec.generate(
            arguments["regime"],
            region,
            stream(arguments["seed"], "region", region),
        )
        some = vaec.Problems(*(x[:NUM_EXAMPLES] for x in problems))
        inputs = vaec.model_inputs(some, arguments["image_size"])
        if black:
            inputs["images"] = _on_black(inputs["images"])
        scores = training.predictions(model, inputs, 32)
        return (scores[:, :1] > scores[:, 1:]).all(axis=1).mean()

    found = {f"region {region}": solved(region) for region in vaec.REGIONS[1:]}
    return found | {
        "region 1, the problems of training": solved(1),
        "the same, on a black ground": solved(1, True),
    }


def _on_black(images):
    """Grey becomes black where a pixel is of the ground alone."""
    ground = (images == 128).all(axis=-1, keepdims=True)
    return np.where(ground, np.uint8(0), images)


# By the kind of a preset.
MEASURES: dict[str, Callable[..., dict[str, float]]] = {
    "boxworld_positions": _puzzles,
    "boxworld_teacher": _puzzles,
    "esbn_rules": _rules,
    "relations_game": _boards,
    "set_game": _hands,
    "single_ball": _videos,
    "sorting": _sequences,
    "vaec": _analogies,
}
