"""The rules that pages know, in Node, beside those of the library."""

import keras
import numpy as np
import pytest
from browser_for_tests import in_node

from keras_relational import analysis
from keras_relational import models
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import set_game
from keras_relational.datasets import vaec
from keras_relational.models.reasoners import greedy_decode
from keras_relational.playground.arrays import from_json
from keras_relational.playground.kinds import load


def kind(preset):
    return load(models.preset_metadata(preset), preset)


def softmax(logits):
    return keras.ops.convert_to_numpy(keras.ops.softmax(logits))


def test_set_finds_the_sets_of_hands():
    _, _, (hands, labels) = set_game.load_data(2, 2, 500, seed=1)
    cards = hands.reshape(-1, 5, 4, 3).argmax(-1)
    found = in_node(
        "set_game_rules.js", "hands.map(it.findSet)", hands=cards.tolist()
    )
    assert [places is not None for places in found] == labels.tolist()
    for hand, places in zip(cards, found, strict=True):
        if places is not None:
            assert all(len(set(values)) != 2 for values in hand[places].T)
    coded = in_node(
        "set_game_rules.js", "hands.map(it.oneHot)", hands=cards.tolist()
    )
    np.testing.assert_array_equal(np.reshape(coded, hands.shape), hands)


def test_set_counts_no_card_twice():
    hand = [[0, 0, 0, 0]] * 3 + [[1, 0, 0, 0], [0, 1, 0, 0]]
    code = "[it.findSet(hand), it.twice(hand), it.twice(hand.slice(2))]"
    assert in_node("set_game_rules.js", code, hand=hand) == [None, True, False]


def test_the_hands_of_the_page_are_not_in_training():
    game = kind("relational_convolution_set_game")
    hands = from_json(game.describe()["hands"])
    assert hands.shape == (200, 5, 4)
    assert hands.max() == 2
    (train, labels), *_ = set_game.load_data(2_000, 2, seed=game.seed)
    train = train.reshape(-1, 5, 4, 3).argmax(-1)[labels == 1]
    find = "hands.map((hand) => it.findSet(hand)?.map((i) => hand[i]) ?? null)"
    sets = [
        {frozenset(map(tuple, x)) for x in found if x is not None}
        for found in (
            in_node("set_game_rules.js", find, hands=x.tolist())
            for x in (train, hands)
        )
    ]
    assert sets[1]
    assert len(sets[0]) > 500
    # Those of the training hands may be there by chance, in the other cards.
    assert len(sets[0] & sets[1]) < 0.1 * len(sets[1])


@pytest.mark.parametrize("task", ["distribution_of_three", "identity_rules"])
def test_rules_know_the_right_option(task):
    _, _, problems = distribution_of_three.split_fillers(
        distribution_of_three.glyphs(), withheld=95, task=task, seed=0
    )
    numbers = problems.fillers[:300].tolist()
    code = "problems.map((x) => it.rightOption(task, x))"
    found = in_node("rules_rules.js", code, problems=numbers, task=task)
    assert found == problems.labels[:300].tolist()


@pytest.mark.parametrize(
    ("task", "fillers", "right"),
    [
        ("distribution_of_three", [1, 2, 3, 3, 1, 0, 2, 4, 5], 1),
        ("distribution_of_three", [1, 2, 3, 3, 1, 0, 6, 4, 5], None),
        ("distribution_of_three", [1, 2, 3, 3, 1, 0, 2, 2, 5], None),
        ("distribution_of_three", [1, 2, 2, 2, 1, 0, 2, 4, 5], None),
        ("distribution_of_three", [1, 2, 3, 4, 1, 0, 2, 4, 5], None),
        ("distribution_of_three", [1, 2, 3, 1, 1, 0, 2, 4, 5], None),
        ("identity_rules", [1, 2, 1, 3, 4, 0, 4, 3, 5], 2),
        ("identity_rules", [1, 2, 2, 3, 4, 0, 4, 3, 5], 1),
        ("identity_rules", [1, 1, 1, 4, 4, 0, 4, 3, 5], 1),
        ("identity_rules", [1, 1, 1, 3, 4, 0, 4, 3, 5], None),
        ("identity_rules", [1, 2, 3, 4, 5, 0, 4, 3, 5], None),
    ],
)
def test_rules_judge_problems_of_any_symbols(task, fillers, right):
    code = "it.rightOption(task, fillers)"
    found = in_node("rules_rules.js", code, task=task, fillers=fillers)
    assert found == right


