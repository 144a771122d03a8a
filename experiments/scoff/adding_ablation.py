"""What keeps SCOFF from adding ten numbers? Short sums, one change at a time.

Trains on sequences of 20 with two or four marked numbers, and tests with two
and ten numbers on sequences of 20 and of 80. Without options it is SCOFF as in
`adding`. Some options are from the program of Goyal et al., 2019, Recurrent
Independent Mechanisms: an embedding without ReLU, dropout, clipping, gated
messages. A divisor keeps the state small, and a forget bias keeps it. With two
lengths in training a state that drifts is an error. With `--read-cells` the sum
is read from the cells c, which have no bound, and not from h = σ(o) tanh(c).

An error is a mean squared error, an offset how much too large the sums are on
average. Both are given for the last weights, and for those of the epoch with
the smallest error on sequences of two or four numbers with the long tests'
length. A run takes two to ten minutes on one core.
"""

import functools

import keras
import numpy as np

from experiments.command_line import number
from experiments.generated_batches import generated
from experiments.scoff.adding import CORES
from experiments.scoff.adding import adding_core
from keras_relational import analysis
from keras_relational import training
from keras_relational.analysis.plotting import new_figure
from keras_relational.datasets import adding
from keras_relational.random_streams import stream

TESTED = (2, 10)
EMBEDDINGS = ("relu", "linear")
EMBEDDING = (
    "relu: 64 units of number and mark; linear: of number, mark in the first "
    "half and mark in the second, started in ±0.1"
)
LINES = [
    "mean squared error with ten numbers, short and long: "
    "{last[error_10_short]:.3f}, {last[error_10_long]:.3f}",
    "the same, weights chosen by validation: "
    "{chosen[error_10_short]:.3f}, {chosen[error_10_long]:.3f}",
]
NEXT = "python -m experiments.scoff adding_ablation --read-cells"


def main(command):
    add = command.option
    add("--core", CORES, "scoff", "the recurrent layer")
    add("--embedding", EMBEDDINGS, "relu", EMBEDDING)
    add("--dropout", number, 0.0, "of the embedding and of the last state")
    add("--clip", number, 0.0, "norm to which gradients are clipped; 0: none")
    add("--gated-messages", bool, False, "of SCOFF")
    add("--divisor", float, 1.0, "of the sums to learn")
    add("--forget-bias", float, 1.0, "of the forget gates, before training")
    add("--read-cells", bool, False, "read the sum from c, in place of h")
    add("--dynamics", ("lstm", "gru"), "lstm", "of SCOFF and RIMs")
    add("--units", int, 60, "of a slot; the LSTM has as many in all")
    add("--num-slots", int, 5, "object files of SCOFF, modules of RIMs")
    add("--num-active", int, None, "as in `adding`: 1 for scoff, 3 for rims")
    add("--lengths", int, [20], "of training, in turn", low=4, nargs="+")
    add("--short", int, 20, "length of the short tests", low=10)
    add("--long", int, 80, "length of the long tests", low=10)
    add("--learning-rate", float, 0.002, "of Adam; it falls to 0")
    add("--num-batches", int, 2_000, "training steps of 64 sequences")
    add("--num-test", int, 500, "sequences of each test")
    args = command.parse_run()

    keras.utils.set_random_seed(args.seed)
    by_half = args.embedding == "linear"
    model = ablation_model(args)
    compile_with_decay(model, args.learning_rate, args.num_batches, args.clip)

    def generate(num_sequences, seed):
        length = args.lengths[seed[-1] % len(args.lengths)]  # Batch by batch.
        x, y = adding.generate(num_sequences, length, adding.TRAIN_VALUES, seed)
        return channels(x, by_half), y[:, None] / args.divisor

    def test(name, values, length):
        seed = stream(args.seed, name, length)
        x, y = adding.generate(args.num_test, length, values, seed)
        return channels(x, by_half), y

    tests = {
        f"{values}_{name}": test("test_beside_batches", values, length)
        for name, length in (("short", args.short), ("long", args.long))
        for values in TESTED
    }
    tests["validation"] = test(
        "validation_beside_batches", adding.TRAIN_VALUES, args.long
    )
    with command.open_run(["core"]) as run:
        curves = training.fit(
            model,
            generated(generate, 64, args.seed),
            num_batches=args.num_batches,
            batches_per_epoch=200,
            measure=functools.partial(errors, model, tests, args.divisor),
            run=run,
            verbose=args.verbose,
        )
        figure = plot_sums(model, tests, args.divisor)
        analysis.save_figure(figure, run.directory / "sums.png")
        metrics = {**last_and_chosen(curves), "weights": model.count_params()}
        command.finish(run, model, metrics, LINES, NEXT)


