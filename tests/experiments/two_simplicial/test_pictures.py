"""Boards that are read from pictures are those that were drawn."""

import numpy as np
import pytest
from environment_contract import BOXWORLDS
from environment_contract import arrays
from environment_contract import compiled_reset
from environment_contract import compiled_step
from keras import ops

from experiments.two_simplicial.pictures import state_from_images
from keras_relational.environments import boxworld
from keras_relational.environments.compilation import compiled


@pytest.mark.parametrize("world", BOXWORLDS.values(), ids=BOXWORLDS)
def test_a_picture_is_played_as_what_it_was_drawn_of(world):
    """At any moment of a game that is not over."""
    state = compiled_reset(world)(np.arange(200, dtype="uint32"))
    first = arrays(state)
    step, expert = compiled_step(world), compiled(world.expert_moves)
    going, time = np.ones(200, bool), 0
    while going.any():
        if time % 7 == 0:
            images = ops.convert_to_numpy(world.render(state))
            read = arrays(state_from_images(world, images[going]))
            now = {k: v[going] for k, v in arrays(state).items()}
            for name in ("board", "inventory", "losing", "player"):
                np.testing.assert_array_equal(read[name], now[name], name)
            assert {k: (v.dtype, v.shape) for k, v in read.items()} == {
                k: (v.dtype, v.shape) for k, v in now.items()
            }
            # All that is compiled has 200 rows.
            rows = np.resize(np.arange(going.sum()), 200)
            read = {k: v[rows] for k, v in read.items()}
            now = {k: v[rows] for k, v in now.items()}
            for action in range(4):
                actions = np.full(200, action, "int32")
                for ours, theirs in zip(
                    step(read, actions)[1:], step(now, actions)[1:], strict=True
                ):
                    np.testing.assert_array_equal(ours, theirs)
        moves = ops.convert_to_numpy(expert(state))
        actions = moves.argmax(axis=1).astype("int32")
        state, _, _, terminated, _ = step(state, actions)
        going &= ~ops.convert_to_numpy(terminated)
        time += 1
    images = world.render(first)
    read = arrays(state_from_images(world, images))
    np.testing.assert_array_equal(read["level"], first["level"])
    np.testing.assert_array_equal(world.render(read), images)
    restarted = arrays(world.restart(read, np.ones(200, bool)))
    assert len(np.unique(restarted["board"], axis=0)) > 20


def painted(*rows):
    """A picture: of each tile the number of its hue, or a sign."""
    signs = {".": 199, "_": 10, "@": 127, "*": 255}
    picture = [
        [
            [signs[x]] * 3
            if x in signs
            else [boxworld.HUES[int(x)] >> shift & 255 for shift in (0, 8, 16)]
            for x in row
        ]
        for row in rows
    ]
    return np.array([picture], "uint8")


@pytest.mark.parametrize(("moves", "last"), [("2222", 10), ("2222222", -1)])
def test_a_picture_painted_by_hand_is_played(moves, last):
    """The key 0 opens the box with the gem, or that with the key 2."""
    world = boxworld.BoxWorld(3, 9, (1, 1), (0, 1))
    picture = painted("@........_", ".0..*0.20_", "........._")
    state = state_from_images(world, picture)
    assert arrays(state)["level"].tolist() == [[1, 1, 0]]
    rewards, terminated = [], False
    for action in f"233{moves}1":
        assert not terminated
        state, reward, terminated, _ = world.step(state, [int(action)])
        rewards.append(float(reward[0]))
    assert rewards == [0, 1, *[0] * (len(moves) + 1), last]
    assert terminated


NOT_BOARDS = {
    "no player": ("........._", ".0..*0..._", "........._"),
    "two players": ("@......@._", ".0..*0..._", "........._"),
    "no gem": ("@........_", ".0..10..._", "........._"),
    "two gems": ("@........_", ".0..*0.*0_", "........._"),
    "no key": ("@........_", "....*0..._", "........._"),
    "two keys": ("@........0", ".0..*0..._", "........._"),
    "lost": ("@........1", "....*0..._", "........._"),
}


@pytest.mark.parametrize("name", NOT_BOARDS)
def test_pictures_of_no_board_are_refused(name):
    world = boxworld.BoxWorld(3, 9, (1, 1), (0, 1))
    with pytest.raises(ValueError, match="values to unpack"):
        state_from_images(world, painted(*NOT_BOARDS[name]))
