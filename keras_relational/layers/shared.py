"""What the layers share: sets of entities, softmax under a mask, checks."""

import functools
import math

import keras
import numpy as np
from keras import ops


def own_initializer(initializer, *numbers):
    """A copy for one more weight, but of plain functions.

    If it was given a seed, the copy has one that is drawn from that and the
    numbers: other numbers, other values.
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    if isinstance(config.get("seed"), int):
        sequence = np.random.SeedSequence([config["seed"] % 2**32, *numbers])
        config["seed"] = int(sequence.generate_state(1)[0])
    return type(initializer).from_config(config)


def add_kernels(layer, initializer, draws=own_initializer, **shapes):
    """Adds weights to a layer, as attributes of these names.

    Args:
        layer: The layer, with all weights that it has so far.
        initializer: What draws values of its own for each weight, also if it
            was given a seed.
        draws: Function of the initializer and a number, of which no two weights
            have the same, to what draws the values.
        **shapes: Shape of each weight.
    """
    for name, shape in shapes.items():
        own = draws(initializer, len(layer.weights))
        setattr(layer, name, layer.add_weight(shape, own, name=name))


def set_shape(layer, input_shape, fixed_size=False):
    """`(batch, n, m)` of a set, or of an image read as a set, row by row.

    Args:
        layer: The layer that reads the set, named in the error.
        input_shape: `(batch, n, m)` or `(batch, height, width, m)`.
        fixed_size: Whether `n` must be known.

    Raises:
        ValueError: If the rank is another one, or a size is not known that
            must be.
    """
    shape = tuple(input_shape)
    sizes = shape[1:] if fixed_size else shape[-1:]
    if len(shape) not in (3, 4) or None in sizes:
        raise ValueError(
            f"{layer.name} takes a set (batch, n, m) or an image (batch, "
            f"height, width, m), with a fixed {'size' if fixed_size else 'm'}. "
            f"Received: inputs.shape={shape}"
        )
    if len(shape) == 3:
        return shape
    height, width = shape[1:3]
    num_entities = None if None in (height, width) else height * width
    return (shape[0], num_entities, shape[3])


def as_set(layer, inputs, mask=None):
    """Inputs as sets, with zeros for the entities that are not there.

    A zero in place of padding, since zero times a NaN in it would be NaN.

    Args:
        layer: The layer that reads the set, named in the error.
        inputs: `(batch, n, m)`, or `(batch, height, width, m)`, read row by
            row.
        mask: Optional boolean tensor, `inputs` without its last axis or
            `(batch, n)`; `True` for entities that are there.

    Returns:
        Entities `(batch, n, m)`, and the mask as `(batch, n)` or `None`.

    Raises:
        ValueError: If the mask has another shape.
    """
    entities = inputs
    batch = ops.shape(inputs)[0]
    if len(inputs.shape) == 4:
        height, width, features = inputs.shape[1:]
        num_entities = -1 if None in (height, width) else height * width
        entities = ops.reshape(inputs, (batch, num_entities, features))
    if mask is None:
        return entities, None
    if not any(
        may_be_equal(mask.shape, shape)
        for shape in (inputs.shape[:-1], entities.shape[:-1])
    ):
        raise ValueError(
            f"{layer.name} takes a mask with one value an entity, of shape "
            f"{tuple(inputs.shape[:-1])}. Received: mask.shape="
            f"{tuple(mask.shape)}, inputs.shape={tuple(inputs.shape)}"
        )
    mask = ops.reshape(mask, ops.shape(entities)[:-1])
    return ops.where(ops.expand_dims(mask, -1), entities, 0), mask


def may_be_equal(shape, other):
    """Whether two shapes are one, as far as their sizes are known."""
    return len(shape) == len(other) and all(
        None in pair or pair[0] == pair[1]
        for pair in zip(shape, other, strict=True)
    )


def check_set(layer, shape, name="inputs"):
    """Raises a `ValueError` where a shape is not `(batch, n, m)`, `m` known."""
    if len(shape) != 3 or shape[-1] is None:
        raise ValueError(
            f"{layer.name} takes sets (batch, n, m) with a fixed m. Received: "
            f"{name}.shape={tuple(shape)}"
        )


def check_step(cell, shape):
    """Raises a `ValueError` where a cell's inputs are not `(batch, m)`.

    From then on the cell takes no inputs of another rank or size.
    """
    if len(shape) != 2 or shape[-1] is None:
        raise ValueError(
            f"{cell.name} takes inputs (batch, features) with fixed features, "
            "and an RNN of it sequences (batch, time, features). Received: "
            f"inputs.shape={tuple(shape)} at each step"
        )
    cell.input_spec = keras.layers.InputSpec(ndim=2, axes={-1: shape[-1]})


def split_heads(projected, num_heads):
    """`(batch, n, num_heads * d)` → `(batch, num_heads, n, d)`."""
    batch, n = ops.shape(projected)[:2]
    size = projected.shape[-1] // num_heads
    projected = ops.reshape(projected, (batch, n, num_heads, size))
    return ops.swapaxes(projected, 1, 2)


def join_heads(heads):
    """`(batch, num_heads, n, d)` → `(batch, n, num_heads * d)`."""
    batch, num_heads, n, size = ops.shape(heads)
    return ops.reshape(ops.swapaxes(heads, 1, 2), (batch, n, num_heads * size))


def check_same_size(layer, built_shape, input_shape):
    """Raises a `ValueError` where a set has another size than at build."""
    if tuple(built_shape[1:]) != tuple(input_shape[1:]):
        raise ValueError(
            f"{layer.name} was built for inputs of shape {tuple(built_shape)}, "
            "and has weights of its own for each position. Received: "
            f"inputs.shape={tuple(input_shape)}. Pad the inputs to the size at "
            "build and mask the padding, or build a new layer."
        )


def check_built(cell):
    """Raises a `ValueError` where a cell has not yet what it begins with."""
    if not cell.built:
        raise ValueError(
            f"{cell.name} begins in a state that is learned, and has no "
            "weights yet. Call or build it first"
        )


def zero_states(cell, batch_size, sizes):
    """Where a cell begins that has nothing else to begin with."""
    return [ops.zeros((batch_size, n), cell.compute_dtype) for n in sizes]


def for_each_example(state, batch_size):
    """`(1, n)` → `(batch, n)`, where a cell begins, each row with its memory.

    `ops.broadcast_to` gives all rows one memory on torch, and the variables of
    a stateful RNN, which begin as this, could not be assigned to.
    """
    return state + ops.zeros((batch_size, state.shape[-1]), state.dtype)


def at_least_float32(tensor):
    """Half precision is too small for products of large vectors."""
    dtype = keras.backend.result_type(tensor.dtype, "float32")
    return ops.cast(tensor, dtype)


def dot_products(queries, keys):
    """`(..., n, d)` and `(..., k, d)` → `(..., n, k)`, in float32 or more."""
    queries, keys = at_least_float32(queries), at_least_float32(keys)
    return ops.matmul(queries, ops.swapaxes(keys, -2, -1))


def matches(queries, keys):
    """Dot products of two sets of vectors of size d, divided by √d."""
    return dot_products(queries, keys) / math.sqrt(queries.shape[-1])


def dot_product_attention(queries, keys, values, mask=None, keep=None):
    """Scaled dot-product attention, all heads side by side, and its scores.

    Args:
        queries: `(batch, heads, n, d)`.
        keys: `(batch, heads, k, d)`.
        values: `(batch, heads, k, size)`.
        mask: Optional boolean `(batch, k)`, `True` for keys that are there.
        keep: Optional factors of the scores, for dropout.

    Returns:
        Tensors `(batch, n, heads * size)`, and `(batch, heads, n, k)` in
        float32 or more: in half precision the largest score may have equals.
    """
    if mask is not None:
        mask = mask[:, None, None]
    scores = masked_softmax(matches(queries, keys), mask)
    return attended(scores, values, keep), scores


def attended(scores, values, keep=None):
    """Scores `(batch, heads, n, k)` and values `(batch, heads, k, size)` →
    `(batch, n, heads * size)`."""
    shares = ops.cast(scores, values.dtype)
    if keep is not None:
        shares = shares * keep
    return join_heads(ops.matmul(shares, values))


def with_gradient(function):
    """`keras.ops.custom_gradient`, with one kind of gradient on all backends.

    Args:
        function: From tensors, all by position, to a tensor and its gradient:
            a function from the gradient of that tensor, `upstream`, to a tuple
            with one for each argument.

    Returns:
        Function from the same tensors to the tensor.
    """

    def outputs_and_gradient(*arguments):
        outputs, gradient = function(*arguments)

        def of_arguments(*arguments, upstream=None):
            # Keras calls it with `upstream` alone, but on torch with the
            # arguments of `function` and `upstream` by its name.
            return gradient(arguments[0] if upstream is None else upstream)

        return outputs, of_arguments

    return functools.wraps(function)(ops.custom_gradient(outputs_and_gradient))


def with_row(rows, index, row):
    """`rows` with another one at `index`, a scalar tensor.

    `keras.ops.slice_update` would be an op of XLA's on TensorFlow, even where
    nothing is compiled, and TensorFlow Serving refuses it on a CPU.
    """
    return ops.scatter_update(rows, ops.reshape(index, (1, 1)), row[None])


def masked_softmax(logits, mask=None):
    """Softmax over the last axis; padded entries, and rows of them, get zero.

    Args:
        logits: Float tensor.
        mask: Optional boolean tensor that broadcasts against `logits`, `True`
            for entries that are there.

    Returns:
        Tensor like `logits`. A row sums to one, or to zero if all is padding.
    """
    if logits.shape[-1] == 1:  # Keras warns of a softmax over one entry.
        ones = ops.ones_like(logits)
        return ones if mask is None else ops.where(mask, ones, 0)
    if mask is None:
        return ops.softmax(logits, axis=-1)
    # A finite stand-in for -inf, so that a row of padding has no NaN in it.
    lowest = (
        -3e4
        if keras.backend.standardize_dtype(logits.dtype) == ("float16")
        else -1e30
    )
    scores = ops.softmax(ops.where(mask, logits, lowest), axis=-1)
    return ops.where(mask, scores, 0)
