from typing import NamedTuple

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract
from layer_contract import outputs_and_gradients
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import in_float32
from layers_for_tests import needs_float64
from layers_for_tests import random_array

from keras_relational import layers
from keras_relational.layers import BatchContextNormalization
from keras_relational.layers import SlidingWindowNormalization
from keras_relational.layers import TemporalContextNormalization

EPSILON = 1e-3  # Large, so that ignoring it fails a test.


class Cell(NamedTuple):
    """A step of an example. `place` counts them all, example after example."""

    example: int
    step: int
    place: int


def in_loops(is_context):
    """Equations (1) to (3) in loops over steps.

    `is_context(one, other)` tells of two cells whether the second belongs to
    the context of the first.
    """

    def reference(weights, inputs, mask=None):
        if mask is None:
            mask = np.ones(inputs.shape[:2], bool)
        cells = [
            Cell(i, j, i * mask.shape[1] + j) for i, j in np.argwhere(mask)
        ]
        outputs = inputs.copy()
        for one in cells:
            others = [other for other in cells if is_context(one, other)]
            context = [inputs[other[:2]] for other in others]
            mean = sum(context) / len(context)
            squares = sum((values - mean) ** 2 for values in context)
            deviation = (squares / len(context) + EPSILON) ** 0.5
            normalized = (inputs[one[:2]] - mean) / deviation
            outputs[one[:2]] = weights["gamma"] * normalized + weights["beta"]
        return outputs

    return reference


def same_example(one, other):
    return one.example == other.example


def same_step(one, other):
    return one.step == other.step


@pytest.mark.any_backend
class ContractTest(LayerContract):
    def check(self, layer_cls, is_context, mixes_examples=True, **arguments):
        self.run_layer_contract(
            layer_cls,
            init_kwargs={"epsilon": EPSILON, **arguments},
            input_shape=(3, 4, 2),
            second_input_shape=(3, 7, 2),
            fixed_size="segment_lengths" in arguments,
            reference=in_loops(is_context),
            output_mask=lambda mask: mask,
            keeps_padding=True,
            mixes_examples=mixes_examples,
            expected_output_shape=(3, 4, 2),
            expected_num_trainable_weights=2,
        )

    def test_temporal_context(self):
        self.check(TemporalContextNormalization, same_example, False)

    def test_segments(self):
        self.check(
            TemporalContextNormalization,
            lambda one, other: (
                same_example(one, other) and (one.step < 1) == (other.step < 1)
            ),
            False,
            segment_lengths=(1, 3),
        )

    def test_batch(self):
        self.check(BatchContextNormalization, same_step)

    @pytest.mark.slow
    def test_sub_batch(self):
        self.check(
            BatchContextNormalization,
            lambda one, other: (
                same_step(one, other) and one.example // 2 == other.example // 2
            ),
            group_size=2,
        )

    @pytest.mark.slow
    def test_temporal_and_batch(self):
        self.check(
            BatchContextNormalization, lambda one, other: True, over_time=True
        )

    @pytest.mark.slow
    def test_misaligned(self):
        self.check(
            BatchContextNormalization,
            lambda one, other: one.place // 5 == other.place // 5,
            over_time=True,
            group_size=5,
        )

    def test_sliding_window(self):
        self.check(
            SlidingWindowNormalization,
            lambda one, other: 0 <= one.place - other.place < 3,
            window_size=3,
        )


