"""Trains an analogy scorer on VAEC, and tests it on all six regions.

Webb et al., 2020, Learning Representations that Support Extrapolation, Tables 1
and 2: accuracy in region 1, which is trained on, to 6, after 10,000 batches of
32 (the paper's layer norm. and no norm.: 500,000). The paper's TCN has in the
translation regime 99.1, 77.0, 73.2, 72.5, 71.7 and 61.6 percent, in the scale
regime 98.8, 77.8, 61.2, 54.4, 51.2 and 48.7. Chance is 14.3. The defaults take
42 minutes on 2 cores, with --image-size 32 they take 10.
"""

import command_line
import keras

from keras_relational import analysis
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import vaec
from keras_relational.random_streams import stream

PUBLISHED = "the six published files, the one to train on first"
FILES = {"nargs": 6, "metavar": "HDF5"}
NEXT = "python examples/vaec.py --normalization batch"


def main(command):
    add = command.option
    add("--regime", vaec.REGIMES, "translation", "how regions differ")
    names = models.NORMALIZATIONS
    add("--normalization", names, "temporal_context", "of the embeddings")
    add("--image-size", int, 128, "pixels, a multiple of 16", low=16)
    add("--num-batches", int, 10_000, "training steps, of 32 problems each")
    add("--published", command_line.existing_file, None, PUBLISHED, **FILES)
    args = command.parse_run(export="a SavedModel that scores candidates")

    keras.utils.set_random_seed(args.seed)
    model = models.analogy_scorer(args.normalization, args.image_size)
    # The paper's rate, for what does not learn with the other one.
    learning_rate = 1e-4 if args.normalization == "none" else 5e-4
    training.compile_scorer(model, learning_rate)
    data, regime = {}, args.regime
    if args.published:
        regions = [vaec.load_hdf5(path) for path in args.published]
        data["published"] = runs.data_digest(*sum(regions, ()))
        # Moved levels leave the lowest behind, levels further apart do not.
        regime = "translation" if regions[1].levels.min() else "scale"
    else:
        regions = [
            vaec.generate(regime, region, stream(args.seed, "region", region))
            for region in vaec.REGIONS
        ]

    def batches(first):
        size = args.image_size
        return training.AnalogyBatches(regions[0], 32, size, first, args.seed)

    def measure():
        return training.region_accuracies(model, regions, ...)

    always = ["regime", "normalization"]
    with command.open_run(always, ["num_batches"], data, regime=regime) as run:
        training.fit(
            model,
            batches,
            args.num_batches,
            1_000,
            measure,
            run,
            verbose=args.verbose,
        )
        training.adapt_normalization(model, regions[0])
        accuracies = [
            analysis.accuracy_by_dimension(
                problems, training.solved_analogies(model, problems)
            )
            for problems in regions
        ]
        ...
