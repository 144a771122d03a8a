"""Trains a predictor of bouncing balls, and lets it go on by itself.

Goyal et al., 2020, Factorizing Declarative and Procedural Knowledge, Figs. 7 to
12: errors of 10 and 30 frames predicted after 15 true ones, as shares of those
of --core gru, after 100 epochs of 50,000 videos. 1,000 batches of 8 videos with
--num-frames 20 take 9 to 16 minutes on one core, the defaults 40 times as long.
"""

import functools

import command_line
import keras

from keras_relational import analysis
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import bouncing_balls
from keras_relational.random_streams import stream

SLOTS = "modules or slots (default: 8 for tasks with 678balls, else 4)"
LINES = ["error of 10 frames: {error_10:.4f}, of 30: {error_30:.4f}"]
NEXT = "python examples/bouncing_balls.py --core gru"


def main(command):
    add = command.option
    add("--task", bouncing_balls.TASKS, "4balls", "the kind of video")
    add("--core", models.VIDEO_CORES, "scoff", "scoff is the paper's SCOFF-ab")
    add("--num-object-files", int, None, SLOTS)
    add("--num-schemata", int, 4, "of scoff and scoff_sparse")
    add("--learning-rate", float, 1e-4, "of Adam, as in Table 4")
    add("--num-batches", int, 2_000, "training steps")
    add("--batch-size", int, 64, "videos of a batch")
    add("--num-frames", int, 51, "of a training video; tests: 51", low=2)
    add("--num-test", int, 500, "test videos")
    args = command.parse_run(export="a SavedModel that predicts 10 frames")

    keras.utils.set_random_seed(args.seed)
    generate = functools.partial(bouncing_balls.generate, args.task)
    train = functools.partial(generate, num_frames=args.num_frames)
    sample = generate(50, seed=stream(args.seed, "sample_beside_batches"))
    test_seed = stream(args.seed, "test_beside_batches")
    test = generate(args.num_test, seed=test_seed)
    has_object_files = args.core.startswith("scoff")
    slots = args.num_object_files or (8 if "678" in args.task else 4)
    core = models.video_core(args.core, 100, slots, args.num_schemata)
    shape = test.shape[-1], 1, sample.mean() / 255
    model = models.video_predictor(core, *shape, positions=has_object_files)
    training.compile_video_predictor(model, args.learning_rate)

    def batches(first):
        return training.VideoBatches(train, args.batch_size, first, args.seed)

    with command.open_run(["task", "core"], ["num_batches", "num_test"]) as run:
        logged = {"run": run, "verbose": args.verbose}
        training.fit(model, batches, args.num_batches, 100, **logged)
        errors = training.roll_out_errors(model, test)
        figures = {f"error_{n}": float(errors[:n].mean()) for n in (10, 30)}
        figures["error_of_frames"] = errors.tolist()
        analysis.draw_roll_out(model, test[0], run.directory)
        if has_object_files:
            found = analysis.object_files(model, test[:200, :-1])
            figures["schemata_in_use"] = analysis.schemata_in_use(found)
            analysis.draw_object_files(found, run.directory, test[0])
        rolling = models.roll_out_model(model, 10)
        command.finish(run, model, figures, LINES, NEXT, rolling)


if __name__ == "__main__":
    command_line.start(main, __file__, __doc__)
