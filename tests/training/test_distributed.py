"""Two actors on a Ray cluster of this machine."""

import functools
import os
import secrets
import signal
import socket
import subprocess
import sys
import time

import agents_for_tests as agents

# isort: split
import numpy as np
import pytest

from keras_relational.training import agent_runs
from keras_relational.training import distributed

# Read when Ray is imported: the cluster's password.
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
ray = pytest.importorskip("ray")


# A process of its own, because ray.init() forks, and what forks while
# TensorFlow's threads run may hang.
CLUSTER = """
import sys
import ray

address = ray.init(num_cpus=2, include_dashboard=False).address_info["address"]
print("Address", address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module", autouse=True)
def cluster():
    # Where the tests' own modules are, the actors look too.
    path = os.pathsep.join(
        (
            os.path.dirname(agents.__file__),
            *os.environ.get("PYTHONPATH", "").split(os.pathsep),
        )
    )
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        lines = iter(process.stdout.readline, "")
        address = next(x.split()[1] for x in lines if x.startswith("Address"))
        ray.init(
            address,
            log_to_driver=False,
            runtime_env={"env_vars": {"PYTHONPATH": path}},
        )
        yield
        ray.shutdown()
        process.stdin.close()


def start(num_actors=2):
    environment = agents.small_environment()
    return distributed.DistributedActorLearner(
        agents.small_agent(environment),
        functools.partial(agents.small_environment, 4),
        num_actors,
        unroll_length=10,
    )


def test_one_actor_is_killed_and_the_learner_continues(tmp_path):
    training, seeds = start(), []
    new_actor = training._new_actor

    def noted(seed):
        seeds.append(seed)
        return new_actor(seed)

    training._new_actor = noted
    steps = 0
    weights = [x.numpy() for x in training.agent.network.values]
    for _ in range(6):
        info, episodes = training.train()
        assert np.isfinite(info.loss)
        # Of the 40 steps those that follow an end are none.
        steps += 40 - np.sum(episodes.lengths == 0)
    assert int(training.environment_steps.result()) == steps
    assert int(training.actors_started) == 2
    # One is killed from outside, as by a machine that fails.
    victim = next(iter(training._pending.values()))
    os.kill(ray.get(victim.process.remote()), signal.SIGKILL)
    deadline = time.monotonic() + 120
    while int(training.actors_started) == 2 and time.monotonic() < deadline:
        _, episodes = training.train()
        steps += 40 - np.sum(episodes.lengths == 0)
    assert int(training.environment_steps.result()) == steps
    assert int(training.actors_started) == 3
    assert len(training._pending) == 2
    assert len(set(seeds)) == 3
    for old, new in zip(weights, training.agent.network.values, strict=True):
        assert (old != new.numpy()).any()

    # The learner is killed: what it learned after its checkpoint is lost, and
    # not counted.
    updates = int(training.agent.train_step_counter)
    training.checkpointer(tmp_path).save(updates)
    saved = [x.numpy() for x in training.agent.network.values]
    training.train()
    training.close()
    training = start()
    training.checkpointer(tmp_path).initialize_or_restore().assert_consumed()
    for old, new in zip(saved, training.agent.network.values, strict=True):
        np.testing.assert_array_equal(old, new)
    assert int(training.environment_steps.result()) == steps
    _, episodes = training.train()
    steps += 40 - np.sum(episodes.lengths == 0)
    assert int(training.environment_steps.result()) == steps
    assert int(training.agent.train_step_counter) == updates + 1
    assert int(training.actors_started) == 5
    # Its runs are logged like those of one machine.
    curves = agent_runs.train_agent(
        training, steps + 1, 10.0, updates_per_epoch=2
    )
    assert curves["updates"].tolist() == [updates + 2]
    assert curves["steps"][-1] == int(training.environment_steps.result())
    training.close()


@pytest.mark.slow
def test_actors_that_never_act():
    training = start(num_actors=1)
    training._new_actor = ray.remote(_Broken).remote
    with pytest.raises(RuntimeError, match="3 actors died one after the other"):
        training.train()
    training.close()


class _Broken:
    def __init__(self, seed):
        raise RuntimeError("no environment")

    def act(self, weights):
        """Never reached."""


def test_a_cluster_that_does_not_answer_ends_the_run(tmp_path, monkeypatch):
    """With its actors; where it is taken to be there is nothing."""
    training = start(num_actors=1)
    left = []
    monkeypatch.setattr(ray, "shutdown", lambda: left.append(True))
    monkeypatch.setattr(distributed, "CHECK_SECONDS", 0.5)
    monkeypatch.setattr(distributed, "PATIENCE_SECONDS", 0)
    training.train()  # It is asked again and again, and there.
    monkeypatch.setattr(ray, "wait", lambda tasks, timeout: ([], tasks))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # And does not listen.
        training._address = f"127.0.0.1:{nobody.getsockname()[1]}"
        for _ in range(2):
            with pytest.raises(ConnectionError, match="it has learned is lost"):
                training.train()
        training.checkpointer(tmp_path / "run")
        with pytest.raises(
            ConnectionError,
            match=rf"(?s){training._address} has gone.*{tmp_path}/run.*start "
            "the same run again",
        ):
            training.train()
    assert len(left) == 3
    assert not training._pending


def test_a_way_into_no_cluster_is_told(monkeypatch):
    def refused(address, **options):
        raise ConnectionError(f"Failed to connect to Ray cluster at {address}")

    monkeypatch.setattr(ray, "init", refused)
    with pytest.raises(
        ConnectionError,
        match=r"(?s)connect to Ray cluster at 127\.0\.0\.1:1\n.*RAY_AUTH_MODE="
        r"token and RAY_AUTH_TOKEN.*before ray is imported.*Received: RAY_AUTH_"
        r"MODE=token, and RAY_AUTH_TOKEN set\.",
    ):
        distributed.connect("127.0.0.1:1")


CLIENT = """
import functools, os, sys
import agents_for_tests as agents
from keras_relational import runs
from keras_relational.training import agent_runs, distributed

