"""The pages of SET, rules, sorting and analogies in a real browser."""

import re

import pytest
from browser_for_tests import focus
from browser_for_tests import kept
from browser_for_tests import open_page
from browser_for_tests import says

pytestmark = pytest.mark.slow


@pytest.fixture
def opened(page):
    def open_anew(address, ready):
        open_page(page, "", ".tile")
        open_page(page, address, ready)
        return page

    return open_anew


def names_of(page, selector):
    """The labels of elements."""
    return page.eval_on_selector_all(
        selector, "all => all.map(x => x.ariaLabel)"
    )


def test_set_against_the_model(opened):
    page = opened("set_game", "#start")
    assert page.query_selector("#yes") is None
    page.click("#start")
    assert page.inner_text("#clock").startswith("Hand 1 of 10")
    page.click("h1", modifiers=["Alt"])
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("y")
    says(
        page, "answer", r"^You: yes, (right|wrong), in .* The model: (yes|no), "
    )
    assert focus(page) == "next"
    marked = page.query_selector_all(".set-card canvas.marked")
    detail = page.inner_text("#detail")
    right = "are a set" in detail
    assert len(marked) == (3 if right else 0)
    answer = page.inner_text("#answer")
    assert ("You: yes, right" in answer) == right
    kept(page, "set_game")
    for number in range(2, 11):
        page.keyboard.press("Enter")  # The next hand.
        assert focus(page) == "yes"
        assert page.inner_text("#answer") == ""
        page.keyboard.press("n")
        says(page, "tally", f"of {number}, the model [0-9]+ of {number}")
    tally = page.inner_text("#tally")
    assert int(re.search(r"the model (\d+) of 10", tally)[1]) >= 9
    assert page.inner_text("#next") == "Another round"
    page.click("#next")
    says(page, "clock", "^Hand 1 of 10")


def test_set_with_a_hand_of_ones_own(opened):
    page = opened("set_game", "#start")
    page.click("#own")
    says(page, "answer", "^The model: (yes, a set|no set), ")
    # Every attribute of every card, until all cards are alike.
    for card in range(5):
        for name in ("number", "colour", "shape", "shading"):
            for _ in range(3):
                label = page.get_attribute(f"#card{card}-{name}", "aria-label")
                wanted = {"number": "1", "colour": "red", "shape": "oval"}
                if wanted.get(name, "empty") in label.split(":")[1]:
                    break
                page.focus(f"#card{card}-{name}")
                page.keyboard.press("Enter")
                assert focus(page) == f"card{card}-{name}"
    says(page, "detail", "outside what the model was trained on")
    assert names_of(page, ".set-card canvas") == [
        f"Card {i}: 1 empty red oval" for i in range(1, 6)
    ]
    page.click("#another")
    page.click("#race")
    page.wait_for_selector("#start")
    kept(page, "set_own")


def test_rules_with_symbols_of_ones_choice(opened):
    page = opened("rules", "#read td")
    page.click("#next")
    says(page, "answer", r"^Option \d, .* (This is right|Right would be)")
    for place, symbol in enumerate([11, 12, 13, 13, 11, 20, 30, 12, 40]):
        page.focus(f"#slot{place}")
        page.keyboard.press("Enter")
        assert page.get_attribute(f"#slot{place}", "aria-pressed") == "true"
        page.focus(f"#symbol{symbol}")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#slot{place}[title='symbol {symbol}']")
        assert focus(page) == f"symbol{symbol}"
    says(page, "answer", "^Option 3, .*This is right.$")
    says(page, "words", "Step 4 sees the symbol of step 3 again")
    assert page.inner_text("#outside").startswith("9 of the nine places")
    label = "Place 4 of the problem: symbol 13"
    assert page.get_attribute("#slot3", "aria-label") == label
    kept(page, "rules")


