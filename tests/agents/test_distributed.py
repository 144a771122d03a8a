"""Two actors on a Ray cluster of this machine."""

import contextlib
import functools
import inspect
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys

import agents_for_tests as agents

# isort: split
import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_relational.agents import distributed
from keras_relational.agents.actor_learner import ActorLearner
from keras_relational.agents.agent import ImpalaAgent
from keras_relational.agents.training import train_agent

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


@contextlib.contextmanager
def running_cluster():
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


@pytest.fixture(scope="module", autouse=True)
def cluster():
    # Where the tests' own modules are, the actors look too.
    path = os.pathsep.join(
        (
            os.path.dirname(agents.__file__),
            *os.environ.get("PYTHONPATH", "").split(os.pathsep),
        )
    )
    with running_cluster() as (_, address):
        ray.init(
            address,
            log_to_driver=False,
            runtime_env={"env_vars": {"PYTHONPATH": path}},
        )
        yield
        ray.shutdown()


@pytest.fixture
def another_cluster():
    with running_cluster() as cluster:
        yield cluster


def start(num_actors=2, **agent_arguments):
    environment = agents.small_environment()
    return distributed.DistributedActorLearner(
        agents.small_agent(environment, **agent_arguments),
        functools.partial(agents.small_environment, 4),
        num_actors,
        unroll_length=10,
    )


@pytest.mark.slow
def test_actors_with_a_teacher():
    """The teacher makes all moves at first, and half after an update."""
    decay = keras.optimizers.schedules.ExponentialDecay(1e-3, 2, 0.5)
    training = start(
        num_actors=1,
        learning_rate=decay,
        teacher_share=1.0,
        teacher_moves=1.0,
        teacher_updates=2,
    )
    learn, learned = training._learn, []

    def noted(trajectory):
        learned.append(trajectory)
        return learn(trajectory)

    training._learn = noted
    for _ in range(3):
        info, _ = training.train()
        assert np.isfinite(info.loss)
    training.close()
    shares = []
    for trajectory in learned:
        experts = trajectory.policy_info["expert_actions"]
        assert experts.dtype == bool
        assert experts.any()
        moves = keras.ops.softmax(trajectory.policy_info["logits"])
        known = experts.any(-1)
        shares.append(np.sum(np.where(experts, moves, 0), -1)[known].min())
    # The actor makes the first two before the learner has learned.
    assert min(shares[:2]) > 0.999
    assert shares[-1] < 0.9


def test_actors_have_the_configuration_of_the_agent():
    given = {
        "learning_rate": 0.1,
        "gamma": 0.9,
        "entropy_regularization": 0.1,
        "value_estimation_loss_coef": 0.2,
        "gradient_clipping": 3.0,
        "rms_decay": 0.8,
        "epsilon": 0.4,
        "clip_rho": 1.1,
        "clip_c": 1.2,
        "teacher_share": 0.3,
        "teacher_moves": 0.6,
        "teacher_updates": 7,
        "microbatch_frames": None,
    }
    others = ["time_step_spec", "action_spec", "model"]
    assert {*given, *others} == {*inspect.signature(ImpalaAgent).parameters}
    agent = agents.small_agent(**given)
    actor = distributed._Actor(
        agent.network.model.to_json(),
        distributed._configuration(agent),
        lambda seed: agents.small_environment(seed=seed),
        unroll_length=5,
        seed=0,
    )
    theirs = actor.actor.agent
    assert {name: getattr(theirs, name) for name in given} == given
    # What an actor does depends on the number of updates, too.
    agent.train_step_counter.assign(5)
    actor.act([x.numpy() for x in distributed._acting(agent)])
    assert int(theirs.train_step_counter) == 5


@functools.cache
def recorded():
    """What an actor has made, pickled."""
    environment = agents.small_environment()
    agent = agents.small_agent(environment)
    actor = ActorLearner(agent, environment, unroll_length=10)
    made = tf.nest.map_structure(lambda x: x.numpy(), actor.act())
    return pickle.dumps(made)


