"""The playground in a real browser: each page is clicked through.

It runs where Playwright is installed and a Chromium is on the path:

    apt-get install chromium
    .venv/bin/python -m pip install playwright
"""

import contextlib
import os
import pathlib
import re
import shutil

import pytest

from keras_relational import playground

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("needs a Chromium", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")

# `SCREENSHOTS=folder` keeps a picture of each page.
SCREENSHOTS = os.environ.get("SCREENSHOTS")


@pytest.fixture(scope="module")
def page():
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with playground.serve() as url, playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=arguments, timeout=120_000
        )
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.set_default_timeout(120_000)
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("console", lambda message: page.faults.append(message.text))
        page.goto(url)
        page.wait_for_selector("#board")
        yield page
        browser.close()


# The name of each page, its tab, and what is there when it is shown.
PAGES = {
    "relations_game": ("Relations", "#heads canvas"),
    "boxworld": ("BoxWorld", "#policy .bar"),
    "rules": ("Rules", "#read td"),
    "video": ("Video", "#strips i"),
}


def opened(page, tab, ready):
    page.click(f"nav >> text={tab}")
    page.wait_for_selector(ready)


def says(page, name, pattern):
    """Waits until the text of an element matches."""
    page.wait_for_function(
        "([name, pattern]) =>"
        " RegExp(pattern).test(document.getElementById(name).textContent)",
        arg=[name, pattern],
    )


@contextlib.contextmanager
def held(page, method, path):
    """Yields the requests of a kind, which are answered after the block."""
    routes = []

    def hold(route):
        if route.request.method == method:
            routes.append(route)
        else:
            route.fallback()

    page.route(path, hold)
    yield routes
    page.unroute(path)
    for route in routes:
        # A request that the page gave up is not there any more.
        with contextlib.suppress(playwright.Error):
            route.continue_()


@contextlib.contextmanager
def requested(page):
    """Yields the requests that the page sends while a block runs."""
    found = []

    def add(request):
        found.append(f"{request.method} {request.url}")

    page.on("request", add)
    yield found
    page.wait_for_timeout(500)
    page.remove_listener("request", add)


def takes(page, key):
    """Whether the page takes a key from the element that has the focus."""
    return page.evaluate(
        """key => !document.activeElement.dispatchEvent(new KeyboardEvent(
            "keydown", {key, bubbles: true, cancelable: true}))""",
        key,
    )


def focus(page):
    return page.evaluate("document.activeElement.id")


def kept(page, name):
    assert page.faults == []
    assert page.inner_text("#message") == ""
    if SCREENSHOTS:
        path = pathlib.Path(SCREENSHOTS) / f"playground_{name}.png"
        page.screenshot(path=path, full_page=True)


def drawn(page, selector):
    """The picture on a canvas, as text."""
    return page.eval_on_selector(selector, "canvas => canvas.toDataURL()")


def test_relations(page):
    opened(page, "Relations", "#board")
    page.wait_for_selector("#heads canvas")
    before = drawn(page, "#board")
    page.click("#clear")
    assert page.query_selector_all("#heads canvas") == []
    # Two equal objects, and a third between them.
    for place, shape, colour in ((0, 0, 3), (1, 5, 20), (2, 0, 3)):
        page.click(f"[title='hexominoes {shape}']")
        page.click(f"[title='colour {colour}']")
        page.click(f"#tile{3 + place}")
    page.wait_for_selector("#heads canvas")
    says(page, "answer", "^Yes")
    assert re.fullmatch(r"Yes, \d+\.\d %", page.inner_text("#answer"))
    assert len(page.query_selector_all("#heads canvas")) == 4
    kept(page, "relations")
    # Without the last one, the answer changes.
    page.click("#tile5")
    says(page, "answer", "^No")
    page.click("#example")
    says(page, "truth", "right answer")
    assert drawn(page, "#board") != before


def test_relations_with_several_questions(page):
    opened(page, "Relations", "#board")
    page.select_option("#preset", "predinet_row_patterns")
    page.wait_for_selector("#question")
    page.wait_for_selector("#heads canvas")
    page.click("#clear")
    # The pattern ABA.
    for place, shape in enumerate((0, 5, 0)):
        page.click(f"[title='hexominoes {shape}']")
        page.click(f"#tile{place}")
    for pattern, right in (("ABA", "Yes"), ("AAB", "No"), ("ABC", "No")):
        text = f"Three objects in a row. Is their pattern {pattern}? "
        page.select_option(
            "#question", f"{text}Equal letters are equal objects."
        )
        says(page, "answer", f"^{right}")
    kept(page, "patterns")


