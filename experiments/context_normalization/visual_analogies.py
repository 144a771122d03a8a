"""Trains a scorer of visual analogies, and tests it on values never seen.

Webb et al., 2020, Learning Representations that Support Extrapolation, Table 3,
has on the problems of Hill et al., 2019, in percent: TCN (source/target) 74.2,
TCN (entire analogy) 67.6, batch norm. 66.1. Chance is 25. Our problems with
--no-distraction --candidates random --image-size 48 --learning-rate 1e-3 take
10,000 batches, 25 minutes on one core. The defaults learn nothing in 4,000.
"""

import functools
import glob
import pathlib

import keras
import numpy as np

from experiments import command_line
from experiments.context_normalization.vaec import compile_scorer
from experiments.generated_batches import GeneratedBatches
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import visual_analogies
from keras_relational.models.analogy_scorer import ROW_NORMALIZATIONS
from keras_relational.random_streams import stream

PUBLISHED = "patterns of published files to train and to test on, 'folder/*'"
WORDS = {"test": "values never seen", "near": "familiar values"}
NEXT = (
    "python -m experiments.context_normalization visual_analogies "
    "--normalization batch"
)


def main(command):
    add = command.option
    add("--normalization", ROW_NORMALIZATIONS, "source_target", "method")
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
    compile_scorer(model, args.learning_rate)
    data = {}
    if args.published:
        train, test = (sorted(glob.glob(str(x))) for x in args.published)
        data["published"] = files_digest(train, test)
        test = visual_analogies.load_npz(test[: args.num_test], args.image_size)
        tests = {"test": test}
        batches = functools.partial(
            VisualAnalogyFiles,
            train,
            image_size=args.image_size,
            seed=args.seed,
        )
    else:
        kind = {
            "candidates": args.candidates,
            "image_size": args.image_size,
            "distraction": not args.no_distraction,
        }
        tests = generated_tests(args.num_test, seed=args.seed, **kind)
        batches = functools.partial(
            GeneratedBatches,
            lambda n, seed: visual_analogies.generate(n, seed=seed, **kind)[:2],
            seed=args.seed,
        )

    with command.open_run(
        always=["normalization"],
        may_differ=["num_batches", "num_test"],
        data=data,
    ) as run:
        training.fit(
            model,
            lambda first: batches(initial_batch=first),
            num_batches=args.num_batches,
            batches_per_epoch=1_000,
            measure=lambda: accuracies_of(model, tests, num_problems=512),
            run=run,
            verbose=args.verbose,
        )
        result = evaluate(model, tests)
        lines = [f"accuracy on {WORDS[x]}: {{{x}:.1%}}" for x in tests]
        command.finish(run, model, result, lines, NEXT)


class VisualAnalogyFiles(training.Minibatches):
    """Published problems, one a file. Together they would take some 35 GB."""

    def __init__(
        self, paths, batch_size=32, image_size=80, initial_batch=0, seed=0
    ):
        paths = np.array([str(path) for path in paths])
        super().__init__(
            x=paths,
            y=paths,
            batch_size=batch_size,
            steps_per_execution=None,
            initial_batch=initial_batch,
            seed=seed,
        )
        self.image_size = image_size

    def __getitem__(self, index):
        paths, _ = super().__getitem__(index)
        return visual_analogies.load_npz(paths.tolist(), self.image_size)


def generated_tests(
    num_test,
    candidates="contrasting",
    image_size=80,
    seed=0,
    distraction=True,
):
    """Test problems of values never seen (test), and of familiar ones."""
    return {
        name: visual_analogies.generate(
            num_test,
            regime,
            candidates,
            image_size,
            seed=stream(seed, values),
            distraction=distraction,
        )
        for name, regime, values in (
            ("test", "test", "unseen_values"),
            ("near", "train", "familiar_values"),
        )
    }


def files_digest(*sets):
    """A digest of published problems, to tell runs on other files apart.

    It takes the names of all files, and the content of some hundred of each
    set, which may have a million.
    """
    parts = []
    for paths in sets:
        parts.append([pathlib.Path(path).name for path in paths])
        some = paths[:: len(paths) // 100 + 1]
        parts += visual_analogies.load_npz(some)
    return runs.data_digest(*parts)


# Evaluation, in batches of 32 as in training: some normalizations depend on
# the batch.


def accuracies_of(model, tests, num_problems=None):
    """The accuracy on the first problems of each test set, for the curves."""
    return {
        f"{name}_accuracy": training.accuracy(
            model, images[:num_problems], labels[:num_problems], batch_size=32
        )
        for name, (images, labels, *_) in tests.items()
    }


def evaluate(model, tests):
    """The share of problems solved, and for generated ones also by kind."""
    result = {}
    for name, problems in tests.items():
        images, labels, *_ = problems
        result[name] = training.accuracy(model, images, labels, batch_size=32)
        if isinstance(problems, visual_analogies.Problems):
            result[f"{name}_shares"] = solved_by_kind(model, problems)
    return result


def solved_by_kind(model, problems):
    """The share of problems solved, by relation and by the target's domain."""
    scores = model.predict(problems.images, batch_size=32, verbose=0)
    solved = scores.argmax(axis=1) == problems.labels
    return {
        name: float(np.mean(solved[kinds == number]))
        for names, kinds in (
            (visual_analogies.RELATIONS, problems.relations),
            (visual_analogies.DOMAINS, problems.domains[:, 1]),
        )
        for number, name in enumerate(names)
        if (kinds == number).any()
    }
