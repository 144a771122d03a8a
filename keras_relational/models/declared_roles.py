"""What a model says about itself: its states, its outputs and its parts.

A builder declares the roles once. Training, analysis and export read them
here, so that no other file looks a layer up by its name or its place.
"""

import re
import typing
from collections.abc import Mapping
from collections.abc import Sequence

import keras

from keras_relational.validation import check_choice

KINDS = ("logits", "probabilities", "raw")

# For models that declare nothing: the kind of an output, by its layer's name.
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
            the kind is not known. States are not among them.
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
    outputs: Mapping[str, str],
    states: Sequence[str] = (),
    parts: Mapping[str, str] | None = None,
) -> keras.Model:
    """Declares what a model's outputs, states and parts are.

    `roles` reads the declaration, also after the model was saved and loaded, or
    cloned. The last declaration counts.

    Args:
        model: Functional or sequential `keras.Model` that is built.
        outputs: Dictionary from a name for each output, in the model's order,
            to its kind. `"logits"`: a softmax of the output gives the
            probabilities of classes. `"probabilities"`: the output is these
            probabilities. `"raw"`: anything else, such as an image or a value.
        states: Names of the inputs that are states of a recurrent model. They
            must be its last inputs. The model's last outputs, which `outputs`
            leaves out, must be the new states in the same order.
        parts: Dictionary from the role of a layer, such as `"encoder"`, to the
            layer's name. A layer inside another model is named by its path,
            such as `"scorer/normalization"`.

    Returns:
        `keras.Model` with the same inputs, outputs, layers and weights. Compile
        this one.

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
    declared = Roles(dict(outputs), tuple(states), dict(parts or {}))
    for kind in declared.outputs.values():
        check_choice("kind of output", kind, KINDS)
    _check_numbers(model, declared)
    for path in declared.parts.values():
        _layer_at(model, path)
    inputs, tensors = model.inputs, model.outputs
    if not isinstance(model, keras.Sequential):
        inputs, tensors = model.input, model.output
    elif len(tensors) == 1:
        (inputs,), (tensors,) = inputs, tensors
    tensors = DeclaredRoles(**declared._asdict())(tensors)
    return keras.Model(inputs, tensors, name=model.name)


def roles(model: keras.Model) -> Roles:
    """The roles that a model declares.

    A model that declares nothing, such as one from a file of an earlier
    version, is read by Keras' names: each layer is a part of its own name;
    inputs `state_0`, `state_1`, ... are states; and the kind of one output is
    taken from a softmax, from its layer's name (`"logits"`, `"policy"`,
    `"probabilities"` or `"predicted"`), or from a categorical cross-entropy of
    logits that the model was compiled with.

    Args:
        model: Functional or sequential `keras.Model` that is built.

    Returns:
        `Roles`.

    Raises:
        ValueError: If the model is not built.
    """
    check_built(model)
    makers = {id(x): x for x in map(_maker, model.outputs)}
    if len(makers) == 1:
        (maker,) = makers.values()
        if isinstance(maker, DeclaredRoles):
            return maker.roles
    return _roles_by_name(model)


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
    parts = roles(model).parts
    if role not in parts:
        raise ValueError(
            f"The model {model.name} has no part {role!r}. Its parts are: "
            f"{list(parts)}. models.declare(model, ..., parts="
            f"{{{role!r}: 'name_of_layer'}}) adds one"
        )
    return _layer_at(model, parts[role])


def check_built(model: keras.Model) -> None:
    """Raises a `ValueError` unless a model has inputs and outputs.

    Args:
        model: `keras.Model`.
    """
    if not getattr(model, "outputs", None) or not model.inputs:
        raise ValueError(
            "`model` must be a functional or sequential Keras model that is "
            "built, so that the shapes of its inputs are known. Give it a "
            f"keras.Input, or call it once. Received: {model!r}"
        )


@keras.saving.register_keras_serializable(package="keras_relational")
class DeclaredRoles(keras.layers.Layer):
    """Returns a model's outputs unchanged, and holds the model's roles.

    Being a layer, it is saved, loaded and cloned with the model. `declare` adds
    it.

    Args:
        outputs: Dictionary from a name for each output but the states, in the
            model's order, to its kind.
        states: Names of the inputs that are states.
        parts: Dictionary from the roles of layers to their names or paths.

    Call arguments:
        outputs: Tensor, or nested tensors.

    Returns:
        The same tensors.
    """

    def __init__(
        self,
        outputs: Mapping[str, str],
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


def _check_numbers(model, declared):
    outputs, states, _ = declared
    if len(outputs) + len(states) != len(model.outputs):
        raise ValueError(
            "`outputs` must name every output of the model but the states. "
            f"Received: outputs={outputs}, states={states}, for a model of "
            f"{len(model.outputs)} outputs"
        )
    names = [x.name for x in model.inputs]
    if states and names[-len(states) :] != list(states):
        raise ValueError(
            "`states` must be the names of the model's last inputs. Received: "
            f"states={states}, for a model with the inputs {names}"
        )


def _layer_at(model, path):
    layer = model
    for name in path.split("/"):
        layer = layer.get_layer(name)
    return layer


def _maker(tensor):
    """The layer or operation that makes a tensor of a model."""
    return tensor._keras_history.operation


# Models that declare nothing.


def _roles_by_name(model):
    states = [x.name for x in model.inputs if re.match(r"state_\d+$", x.name)]
    if len(states) >= len(model.outputs):
        states = []
    names = _output_names(model)
    known = [i for i, name in enumerate(names) if name in _KIND_OF_NAME]
    answer = known[0] if len(known) == 1 else 0
    kinds = dict.fromkeys(names[: len(names) - len(states)])
    if names[answer] in kinds:
        kinds[names[answer]] = _kind(model, answer, names[answer])
    return Roles(kinds, tuple(states), _parts_by_name(model))


def _kind(model, index, name):
    """The kind of an output, or `None` if it is not certain."""
    output = model.outputs[index]
    if _is_softmax(_maker(output), len(output.shape)):
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


def _is_softmax(layer, rank):
    if isinstance(layer, keras.layers.Softmax):
        return layer.axis in (-1, rank - 1)
    return getattr(layer, "activation", None) is keras.activations.softmax


def _output_names(model):
    """The names that the model's author gave the outputs, or numbers."""
    structure = getattr(model, "output", None)  # A Sequential has none.
    if isinstance(structure, dict):
        return sorted(structure)
    makers = map(_maker, model.outputs)
    names = [None if _is_named_by_keras(x) else x.name for x in makers]
    # The outputs of one layer would all have its name.
    return numbered(
        [x if names.count(x) == 1 else None for x in names], "output"
    )


def _is_named_by_keras(layer):
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", type(layer).__name__)
    name = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
    return re.fullmatch(rf"{name}(_\d+)?", layer.name) is not None


def numbered(names: Sequence[str | None], word: str) -> list[str]:
    """Completes a list of names: an only one is `words`, others `word_0`, ...

    Args:
        names: The names that were given, `None` where there is none.
        word: `"input"` or `"output"`.

    Returns:
        List of names.
    """
    if list(names) == [None]:
        return [f"{word}s"]
    return [x or f"{word}_{i}" for i, x in enumerate(names)]


def _parts_by_name(model):
    """Every layer by its name, with those of models inside the model."""
    parts = {layer.name: layer.name for layer in model.layers}
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            for role, path in _parts_by_name(layer).items():
                parts.setdefault(role, f"{layer.name}/{path}")
    return parts
