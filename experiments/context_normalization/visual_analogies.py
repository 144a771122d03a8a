"""Trains a scorer of visual analogies, and tests it on values never seen.

Webb et al., 2020, Learning Representations that Support Extrapolation, Table 3,
has on the problems of Hill et al., 2019, in percent: TCN (source/target) 74.2,
TCN (entire analogy) 67.6, batch norm. 66.1. Chance is 25. Our problems with
--no-distraction --candidates random --image-size 48 --learning-rate 1e-3 take
10,000 batches, 25 minutes on one core. The defaults learn nothing in 4,000.
"""

import functools
import glob

import keras

from experiments import command_line
from keras_relational import analysis
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import visual_analogies

PUBLISHED = "patterns of published files to train and to test on, 'folder/*'"
WORDS = {"test": "values never seen", "near": "familiar values"}
NEXT = (
    "python -m experiments.context_normalization visual_analogies "
    "--normalization batch"
)


def main(command):
    add = command.option
    add("--normalization", models.ROW_NORMALIZATIONS, "source_target", "method")
    add("--candidates", visual_analogies.CANDIDATES, "contrasting", "the foils")
    add("--no-distraction", bool, False, "rows vary in one domain alone")
    add("--image-size", int, 80, "pixels, a multiple of 16", low=16)
    add("--learning-rate", float, 1e-4, "of Adam")
    add("--num-batches", int, 20_000, "training steps, of 32 problems each")
    add("--num-test", int, 4_000, "test problems")
    add("--published", command_line.file_pattern, None, PUBLISHED, nargs=2)
    args = command.parse_run()
    if args.published and args.no_distraction:
        command.error("--no-distraction is not for --published problems")

    keras.utils.set_random_seed(args.seed)
    model = models.visual_analogy_scorer(args.normalization, args.image_size)
    training.compile_scorer(model, args.learning_rate)
    data, kind = {}, {"image_size": args.image_size, "seed": args.seed}
    if args.published:
        train, test = (sorted(glob.glob(str(x))) for x in args.published)
        data["published"] = training.visual_analogy_digest(train, test)
        test = visual_analogies.load_npz(test[: args.num_test], args.image_size)
        tests = {"test": test}
        data_from = functools.partial(training.VisualAnalogyFiles, train)
    else:
        kind["candidates"] = args.candidates
        kind["distraction"] = not args.no_distraction
        tests = training.visual_analogy_tests(args.num_test, **kind)
        data_from = training.VisualAnalogyBatches

    may_differ = ["num_batches", "num_test"]
    with command.open_run(["normalization"], may_differ, data) as run:
        training.fit(
            *(model, lambda first: data_from(initial_batch=first, **kind)),
            *(args.num_batches, 1_000),
            lambda: training.visual_analogy_accuracies(model, tests, 512),
            **{"run": run, "verbose": args.verbose},
        )
        figures = analysis.visual_analogy_figures(model, tests)
        lines = [f"accuracy on {WORDS[x]}: {{{x}:.1%}}" for x in tests]
        command.finish(run, model, figures, lines, NEXT)
