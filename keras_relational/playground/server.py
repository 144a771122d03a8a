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

from keras_relational import models
from keras_relational.playground.kinds import kind_of
from keras_relational.playground.kinds import load
from keras_relational.validation import needs_extra

STATIC = pathlib.Path(__file__).with_name("static")
MAX_BODY_BYTES = 100_000


class Playground:
    """The presets to try, and their answers.

    A model is loaded when it is asked for the first time.

    Args:
        presets: Names of presets, or folders of them. By default all presets of
            the library for which there is a page.

    Raises:
        ValueError: If there is no such preset, no page for it, or another
            preset of the same name.

    Example:

    >>> playground = Playground(["boxworld_3x18_relational"])
    >>> request = {"puzzle": 0, "moves": []}
    >>> answer = playground.answer("boxworld_3x18_relational", request)
    >>> len(answer["policy"])
    4
    """

    def __init__(
        self, presets: Sequence[str | pathlib.Path] | None = None
    ) -> None:
        self._pages: dict[str, str] = {}
        self._make: dict[str, Any] = {}
        for preset in models.preset_names() if presets is None else presets:
            card = models.preset_metadata(preset)
            kind = kind_of(card, preset, page=presets is not None)
            if kind.page is None:
                continue
            name = pathlib.Path(preset).name
            if name in self._make:
                raise ValueError(
                    f"Two presets have the name {name!r}. Rename the folder of "
                    "one of them"
                )
            self._pages[name] = kind.page
            self._make[name] = functools.partial(load, card, preset)
        self._loaded: dict[str, Any] = {}

    def pages(self) -> dict[str, list[str]]:
        """The names of the presets of each page."""
        found: dict[str, list[str]] = {}
        for name, page in self._pages.items():
            found.setdefault(page, []).append(name)
        return found

    def describe(self, preset: str) -> dict[str, Any]:
        """The contents of a preset's page before the first question.

        Args:
            preset: Name of a preset.

        Raises:
            ValueError: If there is none of that name.
        """
        return self._preset(preset).describe()

    def answer(self, preset: str, request: dict[str, Any]) -> dict[str, Any]:
        """Asks a preset.

        Args:
            preset: Name of a preset.
            request: Dictionary, as the class of its page takes it.

        Raises:
            ValueError: If there is no preset of that name, or the request is
                not one of its page.
        """
        if not isinstance(request, dict):
            raise ValueError(
                f"A request must be a JSON object. Received: {request!r:.50}"
            )
        return self._preset(preset).answer(request)

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

    `GET /` is the page. `GET /presets` lists the presets of each page, `GET
    /presets/NAME` describes one, and `POST /presets/NAME` asks it.

    Args:
        presets: Names of presets, or folders of them. By default all presets of
            the library for which there is a page.
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
            await self.reply(playground.pages)

    class Preset(Handler):
        async def get(self, name):
            await self.reply(playground.describe, name)

        async def post(self, name):
            try:
                request = json.loads(self.request.body)
            except ValueError as error:
                self.refuse(f"The body must be JSON: {error}")
            else:
                await self.reply(playground.answer, name, request)

    files = {"path": str(STATIC), "default_filename": "index.html"}
    return web.Application(
        [
            (r"/presets", Presets),
            (r"/presets/([^/]+)", Preset),
            (r"/(.*)", web.StaticFileHandler, files),
        ]
    )