def test_rules_with_a_symbol_that_is_drawn(opened):
    page = opened("rules", "#read td")
    page.click("#use")
    says(page, "message", "^Draw a symbol first")
    page.click("#slot0")
    replaced = page.get_attribute("#slot0", "title")
    times = len(page.query_selector_all(f"[id^=slot][title='{replaced}']"))
    assert times > 1
    box = page.query_selector("#drawing").bounding_box()
    page.mouse.move(box["x"] + 30, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 90, steps=5)
    page.mouse.move(box["x"] + 90, box["y"] + 30, steps=5)
    page.mouse.up()
    page.click("#use")
    says(
        page,
        "outside",
        "^Outside what it was trained on: a symbol that you drew",
    )
    mine = page.query_selector_all("[id^=slot][title='your symbol']")
    assert len(mine) == times
    says(page, "answer", "This is right")
    kept(page, "rules_drawn")
    page.focus("#drawing")
    for key in ("Space", "ArrowLeft", "ArrowDown", "Space"):
        page.keyboard.press(key)
    page.click("#wipe")
    page.wait_for_function(
        """() => {
          const canvas = document.querySelector("[title='your symbol'] canvas");
          const { width, height } = canvas;
          // A copy: Chromium warns of a canvas that is read more than once.
          const copy = new OffscreenCanvas(width, height).getContext("2d");
          copy.drawImage(canvas, 0, 0);
          const { data } = copy.getImageData(0, 0, width, height);
          return data.every((x, i) => i % 4 === 3 || x === 0);
        }"""
    )
    page.click("#use")
    says(page, "message", "^Draw a symbol first")
    page.click("#next")
    says(page, "message", "^$")


def test_sorting(opened):
    page = opened("sorting", "#card9")
    labels = names_of(page, ".sort-card")

    def rank(label):
        suit, number = label.split(",")[0].split(" ")
        return "♣♦♥♠".index(suit), int(number)

    order = sorted(range(10), key=lambda place: rank(labels[place]))
    page.click(f"#card{order[1]}")
    page.click("#back")
    for place in order:
        page.focus(f"#card{place}")
        page.keyboard.press("Enter")
    says(page, "yourWords", "^All ten places are right")
    page.click("#sort")
    says(page, "answer", r"^Number \d+: . \d+, .* sure")
    says(
        page,
        "answer",
        r"^(All ten places are right|\d of ten places are wrong)",
    )
    assert len(page.query_selector_all("#models .sort-vector")) == 10
    kept(page, "sorting")
    page.check("#doubles")
    says(page, "answer", "^Outside what it was trained on")
    labels = names_of(page, ".sort-card")
    assert labels[0] == labels[9]
    # Deals anew while the model sorts: it sorts the new cards alone.
    page.click("#sort")
    says(page, "answer", "^Number 1: ")
    page.uncheck("#doubles")
    assert page.inner_text("#answer") == ""
    page.wait_for_timeout(600)
    assert page.inner_text("#answer") == ""
    # Leaves the page meanwhile.
    page.click("#sort")
    open_page(page, "", ".tile")
    page.wait_for_timeout(600)
    assert page.faults == []


def test_analogies(opened):
    page = opened("analogies", "#option6")
    for region in (1, 6):
        page.click(f"#region{region}")
        assert page.get_attribute(f"#region{region}", "aria-pressed") == "true"
        assert page.inner_text("#answer") == ""
        page.focus("#option2")
        page.keyboard.press("Enter")
        says(page, "answer", "^You: (right|wrong).* The model: (right|wrong)")
        assert focus(page) == "option2"
        outside = "Outside what it was trained on" in page.inner_text("#words")
        assert outside == (region == 6)
        cells = page.eval_on_selector_all(
            "#tally td", "all => all.map(x => x.textContent)"
        )
        assert "of 1" in cells[region - 1]
        page.click("#next")
    labels = names_of(page, "#options button")
    kinds = {label.split(": ")[1].split(" ")[0] for label in labels}
    assert len(kinds) == 1
    assert len(set(labels)) == 7
    kept(page, "analogies")
