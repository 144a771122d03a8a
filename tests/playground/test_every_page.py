"""Every page of the playground in a real browser.

`browser_for_tests` says what this needs.
"""

import pytest
from browser_for_tests import focus
from browser_for_tests import kept
from browser_for_tests import open_page
from browser_for_tests import says

from keras_relational.playground.kinds import KINDS

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
    "name", ["%E0%A4%A", "%", "nothing", "constructor", "rules/none", "a" * 200]
)
def test_says_that_an_address_has_no_page(page, name):
    page.evaluate("name => { location.hash = name; }", name)
    says(page, "message", "^No page has the address “#")
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    open_page(page, "", ".tile")
    assert page.inner_text("#message") == ""
    assert page.faults == []


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
            found.forEach((element, i) => { element.dataset.number = i; });
            return found.map((element) => element.outerHTML.slice(0, 80));
        }"""
    )
    assert len(controls) > 3
    for number, control in enumerate(controls):
        page.keyboard.press("Tab")
        found, outline, label = page.evaluate(
            """() => {
                const found = document.activeElement;
                return [found.dataset.number, getComputedStyle(found).outline,
                    found.ariaLabel || found.title || found.innerText
                    || found.labels?.[0]?.innerText];
            }"""
        )
        assert (found, bool(label)) == (str(number), True), control
        assert "solid 3px" in outline, control
