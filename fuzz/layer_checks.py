"""Runs cases of layers on Keras' backend, in a process that a case may end."""

import inspect
import json
import os
import tempfile
import traceback

import keras
import numpy as np
from keras import tree

from keras_relational import layers
from keras_relational.layers._strided_convolution import StridedConv2D

# Layers that are tried and not public.
PRIVATE = {"StridedConv2D": StridedConv2D}

# The relative error of one rounding.
UNITS = {"float32": 2**-24, "float16": 2**-11, "bfloat16": 2**-8}

# How many times the change that one rounding of all inputs and weights makes is
# right: for sums in another order, and for the roundings within a layer.
FACTORS = {"float32": 128, "float16": 16, "bfloat16": 16}


class WrongError(Exception):
    """What must hold does not."""


def answer(case):
    """What comes of a case.

    Returns:
        A dictionary of `outcome`, `problem`, which is `None` or says what is
        wrong, and, for `"backends"`, `outputs` and their `bounds`.
    """
    keras.config.set_dtype_policy(case["policy"])
    keras.utils.set_random_seed(case["seed"])
    try:
        found = CHECKS[case["check"]](case) or {}
        return {"outcome": "right", "problem": None, **found}
    except WrongError as error:
        return {"outcome": "wrong", "problem": str(error)}
    except Exception as error:
        raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
        ours = f"{os.sep}keras_relational{os.sep}" in raised_in
        if ours and isinstance(error, ValueError):
            return {"outcome": "refused", "problem": None}
        lines = str(error).strip().splitlines() or [""]
        problem = f"{type(error).__name__}: {lines[0][:300]}"
        return {"outcome": "error", "problem": problem}
    finally:
        keras.config.set_dtype_policy("float32")
        # Garbage is collected where there is much of it.
        keras.utils.clear_session(free_memory=False)


def made(spec, seed=None):
    """The layer of a spec, such as `{"layer": "ESBN", "arguments": {...}}`.

    With a seed, each initializer of a layer of this library has a seed.
    """
    name = spec["layer"]
    ours = PRIVATE.get(name) or getattr(layers, name, None)
    arguments = {
        name: made(value, seed) if isinstance(value, dict) else value
        for name, value in spec["arguments"].items()
    }
    if seed is None or ours is None:
        return (ours or getattr(keras.layers, name))(**arguments)
    parameters = inspect.signature(ours).parameters
    names = [x for x in parameters if x.endswith("_initializer")]
    arguments |= {
        name: keras.initializers.RandomNormal(seed=seed + number)
        for number, name in enumerate(names)
    }
    return ours(**arguments)


def inputs_of(case, layer):
    """The arrays of a case, by the names of the arguments of `call`."""
    rng = np.random.default_rng(case["seed"])
    arrays = {}
    for name, shape in case["shapes"].items():
        if name == "is_first":
            arrays[name] = rng.random(shape) < 0.3
            continue
        if name == "states":
            batch = case["shapes"]["is_first"][0]
            sizes = layer.rnn.cell.state_size
            sizes = [sizes] if isinstance(sizes, int) else sizes
            arrays[name] = [
                rng.normal(size=(batch, size)).astype("float32")
                for size in sizes
            ]
            continue
        values = case["offset"] + case["scale"] * rng.normal(size=shape)
        if case["integers"]:
            arrays[name] = np.round(values).astype("int32")
        else:
            arrays[name] = values.astype("float32")
    if case["masked"]:
        first = next(iter(case["shapes"]))
        several = len(case["shapes"]) > 1
        mask = rng.random(mask_shape(case)) < 0.7
        if case.get("starts_valid"):
            mask[:, 0] = True
        arrays[f"{first}_mask" if several else "mask"] = mask
    return arrays


def mask_shape(case):
    """A mask of items, or of steps for a sequence."""
    shape = next(iter(case["shapes"].values()))
    recurrent = "sequences" in case["shapes"]
    return shape[:2] if recurrent else shape[:-1]


def built(case, seed=None):
    """A layer with its initial weights, and its inputs."""
    layer = made(case["spec"], seed)
    inputs = inputs_of(case, layer)
    layer.build(
        *(
            tree.map_structure(lambda x: x.shape, value)
            for name, value in inputs.items()
            if not name.endswith("mask")
        )
    )
    return layer, inputs


def with_random_weights(case):
    """A layer with random weights, and its inputs."""
    layer, inputs = built(case)
    if hasattr(layer, "adapt") and layer.statistics == "training":
        layer.adapt([inputs["inputs"]])
    rng = np.random.default_rng(case["seed"] + 1)
    for weight in layer.trainable_weights:
        fan_in = max(1, int(np.prod(weight.shape[:-1])))
        weight.assign(rng.normal(size=weight.shape) / np.sqrt(fan_in))
    return layer, inputs


