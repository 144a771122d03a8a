"""The playground's server: its page, its answers, and what it refuses."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest

from keras_relational import models
from keras_relational import playground
from keras_relational.playground.arrays import as_json
from keras_relational.playground.arrays import from_json
from keras_relational.playground.kinds import KINDS
from keras_relational.playground.server import STATIC

ROOT = pathlib.Path(__file__).parents[2]
PRESET = "boxworld_3x18_relational"
PAGES = {kind.page for kind in KINDS.values()}


@pytest.fixture(scope="module")
def url():
    with playground.serve([PRESET]) as url:
        yield url


def ask(url, path, body=None):
    """The status and the content of an answer."""
    request = urllib.request.Request(f"{url}/{path}", body)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_sends_the_page_and_what_it_names(url):
    status, page = ask(url, "")
    assert status == 200
    assert b"<title>keras_relational: playground</title>" in page
    for file in STATIC.iterdir():
        assert ask(url, file.name) == (200, file.read_bytes())
    assert b"playground.js" in page
    assert b"playground.css" in page


def images(number=1):
    rng = np.random.default_rng(0)
    return {"image": rng.integers(256, size=(number, 3, 19, 3), dtype="uint8")}


def body_of(inputs):
    sent = {name: as_json(value) for name, value in inputs.items()}
    return json.dumps(sent).encode()


def test_lists_describes_and_runs_presets(url):
    listed = json.loads(ask(url, "presets.json")[1])
    headline = models.preset_metadata(PRESET)["headline"]
    preset = {"name": PRESET, "page": "boxworld", "headline": headline}
    assert listed == {"runner": "server", "presets": [preset]}
    status, content = ask(url, f"presets/{PRESET}.json")
    assert status == 200
    assert json.loads(content)["actions"] == ["left", "up", "right", "down"]
    for number in (1, 3):
        inputs = images(number)
        status, content = ask(url, f"presets/{PRESET}", body_of(inputs))
        assert status == 200
        found = json.loads(content)
        expected = playground.Playground([PRESET]).run(PRESET, inputs)
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            np.testing.assert_allclose(
                from_json(found[name]), values, atol=1e-5
            )


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        (f"presets/{PRESET}", b"{", 400, "The body must be JSON"),
        (f"presets/{PRESET}", b"[1]", 400, "must be a JSON object"),
        (f"presets/{PRESET}", b"\xff", 400, "The body must be JSON"),
        (f"presets/{PRESET}", b"{}", 400, "The inputs must be image"),
        (f"presets/{PRESET}", b'{"image": 1}', 400, "An array must be"),
        ("presets/none.json", None, 400, f"Expected one of: {PRESET}"),
        ("presets/none", b"{}", 400, f"Expected one of: {PRESET}"),
        (f"presets/{PRESET}", None, 405, "405"),
        ("presets.json", b"{}", 405, "405"),
        ("nothing.html", None, 404, "404"),
        ("../server.py", None, 403, "403"),
        ("%2e%2e/server.py", None, 403, "403"),
    ],
)
def test_refuses(url, path, body, status, words):
    found, content = ask(url, path, body)
    assert (found, words in content.decode()) == (status, True)


def test_an_error_of_the_server_is_said_in_words(url, monkeypatch):
    def fail(*_):
        raise RuntimeError

    monkeypatch.setattr(playground.Playground, "run", fail)
    status, content = ask(url, f"presets/{PRESET}", b"{}")
    assert status == 500
    assert json.loads(content) == {
        "error": "The server failed (500): see its log"
    }


@pytest.mark.parametrize("page", sorted(PAGES))
def test_pages_leave_the_browser_to_what_ends_with_them(page):
    # `Page` in page.js ends questions, keys and timers with the page.
    text = (STATIC / f"{page}.js").read_text()
    found = re.findall(
        r"\b(?:addEventListener|document|fetch\w*|globalThis|location|onhash"
        r"\w+|requestAnimationFrame|self|setInterval|setTimeout|window"
        r")\b",
        text,
    )
    assert found == []


def test_refuses_large_bodies(url):
    host, port = url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    with contextlib.closing(connection):
        with contextlib.suppress(ConnectionError):
            connection.request("POST", f"/presets/{PRESET}", b" " * 3_000_000)
        # Tornado answers, or closes the connection without an answer.
        with contextlib.suppress(ConnectionError):
            assert connection.getresponse().status in (400, 413)
    assert ask(url, "presets.json")[0] == 200


def test_every_preset_has_a_page():
    found = {x["name"]: x["page"] for x in playground.Playground().presets()}
    assert set(found) == set(models.preset_names())
    assert set(found.values()) == PAGES


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (
            {"images": np.zeros((1, 3, 19, 3), "uint8")},
            "must be image. Received",
        ),
        ({"image": np.zeros((1, 3, 19, 3), "float32")}, "Received: float32"),
        ({"image": np.zeros((3, 19, 3), "uint8")}, r"of shape \(3, 19, 3\)"),
        ({"image": np.zeros((1, 3, 18, 3), "uint8")}, r"\(1, 3, 18, 3\)"),
        ({"image": np.zeros((0, 3, 19, 3), "uint8")}, r"\(0, 3, 19, 3\)"),
    ],
)
def test_refuses_other_inputs(inputs, words):
    with pytest.raises(ValueError, match=words):
        playground.Playground([PRESET]).run(PRESET, inputs)


@pytest.mark.parametrize(
    "sent",
    [
        None,
        [],
        {"dtype": "uint8", "shape": [2]},
        {"dtype": "object", "shape": [1], "bytes": "AP8="},
        {"dtype": "uint8", "shape": [3], "bytes": "AP8="},
        {"dtype": "uint8", "shape": "2", "bytes": "AP8="},
        {"dtype": "uint8", "shape": [2], "bytes": "-"},
        {"dtype": "int32", "shape": [2], "bytes": "AP8="},
    ],
)
def test_refuses_what_is_no_array(sent):
    with pytest.raises(ValueError, match="An array must be an object of"):
        from_json(sent)


def test_refuses_presets_without_a_page(tmp_path):
    models.save_to_preset(models.filler_autoencoder("vector"), tmp_path)
    with pytest.raises(ValueError, match="no page and no question"):
        playground.Playground([tmp_path])
    with pytest.raises(ValueError, match="`preset` must be one of"):
        playground.Playground(["none"])
    with pytest.raises(ValueError, match="Two presets have the name"):
        playground.Playground([PRESET, PRESET])


def test_says_that_a_port_is_taken(url):
    port = int(url.rsplit(":", 1)[1])
    with (
        pytest.raises(OSError, match=f"Cannot listen on 127.0.0.1:{port}"),
        playground.serve([PRESET], port=port),
    ):
        pass


def test_the_command_serves_until_it_is_stopped():
    command = [sys.executable, "-m", "keras_relational.playground"]
    command += ["--port", "0", "--preset", PRESET]
    # As a user starts it, who has none of the Makefile's variables.
    plain = dict(os.environ)
    plain.pop("TF_CPP_MIN_LOG_LEVEL", None)
    plain["PYTHONPATH"] = str(ROOT)
    with subprocess.Popen(
        command,
        env=plain,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        line = server.stdout.readline()
        url = line.split()[1]
        assert ask(url, "presets.json")[0] == 200
        server.terminate()
        assert server.stdout.read() == "Stopped\n"
        assert server.stderr.read() == ""
        assert server.wait(30) == 0


@pytest.mark.slow
def test_the_command_refuses_what_is_not_there():
    command = [sys.executable, "-m", "keras_relational.playground"]
    ended = subprocess.run(
        [*command, "--preset", "none"], capture_output=True, text=True
    )
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "python -m keras_relational.playground: There is no preset, folder or "
        "archive 'none'. `preset` must be "
    )
