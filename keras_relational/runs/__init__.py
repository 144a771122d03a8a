"""A run is data: a folder that tells how it was made and what came of it.

A script that trains a model opens one `Run`. Supervised training and agents use
it alike:

    arguments = vars(args)                         # of any parser
    name = runs.run_name("adding", arguments, defaults, always=["core"])
    with runs.Run(
        args.directory / name,
        "adding",
        arguments,
        may_differ=["epochs", "num_test", "verbose"],
        data={"published": runs.data_digest(*published)},
    ) as run:
        curves = training.fit(
            model, data_from, num_batches, batches_per_epoch, run=run
        )
        run.save_model(model)
        run.finish({"errors": errors})

For an agent the middle line is

        curves = agent_runs.train_agent(
            impala.ActorLearner(agent, environment), num_steps,
            world.success_reward, run=run,
        )

and for a classifier `training.train_classifier(model, x, y, run=run)`. A run
that trains several networks names the parts: `training.fit(..., run=run,
part="autoencoder")` keeps curves and checkpoints of that part in a folder of
its own within the run's; `training.four_stage_transfer` does so by itself.

The folder holds

    config.json      the command, every argument, digests of the files read,
                     versions of the libraries, the commit of the source, the
                     machine and the date; of each later start the same again
    curves.csv       the learning curves, a row an epoch
    tensorboard/     the same, each point once
    checkpoint-*.npz or checkpoints/: the last two checkpoints
    model.keras      what `run.save_model` saved
    result.json      what `run.finish` wrote; it is there if the run has
                     finished
    run.lock         the number of the process that has the folder

**One rule for starting again.** The same command continues the run, with the
result that it would have had without a break, and says so in one line. A run
that has finished trains nothing, and says so. Arguments in `may_differ` may be
others: with more batches or steps, a finished run goes on. If anything else
differs, the `Run` is refused, on entry, by a `ValueError` that tells what it is
there and here. Paths may always differ, as files can be moved: `data` has a
digest of what was read. Versions, commit, machine and date may differ, too, and
`config.json` lists them for each start, under `continued`.

**One process at a time.** A second start on the same folder is refused by a
`RuntimeError` with the number of the process that has it.

**Nothing is lost by a kill.** Files appear when they are complete. A checkpoint
that is damaged is left for the one before, with a warning. Ctrl-C ends a run as
a kill does: the folder is as the last epoch left it.

Without a run, `run=None`, the functions of `training` keep everything in
memory.

A script should turn the errors of a bad command into one line:

    try:
        runs.check_export(args.export)
    except (RuntimeError, ValueError) as error:
        parser.error(str(error))
"""

from keras_relational.runs.checkpoints import ModelCheckpoints
from keras_relational.runs.curves import check_curves
from keras_relational.runs.curves import read_curves
from keras_relational.runs.curves import write_curves
from keras_relational.runs.exports import check_export
from keras_relational.runs.log import TrainingLog
from keras_relational.runs.names import data_digest
from keras_relational.runs.names import run_name
from keras_relational.runs.run import Run

__all__ = [
    "ModelCheckpoints",
    "Run",
    "TrainingLog",
    "check_curves",
    "check_export",
    "data_digest",
    "read_curves",
    "run_name",
    "write_curves",
]
