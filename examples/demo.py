"""From nothing to a served reasoner in some three minutes on 2 cores.

Trains a PrediNet to say whether two objects are the same, tests it on kinds of
objects it never saw, draws what its heads look at, exports it, serves it on
this machine and asks it over REST and gRPC. `make demo` runs it.
"""

import argparse
import pathlib
import tempfile

import keras
import numpy as np

from keras_relational import analysis
from keras_relational import models
from keras_relational import serving
from keras_relational import training
from keras_relational.datasets import relations_game


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    batches = "a multiple of 500, and of 10,000 if it is more than that"
    parser.add_argument("--num-batches", type=int, default=60_000, help=batches)
    parser.add_argument("--directory", type=pathlib.Path, default="runs/demo")
    args = parser.parse_args()
    if args.num_batches < 1 or args.num_batches % (
        10_000 if args.num_batches > 10_000 else 500
    ):
        parser.error(
            f"--num-batches is {args.num_batches}, but must be {batches}"
        )
    args.directory.mkdir(parents=True, exist_ok=True)

    print("1. Making 150,000 images of pentominoes: are the two the same?")
    x, y, _ = relations_game.generate("same", 150_000, seed=0)
    held_out = {
        object_set: relations_game.generate("same", 5_000, object_set, seed=1)
        for object_set in ("hexominoes", "stripes")
    }

    print(f"2. Training a PrediNet on {args.num_batches:,} batches of 10.")
    keras.utils.set_random_seed(0)
    model = models.relations_classifier("predinet")
    training.train_classifier(
        model,
        x,
        y,
        num_batches=args.num_batches,
        batches_per_epoch=min(10_000, args.num_batches),
    )
    for object_set, (images, labels, _) in held_out.items():
        share = training.accuracy(model, images, labels)
        print(f"   accuracy on {object_set}, never seen: {share:.1%}")

    # Two images, one of each answer, and the heads that look at objects most.
    images, labels, _ = held_out["hexominoes"]
    chosen = np.array([np.argmax(labels == 1), np.argmax(labels == 0)])
    maps = analysis.attention_maps(model, images[:500])
    objects = analysis.object_attention(maps, images[:500])
    heads = objects.min(axis=-1).mean(axis=0).argsort()[::-1][:4]
    picture = args.directory / "attention.png"
    figure = analysis.plot_attention_maps(
        images[chosen], analysis.attention_maps(model, images[chosen]), heads
    )
    analysis.save_figure(figure, picture, dpi=150)
    print(f"3. What four of its heads look at: {picture}")

    with tempfile.TemporaryDirectory(dir=args.directory) as exports:
        serving.export_model(model, exports)
        print("4. Exported as a SavedModel; serving it on this machine.")
        with serving.serve(exports) as server:
            ask(server, images[chosen], heads)
    print("   The server has stopped.")


def ask(server, images, heads):
    request = {"image": images}
    by_rest = serving.predict_rest(server.rest_url, request)
    print(f"5. REST, {server.rest_url}, and gRPC, {server.grpc_address}:")
    by_grpc = serving.predict_grpc(
        server.grpc_address, request, signature_name="propositions"
    )
    np.testing.assert_allclose(
        by_rest["probabilities"], by_grpc["probabilities"], atol=1e-5
    )
    for i, image in enumerate(images):
        print(drawn(image))
        answer = ("different", "the same")[by_rest["label"][i]]
        probability = by_rest["probabilities"][i].max()
        print(f"   Answer: {answer} (probability {probability:.3f}).")
        # Of these heads, the one whose two entities lie farthest apart here.
        places = by_grpc["positions_1"][i], by_grpc["positions_2"][i]
        apart = np.linalg.norm(places[0] - places[1], axis=-1)
        head = heads[apart[heads].argmax()]
        (x1, y1), (x2, y2) = (positions[head] for positions in places)
        distances = np.abs(by_grpc["distances"][i, head])
        print(
            f"   Head {head} says: the entities at (x, y) = "
            f"({x1:.2f}, {y1:.2f}) and ({x2:.2f}, {y2:.2f}) differ by "
            f"{distances.max():.2f} in relation {distances.argmax()}, and by "
            f"less in its other {len(distances) - 1}."
        )


def drawn(image):
    """The 9×9 blocks of the board as characters, one letter a colour."""
    blocks = image.reshape(3, 12, 3, 12, 3)[:, 2:10:3, :, 2:10:3]
    colours = blocks.reshape(9, 9, 3)
    known = {(0, 0, 0): "·"}
    for colour in map(tuple, colours.reshape(-1, 3).tolist()):
        known.setdefault(colour, "ABCDEF"[len(known) - 1])
    rows = [" ".join(known[tuple(c)] for c in row) for row in colours.tolist()]
    return "\n" + "\n".join("      " + row for row in rows)


if __name__ == "__main__":
    main()
