"""What the pages of the playground are told, beside the library's own tools."""

import base64
import functools

import keras
import numpy as np
import pytest

from keras_relational import analysis
from keras_relational import layers
from keras_relational import models
from keras_relational.datasets import relations_game
from keras_relational.environments import boxworld
from keras_relational.playground.boxworld import BoxWorldPuzzles
from keras_relational.playground.relations_game import RelationsGame
from keras_relational.playground.rules import Rules
from keras_relational.playground.video import Videos
from keras_relational.random_streams import unseen_world_seeds

pytestmark = pytest.mark.any_backend


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum()


def pixels(sent):
    data = np.frombuffer(base64.b64decode(sent["bytes"]), "uint8")
    return data.reshape(sent["shape"])


@pytest.fixture(scope="module")
def game():
    keras.utils.set_random_seed(0)
    model = models.relations_classifier("predinet", 2, 0, 6, 3)
    return RelationsGame(model, {"task": "between"})


def test_a_board_is_drawn_and_asked_about(game):
    answer = game.answer({"example": 3})
    images, labels, _ = relations_game.generate(
        "between", 1, "hexominoes", seed=[1, 3]
    )
    np.testing.assert_array_equal(pixels(answer["image"]), images[0])
    assert answer["right"] == ["No", "Yes"][labels[0]]
    # The tiles that were read from the image give it again.
    again = game.answer({"board": answer["board"]})
    assert again == answer | {"right": None}
    chances = softmax(game.model.predict(images, verbose=0)[0])
    assert answer["answer"] == ["No", "Yes"][chances.argmax()]
    assert answer["probability"] == pytest.approx(chances.max(), 1e-4)


def test_one_of_several_questions():
    keras.utils.set_random_seed(0)
    tasks = ["row_ABA", "row_AAB", "same"]
    model = models.relations_classifier("predinet", 2, 3, 6, 3)
    game = RelationsGame(model, {"target": tasks})
    questions = [x.split()[0] for x in game.describe()["questions"]]
    assert questions == ["Three", "Three", "Two"]
    images, labels, _ = relations_game.generate(
        tasks[1], 1, "hexominoes", seed=[1, 5]
    )
    answer = game.answer({"example": 5, "task": 1})
    np.testing.assert_array_equal(pixels(answer["image"]), images[0])
    assert answer["right"] == ["No", "Yes"][labels[0]]
    for task in range(3):
        found = game.answer({"board": answer["board"], "task": task})
        logits = model.predict([images, np.array([task])], verbose=0)[0]
        chance = softmax(logits).max()
        assert found["probability"] == pytest.approx(chance, 1e-4)
    with pytest.raises(ValueError, match="`task` must be an integer from 0"):
        game.answer({"example": 5, "task": 3})


def test_the_heads_that_decide_come_first(game):
    answer = game.answer({"example": 0})
    images, *_ = relations_game.generate(
        "between", 1, "hexominoes", seed=[1, 0]
    )
    effects = analysis.head_effects(game.model, images, game.others)[0]
    side = answer["answer"] == "Yes"
    apart = (effects[:, int(side)] - effects[:, int(not side)]) / 2
    order = np.abs(apart).argsort()[::-1][:4]
    assert [x["head"] for x in answer["heads"]] == order.tolist()
    found = [x["effect"] for x in answer["heads"]]
    np.testing.assert_allclose(found, apart[order], atol=1e-5)
    maps = analysis.attention_maps(game.model, images)[0, order]
    found = [x["maps"] for x in answer["heads"]]
    np.testing.assert_allclose(found, maps.reshape(4, 2, 25), atol=1e-4)
    assert all(x["text"].startswith("Head ") for x in answer["heads"])


def test_a_board_of_both_kinds_of_objects(game):
    board = [None] * 9
    board[0], board[8] = ["pentominoes", 2, 3], ["hexominoes", 5, 7]
    image = pixels(game.answer({"board": board})["image"])
    for name, place, shape, colour in (
        ("pentominoes", slice(1, 10, 3), 2, 3),
        ("hexominoes", slice(25, 34, 3), 5, 7),
    ):
        blocks = image[place, place]
        mask = relations_game.shape_masks(name)[shape]
        np.testing.assert_array_equal(
            blocks, mask[..., None] * relations_game.COLOURS[colour]
        )