path = {"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}}
distributed.connect(sys.argv[1], log_to_driver=False, runtime_env=path)
environment = agents.small_environment()
training = distributed.DistributedActorLearner(
    agents.small_agent(environment),
    functools.partial(agents.small_environment, 4), 1, unroll_length=10,
)
with runs.Run(sys.argv[2], "test", {}) as run:
    agent_runs.train_agent(training, 10**9, 10.0, run, updates_per_epoch=2)
"""


@pytest.fixture
def another_cluster():
    """Its process, which ends it when its input is closed, and its address."""
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        lines = iter(process.stdout.readline, "")
        address = next(x.split()[1] for x in lines if x.startswith("Address"))
        yield process, address
        process.stdin.close()


def client(address, directory, **variables):
    return subprocess.Popen(
        [sys.executable, "-c", CLIENT, address, directory],
        env={
            **os.environ,
            "PYTHONPATH": os.path.dirname(agents.__file__),
            **variables,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_cluster_that_goes_away_ends_the_run(another_cluster, tmp_path):
    """In Ray's own time it would end the process without an exception."""
    cluster, address = another_cluster
    with client(address, tmp_path) as process:
        assert "steps" in process.stdout.readline()
        cluster.stdin.close()
        cluster.wait(60)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    last = errors.splitlines()[-1]
    assert (
        f"ConnectionError: The Ray cluster at {address} has gone away" in last
    )
    assert f"kept in {tmp_path}/checkpoints" in last
    assert list(tmp_path.glob("checkpoints/*.index"))


@pytest.mark.slow
def test_a_client_without_the_token_is_told_what_to_set(
    another_cluster, tmp_path
):
    _, address = another_cluster
    variables = {"RAY_AUTH_MODE": "disabled", "HOME": str(tmp_path)}
    with client(address, tmp_path, **variables) as process:
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert (
        "Received: RAY_AUTH_MODE=disabled, and RAY" in errors.splitlines()[-1]
    )
    assert "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN" in errors.splitlines()[-1]
