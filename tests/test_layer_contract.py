"""Tests of the layer contract: good layers pass, and broken ones do not.

Every broken layer is a good layer with one change. The test names the check
that must reject it, and the reason.
"""

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import CHECKS
from layer_contract import LayerCase
from layer_contract import LayerContract
from layers_for_tests import NO_OTHER_VARIABLES

from keras_relational.layers._attention import masked_softmax

pytestmark = pytest.mark.slow

registered = keras.saving.register_keras_serializable("layer_contract")


@registered
class Differences(keras.layers.Layer):
    """`scale * (inputs[i] - inputs[j]) @ kernel` for every two items."""

    def __init__(self, units, scale=1.0, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.scale = scale
        self.supports_masking = True

    def build(self, input_shape):
        shape = (input_shape[-1], self.units)
        self.kernel = self.add_weight(shape, name="kernel")

    def call(self, inputs, mask=None):
        if mask is not None:
            inputs = ops.where(ops.expand_dims(mask, -1), inputs, 0)
        items = self.scale * ops.matmul(inputs, self.kernel)
        pairs = ops.expand_dims(items, 2) - ops.expand_dims(items, 1)
        if mask is None:
            return pairs
        return ops.where(ops.expand_dims(pair_mask(mask), -1), pairs, 0)

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else pair_mask(mask)

    def compute_output_shape(self, input_shape):
        batch, num_items, _ = input_shape
        return (batch, num_items, num_items, self.units)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "scale": self.scale,
        }


def pair_mask(mask):
    return mask[:, :, None] & mask[:, None, :]


def differences_in_loops(weights, inputs, mask=None):
    batch, num_items, _ = inputs.shape
    outputs = np.zeros((batch, num_items, num_items, 3))
    for b, i, j in np.ndindex(outputs.shape[:3]):
        if mask is None or (mask[b, i] and mask[b, j]):
            difference = inputs[b, i] - inputs[b, j]
            outputs[b, i, j] = 0.5 * difference @ weights["kernel"]
    return outputs


DIFFERENCES = {
    "init_kwargs": {"units": 3, "scale": 0.5},
    "input_shape": (2, 4, 5),
    "second_input_shape": (2, 6, 5),
    "fixed_size": False,
    "reference": differences_in_loops,
    "supports_masking": True,
    "output_mask": pair_mask,
    "expected_output_shape": (2, 4, 4, 3),
    "expected_num_trainable_weights": 1,
    **NO_OTHER_VARIABLES,
}


@registered
class AttentionAverage(keras.layers.Layer):
    """For each head, an average of the items with weights from a sublayer."""

    def __init__(self, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.supports_masking = True

    def build(self, input_shape):
        self.relevance = keras.layers.Dense(
            self.num_heads,
            use_bias=False,
            dtype=self.dtype_policy,
            name="relevance",
        )
        self.relevance.build(input_shape)

    def call(self, inputs, mask=None, return_attention_scores=False):
        if mask is not None:
            inputs = self.without_padding(inputs, mask)
        logits = ops.swapaxes(self.relevance(inputs), 1, 2)
        scores = self.softmax(logits, mask)
        outputs = ops.matmul(scores, inputs)
        if return_attention_scores:
            return outputs, scores
        return outputs

    def without_padding(self, inputs, mask):
        return ops.where(ops.expand_dims(mask, -1), inputs, 0)

    def softmax(self, logits, mask):
        if mask is None:
            return ops.softmax(logits, axis=-1)
        return masked_softmax(logits, ops.expand_dims(mask, 1))

    def compute_mask(self, inputs, mask=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.num_heads, input_shape[2])

    def compute_output_spec(
        self, inputs, mask=None, return_attention_scores=False
    ):
        shape = self.compute_output_shape(inputs.shape)
        outputs = keras.KerasTensor(shape, self.compute_dtype)
        if not return_attention_scores:
            return outputs
        shape = (*shape[:2], inputs.shape[1])
        return outputs, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "num_heads": self.num_heads}


def average_in_loops(weights, inputs, mask=None):
    batch, num_items, features = inputs.shape
    outputs = np.zeros((batch, 2, features))
    for b, head in np.ndindex(batch, 2):
        valid = range(num_items) if mask is None else np.flatnonzero(mask[b])
        kernel = weights["relevance/kernel"][:, head]
        total = sum(np.exp(inputs[b, i] @ kernel) for i in valid)
        for i in valid:
            score = np.exp(inputs[b, i] @ kernel) / total
            outputs[b, head] += score * inputs[b, i]
    return outputs


