"""Runs of an agent that are logged, and can be continued."""

import itertools
import pathlib
import time

import numpy as np
import tensorflow as tf

from keras_relational import legacy_keras
from keras_relational.file_io import read_curves
from keras_relational.training.supervised import save_curves
from keras_relational.validation import check_positive_integers


def train_agent(
    actor_learner,
    num_steps,
    success_reward,
    directory=None,
    resume=False,
    updates_per_epoch=100,
    by_level=False,
    measure=dict,
    verbose=True,
):
    """Trains an agent, and takes its learning curves.

    After every epoch a line is printed, the curves are written to `curves.csv`
    and to `tensorboard/`, and everything that is needed to go on to
    `checkpoints/`.

    Args:
        actor_learner: An `impala.ActorLearner`.
        num_steps: Number of steps of the environment, all episodes together,
            after which to stop, at the end of an epoch.
        success_reward: That of the world: an episode whose last step has that
            reward or more is solved.
        directory: Folder for logs and checkpoints; none are kept by default.
        resume: Whether to continue the run in `directory`, with the result that
            it would have had.
        updates_per_epoch: Number of updates between two points of the curves.
        by_level: Whether to take the share solved of each level too.
        measure: Function without arguments to a dictionary of names and
            numbers, called after every epoch. What it takes is not counted in
            `minutes`.
        verbose: Whether to print at all.

    Returns:
        Dictionary of arrays, one entry an epoch: `steps` and `updates` so far,
        `minutes` spent so far, all parts of the run together,
        `steps_per_second`; of the episodes that ended in the epoch, `episodes`,
        their number, and their means `return`, `length`, and `solved`, the
        share of those solved; and of the last update `loss`, `policy_loss`,
        `value_loss`, `entropy`, those a step, and `gradient_norm`. If asked
        for, also `solved_1_1_2` and so on, the share solved of the puzzles of
        level (1, 1, 2), NaN for an epoch in which none of them ended; and what
        `measure` returns.

    Raises:
        ValueError: If a number is not a positive integer, or the run in
            `directory` is damaged, or of another agent.
        FileExistsError: If there is a run in `directory`, and `resume` is not
            asked for.
        FileNotFoundError: If there is none, and it is.
    """
    check_positive_integers(
        num_steps=num_steps, updates_per_epoch=updates_per_epoch
    )
    logs = _Logs(actor_learner, directory, resume)
    steps = actor_learner.environment_steps.result
    while int(steps()) < num_steps:
        before, began = int(steps()), time.monotonic()
        ended = []
        for _ in range(updates_per_epoch):
            so_far = int(steps())
            losses, episodes = actor_learner.train()
            is_last = np.asarray(episodes.is_last)
            ended.append([np.asarray(x)[is_last] for x in episodes])
        rewards, returns, lengths, _, levels = map(
            np.concatenate, zip(*ended, strict=True)
        )
        seconds = time.monotonic() - began
        solved = rewards >= success_reward
        # Between two episodes there may be none.
        a_step = max(1, int(steps()) - so_far)
        row = {
            "steps": int(steps()),
            "updates": int(actor_learner.agent.train_step_counter),
            "minutes": logs.minutes + seconds / 60,
            "steps_per_second": (int(steps()) - before) / seconds,
            "episodes": len(returns),
            "return": _mean(returns),
            "length": _mean(lengths),
            "solved": _mean(solved),
            "loss": float(losses.loss) / a_step,
            "policy_loss": float(losses.extra.policy_loss) / a_step,
            "value_loss": float(losses.extra.value_loss) / a_step,
            "entropy": float(losses.extra.entropy) / a_step,
            "gradient_norm": float(losses.extra.gradient_norm),
        }
        shares = {}
        for level in np.unique(levels, axis=0) if by_level else ():
            mine = (levels == level).all(axis=1)
            name = "_".join(["solved", *(str(x) for x in level)])
            shares[name] = float(solved[mine].mean())
        logs.save({**row, **shares, **measure()})
        if verbose:
            print(
                f"{row['steps']:>13,} steps, {row['steps_per_second']:>7,.0f} "
                f"a second; return {row['return']:6.2f}, length "
                f"{row['length']:6.1f}, solved {100 * row['solved']:5.1f} %",
                flush=True,
            )
            for name, share in shares.items():
                print(f"{'':15s}{name}: {100 * share:5.1f} %")
    return {name: np.array(curve) for name, curve in logs.curves.items()}