def test_boxworld(page):
    opened(page, "BoxWorld", "#policy .bar")
    page.select_option("#preset", "boxworld_9x9_relational")
    page.wait_for_function("location.hash.endsWith('9x9_relational')")
    page.wait_for_selector("#attention canvas")
    assert page.inner_text("#state").startswith("0 moves")
    page.focus("#board")
    page.keyboard.press("ArrowRight")
    says(page, "state", "^1 moves")
    page.click("#undo")
    says(page, "state", "^0 moves")
    assert len(page.query_selector_all("#policy .bar")) == 4
    for _ in range(8):  # Faster than the answers come.
        page.click("#step")
    says(page, "state", "^8 moves")
    kept(page, "boxworld")
    page.click("#play")
    says(page, "state", "Solved|Lost|No moves")
    assert page.inner_text("#play") == "Agent plays"
    assert page.query_selector_all("#policy .bar") == []
    page.click("#again")
    says(page, "state", "^0 moves")


def test_rules(page):
    opened(page, "Rules", "#read td")
    page.click("#next")
    says(page, "answer", "right")
    kept(page, "rules")
    # The distribution of three, with symbols of our own.
    for place, symbol in enumerate([11, 12, 13, 13, 11, 20, 30, 12, 40]):
        page.click(f"#slot{place}")
        page.click(f"#symbol{symbol}")
        page.wait_for_selector(f"#slot{place}[title='symbol {symbol}']")
    says(page, "answer", "^Option 3")
    assert page.inner_text("#answer").endswith("This is right.")


def test_video(page):
    opened(page, "Video", "#strips i")
    for strip in ("axis", "schema"):
        assert len(page.query_selector_all(f"#{strip} i")) == 40
    frame = page.inner_text("#where")
    page.wait_for_function(
        "text => document.getElementById('where').textContent !== text",
        arg=frame,
    )
    says(page, "where", "^Frame 9:")
    page.click("#play")
    assert page.inner_text("#play") == "Play"
    kept(page, "video")
    page.click("#new")
    says(page, "where", "^Frame 1:")


