"""Trains SCOFF, RIMs or an LSTM to add two or four of 50 numbers.

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments, Table 3. The tests are sequences of 200
with two to ten marked numbers. The paper's errors after 100 epochs, with ten
numbers: SCOFF 0.0539, RIMs 0.8904, LSTM 11.3595. Here the errors are mean
squared errors. An epoch takes 3 to 9 minutes on one core.
"""

import keras

from keras_relational import analysis
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import adding
from keras_relational.random_streams import stream

ACTIVE = "slots of 5 updated in a step (default: 1 for scoff, 3 for rims)"
LINES = [
    f"mean squared error with {number} numbers: {{errors[{number}]:.4f}}"
    for number in adding.TEST_VALUES
]
NEXT = "python -m experiments.scoff adding --core rims"


def main(command):
    add = command.option
    add("--core", models.ADDING_CORES, "scoff", "the recurrent layer")
    add("--num-active", int, None, ACTIVE)
    add("--learning-rate", float, 0.001, "of Adam; Table 2: 0.01")
    add("--epochs", int, 100, "passes over the training sequences")
    add("--num-train", int, 50_000, "training sequences", low=64)
    add("--num-test", int, 20_000, "sequences of each of seven tests")
    args = command.parse_run()

    keras.utils.set_random_seed(args.seed)
    model = models.adding_model(args.core, args.num_active)
    training.compile_model(model, args.learning_rate, "mse")
    train = adding.TRAIN_LENGTH, adding.TRAIN_VALUES, stream(args.seed, "train")
    x, y = adding.generate(args.num_train, *train)
    tests = training.adding_tests(args.num_test, args.seed)

    def batches(first):
        return training.Minibatches(x, y[:, None], 64, None, first, args.seed)

    def measure():
        errors = training.adding_errors(model, tests, 500)
        return {f"error_{number}": error for number, error in errors.items()}

    with command.open_run(["core"], ["epochs", "num_test"]) as run:
        epoch = len(y) // 64
        schedule = args.epochs * epoch, epoch, measure
        curves = training.fit(
            model, batches, *schedule, run, verbose=args.verbose
        )
        if args.core == "scoff":
            some, _ = adding.generate(1, 20, 4, stream(args.seed, "test"))
            found = analysis.object_files(model, some)
            marks = some[0, :, 1].astype(int)
            analysis.draw_object_files(found, run.directory, labels=marks)
        figures = {"epochs": int(curves["batches"][-1]) // epoch}
        figures["errors"] = training.adding_errors(model, tests)
        command.finish(run, model, figures, LINES, NEXT)
