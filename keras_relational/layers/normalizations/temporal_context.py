"""Temporal context normalization, and the base class of its baselines.

[Webb et al., 2020](https://arxiv.org/abs/2007.05059), *Learning Representations
that Support Extrapolation*, sections 3.1 and 4.2. The baselines normalize over
other contexts. They are in `alternatives.py`.
"""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_relational.layers._operations import at_least_float32
from keras_relational.layers._operations import float32_or_more
from keras_relational.layers._operations import shapes_match
from keras_relational.validation import check_positive_integers


class ContextNormalization(keras.layers.Layer):
    """Base class of layers that normalize each feature over a context.

    These layers compute

        outputs = gamma (z − μ) / σ + beta,    σ = √(variance + epsilon)

    The mean μ and the variance are taken over a context. The layers differ in
    what the context is, and a subclass defines it in its method
    `compute_moments`. This class adds gain and shift, handles masks, and
    computes in at least float32.

    Args:
        epsilon: Small positive number, added to the variance.
        center: Boolean. If `True`, the layer learns the shift `beta`, which is
            zero at first.
        scale: Boolean. If `True`, the layer learns the gain `gamma`, which is
            one at first.

    Call arguments:
        inputs: Float tensor `(batch, ..., time, features)`.
        mask: Optional boolean tensor `(batch, ..., time)`. `True` marks a real
            step. Padded steps do not count. The layer returns them unchanged.
        return_moments: Boolean. If `True`, the layer also returns μ and σ.
        training: Boolean. Passed on to `compute_moments`.

    Returns:
        Tensor like `inputs`, in the compute dtype. With `return_moments`, a
        pair: this tensor, and the pair μ, σ.

    Raises:
        ValueError: If `epsilon` is not positive, the inputs have fewer than 3
            axes or a last axis of unknown size, or the mask has another shape.
    """

    def __init__(
        self,
        epsilon: float = 1e-8,
        center: bool = True,
        scale: bool = True,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        if not epsilon > 0:
            raise ValueError(
                f"`epsilon` must be positive. Received: epsilon={epsilon}"
            )
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.supports_masking = True

    input_dtype = property(float32_or_more)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        if len(input_shape) < 3 or input_shape[-1] is None:
            raise ValueError(
                f"{self.name} takes sequences (batch, ..., time, features) "
                "with a fixed number of features. Received: inputs.shape="
                f"{tuple(input_shape)}"
            )
        features = input_shape[-1]
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

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_moments: bool = False,
        training: bool = False,
    ) -> keras.KerasTensor | tuple:
        # In float16, squares overflow and epsilon is rounded to zero.
        z = at_least_float32(inputs)
        valid = None
        if mask is not None:
            self._check_mask(inputs, mask)
            valid = ops.expand_dims(mask, -1)
            z = ops.where(valid, z, 0)  # Padding may hold NaN.
        mean, deviation = self.compute_moments(z, valid, training)
        outputs = (z - mean) / deviation
        if self.scale:
            outputs = outputs * ops.cast(self.gamma, z.dtype)
        if self.center:
            outputs = outputs + ops.cast(self.beta, z.dtype)
        outputs = ops.cast(outputs, self.compute_dtype)
        if mask is not None:
            padding = ops.cast(inputs, self.compute_dtype)
            outputs = ops.where(valid, outputs, padding)
        return (outputs, (mean, deviation)) if return_moments else outputs

    def compute_moments(
        self,
        z: keras.KerasTensor,
        valid: keras.KerasTensor | None,
        training: bool,
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        """The mean μ and the deviation σ of the context of each step.

        A subclass defines it.

        Args:
            z: The inputs, in at least float32, with zeros at padded steps.
            valid: Optional boolean tensor `(batch, ..., time, 1)`. `True` marks
                a real step.
            training: Boolean, `True` during training.

        Returns:
            Two tensors that broadcast to the shape of `z`.
        """
        raise NotImplementedError

    def compute_moments_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        """The shape of μ and of σ.

        Args:
            input_shape: Shape of the inputs.

        Returns:
            The shape.
        """
        return tuple(input_shape)

    def denormalize(
        self,
        outputs: keras.KerasTensor,
        moments: tuple[keras.KerasTensor, keras.KerasTensor],
    ) -> keras.KerasTensor:
        """Undoes the normalization: `σ outputs + μ`, equation (4).

        Equation (4) has neither gain nor shift. So the inverse is exact if
        `gamma` is 1 and `beta` is 0. It is exact at real steps only.

        Args:
            outputs: Float tensor that broadcasts to the shape of the moments.
            moments: The pair μ, σ that `return_moments=True` returns.

        Returns:
            Tensor in the compute dtype.
        """
        mean, deviation = moments
        outputs = at_least_float32(outputs) * deviation + mean
        return ops.cast(outputs, self.compute_dtype)

    def compute_output_spec(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        return_moments: bool = False,
        training: bool = False,
    ) -> keras.KerasTensor | tuple:
        outputs = keras.KerasTensor(inputs.shape, self.compute_dtype)
        shape = self.compute_moments_shape(inputs.shape)
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        moments = tuple(keras.KerasTensor(shape, dtype) for _ in range(2))
        return (outputs, moments) if return_moments else outputs

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return tuple(input_shape)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "epsilon": self.epsilon,
            "center": self.center,
            "scale": self.scale,
        }

    def _check_mask(self, inputs, mask):
        shape = tuple(inputs.shape[:-1])
        if not shapes_match(mask.shape, shape):
            raise ValueError(
                f"{self.name} takes a mask with one value for each step, of "
                f"shape {shape}. Received: mask.shape={tuple(mask.shape)}"
            )


