"""Which mechanism learns most from few examples?

Altabaa et al., 2024, Abstractors and relational cross-attention: which of two
random objects comes first (the paper: 91.9 percent with all pairs), and how are
ten sorted (94.2 with 500 sequences)? Altabaa and Lafferty, 2023, relational
convolutions: sets of cards, and the Relations Game. Webb et al., 2021: rules
over new fillers. A later command adds --reasoners to the result of a first one.
"""

from experiments.few_examples.tasks import TASKS
from experiments.few_examples.tasks import model_and_data
from keras_relational import analysis
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import relations_game

# By task: numbers of training examples, epochs, and the size of a batch.
SIZES = {
    "pairwise_order": ([100, 200, 500, 1_000, 1_500, 2_016], 100, 64),
    "sorting": ([100, 200, 300, 500, 1_000, 2_000], 400, 512),
    "set_game": ([1_000, 2_000, 5_000, 10_000], 100, 128),
}
OTHER_SIZES = [250, 500, 1_000, 2_000, 5_000], 100, 128
# By task: the test examples, in the words of a preset's headline.
TEST_EXAMPLES = {
    "pairwise_order": "new pairs of known objects",
    "sorting": "places in sequences that it never saw",
    "set_game": "hands with sets that it never saw",
    **dict.fromkeys(
        relations_game.TASKS, "images of hexominoes, which it never saw"
    ),
    **dict.fromkeys(
        distribution_of_three.TASKS, "problems with symbols that it never saw"
    ),
}
SEVERAL = {"nargs": "+", "metavar": "SOME"}
NEXT = "python -m experiments.few_examples --task sorting"


def main(command):
    add = command.option
    add("--task", TASKS, "pairwise_order", "what is to be learned")
    some = f"some of {', '.join(models.SET_REASONERS)} (default: all that fit)"
    add("--reasoners", models.SET_REASONERS, None, some, **SEVERAL)
    sizes = "numbers of training examples (default: those of the task)"
    add("--num-train", int, None, sizes, **SEVERAL)
    add("--num-seeds", int, 3, "trainings of each kind")
    add("--epochs", int, None, "passes over them (default: the task's)")
    args = command.parse_run()
    numbers, epochs, batch_size = SIZES.get(args.task, OTHER_SIZES)
    numbers, epochs = sorted(args.num_train or numbers), args.epochs or epochs
    suitable = TASKS[args.task]
    for name in args.reasoners or ():
        if name not in suitable:
            command.error(f"for {args.task} there are {', '.join(suitable)}")

    with command.open_run(
        always=["task"], may_differ=["reasoners", "num_train", "num_seeds"]
    ) as run:
        before = (run.result or {}).items()
        found = {name: x for name, x in before if name in suitable}
        for name in args.reasoners or suitable:
            found[name] = []
            for seed in range(args.seed, args.seed + args.num_seeds):
                accuracies = []
                for number in numbers:
                    model, (train, validation, test) = model_and_data(
                        args.task, name, num_train=numbers[-1], seed=seed
                    )
                    accuracy = training.accuracy_after_few(
                        model,
                        train,
                        validation,
                        test,
                        num_train=number,
                        epochs=epochs,
                        batch_size=batch_size,
                        run=run,
                        part=f"{name}_{number}_{seed}",
                        seed=seed,
                        verbose=0,
                    )
                    accuracies.append(accuracy)
                found[name].append(
                    {"examples": numbers, "accuracy": accuracies}
                )
                if args.verbose:
                    shares = ", ".join(f"{x:.1%}" for x in accuracies)
                    print(f"{name}, seed {seed}: {shares}")
        figure = analysis.plot_learning_curves(found, "accuracy", "examples")
        analysis.save_figure(figure, run.directory / "accuracy.png")
        # The last model that was trained.
        command.finish(run, model, {"epochs": epochs, **found}, [], NEXT)


def preset_metrics(model, arguments):
    """Accuracy on the test examples of the run's task."""
    (name,), (number,) = arguments["reasoners"], arguments["num_train"]
    _, (_, _, test) = model_and_data(
        arguments["task"], name, num_train=number, seed=arguments["seed"]
    )
    return {name: [{"accuracy": [training.accuracy(model, *test)]}]}


def preset_headline(arguments, metrics):
    (name,) = arguments["reasoners"]
    (accuracy,) = metrics[name][0]["accuracy"]
    return f"right about {accuracy:.1%} of {TEST_EXAMPLES[arguments['task']]}"
