"""Object files that follow equal balls through videos of 32 pixels.

The slots of the first frame start the object files. From then on SCOFF's files
read the 64 cells of each frame by themselves, and predict where their balls are
next. The rival is a GRU that all slots share. It reads the cells by the
softmax of slot attention, and attends to the other slots. Both train on four
balls, and are tested with two to eight. Nobody says which file is on which
ball: the loss takes for each ball the file that predicts it best over the whole
video. The detector comes from `find_objects`, and stays as it is.

The same detector also finds balls in each frame by itself. A tracker that goes
straight on with these is the third of the table.
"""

import keras
import numpy as np
from keras import ops

from experiments import command_line
from experiments.generated_batches import drawn
from experiments.generated_batches import generated
from experiments.scoff import find_objects
from experiments.scoff import tracking
from experiments.scoff.added_objects import by_figure
from experiments.scoff.added_objects import draw_followers
from experiments.scoff.adding_ablation import compile_with_decay
from experiments.scoff.object_predictors import LENGTH
from experiments.scoff.object_predictors import CompetingGRUCell
from experiments.scoff.object_predictors import PositionCode
from experiments.scoff.object_predictors import scoff
from experiments.scoff.set_losses import video_error
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import bouncing_balls
from keras_relational.random_streams import stream

CORES = ("scoff", "competing_gru")
NEXT = "python -m experiments.scoff follow_objects --core competing_gru"


def main(command):
    add = command.option
    file = command_line.existing_file
    add("--detector", file, None, "model.keras of find_objects", metavar="FILE")
    add("--core", CORES, "scoff", "SCOFF, or a GRU of slots that compete")
    add("--units", int, 32, "of a file")
    add("--num-message-heads", int, 2, "of files to each other", low=0)
    add("--key-scale", float, 3.0, "of the first queries and keys")
    add("--num-objects", int, 4, "balls in training")
    add("--tested", int, [2, 4, 6, 8], "balls in tests", nargs="+")
    add("--num-frames", int, 12, "of a video")
    add("--learning-rate", float, 2e-3, "of Adam; it falls to 0")
    add("--num-batches", int, 4_000, "training steps")
    add("--batch-size", int, 32, "videos of a batch")
    add("--num-train", int, 16_000, "training videos")
    add("--num-test", int, 500, "videos of each test")
    args = command.parse_run()
    find_objects.check_numbers(args)
    if args.detector is None:
        raise ValueError(
            "--detector is missing: the model.keras of a run of `python -m "
            "experiments.scoff find_objects`"
        )
    keras.utils.set_random_seed(args.seed)
    detector = keras.saving.load_model(args.detector, compile=False)

    def simulate(size, num_balls, *name):
        return bouncing_balls.generate_coordinates(
            size, num_balls, args.num_frames, seed=stream(args.seed, *name)
        )

    train = simulate(args.num_train, args.num_objects, "train_beside_batches")
    finder = find_objects.finder_for(args.num_objects, detector)
    model = make_model(args, finder)
    compile_with_decay(
        model, args.learning_rate, args.num_batches, 1e-3, loss=video_error
    )

    def examples(balls, _):
        frames = find_objects.draw_balls(balls[:, :-1])
        return frames, np.concatenate([balls[:, 1:], balls[:, :-1]], axis=-1)

    with command.open_run(
        always=["core"],
        may_differ=["detector", "tested", "num_test"],
        data={"detector": runs.data_digest(*detector.get_weights())},
    ) as run:
        training.fit(
            model,
            generated(drawn(train, examples), args.batch_size, args.seed),
            num_batches=args.num_batches,
            batches_per_epoch=500,
            run=run,
            verbose=args.verbose,
        )
        own, straight = {}, {}  # Figures for each number of balls.
        for number in sorted(args.tested):
            test = "test_beside_batches", number
            balls = simulate(args.num_test, number, *test)
            finder = find_objects.finder_for(number, detector)
            tested = make_model(args, finder)
            tested.set_weights(model.get_weights())
            own[number], straight[number], followers = measure(
                tested, finder, balls
            )
        metrics = {
            "weights": trained_weights(model),
            **by_figure(own),
            "same_velocity": by_figure(straight),
        }
        path = run.directory / "followed.gif"  # Of the largest number.
        draw_followers(balls[:3, :-1], by_first_frame(followers[:3]), path)
        lines = [
            f"{n} balls: a file is on its ball at {{kept[{n}]:.1%}} of steps, "
            f"error of the next step {{next_step[{n}]:.2f}}"
            for n in sorted(args.tested)
        ]
        command.finish(run, model, metrics, lines, NEXT)


