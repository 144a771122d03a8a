"""What an export answers: to which models, under which names, and to whom not.

All of it in the graph, as any server runs it.
"""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_models import SAVED
from small_models import build
from tiny_servable import answer
from tiny_servable import exported

from experiments.context_normalization.object_predictor import image_autoencoder
from experiments.context_normalization.object_predictor import object_predictor
from keras_relational import layers
from keras_relational import models
from keras_relational import serving


def dense(units, **arguments):
    x = keras.Input((4,))
    return keras.Model(x, keras.layers.Dense(units, **arguments)(x))


ROWS = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
ENTITIES = np.random.default_rng(0).random((2, 6, 4), "float32")


# What the outputs are.


def sequential(*last, loss=None):
    model = keras.Sequential([keras.Input((4,)), *last])
    if loss:
        loss = getattr(keras.losses, loss)(from_logits=True)
        model.compile("sgd", loss)
    return model


def shares():
    """Probabilities that only the caller knows of."""
    x = keras.Input((4,))
    y = keras.layers.Dense(2, activation="sigmoid")(x)
    return keras.Model(x, y / keras.ops.sum(y, axis=-1, keepdims=True))


CHOICES = {
    "dense": lambda: sequential(keras.layers.Dense(3, activation="softmax")),
    "softmax": lambda: sequential(
        keras.layers.Dense(3), keras.layers.Softmax()
    ),
    "activation": lambda: sequential(
        keras.layers.Dense(3), keras.layers.Activation("softmax")
    ),
    "shares": shares,
    "named logits": lambda: dense(2, name="logits"),
    "named policy": lambda: dense(2, name="policy"),
    "loss of logits": lambda: sequential(
        keras.layers.Dense(2), loss="CategoricalCrossentropy"
    ),
    "sparse loss of logits": lambda: sequential(
        keras.layers.Dense(2), loss="SparseCategoricalCrossentropy"
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_logits_go_through_softmax_and_probabilities_do_not(name, tmp_path):
    CHOICES[name]().save(tmp_path / "model.keras")
    model = keras.saving.load_model(tmp_path / "model.keras")
    kind = {"outputs": "probabilities"} if name == "shares" else {}
    signatures = exported(model, tmp_path / "served", **kind)
    answers = answer(signatures["serving_default"], inputs=ROWS)
    expected = model.predict(ROWS, verbose=0)
    if name.endswith(("logits", "policy")):
        expected = tf.nn.softmax(expected).numpy()
    assert set(answers) == {"probabilities", "label"}
    np.testing.assert_allclose(answers["probabilities"], expected, rtol=1e-5)
    np.testing.assert_array_equal(answers["label"], expected.argmax(-1))


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_a_single_number_is_no_choice(kind, tmp_path):
    with pytest.raises(ValueError, match=r"two classes.*shape \(None, 1\)"):
        serving.export_model(dense(1), tmp_path, outputs=kind)


def test_what_is_not_certain_is_refused(tmp_path):
    for model in (
        dense(1),
        dense(2),
        dense(2, activation="sigmoid"),
        keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]),
    ):
        with pytest.raises(ValueError, match=r"outputs='logits'\) where a so"):
            serving.export_model(model, tmp_path)
    # A loss that was not told what it takes says nothing.
    model = dense(2)
    model.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(ValueError, match="is not certain"):
        serving.export_model(model, tmp_path)
    with pytest.raises(ValueError, match=r"Received: outputs='classes'"):
        serving.export_model(model, tmp_path, outputs="classes")
    assert not list(tmp_path.iterdir())


def test_a_dictionary_of_outputs(tmp_path):
    x = keras.Input((4,), name="x")
    model = keras.Model(
        x, {"logits": keras.layers.Dense(2)(x), "embedding": 2 * x}
    )
    answers = answer(exported(model, tmp_path)["serving_default"], x=ROWS)
    assert set(answers) == {"embedding", "label", "probabilities"}
    np.testing.assert_allclose(answers["embedding"], 2 * ROWS)
    np.testing.assert_allclose(
        answers["probabilities"],
        tf.nn.softmax(model.predict(ROWS, verbose=0)["logits"]),
        rtol=1e-5,
    )


