"""What models say about themselves, and who can read it when."""

import collections
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_models import build
from tiny_servable import answer
from tiny_servable import exported

from experiments.context_normalization.object_predictor import image_autoencoder
from experiments.context_normalization.object_predictor import object_predictor
from keras_relational import models
from keras_relational import serving
from keras_relational.models.declared_roles import DeclaredRoles

SEQUENCES = {"return_sequences": True, "return_state": True}


def agent():
    return models.boxworld_agent(
        "convolutional", (3, 7, 3), cell=keras.layers.LSTMCell(6)
    )


def mine():
    """A model of a user's: no name in it is one of the library's."""
    frames = keras.Input((None, 4), name="what_i_see")
    memory = keras.Input((5,), name="what_i_remember")
    core = keras.layers.GRU(5, name="core_of_mine", **SEQUENCES)
    x, new_memory = core(frames, initial_state=[memory])
    value = keras.layers.Dense(1, name="worth")(x)
    choice = keras.layers.Dense(3, name="next")(x)
    return models.declare(
        keras.Model([frames, memory], [value, choice, new_memory]),
        {"worth": "raw", "move": "logits"},
        states=["what_i_remember"],
        parts={"memory": "core_of_mine"},
    )


def saved(model, folder):
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


BUILDERS = {
    "agent": agent,
    "mine": mine,
    "relations_classifier": lambda: build("relations_classifier", "tasks"),
    "analogy_scorer": lambda: build("analogy_scorer", ""),
    "visual_analogy_scorer": lambda: build("visual_analogy_scorer", ""),
    "rule_learner": lambda: build("rule_learner", "generative"),
    "object_predictor": lambda: object_predictor(image_autoencoder()),
}


@pytest.mark.parametrize(
    "name", ["agent", "mine", "object_predictor", "rule_learner"]
)
def test_roles_outlive_saving_and_cloning(name, tmp_path):
    model = BUILDERS[name]()
    roles = models.roles(model)
    assert json.loads(json.dumps(roles))[0] == roles.outputs
    for copy in (
        saved(model, tmp_path),
        keras.models.clone_model(model),
        model.__class__.from_config(model.get_config()),
        # Its layers in another model, as training makes one.
        keras.Model(model.inputs, model.outputs),
    ):
        assert models.roles(copy) == roles
        for role in roles.parts:
            part = models.part(copy, role)
            assert type(part) is type(models.part(model, role))


def test_outputs_stay_as_they_are():
    keras.config.set_dtype_policy("mixed_bfloat16")
    x = keras.Input((4,))
    outputs = {
        "b": keras.layers.Dense(2, dtype="float32")(x),
        "a": keras.layers.Dense(2)(x),
    }
    model = keras.Model(x, outputs)
    declared = models.declare(model, {"a": "raw", "b": "logits"})
    rows = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
    before, after = model(rows), declared(rows)
    assert list(models.roles(declared).outputs) == ["a", "b"]
    for name in outputs:
        assert after[name].dtype == before[name].dtype
        np.testing.assert_array_equal(after[name], before[name])


def test_the_policy_stays():
    """Without it Keras does not scale the loss, and small gradients vanish."""
    for structure in (list, dict):
        keras.config.set_dtype_policy("mixed_float16")
        model = two_answers(structure)
        keras.config.set_dtype_policy("float32")
        declared = models.declare(model, {"first": "logits", "second": "raw"})
        assert declared.dtype_policy.name == "mixed_float16"
        declared.compile("sgd", "mse")
        scaled = keras.optimizers.LossScaleOptimizer
        assert isinstance(declared.optimizer, scaled)


def test_a_mask_is_passed_on():
    words = keras.Input((3,), dtype="int32")
    x = keras.layers.Embedding(5, 2, mask_zero=True)(words)
    model = models.declare(keras.Model(words, x), {"vectors": "raw"})
    mask = model(np.array([[1, 2, 0]]))._keras_mask
    np.testing.assert_array_equal(mask, [[True, True, False]])


