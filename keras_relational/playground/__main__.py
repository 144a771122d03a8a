"""The command `python -m keras_relational.playground`."""

import argparse
import logging
import signal
import threading

from keras_relational.playground.server import serve


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m keras_relational.playground",
        description="Serves a web page on which one can try trained models. "
        "Ctrl-C or SIGTERM stops it.",
    )
    add = parser.add_argument
    add(
        "--preset",
        nargs="+",
        dest="presets",
        metavar="PRESET",
        help="names or folders of presets (default: all of the library)",
    )
    add("--port", type=int, default=8600, help="0: a free one (default: 8600)")
    add(
        "--host",
        default="127.0.0.1",
        help="address to listen on; any other address opens the server, which "
        "has no password, to other machines (default: 127.0.0.1)",
    )
    args = parser.parse_args()
    if not 0 <= args.port < 2**16:
        parser.error(f"--port goes from 0 to 65535, and is {args.port}")
    # TensorFlow warns about each new shape of inputs.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        with serve(args.presets, args.host, args.port) as url:
            print(f"Open {url} in a browser. Ctrl-C stops it.", flush=True)
            stopped.wait()
    except (ImportError, OSError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    print("Stopped", flush=True)


if __name__ == "__main__":
    main()