@pytest.mark.parametrize(
    "board",
    [
        None,
        [None] * 8,
        [["stripes", 0, 0]] + [None] * 8,
        [["pentominoes", 37, 0]] + [None] * 8,
        [["pentominoes", 0, 25]] + [None] * 8,
        [["pentominoes", 0.0, 1]] + [None] * 8,
        [["pentominoes", 0]] + [None] * 8,
    ],
)
def test_refuses_other_boards(game, board):
    with pytest.raises(ValueError, match=r"nine tiles"):
        game.answer({"board": board})


SMALL = {"world": "box", "rows": 3, "columns": 6, "max_episode_steps": 20}


@pytest.fixture(scope="module")
def puzzles():
    keras.utils.set_random_seed(0)
    model = models.boxworld_agent("relational", (3, 7, 3))
    return BoxWorldPuzzles(model, SMALL)


def test_a_puzzle_is_played_as_the_environment_plays_it(puzzles):
    rng = np.random.default_rng(0)
    moves = rng.integers(4, size=30).tolist()
    world = boxworld.world_of_options(SMALL)
    seed = unseen_world_seeds(8)[7]
    draws = iter(moves)
    played = analysis.record(world, seed, lambda image: next(draws))
    length = len(played["actions"])
    for number in (0, 1, 5, length):
        answer = puzzles.answer({"puzzle": 7, "moves": moves[:number]})
        np.testing.assert_array_equal(
            pixels(answer["image"]), played["images"][number]
        )
        assert answer["reward"] == pytest.approx(
            played["rewards"][:number].sum()
        )
        over = number == length
        assert (answer["end"] is not None) == over
        assert (answer["policy"] is None) == over
    # What comes after the end has no effect.
    assert puzzles.answer({"puzzle": 7, "moves": moves}) == answer


def test_the_policy_and_the_attention_are_the_agents(puzzles):
    answer = puzzles.answer({"puzzle": 0, "moves": []})
    image = pixels(answer["image"])[None]
    chances = softmax(puzzles.model.predict(image, verbose=0)[0][0])
    np.testing.assert_allclose(answer["policy"], chances, atol=1e-4)
    assert len(answer["attention"]) == 4
    for head in answer["attention"]:
        assert np.shape(head["weights"]) == (1, 5)
        assert np.sum(head["weights"]) == pytest.approx(1, abs=1e-3)


def test_the_policy_is_found_by_its_role(puzzles):
    model = puzzles.model
    swapped = keras.Model(model.inputs, model.outputs[::-1])
    request = {"puzzle": 0, "moves": []}
    policy = BoxWorldPuzzles(swapped, SMALL).answer(request)["policy"]
    expected = puzzles.answer(request)["policy"]
    np.testing.assert_allclose(policy, expected, atol=1e-4)


def test_the_end_of_a_puzzle(puzzles):
    world = boxworld.world_of_options(SMALL)
    seed = unseen_world_seeds(1)[0]
    state = world.reset(np.array([seed], "uint32"))
    moves = []
    while len(moves) < 20:
        right = keras.ops.convert_to_numpy(world.expert_moves(state))[0]
        moves.append(int(right.argmax()))
        state, _, terminated, _ = world.step(state, np.array(moves[-1:]))
        if keras.ops.convert_to_numpy(terminated)[0]:
            break
    assert puzzles.answer({"puzzle": 0, "moves": moves})["end"] == "solved"
    nothing = [moves[0]] * 20
    assert puzzles.answer({"puzzle": 0, "moves": nothing})["end"] in (
        "lost",
        "out of moves",
    )


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"puzzle": -1, "moves": []},
        {"puzzle": True, "moves": []},
        {"puzzle": 0},
        {"puzzle": 0, "moves": [4]},
        {"puzzle": 0, "moves": [0] * 1_001},
        {"puzzle": 0, "moves": "0"},
    ],
)
def test_refuses_other_moves(puzzles, request_):
    with pytest.raises(ValueError, match=r"`(puzzle|moves)` must be"):
        puzzles.answer(request_)


def test_refuses_agents_with_a_memory():
    cell = keras.layers.GRUCell(3)
    model = models.boxworld_agent("convolutional", (3, 7, 3), cell=cell)
    with pytest.raises(ValueError, match="without a memory"):
        BoxWorldPuzzles(model, SMALL)


