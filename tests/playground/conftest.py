"""One playground for all tests, and one browser for the tests of a file."""

import browser_for_tests
import pytest


@pytest.fixture(scope="session")
def served():
    pytest.importorskip("playwright")
    if browser_for_tests.CHROMIUM is None:
        pytest.skip("needs a Chromium")
    with browser_for_tests.served() as url:
        yield url


@pytest.fixture(scope="module")
def page(served):
    with browser_for_tests.opened_browser(served) as page:
        yield page
