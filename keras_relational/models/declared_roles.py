"""The roles of a model's states, outputs and parts.

The function that builds a model declares the roles once. Training, analysis and
export read them here. So no other file looks up a layer by its name or its
position.
"""

import re
import typing
from collections.abc import Mapping
from collections.abc import Sequence

import keras

from keras_relational.models.image_model import as_image_model
from keras_relational.validation import check_choice

KINDS = ("logits", "probabilities", "raw")

# The kind of an output by the name of its layer, for models that declare
# nothing.
_KIND_OF_NAME = {
    "logits": "logits",
    "policy": "logits",
    "probabilities": "probabilities",
    "predicted": "raw",
}

_CROSS_ENTROPIES = (
    keras.losses.CategoricalCrossentropy,
    keras.losses.SparseCategoricalCrossentropy,
)


class Roles(typing.NamedTuple):
    """The roles of a model's inputs, outputs and layers, by their names.

    Attributes:
        outputs: Dictionary from the name of each output, in the model's order,
            to its kind: `"logits"`, `"probabilities"`, `"raw"`, or `None` if
            the kind is not known. States are left out.
        states: Names of the inputs that are states. They are the model's last
            inputs. The model's last outputs are the new states, in the same
            order.
        parts: Dictionary from the role of a layer to its name. The name of a
            layer inside another model is a path, such as
            `"scorer/normalization"`.
    """

    outputs: dict[str, str | None]
    states: tuple[str, ...]
    parts: dict[str, str]


def declare(
    model: keras.Model,
    outputs: Mapping[str, str | None],
    states: Sequence[str] = (),
    parts: Mapping[str, str] | None = None,
) -> keras.Model:
    """Declares the outputs, states and parts of a model.

    `roles` reads the declaration, even after the model was saved and loaded, or
    cloned. If a model is declared twice, the last declaration counts.

    Args:
        model: Functional or sequential `keras.Model` that is built.
        outputs: Dictionary from a name for each output to its kind.
            `"logits"`: a softmax of the output gives the probabilities of
            classes. `"probabilities"`: the output is these probabilities.
            `"raw"`: anything else, such as an image or a value. Names that the
            outputs have already, as keys of a dictionary or by their layers,
            go to these outputs. New names go by the model's order. Outputs in a
            dictionary keep its keys.
        states: Names of the inputs that are states of a recurrent model. They
            must be its last inputs. The model's last outputs, which `outputs`
            leaves out, must be the new states in the same order.
        parts: Dictionary from the role of a layer, such as `"encoder"`, to the
            layer's name. A layer inside another model is named by its path,
            such as `"scorer/normalization"`.

    Returns:
        `keras.Model` with the same inputs, outputs, layers and weights. Compile
        this new model. If it divides images of uint8 by 255 or 256, it also
        takes them as floats, from 0 to 255 or from 0 to 1.

    Raises:
        ValueError: If the names or kinds do not fit the model.

    Example:

    >>> x = keras.Input((4,))
    >>> model = keras.Model(x, keras.layers.Dense(3, name="scores")(x))
    >>> model = declare(model, {"scores": "logits"}, parts={"head": "scores"})
    >>> roles(model).outputs, part(model, "head").units
    ({'scores': 'logits'}, 3)
    """
    check_built(model)
    for kind in outputs.values():
        check_choice("kind of output", kind, KINDS)
    if len(outputs) + len(states) != len(model.outputs):
        raise ValueError(
            "`outputs` must name every output of the model except the states. "
            f"Received: outputs={outputs}, states={states}, for a model of "
            f"{len(model.outputs)} outputs"
        )
    input_names = [x.name for x in model.inputs]
    if states and input_names[-len(states) :] != list(states):
        raise ValueError(
            "`states` must be the names of the model's last inputs. Received: "
            f"states={states}, for a model with the inputs {input_names}"
        )
    names = _in_order(model, outputs)
    _check_unique([*names, *states])
    for path in (parts or {}).values():
        _layer_at(model, path)
    # A list, because Keras may load a dictionary in another order.
    tensors = model.outputs if len(model.outputs) > 1 else model.outputs[0]
    named = {name: outputs[name] for name in names}
    tensors = DeclaredRoles(named, states, parts or {})(tensors)
    structure = tensors
    if not isinstance(model, keras.Sequential):
        structure = keras.tree.pack_sequence_as(
            model.output, keras.tree.flatten(tensors)
        )
    return _with_outputs(model, structure)