def check_backend(parser):
    """Ends a program before any work, where no agent can be trained.

    Args:
        parser: `argparse.ArgumentParser`, which ends it.
    """
    try:
        legacy_keras.check_backend("Agents that train")
    except RuntimeError as error:
        parser.error(str(error))


class _Logs:
    """Curves, TensorBoard and checkpoints of a run."""

    def __init__(self, actor_learner, directory, resume):
        self.actor_learner = actor_learner
        self.directory = directory and pathlib.Path(directory)
        self.curves = {}
        self.checkpointer = None
        checkpoints = directory and self.directory / "checkpoints"
        found = directory and _latest_checkpoint(checkpoints)
        if found and not resume:
            raise FileExistsError(
                f"{directory} holds a run already. Continue it with "
                "resume=True, delete it, or use another directory."
            )
        if resume and not found:
            raise FileNotFoundError(
                f"{directory} holds no checkpoint to continue from."
            )
        if not directory:
            return
        try:
            # It restores what it finds as soon as it is made.
            self.checkpointer = actor_learner.checkpointer(checkpoints)
            if resume:
                self.checkpointer.initialize_or_restore().assert_consumed()
        # What TensorFlow raises of a damaged checkpoint is of any class.
        except Exception as error:
            if not resume:
                raise
            raise ValueError(
                f"{found} cannot be restored: {_explained(error)}. Expected an "
                "intact checkpoint of this very agent and environment. Use an "
                "earlier one by its name in the file 'checkpoint', or begin "
                "anew in another directory."
            ) from error
        if resume:
            self._read_curves()
        self.writer = tf.summary.create_file_writer(
            str(self.directory / "tensorboard")
        )

    @property
    def minutes(self):
        return self.curves["minutes"][-1] if self.curves else 0.0

    def save(self, row):
        # A level may be met late, or not in every epoch.
        epochs = len(self.curves.get("steps", ()))
        for name in {**self.curves, **row}:
            curve = self.curves.setdefault(name, epochs * [float("nan")])
            curve.append(row.get(name, float("nan")))
        if not self.directory:
            return
        with self.writer.as_default(step=row["steps"]):
            for name, value in row.items():
                tf.summary.scalar(name, value)
        self.writer.flush()
        save_curves(self.directory, self.curves)
        # Last: what the curves have beyond the checkpoint is dropped.
        self.checkpointer.save(row["updates"])

    def _read_curves(self):
        updates = int(self.actor_learner.agent.train_step_counter)
        path = self.directory / "curves.csv"
        curves = read_curves(path)
        if "updates" not in curves or "minutes" not in curves:
            raise ValueError(f"{path} should tell the updates of the run.")
        kept = [number <= updates for number in curves["updates"]]
        self.curves = {
            name: list(itertools.compress(curve, kept))
            for name, curve in curves.items()
        }


def _latest_checkpoint(checkpoints):
    """Path of the last checkpoint, without what its files end in."""
    path = checkpoints / "checkpoint"
    try:
        found = tf.train.latest_checkpoint(str(checkpoints))
        if not found and path.exists():
            raise ValueError("it names no checkpoint that is there")
        return found
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Expected TensorFlow's list of "
            "the checkpoints beside it, with a line such as "
            'model_checkpoint_path: "ckpt-100".'
        ) from error


def _explained(error):
    text = getattr(error, "message", None) or str(error) or repr(error)
    return text.strip().splitlines()[0].rstrip(".")


def _mean(values):
    return float(values.mean()) if len(values) else float("nan")
