"""The page of the Relations Game in a browser, by pointer and by keyboard."""

import pytest
from browser_for_tests import focus
from browser_for_tests import kept
from browser_for_tests import open_page
from browser_for_tests import says
from browser_for_tests import takes

pytestmark = pytest.mark.slow

BETWEEN = "relations/predinet_between"


@pytest.fixture
def between(page):
    open_page(page, "", ".tile")
    open_page(page, BETWEEN, ".relations-heads canvas")
    return page


def trio(page):
    """Two equal objects of new shapes, and a third between them."""
    page.click("#clear")
    for tile, shape, colour in ((3, 0, 3), (4, 5, 20), (5, 0, 3)):
        page.click(f"#shape1_{shape}")
        page.click(f"#colour{colour}")
        page.click(f"#tile{tile}")
    says(page, "answer", "^Yes$")


def label(page, tile):
    return page.get_attribute(f"#tile{tile}", "aria-label")


def middle(page, name):
    box = page.locator(f"#{name}").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_objects_are_placed_and_removed(between):
    page = between
    trio(page)
    says(page, "truth", "^Right answer: Yes. The model is right.$")
    says(page, "outside", "on: new shapes, as in its test.$")
    assert page.locator(".relations-heads canvas").count() == 4
    assert label(page, 3) == "middle left: new shape 1, colour 4"
    kept(page, "relations")
    page.click("#tile5")
    says(page, "answer", "^No$")
    says(page, "outside", "on: 2 objects instead of 3, new shapes.$")
    assert label(page, 5) == "middle right: empty"
    share = float(page.inner_text("#probability").split()[0])
    width = "bar => parseFloat(bar.style.width)"
    filled = page.eval_on_selector(".verdict .bar div", width)
    assert filled == pytest.approx(share, abs=0.06)
    page.click("#turn")
    page.click("#shown")
    page.click("#example")
    says(page, "outside", "on: new shapes, as in its test.$")
    assert page.faults == []


def drag(page, start, *stops):
    """Presses at a point, moves to others, and lets go at the last."""
    page.mouse.move(*start)
    page.mouse.down()
    for x, y in stops:
        page.mouse.move(x, y, steps=6)
    page.mouse.up()


def test_an_object_is_dragged_and_the_answer_follows(between):
    page = between
    trio(page)
    top = page.locator("#board").bounding_box()["y"]
    (x, y), (to_x, to_y) = middle(page, "tile5"), middle(page, "tile2")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 40, steps=4)
    says(page, "outside", "objects stand between tiles")
    page.mouse.move(to_x, to_y + 20, steps=8)
    says(page, "truth", "^Right answer, by the nearest tiles: No.")
    # Nothing moves under the pointer.
    assert page.locator("#board").bounding_box()["y"] == top
    page.mouse.up()
    says(page, "truth", "^Right answer: No.")
    says(page, "outside", "equal objects out of line, new shapes")
    assert label(page, 2).startswith("top right: new shape 1")
    # Objects exchange their places.
    drag(page, (to_x, to_y), middle(page, "tile4"))
    assert label(page, 4).startswith("centre: new shape 1")
    assert label(page, 2).startswith("top right: new shape 6")
    # A press on an empty tile that ends elsewhere does nothing.
    drag(page, middle(page, "tile6"), (to_x + 300, to_y))
    assert label(page, 6) == "bottom left: empty"
    # Off the tiles.
    page.click("#snap")
    last = to_x - 30, to_y + 50
    drag(page, middle(page, "tile4"), middle(page, "tile8"), last)
    says(page, "outside", "objects stand between tiles")
    kept(page, "relations_off")
    page.click("#snap")
    says(page, "truth", "^Right answer: ")
    assert page.faults == []


def test_an_object_is_moved_by_keys(between):
    page = between
    trio(page)
    page.focus("#tile3")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert focus(page) == "tile5"
    page.keyboard.press("Enter")
    assert label(page, 5).endswith(", picked up")
    page.keyboard.press("ArrowUp")
    assert focus(page) == "tile2"
    says(page, "truth", "^Right answer: No.")
    page.keyboard.press("Escape")
    says(page, "truth", "^Right answer: Yes.")
    page.focus("#tile5")
    page.keyboard.press("Enter")
    assert takes(page, "ArrowDown")
    page.keyboard.press("Enter")
    assert label(page, 8) == "bottom right: new shape 1, colour 4"
    says(page, "truth", "^Right answer: No.")
    assert "Right answer: No." in page.locator(".unseen").inner_text()
    page.keyboard.press("Delete")
    assert label(page, 8) == "bottom right: empty"
    page.keyboard.press("Enter")
    assert label(page, 8) == "bottom right: new shape 1, colour 4"
    # Without the tiles an arrow is a pixel.
    page.focus("#snap")
    page.keyboard.press("Space")
    page.focus("#tile8")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    says(page, "outside", "objects stand between tiles")
    assert page.faults == []


def test_two_drawn_shapes(between):
    page = between
    page.click("#draw")
    says(page, "question", "^Two drawn shapes. Are they the same")
    says(page, "answer", "^Same$")
    says(page, "outside", "drawn shapes")
    assert page.is_disabled("#tile0")
    kept(page, "relations_drawn")
    # A stroke over a row.
    x, y = middle(page, "right0")
    page.click("#colour3")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(*middle(page, "right2"), steps=6)
    page.mouse.up()
    says(page, "answer", "^Different$")
    says(page, "truth", "^Right answer: Different.")
    pressed = [
        page.get_attribute(f"#right{cell}", "aria-pressed") for cell in range(3)
    ]
    assert pressed == ["true"] * 3
    page.click("#copy")
    says(page, "answer", "^Same$")
    page.focus("#right4")
    page.keyboard.press("ArrowDown")
    assert focus(page) == "right7"
    page.keyboard.press("Space")
    assert focus(page) == "right7"
    says(page, "truth", "^Right answer: Different.")
    page.click("#change")
    page.click("#clear")
    says(page, "outside", "1 object instead of 3")
    page.click("#place")
    says(page, "question", "^Three objects.")
    assert page.is_enabled("#tile0")
    assert page.faults == []


def test_five_questions_about_a_row(page):
    open_page(page, "", ".tile")
    open_page(
        page, "relations/predinet_row_patterns", ".relations-heads canvas"
    )
    page.click("#clear")
    for tile, shape in enumerate((0, 5, 0)):
        page.click(f"#shape0_{shape}")
        page.click(f"#tile{tile}")
    says(page, "outside", "^Training has boards like this one")
    for task, pattern in enumerate(("AAA", "AAB", "ABA", "ABB", "ABC")):
        page.click(f"#task{task}")
        says(page, "question", pattern)
        right = "Yes" if pattern == "ABA" else "No"
        says(page, "answer", f"^{right}$")
        says(page, "truth", f"^Right answer: {right}. The model is right.")
    kept(page, "relations_row")
    page.click("#tile2")
    says(page, "truth", "does not fit this board")
    assert page.faults == []


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("corelnet_match_rows", "CoRelNet"),
        ("dual_attention_between", "Dual Attention"),
    ],
)
def test_models_without_heads_to_look_at(page, preset, words):
    open_page(page, "", ".tile")
    open_page(page, f"relations/{preset}", "h3 >> text=What it compares")
    says(page, "page", f"This model is a {words}")
    says(page, "answer", "Yes|No")
    assert not page.is_visible("#shown")
    kept(page, preset)
