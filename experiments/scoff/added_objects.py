"""More balls than in training: SCOFF and its rivals, from coordinates.

Balls collide in a box, and a model sees where each is. It is trained on four
and tested with two to eight. SCOFF starts a file for each ball of the first
step. Its rivals are a GRU that all balls share, with attention between balls or
without, and one GRU over all. All read the same code of positions, and see the
same batches. The error of the next step is a mean squared error relative to
that of balls that go on as in their last step. The error of a roll-out is the
mean squared error of ten steps that are predicted from predictions. Gradients
are clipped to a small norm: without it files of SCOFF lose their balls again
while they learn.

With `--shuffle` the balls have another order at each step. A file of SCOFF then
must find its ball by itself, and a shared GRU gets its ball from a tracker: the
assignment with the least squared distance to what the GRUs predict. A run takes
one to four minutes on one core.
"""

import functools

import keras
import numpy as np

from experiments import command_line
from experiments.generated_batches import drawn
from experiments.generated_batches import generated
from experiments.scoff import tracking
from experiments.scoff.adding_ablation import compile_with_decay
from experiments.scoff.object_predictors import CORES
from experiments.scoff.object_predictors import NUM_PLACES
from experiments.scoff.object_predictors import object_predictor
from experiments.scoff.results import plot_added_objects
from experiments.scoff.set_losses import set_error
from keras_relational import analysis
from keras_relational import training
from keras_relational.analysis.plotting import save_gif
from keras_relational.datasets import bouncing_balls
from keras_relational.datasets.shapes import draw
from keras_relational.random_streams import stream

NUM_GIVEN = 11  # True steps before a roll-out.
NUM_ROLLED = 10
# Of `object_predictor`.
SIZES = (
    *("units", "num_bumps", "num_schemata", "num_message_heads"),
    *("key_scale", "sharpness"),
)
# A colour for each file, wrapped around, and white for -1.
COLOURS = np.array(
    [
        *((230, 126, 34), (57, 135, 217), (43, 154, 90), (168, 102, 216)),
        *((221, 79, 98), (130, 130, 130), (240, 200, 40), (60, 200, 200)),
        (255, 255, 255),
    ]
)
NEXT = "python -m experiments.scoff added_objects --core attention"


def main(command):
    add = command.option
    add("--core", CORES, "scoff", "SCOFF or one of its rivals")
    add("--pass-through", bool, False, "balls do not collide with each other")
    add("--shuffle", bool, False, "the order of the balls at each step")
    add("--set-loss", bool, False, "with --shuffle: a file takes any ball")
    add("--sharpness", float, 4.0, "with --shuffle: of where a file's ball is")
    add("--units", int, 32, "for a ball; one GRU has those of all in training")
    add("--num-bumps", int, 7, "a side, in the code of a position", low=0)
    add("--num-schemata", int, 1, "of SCOFF")
    add("--num-message-heads", int, 2, "of SCOFF and of attention", low=0)
    add("--key-scale", float, 3.0, "of SCOFF's first queries and keys")
    add("--num-objects", int, 4, "balls in training")
    add("--tested", int, list(range(2, 9)), "balls in tests", nargs="+")
    add("--learning-rate", float, 5e-3, "of Adam; it falls to 0")
    add("--clip", command_line.number, 1e-3, "norm of gradients; 0: no bound")
    add("--num-batches", int, 3_000, "training steps")
    add("--batch-size", int, 32, "sequences of a batch")
    add("--num-train", int, 16_000, "training sequences")
    add("--num-test", int, 500, "sequences of each test")
    args = command.parse_run()
    check_options(args)

    keras.utils.set_random_seed(args.seed)

    def simulate(size, num_balls, *name):
        return bouncing_balls.generate_coordinates(
            size,
            num_balls,
            NUM_GIVEN + NUM_ROLLED,
            collide=not args.pass_through,
            seed=stream(args.seed, *name),
        )

    train = simulate(args.num_train, args.num_objects, "train_beside_batches")
    model = make_model(args, args.num_objects)
    compile_with_decay(
        model,
        args.learning_rate,
        args.num_batches,
        args.clip,
        loss=set_error if args.set_loss else "mse",
    )

    shown = functools.partial(examples, args)

    with command.open_run(["core"], ["tested", "num_test"]) as run:
        training.fit(
            model,
            generated(drawn(train, shown), args.batch_size, args.seed),
            num_batches=args.num_batches,
            batches_per_epoch=500,
            run=run,
            verbose=args.verbose,
        )
        own, straight, walls = {}, {}, {}  # Errors for each number of balls.
        for number in sorted(args.tested):
            balls = simulate(
                args.num_test, number, "test_beside_batches", number
            )
            own[number], straight[number], walls[number], followers = measure(
                args, model, balls
            )
        metrics = {
            "weights": model.count_params(),
            **by_figure(own),
            "same_velocity": by_figure(straight),
            "same_velocity_and_walls": by_figure(walls),
        }
        if followers is not None:  # Of the largest number.
            path = run.directory / "followed.gif"
            draw_followers(balls[:3], followers[:3], path)
        figure = plot_added_objects({args.core: [metrics]})
        analysis.save_figure(figure, run.directory / "errors.png")
        lines = [
            f"{tested} balls: error of the next step {{next_step[{tested}]"
            f":.3f}}, of a roll-out {{roll_out[{tested}]:.4f}}"
            for tested in args.tested
        ]
        command.finish(run, model, metrics, lines, NEXT)


