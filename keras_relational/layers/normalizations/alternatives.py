"""The baselines of temporal context normalization, and all of them by name.

[Webb et al., 2020](https://arxiv.org/abs/2007.05059), Tables 1, 2 and 4.
"""

from collections.abc import Iterable

import keras
import numpy as np
from keras import ops

from keras_relational.layers._operations import shapes_match
from keras_relational.layers.normalizations.temporal_context import (
    ContextNormalization,
)
from keras_relational.layers.normalizations.temporal_context import (
    TemporalContextNormalization,
)
from keras_relational.layers.normalizations.temporal_context import (
    masked_moments,
)
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class BatchContextNormalization(ContextNormalization):
    """Normalizes each feature over the examples of a batch.

    It computes

        outputs = gamma (z − μ) / σ + beta,    σ = √(variance + epsilon)

    The context of a step is the same step of all examples. With `group_size`,
    the batch is cut into groups of this many examples, and each group is a
    context. With `over_time`, the sequences of all examples are joined end to
    end, and the long sequence is the context. With both, the long sequence is
    cut into groups of `group_size` steps. The last group may be smaller.

    In Tables 1, 2 and 4 of [Webb et al., 2020](
    https://arxiv.org/abs/2007.05059) these rows are

    | row | layer |
    | --- | --- |
    | batch norm. | `BatchContextNormalization()` |
    | batch norm. (train stats) | `…(statistics="training")` |
    | sub-batch norm. | `…(group_size=4)` |
    | TCN + batch norm. | `…(over_time=True)` |
    | misaligned TCN | `…(over_time=True, group_size=5)` |

    There is no moving average. By default, μ and σ are computed from the
    present batch, also at inference.

    Args:
        group_size: Optional positive integer, the size of a context: a number
            of examples, or, with `over_time`, of steps.
        over_time: Boolean. If `True`, the contexts extend over time.
        statistics: `"batch"` or `"training"`. With `"training"`, inference uses
            μ and σ of the data that `adapt` was given.
        epsilon: Small positive number, added to the variance.
        center: Boolean. If `True`, the layer learns the shift `beta`, which is
            zero at first.
        scale: Boolean. If `True`, the layer learns the gain `gamma`, which is
            one at first.

    Call arguments:
        inputs: Float tensor `(batch, time, features)`. There may be more axes
            between batch and time. Each entry along them has separate contexts.
        mask: Optional boolean tensor of the shape of `inputs` without its last
            axis. `True` marks a real step. Padded steps do not count. The layer
            returns them unchanged.
        return_moments: Boolean. If `True`, the layer also returns μ and σ,
            which `denormalize` takes.
        training: Boolean. If `True`, μ and σ are computed from the present
            batch, also with `statistics="training"`.

    Returns:
        Tensor like `inputs`, in the compute dtype. With `return_moments`, a
        pair: this tensor, and the pair μ, σ. Both have the shape of `inputs`
        and at least float32 precision.

    Raises:
        ValueError: If an argument is out of its range, the inputs have fewer
            than 3 axes or a last axis of unknown size, or the mask has another
            shape. With `statistics="training"` also if any size but the batch
            size is unknown.

    Example:

    >>> layer = BatchContextNormalization()
    >>> outputs = layer(np.array([[[1.0]], [[3.0]]]))
    >>> ops.convert_to_numpy(outputs)[:, 0, 0].tolist()
    [-1.0, 1.0]
    """

    def __init__(
        self,
        group_size: int | None = None,
        over_time: bool = False,
        statistics: str = "batch",
        epsilon: float = 1e-8,
        center: bool = True,
        scale: bool = True,
        **kwargs: object,
    ) -> None:
        super().__init__(epsilon, center, scale, **kwargs)
        if group_size is not None:
            check_positive_integers(group_size=group_size)
        check_choice("statistics", statistics, ("batch", "training"))
        self.group_size = group_size
        self.over_time = over_time
        self.statistics = statistics

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        super().build(input_shape)
        if self.statistics == "batch":
            return
        shape = self._adapted_shape(input_shape)
        if None in shape:
            raise ValueError(
                f"{self.name} has separate moments for each step, and takes "
                "inputs of which only the batch size varies. Received: "
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

    def adapt(self, batches: Iterable) -> None:
        """Computes the moments for inference from a data set.

        Args:
            batches: Iterable of arrays like `inputs`, without padding. It is
                read once.

        Raises:
            ValueError: If there is no batch, `statistics` is `"batch"`, or a
                batch has another shape than the inputs.
        """
        if self.statistics == "batch":
            raise ValueError(
                f"{self.name} uses the moments of each batch. Build it with "
                "statistics='training' to adapt it to data."
            )
        # The parallel algorithm of Chan et al. is exact, even if the mean is
        # far from zero.
        count, mean, squares = 0, 0.0, 0.0
        for batch in batches:
            batch = np.asarray(ops.convert_to_numpy(batch), "float64")
            if not self.built:
                self.build(batch.shape)
            self._check_adapted_shape(batch.shape)
            axes = (0, batch.ndim - 2) if self.over_time else (0,)
            size = np.prod([batch.shape[axis] for axis in axes])
            batch_mean = batch.mean(axes, keepdims=True)[0]
            squares += ((batch - batch_mean) ** 2).sum(axes, keepdims=True)[0]
            squares += (batch_mean - mean) ** 2 * count * size / (count + size)
            mean += (batch_mean - mean) * size / (count + size)
            count += size
        if not count:
            raise ValueError("`batches` must hold one batch or more.")
        self.mean.assign(mean)
        self.variance.assign(squares / count)

    def compute_moments(
        self,
        z: keras.KerasTensor,
        valid: keras.KerasTensor | None,
        training: bool,
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        if self.statistics == "training" and not training:
            return self._adapted_moments(z)
        return self._group_moments(z, valid)

    def _adapted_moments(self, z):
        self._check_adapted_shape(z.shape)
        deviation = ops.sqrt(self.variance + self.epsilon)
        return tuple(
            ops.broadcast_to(ops.cast(moment, z.dtype), ops.shape(z))
            for moment in (self.mean, deviation)
        )

    def _group_moments(self, z, valid):
        """The moments of each group, repeated for each of its members."""
        # Groups are cut along the first axis. The last one is padded.
        size = ops.shape(_join_sequences(z) if self.over_time else z)[0]
        group_size, num_groups = size, 1
        if self.group_size:
            group_size = self.group_size
            num_groups = -(-size // group_size)
        padding = num_groups * group_size - size

        def grouped(x):
            x = _join_sequences(x) if self.over_time else x
            x = ops.pad(x, [(0, padding)] + [(0, 0)] * (len(x.shape) - 1))
            return ops.reshape(x, (num_groups, group_size, *ops.shape(x)[1:]))

        if valid is None and self.group_size:
            valid = ops.ones_like(z[..., :1], "bool")
        groups = grouped(z)
        in_group = None if valid is None else grouped(valid)
        shape = ops.shape(groups)
        moments = []
        for moment in masked_moments(groups, in_group, 1, self.epsilon):
            moment = ops.broadcast_to(moment, shape)
            members = (num_groups * group_size, *shape[2:])
            moment = ops.reshape(moment, members)[:size]
            moments.append(
                _split_sequences(moment, z) if self.over_time else moment
            )
        return tuple(moments)

    def _adapted_shape(self, input_shape):
        """Shape of the moments for inference."""
        shape = list(input_shape[1:])
        if self.over_time:
            shape[-2] = 1
        return tuple(shape)

    def _check_adapted_shape(self, input_shape):
        shape = self._adapted_shape(input_shape)
        if not shapes_match(shape, self.mean.shape):
            raise ValueError(
                f"{self.name} was built for moments of shape "
                f"{tuple(self.mean.shape)}: the shape of one example, with "
                "time 1 if `over_time` is True. Received: inputs.shape="
                f"{tuple(input_shape)}"
            )

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "group_size": self.group_size,
            "over_time": self.over_time,
            "statistics": self.statistics,
        }


@keras.saving.register_keras_serializable(package="keras_relational")
class SlidingWindowNormalization(ContextNormalization):
    """Normalizes each feature over a step and the steps before it.

    It computes

        outputs = gamma (z − μ) / σ + beta,    σ = √(variance + epsilon)

    The sequences of all examples are joined end to end. The context of a step
    is this step and the `window_size` − 1 steps before it, which may belong to
    the previous example. At the beginning of the long sequence the window is
    shorter. Reference: the row "sliding-window TCN" in Table 1 of [Webb et al.,
    2020](https://arxiv.org/abs/2007.05059).

    Args:
        window_size: Positive integer, the number of steps of a context.
        epsilon: Small positive number, added to the variance.
        center: Boolean. If `True`, the layer learns the shift `beta`, which is
            zero at first.
        scale: Boolean. If `True`, the layer learns the gain `gamma`, which is
            one at first.

    Call arguments:
        inputs: Float tensor `(batch, time, features)`. There may be more axes
            between batch and time. Each entry along them has separate contexts.
        mask: Optional boolean tensor of the shape of `inputs` without its last
            axis. `True` marks a real step. Padded steps keep their place in
            the window, but do not count. They are returned unchanged.
        return_moments: Boolean. If `True`, the layer also returns μ and σ,
            which `denormalize` takes.

    Returns:
        Tensor like `inputs`, in the compute dtype. With `return_moments`, a
        pair: this tensor, and the pair μ, σ. Both have the shape of `inputs`
        and at least float32 precision.

    Raises:
        ValueError: If an argument is out of its range, the inputs have fewer
            than 3 axes or a last axis of unknown size, or the mask has another
            shape.

    Example:

    >>> layer = SlidingWindowNormalization(window_size=2)
    >>> outputs = layer(np.array([[[1.0], [2.0], [0.0]]]))
    >>> [round(float(x), 3) for x in ops.convert_to_numpy(outputs)[0, :, 0]]
    [0.0, 1.0, -1.0]
    """

    def __init__(
        self,
        window_size: int = 4,
        epsilon: float = 1e-8,
        center: bool = True,
        scale: bool = True,
        **kwargs: object,
    ) -> None:
        super().__init__(epsilon, center, scale, **kwargs)
        check_positive_integers(window_size=window_size)
        self.window_size = window_size

    def compute_moments(
        self,
        z: keras.KerasTensor,
        valid: keras.KerasTensor | None,
        training: bool,
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        if valid is None:
            valid = ops.ones_like(z[..., :1], "bool")
        moments = masked_moments(
            self._windows(z), self._windows(valid), 0, self.epsilon
        )
        return tuple(_split_sequences(moment[0], z) for moment in moments)

    def _windows(self, x):
        """`(window_size, batch * time, ..., features)`."""
        x = _join_sequences(x)
        size = ops.shape(x)[0]
        before = [(self.window_size - 1, 0)]
        x = ops.pad(x, before + [(0, 0)] * (len(x.shape) - 1))
        return ops.stack([x[i : i + size] for i in range(self.window_size)])

    def get_config(self) -> dict:
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


def normalization(name: str) -> keras.layers.Layer:
    """Creates a normalization by the name of its row in Table 1.

    Args:
        name: One of the keys of `NORMALIZATIONS`.

    Returns:
        A new layer. Its inputs and outputs are `(batch, ..., time, features)`.

    Raises:
        ValueError: If the name is unknown.

    Example:

    >>> normalization("sub_batch").group_size
    4
    """
    check_choice("normalization", name, NORMALIZATIONS)
    return NORMALIZATIONS[name]()


def _join_sequences(x):
    """`(batch, ..., time, features)` → `(batch * time, ..., features)`."""
    x = ops.moveaxis(x, -2, 1)
    batch, time, *rest = ops.shape(x)
    return ops.reshape(x, (batch * time, *rest))


def _split_sequences(joined, like):
    """The inverse of `_join_sequences`, to the shape of `like`."""
    batch, *between, time, features = ops.shape(like)
    joined = ops.reshape(joined, (batch, time, *between, features))
    return ops.moveaxis(joined, 1, -2)