def named_outputs(model: keras.Model) -> keras.Model:
    """The same model, with its outputs in a dictionary under their names.

    Keras writes the keys of a dictionary into the files that `model.export`
    makes. So an ONNX or LiteRT file of this model has the names of the inputs,
    and those of the outputs that `roles` tells. A new state is called `next_`
    and the name of the state, because in ONNX no output has the name of an
    input.

    Args:
        model: Functional or sequential `keras.Model` that is built.

    Returns:
        `keras.Model` with the same inputs, layers and weights. Its outputs are
        in the order of their names.

    Raises:
        ValueError: As `roles` raises it, or if an output has an input's name.

    Example:

    >>> x = keras.Input((4,), name="features")
    >>> y = keras.layers.Dense(3)(x)
    >>> model = declare(keras.Model(x, [y, x + 1]), {"a": "logits", "b": "raw"})
    >>> sorted(named_outputs(model).output)
    ['a', 'b']
    """
    declared = roles(model)
    names = [*declared.outputs, *(f"next_{x}" for x in declared.states)]
    _check_unique([*names, *(x.name for x in model.inputs)])
    return _with_outputs(model, dict(zip(names, model.outputs, strict=True)))


def roles(model: keras.Model) -> Roles:
    """The roles that a model declares.

    A declaration goes with the outputs, not with their places: a model that is
    built again from some of them, or in another order, has their names and
    kinds. An output that is new there has no kind.

    If a model declares nothing, for example because an earlier version saved
    it, the roles follow from names. Each layer is a part, with its own name as
    the role. Inputs `state_0`, `state_1`, ... are states. The kind of an output
    is known in three cases: it is a softmax, its layer is named `"logits"`,
    `"policy"`, `"probabilities"` or `"predicted"`, or the model was compiled
    with a categorical cross-entropy of logits. Only one output gets a kind in
    this way.

    Args:
        model: Functional or sequential `keras.Model` that is built.

    Returns:
        `Roles`.

    Raises:
        ValueError: If the model is not built, if two outputs have one name, or
            if declared states are not the last inputs and outputs.
    """
    check_built(model)
    if not _declarations(model):
        return _roles_by_name(model)
    names = numbered(_given_names(model), "output")
    kinds = [_declared(x)[1] for x in model.outputs]
    number = len(kinds) - kinds.count("state")
    outputs, states = names[:number], names[number:]
    inputs = [x.name for x in model.inputs]
    last_inputs = inputs[len(inputs) - len(states) :]
    if "state" in kinds[:number] or states != last_inputs:
        raise ValueError(
            "The states of a model must be its last inputs, and its last "
            f"outputs in the same order. Received: the inputs {inputs} and the "
            f"outputs {names}. Build the model in that order, or declare its "
            "outputs anew, by models.declare(model, ...)"
        )
    kinds_of = dict(zip(outputs, kinds[:number], strict=True))
    return Roles(kinds_of, tuple(states), _parts(model))


def answer_index(declared: Roles) -> int:
    """The answer's index: the first choice, else the first `"raw"`, else 0."""
    kinds = list(declared.outputs.values())
    for wanted in (("logits", "probabilities"), ("raw",)):
        for index, kind in enumerate(kinds):
            if kind in wanted:
                return index
    return 0


def part(model: keras.Model, role: str) -> keras.layers.Layer:
    """The layer of a model that has a role.

    Args:
        model: Functional or sequential `keras.Model` that is built.
        role: Role of the layer, as the model declares it.

    Returns:
        The layer.

    Raises:
        ValueError: If the model has no such part.
    """
    check_built(model)
    parts = _parts(model)
    if role not in parts:
        raise ValueError(
            f"The model {model.name} has no part {role!r}. Its parts are: "
            f"{list(parts)}. models.declare(model, ..., parts="
            f"{{{role!r}: 'name_of_layer'}}) adds one"
        )
    return _layer_at(model, parts[role])


