"""Exports and presets of models whose outputs have any names and orders.

Each output must come back as the model computes it, under its own name, or the
export must be refused for a reason that is known here.
"""

import dataclasses
import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from fuzz import draws
from keras_relational import layers
from keras_relational import models
from keras_relational import serving
from keras_relational.models.declared_roles import KINDS
from keras_relational.serving.servable import Servable

NAMES = (
    *("logits", "label", "probabilities", "distances", "box"),
    *("output_0", "output_1", "state_0", "x"),
)
REFUSALS = (
    "The export adds an output",
    "The kind of the model's answer is not certain",
    "Each input and each output needs a name of its own",
)
ADDED = {"probabilities", "label"}
PREDINET = {
    *("positions_1", "positions_2", "distances"),
    *("attention_scores_1", "attention_scores_2"),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A model and how it is exported."""

    names: tuple  # Of the outputs.
    structure: str  # "list", "tuple", "dict" or "single".
    kinds: tuple | None  # Of the outputs, if they are declared.
    declared_order: tuple  # Of the names.
    order: tuple  # Outputs of the model that is built again, by place.
    rows: tuple  # Of each output for an example.
    has_predinet: bool  # Whether there are propositions.
    kind: str | None  # Argument `outputs` of the export.
    batch_size: int


@st.composite
def cases(draw):
    """Draws a `Case`."""
    names = draw(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)
    )
    number, places = len(names), range(len(names))
    structures = ["list", "tuple", "dict"] + ["single"] * (number == 1)
    each = {"min_size": number, "max_size": number}
    kinds = st.lists(st.sampled_from(KINDS), **each).map(tuple)
    order = st.lists(st.sampled_from(places), min_size=1, max_size=4)
    return Case(
        names=tuple(names),
        structure=draw(st.sampled_from(structures)),
        kinds=draw(st.none() | kinds),
        declared_order=tuple(draw(st.permutations(places))),
        order=tuple(draw(st.just(list(places)) | order)),
        rows=tuple(draw(st.lists(st.sampled_from((1, 1, 4)), **each))),
        has_predinet=draw(st.booleans()),
        kind=draw(st.sampled_from((None, None, *KINDS))),
        batch_size=draw(st.integers(1, 5)),
    )


def built(case):
    """The model."""
    x = keras.Input((4, 3), name="entities")
    features = layers.PrediNet(1, 2, 3)(x) if case.has_predinet else x[:, 0]
    outputs = []
    for place, (name, rows) in enumerate(
        zip(case.names, case.rows, strict=True)
    ):
        # Positive, and of the sum 1: a choice of any kind.
        y = keras.layers.Dense((place + 2) * rows)(features)
        y = keras.ops.softmax(keras.ops.reshape(y, (-1, place + 2)))
        outputs.append(keras.layers.Identity(name=name)(y))
    structure = outputs
    if case.structure == "dict":
        structure = dict(zip(case.names, outputs, strict=True))
    elif case.structure == "single":
        (structure,) = outputs
    elif case.structure == "tuple":
        structure = tuple(outputs)
    model = keras.Model(x, structure)
    if case.kinds is not None:
        places = case.declared_order
        declared = {case.names[i]: case.kinds[i] for i in places}
        model = models.declare(model, declared)
    if case.structure == "single" and case.order == (0,):
        return model
    # By width, which no two outputs share.
    by_place = {y.shape[-1] - 2: y for y in model.outputs}
    return keras.Model(model.inputs[0], [by_place[i] for i in case.order])


def names_of(case):
    """The names of the outputs, or `None` if two have one name."""
    names = [case.names[i] for i in case.order]
    if case.kinds is None:  # One output twice has numbers in place of names.
        names = [
            name if names.count(name) == 1 else f"output_{i}"
            for i, name in enumerate(names)
        ]
    return names if len(set(names)) == len(names) else None


def answer_of(case, names):
    """Name and kind of the answer."""
    if case.kinds is None:  # The name tells, if there is one such name.
        known = [x for x in names if x in ("logits", "probabilities")]
        chosen = known[0] if len(known) == 1 else names[0]
        return chosen, case.kind or (chosen if chosen in known else None)
    kinds = dict(zip(case.names, case.kinds, strict=True))
    choices = [x for x in names if kinds[x] != "raw"]
    chosen = [*choices, *names][0]
    return chosen, case.kind or kinds[chosen]


def is_refused(case, names):
    """Whether the export must be refused."""
    if names is None:
        return True
    chosen, kind = answer_of(case, names)
    others = set(names) if kind == "raw" else set(names) - {chosen}
    added = set(PREDINET) if case.has_predinet else set()
    if kind != "raw":
        added |= ADDED
    return kind is None or bool(others & added)


def check(case):
    """Returns `"answered"` or `"refused"`; an `AssertionError` is a finding."""
    model, names = built(case), names_of(case)
    x = np.random.default_rng(0).normal(size=(case.batch_size, 4, 3))
    x = x.astype("float32")
    expected = [np.asarray(y) for y in keras.tree.flatten(model(x))]
    with tempfile.TemporaryDirectory() as folder:
        models.save_to_preset(model, pathlib.Path(folder) / "preset")
        loaded = models.from_preset(pathlib.Path(folder) / "preset")
        again = keras.tree.flatten(loaded(x))
        for one, other in zip(expected, again, strict=True):
            np.testing.assert_array_equal(one, np.asarray(other))
        if names is not None:
            roles = models.roles(model)
            _must(models.roles(loaded) == roles, "other roles when loaded")
            _must(list(roles.outputs) == names, f"named as {roles.outputs}")
        refused = is_refused(case, names)
        try:
            path = serving.export_model(loaded, folder, outputs=case.kind)
        except ValueError as error:
            known = any(x in str(error) for x in REFUSALS)
            _must(refused and known, f"refused: {error}")
            left = [x.name for x in pathlib.Path(folder).iterdir()]
            _must(left == ["preset"], f"left over: {left}")
            return "refused"
        _must(not refused, "not refused")
        servable = Servable(path)
        signatures = ["serving_default"]
        signatures += ["propositions"] * case.has_predinet
        for signature in signatures:
            answer = servable.predict(signature, {"entities": x})
            _check_answer(case, names, signature, answer, expected)
            empty = servable.predict(signature, {"entities": x[:0]})
            lengths = {len(value) for value in empty.values()}
            _must(lengths == {0}, "an empty batch has rows")
    return "answered"


def _must(condition, problem):
    if not condition:
        raise AssertionError(problem)


def _check_answer(case, names, signature, answer, expected):
    chosen, kind = answer_of(case, names)
    values = dict(zip(names, expected, strict=True))
    if kind != "raw":
        value = values.pop(chosen)
        if kind == "logits":
            value = tf.nn.softmax(value)
        values["probabilities"] = value
        values["label"] = np.argmax(value, axis=-1)
    added = PREDINET if signature == "propositions" else set()
    _must(set(answer) == set(values) | added, f"answers {sorted(answer)}")
    for name, value in values.items():
        np.testing.assert_allclose(answer[name], value, 1e-4, err_msg=name)


def run(report, num_cases):
    """Draws so many cases, and shrinks the first that fails."""

    def problem_of(case):
        keras.backend.clear_session()
        keras.utils.set_random_seed(0)
        try:
            report.add("exports", check(case))
        except Exception as error:
            return (
                f"{error!r:.300}\nfrom fuzz.exports import *\ncheck({case!r})"
            )

    found = draws.smallest_failure(report.seed, cases(), problem_of, num_cases)
    if found:
        _, problem = found
        report.find("exports", None, "exports", problem)
    report.row(
        "Exports and presets of models with any names of outputs",
        report.number("exports"),
        f"{report.found('exports')} findings",
    )
