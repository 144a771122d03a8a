"""What a page runs: a model with the further outputs that the page shows."""

import pathlib
from collections.abc import Callable
from collections.abc import Mapping

import keras
import numpy as np
from keras import ops

from keras_relational.analysis.compiled_parts import CompiledPart

SMALL = 100  # Fewer weights are left as they are.


class Network(CompiledPart):
    """A function of named arrays, run here or written for a browser.

    Args:
        model: The model whose layers the function calls.
        inputs: The type and the shape of each input, by its name.
        function: A function of a dictionary of tensors to one of tensors.
    """

    def __init__(
        self,
        model: keras.Model,
        inputs: Mapping[str, keras.InputSpec],
        function: Callable[[dict], dict],
    ) -> None:
        super().__init__(model, function)
        self.input_specs = dict(inputs)

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs for some inputs, by their names.

        Raises:
            ValueError: If an input is missing, unknown, or of another type or
                shape.
        """
        if inputs.keys() != self.input_specs.keys():
            raise ValueError(
                f"The inputs must be {', '.join(self.input_specs)}. Received: "
                f"{', '.join(map(str, inputs))}"
            )
        for name, spec in self.input_specs.items():
            x = inputs[name]
            fits = x.ndim == len(spec.shape) and all(
                0 < size and wanted in (None, size)
                for size, wanted in zip(x.shape, spec.shape, strict=True)
            )
            if x.dtype != spec.dtype or not fits:
                raise ValueError(
                    f"`{name}` must be {spec.dtype} of shape {spec.shape}. "
                    f"Received: {x.dtype} of shape {x.shape}"
                )
        outputs = self.predict_on_batch(dict(inputs))
        return {
            name: ops.convert_to_numpy(x).astype("float32")
            for name, x in outputs.items()
        }

    def write_onnx(self, path: pathlib.Path) -> None:
        """Writes the function as an ONNX file, with the inputs' names.

        Weights that float16 holds exactly, as those of most presets, are stored
        so, in half the space. They are cast back before they are used.

        Raises:
            ImportError: If the extra `formats` is not installed.
        """
        signature = {
            name: keras.InputSpec(spec.dtype, spec.shape, name=name)
            for name, spec in self.input_specs.items()
        }
        self({name: _zeros(spec) for name, spec in self.input_specs.items()})
        self.export(
            path, format="onnx", input_signature=[signature], verbose=False
        )
        import onnx

        written = onnx.load(path)
        _halve(written.graph)
        onnx.save(written, path)


def _zeros(spec):
    return ops.zeros([size or 2 for size in spec.shape], spec.dtype)


def _halve(graph):
    """Stores the weights of a graph, and of graphs in it, as float16."""
    from onnx import helper
    from onnx import numpy_helper

    casts = []
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != "float32" or values.size < SMALL:
            continue
        half = values.astype("float16")
        if np.array_equal(half.astype("float32"), values):
            name = tensor.name
            stored = f"{name}_float16"
            tensor.CopyFrom(numpy_helper.from_array(half, stored))
            casts.append(helper.make_node("Cast", [stored], [name], to=1))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _halve(attribute.g)
