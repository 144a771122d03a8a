"""From nothing to a served reasoner in some three minutes on 2 cores.

Trains a PrediNet to say whether two objects are the same, tests it on kinds of
objects it never saw, draws what its heads look at, exports it, serves it on
this machine and asks it over REST and gRPC. `make demo` runs it.
"""

import functools
import tempfile
import textwrap

import command_line
import keras

from keras_relational import analysis
from keras_relational import models
from keras_relational import serving
from keras_relational import training
from keras_relational.datasets import relations_game

TESTS = ("hexominoes", "stripes")
LINES = [f"accuracy on {kind}, never seen: {{{kind}:.1%}}" for kind in TESTS]
NEXT = "python examples/predinet_relations_game.py --task colour_and_shape"


def main(command):
    command.option("--num-batches", int, 60_000, "steps, of 10 images")
    args = command.parse_run()
    print("1. Making 150,000 images of pentominoes: are the two the same?")
    generate = functools.partial(relations_game.generate, "same")
    x, y, _ = generate(150_000, seed=args.seed)
    tests = {k: generate(5_000, k, args.seed + 1)[:2] for k in TESTS}
    print(f"2. Training a PrediNet on {args.num_batches:,} batches of 10.")
    keras.utils.set_random_seed(args.seed)
    model = models.relations_classifier("predinet")
    with command.open_run(may_differ=["num_batches"]) as run:
        logged = {"run": run, "seed": args.seed, "verbose": args.verbose}
        training.train_classifier(model, x, y, args.num_batches, **logged)
        figures = {k: training.accuracy(model, *v) for k, v in tests.items()}
        images, labels = tests["hexominoes"]
        asked = images[[(labels == answer).argmax() for answer in (1, 0)]]
        path = run.directory / "attention.png"
        heads = analysis.draw_attentive_heads(model, images[:500], asked, path)
        print(f"3. What four of its heads look at: {path}")
        with tempfile.TemporaryDirectory() as exports:
            serving.export_model(model, exports)
            print("4. Exported as a SavedModel; serving it on this machine.")
            with serving.serve(exports) as server:
                ask(server, asked, heads)
        print("   The server has stopped.")
        command.finish(run, model, figures, LINES, NEXT)


def ask(server, images, heads):
    rest, grpc = server.rest_url, server.grpc_address
    request = {"image": images}
    print(f"5. REST, {rest}, and gRPC, {grpc}:")
    answers = serving.predict_rest(rest, request)
    said = serving.predict_grpc(grpc, request, signature_name="propositions")
    for i, image in enumerate(images):
        print("\n" + textwrap.indent(analysis.board_as_text(image), " " * 6))
        answer = ("different", "the same")[answers["label"][i]]
        share = answers["probabilities"][i].max()
        print(f"   Answer: {answer} (probability {share:.3f}).")
        of_image = {name: x[i] for name, x in said.items()}
        print(f"   {analysis.proposition_as_text(of_image, heads)}")


if __name__ == "__main__":
    command_line.start(main, __file__, __doc__)
