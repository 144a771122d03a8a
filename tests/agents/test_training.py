import agents_for_tests as agents

# isort: split
import csv
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator
from tf_agents.agents import tf_agent

from experiments.two_simplicial.shortest import shortest_lengths
from keras_relational import analysis
from keras_relational import models
from keras_relational import runs
from keras_relational.agents.actor_learner import ActorLearner
from keras_relational.agents.actor_learner import Episodes
from keras_relational.agents.agent import ImpalaAgent
from keras_relational.agents.agent import ImpalaInfo
from keras_relational.agents.checkpoints import AgentCheckpoints
from keras_relational.agents.training import train_agent


def start():
    environment = agents.small_environment(batch_size=8)
    agent = agents.small_agent(environment)
    return ActorLearner(agent, environment, unroll_length=10)


def train(directory, actor_learner, num_steps, **arguments):
    with runs.Run(directory, "test", {}) as run:
        return train_agent(actor_learner, num_steps, 10.0, run, **arguments)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """Folder of a run of 500 steps, and its state at the end."""
    directory = tmp_path_factory.mktemp("unbroken")
    learner = start()
    train(directory, learner, 500, updates_per_epoch=2)
    return directory, state(learner)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Folder of a run that was stopped after 400 of the 500 steps."""
    directory = tmp_path_factory.mktemp("stopped")
    train(directory, start(), 400, updates_per_epoch=2)
    return directory


def state(actor_learner):
    return [x.numpy() for x in tf.nest.flatten(actor_learner.state)]


def test_a_run_that_was_killed_is_continued(tmp_path, capsys):
    """With the curves that it would have had, and no step counted twice."""
    whole = train_agent(start(), 580, 10.0, updates_per_epoch=2)
    assert whole["updates"].tolist() == [2, 4, 6, 8]
    directory = tmp_path / "run"
    train(directory, start(), 280, updates_per_epoch=2)
    # As if it had been killed between curves and checkpoint.
    with open(directory / "curves.csv", "a") as file:
        row = (directory / "curves.csv").read_text().splitlines()[-1]
        file.write(row.replace("4,", "999,", 1) + "\r\n")
        file.write(",".join(["999"] * len(whole)) + "\r\n")
    capsys.readouterr()
    learner = start()
    curves = train(
        directory,
        learner,
        580,
        updates_per_epoch=2,
        by_level=True,
        measure=lambda: {"tested": int(learner.agent.train_step_counter)},
    )
    timed = ("minutes", "steps_per_second")
    for name in set(whole) - set(timed):
        np.testing.assert_allclose(
            curves[name][-2:], whole[name][-2:], rtol=1e-5
        )
    assert curves["updates"].tolist() == [2, 4, 6, 8]
    assert (np.diff(curves["minutes"]) > 0).all()
    first, *lines = capsys.readouterr().out.splitlines()
    steps = whole["steps"][1]
    assert first == f"Continues {directory} after {steps} of 580 steps."
    assert len(lines) == 6
    assert f"{whole['steps'][-1]} steps" in lines[3]
    share = 100 * curves["solved_1_0_0"][-1]
    assert lines[4].strip() == f"solved_1_0_0: {share:5.1f} %"
    assert lines[5].strip() == "tested: 8.000"
    # Not asked for before.
    assert np.isnan(curves["solved_1_0_0"][:2]).all()
    np.testing.assert_array_equal(
        curves["solved_1_0_0"][2:], curves["solved"][2:]
    )
    np.testing.assert_array_equal(curves["tested"], [np.nan, np.nan, 6, 8])
    with open(directory / "curves.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["updates"]) for row in rows] == [2, 4, 6, 8]
    assert rows[-1]["tested"] == "8"
    events = event_accumulator.EventAccumulator(str(directory / "tensorboard"))
    events.Reload()
    assert "solved" in events.Tags()["tensors"]
    points = events.Tensors("updates")
    assert [x.step for x in points] == whole["steps"].tolist()
    # A finished run trains nothing, and says so.
    learner = start()
    again = train(directory, learner, 580, updates_per_epoch=2)
    np.testing.assert_array_equal(again["minutes"], curves["minutes"])
    assert f"has made its {whole['steps'][-1]} steps" in capsys.readouterr().out


@pytest.mark.parametrize("before", [False, True])
def test_a_killed_run_is_the_same_bit_by_bit(
    tmp_path, unbroken, before, monkeypatch
):
    directory, last = unbroken
    saved = AgentCheckpoints.save

    def save(checkpoints, number, curves):
        if not (number == 4 and before):
            saved(checkpoints, number, curves)
        if number == 4:
            raise KilledError

    with monkeypatch.context() as context:
        context.setattr(AgentCheckpoints, "save", save)
        with pytest.raises(KilledError):
            train(tmp_path / "killed", start(), 500, updates_per_epoch=2)
    continued = start()
    train(tmp_path / "killed", continued, 500, updates_per_epoch=2)
    for one, other in zip(state(continued), last, strict=True):
        np.testing.assert_array_equal(one, other)
    curves, expected = (
        runs.read_curves(folder / "curves.csv")
        for folder in (tmp_path / "killed", directory)
    )
    assert list(curves) == list(expected)
    for name in set(curves) - {"minutes", "steps_per_second"}:
        np.testing.assert_array_equal(curves[name], expected[name])
    events = event_accumulator.EventAccumulator(
        str(tmp_path / "killed" / "tensorboard")
    )
    events.Reload()
    steps = [x.step for x in events.Tensors("loss")]
    assert steps == expected["steps"]


class KilledError(Exception):
    pass


def test_training_stops_at_the_update_that_reaches_the_number_of_steps():
    learner = start()
    curves = train_agent(learner, 300, 10.0, updates_per_epoch=100)
    assert len(curves["steps"]) == 1
    # An update makes up to 80 steps here.
    assert 300 <= curves["steps"][0] < 380
    assert curves["steps"][0] == int(learner.environment_steps.result())


@pytest.mark.parametrize("damage", ["index", "data", "missing"])
def test_a_damaged_newest_falls_back_to_the_one_before(
    tmp_path, unbroken, stopped, damage
):
    directory, last = unbroken
    shutil.copytree(stopped, tmp_path / "run")
    newest, before = "ckpt-6", "ckpt-4"
    paths = sorted((tmp_path / "run" / "checkpoints").glob(f"{newest}.*"))
    data, index = paths
    if damage == "missing":
        index.unlink()
    else:
        path = {"data": data, "index": index}[damage]
        path.write_bytes(path.read_bytes()[:-20])
    learner = start()
    with pytest.warns(UserWarning, match=f"{newest} cannot be restored") as w:
        train(tmp_path / "run", learner, 500, updates_per_epoch=2)
    assert f"goes on from the checkpoint before: {tmp_path}" in str(
        w[0].message
    )
    assert before in str(w[0].message)
    for one, other in zip(state(learner), last, strict=True):
        np.testing.assert_array_equal(one, other)
    curves, expected = (
        runs.read_curves(folder / "curves.csv")
        for folder in (tmp_path / "run", directory)
    )
    assert curves["steps"] == expected["steps"]
    train(tmp_path / "run", start(), 500, updates_per_epoch=2)


def test_what_a_killed_run_left_is_removed(tmp_path):
    train(tmp_path, start(), 100, updates_per_epoch=1, verbose=False)
    folder = tmp_path / "checkpoints"
    names = sorted(path.name for path in folder.iterdir())
    (folder / "ckpt-9_temp").mkdir()
    (folder / "ckpt-9_temp" / "part-00000-of-00001.data").write_bytes(b"half")
    # Written, and not yet in the list.
    (folder / "ckpt-9.index").write_bytes(b"")
    (folder / "ckpt-9.data-00000-of-00001").write_bytes(b"")
    train(tmp_path, start(), 100, updates_per_epoch=1, verbose=False)
    assert sorted(path.name for path in folder.iterdir()) == names


def test_every_variable_is_in_the_checkpoint(tmp_path):
    """Seeds of dropout too, which no update moves."""

    def start_with_dropout(seed):
        environment = agents.small_environment(batch_size=2)
        keras.utils.set_random_seed(seed)
        images = keras.Input((3, 7, 3), dtype="uint8")
        x = keras.layers.Flatten()(images)
        x = keras.layers.Dropout(0.5, seed=seed)(x)
        x = keras.layers.BatchNormalization()(x)
        outputs = keras.layers.Dense(4)(x), keras.layers.Dense(1)(x)[:, 0]
        agent = ImpalaAgent(
            environment.time_step_spec(),
            environment.action_spec(),
            keras.Model(images, outputs),
        )
        return ActorLearner(agent, environment, unroll_length=3)

    first, second = start_with_dropout(1), start_with_dropout(2)
    models = [x.agent.network.model for x in (first, second)]
    assert len(models[0].non_trainable_variables) == 3
    seeds = [x.layers[2].seed_generator.state for x in models]
    seeds[0].assign([3, 4])
    train(tmp_path, first, 1, verbose=False)
    train(tmp_path, second, 1, verbose=False)
    for one, other in zip(*(x.variables for x in models), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(seeds[1], [3, 4])


def test_means_are_over_the_episodes_that_ended():
    training = start()
    curves = train_agent(training, 100, 10.0, updates_per_epoch=3)
    assert curves["episodes"][0] == int(training.num_episodes.result())
    assert curves["steps"][0] == int(training.environment_steps.result())
    assert 1 <= curves["length"][0] <= 10
    assert 0 <= curves["solved"][0] <= 1


def test_solved_is_what_ends_with_the_gem():
    """Not what has gathered as much on its way."""

    class Learner:
        """Two episodes end: one with a gem, one cut off after ten locks."""

        def __init__(self):
            self.steps = 0
            self.environment_steps = self
            self.agent = self
            self.train_step_counter = 1

        def result(self):
            return self.steps

        def train(self):
            self.steps += 1
            loss = tf_agent.LossInfo(1.0, ImpalaInfo(*np.ones(4)))
            episodes = Episodes(
                *(np.array([[10.0, 1.0]]), np.array([[10.0, 10.0]])),
                *(np.array([[5, 9]]), np.array([[True, True]])),
                np.zeros((1, 2, 3), int),
            )
            return loss, episodes

    curves = train_agent(Learner(), 1, 10.0, updates_per_epoch=1)
    assert curves["return"].tolist() == [10.0]
    assert curves["solved"].tolist() == [0.5]


def test_an_update_between_two_episodes():
    """Of one step, which is none: the agent is set on its feet again."""
    environment = agents.small_environment(batch_size=1, max_episode_steps=1)
    agent = agents.small_agent(environment)
    training = ActorLearner(agent, environment, unroll_length=1)
    curves = train_agent(training, 2, 10.0, updates_per_epoch=2)
    assert curves["steps"].tolist() == [1, 2]
    assert np.isfinite(curves["loss"]).all()


@pytest.mark.parametrize("argument", ["num_steps", "updates_per_epoch"])
def test_numbers_are_checked(argument, tmp_path):
    arguments = {"num_steps": 1, "updates_per_epoch": 1, argument: 0}
    with (
        runs.Run(tmp_path / "run", "test", {}) as run,
        pytest.raises(ValueError, match=f"{argument}=0"),
    ):
        train_agent(None, success_reward=10.0, run=run, **arguments)
    assert not list((tmp_path / "run").glob("c[uh]*"))


def test_runs_are_not_mixed(tmp_path):
    """What the world is made of is told by the arguments of the run."""
    arguments = {"rows": 3, "columns": 6}
    with runs.Run(tmp_path, "test", arguments) as run:
        train_agent(start(), 1, 10.0, run, updates_per_epoch=1, verbose=False)
    learner = start()
    before = [x.numpy() for x in learner.agent.collect_policy.variables()]
    with (
        pytest.raises(ValueError, match="rows: was 3, now 4"),
        runs.Run(tmp_path, "test", {"rows": 4, "columns": 6}) as run,
    ):
        train_agent(learner, 1, 10.0, run)
    # Nor is it another's now.
    assert int(learner.environment_steps.result()) == 0
    after = [x.numpy() for x in learner.agent.collect_policy.variables()]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_damaged_run_is_a_clear_error(tmp_path):
    """Whichever of its files it is; the one that is damaged is named."""
    original, run = tmp_path / "original", tmp_path / "run"
    train(original, start(), 1, updates_per_epoch=1, verbose=False)
    learner = start()
    damages = {
        "empty": lambda content: b"",
        "cut": lambda content: content[: len(content) // 2],
        "flipped": lambda content: bytes([content[0] ^ 255]) + content[1:],
        "not text": lambda content: b"\xff" * 100,
    }
    files = sorted((original / "checkpoints").iterdir())
    assert len(files) == 3
    for file in files:
        for name, damage in damages.items():
            shutil.copytree(original, run)
            path = run / "checkpoints" / file.name
            path.write_bytes(damage(path.read_bytes()))
            named = str(path).split(".index")[0].split(".data")[0]
            with pytest.raises(ValueError, match="Expected") as caught:
                train(run, learner, 1)
            assert named in str(caught.value), (file.name, name)
            shutil.rmtree(run)
    # A good one is still read, by a learner that was half filled.
    shutil.copytree(original, run)
    train(run, learner, 1)


# Some 7 and 18 minutes on two cores.
@pytest.mark.slow
@pytest.mark.parametrize("network", ["relational", "simplicial"])
def test_smallest_boxworld_is_solved(network):
    """In at most twice the fewest moves; at random it takes ten times."""
    environment = agents.small_environment(32, 0, max_episode_steps=120)
    world = environment.world
    keras.utils.set_random_seed(0)
    model = models.boxworld_agent(network, world.image_shape)
    agent = ImpalaAgent(
        environment.time_step_spec(), environment.action_spec(), model
    )
    training = ActorLearner(agent, environment)
    curves = train_agent(training, 8_000_000, 10.0)
    assert curves["solved"][-1] > 0.99
    seeds = 10**9 + np.arange(1_000)
    played = analysis.play(world, seeds, model)
    shortest = shortest_lengths(world, seeds)
    assert played["solved"].mean() > 0.99
    assert played["lengths"].mean() <= 2 * shortest.mean()
    random = analysis.play(world, seeds)
    assert random["lengths"].mean() > 10 * shortest.mean()