AVERAGE = {
    "init_kwargs": {"num_heads": 2},
    "input_shape": (2, 4, 5),
    "second_input_shape": (2, 6, 5),
    "fixed_size": False,
    "reference": average_in_loops,
    "supports_masking": True,
    "attention_scores_shape": (2, 2, 4),
    "expected_output_shape": (2, 2, 5),
    "expected_num_trainable_weights": 1,
    **NO_OTHER_VARIABLES,
}


@registered
class Offsets(keras.layers.Layer):
    """Each query minus the mean of the base, with dropout: two inputs."""

    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.seed_generator = keras.random.SeedGenerator()
        self.supports_masking = True

    def build(self, query_shape, base_shape):
        self.kernel = self.add_weight((base_shape[-1],), name="kernel")

    def call(self, query, base, query_mask=None, training=False):
        query, base = (ops.cast(x, self.compute_dtype) for x in (query, base))
        offsets = query - ops.mean(base * self.kernel, axis=1, keepdims=True)
        if training:
            offsets = keras.random.dropout(
                offsets, self.rate, seed=self.seed_generator
            )
        if query_mask is None:
            return offsets
        return ops.where(ops.expand_dims(query_mask, -1), offsets, 0)

    def compute_mask(self, query, query_mask=None):
        # Keras passes the masks of all inputs, in their order.
        return query_mask[0] if isinstance(query_mask, list) else query_mask

    def compute_output_shape(self, query_shape, base_shape):
        return query_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}


def offsets_in_loops(weights, inputs, mask=None):
    outputs = np.zeros(inputs["query"].shape)
    for b, i in np.ndindex(outputs.shape[:2]):
        if mask is None or mask[b, i]:
            mean = sum(inputs["base"][b]) / len(inputs["base"][b])
            outputs[b, i] = inputs["query"][b, i] - mean * weights["kernel"]
    return outputs


OFFSETS = {
    "init_kwargs": {"rate": 0.5},
    "input_shape": {"query_shape": (2, 4, 5), "base_shape": (2, 3, 5)},
    "second_input_shape": {"query_shape": (2, 6, 5), "base_shape": (2, 7, 5)},
    "fixed_size": False,
    "reference": offsets_in_loops,
    "supports_masking": True,
    "output_mask": np.copy,
    "expected_output_shape": (2, 4, 5),
    "expected_num_trainable_weights": 1,
    **NO_OTHER_VARIABLES,
    "expected_num_non_trainable_variables": 1,
    "expected_num_seed_generators": 1,
}


@registered
class Scaled(keras.layers.Layer):
    """Items divided by a power of the batch size. Padding is unchanged."""

    def __init__(self, power, **kwargs):
        super().__init__(**kwargs)
        self.power = power
        self.supports_masking = True

    def build(self, input_shape):
        self.kernel = self.add_weight((input_shape[-1],), name="kernel")

    def call(self, inputs, mask=None):
        inputs = ops.cast(inputs, self.compute_dtype)
        size = ops.cast(ops.shape(inputs)[0], self.compute_dtype)
        factors = self.kernel / self.divisor(size**self.power)
        if mask is None:
            return inputs * factors
        valid = ops.expand_dims(mask, -1)
        return ops.where(valid, ops.where(valid, inputs, 0) * factors, inputs)

    def divisor(self, size):
        return size

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "power": self.power}


def scaled_in_loops(weights, inputs, mask=None):
    outputs = np.array(inputs)
    for b, i in np.ndindex(outputs.shape[:2]):
        if mask is None or mask[b, i]:
            outputs[b, i] *= weights["kernel"] / len(inputs) ** 2
    return outputs


SCALED = {
    "init_kwargs": {"power": 2},
    "input_shape": (2, 4, 5),
    "second_input_shape": (2, 6, 5),
    "fixed_size": False,
    "reference": scaled_in_loops,
    "supports_masking": True,
    "output_mask": np.copy,
    "keeps_padding": True,
    "mixes_examples": True,
    "expected_output_shape": (2, 4, 5),
    "expected_num_trainable_weights": 1,
    **NO_OTHER_VARIABLES,
}


