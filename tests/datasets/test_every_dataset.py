"""What all data sets have in common: seeds, loaders and errors."""

import functools
import inspect

import keras
import numpy as np
import pytest

from keras_relational import datasets
from keras_relational.datasets import adding
from keras_relational.datasets import bouncing_balls
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import dynamic_objects
from keras_relational.datasets import intuitive_physics
from keras_relational.datasets import ordered_objects
from keras_relational.datasets import relations_game
from keras_relational.datasets import set_game
from keras_relational.datasets import single_ball
from keras_relational.datasets import vaec
from keras_relational.datasets import visual_analogies

some = functools.partial

GENERATORS = {
    "adding": some(adding.generate, num_sequences=5, num_values=(2, 4)),
    **{
        task: some(
            bouncing_balls.generate, task=task, num_sequences=2, num_frames=5
        )
        for task in bouncing_balls.TASKS
    },
    "distribution_of_three": some(distribution_of_three.generate, size=5),
    "dynamic_objects": some(dynamic_objects.generate, num_sequences=3),
    **{
        block: some(
            intuitive_physics.generate, block=block, num_sets=2, num_frames=20
        )
        for block in intuitive_physics.BLOCKS
    },
    "possible": some(
        intuitive_physics.generate_possible, num_sequences=3, num_frames=20
    ),
    "relations_game": some(
        relations_game.generate, task="between", num_examples=9
    ),
    "ball": some(single_ball.generate, num_sequences=4, num_frames=9),
    "switching": some(
        single_ball.generate_switching, num_sequences=4, num_frames=9
    ),
    "coordinates": some(
        single_ball.generate_coordinates, num_sequences=4, num_frames=9
    ),
    "coordinates_of_balls": some(
        bouncing_balls.generate_coordinates, num_sequences=4, num_frames=9
    ),
    "vaec": some(vaec.generate, regime="scale", region=2),
    "visual_analogies": some(
        visual_analogies.generate, num_problems=5, image_size=24
    ),
}
SIZES = {"num_train": 3, "num_test": 2}
LOADERS = {
    "adding": some(adding.load_data, **SIZES),
    "bouncing_balls": some(bouncing_balls.load_data, task="4balls", **SIZES),
    "distribution_of_three": some(distribution_of_three.load_data, **SIZES),
    "dynamic_objects": some(dynamic_objects.load_data, **SIZES),
    "intuitive_physics": some(
        intuitive_physics.load_data, block="O1", num_frames=20, **SIZES
    ),
    "pairs": some(ordered_objects.load_pairs, num_objects=8, num_features=3),
    "sequences": some(
        ordered_objects.load_sequences, num_validation=4, **SIZES
    ),
    "relations_game": some(relations_game.load_data, task="same", **SIZES),
    "set_game": some(set_game.load_data, num_validation=2, **SIZES),
    "single_ball": some(single_ball.load_data, **SIZES),
    "visual_analogies": some(visual_analogies.load_data, **SIZES),
}


@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
def test_a_seed_fixes_the_examples(make):
    one, again, *others = (
        keras.tree.flatten(make(seed=seed)) for seed in (1, 1, 2, [1, 1], None)
    )
    for a, b in zip(one, again, strict=True):
        np.testing.assert_array_equal(a, b)
    for other in others:
        assert (one[0] != other[0]).any()


@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_a_seed_fixes_all_parts(load):
    for one, again, other in zip(
        *(load(seed=seed) for seed in (1, 1, 2)), strict=True
    ):
        for a, b in zip(*map(keras.tree.flatten, (one, again)), strict=True):
            np.testing.assert_array_equal(a, b)
        assert (one[0] != other[0]).any()


@pytest.mark.parametrize(
    "function",
    [*GENERATORS.values(), *LOADERS.values()],
    ids=[*GENERATORS, *(f"load {name}" for name in LOADERS)],
)
def test_numbers_are_positive_integers(function):
    for name in inspect.signature(function).parameters:
        if name.startswith("num_") or name in ("size", "length", "image_size"):
            for wrong in (0, 2.5):
                with pytest.raises(ValueError, match=f"{name}.*{wrong}"):
                    function(**{name: wrong})


@pytest.mark.parametrize(
    "name", ["colored_4balls", "O2", "possible", "switching"]
)
def test_small_images_are_means_of_large_ones(name):
    make = functools.partial(GENERATORS[name], seed=0)
    large, *others = keras.tree.flatten(make())
    small, *same = keras.tree.flatten(make(image_size=16))
    means = large.reshape(*large.shape[:-3], 16, 4, 16, 4, -1).mean((-4, -2))
    np.testing.assert_allclose(small, means, atol=0.5)
    for one, other in zip(others, same, strict=True):
        np.testing.assert_array_equal(one, other)


def fillers(task, seed):
    return distribution_of_three.generate(1, task=task, seed=seed).fillers[0]


def pattern(row):
    return tuple(row == row[1])


@pytest.mark.parametrize(
    ("kind_of_one", "num_kinds"),
    [
        (lambda i: adding.generate(1, 50, (2, 4), i)[0][0, :, 1].sum(), 2),
        (lambda i: single_ball.generate(1, 2, seed=i)[1][0], 3),
        (lambda i: single_ball.generate_switching(1, 2, i)[1][0, 0], 2),
        (lambda i: np.ptp(fillers("same_different", i)) > 0, 2),
        (lambda i: pattern(fillers("identity_rules", i)[:3]), 3),
    ],
)
def test_one_example_may_be_of_any_kind(kind_of_one, num_kinds):
    """No kind is favoured where kinds do not divide the number of examples."""
    assert len({kind_of_one(i) for i in range(30)}) == num_kinds


