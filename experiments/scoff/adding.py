"""Trains SCOFF, RIMs or an LSTM to add two or four of 50 numbers.

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments, Table 3. The tests are sequences of 200
with two to ten marked numbers. The paper's errors after 100 epochs, with ten
numbers: SCOFF 0.0539, RIMs 0.8904, LSTM 11.3595. Here the errors are mean
squared errors. An epoch takes 3 to 9 minutes on one core.
"""

import keras

from experiments.generated_batches import shuffled
from experiments.scoff.schemata import draw_object_files
from keras_relational import analysis
from keras_relational import layers
from keras_relational import training
from keras_relational.datasets import adding
from keras_relational.random_streams import stream

CORES = ("scoff", "rims", "lstm")
ACTIVE = "slots of 5 updated in a step (default: 1 for scoff, 3 for rims)"
LINES = [
    f"mean squared error with {number} numbers: {{errors[{number}]:.4f}}"
    for number in adding.TEST_VALUES
]
NEXT = "python -m experiments.scoff adding --core rims"


def main(command):
    add = command.option
    add("--core", CORES, "scoff", "the recurrent layer")
    add("--num-active", int, None, ACTIVE)
    add("--learning-rate", float, 0.001, "of Adam; Table 2: 0.01")
    add("--epochs", int, 100, "passes over the training sequences")
    add("--num-train", int, 50_000, "training sequences", low=64)
    add("--num-test", int, 20_000, "sequences of each of seven tests")
    args = command.parse_run()

    keras.utils.set_random_seed(args.seed)
    model = adding_model(args.core, args.num_active)
    training.compile_model(model, args.learning_rate, "mse")
    x, y = adding.generate(
        args.num_train,
        length=adding.TRAIN_LENGTH,
        num_values=adding.TRAIN_VALUES,
        seed=stream(args.seed, "train"),
    )
    tests = {
        number: adding.generate(
            args.num_test,
            length=adding.TEST_LENGTH,
            num_values=number,
            seed=stream(args.seed, "numbers_to_add", number),
        )
        for number in adding.TEST_VALUES
    }

    def measure():
        errors = adding_errors(model, tests, num_tested=500)
        return {f"error_{number}": error for number, error in errors.items()}

    with command.open_run(["core"], ["epochs", "num_test"]) as run:
        batches_per_epoch = len(y) // 64
        curves = training.fit(
            model,
            shuffled(x, y[:, None], batch_size=64, seed=args.seed),
            num_batches=args.epochs * batches_per_epoch,
            batches_per_epoch=batches_per_epoch,
            measure=measure,
            run=run,
            verbose=args.verbose,
        )
        if args.core == "scoff":
            some, _ = adding.generate(1, 20, 4, stream(args.seed, "test"))
            found = analysis.object_files(model, some)
            marks = some[0, :, 1].astype(int)
            draw_object_files(found, run.directory, labels=marks)
        metrics = {
            "epochs": int(curves["batches"][-1]) // batches_per_epoch,
            "errors": adding_errors(model, tests),
        }
        command.finish(run, model, metrics, LINES, NEXT)


def adding_model(core="scoff", num_active=None):
    """A model of 300 units from sequences `(batch, time, 2)` to sums."""
    return keras.Sequential(
        [
            keras.Input((None, 2), name="sequence"),
            # Section 3: the encoder of vectors is an MLP.
            keras.layers.Dense(64, "relu", name="encoder"),
            adding_core(core, num_active=num_active),
            keras.layers.Dense(1, name="sum"),
        ],
        name="adding",
    )


def adding_core(core, units=60, num_slots=5, num_active=None, **options):
    """The recurrent layer: SCOFF or RIMs, or an LSTM of as many units in all.

    Sizes as in appendix B of Goyal et al., 2020; sizes of attention are those
    of a head. The paper says neither how large the encoder is nor how many
    object files and modules are updated in a step: here 1 and 3.
    """
    if core == "lstm":
        if num_active is not None:
            raise ValueError(
                "`num_active` is for SCOFF and RIMs: an LSTM updates all of "
                f"its units. Received: core='lstm', num_active={num_active}"
            )
        return keras.layers.LSTM(num_slots * units, name="core", **options)
    options = {
        "num_heads": 4,
        "key_dim": 64,
        "value_dim": 60,
        "dynamics": "lstm",
        "dropout": 0.1,
        "name": "core",
        **options,
    }
    if core == "rims":
        active = 3 if num_active is None else num_active
        return layers.RIMs(units, num_slots, active, **options)
    active = 1 if num_active is None else num_active
    return layers.SCOFF(units, num_slots, 2, num_active=active, **options)


def adding_errors(model, tests, num_tested=None):
    """The mean squared error of a model's sums on the first of each test."""
    return {
        number: model.evaluate(
            x[:num_tested], y[:num_tested, None], batch_size=250, verbose=0
        )
        for number, (x, y) in tests.items()
    }