def arrays_of(outputs):
    """The outputs as float32 arrays."""
    arrays = []
    for output in tree.flatten(outputs):
        dtype = keras.backend.standardize_dtype(output.dtype)
        expected = keras.config.dtype_policy().compute_dtype
        if dtype != expected:
            raise WrongError(f"an output is {dtype}, not {expected}")
        array = keras.ops.convert_to_numpy(keras.ops.cast(output, "float32"))
        if not np.isfinite(array).all():
            raise WrongError("an output is not finite")
        arrays.append(array)
    return arrays


def bounds(case, layer, inputs, outputs, dtype="float32"):
    """The largest error of each output that follows from a precision.

    Inputs and weights are changed by the error of one rounding, a few times.
    """
    unit, rng = UNITS[dtype], np.random.default_rng(0)

    def rounded(array):
        if np.asarray(array).dtype == "bool":
            return array
        noise = 1 + unit * rng.uniform(-1, 1, np.shape(array))
        return (array * noise).astype("float32")

    weights = [keras.ops.convert_to_numpy(w) for w in layer.trainable_weights]
    largest = [0.0] * len(outputs)
    for _ in range(3):
        for weight, value in zip(layer.trainable_weights, weights, strict=True):
            weight.assign(rounded(value))
        near = inputs
        # A layer that normalizes first must not see inputs that are rounded.
        if not (dtype != "float32" and case.get("normalizes")):
            near = tree.map_structure(rounded, inputs)
        found = arrays_of(layer(**near))
        largest = [
            max(bound, np.abs(one - other).max(initial=0))
            for bound, one, other in zip(largest, found, outputs, strict=True)
        ]
    for weight, value in zip(layer.trainable_weights, weights, strict=True):
        weight.assign(value)
    return [
        FACTORS[dtype] * float(bound) + least
        for bound, least in zip(
            largest, least_bounds(outputs, dtype), strict=True
        )
    ]


def least_bounds(outputs, dtype="float32"):
    """What a rounding of the outputs alone changes."""
    return [
        FACTORS[dtype] * UNITS[dtype] * float(1e-2 + np.abs(x).max(initial=0))
        for x in outputs
    ]


def check_near(name, found, case, layer, inputs, dtype="float32"):
    """Raises `WrongError` if what was found is not near a layer's outputs."""
    outputs = arrays_of(layer(**inputs))
    try:
        compare(name, found, outputs, least_bounds(outputs, dtype))
    except WrongError:  # The bounds need the layer a few times more.
        limits = bounds(case, layer, inputs, outputs, dtype)
        compare(name, found, outputs, limits)


def compare(name, outputs, expected, limits):
    """Raises `WrongError` where outputs differ by more than their bounds."""
    if len(outputs) != len(expected):
        raise WrongError(f"{name}: {len(outputs)} outputs, not {len(expected)}")
    for one, other, limit in zip(outputs, expected, limits, strict=True):
        if one.shape != other.shape:
            raise WrongError(f"{name}: shape {one.shape}, not {other.shape}")
        error = np.abs(one - other).max(initial=0)
        if not error <= limit:
            raise WrongError(
                f"{name}: differ by {error:.3g}, bound {limit:.3g}"
            )


def check_rows(case):
    """A batch is its rows one at a time."""
    layer, inputs = with_random_weights(case)
    outputs = arrays_of(layer(**inputs))
    if case.get("mixes_examples"):
        return
    batch = outputs[0].shape[0]
    for row in {0, batch - 1}:
        alone = row_of(case, inputs, row)
        check_near(
            f"row {row} of {batch} beside the row alone",
            [x[row : row + 1] for x in outputs],
            case,
            layer,
            alone,
        )


def row_of(case, inputs, row):
    """The inputs of one example."""

    def rows(name, x):
        if name in case.get("fixed", ()) and len(x) == 1:
            return x
        # The frames of an example are rows of their own.
        number = inputs["is_first"].shape[1] if name == "frames" else 1
        return x[row * number : (row + 1) * number]

    return {
        name: tree.map_structure(lambda x, name=name: rows(name, x), value)
        for name, value in inputs.items()
    }


