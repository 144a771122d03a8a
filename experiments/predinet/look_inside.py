"""Looks into a trained PrediNet: what its heads attend to, and what they say.

The analyses of Shanahan et al., 2020, An Explicitly Relational Neural Network
Architecture, Figs. 6 and S7 to S10. Of the paper's 32 heads, trained on
colour_and_shape, 10 attend to two objects. These cluster the labels, and a
handful of them are as accurate as all 32. An MHA needs nearly all of its heads.
Train models with predinet_relations_game.py --task colour_and_shape before. The
figures, as PNG and NPZ files, take about a minute on 2 cores.
"""

import pathlib

import keras

from experiments import command_line
from keras_relational import analysis
from keras_relational import models
from keras_relational.datasets import relations_game
from keras_relational.random_streams import stream

RUN = "runs/predinet_relations_game-colour_and_shape-predinet-seed0"
LABELS = ["same shape and colour", "same shape", "same colour", "neither"]
BASELINE = "models to compare with, such as an MHA (default: none)"
TO = pathlib.Path("runs/analysis")


def main(command):
    add, file = command.option, command_line.existing_file
    add("--model", file, f"{RUN}/model.keras", "the trained model")
    add("--baseline", file, [], BASELINE, nargs="+")
    add("--task", relations_game.TASKS, "colour_and_shape", "their task")
    add("--num-images", int, 10_000, "images of each set of objects", low=10)
    add("--directory", command_line.folder, TO, "folder to write to")
    args = command.parse_args()

    def data(objects, name):
        size = args.num_images, objects, stream(0, name)
        return relations_game.generate(args.task, *size)[:2]

    train = data("pentominoes", "analysed")
    test = data("hexominoes", "analysed_held_out")
    labels = LABELS if args.task == "colour_and_shape" else ["False", "True"]
    trained, curves = {}, {}
    for path in (args.model, *args.baseline):
        try:
            model = keras.models.load_model(path, compile=False)
        except ValueError:
            command.error(f"{path} is no model that Keras can load")
        if model.output_shape[-1] != len(labels):
            command.error(f"{path} answers another task: see --task")
        name = model.name.removesuffix("_relations_classifier")
        trained[name] = model
        if hasattr(models.part(model, "central"), "num_heads"):
            picture = args.directory / f"{name}_heads"
            analysis.draw_head_components(model, train, test, labels, picture)
            curves[name] = analysis.pruning_curve(model, *test)
    analysis.draw_central_outputs(trained, *train, labels, args.directory)
    first, *_ = trained.values()
    heads = analysis.draw_head_attention(first, train[0][:1000], args.directory)
    if len(heads):
        curves["object heads"] = analysis.pruning_curve(first, *test, heads)
    print(f"Heads that attend to objects: {heads.tolist()}")
    print("Accuracy on held-out hexominoes with some heads, of 100 choices:")
    print(*analysis.draw_pruning(curves, args.directory), sep="\n")
    print(f"Look at the pictures in {args.directory}.")
