"""One browser for the tests of a file."""

import pytest


@pytest.fixture(scope="module")
def page():
    browser_for_tests = pytest.importorskip("browser_for_tests")
    if browser_for_tests.CHROMIUM is None:
        pytest.skip("needs a Chromium")
    with browser_for_tests.opened_browser() as page:
        yield page
