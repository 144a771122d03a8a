"""Writes `docs/presets.md` and its pictures from the cards of the presets.

Each card's example is run. What it prints is written into the card, and
what it made is drawn in `docs/presets/`. On the page the overview and the
sections of presets stand between `<!-- cards: NAME -->` and `<!-- end -->`;
edit them in the cards, `keras_relational/presets/NAME/metadata.json`, and the
rest on the page.
"""

import argparse
import contextlib
import io
import json
import pathlib
import re
import textwrap
from typing import Any

from experiments import preset_pictures
from experiments.records import PUBLISHED
from keras_relational import models
from keras_relational.file_io import write_atomically

PRESETS = pathlib.Path(models.__file__).parents[1] / "presets"
PAGE = PUBLISHED.parent / "presets.md"
PICTURES = PAGE.with_suffix("")
# What a card says in words, beside what `add_preset` puts there.
WORDS = ("question", "inputs", "outputs", "trained_on", "limits", "example")
WORDS += ("lineage",)
MARKED = re.compile(r"(<!-- cards: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.parse_args()
    PICTURES.mkdir(exist_ok=True)
    for name in models.preset_names():
        card = models.preset_metadata(name)
        if missing := [key for key in (*WORDS, "held_out") if key not in card]:
            raise SystemExit(
                f"Write into {PRESETS / name / 'metadata.json'}, in words: "
                f"{', '.join(missing)}. Other cards have examples."
            )
        printed, made = run_example(card["example"])
        if printed != card.get("prints"):
            write_card(name, {**card, "prints": printed})
        preset_pictures.save(card["run"], made, PICTURES / f"{name}.png")
        print(f"{name}:\n{printed}")
    PAGE.write_text(updated(PAGE.read_text("utf-8")), "utf-8")


def run_example(code: str) -> tuple[str, dict[str, Any]]:
    """What a card's example prints, and the names that it defines."""
    printed, names = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        exec(code, names)  # noqa: S102
    return printed.getvalue(), names


def write_card(name: str, card: dict[str, Any]) -> None:
    """Writes a card as `models.save_to_preset` does."""
    text = json.dumps(card, indent=1, ensure_ascii=False)
    write_atomically(PRESETS / name / "metadata.json", text.encode())


def updated(page: str) -> str:
    """The page with its two parts that are made from the cards."""
    cards = {
        name: models.preset_metadata(name) for name in models.preset_names()
    }
    parts = {
        "overview": _overview(cards),
        "presets": "\n\n".join(_section(*item) for item in cards.items()),
    }
    return MARKED.sub(
        lambda match: f"{match[1]}\n{parts[match[2]]}\n\n{match[3]}", page
    )


def _overview(cards):
    lines = [
        "| preset | question | size | share |",
        "|---|---|---|---|",
    ]
    for name, card in cards.items():
        size = (PRESETS / name / "model.keras").stat().st_size / 1e6
        question = re.search(r"[^.?]+\?", card["question"])[0].strip()
        share = next(iter(card["held_out"].values()))
        lines.append(
            f"| [`{name}`](#{name}) | {question} | {size:.1f} MB "
            f"| {_percent(share)} |"
        )
    return "\n".join(lines)


def _percent(share):
    return f"{100 * share:.1f} %"


def _section(name, card):
    printed = card["prints"].rstrip()
    shares = [
        f"| {words} | {_percent(share)} |"
        for words, share in card["held_out"].items()
    ]
    return "\n\n".join(
        [
            f"### {name}",
            card["question"],
            f"![{card['question']}](presets/{name}.png)",
            "\n".join(
                f"- {kind} `{key}`: {words}."
                for kind, part in (("In,", "inputs"), ("Out,", "outputs"))
                for key, words in card[part].items()
            ),
            f"```python\n{card['example']}```",
            f"It prints:\n\n```text\n{printed}\n```",
            f"Result of the run that trained it: {card['headline']}.",
            "\n".join(
                ["| of 1,000 other examples | share |", "|---|---|", *shares]
            ),
            "Where it ends:",
            "\n".join(f"- {_linked(limit)}" for limit in card["limits"]),
            f"Trained on {card['trained_on']}, by:",
            _commands(card["lineage"]),
        ]
    )


def _linked(text):
    """A text of a card, with a link where it names a page of results."""
    return re.sub(r"`docs/(results/\w+\.md)`", r"[results](\1)", text)


def _commands(lineage):
    """The commands that made a preset, for a shell, below their models."""
    blocks = []
    for step in lineage:
        # A line ends before an option, not between it and its value.
        command = re.sub(" (?!--)", "\0", step["command"])
        lines = textwrap.wrap(
            command, 74, subsequent_indent="    ", break_on_hyphens=False
        )
        command = " \\\n".join(lines).replace("\0", " ")
        blocks.append(f"# {step['makes']}\n{command}")
    remarks = [step["remark"] for step in lineage if "remark" in step]
    text = "\n".join(blocks)
    return "\n\n".join([f"```bash\n{text}\n```", *remarks])


if __name__ == "__main__":
    main()