def test_a_sequential_model():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    declared = models.declare(model, {"shares": "logits"})
    rows = np.ones((2, 4), "float32")
    np.testing.assert_array_equal(declared(rows), model(rows))
    assert models.roles(declared).outputs == {"shares": "logits"}


def test_the_last_declaration_counts():
    """And one inside of a model is none of that model."""
    inner = models.relations_classifier("mlp1")
    model = keras.Model(inner.inputs, keras.layers.Dense(1)(inner.outputs[0]))
    assert models.roles(model).outputs == {"outputs": None}
    model = models.declare(model, {"score": "raw"}, parts={"body": "central"})
    model = models.declare(model, {"price": "raw"}, parts={"body": "hidden"})
    assert models.roles(model).outputs == {"price": "raw"}
    assert models.part(model, "body").name == "hidden"


def undeclared(model):
    """The same model as an earlier version built it: by names alone."""
    x = model.outputs[0]._keras_history.operation.input
    kind = {"logits": "logits", "raw": "predicted"}
    (declared,) = models.roles(model).outputs.values()
    return keras.Model(
        model.input, keras.layers.Identity(name=kind[declared])(x)
    )


@pytest.mark.parametrize("name", sorted({*BUILDERS} - {"agent", "mine"}))
def test_models_that_earlier_versions_saved(name, tmp_path):
    model = BUILDERS[name]()
    if name == "relations_classifier":
        old = keras.Model(model.input, models.part(model, "logits").output)
    else:
        old = undeclared(model)
    old = saved(old, tmp_path)
    assert not [x for x in old.layers if isinstance(x, DeclaredRoles)]
    assert models.roles(old)[:2] == models.roles(model)[:2]
    for role in models.roles(model).parts:
        assert models.part(old, role).name == models.part(model, role).name


def test_a_model_that_an_earlier_version_saved_is_exported(tmp_path):
    model = undeclared(BUILDERS["visual_analogy_scorer"]())
    serving.export_model(saved(model, tmp_path), tmp_path / "served")


def test_any_model_is_exported_as_it_declares(tmp_path):
    model = mine()
    signature = exported(model, tmp_path)["serving_default"]
    rows = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    state = np.ones((2, 5), "float32")
    answers = answer(signature, what_i_see=rows, what_i_remember=state)
    assert set(answers) == {
        *("probabilities", "label", "worth", "what_i_remember")
    }
    value, logits, new_state = model.predict([rows, state], verbose=0)
    np.testing.assert_allclose(answers["worth"], value, atol=1e-5)
    np.testing.assert_allclose(answers["what_i_remember"], new_state, atol=1e-5)
    np.testing.assert_allclose(
        answers["probabilities"], tf.nn.softmax(logits), atol=1e-5
    )


def two_answers(structure=list, names=("first", "second")):
    """Two outputs of different shapes. The first is a choice."""
    x = keras.Input((4,), name="x")
    outputs = [
        keras.layers.Dense(units, name=name)(x)
        for units, name in zip((3, 2), names, strict=True)
    ]
    if structure is not list:
        outputs = structure(zip(names, outputs, strict=True))
    return keras.Model(x, outputs)


KINDS = {"shape": "logits", "colour": "raw"}


@pytest.mark.parametrize("order", [(1, 0), (0,), (1,)], ids=str)
def test_roles_go_with_the_outputs(order, tmp_path):
    """Of a model that is built again from some, or in another order."""
    model = models.declare(two_answers(), KINDS, parts={"head": "first"})
    again = keras.Model(model.inputs, [model.outputs[i] for i in order])
    expected = [list(KINDS.items())[i] for i in order]
    for copy in (
        again,
        saved(again, tmp_path),
        keras.models.clone_model(again),
        models.declare(again, dict(expected), parts={"head": "first"}),
    ):
        assert list(models.roles(copy).outputs.items()) == expected
        assert models.part(copy, "head").name == "first"
    signature = exported(again, tmp_path / "served")["serving_default"]
    answers = answer(signature, x=np.ones((2, 4)))
    for name, logits in zip(KINDS, model(np.ones((2, 4))), strict=True):
        if name in dict(expected):
            is_choice = name == "shape"
            np.testing.assert_allclose(
                answers.pop("probabilities" if is_choice else name),
                tf.nn.softmax(logits) if is_choice else logits,
                rtol=1e-5,
            )
    assert set(answers) <= {"label"}