def test_models_of_images_predict_images():
    for model in (image_autoencoder(), object_predictor(image_autoencoder())):
        assert models.roles(model).outputs == {"predicted": "raw"}


# Names.


def names_of(model, folder):
    signature = exported(model, folder, outputs="raw")["serving_default"]
    _, inputs = signature.structured_input_signature
    return sorted(inputs), sorted(signature.structured_outputs)


def test_names_do_not_depend_on_models_made_before(tmp_path):
    for number in range(2):
        model = dense(2)
        assert names_of(model, tmp_path / f"one_{number}") == (
            ["inputs"],
            ["outputs"],
        )
        a, b = keras.Input((2,)), keras.Input((3,))
        y = keras.layers.Dense(2)
        model = keras.Model([a, b], [y(a), keras.layers.ReLU(name="mine")(b)])
        assert names_of(model, tmp_path / f"two_{number}") == (
            ["input_0", "input_1"],
            ["mine", "output_0"],
        )


def several(*names, kinds=None):
    """A model with an output of each name, and a declaration of kinds."""
    x = keras.Input((4,), name="x")
    outputs = [keras.layers.Dense(3, name=f"dense_{i}")(x) for i in range(9)]
    model = keras.Model(x, outputs[: len(names)])
    kinds = kinds or ["logits"] + ["raw"] * (len(names) - 1)
    return models.declare(model, dict(zip(names, kinds, strict=True)))


@pytest.mark.parametrize("name", ["label", "probabilities"])
def test_an_output_with_the_name_of_an_added_one_is_refused(name, tmp_path):
    """Not replaced. The user renames it, or takes all outputs as they are."""
    model = several("logits", name, "box")
    with pytest.raises(ValueError, match=f"adds an output '{name}', and the"):
        serving.export_model(model, tmp_path / "refused")
    assert not list((tmp_path / "refused").glob("*"))
    renamed = models.declare(
        model, {"logits": "logits", "mine": "raw", "box": "raw"}
    )
    for number, (one, kind) in enumerate(((model, "raw"), (renamed, None))):
        signature = exported(one, tmp_path / str(number), outputs=kind)
        answers = answer(signature["serving_default"], x=ROWS)
        logits, own, box = model.predict(ROWS, verbose=0)
        np.testing.assert_allclose(answers["box"], box, rtol=1e-5)
        own_name = "mine" if kind is None else name
        np.testing.assert_allclose(answers[own_name], own, rtol=1e-5)
        if kind is None:
            np.testing.assert_array_equal(answers["label"], logits.argmax(-1))


def test_an_output_whose_place_the_added_one_takes_is_no_other(tmp_path):
    model = several("probabilities", "box", kinds=["probabilities", "raw"])
    signature = exported(model, tmp_path)["serving_default"]
    names = {"probabilities", "label", "box"}
    assert set(signature.structured_outputs) == names


def test_an_output_with_the_name_of_a_proposition_is_refused(tmp_path):
    x = keras.Input((6, 4), name="x")
    y = layers.PrediNet(2, 3, 4)(x)
    outputs = [
        keras.layers.Dense(2, name="logits")(y),
        keras.layers.Dense(2, name="distances")(y),
    ]
    model = keras.Model(x, outputs)
    with pytest.raises(ValueError, match="adds an output 'distances', and the"):
        serving.export_model(model, tmp_path / "refused")
    assert not list((tmp_path / "refused").glob("*"))
    model = models.declare(model, {"logits": "logits", "miles": "raw"})
    answers = answer(
        exported(model, tmp_path / "1")["propositions"], x=ENTITIES
    )
    np.testing.assert_allclose(
        answers["miles"], model.predict(ENTITIES, verbose=0)[1], rtol=1e-4
    )
    assert answers["distances"].shape == (2, 2, 3)


