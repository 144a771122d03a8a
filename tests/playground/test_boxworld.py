"""BoxWorld's page: its rules and its words are those of the worlds."""

import functools

import keras
import numpy as np
import pytest
from browser_for_tests import in_node

from keras_relational import models
from keras_relational.analysis import block_attention
from keras_relational.analysis.block_attention import player_entities
from keras_relational.environments.boxworld import BLANK
from keras_relational.environments.boxworld import GEM
from keras_relational.environments.compilation import compiled
from keras_relational.playground.arrays import from_json
from keras_relational.playground.boxworld import BoxWorldPuzzles
from keras_relational.playground.server import STATIC

pytestmark = pytest.mark.any_backend

# One preset for each world.
PRESETS = (
    "boxworld_3x18_relational",
    "boxworld_9x9_relational",
    "boxworld_bridge_relational",
)
NUM_PUZZLES = 40
MAX_STEPS = 60

# In each puzzle, walks to random things until it ends, and the shortest
# solution.
PLAYED = """it.firstStates(world).slice(0, number).map((first, puzzle) => {
    let random = puzzle + 1;
    const draw = (below) => (random = random * 48271 % 2147483647) % below;
    const steps = [];
    let [state, lost] = [first, null];
    while (!state.end) {
        const things = it.contents(world, state);
        const { lock, cells } = things[draw(things.length)];
        const cell = cells[lock === null ? 0 : draw(4) ? 1 : 3];
        const way = draw(4) && it.way(world, state, cell) || [draw(4)];
        for (const action of way) {
            if (state.end) break;
            const before = state;
            state = it.move(world, state, action);
            const image = Array.from(it.pixels(world, state));
            steps.push({ action, image, reward: state.reward, end: state.end });
            if (state.end === "lost") lost = [before, state];
        }
    }
    return { steps, lost, solution: it.solution(world, first) };
})"""


@functools.cache
def described(preset):
    """The Python of a preset's page, and what the page is told."""
    options = models.preset_metadata(preset)["run"]["arguments"]
    options = options | {"max_episode_steps": MAX_STEPS}
    page = BoxWorldPuzzles(models.from_preset(preset), options)
    return page, page.describe()


@functools.cache
def played(preset):
    """Games by JavaScript's rules."""
    _, told = described(preset)
    return in_node("boxworld_rules.js", PLAYED, world=told, number=NUM_PUZZLES)


def first_states(told):
    """The states with which the page begins, for the Python of the world."""
    arrays = {k: from_json(x) for k, x in told["puzzles"].items()}
    state = {k: x[:NUM_PUZZLES] for k, x in arrays.items()}
    state["losing"] = state["losing"].astype(bool)
    return state | {"steps": np.zeros(NUM_PUZZLES, "int32")}


@pytest.mark.parametrize("preset", PRESETS)
def test_games_are_those_of_the_world(preset):
    page, told = described(preset)
    games = played(preset)
    state, over = first_states(told), np.zeros(NUM_PUZZLES, bool)
    ends = set()
    for number in range(MAX_STEPS):
        steps = [x["steps"][number : number + 1] for x in games]
        np.testing.assert_array_equal(over, [not x for x in steps])
        actions = np.array([x[0]["action"] if x else 0 for x in steps])
        state, reward, terminated, truncated = page.world.step(state, actions)
        images = page.world.render(state)
        for i, step in enumerate(steps):
            if over[i]:
                continue
            expected = {
                "action": actions[i],
                "image": images[i].ravel().tolist(),
                "reward": reward[i],
                "end": end(reward[i], terminated[i], truncated[i]),
            }
            assert step == [expected]
            ends.add(expected["end"])
        over |= terminated | truncated
    expected = {None, "solved", "out of moves"}
    assert ends == expected | ({"lost"} if "3x18" not in preset else set())


def end(reward, terminated, truncated):
    if terminated:
        return "solved" if reward > 0 else "lost"
    return "out of moves" if truncated else None


@pytest.mark.parametrize("preset", PRESETS)
def test_the_fewest_moves_solve_a_puzzle_as_soon_as_the_expert(preset):
    page, told = described(preset)
    games = played(preset)
    world = page.world
    expert = compiled(world.expert_moves)

    def length(choose):
        """The moves until each puzzle is solved."""
        state, over = first_states(told), np.zeros(NUM_PUZZLES, bool)
        lengths = np.zeros(NUM_PUZZLES, int)
        for number in range(MAX_STEPS):
            lengths += ~over
            actions = choose(state, number)
            state, reward, terminated, _ = world.step(state, actions)
            assert not (terminated & ~over & (reward < 0)).any()
            over |= terminated
        assert over.all()
        return lengths

    def by_solution(_, number):
        solutions = [x["solution"] for x in games]
        return np.array([(x[number:] or [0])[0] for x in solutions])

    def by_expert(state, _):
        return keras.ops.convert_to_numpy(expert(state)).argmax(axis=1)

    found = length(by_solution)
    assert found.tolist() == [len(x["solution"]) for x in games]
    assert (found <= length(by_expert)).all()


