"""Exports the presets, and compares each file with the model that it is of.

Prints the table of `docs/export.md`: the largest difference between the outputs
of the preset and of its file, on problems that training never draws, and the
size of the file. All presets take some minutes. It needs the extras `formats`
and `serving`.
"""

import argparse
import pathlib
import tempfile

import keras
import numpy as np

from experiments.context_normalization.vaec import generated_regions
from experiments.few_examples.tasks import model_and_data
from experiments.predinet.relations_game import held_out_sets
from experiments.predinet.transfer import held_out_stripes
from experiments.scoff.single_ball import videos_of
from keras_relational import analysis
from keras_relational import models
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import vaec
from keras_relational.environments import boxworld
from keras_relational.random_streams import unseen_world_seeds

BATCHES = 1, 3, 16
# `docs/export.md` says why LiteRT takes these for one example.
ONE_EXAMPLE = {
    "esbn_distribution_of_three": (1, 9, 32, 32),
    "scoff_switching_ball": (1, None, 32, 32, 1),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    names = models.preset_names()
    parser.add_argument("presets", nargs="*", default=names, help="all")
    print(f"| preset | {' | '.join(FORMATS)} |\n|---{'|---' * len(FORMATS)}|")
    for preset in parser.parse_args().presets:
        found = [compare(preset, name) for name in FORMATS]
        cells = [f"{most:.0g}, {size:.1f} MB" for most, size in found]
        print(f"| `{preset}` | {' | '.join(cells)} |", flush=True)


def compare(preset: str, name: str) -> tuple[float, float]:
    """Exports a preset in one of `FORMATS`, and runs what was written.

    Returns the largest difference of an output from the preset's own, and the
    size in MB.
    """
    model = models.from_preset(preset)
    signature, batches = None, BATCHES
    if name == "LiteRT" and preset in ONE_EXAMPLE:
        (image,), shape, batches = model.inputs, ONE_EXAMPLE[preset], (1,)
        signature = [keras.InputSpec(image.dtype, shape, name=image.name)]
    x = problems(preset, max(BATCHES))
    names, outputs = models.roles(model).outputs, flat_arrays(model(x))
    expected = dict(zip(names, outputs, strict=True))
    inputs = {
        tensor.name: array.astype(tensor.dtype)
        for tensor, array in zip(model.inputs, flat_arrays(x), strict=True)
    }
    largest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ask = FORMATS[name](model, folder, signature)
        for batch in batches:
            answers = ask({key: x[:batch] for key, x in inputs.items()})
            for key, wanted in expected.items():
                wanted = wanted[:batch]
                np.testing.assert_equal(answers[key].shape, wanted.shape)
                found = np.abs(answers[key] - wanted).max()
                largest = max(largest, float(found))
        files = [x for x in folder.rglob("*") if x.is_file()]
        return largest, sum(x.stat().st_size for x in files) / 1e6


def saved_model(model, folder, signature=None):
    """Writes a SavedModel, and returns a function that asks it."""
    import tensorflow as tf

    from keras_relational import serving

    path = serving.export_model(model, folder / "model", outputs="raw")
    loaded = tf.saved_model.load(path)  # Its signatures end with it.

    def ask(inputs):
        inputs = {key: tf.constant(x) for key, x in inputs.items()}
        answers = loaded.signatures["serving_default"](**inputs)
        return {key: x.numpy() for key, x in answers.items()}

    return ask


def onnx(model, folder, signature=None):
    """Writes an ONNX file, and returns a function that asks it."""
    import onnxruntime

    path = folder / "model.onnx"
    models.named_outputs(model).export(
        path, format="onnx", verbose=False, input_signature=signature
    )
    session = onnxruntime.InferenceSession(path)
    names = [x.name for x in session.get_outputs()]
    return lambda inputs: dict(
        zip(names, session.run(names, inputs), strict=True)
    )


def litert(model, folder, signature=None):
    """Writes a LiteRT file, and returns a function that asks it."""
    from ai_edge_litert.interpreter import Interpreter

    path = folder / "model.tflite"
    models.named_outputs(model).export(
        path, format="litert", verbose=False, input_signature=signature
    )
    ask = Interpreter(str(path)).get_signature_runner()
    return lambda inputs: ask(**inputs)


FORMATS = {"SavedModel": saved_model, "ONNX": onnx, "LiteRT": litert}


def problems(preset, number):
    """Inputs of a preset that training never draws."""
    run = models.preset_metadata(preset)["run"]
    return PROBLEMS[run["experiment"]](run["arguments"], number)


def flat_arrays(tensors):
    """NumPy arrays of nested tensors, in the order of a model's."""
    return [*map(keras.ops.convert_to_numpy, keras.tree.flatten(tensors))]


def _puzzles(arguments, number):
    world = boxworld.world_of_options(arguments)
    return analysis.frames(world, unseen_world_seeds(number))[:number]


def _rules(arguments, number):
    fillers, _, test = distribution_of_three.split_fillers(
        distribution_of_three.glyphs(),
        *(arguments[x] for x in ("withheld", "task", "mode")),
        seed=arguments["seed"],
    )
    return fillers[test.fillers[:number]]


def _few_examples(arguments, number):
    (name,) = arguments["reasoners"]
    _, (*_, (x, _)) = model_and_data(
        arguments["task"], name, num_train=1, seed=arguments["seed"]
    )
    return keras.tree.map_structure(lambda x: x[:number], x)


def _analogies(arguments, number):
    *_, farthest = generated_regions(arguments)
    drawn = vaec.Problems(*(x[:number] for x in farthest))
    return vaec.model_inputs(drawn, arguments["image_size"])


# By the experiment that a preset's card names.
PROBLEMS = {
    "boxworld_teacher": _puzzles,
    "esbn_rules": _rules,
    "few_examples": _few_examples,
    "predinet_relations_game": lambda arguments, number: held_out_sets(
        arguments | {"num_test": number}
    )["hexominoes"][0],
    "predinet_transfer": lambda arguments, number: held_out_stripes(
        arguments | {"num_test": number}, "target"
    )[0],
    "single_ball": lambda arguments, number: videos_of(
        arguments | {"num_test": number}, "test"
    )[0],
    "vaec": _analogies,
}


if __name__ == "__main__":
    main()
