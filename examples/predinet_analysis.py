"""Looks into a trained PrediNet: what its heads attend to, and what they say.

The analyses of Shanahan et al., 2020, An Explicitly Relational Neural Network
Architecture, Figs. 6 and S7 to S10. Of the paper's 32 heads, trained on
colour_and_shape, 10 attend to two objects; it is these that cluster the labels,
and a handful of them are as accurate as all 32. An MHA needs nearly all of its
heads. Writes each figure as PNG with its arrays as NPZ, in about a minute on
2 cores. The models come from predinet_relations_game.py: --task
colour_and_shape, and for a baseline also --central mha.
"""

import argparse
import io
import pathlib

import keras
import numpy as np

from keras_relational import analysis
from keras_relational import file_io
from keras_relational.datasets import relations_game

RUN = "runs/relations_game/colour_and_shape-predinet-sgd-k32-j16-seed0"
LABELS = ["same shape and colour", "same shape", "same colour", "neither"]


def main():
    args = parse_arguments()
    names = LABELS if args.task == "colour_and_shape" else ["False", "True"]
    x, y, x_test, y_test = data(args.task, args.num_images)
    outputs, curves = {}, {}
    for path in (args.model, *args.baseline):
        model = keras.models.load_model(path, compile=False)
        if model.output_shape[-1] != len(names):
            raise SystemExit(f"{path} answers another task: see --task")
        name = model.name.removesuffix("_relations_classifier")
        (outputs[name],) = on_components(analysis.central_outputs(model, x))
        if not hasattr(model.get_layer("central"), "num_heads"):
            continue
        relations = [analysis.head_relations(model, i) for i in (x, x_test)]
        points, held_out = on_components(*relations)
        both = points, y, held_out, y_test
        figure = analysis.plot_head_components(*both, names)
        arrays = {"points": points, "held_out_points": held_out}
        save(args.directory / f"{name}_heads", figure, **arrays)
        curves[name] = analysis.pruning_curve(model, x_test, y_test)
        if path == args.model:
            heads = look_at_attention(args.directory, model, x[:1000])
            if len(heads):
                curve = analysis.pruning_curve(model, x_test, y_test, heads)
                curves["object heads"] = curve
    figure = analysis.plot_components(outputs, y, names)
    save(args.directory / "outputs", figure, labels=y, **outputs)
    save(args.directory / "pruning", analysis.plot_pruning(curves), **curves)
    print("Accuracy on held-out hexominoes with some heads: mean (best) of 100")
    for name, curve in curves.items():
        for size, of_size in enumerate(curve, start=1):
            if size in (1, 2, 4, 8, len(curve)):
                shares = f"{of_size.mean():.3f} ({of_size.max():.3f})"
                print(f"{name:>12}, {size:2} kept: {shares}")


def data(task, size):
    train = relations_game.generate(task, size, seed=[0, 2])
    test = relations_game.generate(task, size, "hexominoes", seed=[0, 3])
    return *train[:2], *test[:2]


def look_at_attention(directory, model, images):
    maps = analysis.attention_maps(model, images)
    figure = analysis.plot_attention_maps(images[:4], maps[:4])
    save(directory / "attention_maps", figure, images=images, maps=maps)
    arrays = {
        "objects": analysis.object_attention(maps, images),
        "locations": analysis.attended_locations(maps),
        "weights": analysis.head_weights(model),
    }
    figure = analysis.plot_head_attention(**arrays)
    save(directory / "head_attention", figure, **arrays)
    heads = analysis.object_heads(arrays["objects"])
    print(f"Heads that attend to objects: {heads.tolist()}")
    return heads


def on_components(vectors, *held_out):
    components = analysis.principal_components(vectors)
    return [analysis.project(v, components) for v in (vectors, *held_out)]


def save(path, figure, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    analysis.save_figure(figure, path.with_suffix(".png"), dpi=120)
    table = io.BytesIO()
    np.savez_compressed(table, **arrays)
    file_io.write_atomically(path.with_suffix(".npz"), table.getvalue())


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    model = {"type": pathlib.Path, "metavar": "KERAS"}
    add("--model", **model, default=f"{RUN}/model.keras", help="%(default)s")
    add("--baseline", **model, nargs="+", default=[], help="MHA, or others")
    add("--task", choices=relations_game.TASKS, default="colour_and_shape")
    add("--num-images", type=int, default=10_000, help="of each object set")
    add("--directory", type=pathlib.Path, default="runs/analysis")
    args = parser.parse_args()
    for path in (args.model, *args.baseline):
        if not pathlib.Path(path).is_file():
            parser.error(
                f"there is no model {path}: train it with predinet_relations_"
                "game.py --task colour_and_shape, or name another"
            )
    return args


if __name__ == "__main__":
    main()
