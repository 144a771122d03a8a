"""Asks a trained model that comes with the library one question.

    python -m keras_relational.demo --preset predinet_between

It takes seconds, needs no network and trains nothing. The question is drawn at
random from data that training never shows; --seed chooses another one. For
pictures, and questions of your own: `python -m keras_relational.playground`.
"""

import argparse
import logging
import textwrap
from typing import Any

import numpy as np
from keras import ops

from keras_relational import analysis
from keras_relational import models
from keras_relational.datasets import ordered_objects
from keras_relational.datasets import relations_game
from keras_relational.datasets import set_game
from keras_relational.datasets import vaec
from keras_relational.playground.arrays import from_pixels
from keras_relational.playground.boxworld import MAX_MOVES
from keras_relational.playground.boxworld import NUM_PUZZLES
from keras_relational.playground.boxworld import BoxWorldPuzzles
from keras_relational.playground.relations_game import NO_YES
from keras_relational.playground.relations_game import QUESTIONS
from keras_relational.playground.relations_game import RelationsGame
from keras_relational.playground.rules import NUM_SHOWN
from keras_relational.playground.rules import Rules
from keras_relational.playground.server import PAGES
from keras_relational.playground.video import NUM_FRAMES
from keras_relational.playground.video import Videos
from keras_relational.random_streams import stream