@pytest.mark.parametrize("preset", PRESETS[1:])
def test_says_why_a_box_lost(preset):
    _, told = described(preset)
    games = played(preset)
    lost = [x["lost"] for x in games if x["lost"]]
    names, texts, marked = in_node(
        "boxworld_words.js",
        "[it.HUE_NAMES, lost.map((states) => it.why(world, ...states)),"
        " lost.map((states) => it.rightLock(world, ...states))]",
        world=told,
        lost=lost,
    )
    assert len({name[:2] for name in names}) == len(told["hues"])
    for (before, after), text, cell in zip(lost, texts, marked, strict=True):
        slots = np.array(before["board"])[told["cells_of_slot"]]
        here = np.array(told["cells_of_slot"]) == after["player"]
        key, lock, *_ = slots[here.any(axis=1)][0]
        opens = (slots[:, [1, 3]] == lock).any(axis=1)
        ((right, *_),) = slots[opens & ~np.array(before["losing"])]
        assert before["board"][cell] == lock
        assert cell not in told["cells_of_slot"][here.any(axis=1).argmax()]
        colours = dict(zip(told["hues"], names, strict=True))
        held, lock = colours[key], colours[lock]
        if "bridge" in preset:
            beginning = f"This box is a bridge: it took the {lock} key of one "
        else:
            beginning = f"The {lock} key went for the {held} key, and no lock "
        assert text.startswith(beginning), text
        leads = f"{colours[right]} key" if right in colours else "gem"
        assert f"other {lock} lock: it leads to the {leads}" in text


def test_says_what_a_move_did():
    _, told = described(PRESETS[0])
    names, texts = in_node(
        "boxworld_words.js",
        """await (async () => {
            const { firstStates, move } = await import(rules);
            const firsts = firstStates(world);
            return [it.HUE_NAMES, solutions.map((actions, puzzle) => {
                let state = firsts[puzzle];
                return actions.map((action) => {
                    const before = state;
                    state = move(world, before, action);
                    return it.told(world, "You", before, action, state);
                }).filter((text) => text);
            })]
        })()""",
        world=told,
        solutions=[x["solution"] for x in played(PRESETS[0])],
        rules=(STATIC / "boxworld_rules.js").as_uri(),
    )
    things = dict(zip(told["hues"], (f"{x} key" for x in names), strict=True))
    things[GEM] = "gem"
    # These puzzles have one path and no other boxes.
    boards = first_states(told)["board"][:, told["cells_of_slot"]]
    for slots, found in zip(boards.tolist(), texts, strict=True):
        keys = {lock: key for key, lock, *_ in slots if key != BLANK}
        key = keys[BLANK]
        expected = [f"You took the {things[key]}."]
        while key != GEM:
            lock = things[key].removesuffix(" key")
            key = keys[key]
            text = f"You opened the {lock} lock and got the {things[key]}."
            expected.append(text)
        assert found == expected


def test_the_network_is_the_agents():
    page, told = described(PRESETS[2])
    images = page.world.render(first_states(told))[:2]
    found = page.network().run({"image": images})
    policy, _ = page.model.predict(images, verbose=0)
    np.testing.assert_allclose(found["policy"], policy, atol=1e-4)
    expected = block_attention(page.model, images).standard
    np.testing.assert_allclose(found["attention"], expected, atol=1e-4)
    np.testing.assert_allclose(found["attention"].sum(axis=-1), 1, atol=1e-3)
    # The policy is found by its role, wherever it stands.
    swapped = keras.Model(page.model.inputs, page.model.outputs[::-1])
    network = BoxWorldPuzzles(swapped, {"world": "bridge"}).network()
    again = network.run({"image": images})["policy"]
    np.testing.assert_allclose(again, policy, atol=1e-4)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_players_place_among_the_entities(preset):
    page, told = described(preset)
    rows, columns = page.world.rows, page.world.columns
    cells = np.arange(rows * columns, dtype="int32")
    state = {
        k: np.repeat(x[:1], len(cells), axis=0)
        for k, x in first_states(told).items()
    }
    images = page.world.render({**state, "player": cells})
    entities, middles = in_node(
        "boxworld_rules.js",
        "[cells.map((player) => it.playerEntity(world, { player })),"
        " cells.map((player) => it.middleOf(world, player))]",
        world={"rows": rows, "columns": columns},
        cells=cells.tolist(),
    )
    assert entities == player_entities(images).tolist()
    # Who stands inside the image's edge is in the middle of its entity.
    for cell, entity in zip(cells, entities, strict=True):
        row, column = divmod(cell, columns)
        if 0 < row < rows - 1 and 0 < column:
            assert middles[entity] == [row, column]


def test_refuses_agents_with_a_memory():
    cell = keras.layers.GRUCell(3)
    model = models.boxworld_agent("convolutional", (3, 7, 3), cell=cell)
    with pytest.raises(ValueError, match="without a memory"):
        BoxWorldPuzzles(model, {"world": "box"})