def light_actors(training):
    """Actors that repeat a trajectory. They start without TensorFlow.

    Returns their seeds, as they start.
    """
    trajectory, seeds = recorded(), []

    # What is defined inside a function is sent with its code.
    class Packed:
        def __reduce__(self):
            return pickle.loads, (trajectory,)

    class Light:
        def process(self):
            return os.getpid()

        def act(self, weights):
            return Packed()

    actor = ray.remote(Light)

    def new_actor(seed):
        seeds.append(seed)
        return actor.remote()

    training._new_actor = new_actor
    return seeds


def test_one_actor_is_killed_and_the_learner_continues(tmp_path):
    training = start()
    seeds = light_actors(training)
    steps = 0
    weights = agents.numbers(training.agent.network.values)
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
    # What it had made is learned, and then what the other makes, until Ray
    # tells that it is dead.
    while int(training.actors_started) == 2:
        _, episodes = training.train()
        steps += 40 - np.sum(episodes.lengths == 0)
    assert int(training.environment_steps.result()) == steps
    assert int(training.actors_started) == 3
    assert len(training._pending) == 2
    assert len(set(seeds)) == 3
    agents.assert_all_moved(weights, training.agent.network.values)

    # The learner is killed: what it learned after its checkpoint is lost, and
    # not counted.
    updates = int(training.agent.train_step_counter)
    tf.train.Checkpoint(**training.checkpointed(tmp_path)).write(
        str(tmp_path / "saved")
    )
    saved = agents.numbers(training.agent.network.values)
    training.train()
    training.close()
    training = start()
    light_actors(training)
    tf.train.Checkpoint(**training.checkpointed(tmp_path)).read(
        str(tmp_path / "saved")
    ).assert_consumed()
    agents.assert_all_equal(saved, training.agent.network.values)
    assert int(training.environment_steps.result()) == steps
    _, episodes = training.train()
    steps += 40 - np.sum(episodes.lengths == 0)
    assert int(training.environment_steps.result()) == steps
    assert int(training.agent.train_step_counter) == updates + 1
    assert int(training.actors_started) == 5
    # Its runs are logged like those of one machine.
    curves = train_agent(training, steps + 1, 10.0, updates_per_epoch=2)
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
    light_actors(training)
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
            with pytest.raises(ConnectionError, match="its training is lost"):
                training.train()
        training.checkpointed(tmp_path / "run")
        with pytest.raises(
            ConnectionError,
            match=rf"(?s){training._address} has gone.*{tmp_path}/run.*start "
            "the same run again",
        ):
            training.train()
    assert len(left) == 3
    assert not training._pending


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "a:b"])
def test_a_way_into_no_cluster_is_told(address):
    with pytest.raises(
        ConnectionError,
        match=rf"(?s)into a Ray cluster at {address}: .*RAY_AUTH_MODE="
        r"token and RAY_AUTH_TOKEN.*before ray is imported.*Received: RAY_AUTH_"
        r"MODE=token, and RAY_AUTH_TOKEN set\.",
    ):
        distributed.connect(address)


CLIENT = """
import functools, os, sys
import agents_for_tests as agents
from keras_relational import runs
from keras_relational.agents import distributed
from keras_relational.agents.training import train_agent

path = {"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}}
distributed.connect(sys.argv[1], log_to_driver=False, runtime_env=path)
environment = agents.small_environment()
training = distributed.DistributedActorLearner(
    agents.small_agent(environment),
    functools.partial(agents.small_environment, 4), 1, unroll_length=10,
)
with runs.Run(sys.argv[2], "test", {}) as run:
    train_agent(training, 10**9, 10.0, run, updates_per_epoch=2)
"""


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
        cluster.wait()
        _, errors = process.communicate()
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
        _, errors = process.communicate()
    assert process.returncode == 1
    assert (
        "Received: RAY_AUTH_MODE=disabled, and RAY" in errors.splitlines()[-1]
    )
    assert "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN" in errors.splitlines()[-1]
