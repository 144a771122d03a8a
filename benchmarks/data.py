"""How fast examples are generated, on one core."""

import functools

from benchmarks.measuring import median_seconds
from keras_relational.datasets import bouncing_balls
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import relations_game


def main():
    seconds = median_seconds(
        lambda: relations_game.generate("between", 20_000, seed=0)
    )
    print(f"Relations Game: {20_000 / seconds:,.0f} images a second")
    seconds = median_seconds(lambda: distribution_of_three.generate(10_000))
    print(f"Distribution of three: {10_000 / seconds:,.0f} problems a second")
    for task in bouncing_balls.TASKS:
        seconds = median_seconds(
            functools.partial(bouncing_balls.generate, task, 64)
        )
        print(f"{task}: {64 / seconds:,.0f} videos a second")