def check_built(model: keras.Model) -> None:
    """Raises a `ValueError` unless a model has inputs and outputs."""
    if not getattr(model, "outputs", None) or not model.inputs:
        raise ValueError(
            "`model` must be a functional or sequential Keras model that is "
            "built, so that the shapes of its inputs are known. Give it a "
            f"keras.Input, or call it once. Received: {model!r}"
        )


@keras.saving.register_keras_serializable(package="keras_relational")
class DeclaredRoles(keras.layers.Layer):
    """Returns a model's outputs unchanged, and holds the model's roles.

    `declare` adds this layer to a model. The roles are then saved, loaded and
    cloned with the model. The arguments are those of `declare`.
    """

    def __init__(
        self,
        outputs: Mapping[str, str | None],
        states: Sequence[str],
        parts: Mapping[str, str],
        **kwargs: typing.Any,
    ) -> None:
        # Outputs keep their precision under a mixed dtype policy.
        super().__init__(autocast=False, **kwargs)
        self.roles = Roles(dict(outputs), tuple(states), dict(parts))
        self.supports_masking = True

    def call(self, outputs: typing.Any) -> typing.Any:
        return outputs

    def compute_output_shape(self, outputs_shape: typing.Any) -> typing.Any:
        return outputs_shape

    def compute_output_spec(self, outputs: typing.Any) -> typing.Any:
        return keras.tree.map_structure(
            lambda x: keras.KerasTensor(x.shape, x.dtype), outputs
        )

    def get_config(self) -> dict[str, typing.Any]:
        return {
            **super().get_config(),
            "outputs": dict(self.roles.outputs),
            "states": list(self.roles.states),
            "parts": dict(self.roles.parts),
        }


def _check_unique(names: Sequence[str]) -> None:
    twice = sorted({x for x in names if names.count(x) > 1})
    if twice:
        raise ValueError(
            "Each input and each output needs a name of its own. Received: "
            f"{names}, with {', '.join(twice)} more than once. "
            "models.declare(model, outputs) names outputs anew"
        )


def _with_outputs(model: keras.Model, outputs: typing.Any) -> keras.Model:
    """A model of the same inputs and layers, with other outputs."""
    is_list = isinstance(model, keras.Sequential)
    inputs = model.inputs[0] if is_list else model.input
    changed = as_image_model(keras.Model(inputs, outputs, name=model.name))
    # Keras takes the global policy, and scales no loss without this one.
    changed.dtype_policy = model.dtype_policy
    return changed


def _in_order(
    model: keras.Model, outputs: Mapping[str, str | None]
) -> list[str]:
    """The names in the order of the model's outputs."""
    names = list(outputs)
    given = _given_names(model)[: len(names)]
    if set(names) == set(given):
        return [x for x in given if x is not None]
    # It is a mistake to give an output's name to another output. The outputs
    # of a dictionary have no order that an author would know.
    is_dict = isinstance(getattr(model, "output", None), dict)
    pairs = zip(names, given, strict=True)
    is_moved = any(x != y and x in given for x, y in pairs)
    if is_moved or (is_dict and len(names) > 1):
        raise ValueError(
            "`outputs` must give the model's outputs the names that they have, "
            "or new names in the model's order. Received: names "
            f"{names}, for the outputs {given}, where Keras sorts a dictionary "
            "by its keys, and states come last"
        )
    return names


def _layer_at(model: keras.Model, path: str) -> keras.layers.Layer:
    layer = model
    for name in path.split("/"):
        layer = layer.get_layer(name)
    return layer


def _maker(tensor: keras.KerasTensor) -> keras.Operation:
    """The layer or operation that makes a tensor of a model."""
    return tensor._keras_history.operation


def _declarations(model: keras.Model) -> list["DeclaredRoles"]:
    makers = {id(x): x for x in map(_maker, model.outputs)}
    return [x for x in makers.values() if isinstance(x, DeclaredRoles)]


