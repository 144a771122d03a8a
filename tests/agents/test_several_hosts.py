"""A learner and two actors on two hosts: network namespaces of this machine."""

import contextlib
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_relational import runs

pytest.importorskip("ray")
ROOT = pathlib.Path(__file__).parents[2]
RAY = pathlib.Path(sys.executable).with_name("ray")
BATCH, UNROLL, EPOCH = 32, 5, 500  # The last two are the experiment's.
WEIGHTS = 10  # Of the convolutional agent.


def ip(*words):
    subprocess.run(["ip", *words], check=True, timeout=60)


def pids(host):
    """The processes of a host, with their commands."""
    found = subprocess.run(
        ["ip", "netns", "pids", host], capture_output=True, text=True
    )
    commands = {}
    for number in found.stdout.split():
        with contextlib.suppress(FileNotFoundError):
            path = pathlib.Path("/proc", number, "cmdline")
            commands[int(number)] = path.read_text().replace("\0", " ")
    return commands


def wait_until(condition, seconds=180):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.5)


class Hosts:
    """Two hosts and the cable between them. The first one has the cluster."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        self.names = [f"kr{os.getpid()}x{i}" for i in (1, 2)]
        self.temporary = tempfile.mkdtemp(prefix="kr-", dir="/tmp")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }

    def __enter__(self):
        for name in self.names:
            ip("netns", "add", name)
        one, two = self.names
        ip(*f"link add c netns {one} type veth peer name c netns {two}".split())
        for i, name in enumerate(self.names, 1):
            ip("-n", name, "addr", "add", f"10.77.0.{i}/24", "dev", "c")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "c", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            for number in pids(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            ip("netns", "del", name)
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.temporary)

    def start(self, host, command, log):
        """Starts a command on host 0 or 1."""
        with open(self.folder / log, "a") as file:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.names[host], *command],
                cwd=ROOT,
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        return process

    def start_ray(self, host):
        where = ["--address=10.77.0.1:6379"]
        if host == 0:
            where = ["--head", "--port=6379", "--include-dashboard=false"]
            where.append(f"--temp-dir={self.temporary}")
        options = (
            f"--node-ip-address=10.77.0.{host + 1}",
            "--num-cpus=1",
            "--object-store-memory=200000000",
            "--disable-usage-stats",
            "--block",
        )
        command = [RAY, "start", *where, *options]
        process = self.start(host, command, f"ray_{host}.log")
        log = self.folder / f"ray_{host}.log"
        wait_until(lambda: "will now block" in log.read_text())
        return process

    def actors(self, host):
        commands = pids(self.names[host]).values()
        return sum("ray::_Actor" in command for command in commands)

    def cable(self, state):
        ip("-n", self.names[1], "link", "set", "c", state)


@pytest.fixture
def hosts(tmp_path):
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("only root can make network namespaces, with `ip`")
    with Hosts(tmp_path) as hosts:
        yield hosts


def saved(run):
    """Weights, steps, updates and actors so far, of the last checkpoint."""
    path = tf.train.latest_checkpoint(str(run / "checkpoints"))
    reader = tf.train.load_checkpoint(path)

    def values(name):
        return reader.get_tensor(f"{name}/.ATTRIBUTES/VARIABLE_VALUE")

    # Mean squares, updates and weights, in this order.
    state = [values(f"state/{i}") for i in range(2 * WEIGHTS + 1)]
    steps = values("metrics/0/environment_steps")
    actors = values("actors_started")
    return state[WEIGHTS + 1 :], int(steps), int(state[WEIGHTS]), int(actors)


@pytest.mark.slow
def test_a_host_is_cut_off_and_the_learner_killed(hosts, tmp_path):
    log = tmp_path / "learner.log"

    def learn(num_steps):
        options = (
            "--ray 10.77.0.1:6379 --num-actors 2 --rows 3 --columns 6 "
            f"--network convolutional --batch-size {BATCH} --num-test 10 "
            f"--num-steps {num_steps} --directory {tmp_path / 'runs'}"
        )
        program = [sys.executable, "-m", "experiments.two_simplicial"]
        return hosts.start(
            0, [*program, "teacher", *options.split()], "learner.log"
        )

    def rows():
        return log.read_text().count("a second;") if log.exists() else 0

    def goes_on(learner):
        before = rows()
        wait_until(lambda: rows() > before + 1 or learner.poll() is not None)
        assert learner.poll() is None, log.read_text()

    hosts.start_ray(0)
    other = hosts.start_ray(1)
    learner = learn(10**8)
    wait_until(lambda: rows() > 0)
    assert hosts.actors(0) == hosts.actors(1) == 1

    # For so short a time that nobody notices.
    hosts.cable("down")
    time.sleep(5)
    hosts.cable("up")
    goes_on(learner)
    assert "has been marked dead" not in log.read_text()

    # The host is given up, and the learner goes on with the other actor.
    hosts.cable("down")
    wait_until(lambda: "has been marked dead" in log.read_text())
    goes_on(learner)
    hosts.cable("up")
    # Ray ends there when it hears of that.
    other.wait(timeout=120)
    wait_until(lambda: hosts.actors(1) == 0)
    hosts.start_ray(1)
    wait_until(lambda: hosts.actors(1) == 1)
    goes_on(learner)

    learner.kill()
    learner.wait()
    (run,) = (tmp_path / "runs").iterdir()
    weights, steps, updates, actors = saved(run)
    assert actors == 3  # One was replaced.
    wait_until(lambda: hosts.actors(0) == hosts.actors(1) == 0)

    # By frames, as the rate falls: there are more of them than steps.
    goal = (updates + 2 * EPOCH) * BATCH * UNROLL
    learner = learn(goal)
    assert learner.wait(timeout=400) == 0, log.read_text()
    assert f"after {steps:,} of {goal:,} steps" in log.read_text()
    curves = runs.read_curves(run / "curves.csv")
    # Each update is counted once, and so is each step: between two episodes
    # there is one that is none.
    expected = EPOCH * np.arange(1, len(curves["updates"]))
    np.testing.assert_array_equal(curves["updates"][:-1], expected)
    frames = BATCH * UNROLL * np.array(curves["updates"])
    assert (curves["steps"] <= frames).all()
    assert (curves["steps"] > 0.8 * frames).all()
    new_weights, new_steps, new_updates, new_actors = saved(run)
    assert new_steps == curves["steps"][-1] >= goal
    assert new_updates == curves["updates"][-1] > updates
    assert new_actors == actors + 2
    model = keras.saving.load_model(run / "model.keras")
    assert len(new_weights) == len(model.weights) == WEIGHTS
    for old, new, weight in zip(
        weights, new_weights, model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(new, weight)
        assert (new != old).any()