def shifted(*arguments, **kwargs):
    videos = dynamic_objects.generate(*arguments, **kwargs)
    return videos[:, :-1], videos[:, 1:]


def clips(generate, *arguments, **kwargs):
    return [generate(*arguments, num_frames=20, **kwargs)]


# The options of a loader, and how its two parts are generated from its seed.
MADE_AGAIN = {
    "adding": (
        {},
        some(adding.generate, num_values=(2, 4)),
        some(adding.generate, length=200, num_values=10),
    ),
    "distribution_of_three": (
        {},
        some(distribution_of_three.generate, fillers=range(5)),
        some(distribution_of_three.generate, fillers=range(5, 100)),
    ),
    "dynamic_objects": (
        {},
        shifted,
        some(shifted, widths=dynamic_objects.TEST_WIDTHS),
    ),
    "intuitive_physics": (
        {"block": "O2", "num_frames": 20},
        some(clips, intuitive_physics.generate_possible),
        some(clips, intuitive_physics.generate, "O2"),
    ),
    "relations_game": (
        {"task": "same", "object_set": "stripes"},
        some(relations_game.generate, "same"),
        some(relations_game.generate, "same", object_set="stripes"),
    ),
    "visual_analogies": (
        {"image_size": 24},
        some(visual_analogies.generate, image_size=24),
        some(visual_analogies.generate, image_size=24, regime="test"),
    ),
}


@pytest.mark.parametrize("name", MADE_AGAIN)
def test_the_seed_of_a_loader_makes_its_parts_again(name):
    """Published runs need it so, and docstrings say it of the training set."""
    load = getattr(datasets, name).load_data
    options, make_train, make_test = MADE_AGAIN[name]
    train, test = load(num_train=3, num_test=2, seed=4, **options)
    for part, made in (
        (train, make_train(3, seed=4)),
        (test, make_test(2, seed=[4, 1])),
    ):
        for found, expected in zip(part, made, strict=False):
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
    generate = GENERATORS.get(name, GENERATORS["possible"]).func
    words = " ".join(load.__doc__.split())
    assert f"`{generate.__name__}` with the same seed" in words
    assert "take another one for fresh examples" in words
    words = " ".join(generate.__doc__.split())
    assert "The seed of a `load_data` gives its" in words


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("adding", {"num_values": 0}, "from 1 to 50.*num_values=0"),
        ("adding", {"num_values": 51}, "num_values=51"),
        ("adding", {"num_values": 2.5}, r"integers.*=2\.5"),
        ("adding", {"num_values": ()}, r"one or more.*\(\)"),
        ("curtain", {"task": "5balls"}, "Unknown task '5balls'.*: 4balls, "),
        ("curtain", {"image_size": 30}, "size=30"),
        ("distribution_of_three", {"task": "rpm"}, "'rpm'.*identity_rules"),
        ("distribution_of_three", {"mode": "guess"}, "'guess'"),
        (
            "distribution_of_three",
            {"task": "same_different", "mode": "generative"},
            "generative",
        ),
        (
            "distribution_of_three",
            {"fillers": range(3)},
            r"4 or more.*\[0, 1, 2\]",
        ),
        ("distribution_of_three", {"fillers": [1, 1, 2, 3]}, "different"),
        ("distribution_of_three", {"fillers": range(250, 258)}, "0 and 255"),
        ("dynamic_objects", {"widths": (3, 32)}, r"1 to 31.*\(3, 32\)"),
        ("dynamic_objects", {"widths": (9, 4)}, r"\(9, 4\)"),
        ("O1", {"block": "O4"}, "Unknown block 'O4'.*one of: O1, O2, O3"),
        ("O1", {"num_frames": 19}, "20 or more.*num_frames=19"),
        ("O1", {"image_size": 30}, "size=30"),
        ("possible", {"num_frames": 5}, "num_frames=5"),
        ("possible", {"image_size": 30}, "size=30"),
        ("relations_game", {"task": "betwixt"}, "'betwixt'.*one of: same, "),
        ("relations_game", {"task": ["same", "sane"]}, "Unknown task 'sane'"),
        ("relations_game", {"task": []}, "empty"),
        (
            "relations_game",
            {"object_set": "heptominoes"},
            "Unknown object set 'heptominoes'",
        ),
        (
            "relations_game",
            {"task": "colour_and_shape", "object_set": "stripes"},
            "all stripes are squares",
        ),
        ("ball", {"dynamics": "rest"}, "'rest'.*accelerate,"),
        ("ball", {"dynamics": ()}, r"dynamics=\(\)"),
        ("coordinates", {"num_axes": 4}, "num_axes"),
        ("coordinates", {"cue": 0}, "cue=0"),
        ("switching", {"image_size": 30}, "size=30"),
        ("switching", {"bulb_radius": 11}, "bulb_radius=11"),
        ("switching", {"bulb_radius": 0}, "bulb_radius=0"),
        (
            "switching",
            {"bulb_radius": 10, "num_axes": 3},
            "from 1 to 9 .*bulb_radius=10",
        ),
        ("switching", {"num_axes": 4}, "num_axes"),
        ("vaec", {"regime": "rotation"}, r"'rotation'.*translation, scale"),
        ("vaec", {"region": 7}, "region 7"),
        ("visual_analogies", {"regime": "far"}, "'far'.*train, test"),
        ("visual_analogies", {"candidates": "hard"}, "'hard'.*contrasting"),
        ("visual_analogies", {"image_size": 23}, "image_size=23"),
    ],
)
def test_bad_input_is_refused(name, arguments, words):
    with pytest.raises(ValueError, match=f"(?s){words}"):
        GENERATORS[name](**arguments)
