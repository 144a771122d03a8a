"""Training of agents, in runs that can be continued."""

import functools
import time
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_relational import runs
from keras_relational.agents.checkpoints import AgentCheckpoints
from keras_relational.validation import check_positive_integers


def train_agent(
    actor_learner: Any,
    num_steps: int,
    success_reward: float,
    run: runs.Run | None = None,
    part: str | None = None,
    updates_per_epoch: int = 100,
    by_level: bool = False,
    measure: Callable[[], Mapping[str, float]] = dict,
    verbose: bool = True,
) -> dict[str, np.ndarray]:
    """Trains an agent, and returns its learning curves.

    Every epoch prints a line, and the results of `measure`. A run keeps the
    curves and checkpoints, and is continued, as in `training.fit`.

    Args:
        actor_learner: `ActorLearner` or `DistributedActorLearner`.
        num_steps: Number of steps of the environment, all episodes together.
            Training stops after the update that reaches it.
        success_reward: Reward that solves an episode: one is solved if the
            reward of its last step is at least this.
        run: `runs.Run` to keep curves and checkpoints in. By default nothing
            is written.
        part: Name of this part of the run, if it trains several agents.
        updates_per_epoch: Number of updates between two points of the curves:
            there is a point where the number of updates is a multiple of this,
            and one at the end.
        by_level: If `True`, the share solved of each level is taken, too.
        measure: Function without arguments to a dictionary of names and
            numbers, called after every epoch. Its time does not count in
            `minutes`.
        verbose: If `False`, no lines are printed.

    Returns:
        Dictionary of arrays, one entry an epoch: `steps` and `updates` so far;
        `minutes` spent so far, all parts of the run together;
        `steps_per_second`; `episodes`, the number of episodes that ended in the
        epoch, and their means `return`, `length` and `solved`, the share that
        is solved; of the last update `loss`, `policy_loss`, `value_loss`,
        `entropy`, each a step, and `gradient_norm`; with `by_level` also
        `solved_1_1_2` and so on, the share solved of level (1, 1, 2), NaN for
        an epoch in which no episode of that level ended; and what `measure`
        returns.

    Raises:
        ValueError: If a number is not a positive integer, or the checkpoint in
            the run is damaged, or of another agent.
    """
    check_positive_integers(
        num_steps=num_steps, updates_per_epoch=updates_per_epoch
    )
    log = runs.TrainingLog(
        run, part, "steps", functools.partial(AgentCheckpoints, actor_learner)
    )
    log.restore(num_steps)
    while int(actor_learner.environment_steps.result()) < num_steps:
        row, ended = _train_epoch(actor_learner, num_steps, updates_per_epoch)
        row["minutes"] += log.minutes
        episodes = _means(ended, success_reward)
        shares = _solved_by_level(ended, success_reward) if by_level else {}
        row = {**row, **episodes, **shares}
        measured = measure()
        log.add({**row, **measured}, row["updates"])
        if verbose:
            _print(row, shares, measured)
    return {name: np.array(curve) for name, curve in log.curves.items()}


def _train_epoch(actor_learner, num_steps, updates_per_epoch):
    """Trains to the end of an epoch: its figures, and the `Episodes` of it."""
    steps = actor_learner.environment_steps.result
    before, began = int(steps()), time.monotonic()
    ended = []
    while True:
        so_far = int(steps())
        losses, episodes = actor_learner.train()
        is_last = np.asarray(episodes.is_last)
        ended.append([np.asarray(x)[is_last] for x in episodes])
        updates = int(actor_learner.agent.train_step_counter)
        if updates % updates_per_epoch == 0 or int(steps()) >= num_steps:
            break
    ended = type(episodes)(*map(np.concatenate, zip(*ended, strict=True)))
    seconds = time.monotonic() - began
    # Between two episodes an update may come without a step.
    a_step = max(1, int(steps()) - so_far)
    row = {
        "steps": int(steps()),
        "updates": updates,
        "minutes": seconds / 60,
        "steps_per_second": (int(steps()) - before) / seconds,
        "loss": float(losses.loss) / a_step,
        "policy_loss": float(losses.extra.policy_loss) / a_step,
        "value_loss": float(losses.extra.value_loss) / a_step,
        "entropy": float(losses.extra.entropy) / a_step,
        "gradient_norm": float(losses.extra.gradient_norm),
    }
    return row, ended


def _means(ended, success_reward):
    return {
        "episodes": len(ended.returns),
        "return": _mean(ended.returns),
        "length": _mean(ended.lengths),
        "solved": _mean(ended.rewards >= success_reward),
    }


def _solved_by_level(ended, success_reward):
    """The share of episodes solved, for each level that was played."""
    solved = ended.rewards >= success_reward
    return {
        "_".join(["solved", *map(str, level)]): float(
            solved[(ended.levels == level).all(axis=1)].mean()
        )
        for level in np.unique(ended.levels, axis=0)
    }


def _print(row, shares, measured):
    means = "no episode has ended"
    if row["episodes"]:
        means = (
            f"return {row['return']:6.2f}, length {row['length']:6.1f}, "
            f"solved {100 * row['solved']:5.1f} %"
        )
    print(
        f"{row['steps']:>13,} steps, {row['steps_per_second']:>7,.0f} a "
        f"second; {means}",
        flush=True,
    )
    for name, share in shares.items():
        print(f"{'':15s}{name}: {100 * share:5.1f} %")
    for name, value in measured.items():
        print(f"{'':15s}{name}: {value:.3f}", flush=True)


def _mean(values):
    return float(values.mean()) if len(values) else float("nan")