@pytest.mark.parametrize("when", ["described", "asked", "shown"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_is_left_leaves_nothing(page, name, when):
    other = "relations_game" if name == "rules" else "rules"
    opened(page, *PAGES[other])
    if when == "shown":
        opened(page, *PAGES[name])
        if name == "boxworld":
            page.click("#play")
    method = {"described": "GET", "asked": "POST", "shown": "none"}[when]
    with held(page, method, "**/presets/*") as routes:
        page.click(f"nav >> text={PAGES[name][0]}")
        while not routes and when != "shown":
            page.wait_for_timeout(10)
        page.unroute("**/presets/*")
        opened(page, *PAGES[other])
    page.evaluate(
        """() => {
            const { prototype } = CanvasRenderingContext2D;
            const { putImageData } = prototype;
            window.painted = 0;
            prototype.putImageData = function (...args) {
                window.painted += 1;
                putImageData.apply(this, args);
            };
        }"""
    )
    with requested(page) as requests:
        title = page.inner_text("h2")
        assert not takes(page, "ArrowRight")
    assert requests == []
    assert page.evaluate("window.painted") == 0
    assert page.inner_text("h2") == title
    assert len(page.query_selector_all("#page > h2")) == 1
    assert page.query_selector(PAGES[other][1])
    assert page.inner_text("#message") == ""
    assert page.faults == []


def test_only_the_last_question_is_answered(page):
    opened(page, *PAGES["relations_game"])
    page.click("#clear")
    empty = drawn(page, "#board")
    with held(page, "POST", "**/presets/*") as routes:
        page.click("#example")
        while not routes:
            page.wait_for_timeout(10)
        page.click("#clear")
    page.wait_for_timeout(500)
    assert drawn(page, "#board") == empty
    assert page.inner_text("#answer") == ""
    assert page.inner_text("#message") == ""


def test_another_video_plays_before_the_first_is_there(page):
    opened(page, *PAGES["rules"])
    with held(page, "POST", "**/presets/*") as routes:
        page.click("nav >> text=Video")
        while not routes:
            page.wait_for_timeout(10)
        page.unroute("**/presets/*")
        page.click("#new")
        says(page, "where", "^Frame 3:")
    assert page.inner_text("#message") == ""
    assert page.faults == []


def test_keys_in_a_control_do_not_walk(page):
    opened(page, *PAGES["boxworld"])
    with requested(page) as requests:
        for control in ("#preset", "nav a", "#step", "[type=checkbox]"):
            page.focus(control)
            for arrow in ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"):
                assert not takes(page, arrow), control
        page.focus("#preset")
        page.keyboard.press("ArrowUp")  # The first one is chosen.
        page.focus("#board")
        # The browser goes back.
        assert page.evaluate(
            """document.activeElement.dispatchEvent(new KeyboardEvent(
                "keydown", {key: "ArrowLeft", altKey: true, bubbles: true,
                cancelable: true}))"""
        )
    assert requests == []
    assert page.inner_text("#state").startswith("0 moves")
    page.keyboard.press("ArrowRight")
    says(page, "state", "^1 moves")
    # A click of the mouse does not take the keys away from the board.
    page.click("#undo")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    says(page, "state", "^2 moves")


@pytest.mark.parametrize("name", PAGES)
def test_every_control_is_reached_by_tab_and_shows_it(page, name):
    opened(page, *PAGES[name])
    page.click("h1")
    controls = page.evaluate(
        """() => {
            const found = [...document.querySelectorAll(
                "a, button, input, select, [onclick], [tabindex]")];
            found.forEach((element, i) => { element.dataset.number = i; });
            return found.map((element) => element.outerHTML.slice(0, 80));
        }"""
    )
    assert len(controls) > 6
    for number, control in enumerate(controls):
        page.keyboard.press("Tab")
        found, outline, label = page.evaluate(
            """() => {
                const found = document.activeElement;
                return [found.dataset.number, getComputedStyle(found).outline,
                    found.ariaLabel || found.title || found.innerText
                    || found.labels[0].innerText];
            }"""
        )
        assert (found, bool(label)) == (str(number), True), control
        assert "solid 3px" in outline, control


def test_relations_by_keyboard(page):
    page.focus("#tab-relations_game")
    page.keyboard.press("Enter")
    page.wait_for_selector("#heads canvas")
    assert focus(page) == "tab-relations_game"
    keys = {
        "clear": "Enter",
        "hexominoes3": "Space",
        "colour5": "Enter",
        "tile4": "Space",
        "tile8": "Enter",
    }
    for control, key in keys.items():
        page.focus(f"#{control}")
        page.keyboard.press(key)
        assert focus(page) == control
        assert page.evaluate("document.activeElement.matches(':focus-visible')")
    page.wait_for_selector("#heads canvas")
    assert focus(page) == "tile8"
    label = "Row 2, column 2: hexominoes 3, colour 5"
    assert page.get_attribute("#tile4", "aria-label") == label
    pressed = page.query_selector_all(".palette [aria-pressed=true]")
    ids = [control.get_attribute("id") for control in pressed]
    assert ids == ["hexominoes3", "colour5"]
    page.keyboard.press("Enter")
    page.wait_for_function(
        "document.getElementById('tile8').ariaLabel"
        " === 'Row 3, column 3: empty'"
    )
    assert focus(page) == "tile8"


def test_rules_by_keyboard(page):
    page.focus("#tab-rules")
    page.keyboard.press("Enter")
    page.wait_for_selector("#read td")
    assert focus(page) == "tab-rules"
    assert page.get_attribute("#tab-rules", "aria-current") == "page"
    page.focus("#slot3")
    page.keyboard.press("Enter")
    assert focus(page) == "slot3"
    assert page.get_attribute("#slot3", "aria-pressed") == "true"
    page.focus("#symbol7")
    page.keyboard.press("Enter")
    page.wait_for_selector("#slot4[aria-pressed=true]")
    assert focus(page) == "symbol7"
    label = "Place 4 of the problem: symbol 7"
    assert page.get_attribute("#slot3", "aria-label") == label


def test_choosing_a_model_keeps_the_focus(page):
    opened(page, *PAGES["boxworld"])
    page.focus("#preset")
    with page.expect_request("**/presets/*"):
        page.keyboard.press("ArrowDown")
    page.wait_for_selector("#policy .bar")
    assert focus(page) == "preset"
    assert page.inner_text("#state").startswith("0 moves")


@pytest.mark.parametrize(
    "name", ["%E0%A4%A", "%", "nothing", "constructor", "rules/none", "a" * 200]
)
def test_says_that_an_address_has_no_page(page, name):
    opened(page, *PAGES["video"])
    page.evaluate("name => { location.hash = name; }", name)
    says(page, "message", "^No page has the address “#")
    kind = "rules" if name == "rules/none" else "relations_game"
    page.wait_for_selector(PAGES[kind][1])
    current = page.get_attribute("[aria-current]", "id")
    assert current == f"tab-{kind}"
    assert page.evaluate("document.documentElement.scrollWidth") == 1200
    assert page.faults == []
    opened(page, *PAGES["video"])
    assert page.inner_text("#message") == ""


@pytest.mark.parametrize("width", [390, 320])
def test_no_page_is_wider_than_a_phone(page, width):
    names = [*PAGES, "relations_game/predinet_row_patterns"]
    names += ["boxworld/boxworld_9x9_relational"]
    page.set_viewport_size({"width": width, "height": 800})
    try:
        for name in names:
            page.evaluate("name => { location.hash = name; }", name)
            page.wait_for_selector(PAGES[name.split("/")[0]][1])
            wide = page.evaluate(
                """() => [...document.querySelectorAll("body *")].filter((x) =>
                    x.getBoundingClientRect().right > innerWidth).map((x) =>
                    x.outerHTML.slice(0, 80))"""
            )
            assert wide == [], name
            assert page.evaluate(
                "document.documentElement.scrollWidth <= innerWidth"
            )
            board = page.query_selector("#board")
            if board:
                box = board.bounding_box()
                assert 200 < box["width"] <= width
    finally:
        page.set_viewport_size({"width": 1200, "height": 900})
