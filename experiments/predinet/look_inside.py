"""Looks into a trained PrediNet: what its heads attend to, and what they say.

The analyses of Shanahan et al., 2020, An Explicitly Relational Neural Network
Architecture, Figs. 6 and S7 to S10. Of the paper's 32 heads, trained on
colour_and_shape, 10 attend to two objects. These cluster the labels, and a
handful of them are as accurate as all 32. An MHA needs nearly all of its heads.
Train models with `relations_game --task colour_and_shape` before. The figures,
as PNG and NPZ files, take about a minute on 2 cores.
"""

import io
import pathlib

import keras
import numpy as np

from experiments import command_line
from experiments.predinet import components
from experiments.predinet import heads
from experiments.principal_components import principal_components
from experiments.principal_components import project
from keras_relational import analysis
from keras_relational import models
from keras_relational.datasets import relations_game
from keras_relational.file_io import write_atomically
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

    def data(object_set, name):
        images, labels, _ = relations_game.generate(
            args.task, args.num_images, object_set, seed=stream(0, name)
        )
        return images, labels

    train = data("pentominoes", "analysed")
    test = data("hexominoes", "analysed_held_out")
    label_names = ["False", "True"]
    if args.task == "colour_and_shape":
        label_names = LABELS
    trained, curves = {}, {}
    for path in (args.model, *args.baseline):
        try:
            model = keras.models.load_model(path, compile=False)
        except ValueError:
            command.error(f"{path} is no model that Keras can load")
        if model.output_shape[-1] != len(label_names):
            command.error(f"{path} answers another task: see --task")
        name = model.name.removesuffix("_relations_classifier")
        trained[name] = model
        if hasattr(models.part(model, "central"), "num_heads"):
            picture = args.directory / f"{name}_heads"
            draw_head_components(model, train, test, label_names, picture)
            curves[name] = heads.pruning_curve(model, *test)
    draw_central_outputs(trained, *train, label_names, args.directory)
    first, *_ = trained.values()
    attentive = draw_head_attention(first, train[0][:1000], args.directory)
    if len(attentive):
        curves["object heads"] = heads.pruning_curve(first, *test, attentive)
    print(f"Heads that attend to objects: {attentive.tolist()}")
    print("Accuracy on held-out hexominoes with some heads, of 100 choices:")
    save(heads.plot_pruning(curves), args.directory / "pruning", **curves)
    for name, curve in curves.items():
        for number, row in enumerate(curve, start=1):
            if number in (1, 2, 4, 8, len(curve)):
                best = f"{row.mean():.3f} (best {row.max():.3f})"
                print(f"{name:>12}, {number:2} heads: {best}")
    print(f"Look at the pictures in {args.directory}.")


def draw_central_outputs(trained, images, labels, label_names, directory):
    """Draws the first two components of each central module: `outputs.png`."""
    points = {}
    for name, model in trained.items():
        outputs = components.central_outputs(model, images)
        points[name] = project(outputs, principal_components(outputs))
    figure = components.plot_components(points, labels, label_names)
    save(figure, directory / "outputs", labels=labels, **points)


def draw_head_components(model, examples, held_out, label_names, path):
    """Draws each head's relations on the components of those of `examples`."""
    (x, y), (x_held_out, y_held_out) = examples, held_out
    relations = components.head_relations(model, x)
    of_examples = principal_components(relations)
    points = project(relations, of_examples)
    others = project(components.head_relations(model, x_held_out), of_examples)
    figure = components.plot_head_components(
        points, y, others, y_held_out, label_names
    )
    save(figure, path, points=points, held_out_points=others)


def draw_head_attention(model, images, directory):
    """Draws what each head looks at, and returns the object heads."""
    maps = analysis.attention_maps(model, images)
    figure = analysis.plot_attention_maps(images[:4], maps[:4])
    save(figure, directory / "attention_maps", images=images, maps=maps)
    arrays = {
        "objects": heads.object_attention(maps, images),
        "locations": heads.attended_locations(maps),
        "weights": heads.head_weights(model),
    }
    figure = heads.plot_head_attention(**arrays)
    save(figure, directory / "head_attention", **arrays)
    return heads.object_heads(arrays["objects"])


def save(figure, path, **arrays):
    """Writes a figure to `path` + `.png`, and its arrays beside it, `.npz`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    analysis.save_figure(figure, path.with_name(f"{path.name}.png"), dpi=120)
    table = io.BytesIO()
    np.savez_compressed(table, **arrays)
    write_atomically(path.with_name(f"{path.name}.npz"), table.getvalue())
