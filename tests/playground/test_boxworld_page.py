"""BoxWorld's page in a real browser: a race, by pointer and by keyboard."""

import re

import pytest
from browser_for_tests import focus
from browser_for_tests import kept
from browser_for_tests import open_page
from browser_for_tests import says
from browser_for_tests import takes

pytestmark = pytest.mark.slow

BARS = "#policy .bar"


@pytest.fixture
def race(page):
    open_page(page, "", ".tile")
    open_page(page, "boxworld/boxworld_9x9_relational", BARS)
    says(page, "looks-at", "^It looks most at ")
    yield page
    kept(page, "boxworld")


def moves(page, whose):
    return int(page.inner_text(f"#{whose}-moves").split()[0])


def click_hint(page):
    """Walks to the tile that a hint marks, by a click on the board."""
    page.click("#hint")
    text = page.inner_text("#your-told")
    row, column = map(int, re.search(r"row (\d+), column (\d+)", text).groups())
    box = page.query_selector("#your-board").bounding_box()
    tile = box["height"] / 9
    x, y = box["x"] + (column - 0.5) * tile, box["y"] + (row - 0.5) * tile
    page.mouse.click(x, y)
    says(page, "your-told", "^(You (took|opened)|Solved)")


def test_hints_lead_to_the_gem_and_the_agent_ends_too(race):
    race.select_option("#choice", "likeliest")
    while "Solved" not in race.inner_text("#your-told"):
        click_hint(race)
    assert "No way is shorter." in race.inner_text("#your-told")
    says(race, "verdict", "(win|wins) this puzzle|A draw")
    says(
        race, "tally", r"^Puzzles that both played to the end: 1\. You solved 1"
    )
    # The game is over: moves have no effect.
    number = moves(race, "your")
    race.click("#left")
    assert moves(race, "your") == number
    # What would it do in your place, one move before?
    assert race.inner_text("#looks-at") == "This game is over."
    race.select_option("#pace", "goes")
    race.click("#undo")
    race.click("#look-your")
    says(race, "looks-at", "^It looks most at ")
    says(race, "policy", r"\d\s%")
    assert moves(race, "your") == number - 1
    race.click("#again")
    assert moves(race, "your") == moves(race, "its") == 0
    assert race.inner_text("#verdict") == ""


def test_the_agent_waits_for_you_or_goes_on(race):
    race.click("#right")
    says(race, "its-moves", "^1 move,")
    # After a click of the mouse the arrow keys walk.
    race.keyboard.press("ArrowRight")
    race.keyboard.press("ArrowLeft")
    says(race, "its-moves", "^3 moves,")
    assert moves(race, "your") == 3
    race.click("#undo")
    says(race, "its-moves", "^2 moves,")
    assert moves(race, "your") == 2
    race.click("#step")
    says(race, "its-moves", "^3 moves,")
    race.click("#again")
    race.select_option("#pace", "goes")
    race.click("#right")
    says(race, "its-moves", "^[3-9] moves,")
    assert moves(race, "your") == 1
    race.click("#play")
    assert race.inner_text("#play") == "Play on"
    race.wait_for_timeout(500)
    number = moves(race, "its")
    race.wait_for_timeout(800)
    assert moves(race, "its") == number


def test_by_keyboard_alone(race):
    race.evaluate("document.activeElement.blur()")
    assert takes(race, "ArrowDown")
    assert not takes(race, "a")
    says(race, "your-moves", "^1 move,")
    race.focus("#look-your")
    race.keyboard.press("Enter")
    assert focus(race) == "look-your"
    assert race.get_attribute("#look-your", "aria-pressed") == "true"
    # A select keeps its arrow keys, and a button keeps the focus.
    race.focus("#choice")
    assert not takes(race, "ArrowDown")
    race.focus("#down")
    race.keyboard.press("Enter")
    assert focus(race) == "down"
    says(race, "your-moves", "^2 moves,")
    race.check("#letters")
    assert race.inner_text("#yours ul").startswith(
        "The player: row 3, column 1"
    )


@pytest.mark.parametrize("name", ["3x18_simplicial", "bridge_relational"])
def test_other_boards(page, name):
    open_page(page, "", ".tile")
    open_page(page, f"boxworld/boxworld_{name}", BARS)
    says(page, "looks-at", "^It looks most at ")
    assert len(page.query_selector_all("#looks figure")) == 4
    page.click("#new")
    page.click("#step")
    says(page, "its-moves", "^1 move,")
    kept(page, f"boxworld_{name}")
