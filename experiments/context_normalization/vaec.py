"""Trains an analogy scorer on VAEC, and tests it on all six regions.

Webb et al., 2020, Learning Representations that Support Extrapolation, Tables 1
and 2: accuracy in region 1, which is trained on, to 6, after 10,000 batches of
32 (the paper's layer norm. and no norm.: 500,000). The paper's TCN has in the
translation regime 99.1, 77.0, 73.2, 72.5, 71.7 and 61.6 percent, in the scale
regime 98.8, 77.8, 61.2, 54.4, 51.2 and 48.7. Chance is 14.3. The defaults take
42 minutes on 2 cores, with --image-size 32 they take 10.
"""

import keras
import numpy as np

from experiments import command_line
from experiments.principal_components import axis_labels
from experiments.principal_components import principal_components
from experiments.principal_components import project
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.analysis.plotting import legend_below
from keras_relational.analysis.plotting import new_figure
from keras_relational.analysis.plotting import save_figure
from keras_relational.datasets import vaec
from keras_relational.models.analogy_scorer import NORMALIZATIONS
from keras_relational.random_streams import stream

PUBLISHED = "the six published files, the one to train on first"
LINES = [
    f"accuracy in region {i + 1}: {{regions[{i}][all]:.1%}}" for i in range(6)
]
NEXT = "python -m experiments.context_normalization vaec --normalization batch"


def main(command):
    add = command.option
    add("--regime", vaec.REGIMES, "translation", "how regions differ")
    add("--normalization", NORMALIZATIONS, "temporal_context", "method")
    add("--image-size", (16, 32, 64, 128), 128, "pixels")
    add("--num-batches", int, 10_000, "training steps, of 32 problems each")
    add("--published", command_line.existing_file, None, PUBLISHED, nargs=6)
    args = command.parse_run(export="a SavedModel that scores candidates")

    keras.utils.set_random_seed(args.seed)
    model = models.analogy_scorer(args.normalization, args.image_size)
    rate = 1e-4 if args.normalization == "none" else 5e-4  # As in the paper.
    compile_scorer(model, rate)
    data, regime = {}, args.regime
    if args.published:
        regime, regions = vaec.load_regions(args.published)
        data["published"] = runs.data_digest(*sum(regions, ()))
    else:
        regions = generated_regions(vars(args))

    with command.open_run(
        always=["regime", "normalization"],
        may_differ=["num_batches"],
        data=data,
        regime=regime,
    ) as run:
        training.fit(
            model,
            lambda first: AnalogyBatches(
                regions[0],
                image_size=args.image_size,
                initial_batch=first,
                seed=args.seed,
            ),
            num_batches=args.num_batches,
            batches_per_epoch=1_000,
            measure=lambda: region_accuracies(model, regions),
            run=run,
            verbose=args.verbose,
        )
        adapt_normalization(model, regions[0])
        accuracies = [
            accuracy_by_dimension(problems, solved_analogies(model, problems))
            for problems in regions
        ]
        save_figure(
            plot_accuracy_by_region({model.name: accuracies}),
            run.directory / "accuracy.png",
        )
        save_figure(
            plot_level_embeddings(model), run.directory / "embeddings.png"
        )
        command.finish(run, model, {"regions": accuracies}, LINES, NEXT)


def generated_regions(arguments):
    """The problems of each region."""
    return [
        vaec.generate(
            arguments["regime"],
            region,
            stream(arguments["seed"], "region", region),
        )
        for region in vaec.REGIONS
    ]


def compile_scorer(model, learning_rate):
    """Compiles a scorer with the cross-entropy of its logits."""
    training.compile_model(
        model,
        learning_rate,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        convolutional=True,
    )


class AnalogyBatches(training.Minibatches):
    """VAEC problems, shuffled without end. Images are drawn on demand."""

    def __init__(
        self,
        problems,
        batch_size=32,
        image_size=vaec.IMAGE_SIZE,
        initial_batch=0,
        seed=0,
    ):
        super().__init__(
            x=problems,
            y=np.zeros(len(problems.levels), "uint8"),
            batch_size=batch_size,
            steps_per_execution=None,
            initial_batch=initial_batch,
            seed=seed,
        )
        self.image_size = image_size

    def __getitem__(self, index):
        problems, answers = super().__getitem__(index)
        return vaec.model_inputs(problems, self.image_size), answers


# Evaluation. Each different image is encoded once.


def region_accuracies(model, regions, measured=(1, 2, 6), num_problems=2_048):
    """The accuracy on the first problems of some regions, for the curves."""
    adapt_normalization(model, regions[0])
    accuracies = {}
    for region in measured:
        some = vaec.Problems(*(x[:num_problems] for x in regions[region - 1]))
        solved = solved_analogies(model, some)
        accuracies[f"region_{region}_accuracy"] = float(solved.mean())
    return accuracies


