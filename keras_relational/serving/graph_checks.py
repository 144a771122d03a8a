"""Checks of requests and answers, as part of the graph that a server runs."""

import contextlib
import functools
import inspect
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

import keras
import tensorflow as tf


def checked_inputs(
    input_signature: Sequence[tf.TensorSpec], inputs: Sequence[tf.Tensor]
) -> list[tf.Tensor]:
    """The inputs, with assertions on shapes, batch sizes and finite numbers.

    Without these checks a server would take any shape with the right number of
    values, and would use one row of an input for all rows of another.
    """
    inputs = [
        tf.ensure_shape(x, spec.shape)
        for x, spec in zip(inputs, input_signature, strict=True)
    ]
    names = [spec.name for spec in input_signature]
    batch_size = tf.shape(inputs[0])[0]
    assertions = [
        tf.debugging.assert_equal(
            tf.shape(x)[0],
            batch_size,
            f"The inputs {names[0]} and {name} must have one batch size",
        )
        for name, x in zip(names[1:], inputs[1:], strict=True)
    ]
    assertions += [
        tf.debugging.assert_equal(
            tf.reduce_all(tf.math.is_finite(x)),
            True,
            f"The input {name} must be finite. Received: NaN or infinity",
        )
        for name, x in zip(names, inputs, strict=True)
        if x.dtype.is_floating
    ]
    with tf.control_dependencies(assertions):
        return [tf.identity(x) for x in inputs]


def without_nan(values: tf.Tensor) -> tf.Tensor:
    """The same values, with an assertion that none of them is NaN."""
    assertion = tf.debugging.assert_equal(
        tf.reduce_any(tf.math.is_nan(values)),
        False,
        "The answer to these inputs is not a number",
    )
    with tf.control_dependencies([assertion]):
        return tf.identity(values)


@contextlib.contextmanager
def asserted_indices(model: keras.Model) -> Iterator[None]:
    """Adds assertions to layers that look something up, for a `with` block.

    These are `keras.layers.Embedding`, `keras.layers.CategoryEncoding` and any
    layer with a method `index_bounds`. That method takes the arguments of
    `call` and returns a dictionary from names to triples: a tensor of indices,
    the bound that they must be below, and the bound in words.
    """

    def assert_indices(layer, *args, **kwargs):
        assertions = []
        for name, triple in _index_bounds(layer, args, kwargs).items():
            assertions += _assert_below(name, *triple)
        return assertions

    layers = [
        layer
        for layer in model._flatten_layers(include_self=False)
        if hasattr(layer, "index_bounds")
        or isinstance(
            layer, keras.layers.CategoryEncoding | keras.layers.Embedding
        )
    ]
    with before_calls(layers, assert_indices):
        yield


def _index_bounds(layer, args, kwargs):
    call = inspect.signature(type(layer).call).bind(layer, *args, **kwargs)
    if hasattr(layer, "index_bounds"):
        known = inspect.signature(layer.index_bounds).parameters
        return layer.index_bounds(
            **{k: x for k, x in call.arguments.items() if k in known}
        )
    is_code = isinstance(layer, keras.layers.CategoryEncoding)
    bound = layer.num_tokens if is_code else layer.input_dim
    return {layer.name: (call.arguments["inputs"], bound, bound)}


def _assert_below(name, indices, bound, bound_in_words):
    indices = tf.cast(indices, tf.int64)
    message = (
        f"A number of {name} must be 0 or more, and below {bound_in_words}"
    )
    return [
        tf.debugging.assert_non_negative(indices, message),
        tf.debugging.assert_less(indices, tf.cast(bound, tf.int64), message),
    ]


@contextlib.contextmanager
def before_calls(
    layers: Sequence[keras.layers.Layer], function: Callable
) -> Iterator[None]:
    """Runs a function before each call of some layers in the `with` block.

    The function takes a layer and the arguments of its call. It may return
    assertions. They run before the layer computes anything.
    """

    def intercept(layer):
        call = layer.call

        @functools.wraps(call)
        def intercepted(*args, **kwargs):
            assertions = function(layer, *args, **kwargs) or ()
            with tf.control_dependencies(assertions):
                return call(*args, **kwargs)

        layer.call = intercepted

    for layer in layers:
        intercept(layer)
    try:
        yield
    finally:
        for layer in layers:
            del layer.call


def at_least_one_row(inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The inputs, with one row of zeros in place of an empty batch.

    TensorFlow's fused kernels for convolutions fail on an empty batch.
    """

    def with_a_row(x):
        rows = tf.cond(
            tf.equal(tf.shape(x)[0], 0),
            lambda: tf.zeros([1, *tf.unstack(tf.shape(x)[1:])], x.dtype),
            lambda: x,
        )
        return tf.ensure_shape(rows, x.shape)

    return [with_a_row(x) for x in inputs]
