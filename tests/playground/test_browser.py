"""The playground in a real browser: each page is clicked through.

It runs where Playwright is installed and a Chromium is on the path:

    apt-get install chromium
    .venv/bin/python -m pip install playwright
"""

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


def opened(page, tab, ready):
    page.click(f"nav >> text={tab}")
    page.wait_for_selector(ready)


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
        page.click("#board", position={"x": 54 + 108 * place, "y": 162})
    page.wait_for_selector("#heads canvas")
    page.wait_for_function(
        "document.getElementById('answer').textContent.startsWith('Yes')"
    )
    assert re.fullmatch(r"Yes, \d+\.\d %", page.inner_text("#answer"))
    assert len(page.query_selector_all("#heads canvas")) == 4
    kept(page, "relations")
    # Without the last one, the answer changes.
    page.click("#board", position={"x": 270, "y": 162})
    page.wait_for_function(
        "document.getElementById('answer').textContent.startsWith('No')"
    )
    page.click("#example")
    page.wait_for_function(
        "document.getElementById('truth').textContent.includes('right answer')"
    )
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
        page.click("#board", position={"x": 54 + 108 * place, "y": 54})
    for pattern, right in (("ABA", "Yes"), ("AAB", "No"), ("ABC", "No")):
        text = f"Three objects in a row. Is their pattern {pattern}? "
        page.select_option(
            "#question", f"{text}Equal letters are equal objects."
        )
        page.wait_for_function(
            "word => document.getElementById('answer').textContent"
            ".startsWith(word)",
            arg=right,
        )
    kept(page, "patterns")


def test_boxworld(page):
    opened(page, "BoxWorld", "#policy .bar")
    page.select_option("#preset", "boxworld_9x9_relational")
    page.wait_for_function("location.hash.endsWith('9x9_relational')")
    page.wait_for_selector("#attention canvas")
    assert page.inner_text("#state").startswith("0 moves")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "document.getElementById('state').textContent.startsWith('1 moves')"
    )
    page.click("#undo")
    page.wait_for_function(
        "document.getElementById('state').textContent.startsWith('0 moves')"
    )
    assert len(page.query_selector_all("#policy .bar")) == 4
    for _ in range(8):  # Faster than the answers come.
        page.click("#step")
    page.wait_for_function(
        "document.getElementById('state').textContent.startsWith('8 moves')"
    )
    kept(page, "boxworld")
    page.click("#play")
    page.wait_for_function(
        "/Solved|Lost|No moves/.test("
        "document.getElementById('state').textContent)"
    )
    assert page.inner_text("#play") == "Agent plays"
    assert page.query_selector_all("#policy .bar") == []
    page.click("#again")
    page.wait_for_function(
        "document.getElementById('state').textContent.startsWith('0 moves')"
    )


def test_rules(page):
    opened(page, "Rules", "#read td")
    page.click("#next")
    page.wait_for_function(
        "document.getElementById('answer').textContent.includes('right')"
    )
    kept(page, "rules")
    # The distribution of three, with symbols of our own.
    for place, symbol in enumerate([11, 12, 13, 13, 11, 20, 30, 12, 40]):
        page.click(f"#slot{place}")
        page.click(f"#symbol{symbol}")
        page.wait_for_selector(f"#slot{place}[title='symbol {symbol}']")
    page.wait_for_function(
        "document.getElementById('answer').textContent.startsWith('Option 3')"
    )
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
    page.wait_for_function(
        "document.getElementById('where').textContent.startsWith('Frame 9:')"
    )
    page.click("#play")
    assert page.inner_text("#play") == "Play"
    kept(page, "video")
    page.click("#new")
    page.wait_for_function(
        "document.getElementById('where').textContent.startsWith('Frame 1:')"
    )