def check_options(options):
    """Refuses what a core does not have, or cannot be compared in."""
    if options.core == "gru" and options.shuffle:
        raise ValueError("One GRU over all cannot tell balls without an order")
    if options.set_loss and not (options.core == "scoff" and options.shuffle):
        raise ValueError("--set-loss is for SCOFF with --shuffle")
    most = max([options.num_objects, *options.tested])
    if options.core == "gru" and most > NUM_PLACES:
        raise ValueError(f"One GRU has places for {NUM_PLACES} balls")
    if min([options.num_objects, *options.tested]) < 2:
        raise ValueError("A ball alone has nothing to collide with")


def make_model(options, num_balls, trained=None):
    """The model for a number of balls, with the weights of the trained one."""
    if trained is not None and options.core == "gru":
        return trained
    sizes = {name: getattr(options, name) for name in SIZES}
    if not options.shuffle:
        sizes["sharpness"] = None
    if options.core == "gru":
        num_balls = options.num_objects
    model = object_predictor(options.core, num_balls, **sizes)
    if trained is not None:
        model.set_weights(trained.get_weights())
    return model


def examples(options, balls, rng):
    """What the model sees of a batch of sequences, and what it predicts."""
    x, y = balls[:, :-1], balls[:, 1:]
    if options.core == "gru":
        places = random_places(rng, *balls.shape[::2])
        return in_places(x, places), in_places(y, places)[..., :2]
    if options.core == "scoff" and options.shuffle:
        x, _ = tracking.shuffle_steps(x, rng)
    return x, y


def random_places(rng, size, num_objects):
    """A place of one GRU for each object, `(size, num_objects)`."""
    places = np.tile(np.arange(NUM_PLACES), (size, 1))
    return rng.permuted(places, axis=1)[:, :num_objects]


def in_places(positions, places):
    """Positions `(n, time, objects, 2)` as inputs of one GRU."""
    size, time = positions.shape[:2]
    x = np.zeros((size, time, NUM_PLACES, 3), "float32")
    every = np.arange(size)[:, None]
    x[every, :, places, :2] = positions.swapaxes(1, 2)
    x[every, :, places, 2] = 1
    return x


def predictor(options, model):
    """A function from positions of the model's balls to the next ones."""
    if options.core != "gru":
        return lambda x: training.predictions(model, x)

    def predict(positions):
        rng = np.random.default_rng(options.seed)
        places = random_places(rng, *positions.shape[::2])
        predicted = training.predictions(model, in_places(positions, places))
        return np.take_along_axis(predicted, places[:, None, :, None], axis=2)

    return predict


