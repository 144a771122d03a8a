"""Does each axis of a ball get a schema? The smallest setting that can show it.

A ball moves to and fro along an axis and changes to another one. The model sees
where the ball is and which axis is next, in place of the images of Goyal et
al., 2020, Factorizing Declarative and Procedural Knowledge. One object file of
few units and a dense layer predict the next step. It takes a minute on one
core: to try what makes schemata divide the work, many seeds of it.
"""

import keras

from experiments import command_line
from experiments.generated_batches import shuffled
from experiments.scoff.schemata import schema_metrics
from keras_relational import layers
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import single_ball
from keras_relational.random_streams import stream

LINES = [
    "share of the axes that the schema tells: {settled[information][0]:.2f}"
]
NEXT = "python -m experiments.scoff ball_coordinates --num-axes 3"


def main(command):
    add = command.option
    add("--num-axes", (2, 3), 2, "horizontal, vertical; 3: diagonal, too")
    add("--cue", float, 3.0, "the number that marks the axis; a ball: ± 1.75")
    add("--num-schemata", int, None, "default: one for each axis")
    add("--units", int, 12, "of the object file")
    add("--schema-keys", ("shared", "separate"), "separate", "of all schemata")
    add("--balance", command_line.number, 0.03, "loss for using all schemata")
    add("--num-frames", int, 20, "steps of a sequence", low=7)
    add("--learning-rate", float, 1e-3, "of Adam")
    add("--num-batches", int, 2_000, "training steps")
    add("--batch-size", int, 32, "sequences of a batch")
    add("--num-train", int, 3_000, "training sequences")
    add("--num-test", int, 500, "test sequences")
    args = command.parse_run()

    def data(name, number):
        return single_ball.generate_coordinates(
            number,
            num_frames=args.num_frames,
            num_axes=args.num_axes,
            cue=args.cue,
            seed=stream(args.seed, name),
        )

    keras.utils.set_random_seed(args.seed)
    train, _ = data("train", args.num_train)
    test, labels = data("test", args.num_test)
    model = coordinates_predictor(
        train.shape[-1],
        num_schemata=args.num_schemata or args.num_axes,
        units=args.units,
        schema_keys=args.schema_keys,
        balance=args.balance,
    )
    training.compile_model(model, args.learning_rate, "mse")
    batches = shuffled(train[:, :-1], train[:, 1:], args.batch_size, args.seed)
    with command.open_run(["num_axes"], ["num_batches", "num_test"]) as run:
        training.fit(
            model,
            batches,
            num_batches=args.num_batches,
            batches_per_epoch=500,
            run=run,
            verbose=args.verbose,
        )
        metrics = schema_metrics(model, test, labels, run.directory)
        command.finish(run, model, metrics, LINES, NEXT)


def coordinates_predictor(
    num_coordinates, num_schemata=2, units=12, schema_keys="shared", balance=0.0
):
    """A model from coordinates to the next ones: one object file, one Dense."""
    core = layers.SCOFF(
        units,
        num_object_files=1,
        num_schemata=num_schemata,
        schema_keys=schema_keys,
        balance=balance,
        return_sequences=True,
        name="core",
    )
    model = keras.Sequential(
        [
            keras.Input((None, num_coordinates)),
            core,
            keras.layers.Dense(num_coordinates, name="read_out"),
        ],
        name="coordinates_predictor",
    )
    return models.declare(model, {"predicted": "raw"}, parts={"core": "core"})