def test_outputs_with_other_rows_than_the_batch_are_whole(tmp_path):
    x = keras.Input((4, 2), name="x")
    table = keras.layers.Dense(3)(keras.ops.ones((5, 2)) + 0 * x[:1, :1, :1])
    model = keras.Model(
        x,
        {
            "rows": keras.ops.reshape(x, (-1, 2)),
            "halves": keras.ops.reshape(x, (-1, 2, 2)),
            "first": x[:1, :],
            "table": table[0],
            "plain": x,
        },
    )
    signature = exported(model, tmp_path, outputs="raw")["serving_default"]
    rng = np.random.default_rng(0)
    for batch_size in (1, 3):
        x = rng.random((batch_size, 4, 2), "float32")
        answers = answer(signature, x=x)
        expected = model.predict_on_batch(x)
        assert answers["rows"].shape == (4 * batch_size, 2)
        assert answers["table"].shape == (5, 3)
        for name, value in expected.items():
            np.testing.assert_allclose(answers[name], value, rtol=1e-5)
    for value in answer(signature, x=np.zeros((0, 4, 2), "float32")).values():
        assert len(value) == 0


def test_a_number_for_all_examples_is_refused(tmp_path):
    x = keras.Input((4,))
    model = keras.Model(x, {"mean": keras.ops.mean(x), "same": x * 1})
    with pytest.raises(ValueError, match="the output 'mean', a single number"):
        serving.export_model(model, tmp_path, outputs="raw")


def test_a_new_state_has_the_name_of_its_input(tmp_path):
    """That is the key, where the inputs are a dictionary."""
    frames, memory = keras.Input((None, 4)), keras.Input((5,))
    x, new = keras.layers.GRU(5, return_sequences=True, return_state=True)(
        frames, initial_state=[memory]
    )
    model = keras.Model([frames, memory], [x, new])
    states = [memory.name]
    model = models.declare(model, {"x": "raw"}, states=states)
    signature = exported(model, tmp_path)["serving_default"]
    _, inputs = signature.structured_input_signature
    assert set(inputs) == {"input_0", "input_1"}
    assert set(signature.structured_outputs) == {"x", "input_1"}


# Propositions.


def test_padding_is_not_attended_to(tmp_path):
    """The mask that reaches the layer reaches its propositions."""
    x = keras.Input((6, 4), name="entities")
    masked = keras.layers.Masking()(x)
    y = layers.PrediNet(2, 3, 4)(masked)
    model = keras.Model(x, keras.layers.Dense(2, name="logits")(y))
    x = ENTITIES.copy()
    x[:, 4:] = 0
    answers = answer(exported(model, tmp_path)["propositions"], entities=x)
    for number in (1, 2):
        scores = answers[f"attention_scores_{number}"]
        np.testing.assert_array_equal(scores[..., 4:], 0)
        np.testing.assert_allclose(scores.sum(-1), 1, atol=1e-5)
    expected = model.layers[2].propositions(x, mask=(x != 0).any(-1))
    for name, value in expected.items():
        np.testing.assert_allclose(answers[name], value, atol=1e-6)


def test_several_layers_with_propositions(tmp_path):
    """One of them inside a model inside the model."""
    x = keras.Input((6, 4), name="entities")
    first, second = layers.PrediNet(2, 3, 4), layers.PrediNet(1, 2, 4)
    inner = keras.Sequential([first, keras.layers.Dense(5)])
    y = keras.layers.Concatenate()([inner(x), second(x)])
    model = keras.Model(x, keras.layers.Dense(2, name="logits")(y))
    answers = answer(
        exported(model, tmp_path)["propositions"], entities=ENTITIES
    )
    for number, layer in enumerate((first, second)):
        for name, expected in layer.propositions(ENTITIES).items():
            np.testing.assert_allclose(
                answers[f"layer_{number}_{name}"], expected, atol=1e-6
            )
    # The model itself computes as before.
    assert "call" not in vars(first)


# Requests that have no answer.


def assert_refused(signature, explanation, **inputs):
    with pytest.raises(tf.errors.InvalidArgumentError, match=explanation):
        answer(signature, **inputs)


