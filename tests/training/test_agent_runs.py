import agents_for_tests as agents

# isort: split
import csv
import shutil

import numpy as np
import pytest
from tensorboard.backend.event_processing import event_accumulator
from tf_agents.agents import tf_agent

from keras_relational.training import agent_runs
from keras_relational.training import impala


def start():
    environment = agents.small_environment(batch_size=8)
    agent = agents.small_agent(environment)
    return impala.ActorLearner(agent, environment, unroll_length=10)


def test_a_run_that_was_killed_is_continued(tmp_path, capsys):
    """With the curves that it would have had, and no step counted twice."""
    whole = agent_runs.train_agent(start(), 500, 10.0, updates_per_epoch=2)
    assert whole["updates"].tolist() == [2, 4, 6, 8]
    directory = tmp_path / "run"
    agent_runs.train_agent(start(), 200, 10.0, directory, updates_per_epoch=2)
    # As if it had been killed between curves and checkpoint.
    with open(directory / "curves.csv", "a") as file:
        row = (directory / "curves.csv").read_text().splitlines()[-1]
        file.write(row.replace("4,", "999,", 1) + "\r\n")
        file.write(",".join(["999"] * len(whole)) + "\r\n")
    capsys.readouterr()
    learner = start()
    curves = agent_runs.train_agent(
        learner,
        500,
        10.0,
        directory,
        resume=True,
        updates_per_epoch=2,
        by_level=True,
        measure=lambda: {"tested": int(learner.agent.train_step_counter)},
    )
    timed = ("minutes", "steps_per_second")
    for name in set(whole) - set(timed):
        np.testing.assert_allclose(
            curves[name][-2:], whole[name][-2:], rtol=1e-5
        )
    assert (np.diff(curves["minutes"]) > 0).all()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert f"{whole['steps'][-1]} steps" in lines[2]
    share = 100 * curves["solved_1_0_0"][-1]
    assert lines[3].strip() == f"solved_1_0_0: {share:5.1f} %"
    # Not asked for before.
    assert np.isnan(curves["solved_1_0_0"][:2]).all()
    np.testing.assert_array_equal(
        curves["solved_1_0_0"][2:], curves["solved"][2:]
    )
    np.testing.assert_array_equal(curves["tested"], [np.nan, np.nan, 6, 8])
    with open(directory / "curves.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["updates"]) for row in rows][-2:] == [6, 8]
    assert rows[-1]["tested"] == "8"
    events = event_accumulator.EventAccumulator(str(directory / "tensorboard"))
    events.Reload()
    assert "solved" in events.Tags()["tensors"]


def test_means_are_over_the_episodes_that_ended():
    training = start()
    curves = agent_runs.train_agent(training, 100, 10.0, updates_per_epoch=3)
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
            loss = tf_agent.LossInfo(1.0, impala.ImpalaInfo(*np.ones(4)))
            episodes = impala.Episodes(
                *(np.array([[10.0, 1.0]]), np.array([[10.0, 10.0]])),
                *(np.array([[5, 9]]), np.array([[True, True]])),
                np.zeros((1, 2, 3), int),
            )
            return loss, episodes

    curves = agent_runs.train_agent(Learner(), 1, 10.0, updates_per_epoch=1)
    assert curves["return"].tolist() == [10.0]
    assert curves["solved"].tolist() == [0.5]


def test_an_update_between_two_episodes():
    """Of one step, which is none: the agent is set on its feet again."""
    environment = agents.small_environment(batch_size=1, max_episode_steps=1)
    agent = agents.small_agent(environment)
    training = impala.ActorLearner(agent, environment, unroll_length=1)
    curves = agent_runs.train_agent(training, 2, 10.0, updates_per_epoch=2)
    assert curves["steps"].tolist() == [1, 2]
    assert np.isfinite(curves["loss"]).all()


@pytest.mark.parametrize("argument", ["num_steps", "updates_per_epoch"])
def test_numbers_are_checked(argument, tmp_path):
    arguments = {"num_steps": 1, "updates_per_epoch": 1, argument: 0}
    with pytest.raises(ValueError, match=f"{argument}=0"):
        agent_runs.train_agent(
            None, success_reward=10.0, directory=tmp_path / "run", **arguments
        )
    assert not (tmp_path / "run").exists()


def test_runs_are_not_mixed(tmp_path):
    for directory in (tmp_path, None):
        with pytest.raises(FileNotFoundError, match="no checkpoint to conti"):
            agent_runs.train_agent(start(), 1, 10.0, directory, resume=True)
    agent_runs.train_agent(
        start(), 1, 10.0, tmp_path, updates_per_epoch=1, verbose=False
    )
    learner = start()
    before = [x.numpy() for x in learner.agent.collect_policy.variables()]
    with pytest.raises(FileExistsError, match="resume=True, delete it"):
        agent_runs.train_agent(learner, 1, 10.0, tmp_path)
    # Nor is it another's now.
    assert int(learner.environment_steps.result()) == 0
    after = [x.numpy() for x in learner.agent.collect_policy.variables()]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_damaged_run_is_a_clear_error(tmp_path):
    """Whichever of its files it is; the one that is damaged is named."""
    original, run = tmp_path / "original", tmp_path / "run"
    agent_runs.train_agent(
        start(), 1, 10.0, original, updates_per_epoch=1, verbose=False
    )
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
                agent_runs.train_agent(learner, 1, 10.0, run, resume=True)
            assert named in str(caught.value), (file.name, name)
            shutil.rmtree(run)
    # A good one is still read, by a learner that was half filled.
    shutil.copytree(original, run)
    agent_runs.train_agent(learner, 1, 10.0, run, resume=True)
