"""Every page of the playground in a real browser.

`browser_for_tests` says what this needs.
"""

import pytest
from browser_for_tests import focus
from browser_for_tests import kept
from browser_for_tests import open_page
from browser_for_tests import says

from keras_relational.playground.kinds import KINDS

pytestmark = pytest.mark.slow

PAGES = sorted({kind.page for kind in KINDS.values()})


def test_start(page):
    open_page(page, "", ".tile")
    assert len(page.query_selector_all(".tile canvas")) == len(PAGES)
    assert page.get_attribute("#tab-start", "aria-current") == "page"
    kept(page, "start")
    page.click(".tile >> nth=0")
    page.wait_for_selector("#preset", state="attached")
    page.wait_for_selector("#page h2")
    assert page.get_attribute("#tab-start", "aria-current") is None
    assert focus(page) != "page"


@pytest.mark.parametrize(
    "name",
    ["%E0%A4%A", "%", "nothing", "constructor", "sorting/x", "a" * 200],
)
def test_says_that_an_address_has_no_page(page, name):
    page.evaluate("name => { location.hash = name; }", name)
    says(page, "message", "^No page has the address “#")
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    open_page(page, "", ".tile")
    assert page.inner_text("#message") == ""
    assert page.faults == []


def test_says_that_a_preset_does_not_load_and_tries_again(page):
    address = "**/presets/abstractor_sorting.json"
    waiting = []
    page.route(address, lambda route: waiting.append(route))
    try:
        # What fails when its page was left is not said.
        open_page(page, "sorting", "p >> text=Loading the model")
        open_page(page, "", ".tile")
        waiting.pop().abort()
        page.wait_for_timeout(300)
        assert page.inner_text("#message") == ""
        page.unroute(address)
        page.route(address, lambda route: route.abort())
        open_page(page, "sorting", "#reload")
        says(page, "message", "^abstractor_sorting did not load. No answer")
        open_page(page, "", ".tile")
        assert page.inner_text("#message") == ""
        open_page(page, "sorting", "#reload")
    finally:
        page.unroute(address)
        page.faults.clear()  # The browser logs what does not load.
    page.click("#reload")
    page.wait_for_selector("#card9")
    kept(page, "sorting_reloaded")


@pytest.mark.parametrize("width", [390, 320])
@pytest.mark.parametrize("name", ["", *PAGES])
def test_no_page_is_wider_than_a_phone(page, name, width):
    open_page(page, "", ".tile")
    page.set_viewport_size({"width": width, "height": 800})
    try:
        open_page(page, name, "#page h2")
        page.wait_for_timeout(500)
        wide = page.evaluate(
            """() => [...document.querySelectorAll("body *")].filter((x) =>
                x.getBoundingClientRect().right > innerWidth).map((x) =>
                x.outerHTML.slice(0, 80))"""
        )
        assert wide == []
        kept(page, f"{name or 'start'}_{width}")
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize("name", PAGES)
def test_every_control_is_reached_by_tab_and_shows_it(page, name):
    open_page(page, "", ".tile")
    open_page(page, name, "#page h2")
    page.wait_for_timeout(500)
    page.click("h1", position={"x": 1, "y": 1}, modifiers=["Alt"])
    page.evaluate("document.activeElement.blur()")
    controls = page.evaluate(
        """() => {
            const found = [...document.querySelectorAll(
                "a, button, input, select, [onclick], [tabindex='0']")].filter(
                (x) => x.checkVisibility() && !x.disabled
                && x.tabIndex >= 0);
            // A page may make some anew when an answer comes, with their ids.
            found.forEach((element, i) => { element.id ||= `control${i}`; });
            return found.map((element) => element.id);
        }"""
    )
    assert len(controls) > 3
    for control in controls:
        page.keyboard.press("Tab")
        outline, label = page.evaluate(
            """() => {
                const found = document.activeElement;
                return [getComputedStyle(found).outline,
                    found.ariaLabel || found.title || found.innerText
                    || found.labels?.[0]?.innerText];
            }"""
        )
        assert (focus(page), bool(label)) == (control, True)
        assert "solid 3px" in outline, control
