"""Temporal context normalization, and what its paper compares it with.

Webb et al., 2020, *Learning Representations that Support Extrapolation*,
sections 3.1 and 4.2. All of these layers compute

    outputs = gamma (z − μ) / σ + beta,    σ = √(variance + epsilon)

and differ in the context that the mean μ and the variance are taken over.
"""

import keras
import numpy as np
from keras import ops

from keras_relational.layers.operations import at_least_float32
from keras_relational.layers.operations import shapes_match
from keras_relational.validation import check_positive_integers


class _ContextNormalization(keras.layers.Layer):
    """Gain, shift, masks and precision; a subclass says what the context is.

    It has `_moments(z, there, training)`, which returns μ and σ, of a shape
    that broadcasts against the inputs.
    """

    def __init__(self, epsilon=1e-8, center=True, scale=True, **kwargs):
        super().__init__(**kwargs)
        if not epsilon > 0:
            raise ValueError(
                f"`epsilon` must be positive. Received: epsilon={epsilon}"
            )
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.supports_masking = True

    def build(self, input_shape):
        features = _features(self, input_shape)
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_weight(
                (features,), "ones", autocast=False, name="gamma"
            )
        if self.center:
            self.beta = self.add_weight(
                (features,), "zeros", autocast=False, name="beta"
            )
        self.input_spec = keras.layers.InputSpec(
            min_ndim=3, axes={-1: features}
        )

    def call(self, inputs, mask=None, return_moments=False, training=False):
        # In float16 a square overflows, and epsilon is zero.
        z = at_least_float32(inputs)
        there = None
        if mask is not None:
            there = _checked_mask(self, inputs, mask)
            z = ops.where(there, z, 0)  # There may be a NaN.
        mean, deviation = self._moments(z, there, training)
        outputs = (z - mean) / deviation
        if self.scale:
            outputs = outputs * ops.cast(self.gamma, z.dtype)
        if self.center:
            outputs = outputs + ops.cast(self.beta, z.dtype)
        outputs = ops.cast(outputs, self.compute_dtype)
        if mask is not None:
            outputs = ops.where(there, outputs, inputs)
        return (outputs, (mean, deviation)) if return_moments else outputs

    def denormalize(self, outputs, moments):
        """Undoes the normalization: equation (4), `σ outputs + μ`.

        Exact where gain is 1 and shift 0, as equation (4) knows neither, and
        for real steps: padded ones were passed on as they are.

        Args:
            outputs: Tensor that broadcasts against the moments.
            moments: As `return_moments=True` returns them.

        Returns:
            Tensor in the compute dtype.
        """
        mean, deviation = moments
        outputs = at_least_float32(outputs) * deviation + mean
        return ops.cast(outputs, self.compute_dtype)

    def compute_output_spec(
        self, inputs, mask=None, return_moments=False, training=False
    ):
        outputs = keras.KerasTensor(inputs.shape, self.compute_dtype)
        shape = self._moments_shape(inputs.shape)
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        moments = tuple(keras.KerasTensor(shape, dtype) for _ in range(2))
        return (outputs, moments) if return_moments else outputs

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "epsilon": self.epsilon,
            "center": self.center,
            "scale": self.scale,
        }

    def _moments_shape(self, input_shape):
        return tuple(input_shape)


