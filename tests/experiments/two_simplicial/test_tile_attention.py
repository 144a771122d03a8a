"""Mean attention between kinds of tiles, held to plain loops."""

import numpy as np
import pytest
from keras import ops
from worlds_in_python import GEM
from worlds_in_python import PythonBoxWorld

from experiments.two_simplicial.tile_attention import KINDS
from experiments.two_simplicial.tile_attention import plot_tile_attention
from experiments.two_simplicial.tile_attention import tile_attention
from keras_relational import analysis
from keras_relational.environments import boxworld
from keras_relational.models import boxworld_agent


@pytest.fixture(scope="module")
def world():
    return boxworld.BoxWorld(5, 9, (2, 2), (0, 0), max_episode_steps=12)


@pytest.fixture(scope="module")
def images(world):
    return analysis.frames(world, range(6), every=4, max_steps=12)


def kind_and_colour(plain, image, row, column):
    """Of the entity with the tile at this row and column in its middle."""
    held = [tuple(x) for x in image[:2, -1]]
    tile = row, column
    colour = tuple(image[tile]) if tile in plain.tiles else None
    if colour == GEM:
        colour = None
    if tile == (1, plain.columns - 1):
        return "inventory", colour
    nearest = np.clip(plain.player, 1, [plain.rows - 2, plain.columns - 1])
    if tile == tuple(nearest):
        return "player", colour
    if tile not in plain.tiles:
        return "blank", None
    opens = plain.is_lock(tile) and colour in held
    useful = plain.is_loose_key(tile) or opens
    return ("useful" if useful else "other"), colour


@pytest.mark.parametrize("network", ["relational", "simplicial"])
def test_plain_loops_find_the_same(network, world, images):
    model = boxworld_agent(network, world.image_shape)
    found = tile_attention(model, world, images)
    attention = analysis.block_attention(model, images)
    cells = [(row, column) for row in (1, 2, 3) for column in range(1, 9)]
    given = {q: [] for q in KINDS}
    pairs = {q: [] for q in KINDS}
    virtual, same, counts = [], [], []
    for number, image in enumerate(images):
        plain = PythonBoxWorld(image, losing=set())
        kinds, colours = zip(
            *(kind_and_colour(plain, image, *cell) for cell in cells),
            strict=True,
        )
        counts.append([kinds.count(kind) for kind in KINDS])

        def shares(weights, kinds=kinds):
            """Attention `(i, h, n)` to the entities of each kind."""
            out = np.zeros((*weights.shape[:2], len(KINDS)))
            for entity, kind in enumerate(kinds):
                out[..., KINDS.index(kind)] += weights[..., entity]
            return out

        for entity, kind in enumerate(kinds):
            weights = attention.standard[number, :, :, entity]
            given[kind].append(shares(weights))
            others = [
                i
                for i, colour in enumerate(colours)
                if i != entity and colour and colour == colours[entity]
            ]
            if others:
                same.append((weights[..., others].sum(-1), len(others)))
            if network == "simplicial":
                pairs[kind].append(attention.pairs[number, :, :, entity])
        if network == "simplicial":
            virtual.append(
                [shares(attention.virtual[number, :, :, v]) for v in (0, 1)]
            )
    assert all(given.values())
    assert same
    close = {"rtol": 1e-5, "atol": 1e-7}
    np.testing.assert_allclose(found.uniform, np.mean(counts, 0) / 24)
    for q, kind in enumerate(KINDS):
        expected = np.mean(given[kind], 0)
        np.testing.assert_allclose(found.standard[:, :, q], expected, **close)
        if network == "simplicial":
            expected = np.mean(pairs[kind], 0)
            np.testing.assert_allclose(found.pairs[:, :, q], expected, **close)
    weights, numbers = zip(*same, strict=True)
    np.testing.assert_allclose(found.same_colour, np.mean(weights, 0), **close)
    assert found.same_colour_uniform == pytest.approx(np.mean(numbers) / 24)
    if network == "relational":
        assert found.virtual is None
        return
    expected = np.moveaxis(np.mean(virtual, 0), 0, 2)
    np.testing.assert_allclose(found.virtual, expected, **close)


def test_drawn(world, images):
    model = boxworld_agent("simplicial", world.image_shape)
    found = tile_attention(model, world, images)
    figure = plot_tile_attention(found)
    assert len(figure.axes) == 4
    second = figure.axes[1]
    assert second.get_title() == "iteration 1, head 2"
    drawn = second.images[0].get_array()
    assert drawn.shape == (7, 5)
    more = np.concatenate([found.standard[0, 1], found.virtual[0, 1]])
    np.testing.assert_allclose(2**drawn, more / found.uniform, rtol=1e-5)
    assert second.texts[0].get_text() == f"{found.standard[0, 1, 0, 0]:.0%}"


def test_a_kind_that_no_image_has_is_nan():
    """The player in the corner is nearest to the inventory's entity."""
    world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0))
    state = {**world.reset([0]), "player": np.array([5], "int32")}
    images = ops.convert_to_numpy(world.render(state))
    model = boxworld_agent("relational", world.image_shape)
    found = tile_attention(model, world, images)
    as_kinds = dict(zip(KINDS, found.uniform, strict=True))
    assert as_kinds["player"] == 0
    plot_tile_attention(found)  # Without a warning.
    for q, kind in enumerate(KINDS):
        missing = as_kinds[kind] == 0
        assert np.isnan(found.standard[:, :, q]).all() == missing


def test_no_two_tiles_of_one_colour():
    """The key is taken, and its lock is left: nothing to average."""
    world = boxworld.BoxWorld(3, 6, (1, 1), (0, 0))
    state = world.reset([0])
    while state["inventory"][0, 0] == boxworld.EMPTY:
        right = ops.convert_to_numpy(world.expert_moves(state))
        state, *_ = world.step(state, right.argmax(-1))
    images = ops.convert_to_numpy(world.render(state))
    model = boxworld_agent("relational", world.image_shape)
    found = tile_attention(model, world, images)
    assert np.isnan(found.same_colour).all()
    assert np.isnan(found.same_colour_uniform)
