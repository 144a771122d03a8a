"""The playground's JavaScript in tests: in a browser, and alone in Node.

Node comes with Playwright. Without it these tests are skipped, and without a
Chromium those in a browser: `apt-get install chromium`.
`PLAYGROUND_SITE=build/site/play` tests these static files, which run the models
in the browser; otherwise a local server runs them. `SCREENSHOTS=folder` keeps a
picture of each page.
"""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading

import pytest

from keras_relational import playground
from keras_relational.playground.server import STATIC

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SITE = os.environ.get("PLAYGROUND_SITE")
SCREENSHOTS = os.environ.get("SCREENSHOTS")


def in_node(module, expression, **values):
    """The JSON value of a JavaScript expression that uses a module.

    Args:
        module: Name of one of the playground's files that know rules, and not
            the browser. The expression calls its functions as `it.NAME`.
        expression: JavaScript. `values` are JSON values that it uses.
    """
    playwright = pytest.importorskip("playwright")
    node = pathlib.Path(playwright.__file__).parent / "driver" / "node"
    names = ", ".join(values)
    source = (
        f"import * as it from {json.dumps((STATIC / module).as_uri())};\n"
        f"const {{ {names} }} = {json.dumps(values)};\n"
        f"console.log(JSON.stringify({expression}));"
    )
    found = subprocess.run(
        [node, "--input-type=module", "-"],
        input=source,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@contextlib.contextmanager
def served():
    """Serves the playground, and yields its address."""
    if not SITE:
        with playground.serve() as url:
            yield url
        return

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Handler, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextlib.contextmanager
def opened_browser(url):
    """A page of Chromium at the playground's address, with its `faults`.

    These are what it writes to the console, errors, and what it asks another
    machine for.
    """
    from playwright import sync_api

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with sync_api.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=arguments, timeout=120_000
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(60_000)
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("console", lambda message: page.faults.append(message.text))

        def refuse_others(route):
            if not route.request.url.startswith((url, "data:")):
                page.faults.append(f"asks for {route.request.url}")
                route.abort()
            else:
                route.continue_()

        page.route("**/*", refuse_others)
        page.goto(url)
        page.wait_for_selector(".tile")
        yield page
        browser.close()


def open_page(page, address, ready):
    """Opens `#address`, and waits for a selector."""
    page.evaluate("address => { location.hash = address; }", address)
    page.wait_for_selector(ready)


def says(page, name, pattern):
    """Waits until the text of the element of an id matches."""
    page.wait_for_function(
        "([name, pattern]) =>"
        " RegExp(pattern).test(document.getElementById(name)?.textContent)",
        arg=[name, pattern],
    )


def kept(page, name):
    """Asserts that nothing went wrong, and keeps a picture if asked to."""
    assert page.faults == [], page.faults
    assert page.inner_text("#message") == ""
    if SCREENSHOTS:
        path = pathlib.Path(SCREENSHOTS) / f"playground_{name}.png"
        page.screenshot(path=path, full_page=True)


def takes(page, key):
    """Whether the page takes a key from the element that has the focus."""
    return page.evaluate(
        """key => !document.activeElement.dispatchEvent(new KeyboardEvent(
            "keydown", {key, bubbles: true, cancelable: true}))""",
        key,
    )


def focus(page):
    return page.evaluate("document.activeElement.id")