def test_roles_of_a_model_with_one_more_output():
    model = models.declare(two_answers(), KINDS, parts={"head": "first"})
    extra = keras.layers.Dense(1, name="extra")(model.inputs[0])
    again = keras.Model(model.inputs, [extra, *reversed(model.outputs)])
    assert models.roles(again) == (
        {"extra": None, "colour": "raw", "shape": "logits"},
        (),
        {"head": "first"},
    )
    again = keras.Model(model.inputs, [*model.outputs, model.outputs[0]])
    with pytest.raises(ValueError, match=r"shape more than once\. models\.dec"):
        models.roles(again)
    assert models.part(again, "head").name == "first"  # It is certain.
    named = models.declare(again, {"a": "raw", "b": "raw", "c": "logits"})
    assert list(models.roles(named).outputs) == ["a", "b", "c"]


def test_states_go_with_the_outputs():
    model = mine()
    worth, move, memory = model.outputs
    inputs = model.inputs
    roles = models.roles(keras.Model(inputs, [move, worth, memory]))
    assert list(roles.outputs) == ["move", "worth"]
    assert roles.states == ("what_i_remember",)
    roles = models.roles(keras.Model(inputs, [worth, move]))
    assert list(roles.outputs) == ["worth", "move"]
    assert roles.states == ()
    for bad in (
        keras.Model(inputs, [memory, worth, move]),
        keras.Model(inputs[::-1], [worth, move, memory]),
    ):
        with pytest.raises(ValueError, match="must be its last inputs, and it"):
            models.roles(bad)


def test_names_that_outputs_have_go_to_them(tmp_path):
    """In whatever order they are declared."""
    names, swapped = ("b", "a"), {"a": "raw", "b": "logits"}
    for structure in (list, dict, collections.OrderedDict):
        model = two_answers(structure, names)
        for declared in (swapped, dict(reversed(swapped.items()))):
            declared = models.declare(model, declared)
            for copy in (declared, saved(declared, tmp_path)):
                assert models.roles(copy).outputs == swapped
                shapes = dict(
                    zip(models.roles(copy).outputs, copy.outputs, strict=True)
                )
                assert shapes["b"].shape[-1] == 3
                assert shapes["a"].shape[-1] == 2
        again = models.declare(declared, {"a": "raw", "b": "logits"})
        assert models.roles(again).outputs == swapped
    refused = r"the names that they have, or new names in the model's order"
    with pytest.raises(ValueError, match=refused):
        models.declare(two_answers(list, names), {"a": "raw", "c": "raw"})
    with pytest.raises(ValueError, match=refused):
        models.declare(two_answers(dict, names), {"c": "raw", "d": "raw"})


def test_names_of_outputs_in_a_nested_dictionary(tmp_path):
    x = keras.Input((4,), name="x")
    outputs = [keras.layers.Dense(n)(x) for n in (1, 2, 3)]
    model = keras.Model(x, {"b": outputs[:2], "a": outputs[2]})
    assert list(models.roles(model).outputs) == ["a", "b_0", "b_1"]
    signature = exported(model, tmp_path, outputs="raw")["serving_default"]
    outputs = signature.structured_outputs
    sizes = {name: spec.shape[1] for name, spec in outputs.items()}
    assert sizes == {"a": 3, "b_0": 1, "b_1": 2}


def test_outputs_in_a_dictionary_by_their_names():
    model = mine()
    named = models.named_outputs(model)
    frames = np.random.default_rng(0).normal(size=(2, 3, 4))
    answers = named([frames, np.ones((2, 5))])
    wanted = model([frames, np.ones((2, 5))])
    names = ["worth", "move", "next_what_i_remember"]
    assert set(answers) == set(names)
    for name, expected in zip(names, wanted, strict=True):
        np.testing.assert_array_equal(answers[name], expected)
    plain = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    assert set(models.named_outputs(plain).output) == {"outputs"}


