"""Kills runs at random and continues them, and compares what they come to.

A process trains a small classifier or a small agent. It is killed with SIGKILL
after a random time, and started again until the run has finished. Then weights
and optimizer (the last checkpoint), curves (all but `minutes` and
`steps_per_second`) and TensorBoard's points are compared with those of a run
that was never killed, bit by bit.

The times are drawn from the first epoch on: a kill while Python still imports
its libraries tests nothing. An epoch takes a few milliseconds, so that many
kills fall into the writing of files. A run that was continued is killed again,
until it lives to its end, and then another one begins.
"""

import pathlib
import random
import shutil
import subprocess
import sys
import time

import numpy as np

KILLED = -9
# So many that a run is killed several times on its way.
NUM_BATCHES = 2_000
NUM_STEPS = 60_000


def kill_runs(kind, num_kills, seed, folder):
    """Kills runs of a kind so many times in all.

    Args:
        kind: `"supervised"` or `"agent"`.
        num_kills: Number of kills.
        seed: Integer that fixes their times.
        folder: `pathlib.Path` of a folder for the runs.

    Returns:
        List of lines that tell what differs.
    """
    rng = random.Random(seed)  # noqa: S311
    unbroken = folder / "unbroken"
    with start(kind, unbroken) as process:
        process.stdout.readline()
        ready = time.monotonic()
        if process.wait():
            return ["the run that was not killed failed"]
    length = time.monotonic() - ready
    problems, killed, number = [], 0, 0
    while killed < num_kills:
        number += 1
        directory = folder / f"run_{number}"
        status = KILLED
        while status == KILLED:
            seconds = rng.uniform(0, length / 4) if killed < num_kills else None
            status = run_for(seconds, kind, directory)
            killed += status == KILLED
        if status:
            problems.append(f"run {number} ended with {status}")
        else:
            problems += differences(unbroken, directory, number)
        shutil.rmtree(directory)
    return problems


def start(kind, directory):
    return subprocess.Popen(
        [sys.executable, __file__, kind, str(directory)],
        stdout=subprocess.PIPE,
        text=True,
    )


def run_for(seconds, kind, directory):
    """Starts a run, and kills it so long after it has begun to train.

    Returns the status of the process, `KILLED` if it was.
    """
    with start(kind, directory) as process:
        process.stdout.readline()  # It trains, or has no more to train.
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def differences(unbroken, directory, number):
    """Lines that tell what differs between two finished runs."""
    found = []
    for what, read in (
        ("variables", variables),
        ("curves", curves),
        ("TensorBoard's points", points),
    ):
        theirs, ours = read(unbroken), read(directory)
        same = list(theirs) == list(ours) and all(
            repr(theirs[name]) == repr(ours[name])
            if isinstance(theirs[name], list)
            else np.array_equal(theirs[name], ours[name])
            for name in theirs
        )
        if not same:
            found.append(f"{what} of run {number} differ")
    if left := [*directory.rglob("*.partial*"), *directory.rglob("*_temp*")]:
        found.append(f"run {number} left {left}")
    return found


def variables(directory):
    """All arrays of the last checkpoint, by their names."""
    if paths := list(directory.glob("checkpoint-*.npz")):
        with np.load(max(paths, key=number_of)) as file:
            return {name: file[name] for name in file.files if name != "curves"}
    import tensorflow as tf

    path = tf.train.latest_checkpoint(str(directory / "checkpoints"))
    reader = tf.train.load_checkpoint(path)
    return {
        name: reader.get_tensor(name)
        for name in sorted(reader.get_variable_to_shape_map())
        if not name.startswith(("_CHECKPOINTABLE", "curves/"))
    }


def number_of(path):
    return int(path.stem.removeprefix("checkpoint-"))


def curves(directory):
    from keras_relational import runs

    found = runs.read_curves(directory / "curves.csv")
    return {k: v for k, v in found.items() if k not in TIMED}


TIMED = ("minutes", "steps_per_second")


def points(directory):
    """Steps and values of each curve, from TensorBoard's files."""
    from tensorboard.backend.event_processing import event_accumulator

    events = event_accumulator.EventAccumulator(
        str(directory / "tensorboard"), {"tensors": 0}
    )
    events.Reload()
    return {
        name: [
            (x.step, *(() if name in TIMED else x.tensor_proto.float_val))
            for x in events.Tensors(name)
        ]
        for name in sorted(events.Tags()["tensors"])
    }


def new_classifier(units, num_examples):
    """A model with dropout, and its examples and labels."""
    import keras

    keras.utils.set_random_seed(0)
    inputs = keras.Input((6,))
    x = keras.layers.Dense(units, activation="relu")(inputs)
    x = keras.layers.Dropout(0.2, seed=1)(x)
    model = keras.Model(inputs, keras.layers.Dense(3)(x))
    x = np.random.default_rng(0).normal(size=(num_examples, 6))
    x = x.astype("float32")
    return model, x, x[:, :3].argmax(-1)


def train_supervised(directory):
    from keras_relational import runs
    from keras_relational import training

    model, x, y = new_classifier(32, num_examples=400)
    with runs.Run(directory, "kill_runs", {}) as run:
        training.train_classifier(
            model,
            x,
            y,
            num_batches=NUM_BATCHES,
            batches_per_epoch=20,
            steps_per_execution=10,
            optimizer="adam",
            validation={"training": (x, y)},
            run=Announced(run),
            verbose=0,
        )
        run.save_model(model)
        run.finish({})


def train_agent(directory):
    import agents_for_tests as agents

    # isort: split
    from keras_relational import runs
    from keras_relational.agents.actor_learner import ActorLearner
    from keras_relational.agents.training import train_agent as train

    environment = agents.small_environment(batch_size=8)
    agent = agents.small_agent(environment, recurrent=True)
    with runs.Run(directory, "kill_runs", {}) as run:
        train(
            ActorLearner(agent, environment, unroll_length=10),
            num_steps=NUM_STEPS,
            success_reward=10.0,
            run=Announced(run),
            updates_per_epoch=4,
            verbose=False,
        )
        run.save_model(agent.network.model)
        run.finish({})


class Announced:
    """A run that prints a line after its first epoch."""

    def __init__(self, run):
        self.run = run
        self.is_announced = False

    def __getattr__(self, name):
        return getattr(self.run, name)

    def has_new_results(self):
        if not self.is_announced:
            print("trains", flush=True)
        self.is_announced = True
        self.run.has_new_results()


TRAIN = {"supervised": train_supervised, "agent": train_agent}

if __name__ == "__main__":
    TRAIN[sys.argv[1]](pathlib.Path(sys.argv[2]))
