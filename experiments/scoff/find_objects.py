"""Slots that find equal balls in an image of 32 pixels.

Each of 8 by 8 cells proposes where a ball is, and how sure it is. Slot
attention shares out these proposals among slots. A slot is where it attends.
There is half a slot more for each ball: with as many slots as balls two slots
would often take one ball between them, and leave another out. The error is the
mean squared distance of each ball to its slot, for the best choice of slots.
Training takes two minutes on one core. `follow_objects` goes on from here.
"""

import keras
import numpy as np
from keras import ops

from experiments.generated_batches import drawn
from experiments.generated_batches import generated
from experiments.scoff import tracking
from experiments.scoff.adding_ablation import compile_with_decay
from experiments.scoff.object_predictors import PositionCode
from experiments.scoff.set_losses import set_error
from keras_relational import layers
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import bouncing_balls
from keras_relational.datasets.shapes import draw
from keras_relational.random_streams import stream

IMAGE_SIZE = 32
CELLS = 8  # A side, each of 4 by 4 pixels.
UNITS = 64  # Of a slot.
DARK = 0.02  # The mean of an empty cell is less, from 0 to 1.
NEXT = "python -m experiments.scoff follow_objects --detector {}"


def main(command):
    add = command.option
    add("--num-objects", int, 4, "balls in training")
    add("--tested", int, [2, 4, 6, 8], "balls in tests", nargs="+")
    add("--learning-rate", float, 3e-3, "of Adam; it falls to 0")
    add("--num-batches", int, 6_000, "training steps")
    add("--batch-size", int, 64, "images of a batch")
    add("--num-train", int, 32_000, "training images")
    add("--num-test", int, 1_000, "images of each test")
    args = command.parse_run()
    check_numbers(args)
    keras.utils.set_random_seed(args.seed)

    def place(size, num_balls, *name):
        seed = stream(args.seed, *name)
        balls = bouncing_balls.generate_coordinates(
            size, num_balls, num_frames=1, seed=seed
        )
        return balls[:, 0]

    train = place(args.num_train, args.num_objects, "train_beside_batches")
    model = object_finder(num_slots(args.num_objects))
    compile_with_decay(
        model, args.learning_rate, args.num_batches, clip=1e-3, loss=set_error
    )

    def examples(balls, _):
        return draw_balls(balls), balls

    with command.open_run(always=[], may_differ=["tested", "num_test"]) as run:
        training.fit(
            model,
            generated(drawn(train, examples), args.batch_size, args.seed),
            num_batches=args.num_batches,
            batches_per_epoch=500,
            run=run,
            verbose=args.verbose,
        )
        found = {}
        for number in args.tested:
            balls = place(args.num_test, number, "test_beside_batches", number)
            finder = finder_for(number, model)
            slots = training.predictions(finder, draw_balls(balls))
            away = tracking.squared_distances(balls, slots)
            columns = tracking.assignments(away)
            away = np.take_along_axis(away, columns[..., None], axis=-1)
            found[number] = float(np.mean(away < tracking.RADIUS**2))
        lines = [f"{n} balls: {{found[{n}]:.1%}} are found" for n in found]
        metrics = {"weights": model.count_params(), "found": found}
        after = NEXT.format(run.directory / "model.keras")
        command.finish(run, model, metrics, lines, after)


def check_numbers(options):
    """Refuses more balls than can be assigned to slots in all orders."""
    if options.num_objects > 5:
        raise ValueError("--num-objects must be 5 or less")
    if max(options.tested) > 8:
        raise ValueError("--tested must be 8 or less")


def num_slots(num_objects):
    """Half as many again as there are objects."""
    return num_objects + num_objects // 2


def draw_balls(balls):
    """Frames of balls `(..., balls, 2)`, uint8 `(..., 32, 32, 1)`."""
    *others, num_balls, _ = balls.shape
    balls = balls.reshape(-1, num_balls, 2)
    images = np.zeros((len(balls), IMAGE_SIZE, IMAGE_SIZE, 1), "uint8")
    radii = np.full(len(balls), tracking.RADIUS * IMAGE_SIZE / 2)
    white = np.full((len(balls), 1), 255)
    for ball in range(num_balls):
        draw(images, (balls[:, ball] + 1) * IMAGE_SIZE / 2, radii, white)
    return images.reshape(*others, *images.shape[1:])


def object_finder(number):
    """A model from an image to where each of its slots is, `(slots, 2)`."""
    image = keras.Input((IMAGE_SIZE, IMAGE_SIZE, 1), name="image")
    cells = cell_reader()(image)
    found, _ = slot_finder(number)(cells)
    model = keras.Model(image, found, name="object_finder")
    parts = {"cells": "cells", "slots": "slots"}
    return models.declare(model, {"found": "raw"}, parts=parts)


def finder_for(num_objects, finder):
    """The same finder, with the slots for another number of objects."""
    other = object_finder(num_slots(num_objects))
    other.set_weights(finder.get_weights())
    return other


def cell_reader():
    """A model from an image to what each of its 64 cells knows.

    Outputs: what a slot sees of a cell, `(64, n)`, where the cell believes a
    ball is, `(64, 2)`, how sure it is, from 0 to 1, `(64, 1)`, and whether it
    is bright, `(64,)`.
    """
    convolution = keras.layers.Conv2D
    image = keras.Input((IMAGE_SIZE, IMAGE_SIZE, 1), name="image")
    x = keras.layers.Rescaling(1 / 255)(image)
    cells = keras.layers.AveragePooling2D(IMAGE_SIZE // CELLS)(x)
    bright = keras.layers.Reshape((CELLS**2, 1))(cells) > DARK
    x = convolution(16, 5, 2, "same", activation="relu", name="first")(x)
    x = convolution(32, 3, 2, "same", activation="relu", name="second")(x)
    x = convolution(32, 3, 1, "same", activation="relu", name="third")(x)
    x = keras.layers.Reshape((CELLS**2, 32))(x)
    sure = keras.layers.Dense(1, "sigmoid", name="sure")(x)
    sure = sure * ops.cast(bright, sure.dtype)
    middles = (np.arange(CELLS, dtype="float32") + 0.5) * 2 / CELLS - 1
    middles = np.stack(np.meshgrid(middles, middles), axis=-1)
    away = keras.layers.Dense(2, name="away")(x) / (CELLS // 2)
    places = away + middles.reshape(CELLS**2, 2)
    seen = PositionCode(7, name="code")(places) * sure
    seen = keras.layers.Concatenate()([seen, sure])
    outputs = [seen, places, sure, bright[..., 0]]
    return keras.Model(image, outputs, name="cells")


def slot_finder(number):
    """A model from what the cells know to where each slot is, and the slots.

    Outputs are `(number, 2)` and `(number, UNITS)`.
    """
    kinds = 7**2 + 3, 2, 1
    cells = [keras.Input((CELLS**2, n)) for n in kinds]
    bright = keras.Input((CELLS**2,), dtype="bool")
    seen, places, sure = cells
    slots, scores = layers.SlotAttention(number, UNITS, UNITS, name="slots")(
        seen, mask=bright, return_attention_scores=True
    )
    found = mean_places(scores, places, sure)
    return keras.Model([*cells, bright], [found, slots], name="slots")


def mean_places(scores, places, sure):
    """The mean place that a slot attends to, `(..., slots, 2)`.

    Scores are `(..., slots, cells)`.
    """
    weights = scores * ops.swapaxes(sure, -1, -2) + 1e-6
    total = ops.sum(weights, axis=-1, keepdims=True)
    return ops.matmul(weights / total, places)
