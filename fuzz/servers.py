"""A server in a process of its own, asked from outside alone."""

import contextlib
import os
import re
import resource
import subprocess
import sys
import threading
import urllib.parse

import keras

from fuzz.memory import memory_of
from keras_relational import serving

_SECONDS_TO_START = 300
# What a server may take beyond what it has at its start: an attack that works
# shall not take the machine with it.
_MOST_MEMORY = 2 * 2**30
_LINE = re.compile(r"Serving \S+ version \d+: REST on (\S+), gRPC on (\S+)")


def export(target, folder, version=1, seed=0):
    """Exports a model of that seed's weights to `folder/version`."""
    keras.utils.set_random_seed(seed)
    serving.export_model(target.build(), folder, version=version)


class Server:
    """A running server, with its addresses of REST and gRPC."""

    def __init__(self, process, rest_url, grpc, log):
        self.process, self.grpc, self.log = process, grpc, log
        url = urllib.parse.urlsplit(rest_url)
        self.rest = url.hostname, url.port
        self._seen = os.path.getsize(log)

    def died(self):
        """How the process ended, or `None`."""
        return self.process.poll()

    def memory(self):
        """Bytes of memory that the process has."""
        return memory_of(self.process.pid, "VmRSS")

    def new_traceback(self):
        """The end of a traceback that came into the log since, or `None`."""
        with open(self.log, errors="replace") as file:
            file.seek(self._seen)
            text = file.read()
            self._seen = file.tell()
        if "Traceback (most recent call last)" not in text:
            return None
        return " / ".join(text.strip().splitlines()[-3:])[-300:]


@contextlib.contextmanager
def running(folder, name, log):
    """Serves the models in `folder` while a `with` block runs."""
    with open(log, "w") as file:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "keras_relational.serving"),
                *("--model-dir", folder, "--model-name", name),
                *("--rest-port", "0", "--grpc-port", "0"),
            ],
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
    too_late = threading.Timer(_SECONDS_TO_START, process.kill)
    too_late.start()
    try:
        for line in process.stdout:
            if match := _LINE.match(line):
                break
        else:
            with open(log, errors="replace") as file:
                end = file.read()[-800:]
            raise RuntimeError(f"The server of {folder} did not start: {end}")
        too_late.cancel()
        most = memory_of(process.pid, "VmData") + _MOST_MEMORY
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (most, most))
        yield Server(process, *match.groups(), log)
    finally:
        too_late.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