class TestTemporalContextNormalization:
    @pytest.mark.parametrize("segment_lengths", [None, (2, 3)])
    def test_neither_place_nor_scale_of_a_context_is_seen(
        self, segment_lengths
    ):
        layer = TemporalContextNormalization(segment_lengths)
        z = random_array(3, 5, 4)
        moved = 7 * z + random_array(1, 1, 4)
        if segment_lengths:  # Each context by another amount.
            moved[:, 2:] = 0.5 * z[:, 2:] - 3
        assert_close(layer(moved), layer(z), atol=2e-5)
        assert np.abs(array(layer(z))).max() > 0.5

    def test_order_of_the_terms_does_not_matter(self):
        layer, z = TemporalContextNormalization(), random_array(3, 5, 4)
        order = [3, 1, 4, 0, 2]
        assert_close(layer(z[:, order]), array(layer(z))[:, order])

    @pytest.mark.parametrize("segment_lengths", [None, (2, 3)])
    def test_denormalize_is_exact(self, segment_lengths):
        layer = TemporalContextNormalization(segment_lengths)
        z, inputs = random_array(3, 5, 4), keras.Input((5, 4))
        outputs, moments = layer(z, return_moments=True)
        np.testing.assert_array_equal(outputs, layer(z))
        assert_close(layer.denormalize(outputs, moments), z)
        if not segment_lengths:  # A prediction may have any length.
            shorter = layer.denormalize(outputs[:, :2], moments)
            assert_close(shorter, z[:, :2])
        # The same in a model.
        outputs, symbolic = layer(inputs, return_moments=True)
        outputs = layer.denormalize(outputs, symbolic)
        found = keras.Model(inputs, [outputs, *symbolic])(z)
        assert_close(found, [z, *moments])
        for moment, spec in zip(moments, symbolic, strict=True):
            assert moment.shape[1:] == spec.shape[1:]

    @pytest.mark.parametrize(
        "z",
        [
            random_array(2, 1, 4),
            np.full((2, 5, 4), 1e3, "float32"),
            # The mean of these is rounded.
            np.full((2, 19, 4), 1234.567, "float32"),
        ],
    )
    def test_what_does_not_vary_is_zero(self, z):
        layer = TemporalContextNormalization()
        layer.build(z.shape)
        outputs, of_weights, of_inputs = outputs_and_gradients(layer, z)
        np.testing.assert_array_equal(outputs, 0 * z)
        for gradient in (*of_weights, of_inputs):
            assert np.isfinite(array(gradient)).all()

    def test_without_gain_and_shift(self):
        layer = TemporalContextNormalization(center=False, scale=False)
        layer.build((None, 5, 4))
        assert not layer.weights


class TestBatchContexts:
    @pytest.mark.parametrize(
        "name", [n for n in layers.NORMALIZATIONS if n not in ("layer", "none")]
    )
    def test_axes_in_between_are_kept_apart(self, name):
        layer, z = layers.normalization(name), random_array(6, 3, 4, 2)
        outputs = array(layer(z, training=True))
        for candidate in range(3):
            assert_close(
                outputs[:, candidate],
                layers.normalization(name)(z[:, candidate], training=True),
            )

    @needs_float64
    def test_training_statistics_keep_what_float64_can(self):
        layer = BatchContextNormalization(
            statistics="training", dtype="float64"
        )
        data = 1e9 + random_array(7, 3, 2).astype("float64")
        layer.adapt([data])
        expected = (data - data.mean(0)) / data.std(0)
        assert_close(layer(data), expected, atol=1e-5)

    @pytest.mark.parametrize("over_time", [False, True])
    def test_training_statistics_are_those_of_all_data(self, over_time):
        layer = BatchContextNormalization(
            over_time=over_time, statistics="training"
        )
        # Far from 0, and in batches of different sizes.
        data = 1e4 + random_array(13, 3, 4, 2)
        layer.adapt([data[:5], data[5:12], data[12:]])
        axes = (0, 2) if over_time else 0
        mean = data.mean(axes, dtype="float64", keepdims=True)
        deviation = data.std(axes, dtype="float64", keepdims=True)
        other = random_array(2, 3, 4, 2)
        np.testing.assert_allclose(
            layer(other), (other - mean) / deviation, rtol=1e-4
        )
        outputs, moments = layer(other, return_moments=True)
        assert_close(layer.denormalize(outputs, moments), other, atol=2e-2)
        # In training, the moments of the batch are used.
        assert_close(
            layer(other, training=True),
            BatchContextNormalization(over_time=over_time)(other),
        )

    @pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
    def test_training_statistics_are_float32(self, dtype):
        def new(dtype):
            layer = BatchContextNormalization(
                statistics="training", dtype=dtype
            )
            layer.adapt([data])
            return layer

        # A deviation of zero, a variance that overflows in float16, and a mean
        # whose rounding error in bfloat16 is larger than the deviation.
        scale = np.array([0, 300, 0.2], "float32")
        data = scale * random_array(50, 4, 3) + np.float32([2, 0, 1000.3])
        layer = new(dtype)
        z = in_float32(ops.cast(data, layer.compute_dtype))
        outputs, moments = layer(z, return_moments=True)
        expected, expected_moments = new("float32")(z, return_moments=True)
        np.testing.assert_allclose(
            in_float32(outputs), expected, rtol=1e-2, atol=1e-2
        )
        assert_close(moments, expected_moments, atol=0)

    def test_training_statistics_are_saved(self, tmp_path):
        layer = BatchContextNormalization(statistics="training")
        model = keras.Sequential([keras.Input((4, 2)), layer])
        layer.adapt([random_array(9, 4, 2) + 5])
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        z = random_array(3, 4, 2)
        np.testing.assert_array_equal(loaded(z), model(z))
        assert array(model(z)).max() < -1