def check_precision(case):
    """Half precision is near float32, wherever the inputs lie."""
    layer, inputs = with_random_weights(case)
    outputs = arrays_of(layer(**inputs))
    if case.get("makes_choices"):
        return
    keras.config.set_dtype_policy("float32")
    exact, _ = built(case)
    exact.set_weights(layer.get_weights())
    dtype = layer.compute_dtype
    name = f"{dtype} beside float32"
    check_near(name, outputs, case, exact, inputs, dtype)


def check_seeds(case):
    """Seeds repeat weights, and no two weights are drawn alike."""
    seed = 7 if case["seeded"] else None

    def drawn():
        keras.utils.set_random_seed(case["seed"])
        layer, _ = built(case, seed)
        return {
            weight.path.split("/", 1)[-1]: keras.ops.convert_to_numpy(weight)
            for weight in layer.trainable_weights
        }

    first, again = drawn(), drawn()
    # A layer within may have another number in its name.
    for (name, one), other in zip(first.items(), again.values(), strict=True):
        if not np.array_equal(one, other):
            raise WrongError(f"{name} differs with the same seed")
    random = {
        name: value.ravel()
        for name, value in first.items()
        if value.size >= 4 and np.ptp(value)
    }
    names = [*random]
    for i, one in enumerate(names):
        for other in names[:i]:
            size = min(len(random[one]), len(random[other]))
            a, b = random[one][:size], random[other][:size]
            # One draw may be scaled differently for kernels of other shapes.
            # The first numbers of a bias may be all zeros, and are no draw.
            k = np.argmax(np.abs(b))
            if (
                np.any(a)
                and np.any(b)
                and np.allclose(a * b[k], b * a[k], rtol=1e-5, atol=1e-12)
            ):
                raise WrongError(f"{one} and {other} are drawn alike")


def functional(layer, inputs):
    """A model of the layer, for any batch size."""

    def symbol(x, name=None):
        return keras.Input(x.shape[1:], dtype=str(x.dtype), name=name)

    symbolic = {
        name: [symbol(x) for x in value]
        if isinstance(value, list)
        else symbol(value, name)
        for name, value in inputs.items()
    }
    return keras.Model(symbolic, layer(**symbolic))


def check_saving(case):
    """The config and the saved file give the same layer."""
    case = {**case, "masked": False}
    layer, inputs = with_random_weights(case)
    config = layer.get_config()
    again = type(layer).from_config(json.loads(json.dumps(config)))
    if json.dumps(again.get_config()) != json.dumps(config):
        raise WrongError("the layer of a config has another config")
    if "fixed" in case:  # The first axis of an input may be 1.
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        functional(layer, inputs).save(path)
        loaded = keras.saving.load_model(path)
    found = arrays_of(loaded(inputs))
    check_near("the saved file", found, case, layer, inputs)


def check_graph(case):
    """A graph for batches of any size gives what the layer gives."""
    import tensorflow as tf

    layer, inputs = with_random_weights(case)

    def spec(name, x):
        fixed = name in case.get("fixed", ())
        shape = [len(x) if fixed else None, *x.shape[1:]]
        if case["any_size"] and len(inputs) == 1:
            shape[1] = None
        return tf.TensorSpec(shape, x.dtype)

    specs = {
        name: tree.map_structure(lambda x, name=name: spec(name, x), value)
        for name, value in inputs.items()
    }
    function = tf.function(lambda inputs: layer(**inputs), autograph=False)
    concrete = function.get_concrete_function(specs)
    tensors = tree.map_structure(tf.constant, inputs)
    found = arrays_of(concrete(*tree.flatten(tensors)))
    check_near("the graph", found, case, layer, inputs)


def check_xla(case):
    """XLA gives what the layer gives."""
    import tensorflow as tf

    layer, inputs = with_random_weights(case)
    function = tf.function(
        lambda inputs: layer(**inputs), autograph=False, jit_compile=True
    )
    found = arrays_of(function(tree.map_structure(tf.constant, inputs)))
    check_near("XLA", found, case, layer, inputs)


def outputs_here(case):
    """The outputs on this backend, for `"backends"`."""
    layer, inputs = with_random_weights(case)
    if keras.backend.backend() == "jax":
        import jax

        # Otherwise JAX would compile each operation by itself.
        outputs = jax.jit(lambda inputs: layer(**inputs))(inputs)
        return {"outputs": arrays_of(outputs)}
    outputs = arrays_of(layer(**inputs))
    limits = bounds(case, layer, inputs, outputs)
    return {"outputs": outputs, "bounds": limits}


CHECKS = {
    "rows": check_rows,
    "precision": check_precision,
    "seeds": check_seeds,
    "saving": check_saving,
    "graph": check_graph,
    "xla": check_xla,
    "backends": outputs_here,
}
