"""From nothing to a served reasoner in some three minutes on two cores.

Trains a PrediNet to say whether two objects are the same, tests it on kinds of
objects that it has never seen, draws where its heads look, exports it, serves
it on this machine and asks it over REST and gRPC. `make demo` runs it.
"""

import argparse
import pathlib
import tempfile
import textwrap

import keras
import numpy as np

from keras_relational import analysis
from keras_relational import models
from keras_relational import serving
from keras_relational import training
from keras_relational.datasets import relations_game

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--num-images", type=int, default=150_000)
parser.add_argument("--num-batches", type=int, default=60_000)
parser.add_argument("--directory", type=pathlib.Path, default="runs/demo")
args = parser.parse_args()
args.directory.mkdir(parents=True, exist_ok=True)

print(f"1. Making {args.num_images:,} images of pentominoes: same or not?")
x, y, _ = relations_game.generate(
    "same", args.num_images, "pentominoes", seed=0
)
tests = {}
for object_set in ("hexominoes", "stripes"):
    images, labels, _ = relations_game.generate(
        "same", 5_000, object_set, seed=1
    )
    tests[object_set] = images, labels

print(f"2. Training a PrediNet on {args.num_batches:,} batches of 10.")
keras.utils.set_random_seed(0)
model = models.relations_classifier("predinet")
training.train_classifier(model, x, y, num_batches=args.num_batches)
for object_set, (images, labels) in tests.items():
    share = training.accuracy(model, images, labels)
    print(f"   Accuracy on {object_set}, never seen: {share:.1%}")
model.save(args.directory / "model.keras")

# An image of each answer, and the four heads that decide these answers most.
images, labels = tests["hexominoes"]
asked = images[[(labels == 1).argmax(), (labels == 0).argmax()]]
effects = analysis.head_effects(model, asked, others=images[:500])
decisive = np.abs(effects[:, :, 1] - effects[:, :, 0]).sum(axis=0)
heads = decisive.argsort()[::-1][:4]
maps = analysis.attention_maps(model, asked)
figure = analysis.plot_attention_maps(asked, maps, heads)
picture = args.directory / "attention.png"
analysis.save_figure(figure, picture, dpi=150)
print(f"3. Where the four most decisive heads look: {picture}")

with tempfile.TemporaryDirectory() as exports:
    serving.export_model(model, exports)
    print("4. Exported as a SavedModel; serving it on this machine.")
    with serving.serve(exports) as server:
        print(f"5. REST, {server.rest_url}, and gRPC, {server.grpc_address}:")
        answers = serving.predict_rest(server.rest_url, {"image": asked})
        propositions = serving.predict_grpc(
            server.grpc_address,
            {"image": asked},
            signature_name="propositions",
        )
    print("   The server has stopped.")

for i, image in enumerate(asked):
    print("\n" + textwrap.indent(analysis.board_as_text(image), " " * 6))
    answer = ("different", "the same")[answers["label"][i]]
    probability = answers["probabilities"][i].max()
    print(f"   Answer: {answer} (probability {probability:.3f}).")
    of_image = {name: values[i] for name, values in propositions.items()}
    print(f"   {analysis.proposition_as_text(of_image, heads)}")
print(f"\nThe model is {args.directory / 'model.keras'}.")