def test_images_stay_images_under_their_names():
    model = models.relations_classifier(num_heads=2, key_dim=4)
    pixels = np.random.default_rng(0).integers(256, size=(2, 36, 36, 3))
    named = models.named_outputs(model)
    np.testing.assert_array_equal(
        named(pixels / np.float32(255))["logits"], model(pixels.astype("uint8"))
    )


def test_an_output_with_the_name_of_an_input_has_no_file():
    x = keras.Input((4,), name="x")
    model = models.declare(
        keras.Model(x, [x + 1, x + 2]), {"x": "raw", "y": "raw"}
    )
    with pytest.raises(ValueError, match="x more than once"):
        models.named_outputs(model)


def test_a_name_that_a_number_would_take():
    x = keras.Input((4,))
    outputs = [
        keras.layers.Dense(2)(x),
        keras.layers.Dense(2, name="output_0")(x),
    ]
    with pytest.raises(ValueError, match="output_0 more than once"):
        models.roles(keras.Model(x, outputs))
    with pytest.raises(ValueError, match="state_0 more than once"):
        models.declare(
            agent(),
            {"policy": "logits", "state_0": "raw"},
            states=["state_0", "state_1"],
        )


def test_an_input_named_as_a_state_need_not_be_one():
    x = keras.Input((4,), name="x")
    country = keras.Input((2,), name="state_0")
    outputs = [
        keras.layers.Dense(3, name="logits")(x),
        keras.layers.Dense(5, name="price")(country),
    ]
    model = keras.Model([x, country], outputs)
    assert models.roles(model)[:2] == ({"logits": "logits", "price": None}, ())
    model = keras.Model([country, x], outputs)
    assert models.roles(model)[:2] == ({"logits": "logits", "price": None}, ())


@keras.saving.register_keras_serializable("test_declared_roles")
class Lookup(keras.layers.Layer):
    """Any layer can say what its indices must be below."""

    def call(self, table, places):
        return keras.ops.take_along_axis(table, places, axis=1)

    def index_bounds(self, table, places):
        return {"places": (places, table.shape[1], "the size of the table")}


def test_indices_of_any_layer_are_checked(tmp_path):
    table = keras.Input((3,), name="table")
    places = keras.Input((2,), dtype="int32", name="places")
    model = keras.Model([table, places], Lookup()(table, places))
    signature = exported(model, tmp_path, outputs="raw")["serving_default"]
    rows = np.ones((1, 3))
    assert answer(signature, table=rows, places=[[0, 2]])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"places must be.*below the size"
    ):
        answer(signature, table=rows, places=[[0, 3]])


def test_what_does_not_fit_is_refused():
    model = keras.Sequential([keras.layers.Dense(2)])
    with pytest.raises(ValueError, match=r"Give it a keras\.Input, or "):
        models.declare(model, {"a": "raw"})
    with pytest.raises(ValueError, match=r"Give it a keras\.Input, or "):
        models.roles(model)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match=r"'classes'.*logits, probabilities"):
        models.declare(model, {"a": "classes"})
    with pytest.raises(ValueError, match=r"every output.*a model of 1 outputs"):
        models.declare(model, {"a": "raw", "b": "raw"})
    with pytest.raises(ValueError, match="No such layer: encoder"):
        models.declare(model, {"a": "raw"}, parts={"encoder": "encoder"})
    with pytest.raises(ValueError, match=r"no part 'core'.*\['encoder', 'cen"):
        models.part(
            models.declare(
                models.relations_classifier(),
                {"logits": "logits"},
                parts={"encoder": "encoder", "central": "central"},
            ),
            "core",
        )
    model = agent()
    outputs = {"policy": "logits", "value": "raw"}
    with pytest.raises(ValueError, match=r"last inputs.*'is_first', 'state_0'"):
        models.declare(model, outputs, states=["state_1", "state_0"])