@keras.saving.register_keras_serializable(package="keras_relational")
class TemporalContextNormalization(ContextNormalization):
    """Normalizes each feature over the steps of its sequence.

    For example i, feature k, and step j of a context of T steps,

        μ_ik = 1/T Σ_j z_ijk                                    (1)
        σ_ik = √(1/T Σ_j (z_ijk − μ_ik)² + epsilon)             (2)
        outputs_ijk = gamma_k (z_ijk − μ_ik) / σ_ik + beta_k    (3)

    The outputs keep the relations between the embeddings of a context. They
    lose position and scale: adding a constant to all embeddings, or multiplying
    all of them by a positive number, does not change the outputs.

    Reference: [Webb et al., 2020](https://arxiv.org/abs/2007.05059), section
    3.1. The paper prints a sum over i in equation (1), and γ_i and β_i in
    equation (3). Here the sum is over steps, and gain and shift are per
    feature, as in the authors' code.

    Args:
        segment_lengths: Optional tuple of positive integers. The sequence is
            cut into segments of these lengths, and each is a context. For
            example, `(3, 3)` separates the source and the target of an
            analogy. By default the whole sequence is one context.
        epsilon: Small positive number, added to the variance.
        center: Boolean. If `True`, the layer learns the shift `beta`, which is
            zero at first.
        scale: Boolean. If `True`, the layer learns the gain `gamma`, which is
            one at first.

    Call arguments:
        inputs: Float tensor `(batch, time, features)`. There may be more axes
            between batch and time, such as an axis of candidate answers. Each
            entry along them has separate contexts.
        mask: Optional boolean tensor of the shape of `inputs` without its last
            axis. `True` marks a real step. Padded steps do not count. The layer
            returns them unchanged.
        return_moments: Boolean. If `True`, the layer also returns μ and σ,
            which `denormalize` takes.

    Returns:
        Tensor like `inputs`, in the compute dtype. With `return_moments`, a
        pair: this tensor, and the pair μ, σ. Both have at least float32
        precision and the shape `(batch, 1, features)`, or, with segments,
        `(batch, time, features)`.

    Raises:
        ValueError: If an argument is out of its range, the inputs have fewer
            than 3 axes or a last axis of unknown size, the segments do not add
            up to the sequence, or the mask has another shape.

    Example:

    >>> layer = TemporalContextNormalization()
    >>> outputs = layer(np.array([[[1.0], [2.0], [3.0]]]))
    >>> [round(float(x), 3) for x in ops.convert_to_numpy(outputs)[0, :, 0]]
    [-1.225, 0.0, 1.225]
    """

    def __init__(
        self,
        segment_lengths: Sequence[int] | None = None,
        epsilon: float = 1e-8,
        center: bool = True,
        scale: bool = True,
        **kwargs: object,
    ) -> None:
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
                    "`segment_lengths` must have at least one length, or be "
                    "None. Received: segment_lengths=()"
                )
            for length in segment_lengths:
                check_positive_integers(segment_lengths=length)
        self.segment_lengths = segment_lengths

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        super().build(input_shape)
        self._check_length(input_shape)

    def compute_moments(
        self,
        z: keras.KerasTensor,
        valid: keras.KerasTensor | None,
        training: bool,
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        if self.segment_lengths is None:
            return masked_moments(z, valid, -2, self.epsilon)
        self._check_length(z.shape)
        return self._segment_moments(z, valid)

    def compute_moments_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        self._check_length(input_shape)
        *batch, time, features = input_shape
        return (*batch, 1 if self.segment_lengths is None else time, features)

    def _segment_moments(self, z, valid):
        """The moments of each segment, repeated for each of its steps."""
        # Each segment becomes a row. Shorter ones are padded.
        lengths = np.array(self.segment_lengths)
        columns = np.arange(lengths.max())
        starts = np.cumsum(lengths) - lengths
        steps = np.minimum(starts[:, None] + columns, lengths.sum() - 1)
        in_segment = (columns < lengths[:, None])[..., None]
        if valid is not None:
            in_segment = ops.logical_and(
                ops.take(valid, steps, axis=-2), in_segment
            )
        segments = ops.take(z, steps, axis=-2)
        segment_of_step = np.repeat(np.arange(len(lengths)), lengths)
        return tuple(
            ops.take(ops.squeeze(moment, -2), segment_of_step, axis=-2)
            for moment in masked_moments(segments, in_segment, -2, self.epsilon)
        )

    def _check_length(self, input_shape):
        total = self.segment_lengths and sum(self.segment_lengths)
        if total and input_shape[-2] not in (None, total):
            raise ValueError(
                f"{self.name} takes sequences of {total} steps, in segments of "
                f"{self.segment_lengths}. Received: inputs.shape="
                f"{tuple(input_shape)}"
            )

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "segment_lengths": self.segment_lengths,
        }


def masked_moments(
    z: keras.KerasTensor,
    valid: keras.KerasTensor | None,
    axis: int,
    epsilon: float,
) -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """Mean and deviation of the valid entries along an axis.

    Args:
        z: Float tensor.
        valid: Optional boolean tensor that broadcasts to the shape of `z`.
            `True` marks an entry that counts.
        axis: The axis. The results have size 1 along it.
        epsilon: Small positive number, added to the variance.

    Returns:
        μ, and σ = √(variance + epsilon). Without any valid entry, μ is 0.
    """
    if valid is None:

        def average(x):
            return ops.mean(x, axis, keepdims=True)

    else:
        count = ops.sum(ops.cast(valid, z.dtype), axis, keepdims=True)
        count = ops.maximum(count, 1)

        def average(x):
            return ops.sum(ops.where(valid, x, 0), axis, keepdims=True) / count

    mean = average(z)
    # If all entries are equal, the mean has a small rounding error. Division by
    # √epsilon would make it large, so it is subtracted.
    mean = mean + ops.stop_gradient(average(z - mean))
    return mean, ops.sqrt(average(ops.square(z - mean)) + epsilon)