def _declared(tensor: keras.KerasTensor) -> tuple[str | None, str | None]:
    """Name and kind that an output was declared with, or twice `None`."""
    maker, _, index = tensor._keras_history
    if not isinstance(maker, DeclaredRoles):
        return None, None
    outputs, states, _ = maker.roles
    return [*outputs.items(), *((x, "state") for x in states)][index]


def _parts(model: keras.Model) -> dict[str, str]:
    declarations = _declarations(model)
    if len(declarations) == 1:
        return dict(declarations[0].roles.parts)
    return _parts_by_name(model)


# Models that declare nothing.


def _roles_by_name(model: keras.Model) -> Roles:
    names = numbered(_given_names(model), "output")
    states = _states_by_name(model)
    known = [i for i, name in enumerate(names) if name in _KIND_OF_NAME]
    answer = known[0] if len(known) == 1 else 0
    kinds: dict[str, str | None] = dict.fromkeys(
        names[: len(names) - len(states)]
    )
    if names[answer] in kinds:
        kinds[names[answer]] = _kind(model, answer, names[answer])
    return Roles(kinds, tuple(states), _parts_by_name(model))


def _states_by_name(model: keras.Model) -> list[str]:
    """The last inputs, if their names and the last outputs' shapes fit."""
    shapes = {
        x.name: x.shape for x in model.inputs if re.match(r"state_\d+$", x.name)
    }
    number = len(shapes)
    fits = (
        0 < number < len(model.outputs)
        and [x.name for x in model.inputs[-number:]] == list(shapes)
        and [x.shape for x in model.outputs[-number:]] == [*shapes.values()]
    )
    return list(shapes) if fits else []


def _kind(model: keras.Model, index: int, name: str) -> str | None:
    """The kind of an output, or `None` if it is not certain."""
    output = model.outputs[index]
    maker = _maker(output)
    if isinstance(maker, keras.layers.Softmax):
        is_softmax = maker.axis in (-1, len(output.shape) - 1)
    else:
        activation = getattr(maker, "activation", None)
        is_softmax = activation is keras.activations.softmax
    if is_softmax:
        return "probabilities"
    if name in _KIND_OF_NAME:
        return _KIND_OF_NAME[name]
    loss = getattr(model, "loss", None)
    if (
        len(model.outputs) == 1
        and isinstance(loss, _CROSS_ENTROPIES)
        and loss.get_config()["from_logits"]
    ):
        return "logits"
    return None


def _given_names(model: keras.Model) -> list[str | None]:
    """The names that outputs were declared with, or that their author gave."""
    structure = getattr(model, "output", None)  # A Sequential has none.
    names: list[str | None]
    if isinstance(structure, dict):
        names = [*paths_in(structure)]
    else:
        makers = map(_maker, model.outputs)
        names = [None if _is_named_by_keras(x) else x.name for x in makers]
        # Several outputs of one layer would share its name.
        names = [x if names.count(x) == 1 else None for x in names]
    declared = [_declared(x)[0] for x in model.outputs]
    return [x or name for x, name in zip(declared, names, strict=True)]


def _is_named_by_keras(layer: keras.Operation) -> bool:
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", type(layer).__name__)
    name = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
    return re.fullmatch(rf"{name}(_\d+)?", layer.name) is not None


def paths_in(structure: typing.Any) -> list[str]:
    """Names of nested tensors by keys and places, such as `key` and `key_0`.

    They are in the order in which Keras flattens the tensors.
    """
    paths = keras.tree.flatten_with_path(structure)
    return ["_".join(map(str, path)) for path, _ in paths]


def numbered(names: Sequence[str | None], word: str) -> list[str]:
    """Fills the gaps in a list of names with `word_0`, `word_1`, ...

    `None` stands for a missing name. A `ValueError` says if `word_0` is taken.
    """
    if list(names) == [None]:
        return [f"{word}s"]
    filled = [x or f"{word}_{i}" for i, x in enumerate(names)]
    _check_unique(filled)
    return filled


def _parts_by_name(model: keras.Model) -> dict[str, str]:
    """Every layer by its name, including the layers of inner models."""
    parts = {layer.name: layer.name for layer in model.layers}
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            for role, path in _parts_by_name(layer).items():
                parts.setdefault(role, f"{layer.name}/{path}")
    return parts
