"""Processes of their own, whose memory is given back and can be measured."""

import concurrent.futures
import importlib
import multiprocessing
import os
import threading


def in_a_process(function, *arguments):
    """What a function returns in a new process."""
    with concurrent.futures.ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), end_with_the_parent
    ) as pool:
        return pool.submit(function, *arguments).result()


def end_with_the_parent():
    """Ends this process as soon as its parent ends, even if that is killed.

    A process of a pool would go on, and then wait for work forever.
    """

    def wait():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def run_main(module):
    """Calls `main` of a module, by its name: for `in_a_process`."""
    importlib.import_module(module).main()