def test_rules_say_what_was_seen_before():
    found = in_node("rules_rules.js", "it.seenBefore([7, 8, 7, 9, 8, 7])")
    assert found == [None, None, 0, None, 1, 0]


def test_the_network_of_rules_is_the_preset_and_its_memory():
    rules = kind("esbn_distribution_of_three")
    described = rules.describe()
    problems = from_json(described["problems"])
    assert problems.min() >= described["num_trained"] == 5
    images = from_json(described["fillers"])[problems[:4]]
    found = rules.network().run({"fillers": images})
    expected = rules.model.predict(images, verbose=0)
    np.testing.assert_allclose(found["logits"], expected, atol=1e-4)
    read = analysis.bindings(rules.model, images).key_scores
    np.testing.assert_allclose(found["read"], read, atol=1e-4)
    np.testing.assert_array_equal(
        found["logits"].argmax(1), rules.problems.labels[:4]
    )


def test_sorting_decodes_as_the_library_does():
    sorting = kind("abstractor_sorting")
    objects = from_json(sorting.describe()["objects"])
    ranks = np.random.default_rng(0).permutation(len(objects))[:10]
    entities = objects[ranks][None]
    network, asked = sorting.network(), []

    def logits_of(places):
        asked.append(places)
        places = np.array([places], "int32")
        inputs = {"entities": entities, "places": places}
        return network.run(inputs)["logits"][0]

    places = greedy_decode(sorting.model, entities)[0]
    shifted = [10, *places[:-1].tolist()]
    # All steps at once, since a step sees those before it alone.
    rows = logits_of(shifted).tolist()
    code = """await (async () => {
        const found = [], asked = [];
        const logitsOf = async (places) => {
            asked.push(places);
            return rows.flat();
        };
        for await (const { place } of it.decode(10, logitsOf)) {
            found.push(place);
        }
        return [found, asked[0], asked.at(-1)];
    })()"""
    found, first, last = in_node("sorting_rules.js", code, rows=rows)
    assert found == places.tolist()
    assert first == [10] + [0] * 9
    assert last == shifted
    code = "it.sortedPlaces(ranks)"
    right = in_node("sorting_rules.js", code, ranks=ranks.tolist())
    assert right == ranks.argsort().tolist() == places.tolist()


@pytest.mark.parametrize("image_size", [32, 128])
def test_analogies_are_drawn_as_the_data_are(image_size):
    levels = np.random.default_rng(0).integers(42, size=(8, 4))
    levels[0], levels[1] = 41, 0
    code = "Array.from(it.render(levels, size))"
    found = in_node(
        "analogies_rules.js", code, levels=levels.tolist(), size=image_size
    )
    expected = vaec.render(levels, image_size)
    np.testing.assert_array_equal(np.reshape(found, expected.shape), expected)


@pytest.mark.parametrize("regime", vaec.REGIMES)
def test_analogies_are_problems_of_the_data(regime):
    code = "Array.from({ length: 200 }, () => it.draw(regime, 3, Math.random))"
    problems = in_node("analogies_rules.js", code, regime=regime)
    data = vaec.generate(regime, 3, 0)
    kinds = {
        (int(dimension), *context.tolist(), int(candidates[0]))
        for dimension, context, candidates in zip(
            data.dimension, data.context, data.candidates, strict=True
        )
    }
    for problem in problems:
        levels, dimension = np.array(problem["levels"]), problem["dimension"]
        assert (dimension, *problem["terms"]) in kinds
        same = np.delete(levels, dimension, axis=1)
        assert (same == same[0]).all()
        mine = data.levels[data.dimension == dimension][0, :, dimension]
        np.testing.assert_array_equal(levels[:, dimension], mine)
        assert np.isin(same, data.levels).all()
    assert {problem["dimension"] for problem in problems} == {0, 1, 2, 3}


def test_the_network_of_analogies_takes_candidates_in_any_order():
    analogies = kind("tcn_vaec_translation")
    problems = vaec.generate("translation", 1, 5)
    few = vaec.Problems(*(x[:6] for x in problems))
    inputs = vaec.model_inputs(few, analogies.image_size)
    inputs["candidates"] = np.arange(7, dtype="int32")[None].repeat(6, axis=0)
    chances = softmax(analogies.network().run(inputs)["logits"])
    assert (chances.argmax(1) == few.candidates[:, 0]).mean() > 0.8