def test_layers_are_what_their_names_in_table_1_say():
    made = {n: layers.normalization(n) for n in layers.NORMALIZATIONS}
    assert isinstance(made["temporal_context"], TemporalContextNormalization)
    assert made["sliding_window"].window_size == 4
    assert made["batch_training_statistics"].statistics == "training"
    assert made["batch"].statistics == "batch"
    for name, group_size, over_time in (
        ("batch", None, False),
        ("sub_batch", 4, False),
        ("misaligned", 5, True),
        ("temporal_and_batch", None, True),
    ):
        assert made[name].group_size == group_size
        assert made[name].over_time == over_time
    z = random_array(2, 7, 4, 8)
    np.testing.assert_allclose(array(made["layer"](z)).mean(-1), 0, atol=1e-6)
    np.testing.assert_array_equal(made["none"](z), z)


@pytest.mark.any_backend
@pytest.mark.parametrize(
    "name",
    [
        "temporal_context",
        "sub_batch",
        "sliding_window",
        "temporal_and_batch",
        "misaligned",
        "batch",
    ],
)
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_does_not_round_the_inputs(policy, name):
    z = 3000 + np.arange(12, dtype="float32").reshape(2, 3, 2)
    expected = array(layers.normalization(name)(z))
    keras.config.set_dtype_policy(policy)
    outputs = layers.normalization(name)(z)
    folded = layers.TimeFolded(layers.normalization(name))(z[:, None])
    for found in (outputs, folded[:, 0]):
        assert_close(in_float32(found), expected, atol=1e-2)


@pytest.mark.any_backend
def test_what_float16_cannot_hold_is_normalized():
    z = np.array([[[70_000.0], [70_001], [70_002]]], "float32")
    layer = TemporalContextNormalization(dtype="mixed_float16")
    outputs, moments = layer(z, return_moments=True)
    for moment in moments:
        assert keras.backend.standardize_dtype(moment.dtype) == "float32"
    expected = np.array([-1.225, 0, 1.225])
    assert_close(array(outputs)[0, :, 0], expected, atol=1e-3)


@pytest.mark.parametrize("name", sorted(layers.NORMALIZATIONS))
def test_a_batch_may_be_empty(name):
    layer = layers.normalization(name)
    if name == "batch_training_statistics":
        layer.adapt([np.ones((2, 3, 4), "float32")])
    for training in (False, True):
        outputs = layer(np.zeros((0, 3, 4), "float32"), training=training)
        assert tuple(outputs.shape) == (0, 3, 4)


@needs_float64
def test_denormalize_loses_nothing_in_float64():
    z = 7 + random_array(3, 5, 4).astype("float64")
    layer = TemporalContextNormalization(dtype="float64")
    outputs, moments = layer(z, return_moments=True)
    assert keras.backend.standardize_dtype(moments[0].dtype) == "float64"
    assert_close(layer.denormalize(outputs, moments), z, atol=1e-12)