def test_numbers_of_an_embedding(tmp_path):
    x = keras.Input((2,), dtype="int32", name="words")
    y = keras.layers.Flatten()(keras.layers.Embedding(5, 3)(x))
    model = keras.Model(x, keras.layers.Dense(2, name="logits")(y))
    signature = exported(model, tmp_path)["serving_default"]
    assert len(answer(signature, words=[[0, 4]])["label"]) == 1
    for number in (-1, 5):
        assert_refused(signature, "and below 5", words=[[0, number]])


@pytest.fixture(scope="module")
def analogy(tmp_path_factory):
    model = models.analogy_scorer(image_size=16, num_candidates=2)
    folder = tmp_path_factory.mktemp("analogy")
    return exported(model, folder)["serving_default"]


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    model = models.boxworld_agent(
        "convolutional", (3, 7, 3), cell=keras.layers.GRUCell(6)
    )
    folder = tmp_path_factory.mktemp("agent")
    return exported(model, folder)["serving_default"]


@pytest.mark.parametrize("name", ["context", "candidates"])
def test_numbers_of_images_that_there_are_not(name, analogy):
    inputs = {
        "images": np.zeros((1, 5, 16, 16, 3)),
        "context": np.array([[0, 1, 2]]),
        "candidates": np.array([[3, 4]]),
    }
    assert len(answer(analogy, **inputs)["label"]) == 1
    for number in (-1, 5):
        inputs[name][0, 1] = number
        assert_refused(
            analogy,
            f"A number of {name} must be 0 or more, and below the number of im",
            **inputs,
        )


def test_one_row_is_not_taken_for_many(analogy, agent):
    assert_refused(
        analogy,
        "must have one batch size",
        images=np.zeros((1, 5, 16, 16, 3)),
        context=np.array([[0, 1, 2]] * 3),
        candidates=np.array([[3, 4]] * 3),
    )
    inputs = {
        "image": np.zeros((1, 2, 3, 7, 3)),
        "is_first": np.zeros((1, 2)),
        "state_0": np.zeros((4, 6)),
    }
    explanation = "The inputs image and state_0 must have one batch size"
    assert_refused(agent, explanation, **inputs)
    inputs["state_0"] = np.zeros((1, 6))
    assert answer(agent, **inputs)["label"].shape == (1, 2)
    # Nor one step for several.
    inputs["is_first"] = np.zeros((1, 1))
    assert_refused(agent, "Input to reshape", **inputs)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_states_that_are_not_finite(number, agent):
    state = np.zeros((2, 6))
    state[1, 3] = number
    assert_refused(
        agent,
        "The input state_0 must be finite",
        image=np.zeros((2, 1, 3, 7, 3)),
        is_first=np.zeros((2, 1)),
        state_0=state,
    )


def test_a_label_of_logits_that_are_no_numbers(tmp_path):
    # Infinity less infinity, of a finite input.
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Lambda(lambda x: x * 1e38 - x * 1e38)]
    )
    signature = exported(model, tmp_path / "2", outputs="logits")
    assert_refused(
        signature["serving_default"],
        "The answer to these inputs is not a number",
        inputs=np.full((1, 4), 1e30),
    )


# No examples.


@pytest.mark.parametrize(
    "new",
    [
        *(functools.partial(build, *case) for case in SAVED),
        lambda: object_predictor(image_autoencoder()),
    ],
)
@pytest.mark.slow
def test_an_empty_batch_gives_an_empty_answer(new, tmp_path):
    for signature in exported(new(), tmp_path).values():
        if not signature.structured_outputs:
            continue  # Initialization.
        _, specs = signature.structured_input_signature
        inputs = {
            name: np.zeros([0, *(size or 2 for size in spec.shape[1:])])
            for name, spec in specs.items()
        }
        full = {name: np.zeros([1, *x.shape[1:]]) for name, x in inputs.items()}
        expected = answer(signature, **full)
        empty = answer(signature, **inputs)
        assert set(empty) == set(expected)
        for name, x in empty.items():
            assert x.shape == (0, *expected[name].shape[1:])