def ablation_model(options):
    """A model from sequences of `channels` to sums divided by the divisor."""
    check_options(options)
    kinds = {} if options.core == "lstm" else {"dynamics": options.dynamics}
    if options.gated_messages:
        kinds["gated_messages"] = True
    core = adding_core(
        options.core,
        options.units,
        options.num_slots,
        options.num_active,
        return_state=True,
        **kinds,
    )
    by_half = options.embedding == "linear"
    if by_half:
        width = options.num_slots * options.units
        start = keras.initializers.RandomUniform(-0.1, 0.1)
        embedding = keras.layers.Dense(width, kernel_initializer=start)
    else:
        embedding = keras.layers.Dense(64, "relu")
    sequence = keras.Input((None, 3 if by_half else 2))
    x = keras.layers.Dropout(options.dropout)(embedding(sequence))
    _, *states = core(x)
    x = states[-1] if options.read_cells else states[0]
    x = keras.layers.Dropout(options.dropout)(x)
    model = keras.Model(sequence, keras.layers.Dense(1)(x), name="adding")
    if options.dynamics == "lstm":
        set_forget_bias(core.cell, options.forget_bias)
    return model


def check_options(options):
    """Refuses options that the recurrent layer does not have."""
    if options.gated_messages and options.core != "scoff":
        raise ValueError(f"{options.core} has no gated messages")
    if options.dynamics == "gru" and options.core == "lstm":
        raise ValueError("`dynamics` is for SCOFF and RIMs")
    if options.dynamics == "gru" and options.forget_bias != 1:
        raise ValueError("A GRU has no forget gate")
    if options.dynamics == "gru" and options.read_cells:
        raise ValueError("A GRU has no cells beside its state")


def set_forget_bias(cell, value):
    """Sets the forget gates' bias; gates are in the order i, f, new, o."""
    bias = np.array(cell.bias)
    bias[..., cell.units : 2 * cell.units] = value
    cell.bias.assign(bias)


def compile_with_decay(model, learning_rate, num_batches, clip=0, loss="mse"):
    """Compiles with Adam, whose rate falls to 0 in a line."""
    schedule = keras.optimizers.schedules.PolynomialDecay(
        learning_rate, num_batches, 0.0
    )
    optimizer = keras.optimizers.Adam(
        schedule, epsilon=1e-8, global_clipnorm=clip or None
    )
    model.compile(optimizer, loss)


def channels(x, by_half):
    """Number and mark, or number and a mark for each half of the sequence."""
    if not by_half:
        return x
    middle = x.shape[1] // 2
    first, second = x[..., 1:].copy(), x[..., 1:].copy()
    first[:, middle:] = 0
    second[:, :middle] = 0
    return np.concatenate([x[..., :1], first, second], axis=-1)


def predicted_sums(model, x, divisor):
    """What the model takes the sums for."""
    return divisor * training.predictions(model, x)[:, 0]


def errors(model, tests, divisor):
    """Mean squared error and offset of the sums of each test."""
    measured = {}
    for name, (x, y) in tests.items():
        excess = predicted_sums(model, x, divisor) - y
        measured[f"error_{name}"] = float(np.mean(excess**2))
        measured[f"offset_{name}"] = float(np.mean(excess))
    return measured


def last_and_chosen(curves):
    """The figures of the last epoch, and of the best one by validation."""
    best = int(np.argmin(curves["error_validation"]))
    names = [x for x in curves if x.startswith(("error_", "offset_"))]
    return {
        "last": {name: float(curves[name][-1]) for name in names},
        "chosen": {name: float(curves[name][best]) for name in names},
        "chosen_batches": int(curves["batches"][best]),
    }


def plot_sums(model, tests, divisor):
    """Draws predicted against true sums: short tests left, long ones right."""
    figure = new_figure(8, 4)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for panel, length in zip(panels, ("short", "long"), strict=True):
        for values in TESTED:
            x, y = tests[f"{values}_{length}"]
            sums = predicted_sums(model, x, divisor)
            panel.scatter(y, sums, s=4, label=f"{values} numbers")
        panel.axline((0, 0), slope=1, color="black", linewidth=0.8)
        panel.set(title=f"{x.shape[1]} steps", xlabel="sum", aspect="equal")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("predicted sum")
    panels[0].legend()
    return figure
