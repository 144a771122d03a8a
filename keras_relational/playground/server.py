"""The server of the playground: pages, and answers as JSON, on Tornado."""

import asyncio
import concurrent.futures
import contextlib
import functools
import json
import pathlib
import socket
import threading
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_relational import models
from keras_relational.playground.arrays import as_json
from keras_relational.playground.arrays import from_json
from keras_relational.playground.kinds import kind_of
from keras_relational.playground.kinds import load
from keras_relational.validation import needs_extra

STATIC = pathlib.Path(__file__).with_name("static")
MAX_BODY_BYTES = 1_000_000


class Playground:
    """The presets to try, what their pages need, and their networks.

    A model is loaded when it is asked for the first time.

    Args:
        presets: Names of presets, or folders of them. By default all presets of
            the library.

    Raises:
        ValueError: If there is no such preset, no page for it, or another
            preset of the same name.

    Example:

    >>> playground = Playground(["predinet_between"])
    >>> boards = {"image": np.zeros((1, 36, 36, 3), "uint8")}
    >>> playground.run("predinet_between", boards)["logits"].shape
    (1, 2)
    """

    def __init__(
        self, presets: Sequence[str | pathlib.Path] | None = None
    ) -> None:
        self._listed: list[dict[str, str]] = []
        self._make: dict[str, Any] = {}
        for preset in models.preset_names() if presets is None else presets:
            card = models.preset_metadata(preset)
            name = pathlib.Path(preset).name
            if name in self._make:
                raise ValueError(
                    f"Two presets have the name {name!r}. Rename the folder of "
                    "one of them"
                )
            self._listed.append(
                {
                    "name": name,
                    "page": kind_of(card, preset).page,
                    "headline": card.get("headline", "a model of your own"),
                }
            )
            self._make[name] = functools.partial(load, card, preset)
        self._loaded: dict[str, Any] = {}
        self._networks: dict[str, Any] = {}

    def presets(self) -> list[dict[str, str]]:
        """For each preset its `name`, its `page` and its `headline`."""
        return self._listed

    def describe(self, preset: str) -> dict[str, Any]:
        """What a preset's page needs beside the model, for JSON.

        Args:
            preset: Name of a preset.

        Raises:
            ValueError: If there is none of that name.
        """
        return self._preset(preset).describe()

    def network(self, preset: str) -> Any:
        """The `Network` that a preset's page runs.

        Raises:
            ValueError: If there is no preset of that name.
        """
        if preset not in self._networks:
            self._networks[preset] = self._preset(preset).network()
        return self._networks[preset]

    def run(
        self, preset: str, inputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Runs a preset's network.

        Args:
            preset: Name of a preset.
            inputs: Arrays by their names, as the class of its page says.

        Raises:
            ValueError: If there is no preset of that name, or the inputs are
                not those of its network.
        """
        return self.network(preset).run(inputs)

    def _preset(self, name):
        if name not in self._make:
            raise ValueError(
                f"There is no preset {name!r:.50}. Expected one of: "
                f"{', '.join(self._make)}"
            )
        if name not in self._loaded:
            self._loaded[name] = self._make[name]()
        return self._loaded[name]


@contextlib.contextmanager
def serve(
    presets: Sequence[str | pathlib.Path] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> Iterator[str]:
    """Serves the playground while a `with` block runs.

    `GET /` is the page. `GET /presets.json` lists the presets, `GET
    /presets/NAME.json` describes one, and `POST /presets/NAME` runs it. Arrays
    go to and fro as `arrays.as_json` makes them.

    Args:
        presets: Names of presets, or folders of them. By default all presets of
            the library.
        host: IPv4 address or name to listen on. Only this machine can reach the
            default. Any other address opens the server, which has no password,
            to other machines.
        port: Port to listen on. 0 picks a free port.

    Yields:
        The page's URL.

    Raises:
        ImportError: If the extra `serving` is not installed.
        OSError: If the port is taken.
        ValueError: If there is no such preset, or no page for it.

    Example:

    ```python
    with playground.serve() as url:
        print(url)
        input("Enter stops the server.")
    ```
    """
    with needs_extra("serving", "Playgrounds"):
        from tornado import httpserver
    playground = Playground(presets)
    try:
        listener = socket.create_server((host, port), backlog=128)
    except OSError as error:
        raise OSError(
            error.errno, f"Cannot listen on {host}:{port}: {error.strerror}"
        ) from error
    listener.setblocking(False)
    port = listener.getsockname()[1]
    started, stopping = threading.Event(), []
    # One question at a time: the page is for one reader.
    worker = concurrent.futures.ThreadPoolExecutor(1)

    async def run():
        server = httpserver.HTTPServer(
            _application(playground, worker),
            max_body_size=MAX_BODY_BYTES,
            idle_connection_timeout=60,
            body_timeout=10,
        )
        server.add_socket(listener)
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        stopping.append(lambda: loop.call_soon_threadsafe(stopped.set))
        started.set()
        await stopped.wait()
        server.stop()
        await server.close_all_connections()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    started.wait()
    try:
        yield f"http://{host}:{port}"
    finally:
        stopping[0]()
        thread.join()
        worker.shutdown()


def _application(playground, worker):
    from tornado import web

    class Handler(web.RequestHandler):
        async def reply(self, function, *args):
            loop = asyncio.get_running_loop()
            try:
                self.write(await loop.run_in_executor(worker, function, *args))
            except ValueError as error:
                self.refuse(str(error))

        def write_error(self, status_code, **_):
            self.write(
                {"error": f"The server failed ({status_code}): see its log"}
            )

        def refuse(self, explanation):
            self.set_status(400)
            self.write({"error": explanation})

    class Presets(Handler):
        async def get(self):
            self.write({"runner": "server", "presets": playground.presets()})

    class Description(Handler):
        async def get(self, name):
            await self.reply(playground.describe, name)

    class Preset(Handler):
        async def post(self, name):
            await self.reply(run, name, self.request.body)

    def run(name, body):
        try:
            sent = json.loads(body)
        except ValueError as error:
            raise ValueError(f"The body must be JSON: {error}") from error
        if not isinstance(sent, dict):
            raise ValueError(
                f"A request must be a JSON object. Received: {sent!r:.50}"
            )
        inputs = {name: from_json(value) for name, value in sent.items()}
        outputs = playground.run(name, inputs)
        return {name: as_json(value) for name, value in outputs.items()}

    files = {"path": str(STATIC), "default_filename": "index.html"}
    return web.Application(
        [
            (r"/presets\.json", Presets),
            (r"/presets/([^/]+)\.json", Description),
            (r"/presets/([^/]+)", Preset),
            (r"/(.*)", web.StaticFileHandler, files),
        ]
    )