COLOURS = "red", "green", "purple"
SHAPES = "oval", "squiggle", "diamond"
SHADINGS = "empty", "striped", "solid"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m keras_relational.demo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ", ".join(models.preset_names())
    parser.add_argument(
        "--preset",
        default="predinet_between",
        help=f"the name of a preset, or the folder of one (default: "
        f"predinet_between). The library has {names}",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the question (default: 0)"
    )
    args = parser.parse_args()
    if not 0 <= args.seed < NUM_PUZZLES:
        parser.error(f"--seed goes from 0 to {NUM_PUZZLES - 1}")
    # TensorFlow warns about each new shape of inputs.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    try:
        print(answer(args.preset, args.seed))
    except (OSError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


def answer(preset: str, seed: int = 0) -> str:
    """A question to a preset, and what it answers.

    Args:
        preset: Name of a preset, or the folder of one.
        seed: Non-negative integer that chooses the question.

    Returns:
        Lines of text.

    Raises:
        ValueError: If there is no such preset, or no question for it.
    """
    card = models.preset_metadata(preset)
    run = card.get("run", {})
    experiment = run.get("experiment")
    if experiment not in {*PAGES, *WITHOUT_PAGE}:
        raise ValueError(
            f"There is no question for the preset {preset}: its card should "
            f"name one of {', '.join([*PAGES, *WITHOUT_PAGE])} as the run's "
            f"experiment. Received: {experiment!r}"
        )
    model, arguments = models.from_preset(preset), run["arguments"]
    headline = f"{preset}: {card.get('headline', 'a model of your own')}."
    if experiment in WITHOUT_PAGE:
        lines = WITHOUT_PAGE[experiment](model, arguments, seed)
    else:
        page = PAGES[experiment][1](model, arguments)
        lines = TOLD[type(page)](page, seed)
    wrapped = [line for text in lines for line in _wrapped(text)]
    return "\n".join([*textwrap.wrap(headline, 78), "", *wrapped])


def _wrapped(text):
    """Boards stay as they are; sentences become lines."""
    if "\n" in text:
        return textwrap.indent(text, "    ").split("\n")
    return textwrap.wrap(text, 78) or [""]


def _its_answer(answer, probability, right):
    return (
        f"Its answer: {answer} (probability {probability:.3f}). Right: {right}."
    )


def _relations_game(game: RelationsGame, seed: int) -> list[str]:
    questions = game.describe()["questions"]
    task = seed % len(questions)
    found = game.answer({"example": seed, "task": task})
    head = found["heads"][0]["text"]
    return [
        questions[task],
        analysis.board_as_text(from_pixels(found["image"])),
        _its_answer(
            found["answer"].lower(),
            found["probability"],
            found["right"].lower(),
        ),
        f"One of its heads decides most. {head}",
    ]


def _boxworld(puzzles: BoxWorldPuzzles, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    moves: list[int] = []
    found = puzzles.answer({"puzzle": seed, "moves": moves})
    board = analysis.puzzle_as_text(from_pixels(found["image"]))
    while found["end"] is None and len(moves) < MAX_MOVES:
        policy = np.array(found["policy"])
        moves.append(int(rng.choice(len(policy), p=policy / policy.sum())))
        found = puzzles.answer({"puzzle": seed, "moves": moves})
    names = puzzles.describe()["moves"]
    return [
        "The player @ takes a single key by walking onto it, and opens a box "
        "by walking onto its lock, its right tile, with a key of that colour. "
        "The gem * is in the last box.",
        board,
        f"Its moves: {' '.join(names[move] for move in moves)}.",
        f"The puzzle is {found['end'] or 'not over'}, with a reward of "
        f"{found['reward']:g}.",
    ]


def _rules(rules: Rules, seed: int) -> list[str]:
    problem = seed % len(rules.problems.labels)
    found = rules.answer({"problem": problem})
    numbers = [f"{number:2}" for number in found["fillers"]]
    options = " ".join(numbers[NUM_SHOWN:])
    choice = int(np.argmax(found["probabilities"]))
    return [
        f"{rules.describe()['question']} Each number stands for the image of a "
        "symbol that training never shows.",
        f"{' '.join(numbers[:3])}\n{' '.join(numbers[3:NUM_SHOWN])}  ?\n"
        f"options: {options}",
        _its_answer(
            numbers[NUM_SHOWN + choice].strip(),
            found["probabilities"][choice],
            numbers[NUM_SHOWN + found["right"]].strip(),
        ),
    ]


def _video(videos: Videos, seed: int) -> list[str]:
    found = videos.answer({"video": seed, "given": NUM_FRAMES - 1})
    axes = videos.describe()["axes"]
    lines = {
        "axis:  ": "".join(axes[axis][0] for axis in found["axes"]),
        "schema:": "".join(str(schema + 1) for schema in found["schemata"]),
    }
    return [
        "A ball moves to and fro, and changes its axis in the middle of the "
        f"video: {', '.join(f'{axis[0]} for {axis}' for axis in axes)}. Which "
        "schema does the model choose at each frame? Nobody told it the axes.",
        "\n".join(" ".join(line) for line in lines.items()),
    ]


def _analogy(model: Any, arguments: dict[str, Any], seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    lines = ["A is to B as C is to which of seven images? They differ in:", ""]
    for region in vaec.REGIONS:
        made = vaec.generate(arguments["regime"], region, [1, seed, region])
        one = int(rng.integers(len(made.levels)))
        problem = vaec.Problems(*(x[one : one + 1] for x in made))
        inputs = vaec.model_inputs(problem, arguments["image_size"])
        scores = model.predict(inputs, verbose=0)[0]
        chosen = problem.candidates[0, int(scores.argmax())]
        levels = problem.levels[0, :, problem.dimension[0]]
        a, b, c = levels[problem.context[0]]
        right = levels[problem.candidates[0, 0]]
        name = vaec.DIMENSIONS[problem.dimension[0]]
        lines.append(
            f"{name}, region {region}: level {a} is to {b} as {c} is to "
            f"{levels[chosen]}. Right: {right}."
        )
    return lines


def _few_examples(
    model: Any, arguments: dict[str, Any], seed: int
) -> list[str]:
    task = arguments["task"]
    if task == "set_game":
        return _hand(model, arguments["seed"], seed)
    if task == "sorting":
        return _sequence(model, arguments["seed"], seed)
    if task in QUESTIONS:
        return _tiles(model, task, seed)
    raise ValueError(
        "There are questions about set_game, sorting and the Relations Game. "
        f"Received: a model of the task {task!r}"
    )


def _hand(model, seed_of_data, seed):
    _, _, (hands, labels) = set_game.load_data(2, 2, seed=seed_of_data)
    one = seed % len(labels)
    cards = hands[one].reshape(-1, 4, 3).argmax(-1)
    return [
        "Three cards are a set if each attribute is the same on all of them or "
        "another one on each. Is there a set?",
        "\n".join(
            f"{i + 1} {SHADINGS[shading]} {COLOURS[colour]} {SHAPES[shape]}"
            for i, colour, shape, shading in cards
        ),
        _no_or_yes(model, hands[one], labels[one]),
    ]


def _tiles(model, task, seed):
    images, labels, _ = relations_game.generate(task, 2, "hexominoes", seed)
    one = seed % 2
    return [
        QUESTIONS[task],
        analysis.board_as_text(images[one]),
        _no_or_yes(model, relations_game.tiles(images)[one], labels[one]),
    ]


def _no_or_yes(model, entities, label):
    logits = model.predict(entities[np.newaxis], verbose=0)
    probabilities = ops.convert_to_numpy(ops.softmax(logits))[0]
    chosen = int(probabilities.argmax())
    answers = [answer.lower() for answer in NO_YES]
    return _its_answer(answers[chosen], probabilities[chosen], answers[label])


def _sequence(model, seed_of_data, seed):
    test = ordered_objects.load_sequences(1, 1, seed=seed_of_data)[-1]
    one = seed % len(test[0])
    sequence, right = test[0][one], test[1][one]
    objects = ordered_objects.products(
        stream(seed_of_data, "objects_beside_batches")
    )
    ranks = (sequence[:, np.newaxis] == objects).all(-1).argmax(1)
    found = models.greedy_decode(model, sequence[np.newaxis])[0]
    return [
        "Each number stands for an object, a vector in which its place in the "
        "order cannot be seen. The model learned the order from sorted "
        "sequences. How does it sort these?",
        "\n".join(
            f"{name:7}{' '.join(f'{rank:2}' for rank in ranks[places])}"
            for name, places in (
                ("given:", slice(None)),
                ("sorted:", found),
                ("right:", right),
            )
        ),
    ]


WITHOUT_PAGE: dict[str, Any] = {"vaec": _analogy, "few_examples": _few_examples}
TOLD: dict[type, Any] = {
    RelationsGame: _relations_game,
    BoxWorldPuzzles: _boxworld,
    Rules: _rules,
    Videos: _video,
}


if __name__ == "__main__":
    main()