@keras.saving.register_keras_serializable(package="keras_relational")
class TemporalContextNormalization(_ContextNormalization):
    """Normalizes each feature over the steps of its sequence.

    For example i, step j of the T of its context and feature k,

        μ_ik = 1/T Σ_j z_ijk                              (1)
        σ_ik = √(1/T Σ_j (z_ijk − μ_ik)² + epsilon)       (2)
        outputs_ijk = gamma_k (z_ijk − μ_ik) / σ_ik + beta_k    (3)

    so that what is left of the embeddings of a context is how they relate to
    each other, and neither where they lie nor how far apart: adding a constant
    to all of them, or scaling them, changes nothing. Reference:
    [Webb et al., 2020](https://arxiv.org/abs/2007.05059), section 3.1; where it
    prints γ_i and β_i, gain and shift are per feature, as in the authors' code.
    Moments are computed in float32 or more.

    Args:
        segment_lengths: Optional tuple of positive integers: the sequence is
            cut into contexts of these lengths, such as `(3, 3)` for the source
            and the target of an analogy. By default it is a single one.
        epsilon: Small positive number.
        center: Whether there is a `beta`, at first zero.
        scale: Whether there is a `gamma`, at first one.

    Call arguments:
        inputs: Float tensor `(batch, time, features)`; there may be more axes
            between batch and time, such as one of candidates.
        mask: Optional boolean tensor, `inputs` without its last axis, `True`
            for real steps. Padded ones do not count, and are passed on as they
            are.
        return_moments: Whether to return μ and σ too, for `denormalize`.

    Returns:
        Tensor like `inputs`, in the compute dtype; with `return_moments` also
        the tensors `(μ, σ)`, float32 or more, of shape `(batch, 1, features)`,
        or, with segments, `(batch, time, features)`.

    Raises:
        ValueError: If an argument is out of its range, the inputs have fewer
            than 3 axes or no fixed last one, the segments do not add up to the
            sequence, or the mask has another shape.

    Example:

    >>> layer = TemporalContextNormalization()
    >>> outputs = layer(np.array([[[1.0], [2.0], [3.0]]]))
    >>> [round(float(x), 3) for x in ops.convert_to_numpy(outputs)[0, :, 0]]
    [-1.225, 0.0, 1.225]
    """

    def __init__(
        self,
        segment_lengths=None,
        epsilon=1e-8,
        center=True,
        scale=True,
        **kwargs,
    ):
        super().__init__(epsilon, center, scale, **kwargs)
        if segment_lengths is not None:
            if not isinstance(segment_lengths, list | tuple):
                raise ValueError(
                    "`segment_lengths` must be a tuple of lengths, or None. "
                    f"Received: segment_lengths={segment_lengths}"
                )
            segment_lengths = tuple(segment_lengths)
            if not segment_lengths:
                raise ValueError(
                    "`segment_lengths` must name at least one length, or be "
                    "None. Received: segment_lengths=()"
                )
            for length in segment_lengths:
                check_positive_integers(segment_lengths=length)
        self.segment_lengths = segment_lengths

    def build(self, input_shape):
        super().build(input_shape)
        self._check_length(input_shape)

    def _moments(self, z, there, training):
        if self.segment_lengths is None:
            return _moments(z, there, -2, self.epsilon)
        self._check_length(z.shape)
        # One row a context, those that are shorter filled up.
        lengths = np.array(self.segment_lengths)
        columns = np.arange(lengths.max())
        starts = np.cumsum(lengths) - lengths
        steps = np.minimum(starts[:, None] + columns, lengths.sum() - 1)
        mine = (columns < lengths[:, None])[..., None]
        if there is not None:
            mine = ops.logical_and(ops.take(there, steps, axis=-2), mine)
        contexts = ops.take(z, steps, axis=-2)
        context_of_step = np.repeat(np.arange(len(lengths)), lengths)
        return tuple(
            ops.take(ops.squeeze(moment, -2), context_of_step, axis=-2)
            for moment in _moments(contexts, mine, -2, self.epsilon)
        )

    def _moments_shape(self, input_shape):
        self._check_length(input_shape)
        *batch, time, features = input_shape
        return (*batch, 1 if self.segment_lengths is None else time, features)

    def _check_length(self, input_shape):
        total = self.segment_lengths and sum(self.segment_lengths)
        if total and input_shape[-2] not in (None, total):
            raise ValueError(
                f"{self.name} takes sequences of {total} steps, in segments of "
                f"{self.segment_lengths}. Received: inputs.shape="
                f"{tuple(input_shape)}"
            )

    def get_config(self):
        return {
            **super().get_config(),
            "segment_lengths": self.segment_lengths,
        }