def make_model(options, finder):
    """The model of these options, with a finder that stays as it is."""
    return object_follower(
        finder,
        options.core,
        options.num_frames - 1,
        units=options.units,
        num_message_heads=options.num_message_heads,
        key_scale=options.key_scale,
    )


def object_follower(
    finder, core, num_frames, units=32, num_message_heads=2, key_scale=3.0
):
    """A model from videos to where the balls of its files are next, and now.

    The output is `(batch, num_frames, files, 4)`, the next position and that of
    now. The finder's slots in the first frame start the files.
    """
    finder.trainable = False
    cells, find_slots = (models.part(finder, x) for x in ("cells", "slots"))
    shape = finder.inputs[0].shape[1:]
    frames = keras.Input((num_frames, *shape), name="frames")
    known = [
        ops.reshape(x, (-1, num_frames, *x.shape[1:]))
        for x in cells(ops.reshape(frames, (-1, *shape)))
    ]
    found, slots = find_slots([x[:, 0] for x in known])
    seen, places, sure, _ = known
    number = slots.shape[1]
    first = PositionCode(7, name="code")(found)
    first = keras.layers.Concatenate()([slots, first])
    first = keras.layers.Dense(units, name="first_state")(first)
    first = keras.layers.Reshape((number * units,))(first)
    if core == "scoff":
        h, scores = scoff(
            seen, first, number, units, num_message_heads, key_scale
        )
    else:
        cell = CompetingGRUCell(units, number, num_message_heads, key_scale)
        recurrent = keras.layers.RNN(cell, return_sequences=True, name="core")
        outputs = recurrent(seen, initial_state=[first])
        h, scores = ops.split(outputs, [number * units], axis=-1)
        scores = ops.reshape(scores, (-1, num_frames, number, seen.shape[2]))
    h = keras.layers.Reshape((num_frames, number, units))(h)
    place = find_objects.mean_places(scores, places, sure)
    known = keras.layers.Concatenate()([h, place])
    change = LENGTH * keras.layers.Dense(2, name="read_out")(known)
    predicted = keras.layers.Concatenate()([place + change, place])
    model = keras.Model(frames, predicted, name="object_follower")
    return models.declare(model, {"predicted": "raw"}, parts={"core": "core"})


def trained_weights(model):
    return sum(int(np.prod(x.shape)) for x in model.trainable_variables)


def measure(model, finder, balls):
    """Figures of a model, and of a tracker of the finder's slots.

    The last is the file on each ball at each step, `(n, time, balls)`.
    """
    frames = find_objects.draw_balls(balls[:, :-1])
    predicted = training.predictions(model, frames)
    own, followers = figures(predicted[..., :2], predicted[..., 2:], balls)
    images = frames.reshape(-1, *frames.shape[2:])
    found = training.predictions(finder, images)
    found = found.reshape(*frames.shape[:2], *found.shape[1:])
    known, _ = tracking.track(tracking.same_velocity, found)
    straight, _ = figures(tracking.same_velocity(known), known, balls)
    return own, straight, followers


def figures(predicted, places, balls):
    """The share of balls that were found and kept, and the error of next steps.

    The file of a ball is the one that is on it in the first frame, by the best
    assignment. It is kept while the file is within the ball's radius. The error
    is relative to that of balls that go on as in their last step.
    """
    size, time = places.shape[:2]
    away = tracking.squared_distances(balls[:, :-1], places)
    nearest = tracking.assignments(away.reshape(-1, *away.shape[2:]))
    nearest = nearest.reshape(size, time, -1)
    files = np.broadcast_to(nearest[:, :1], nearest.shape)[..., None]
    away = np.take_along_axis(away, files, axis=-1)[..., 0]
    kept = away < tracking.RADIUS**2
    predicted = np.take_along_axis(predicted, files, axis=2)
    straight = tracking.same_velocity(balls[:, :-1])
    own, of_same = (
        np.mean((steps - balls[:, 1:])[:, 1:] ** 2, axis=-1)
        for steps in (predicted, straight)
    )
    found = {
        "found": float(kept[:, 0].mean()),
        "kept": float(kept.mean()),
        "next_step": float(own.mean() / of_same.mean()),
    }
    if (there := kept[:, 1:]).any():
        of_kept = own[there].mean() / of_same.mean()
        found["next_step_of_kept"] = float(of_kept)
    return found, nearest


def by_first_frame(followers):
    """The ball that each file was on in the first frame, or -1 if on none.

    `followers` are files, `(n, time, balls)`.
    """
    size, _, num_balls = followers.shape
    owners = np.full((size, find_objects.num_slots(num_balls)), -1)
    balls = np.tile(np.arange(num_balls), (size, 1))
    np.put_along_axis(owners, followers[:, 0], balls, axis=1)
    return np.take_along_axis(owners[:, None], followers, axis=2)
