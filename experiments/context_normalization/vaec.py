"""Trains an analogy scorer on VAEC, and tests it on all six regions.

Webb et al., 2020, Learning Representations that Support Extrapolation, Tables 1
and 2: accuracy in region 1, which is trained on, to 6, after 10,000 batches of
32 (the paper's layer norm. and no norm.: 500,000). The paper's TCN has in the
translation regime 99.1, 77.0, 73.2, 72.5, 71.7 and 61.6 percent, in the scale
regime 98.8, 77.8, 61.2, 54.4, 51.2 and 48.7. Chance is 14.3. The defaults take
42 minutes on 2 cores, with --image-size 32 they take 10.
"""

import keras

from experiments import command_line
from keras_relational import analysis
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import vaec
from keras_relational.random_streams import stream

PUBLISHED = "the six published files, the one to train on first"
LINES = [
    f"accuracy in region {i + 1}: {{regions[{i}][all]:.1%}}" for i in range(6)
]
NEXT = "python -m experiments.context_normalization vaec --normalization batch"


def main(command):
    add = command.option
    add("--regime", vaec.REGIMES, "translation", "how regions differ")
    add("--normalization", models.NORMALIZATIONS, "temporal_context", "method")
    add("--image-size", (16, 32, 64, 128), 128, "pixels")
    add("--num-batches", int, 10_000, "training steps, of 32 problems each")
    add("--published", command_line.existing_file, None, PUBLISHED, nargs=6)
    args = command.parse_run(export="a SavedModel that scores candidates")

    keras.utils.set_random_seed(args.seed)
    model = models.analogy_scorer(args.normalization, args.image_size)
    rate = 1e-4 if args.normalization == "none" else 5e-4  # As in the paper.
    training.compile_scorer(model, rate)
    data, regime = {}, args.regime
    if args.published:
        regime, regions = vaec.load_regions(args.published)
        data["published"] = runs.data_digest(*sum(regions, ()))
    else:
        regions = [
            vaec.generate(regime, region, stream(args.seed, "region", region))
            for region in vaec.REGIONS
        ]

    def batches(first):
        size = args.image_size
        return training.AnalogyBatches(regions[0], 32, size, first, args.seed)

    always = ["regime", "normalization"]
    with command.open_run(always, ["num_batches"], data, regime=regime) as run:
        training.fit(
            *(model, batches, args.num_batches, 1_000),
            lambda: training.region_accuracies(model, regions),
            **{"run": run, "verbose": args.verbose},
        )
        training.adapt_normalization(model, regions[0])
        solved = [training.solved_analogies(model, x) for x in regions]
        accuracies = list(map(analysis.accuracy_by_dimension, regions, solved))
        analysis.draw_analogies(model, accuracies, run.directory)
        command.finish(run, model, {"regions": accuracies}, LINES, NEXT)
