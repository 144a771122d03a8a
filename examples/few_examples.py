"""Which mechanism learns most from few examples?

Altabaa et al., 2024, Abstractors and relational cross-attention, section 4: the
order of two random objects, and the sorting of ten. The paper's Abstractor
has 77.6 percent with 500 pairs, and 91.9 with all 2,015. It puts 94.2 percent
of the objects in their places after 500 sequences, and a Transformer 29.2.
Every mechanism that fits is trained on each number of examples, a quarter of a
minute each. A later command adds --reasoners to the results of the run.
"""

import command_line

from keras_relational import analysis
from keras_relational import models
from keras_relational import training

# Numbers of training examples, of epochs, and of examples of a step.
SIZES = {
    "pairwise_order": ([100, 200, 500, 1_000, 1_500, 2_016], 100, 64),
    "sorting": ([100, 200, 300, 500, 1_000, 2_000], 400, 512),
}
REASONERS = models.SET_REASONERS
MANY = {"nargs": "+", "metavar": "REASONER"}
NEXT = "python examples/few_examples.py --task sorting"


def main(command):
    add = command.option
    add("--task", SIZES, "pairwise_order", "what is to be learned")
    names = f"some of {', '.join(REASONERS)} (default: all that fit)"
    add("--reasoners", REASONERS, None, names, **MANY)
    numbers = "numbers of training examples (default: those of the task)"
    add("--num-train", int, None, numbers, nargs="+")
    add("--num-seeds", int, 3, "trainings of each kind")
    add("--epochs", int, None, "passes over them (default: the task's)")
    args = command.parse_run()
    numbers, epochs, batch_size = SIZES[args.task]
    numbers = sorted(args.num_train or numbers)
    epochs = args.epochs or epochs
    fit = training.FEW_EXAMPLES[args.task]
    for name in args.reasoners or ():
        if name not in fit:
            command.error(f"for {args.task} there are {', '.join(fit)}")

    may_differ = ["reasoners", "num_train", "num_seeds"]
    with command.open_run(["task"], may_differ) as run:
        found = {k: v for k, v in (run.result or {}).items() if k in fit}

        def train(name, number, seed):
            kind = args.task, name, numbers[-1], seed
            model, data = training.model_and_data(*kind)
            part = f"{name}_{number}_{seed}"
            sizes = number, epochs, batch_size, run, part, seed
            return training.accuracy_after_few(model, *data, *sizes, verbose=0)

        for name in args.reasoners or fit:
            found[name] = []
            for seed in range(args.seed, args.seed + args.num_seeds):
                shares = [train(name, number, seed) for number in numbers]
                found[name].append({"examples": numbers, "accuracy": shares})
                if args.verbose:
                    shares = ", ".join(f"{share:.1%}" for share in shares)
                    print(f"{name}, seed {seed}: {shares}")
        figure = analysis.plot_learning_curves(found, "accuracy", "examples")
        analysis.save_figure(figure, run.directory / "accuracy.png")
        command.finish(run, None, {"epochs": epochs, **found}, [], NEXT)


if __name__ == "__main__":
    command_line.start(main, __file__, __doc__)
