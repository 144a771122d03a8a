"""Asks a trained model that comes with the library one question.

    python -m keras_relational.demo --preset predinet_between

It takes seconds, needs no network and trains nothing. The question is drawn at
random from data that training never shows; --seed chooses another one. For
pictures, and questions of your own: `python -m keras_relational.playground`.
"""

import argparse
import logging
import textwrap

from keras_relational import models
from keras_relational.playground.kinds import load


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
    if not 0 <= args.seed < 100_000:
        parser.error("--seed goes from 0 to 99999")
    # TensorFlow warns about each new shape of inputs.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    try:
        print(answer(args.preset, args.seed))
    except (OSError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


def answer(preset: str, seed: int = 0) -> str:
    """A question to a preset and its answer, as lines of text.

    The preset is a name, or a folder, and the seed chooses the question.
    """
    card = models.preset_metadata(preset)
    texts = load(card, preset).question(seed)
    headline = f"{preset}: {card.get('headline', 'a model of your own')}."
    wrapped = [line for text in texts for line in _wrapped(text)]
    return "\n".join([*textwrap.wrap(headline, 78), "", *wrapped])


def _wrapped(text):
    """Boards stay as they are; sentences become lines."""
    if "\n" in text:
        return textwrap.indent(text, "    ").split("\n")
    return textwrap.wrap(text, 78) or [""]


if __name__ == "__main__":
    main()
