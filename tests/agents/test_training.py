import agents_for_tests as agents

# isort: split
import functools
import shutil

import keras
import numpy as np
import pytest
from agents_for_tests import assert_all_equal
from agents_for_tests import numbers
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

# The actors' weights lag behind, and are checkpointed too.
small_training = functools.partial(agents.small_training, broadcast_interval=3)


def train(directory, actor_learner, num_steps, **arguments):
    arguments = {"updates_per_epoch": 2, **arguments}
    with runs.Run(directory, "test", {}) as run:
        return train_agent(actor_learner, num_steps, 10.0, run, **arguments)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """Folder of a run of 580 steps, and its state at the end."""
    directory = tmp_path_factory.mktemp("unbroken")
    learner = small_training()
    train(directory, learner, 580)
    return directory, numbers(learner.state)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Folder of a run that was stopped after 400 of the 580 steps."""
    directory = tmp_path_factory.mktemp("stopped")
    train(directory, small_training(), 400)
    return directory


def assert_as_unbroken(directory, learner, unbroken):
    """Curves and state are bit by bit those of the run of 580 steps."""
    assert_all_equal(numbers(learner.state), unbroken[1])
    curves, expected = (
        runs.read_curves(folder / "curves.csv")
        for folder in (directory, unbroken[0])
    )
    for name in set(expected) - {"minutes", "steps_per_second"}:
        np.testing.assert_array_equal(curves[name], expected[name])
    events = event_accumulator.EventAccumulator(str(directory / "tensorboard"))
    events.Reload()
    for name in ("loss", "updates"):
        steps = [x.step for x in events.Tensors(name)]
        assert steps == expected["steps"]
    return curves


def test_a_run_that_was_stopped_is_continued(
    tmp_path, unbroken, stopped, capsys
):
    """With the curves that it would have had, and no step counted twice."""
    directory = shutil.copytree(stopped, tmp_path / "run")
    # As if it had been killed between curves and checkpoint.
    with open(directory / "curves.csv", "a") as file:
        columns = len(runs.read_curves(directory / "curves.csv"))
        file.write(",".join(["999"] * columns) + "\r\n")
    learner = small_training()
    curves = train(
        directory,
        learner,
        580,
        by_level=True,
        measure=lambda: {"tested": int(learner.agent.train_step_counter)},
    )
    kept = assert_as_unbroken(directory, learner, unbroken)
    assert kept["updates"] == curves["updates"].tolist() == [2, 4, 6, 8]
    assert kept["tested"][-1] == 8
    assert (np.diff(curves["minutes"]) > 0).all()
    first, *lines = capsys.readouterr().out.splitlines()
    *_, before, last = curves["steps"]
    assert first == f"Continues {directory} after {before} of 580 steps."
    assert len(lines) == 3
    assert f"{last} steps" in lines[0]
    share = 100 * curves["solved_1_0_0"][-1]
    assert lines[1].strip() == f"solved_1_0_0: {share:5.1f} %"
    assert lines[2].strip() == "tested: 8.000"
    # Not asked for before.
    np.testing.assert_array_equal(curves["tested"], [*[np.nan] * 3, 8])
    np.testing.assert_array_equal(
        curves["solved_1_0_0"], [*[np.nan] * 3, curves["solved"][-1]]
    )
    # A finished run trains nothing, and says so.
    again = train(directory, small_training(), 580)
    np.testing.assert_array_equal(again["minutes"], curves["minutes"])
    assert f"has made its {last} steps" in capsys.readouterr().out


def test_a_run_that_was_killed_before_its_checkpoint_is_the_same(
    tmp_path, unbroken, monkeypatch
):
    saved = AgentCheckpoints.save

    def save(checkpoints, number, curves):
        if number == 4:
            raise KilledError
        saved(checkpoints, number, curves)

    with monkeypatch.context() as context:
        context.setattr(AgentCheckpoints, "save", save)
        with pytest.raises(KilledError):
            train(tmp_path, small_training(), 580)
    learner = small_training()
    train(tmp_path, learner, 580)
    assert_as_unbroken(tmp_path, learner, unbroken)


class KilledError(Exception):
    pass


@pytest.mark.parametrize("damage", ["index", "data", "missing"])
def test_a_damaged_newest_falls_back_to_the_one_before(
    tmp_path, unbroken, stopped, damage
):
    directory = shutil.copytree(stopped, tmp_path / "run")
    data, index = sorted((directory / "checkpoints").glob("ckpt-6.*"))
    if damage == "missing":
        index.unlink()
    else:
        path = {"data": data, "index": index}[damage]
        path.write_bytes(path.read_bytes()[:-20])
    learner = small_training()
    with pytest.warns(UserWarning, match="ckpt-6 cannot be restored") as caught:
        train(directory, learner, 580)
    message = str(caught[0].message)
    assert f"goes on from the checkpoint before: {tmp_path}" in message
    assert "ckpt-4" in message
    assert_as_unbroken(directory, learner, unbroken)
    train(directory, small_training(), 580)


def test_what_a_killed_run_left_is_removed(tmp_path):
    train(tmp_path, small_training(), 100, verbose=False)
    folder = tmp_path / "checkpoints"
    names = sorted(path.name for path in folder.iterdir())
    (folder / "ckpt-9_temp").mkdir()
    (folder / "ckpt-9_temp" / "part-00000-of-00001.data").write_bytes(b"half")
    # Written, and not yet in the list.
    (folder / "ckpt-9.index").write_bytes(b"")
    (folder / "ckpt-9.data-00000-of-00001").write_bytes(b"")
    train(tmp_path, small_training(), 100, verbose=False)
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
    assert_all_equal(*(x.variables for x in models))
    np.testing.assert_array_equal(seeds[1], [3, 4])


def test_an_epoch_ends_at_the_update_that_reaches_the_number_of_steps():
    training = small_training()
    curves = train_agent(training, 300, 10.0, updates_per_epoch=100)
    assert curves["steps"] == int(training.environment_steps.result())
    # An update makes up to 80 steps here.
    assert 300 <= curves["steps"] < 380
    # Means are over the episodes that ended.
    assert curves["episodes"] == int(training.num_episodes.result())
    assert 1 <= curves["length"] <= 10
    assert 0 <= curves["solved"] <= 1


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
    with runs.Run(tmp_path, "test", {"rows": 3}) as run:
        train_agent(small_training(), 1, 10.0, run, verbose=False)
    learner = small_training()
    before = numbers(learner.state)
    with (
        pytest.raises(ValueError, match="rows: was 3, now 4"),
        runs.Run(tmp_path, "test", {"rows": 4}) as run,
    ):
        train_agent(learner, 1, 10.0, run)
    # Nor is it another's now.
    assert int(learner.environment_steps.result()) == 0
    assert_all_equal(numbers(learner.state), before)


def test_a_damaged_run_is_a_clear_error(tmp_path):
    """Whichever of its files it is; the one that is damaged is named."""
    original, run = tmp_path / "original", tmp_path / "run"
    train(original, small_training(), 1, verbose=False)
    learner = small_training()
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


# Some 7 minutes on two cores.
@pytest.mark.slow
def test_smallest_boxworld_is_solved():
    """In at most twice the fewest moves; at random it takes ten times."""
    environment = agents.small_environment(32, 0, max_episode_steps=120)
    world = environment.world
    keras.utils.set_random_seed(0)
    model = models.boxworld_agent("relational", world.image_shape)
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
