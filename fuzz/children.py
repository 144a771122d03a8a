"""A process that answers questions, and may die of one."""

import contextlib
import multiprocessing
import os
import signal

from benchmarks.processes import end_with_the_parent

_SECONDS_TO_END = 30


class DiedError(Exception):
    """The process ended, or had to be ended, and gave no answer."""


class Child:
    """It starts with the first question, and anew after one that ended it."""

    def __init__(self, work, argument):
        """`work`, of a pipe and an argument, is what the process does."""
        self._work, self._argument = work, argument
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def ask(self, question, seconds):
        """The answer. A `TimeoutError` or a `DiedError` ends the process."""
        if self.process is None:
            self._start()
        try:
            self._pipe.send(question)
            if not self._pipe.poll(seconds):
                raise TimeoutError(f"no answer within {seconds:g} s")
            return self._pipe.recv()
        except TimeoutError:
            self.process.kill()
            self.stop()
            raise
        except (EOFError, OSError) as error:
            code = self.stop()
            name = signal.Signals(-code).name if code < 0 else f"{code}"
            raise DiedError(f"the process died: {name}") from error

    def stop(self):
        """Lets the process end by itself, which cleans up; its exit code."""
        if self.process is None:
            return 0
        self._pipe.close()
        self.process.join(_SECONDS_TO_END)
        self.process.kill()
        self.process.join()
        code, self.process = self.process.exitcode, None
        return code

    def _start(self):
        # A fork would copy threads of TensorFlow, if there are any.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=self._work, args=(theirs, self._argument), daemon=True
        )
        self.process.start()
        theirs.close()


def answer_all(pipe, answer):
    """Answers with a function of the question until nobody asks any more."""
    end_with_the_parent()  # In the middle of a case, too.
    # What TensorFlow says of each damaged file, on stderr.
    with open(os.devnull, "w") as file:
        os.dup2(file.fileno(), 2)
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(answer(pipe.recv()))
