"""What is trained on several devices is what is trained on one."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import keras
import pytest

TESTS = pathlib.Path(__file__).parents[1]
on_jax = pytest.mark.skipif(
    keras.backend.backend() != "jax",
    reason="Keras' own distribution needs JAX",
)
pytestmark = pytest.mark.any_backend


def start(part, *arguments, num_devices=1):
    """Starts `several_devices.py`, with so many devices of this machine."""
    flags = (
        os.environ.get("XLA_FLAGS", ""),
        f"--xla_force_host_platform_device_count={num_devices}",
    )
    return subprocess.Popen(
        [sys.executable, TESTS / "several_devices.py", part, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                (str(TESTS.parent), os.environ.get("PYTHONPATH", ""))
            ),
            "XLA_FLAGS": " ".join(flags),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def start_two(part, folder):
    """Starts two processes that train together."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    return [start(part, str(folder / number), number, port) for number in "01"]


def output_of(*processes):
    """What the first prints, once all have ended well."""
    outputs = [x.communicate(timeout=500)[0] for x in processes]
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output
    return outputs[0]


@on_jax
def test_two_devices(tmp_path):
    output_of(start("train_a_few", str(tmp_path), num_devices=2))


@on_jax
@pytest.mark.slow
def test_two_devices_and_every_layer(tmp_path):
    output_of(start("train_every_layer", str(tmp_path), num_devices=2))


@on_jax
@pytest.mark.slow
def test_two_processes(tmp_path):
    """Only the first one reads and writes the folder of the run."""
    output = output_of(*start_two("train_a_few", tmp_path))
    assert "after 20 of 25 batches" in output
    assert (tmp_path / "0" / "model.keras").exists()
    assert (tmp_path / "0" / "result.json").exists()
    assert not (tmp_path / "1").exists()


@on_jax
@pytest.mark.slow
def test_two_processes_that_are_killed(tmp_path):
    processes = start_two("train_for_long", tmp_path)
    with contextlib.ExitStack() as stack:
        for process in processes:
            stack.enter_context(process)
            stack.callback(process.kill)
        while not list(tmp_path.glob("0/checkpoint-*.npz")):
            assert all(x.poll() is None for x in processes)
            time.sleep(0.1)
        time.sleep(0.5)
    assert {x.returncode for x in processes} == {-signal.SIGKILL}
    output = output_of(*start_two("train_for_long", tmp_path))
    assert "Continues" in output


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="it is TensorFlow's own"
)
@pytest.mark.slow
def test_a_mirrored_strategy(tmp_path):
    output_of(start("train_mirrored", str(tmp_path)))
