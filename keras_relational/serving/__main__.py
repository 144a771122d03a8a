"""The command `python -m keras_relational.serving`."""

import argparse
import contextlib
import ctypes
import signal
import threading

from keras_relational.serving.server import serve

_SECONDS_BETWEEN_CHECKS = 0.2
# From glibc's malloc.h.
_M_ARENA_MAX = -8


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m keras_relational.serving",
        description="Serves an exported model over REST and gRPC, as "
        "TensorFlow Serving does. A stand-in for development: for users, run "
        "TensorFlow Serving (see serving/ in the repository). Ctrl-C or "
        "SIGTERM stops it.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--model-dir",
        required=True,
        default=argparse.SUPPRESS,
        help="folder that export_model wrote, with a folder for each version; "
        "the highest version that loads is served, and newer ones as they "
        "appear",
    )
    add("--model-name", default="relations", help="name in requests")
    add("--rest-port", type=_port, default=8501, help="0 picks a free port")
    add("--grpc-port", type=_port, default=8500, help="0 picks a free port")
    add(
        "--host",
        default="127.0.0.1",
        help="address to listen on; any other address opens the server, which "
        "has no password, to other machines",
    )
    arguments = vars(parser.parse_args())
    _share_arenas()
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        with serve(**arguments) as server:
            print(
                f"Serving {server.model_name} version {server.version}: REST "
                f"on {server.rest_url}, gRPC on {server.grpc_address}",
                flush=True,
            )
            version = server.version
            while not stopped.wait(_SECONDS_BETWEEN_CHECKS):
                if version != (version := server.version):
                    print(
                        f"Serving {server.model_name} version {version} from "
                        "now on",
                        flush=True,
                    )
    except (ImportError, OSError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    print("Stopped", flush=True)


def _share_arenas():
    """Makes all threads allocate memory from two arenas, if malloc is glibc's.

    With the default, eight for each core, the process would grow for hours.
    """
    with contextlib.suppress(AttributeError, OSError):  # Not glibc.
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def _port(text):
    port = int(text)
    if not 0 <= port <= 65535:
        raise ValueError(text)
    return port


if __name__ == "__main__":
    main()
