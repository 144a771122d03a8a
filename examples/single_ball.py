"""Trains a predictor of one ball: does each of its dynamics get a schema?

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge, Figs. 3, 4
and 15: one object file, and as many schemata as dynamics, three that are fixed
in a video or two that switch. In the paper each has a schema of its own after
some five frames. The defaults take 100 minutes on one core.
"""

import command_line
import keras

from keras_relational import analysis
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import single_ball
from keras_relational.random_streams import stream

# How each is generated, how many dynamics it has, and frames of a video.
DYNAMICS = {"fixed": (single_ball.generate, 3, 20)}
DYNAMICS["switching"] = (single_ball.generate_switching, 2, 51)
LINES = ["share of the dynamics that the schema tells: {information[0]:.3f}"]
NEXT = "python examples/single_ball.py --dynamics switching"


def main(command):
    add = command.option
    add("--dynamics", DYNAMICS, "fixed", "how the ball moves")
    add("--num-object-files", int, 1, "object files")
    add("--num-schemata", int, None, "default: one for each of the dynamics")
    add("--units", int, 100, "of an object file")
    add("--temperature", float, 1.0, "of the choice of schemata in training")
    add("--num-frames", int, None, "default: 20, or 51 if switching", low=7)
    add("--num-stacked", int, 5, "frames seen at each step")
    add("--learning-rate", float, 1e-4, "of Adam, as in Table 7")
    add("--num-batches", int, 2_000, "training steps")
    add("--batch-size", int, 50, "videos of a batch, as in Table 7")
    add("--num-train", int, 10_000, "training videos")
    add("--num-test", int, 500, "test videos")
    args = command.parse_run()

    keras.utils.set_random_seed(args.seed)
    generate, kinds, time = DYNAMICS[args.dynamics]
    kinds, time = args.num_schemata or kinds, args.num_frames or time
    seed, test_seed = (stream(args.seed, name) for name in ("train", "test"))
    train, *_ = generate(args.num_train, time, seed=seed)
    test, labels, _ = generate(args.num_test, time, seed=test_seed)
    sizes = args.units, args.num_object_files, kinds, 4, 64, args.temperature
    core = models.video_core("scoff", *sizes)
    shape = 1, args.num_stacked, train.mean() / 255
    model = models.video_predictor(core, *shape)
    training.compile_video_predictor(model, args.learning_rate)
    data = training.VideoSamples(train)

    def batches(first):
        return training.VideoBatches(data, args.batch_size, first, args.seed)

    with command.open_run(["dynamics"], ["num_batches", "num_test"]) as run:
        logged = {"run": run, "verbose": args.verbose}
        training.fit(model, batches, args.num_batches, 100, **logged)
        found = analysis.object_files(model, test[:, :-1])
        figures = analysis.label_information(found, labels)
        lengths = time // 3, time - time // 3
        errors = training.roll_out_errors(model, test[:200], *lengths)
        figures["roll_out_error"] = float(errors.mean())
        analysis.draw_object_files(found, run.directory, labels=labels[0])
        command.finish(run, model, figures, LINES, NEXT)


if __name__ == "__main__":
    command_line.start(main, __file__, __doc__)