class GoodLayersTest(LayerContract):
    def test_layer_that_passes_on_a_mask(self):
        self.run_layer_contract(Differences, **DIFFERENCES)

    def test_layer_that_attends(self):
        self.run_layer_contract(AttentionAverage, **AVERAGE)

    def test_layer_of_two_inputs_with_a_seed(self):
        self.run_layer_contract(Offsets, **OFFSETS)

    def test_layer_that_keeps_padding_and_mixes_examples(self):
        self.run_layer_contract(Scaled, **SCALED)

    def test_every_check_is_run(self):
        checks = {name for name in dir(self) if name.startswith("check_")}
        assert {f"check_{name}" for name in CHECKS} == checks

    def test_every_expectation_is_needed(self):
        for name in DIFFERENCES:
            if name.startswith("expected_"):
                rest = {**DIFFERENCES}
                del rest[name]
                with pytest.raises(TypeError, match=name):
                    self.run_layer_contract(Differences, **rest)


class BrokenLayersTest(LayerContract):
    def assert_rejected(self, check, reason, layer_cls, **changes):
        """The check rejects the layer, with an error that matches `reason`."""
        good = next(
            case
            for base, case in (
                (Differences, DIFFERENCES),
                (AttentionAverage, AVERAGE),
                (Scaled, SCALED),
            )
            if issubclass(layer_cls, base)
        )
        case = LayerCase(layer_cls=layer_cls, **{**good, **changes})
        message = f"(?s){layer_cls.__name__} .* check '{check}':.*{reason}"
        with pytest.raises(AssertionError, match=message):
            self.run_check(check, case)

    def test_the_whole_contract_rejects(self):
        @registered
        class Doubles(Differences):
            def call(self, inputs, mask=None):
                return 2 * super().call(inputs, mask)

        message = "Doubles breaks the layer contract, check 'reference': "
        with pytest.raises(AssertionError, match=message):
            self.run_layer_contract(Doubles, **DIFFERENCES)

    # keras_layer_test

    def test_weight_that_keras_does_not_know(self):
        @registered
        class RawKernel(Differences):
            def build(self, input_shape):
                shape = (input_shape[-1], self.units)
                self.kernel = ops.ones(shape, self.compute_dtype)

        self.assert_rejected(
            "keras_layer_test",
            "Unexpected number of trainable_weights",
            RawKernel,
        )

    def test_output_shape_other_than_expected(self):
        @registered
        class FalseShape(Differences):
            def compute_output_shape(self, input_shape):
                return input_shape

        self.assert_rejected(
            "keras_layer_test", "Expected output shapes", FalseShape
        )

    def test_masks_other_than_stated(self):
        @registered
        class NoMasks(Differences):
            def __init__(self, units, scale=1.0, **kwargs):
                super().__init__(units, scale, **kwargs)
                self.supports_masking = False

        self.assert_rejected(
            "keras_layer_test", "Unexpected supports_masking", NoMasks
        )

    # config

    def test_config_lacks_an_argument(self):
        class Forgets(Differences):
            def get_config(self):
                config = super().get_config()
                del config["scale"]
                return config

        self.assert_rejected("config", "lacks arguments .*'scale'", Forgets)

    def test_config_has_what_is_no_argument(self):
        class Adds(Differences):
            def get_config(self):
                return {**super().get_config(), "factor": 2}

        self.assert_rejected("config", "no arguments .*'factor'", Adds)

    def test_config_has_another_value(self):
        class Defaults(Differences):
            def get_config(self):
                return {**super().get_config(), "scale": 1.0}

        self.assert_rejected("config", "config of `scale`", Defaults)

    def test_argument_is_no_attribute(self):
        class Renames(Differences):
            def __init__(self, units, scale=1.0, **kwargs):
                super().__init__(units, scale, **kwargs)
                self.factor = self.scale
                del self.scale

            def get_config(self):
                config = keras.layers.Layer.get_config(self)
                return {**config, "units": self.units, "scale": self.factor}

        self.assert_rejected("config", "no attribute `scale`", Renames)

    def test_config_changes_in_build(self):
        class Fills(Differences):
            def build(self, input_shape):
                super().build(input_shape)
                self.scale = input_shape[-1]

        self.assert_rejected("config", "changed by build or call", Fills)

    def test_config_of_a_layer_that_passes_its_arguments_on(self):
        class Passes(Differences):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **kwargs)

        class Forgets(Passes):
            def get_config(self):
                config = super().get_config()
                del config["units"]
                return config

        self.run_check("config", LayerCase(layer_cls=Passes, **DIFFERENCES))
        self.assert_rejected("config", "lacks arguments .*'units'", Forgets)

    # output_shape

    def test_output_shape_that_the_spec_hides(self):
        class FalseShape(AttentionAverage):
            def compute_output_shape(self, input_shape):
                return (input_shape[0], 1, input_shape[2])

            def compute_output_spec(self, inputs, mask=None):
                shape = super().compute_output_shape(inputs.shape)
                return keras.KerasTensor(shape, self.compute_dtype)

        self.assert_rejected("output_shape", "symbolic", FalseShape)

    def test_output_of_another_shape_than_its_spec(self):
        class FalseSpec(Differences):
            def compute_output_shape(self, input_shape):
                return (*input_shape[:2], 1, self.units)

        self.assert_rejected("output_shape", "eager", FalseSpec)

    # reference

    def test_wrong_values(self):
        class OtherWayRound(Differences):
            def call(self, inputs, mask=None):
                return -super().call(inputs, mask)

        self.assert_rejected("reference", "the reference", OtherWayRound)

    def test_values_wrong_by_little(self):
        class Rounds(Differences):
            def call(self, inputs, mask=None):
                return super().call(inputs, mask) * (1 + 1e-4)

        self.assert_rejected("reference", "the reference", Rounds)

    # gradients

    def test_weight_without_gradient(self):
        class Unused(Differences):
            def build(self, input_shape):
                super().build(input_shape)
                self.spare = self.add_weight((2,), name="spare")

        self.assert_rejected("gradients", "spare is zero", Unused)

    def test_infinite_gradient(self):
        class Norm(Differences):
            def call(self, inputs, mask=None):
                # An item's difference from itself is zero.
                return ops.sqrt(ops.square(super().call(inputs, mask)))

        self.assert_rejected("gradients", "not finite: gradient", Norm)

    # zero_inputs

    def test_nan_at_zero(self):
        class UnitItems(AttentionAverage):
            def call(self, inputs, mask=None):
                norm = ops.norm(inputs, axis=-1, keepdims=True)
                return super().call(inputs / norm, mask)

        self.assert_rejected("zero_inputs", "not finite: outputs", UnitItems)

    def test_nan_gradient_at_zero(self):
        class AddsLength(AttentionAverage):
            def call(self, inputs, mask=None):
                squares = ops.sum(ops.square(inputs), axis=-1, keepdims=True)
                return super().call(inputs + ops.sqrt(squares), mask)

        self.assert_rejected("zero_inputs", "not finite: gradient", AddsLength)

    def test_nan_at_zero_in_float16_alone(self):
        class UnitItems(AttentionAverage):
            def call(self, inputs, mask=None):
                squares = ops.sum(ops.square(inputs), axis=-1, keepdims=True)
                # Too small for float16, where it is zero.
                return super().call(inputs / ops.sqrt(squares + 1e-12), mask)

        self.assert_rejected("zero_inputs", "mixed_float16", UnitItems)

    # batch_of_one

    def test_batch_axis_lost(self):
        class Squeezes(Differences):
            def call(self, inputs, mask=None):
                return ops.squeeze(super().call(inputs, mask))

        self.assert_rejected("batch_of_one", "shape", Squeezes)

    def test_example_that_depends_on_the_batch(self):
        class Centred(AttentionAverage):
            def call(self, inputs, mask=None):
                mean = ops.mean(inputs, axis=0, keepdims=True)
                return super().call(inputs - mean, mask)

        self.assert_rejected("batch_of_one", "a batch of one", Centred)

    def test_batch_of_one_alone_is_wrong(self):
        class ByOthers(Scaled):
            def divisor(self, size):
                return size + ops.cast(size == 1, size.dtype)

        self.assert_rejected("batch_of_one", "reference", ByOthers)

    # set_sizes

    def test_set_size_frozen_at_build(self):
        class Frozen(AttentionAverage):
            def build(self, input_shape):
                super().build(input_shape)
                self.num_items = input_shape[1]

            def call(self, inputs, mask=None):
                return super().call(inputs[:, : self.num_items], mask)

        self.assert_rejected("set_sizes", "second set size", Frozen)

    def test_set_size_that_should_be_refused(self):
        self.assert_rejected(
            "set_sizes", "is not refused", AttentionAverage, fixed_size=True
        )

    def test_set_size_refused_without_naming_both(self):
        class Terse(Differences):
            def call(self, inputs, mask=None):
                if inputs.shape[1] != 4:
                    raise ValueError("Expected sets of size 4.")
                return super().call(inputs, mask)

        self.assert_rejected(
            "set_sizes", "does not name the sizes", Terse, fixed_size=True
        )

    def test_set_size_not_refused_while_a_model_is_built(self):
        class Late(AttentionAverage):
            def call(self, inputs, mask=None):
                if inputs.shape[1] != 4:
                    raise ValueError(f"{inputs.shape[1]} items instead of 4.")
                return super().call(inputs, mask)

        self.assert_rejected(
            "set_sizes", "is not refused", Late, fixed_size=True
        )

    # masks

    def test_padding_that_is_seen(self):
        class IgnoresMask(AttentionAverage):
            def call(self, inputs, mask=None):
                return super().call(inputs)

        self.assert_rejected(
            "masks", "the reference, padding of 0", IgnoresMask
        )

    def test_outputs_where_all_is_padding(self):
        class AddsOne(Differences):
            def call(self, inputs, mask=None):
                return super().call(inputs, mask) + 1

        self.assert_rejected("masks", "all padding are not zero", AddsOne)

    def test_padding_that_is_attended_to(self):
        class AttendsToZeros(AttentionAverage):
            def softmax(self, logits, mask):
                return ops.softmax(logits, axis=-1)

        self.assert_rejected(
            "masks", "the reference, padding of 0", AttendsToZeros
        )

    def test_padding_that_is_multiplied_by_zero(self):
        class Multiplies(AttentionAverage):
            def without_padding(self, inputs, mask):
                return inputs * ops.cast(mask, inputs.dtype)[..., None]

        self.assert_rejected("masks", "outputs, padding of nan", Multiplies)

    def test_padding_with_a_gradient(self):
        class MasksOutputs(Differences):
            def call(self, inputs, mask=None):
                pairs = super().call(inputs)
                if mask is None:
                    return pairs
                valid = ops.expand_dims(pair_mask(mask), -1)
                return ops.where(valid, pairs, 0)

        self.assert_rejected(
            "masks", "not finite: gradients with a mask", MasksOutputs
        )

    def test_nan_where_all_is_padding(self):
        class Infinite(AttentionAverage):
            def softmax(self, logits, mask):
                if mask is not None:
                    valid = ops.expand_dims(mask, 1)
                    logits = ops.where(valid, logits, -np.inf)
                return ops.softmax(logits, axis=-1)

        self.assert_rejected("masks", "outputs, padding of 0", Infinite)

    def test_nan_where_all_is_padding_in_float16_alone(self):
        class Large(AttentionAverage):
            def softmax(self, logits, mask):
                if mask is not None:
                    padded = ops.cast(~mask, logits.dtype)[:, None]
                    # In float16, 1e8 is infinite.
                    logits = logits - padded * 1e4 * 1e4
                return ops.softmax(logits, axis=-1)

        self.assert_rejected("masks", "with a mask, mixed_float16", Large)

    def test_padding_that_counts(self):
        @registered
        class CountsPadding(Differences):
            def call(self, inputs, mask=None):
                return super().call(inputs, mask) / inputs.shape[1]

        def also_wrong(weights, inputs, mask=None):
            outputs = differences_in_loops(weights, inputs, mask)
            return outputs / inputs.shape[1]

        self.assert_rejected(
            "masks",
            "the set without its padding",
            CountsPadding,
            reference=also_wrong,
        )

    def test_padding_that_is_changed(self):
        class Zeros(Scaled):
            def call(self, inputs, mask=None):
                outputs = super().call(inputs, mask)
                if mask is None:
                    return outputs
                return ops.where(ops.expand_dims(mask, -1), outputs, 0)

        self.assert_rejected("masks", "padding of 10000.0 comes out", Zeros)

    def test_mask_of_a_set_now_gone(self):
        class PassesOn(AttentionAverage):
            def compute_mask(self, inputs, mask=None):
                return mask

        self.assert_rejected("masks", "a set now gone", PassesOn)

    def test_mask_of_another_shape(self):
        class PassesOnItems(Differences):
            def compute_mask(self, inputs, mask=None):
                return mask

        self.assert_rejected("masks", "the mask passed on", PassesOnItems)

    def test_mask_lost(self):
        class Drops(Differences):
            def compute_mask(self, inputs, mask=None):
                return None

        self.assert_rejected("masks", "passes on no mask", Drops)

    # attention_scores

    def test_scores_not_offered(self):
        class Secretive(AttentionAverage):
            def call(self, inputs, mask=None):
                return super().call(inputs, mask)

        self.assert_rejected(
            "attention_scores", "`return_attention_scores` in", Secretive
        )

    def test_scores_not_expected(self):
        self.assert_rejected(
            "attention_scores",
            "`return_attention_scores` in",
            AttentionAverage,
            attention_scores_shape=None,
        )

    def test_scores_of_another_shape(self):
        class Transposed(AttentionAverage):
            def call(self, inputs, mask=None, return_attention_scores=False):
                if not return_attention_scores:
                    return super().call(inputs, mask)
                outputs, scores = super().call(inputs, mask, True)
                return outputs, ops.swapaxes(scores, 1, 2)

        self.assert_rejected("attention_scores", "scores, eager", Transposed)

    def test_scores_of_another_shape_than_their_spec(self):
        class FalseSpec(AttentionAverage):
            def compute_output_spec(
                self, inputs, mask=None, return_attention_scores=False
            ):
                outputs = super().compute_output_spec(inputs)
                return (
                    (outputs, outputs) if return_attention_scores else outputs
                )

        self.assert_rejected("attention_scores", "scores, symbolic", FalseSpec)

    def test_scores_that_change_the_outputs(self):
        class Doubles(AttentionAverage):
            def call(self, inputs, mask=None, return_attention_scores=False):
                if not return_attention_scores:
                    return super().call(inputs, mask)
                outputs, scores = super().call(inputs, mask, True)
                return 2 * outputs, scores

        self.assert_rejected("attention_scores", "beside the scores", Doubles)

    # seeds

    def test_random_numbers_without_a_seed(self):
        class Noise(Differences):
            def call(self, inputs, mask=None):
                noise = np.random.default_rng().normal()
                return super().call(inputs, mask) + noise

        self.assert_rejected("seeds", "the same seed", Noise)

    def test_weights_that_start_alike(self):
        class Shared(Differences):
            def build(self, input_shape):
                shape = (input_shape[-1], self.units)
                initializer = keras.initializers.GlorotUniform()
                self.kernel = self.add_weight(shape, initializer)
                self.other_kernel = self.add_weight(shape, initializer)

        self.assert_rejected("seeds", "start alike", Shared)

    # dtype_policies

    def test_sublayer_without_the_policy(self):
        class Float32Inside(AttentionAverage):
            def build(self, input_shape):
                self.relevance = keras.layers.Dense(
                    self.num_heads, use_bias=False, name="relevance"
                )
                self.relevance.build(input_shape)

        self.assert_rejected(
            "dtype_policies", "policy of relevance", Float32Inside
        )

    def test_weight_of_another_dtype(self):
        class Float32Kernel(Differences):
            def build(self, input_shape):
                shape = (input_shape[-1], self.units)
                self.kernel = self.add_weight(shape, dtype="float32")

        self.assert_rejected(
            "dtype_policies", "is float32, bfloat16", Float32Kernel
        )

    def test_output_of_another_dtype(self):
        class Float32Outputs(Differences):
            def call(self, inputs, mask=None):
                return ops.cast(super().call(inputs, mask), "float32")

        self.assert_rejected(
            "dtype_policies", "an output is .*float32.* mixed", Float32Outputs
        )

    def test_symbolic_output_of_another_dtype(self):
        class Float32Spec(Differences):
            def compute_output_spec(self, inputs, mask=None):
                shape = self.compute_output_shape(inputs.shape)
                return keras.KerasTensor(shape, "float32")

        self.assert_rejected(
            "dtype_policies", "an output is float32, mixed", Float32Spec
        )

    def test_overflow_in_float16(self):
        class Large(Differences):
            def call(self, inputs, mask=None):
                return super().call(inputs * 1e3 * 1e3, mask) / 1e3 / 1e3

        self.assert_rejected(
            "dtype_policies", "not finite: outputs, mixed_float16", Large
        )

    def test_integers_that_stay_integers(self):
        class Halves(Differences):
            def call(self, inputs, mask=None):
                halves = ops.cast(0.5 * ops.ones(()), inputs.dtype) * inputs
                return super().call(halves, mask)

        self.assert_rejected("integers", "of integers, float32", Halves)

    def test_weights_that_a_seed_makes_alike(self):
        class SameSeed(Differences):
            def __init__(self, kernel_initializer="normal", **kwargs):
                super().__init__(**kwargs)
                self.kernel_initializer = kernel_initializer

            def build(self, input_shape):
                super().build(input_shape)
                self.first, self.second = (
                    self.add_weight((size,), self.kernel_initializer, name=name)
                    for size, name in ((3, "first"), (5, "second"))
                )

        self.assert_rejected(
            "seeded_initializers", "first and .*second start alike", SameSeed
        )

    def test_row_that_depends_on_its_batch(self):
        class LargeBatches(Differences):
            def call(self, inputs, mask=None):
                outputs = super().call(inputs, mask)
                return outputs * (2 if inputs.shape[0] == 32 else 1)

        self.assert_rejected(
            "real_sizes", "as it is, row 0 of 32", LargeBatches
        )

    def test_one_head_that_goes_another_way(self):
        class OneHead(AttentionAverage):
            def call(self, inputs, mask=None, return_attention_scores=False):
                result = super().call(inputs, mask, return_attention_scores)
                if self.num_heads == 1 and inputs.shape[0] == 32:
                    return 2 * result
                return result

        self.assert_rejected("real_sizes", "num_heads=1, row 0", OneHead)

    def test_precision_lost(self):
        class Offset(Differences):
            def call(self, inputs, mask=None):
                return super().call(inputs + 1000, mask)

        self.assert_rejected(
            "dtype_policies", "mixed_float16 beside float32", Offset
        )
        # Hard choices do not excuse outputs that are all wrong.
        self.assert_rejected(
            "dtype_policies",
            r"mixed_float16 beside float32: \d+% are far off",
            Offset,
            makes_choices=True,
        )

    # xla

    @pytest.mark.skipif(
        keras.backend.backend() == "torch",
        reason="there is no XLA under torch",
    )
    def test_what_xla_cannot_compile(self):
        class Interpreted(Differences):
            def call(self, inputs, mask=None):
                if keras.backend.backend() == "tensorflow":
                    import tensorflow as tf

                    inputs = tf.ensure_shape(
                        tf.numpy_function(np.copy, [inputs], tf.float32),
                        inputs.shape,
                    )
                else:
                    inputs = inputs * bool(ops.any(inputs))
                return super().call(inputs, mask)

        self.assert_rejected("xla", "(PyFunc|traced array)", Interpreted)

    # models

    def test_weight_that_a_model_does_not_see(self):
        class Hidden(AttentionAverage):
            def build(self, input_shape):
                relevance = keras.layers.Dense(self.num_heads, use_bias=False)
                relevance.build(input_shape)
                # Keras does not track layers inside functions.
                self.relevance = lambda inputs: relevance(inputs)

        self.assert_rejected("models", "trainable weights of", Hidden)

    def test_values_that_depend_on_how_it_is_called(self):
        class Eager(Differences):
            def call(self, inputs, mask=None):
                self.num_calls = getattr(self, "num_calls", 0) + 1
                return super().call(inputs, mask) / self.num_calls

        self.assert_rejected("models", "functional model", Eager)

    # saving

    def test_layer_that_is_not_registered(self):
        class Unregistered(Differences):
            pass

        self.assert_rejected("saving", "Unregistered", Unregistered)

    def test_numbers_that_are_not_saved(self):
        @registered
        class Drawn(Differences):
            def build(self, input_shape):
                super().build(input_shape)
                self.offset = keras.random.normal(())

            def call(self, inputs, mask=None):
                return super().call(inputs, mask) + self.offset

        self.assert_rejected("saving", "a loaded .keras file", Drawn)

    @pytest.mark.skipif(
        keras.backend.backend() != "tensorflow",
        reason="a SavedModel is written on TensorFlow only",
    )
    def test_saved_model_with_other_outputs(self):
        import tensorflow as tf

        @registered
        class KnowsGraphs(Differences):
            def call(self, inputs, mask=None):
                factor = 1 if tf.executing_eagerly() else 2
                return factor * super().call(inputs, mask)

        self.assert_rejected("saving", "a loaded SavedModel", KnowsGraphs)