def solved_analogies(model, problems, batch_size=32):
    """Which problems a model solves, a boolean array.

    The answer must have a higher score than every other candidate. Batches are
    in order: some normalizations use the statistics of the batch.
    """
    z = embeddings(model, problems.levels)
    inputs = {"embeddings": z, **_terms(problems)}
    scorer = models.part(model, "scorer")
    scores = training.predictions(scorer, inputs, batch_size)
    return (scores[:, :1] > scores[:, 1:]).all(axis=1)


def accuracy_by_dimension(problems, solved):
    """The share of solved problems, in total and for each dimension."""
    shares = {"all": float(np.mean(solved))}
    for number, name in enumerate(vaec.DIMENSIONS):
        mine = problems.dimension == number
        if mine.any():
            shares[name] = float(np.mean(solved[mine]))
    return shares


def adapt_normalization(model, problems, batch_size=1_000):
    """Takes the statistics of all training problems, for use in inference.

    This is for the rows "batch norm. (train stats)" of Tables 1 and 2 alone.
    """
    normalization = models.part(model, "normalization")
    if getattr(normalization, "statistics", "batch") != "training":
        return
    sequences = models.part(model, "sequences")
    z = embeddings(model, problems.levels)
    terms = _terms(problems)

    def batches():
        for i in range(0, len(z), batch_size):
            rows = slice(i, i + batch_size)
            yield sequences(z[rows], *(x[rows] for x in terms.values()))

    normalization.adapt(batches())


def embeddings(model, levels, batch_size=250):
    """Embeddings `(..., features)` of the images of levels `(..., 4)`."""
    encoder = models.part(model, "encoder").layer
    image_size = encoder.input_shape[1]
    codes = np.ravel_multi_index(
        np.moveaxis(levels, -1, 0), 4 * (vaec.NUM_LEVELS,)
    )
    codes, place = np.unique(codes, return_inverse=True)
    different = np.stack(np.unravel_index(codes, 4 * (vaec.NUM_LEVELS,)), -1)
    z = np.concatenate(
        [
            encoder.predict_on_batch(
                vaec.render(different[i : i + batch_size], image_size)
            )
            for i in range(0, len(different), batch_size)
        ]
    )
    return z[place].reshape(*levels.shape[:-1], -1)


def level_embeddings(model, dimension):
    """Embeddings `(42, features)` of images that vary along one dimension."""
    level = np.arange(vaec.NUM_LEVELS)
    levels = np.repeat((level // 7 * 7 + 3)[:, None], 4, axis=1)
    levels[:, vaec.DIMENSIONS.index(dimension)] = level
    return embeddings(model, levels)


def _terms(problems):
    return {
        "context": problems.context.astype("int32"),
        "candidates": problems.candidates.astype("int32"),
    }


# Pictures.


def plot_accuracy_by_region(accuracies):
    """A panel for each dimension, a line over the regions for each model."""
    figure = new_figure(13, 3.4)
    panels = figure.subplots(1, 5, sharey=True)
    for panel, kind in zip(panels, ("all", *vaec.DIMENSIONS), strict=True):
        for number, regions in enumerate(accuracies.values()):
            shares = [100 * region[kind] for region in regions]
            panel.plot(vaec.REGIONS, shares, "o-", color=f"C{number}")
        panel.axhline(100 / 7, color="grey", linestyle=":")  # Chance.
        panel.set(title=kind, xlabel="region", ylim=(0, 102))
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("problems solved (%)")
    legend_below(figure, dict(enumerate(accuracies)), entry_width=2.5)
    return figure


def plot_level_embeddings(model):
    """The embeddings of all levels on their principal components.

    If the model arranges levels evenly, also outside of the training region,
    the lines of the regions are straight and continue each other.
    """
    figure = new_figure(13, 3.6)
    panels = figure.subplots(1, 4)
    for panel, dimension in zip(panels, vaec.DIMENSIONS, strict=True):
        z = level_embeddings(model, dimension)
        components = principal_components(z)
        points = project(z, components)
        for region in np.split(points, len(vaec.REGIONS)):
            panel.plot(*region.T, color="grey", linewidth=0.8)
        marks = panel.scatter(
            *points.T, c=np.arange(len(points)), s=18, zorder=2
        )
        panel.set(title=dimension, **axis_labels(components))
    figure.colorbar(marks, ax=panels, label="level")
    return figure


def preset_metrics(model, arguments):
    """The share of problems solved in each region."""
    return {
        "regions": [
            {"all": float(np.mean(solved_analogies(model, problems)))}
            for problems in generated_regions(arguments)
        ]
    }


def preset_headline(arguments, metrics):
    shares = [region["all"] for region in metrics["regions"]]
    return (
        f"solves {shares[0]:.1%} in the region of training, {shares[1]:.1%} in "
        f"the next one, {shares[5]:.1%} in the farthest"
    )