def measure(options, trained, balls):
    """Errors on sequences of some number of balls, and who follows which ball.

    Three errors: of the model, of balls that go on as in their last step, and
    of such balls between walls. The last is the file or the GRU on each ball,
    `(n, time, balls)`, or `None` where nobody has to choose.
    """
    num_balls = balls.shape[2]
    seen, owners = balls, np.broadcast_to(np.arange(num_balls), balls.shape[:3])
    if options.shuffle:
        name = "objects_beside_batches", num_balls
        rng = np.random.default_rng(stream(options.seed, *name))
        seen, owners = tracking.shuffle_steps(balls, rng)

    def tracked(predict):
        known, followers = tracking.track(predict, seen)
        return known, tracking.on_balls(followers, owners)

    model = make_model(options, num_balls, trained)
    predict = predictor(options, model)
    known, followers = seen, None
    if options.core == "scoff":
        scores = analysis.object_files(model, seen).inputs.mean(axis=2)
        followers = tracking.on_balls(scores.argmax(axis=2), owners)
    elif options.shuffle:
        known, followers = tracked(predict)
    rolled = tracking.roll_out(predict, known[:, :NUM_GIVEN], NUM_ROLLED)
    found = errors(predict(known[:, :-1]), rolled, balls, followers)

    known, others = balls, None
    if options.shuffle:
        known, others = tracked(tracking.same_velocity)
    straight = tracking.same_velocity(known[:, :-1])
    rolled = tracking.straight_on(known[:, :NUM_GIVEN], NUM_ROLLED)
    bounced = tracking.bounced(straight), tracking.bounced(rolled)
    return (
        found,
        errors(straight, rolled, balls, others),
        errors(*bounced, balls, others),
        followers,
    )


def errors(predicted, rolled, balls, followers=None):
    """Errors of the next steps and of a roll-out, and what share was kept.

    The first step shows no velocity, and does not count.
    """
    straight = tracking.same_velocity(balls[:, :-1])
    own, of_same = (
        np.mean((steps[:, 1:] - balls[:, 2:]) ** 2)
        for steps in (predicted, straight)
    )
    rolled = np.mean((rolled - balls[:, NUM_GIVEN:]) ** 2)
    found = {"next_step": float(own / of_same), "roll_out": float(rolled)}
    if followers is not None:
        kept = followers[:, 1:] == np.arange(balls.shape[2])
        found["kept"] = float(kept.mean())
    return found


def by_figure(of_numbers):
    """Figures of each number of balls, as numbers of balls of each figure."""
    turned = {}
    for number, figures in of_numbers.items():
        for name, figure in figures.items():
            turned.setdefault(name, {})[number] = figure
    return turned


def draw_followers(balls, followers, path, pixels=240):
    """Writes an animation of sequences, `(n, time, balls, 2)`, side by side.

    A ring has a colour for each ball, and the disc in it that of the file, or
    of the GRU, which is on the ball: one disc where each has kept its own.
    """
    size, time, num_balls, _ = balls.shape
    images = np.zeros((size * time, pixels, pixels, 3), "uint8")
    images[:, :, :1] = 128  # The left wall.
    centres = (balls.reshape(-1, num_balls, 2) + 1) * pixels / 2
    followers = followers.reshape(-1, num_balls)
    radius = bouncing_balls.COORDINATES_RADIUS * pixels / 2
    for ball in range(num_balls):
        for share, colours in ((1, ball), (0.6, followers[:, ball])):
            sizes = np.full(len(images), share * radius)
            colours = np.take(COLOURS, colours, axis=0, mode="wrap")
            shown = np.broadcast_to(colours, (len(images), 3))
            draw(images, centres[:, ball], sizes, shown)
    images = images.reshape(size, time, *images.shape[1:])
    save_gif(np.concatenate(images, axis=2), path, milliseconds=200)