@keras.saving.register_keras_serializable(package="keras_relational")
class BatchContextNormalization(_ContextNormalization):
    """Normalizes each feature over the examples of a batch.

    As `TemporalContextNormalization`, with other contexts: the same step of
    all examples; with a `group_size` that of so many; with `over_time` all
    steps, those of one example after those of the other. These are the rows of
    Tables 1, 2 and 4 of [Webb et al., 2020](https://arxiv.org/abs/2007.05059):

    | row | layer |
    | --- | --- |
    | batch norm. | `BatchContextNormalization()` |
    | batch norm. (train stats) | `…(statistics="training")` |
    | sub-batch norm. | `…(group_size=4)` |
    | TCN + batch norm. | `…(over_time=True)` |
    | misaligned TCN | `…(over_time=True, group_size=5)` |

    Moments are those of the batch at hand, in inference too, or, with
    `statistics="training"`, in inference those of the data that `adapt` was
    given: no moving average. A group in which fewer examples or steps are left
    is normalized over those.

    Args:
        group_size: Optional positive integer.
        over_time: Whether contexts extend over time.
        statistics: `"batch"` or `"training"`.
        epsilon: Small positive number.
        center: Whether there is a `beta`, at first zero.
        scale: Whether there is a `gamma`, at first one.

    Call arguments:
        inputs: As for `TemporalContextNormalization`; what axes there are
            between batch and time are kept apart.
        mask: As for `TemporalContextNormalization`.
        return_moments: Whether to return μ and σ too, for `denormalize`.
        training: Whether to use the moments of the batch at hand in any case.

    Returns:
        Tensor like `inputs`, in the compute dtype; with `return_moments` also
        the tensors `(μ, σ)`, float32 or more, of the shape of `inputs`.

    Raises:
        ValueError: If an argument is out of its range, the inputs have fewer
            than 3 axes or no fixed last one, or the mask has another shape;
            with `statistics="training"` also if anything but the batch size is
            not fixed.

    Example:

    >>> layer = BatchContextNormalization()
    >>> outputs = layer(np.array([[[1.0]], [[3.0]]]))
    >>> ops.convert_to_numpy(outputs)[:, 0, 0].tolist()
    [-1.0, 1.0]
    """

    def __init__(
        self,
        group_size=None,
        over_time=False,
        statistics="batch",
        epsilon=1e-8,
        center=True,
        scale=True,
        **kwargs,
    ):
        super().__init__(epsilon, center, scale, **kwargs)
        if group_size is not None:
            check_positive_integers(group_size=group_size)
        if statistics not in ("batch", "training"):
            raise ValueError(
                "`statistics` must be 'batch' or 'training'. Received: "
                f"statistics={statistics!r}"
            )
        self.group_size = group_size
        self.over_time = over_time
        self.statistics = statistics

    def build(self, input_shape):
        super().build(input_shape)
        if self.statistics == "batch":
            return
        shape = self._adapted_shape(input_shape)
        if None in shape:
            raise ValueError(
                f"{self.name} keeps moments of its own for each step, and "
                "takes inputs of which only the batch size varies. Received: "
                f"inputs.shape={tuple(input_shape)}"
            )
        self.mean, self.variance = (
            self.add_weight(
                shape,
                initial,
                dtype=keras.backend.result_type(self.variable_dtype, "float32"),
                trainable=False,
                autocast=False,
                name=name,
            )
            for name, initial in (("mean", "zeros"), ("variance", "ones"))
        )

    def adapt(self, batches):
        """Takes the moments for inference from data, in one pass.

        Args:
            batches: Iterable of arrays like `inputs`, without padding.

        Raises:
            ValueError: If there are none, `statistics` is `"batch"`, or the
                shape is not that of the inputs.
        """
        if self.statistics == "batch":
            raise ValueError(
                f"{self.name} uses the moments of each batch. Build it with "
                "statistics='training' to adapt it to data."
            )
        count, mean, squares = 0, 0.0, 0.0
        for batch in batches:
            batch = np.asarray(ops.convert_to_numpy(batch), "float64")
            if not self.built:
                self.build(batch.shape)
            self._check_adapted(batch.shape)
            axes = (0, batch.ndim - 2) if self.over_time else (0,)
            size = np.prod([batch.shape[axis] for axis in axes])
            own = batch.mean(axes, keepdims=True)[0]
            squares += ((batch - own) ** 2).sum(axes, keepdims=True)[0]
            squares += (own - mean) ** 2 * count * size / (count + size)
            mean += (own - mean) * size / (count + size)
            count += size
        if not count:
            raise ValueError("`batches` must hold one batch or more.")
        self.mean.assign(mean)
        self.variance.assign(squares / count)

    def _moments(self, z, there, training):
        if self.statistics == "training" and not training:
            self._check_adapted(z.shape)
            return tuple(
                ops.broadcast_to(ops.cast(moment, z.dtype), ops.shape(z))
                for moment in (
                    self.mean,
                    ops.sqrt(self.variance + self.epsilon),
                )
            )
        # The axis of the context is the first; what is left of the last group
        # is filled up.
        line = _as_line(z) if self.over_time else z
        size = ops.shape(line)[0]
        group_size = self.group_size or size
        num_groups = -(-size // group_size)
        padding = num_groups * group_size - size

        def grouped(x):
            x = _as_line(x) if self.over_time else x
            x = ops.pad(x, [(0, padding)] + [(0, 0)] * (len(x.shape) - 1))
            return ops.reshape(x, (num_groups, group_size, *ops.shape(x)[1:]))

        if there is None and self.group_size:
            there = ops.ones_like(z[..., :1], "bool")
        contexts = grouped(z)
        mine = None if there is None else grouped(there)
        shape = ops.shape(contexts)
        moments = []
        for moment in _moments(contexts, mine, 1, self.epsilon):
            moment = ops.broadcast_to(moment, shape)
            moment = ops.reshape(moment, (-1, *shape[2:]))[:size]
            moments.append(_from_line(moment, z) if self.over_time else moment)
        return tuple(moments)

    def _adapted_shape(self, input_shape):
        """Of the moments for inference: of steps, or of what is over time."""
        shape = list(input_shape[1:])
        if self.over_time:
            shape[-2] = 1
        return tuple(shape)

    def _check_adapted(self, input_shape):
        shape = self._adapted_shape(input_shape)
        if not shapes_match(shape, self.mean.shape):
            raise ValueError(
                f"{self.name} was built to keep moments of shape "
                f"{tuple(self.mean.shape)}, that of one example, but for time "
                "with `over_time`. Received: inputs.shape="
                f"{tuple(input_shape)}"
            )

    def get_config(self):
        return {
            **super().get_config(),
            "group_size": self.group_size,
            "over_time": self.over_time,
            "statistics": self.statistics,
        }


@keras.saving.register_keras_serializable(package="keras_relational")
class SlidingWindowNormalization(_ContextNormalization):
    """Normalizes each feature over itself and the steps before it.

    As `TemporalContextNormalization`, with other contexts: all examples of a
    batch follow each other on one line, and the context of a step is itself and
    the `window_size` − 1 steps before, be they of the same example or of the
    one before; at the beginning of the line, as many as there are. The row
    "sliding-window TCN" of Table 1 of [Webb et al., 2020](
    https://arxiv.org/abs/2007.05059).

    Args:
        window_size: Positive integer.
        epsilon: Small positive number.
        center: Whether there is a `beta`, at first zero.
        scale: Whether there is a `gamma`, at first one.

    Call arguments:
        inputs: As for `TemporalContextNormalization`; what axes there are
            between batch and time are kept apart.
        mask: As for `TemporalContextNormalization`. Padded steps keep their
            place on the line.
        return_moments: Whether to return μ and σ too, for `denormalize`.

    Returns:
        Tensor like `inputs`, in the compute dtype; with `return_moments` also
        the tensors `(μ, σ)`, float32 or more, of the shape of `inputs`.

    Raises:
        ValueError: If an argument is out of its range, the inputs have fewer
            than 3 axes or no fixed last one, or the mask has another shape.

    Example:

    >>> layer = SlidingWindowNormalization(window_size=2)
    >>> outputs = layer(np.array([[[1.0], [2.0], [0.0]]]))
    >>> [round(float(x), 3) for x in ops.convert_to_numpy(outputs)[0, :, 0]]
    [0.0, 1.0, -1.0]
    """

    def __init__(
        self,
        window_size=4,
        epsilon=1e-8,
        center=True,
        scale=True,
        **kwargs,
    ):
        super().__init__(epsilon, center, scale, **kwargs)
        check_positive_integers(window_size=window_size)
        self.window_size = window_size

    def _moments(self, z, there, training):
        if there is None:
            there = ops.ones_like(z[..., :1], "bool")

        def windows(x):
            line = _as_line(x)
            size = ops.shape(line)[0]
            before = [(self.window_size - 1, 0)]
            line = ops.pad(line, before + [(0, 0)] * (len(line.shape) - 1))
            return ops.stack(
                [line[i : i + size] for i in range(self.window_size)]
            )

        return tuple(
            _from_line(moment[0], z)
            for moment in _moments(windows(z), windows(there), 0, self.epsilon)
        )

    def get_config(self):
        return {**super().get_config(), "window_size": self.window_size}


NORMALIZATIONS = {
    "temporal_context": TemporalContextNormalization,
    "sub_batch": lambda: BatchContextNormalization(group_size=4),
    "sliding_window": SlidingWindowNormalization,
    "temporal_and_batch": lambda: BatchContextNormalization(over_time=True),
    "misaligned": lambda: BatchContextNormalization(5, over_time=True),
    "batch": BatchContextNormalization,
    "batch_training_statistics": lambda: BatchContextNormalization(
        statistics="training"
    ),
    "layer": lambda: keras.layers.LayerNormalization(epsilon=1e-8),
    "none": keras.layers.Identity,
}


def normalization(name):
    """A new normalization of embeddings, by the name of its row in Table 1.

    Args:
        name: One of `NORMALIZATIONS`.

    Returns:
        A layer from and to `(batch, ..., time, features)`.

    Raises:
        ValueError: If there is none of that name.

    Example:

    >>> normalization("sub_batch").group_size
    4
    """
    if name not in NORMALIZATIONS:
        raise ValueError(
            f"Unknown normalization {name!r}. Expected one of: "
            f"{', '.join(NORMALIZATIONS)}"
        )
    return NORMALIZATIONS[name]()


def _moments(z, there, axis, epsilon):
    """Mean and deviation over an axis, of what is there."""
    if there is None:

        def average(x):
            return ops.mean(x, axis, keepdims=True)

    else:
        count = ops.sum(ops.cast(there, z.dtype), axis, keepdims=True)
        count = ops.maximum(count, 1)

        def average(x):
            return ops.sum(ops.where(there, x, 0), axis, keepdims=True) / count

    mean = average(z)
    # What rounding has left of a constant would be divided by √epsilon.
    mean = mean + ops.stop_gradient(average(z - mean))
    return mean, ops.sqrt(average(ops.square(z - mean)) + epsilon)


def _as_line(x):
    """`(batch, ..., time, features)` → `(batch * time, ..., features)`."""
    x = ops.moveaxis(x, -2, 1)
    batch, time, *rest = ops.shape(x)
    return ops.reshape(x, (batch * time, *rest))


def _from_line(line, like):
    """Undoes `_as_line`."""
    batch, *between, time, features = ops.shape(like)
    line = ops.reshape(line, (batch, time, *between, features))
    return ops.moveaxis(line, 1, -2)


def _features(layer, input_shape):
    if len(input_shape) < 3 or input_shape[-1] is None:
        raise ValueError(
            f"{layer.name} takes sequences (batch, ..., time, features) with a "
            "fixed number of features. Received: inputs.shape="
            f"{tuple(input_shape)}"
        )
    return input_shape[-1]


def _checked_mask(layer, inputs, mask):
    shape = tuple(inputs.shape[:-1])
    if not shapes_match(mask.shape, shape):
        raise ValueError(
            f"{layer.name} takes a mask with one value a step, of shape "
            f"{shape}. Received: mask.shape={tuple(mask.shape)}"
        )
    return ops.expand_dims(mask, -1)