@functools.cache
def rules_of(task):
    keras.utils.set_random_seed(0)
    model = models.rule_learner(models.filler_autoencoder())
    arguments = {"task": task, "mode": "multiple_choice", "fillers": "image"}
    return Rules(model, arguments | {"withheld": 95, "seed": 0})


@pytest.mark.parametrize("task", ["distribution_of_three", "identity_rules"])
def test_the_right_option_is_that_of_the_problem(task):
    rules = rules_of(task)
    for problem in range(10):
        answer = rules.answer({"problem": problem})
        assert answer["right"] == rules.problems.labels[problem]
        assert min(answer["fillers"]) >= 5  # The first five are in training.
    images = rules.fillers[answer["fillers"]][None]
    chances = softmax(rules.model.predict(images, verbose=0)[0])
    np.testing.assert_allclose(answer["probabilities"], chances, atol=1e-4)
    read = analysis.bindings(rules.model, images).key_scores[0]
    np.testing.assert_allclose(answer["read"], read, atol=1e-4)
    again = rules.answer({"fillers": answer["fillers"]})
    assert again == answer


@pytest.mark.parametrize(
    ("task", "fillers", "right"),
    [
        ("distribution_of_three", [1, 2, 3, 3, 1, 0, 2, 4, 5], 1),
        ("distribution_of_three", [1, 2, 3, 3, 1, 0, 6, 4, 5], None),
        ("distribution_of_three", [1, 2, 3, 3, 1, 0, 2, 2, 5], None),
        ("distribution_of_three", [1, 2, 2, 2, 1, 0, 2, 4, 5], None),
        ("distribution_of_three", [1, 2, 3, 4, 1, 0, 2, 4, 5], None),
        ("identity_rules", [1, 2, 1, 3, 4, 0, 4, 3, 5], 2),
        ("identity_rules", [1, 2, 2, 3, 4, 0, 4, 3, 5], 1),
        ("identity_rules", [1, 1, 1, 4, 4, 0, 4, 3, 5], 1),
        ("identity_rules", [1, 1, 1, 3, 4, 0, 4, 3, 5], None),
        ("identity_rules", [1, 2, 3, 4, 5, 0, 4, 3, 5], None),
    ],
)
def test_judges_problems_of_any_symbols(task, fillers, right):
    assert rules_of(task).answer({"fillers": fillers})["right"] == right


def test_refuses_other_rules():
    with pytest.raises(ValueError, match="The page is for the tasks"):
        rules_of("same_different")
    for numbers in ([0] * 8, [0] * 10, [100] * 9, None):
        with pytest.raises(ValueError, match="`fillers` must be"):
            rules_of("identity_rules").answer({"fillers": numbers})


def test_a_video_is_predicted_from_what_is_given():
    keras.utils.set_random_seed(0)
    core = layers.SCOFF(8, 1, 2, return_sequences=True, return_state=True)
    model = models.video_predictor(
        core, positions=False, image_size=16, networks="linear"
    )
    sizes = {"image_size": 16, "bulb_radius": 4}
    videos = Videos(model, {"dynamics": "switching", **sizes})
    assert videos.describe()["axes"] == ("horizontal", "vertical")
    answer = videos.answer({"video": 0, "given": 30})
    true, predicted = pixels(answer["true"]), pixels(answer["predicted"])
    assert true.shape == predicted.shape == (40, 16, 16, 1)
    np.testing.assert_array_equal(true[0], predicted[0])
    one = model.predict(true[None, :30], verbose=0)[0]
    np.testing.assert_allclose(predicted[1:31] / 255, one, atol=0.003)
    roll_out = models.roll_out_model(model, 10)
    further = roll_out.predict(true[None, :30], verbose=0)[0]
    np.testing.assert_allclose(predicted[30:] / 255, further, atol=0.003)
    assert answer["axes"] in ([0] * 20 + [1] * 20, [1] * 20 + [0] * 20)
    seen = np.concatenate([true[:30], predicted[30:]])[None]
    chosen = analysis.object_files(model, seen).schemata
    assert answer["schemata"] == chosen[0, :, 0].argmax(-1).tolist()
    for given in (1, 40, None):
        with pytest.raises(ValueError, match="`given` must be"):
            videos.answer({"video": 0, "given": given})
    with pytest.raises(ValueError, match="dynamics switching, three_axes"):
        Videos(model, {"dynamics": "fixed", **sizes})
