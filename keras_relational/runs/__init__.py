"""A run: the folder of one experiment, with its configuration and results.

A script that trains a model opens one `Run`. Models and agents are trained
inside its `with` statement:

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

`training.train_classifier` and, for an agent, `train_agent` of
`keras_relational.agents` take `run=run`, too. A run that trains several
networks names each part: `training.fit(..., run=run, part="autoencoder")`
writes the curves and checkpoints of this part to a subfolder. Without a run
(`run=None`) these functions keep everything in memory.

The folder holds

    config.json      the command, every argument, digests of the files read, the
                     versions of libraries, the commit of the source, the
                     machine and the date, and the same for each later start
    curves.csv       the learning curves, one row for each epoch
    tensorboard/     the same curves for TensorBoard
    checkpoint-*.npz or checkpoints/: the last two checkpoints
    model.keras      the model that `run.save_model` saved
    result.json      the metrics that `run.finish` wrote, once the run has
                     finished
    run.lock         the number of the process that uses the folder

**Starting again.** The same command continues the run, with the same result as
without the break, even if the process was killed. Arguments in `may_differ` may
change: with a larger number of batches or steps, a finished run continues. If
any other argument differs, a `ValueError` names both values. Paths may always
differ, because files can be moved: `data` has digests of their content.

**One process at a time.** A second process that opens the folder gets a
`RuntimeError` with the number of the first. If several processes train one
model together (`keras.distribution.initialize`), each opens the run, and
process 0 alone reads and writes the folder.

**Killed processes.** Each file appears when it is complete. If the newest
checkpoint is damaged, the run continues from the one before, with a warning.

The parts of a run, by name:

- `Run`: the folder; `run_name`, its name; `data_digest`, the digest of arrays.
- `TrainingLog`: the curves while a model trains; `write_curves`, `read_curves`
  and `check_curves`, their file.
- `ModelCheckpoints`: writes the checkpoints of a Keras model and reads them.
- `check_export`: refuses an export path before hours of training.
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
