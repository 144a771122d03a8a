"""Tests of the layer contract: good layers pass, and broken ones do not.

Every broken layer is a good layer with one change. `rejected` names the check
that must reject it, and the reason.
"""

import keras
import numpy as np
import pytest
from absl.testing import parameterized
from keras import ops
from layer_contract import CHECKS
from layer_contract import LayerCase
from layer_contract import LayerContract

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
    "layer_cls": Differences,
    "init_kwargs": {"units": 3, "scale": 0.5},
    "reference": differences_in_loops,
    "output_mask": pair_mask,
    "expected_output_shape": (2, 4, 4, 3),
    "expected_num_trainable_weights": 1,
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
    "layer_cls": AttentionAverage,
    "init_kwargs": {"num_heads": 2},
    "reference": average_in_loops,
    "attention_scores_shape": (2, 2, 4),
    "expected_output_shape": (2, 2, 5),
    "expected_num_trainable_weights": 1,
}


BROKEN = []


def rejected(check, reason, backends=("tensorflow", "jax", "torch"), **changes):
    """Lists a broken layer for the test below.

    The check must reject it, with an error that matches `reason`. `changes` are
    arguments of `LayerCase`.
    """

    def listed(layer_cls):
        if keras.backend.backend() in backends:
            name = f"{layer_cls.__name__}_{check}"
            BROKEN.append((name, check, reason, layer_cls, changes))
        return layer_cls

    return listed


@registered
@rejected("keras_layer_test", "Unexpected number of trainable_weights")
class HasARawKernel(Differences):
    def build(self, input_shape):
        shape = (input_shape[-1], self.units)
        self.kernel = ops.ones(shape, self.compute_dtype)


@registered
@rejected("keras_layer_test", "Unexpected supports_masking")
class TakesNoMasks(Differences):
    def __init__(self, units, scale=1.0, **kwargs):
        super().__init__(units, scale, **kwargs)
        self.supports_masking = False


@rejected("config", "lacks arguments .*'scale'")
class ForgetsScale(Differences):
    def get_config(self):
        config = super().get_config()
        del config["scale"]
        return config


@rejected("config", "no arguments .*'factor'")
class AddsFactor(Differences):
    def get_config(self):
        return {**super().get_config(), "factor": 2}


@rejected("config", "config of `scale`")
class SavesDefaults(Differences):
    def get_config(self):
        return {**super().get_config(), "scale": 1.0}


@rejected("config", "no attribute `scale`")
class RenamesScale(Differences):
    def __init__(self, units, scale=1.0, **kwargs):
        super().__init__(units, scale, **kwargs)
        self.factor = self.scale
        del self.scale

    def get_config(self):
        config = keras.layers.Layer.get_config(self)
        return {**config, "units": self.units, "scale": self.factor}


@rejected("config", "changed by build or call")
class FillsConfigInBuild(Differences):
    def build(self, input_shape):
        super().build(input_shape)
        self.scale = input_shape[-1]


class PassesArgumentsOn(Differences):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


@rejected("config", "lacks arguments .*'units'")
class ForgetsUnits(PassesArgumentsOn):
    def get_config(self):
        config = super().get_config()
        del config["units"]
        return config


@rejected("output_shape", "symbolic")
class HidesAFalseShape(AttentionAverage):
    def compute_output_shape(self, input_shape):
        return (input_shape[0], 1, input_shape[2])

    def compute_output_spec(self, inputs, mask=None):
        shape = super().compute_output_shape(inputs.shape)
        return keras.KerasTensor(shape, self.compute_dtype)


@rejected("output_shape", "eager")
class HasAFalseShape(Differences):
    def compute_output_shape(self, input_shape):
        return (*input_shape[:2], 1, self.units)


@rejected("reference", "the reference")
class IsWrongByLittle(Differences):
    def call(self, inputs, mask=None):
        return super().call(inputs, mask) * (1 + 1e-4)


@rejected("gradients", "spare is zero")
class HasAnUnusedWeight(Differences):
    def build(self, input_shape):
        super().build(input_shape)
        self.spare = self.add_weight((2,), name="spare")


@rejected("gradients", "not finite: gradient")
class HasAnInfiniteGradient(Differences):
    def call(self, inputs, mask=None):
        # An item's difference from itself is zero.
        return ops.sqrt(ops.square(super().call(inputs, mask)))


@rejected("zero_inputs", "not finite: gradient")
class AddsLength(AttentionAverage):
    def call(self, inputs, mask=None):
        squares = ops.sum(ops.square(inputs), axis=-1, keepdims=True)
        return super().call(inputs + ops.sqrt(squares), mask)


@rejected("zero_inputs", "not finite: outputs at zero, mixed_float16")
class DividesByLength(AttentionAverage):
    def call(self, inputs, mask=None):
        squares = ops.sum(ops.square(inputs), axis=-1, keepdims=True)
        # Too small for float16, where it is zero.
        return super().call(inputs / ops.sqrt(squares + 1e-12), mask)


@rejected("batch_sizes", "shape")
class LosesTheBatchAxis(Differences):
    def call(self, inputs, mask=None):
        return ops.squeeze(super().call(inputs, mask))


@rejected("batch_sizes", "as it is, row 0 of 32")
class CentresTheBatch(AttentionAverage):
    def call(self, inputs, mask=None):
        mean = ops.mean(inputs, axis=0, keepdims=True)
        return super().call(inputs - mean, mask)


@rejected("batch_sizes", "reference", mixes_examples=True)
class IsWrongForOneExample(Differences):
    def call(self, inputs, mask=None):
        outputs = super().call(inputs, mask)
        return outputs * (2 if inputs.shape[0] == 1 else 1)


@rejected("batch_sizes", "num_heads=1, row 0")
class IsWrongForOneHead(AttentionAverage):
    def call(self, inputs, mask=None, return_attention_scores=False):
        result = super().call(inputs, mask, return_attention_scores)
        if self.num_heads == 1 and inputs.shape[0] == 32:
            return 2 * result
        return result


@rejected("set_sizes", "second set size")
class FreezesTheSetSize(AttentionAverage):
    def build(self, input_shape):
        super().build(input_shape)
        self.num_items = input_shape[1]

    def call(self, inputs, mask=None):
        return super().call(inputs[:, : self.num_items], mask)


@rejected("set_sizes", "is not refused", fixed_size=True)
class TakesEverySize(AttentionAverage):
    pass


@rejected("set_sizes", "does not name the sizes", fixed_size=True)
class NamesOneSize(Differences):
    def call(self, inputs, mask=None):
        if inputs.shape[1] != 4:
            raise ValueError("Expected sets of size 4.")
        return super().call(inputs, mask)


@rejected("set_sizes", "is not refused", fixed_size=True)
class RefusesWhenCalledOnly(AttentionAverage):
    def call(self, inputs, mask=None):
        if inputs.shape[1] != 4:
            raise ValueError(f"{inputs.shape[1]} items instead of 4.")
        return super().call(inputs, mask)


@rejected("masks", "all padding are not zero")
class AddsOne(Differences):
    def call(self, inputs, mask=None):
        return super().call(inputs, mask) + 1


@rejected("masks", "the reference, padding of 0")
class AttendsToPadding(AttentionAverage):
    def softmax(self, logits, mask):
        return ops.softmax(logits, axis=-1)


@rejected("masks", "outputs, padding of nan")
class MultipliesPaddingByZero(AttentionAverage):
    def without_padding(self, inputs, mask):
        return inputs * ops.cast(mask, inputs.dtype)[..., None]


@rejected("masks", "not finite: gradients with a mask")
class MasksOutputsOnly(Differences):
    def call(self, inputs, mask=None):
        pairs = super().call(inputs)
        if mask is None:
            return pairs
        return ops.where(ops.expand_dims(pair_mask(mask), -1), pairs, 0)


@rejected("masks", "outputs, padding of 0")
class MasksByInfinity(AttentionAverage):
    def softmax(self, logits, mask):
        if mask is not None:
            valid = ops.expand_dims(mask, 1)
            logits = ops.where(valid, logits, -np.inf)
        return ops.softmax(logits, axis=-1)


@rejected("masks", "with a mask, mixed_float16")
class MasksByALargeNumber(AttentionAverage):
    def softmax(self, logits, mask):
        if mask is not None:
            padded = ops.cast(~mask, logits.dtype)[:, None]
            # In float16, 1e8 is infinite.
            logits = logits - padded * 1e4 * 1e4
        return ops.softmax(logits, axis=-1)


def also_wrong(weights, inputs, mask=None):
    outputs = differences_in_loops(weights, inputs, mask)
    return outputs / inputs.shape[1]


@rejected("masks", "the set without its padding", reference=also_wrong)
class CountsPadding(Differences):
    def call(self, inputs, mask=None):
        return super().call(inputs, mask) / inputs.shape[1]


@rejected(
    "masks",
    "padding of 10000.0 comes out",
    keeps_padding=True,
    reference=lambda weights, inputs, mask=None: inputs,
)
class ChangesPadding(Differences):
    def call(self, inputs, mask=None):
        if mask is None:
            return inputs
        return ops.where(ops.expand_dims(mask, -1), inputs, 0)


@rejected("masks", "a set now gone")
class PassesOnAMask(AttentionAverage):
    def compute_mask(self, inputs, mask=None):
        return mask


@rejected("masks", "the mask passed on")
class PassesOnAMaskOfItems(Differences):
    def compute_mask(self, inputs, mask=None):
        return mask


@rejected("masks", "passes on no mask")
class DropsItsMask(Differences):
    def compute_mask(self, inputs, mask=None):
        return None


@rejected("attention_scores", "`return_attention_scores` in")
class OffersNoScores(AttentionAverage):
    def call(self, inputs, mask=None):
        return super().call(inputs, mask)


@rejected("attention_scores", "scores, eager")
class TransposesScores(AttentionAverage):
    def call(self, inputs, mask=None, return_attention_scores=False):
        if not return_attention_scores:
            return super().call(inputs, mask)
        outputs, scores = super().call(inputs, mask, True)
        return outputs, ops.swapaxes(scores, 1, 2)


@rejected("attention_scores", "scores, symbolic")
class HasAFalseSpecOfScores(AttentionAverage):
    def compute_output_spec(
        self, inputs, mask=None, return_attention_scores=False
    ):
        outputs = super().compute_output_spec(inputs)
        return (outputs, outputs) if return_attention_scores else outputs


@rejected("attention_scores", "beside the scores")
class DoublesBesideScores(AttentionAverage):
    def call(self, inputs, mask=None, return_attention_scores=False):
        if not return_attention_scores:
            return super().call(inputs, mask)
        outputs, scores = super().call(inputs, mask, True)
        return 2 * outputs, scores


@rejected("seeds", "the same seed")
class AddsNoiseWithoutASeed(Differences):
    def call(self, inputs, mask=None):
        noise = np.random.default_rng().normal()
        return super().call(inputs, mask) + noise


@rejected("initial_weights", "start alike")
class SharesAnInitializer(Differences):
    def build(self, input_shape):
        shape = (input_shape[-1], self.units)
        initializer = keras.initializers.GlorotUniform()
        self.kernel = self.add_weight(shape, initializer)
        self.other_kernel = self.add_weight(shape, initializer)


@rejected("initial_weights", "first and .*second start alike")
class DrawsTwiceFromOneSeed(Differences):
    def __init__(self, kernel_initializer="normal", **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = kernel_initializer

    def build(self, input_shape):
        super().build(input_shape)
        self.first, self.second = (
            self.add_weight((size,), self.kernel_initializer, name=name)
            for size, name in ((3, "first"), (5, "second"))
        )


@rejected("integers", "of integers, float32")
class HalvesIntegers(Differences):
    def call(self, inputs, mask=None):
        halves = ops.cast(0.5 * ops.ones(()), inputs.dtype) * inputs
        return super().call(halves, mask)


@rejected("dtype_policies", "policy of relevance")
class HasASublayerWithoutThePolicy(AttentionAverage):
    def build(self, input_shape):
        self.relevance = keras.layers.Dense(
            self.num_heads, use_bias=False, name="relevance"
        )
        self.relevance.build(input_shape)


@rejected("dtype_policies", "is float32, bfloat16")
class HasAFloat32Kernel(Differences):
    def build(self, input_shape):
        shape = (input_shape[-1], self.units)
        self.kernel = self.add_weight(shape, dtype="float32")


@rejected("dtype_policies", "an output is .*float32.* mixed")
class ReturnsFloat32(Differences):
    def call(self, inputs, mask=None):
        return ops.cast(super().call(inputs, mask), "float32")


@rejected("dtype_policies", "an output is float32, mixed")
class PromisesFloat32(Differences):
    def compute_output_spec(self, inputs, mask=None):
        shape = self.compute_output_shape(inputs.shape)
        return keras.KerasTensor(shape, "float32")


@rejected("dtype_policies", "not finite: outputs, mixed_float16")
class OverflowsInFloat16(Differences):
    def call(self, inputs, mask=None):
        return super().call(inputs * 1e3 * 1e3, mask) / 1e3 / 1e3


@rejected("dtype_policies", "mixed_float16 beside float32")
class LosesPrecision(Differences):
    def call(self, inputs, mask=None):
        return super().call(inputs + 1000, mask)


@rejected("dtype_policies", r"\d+% are far off", makes_choices=True)
class LosesPrecisionAndMakesChoices(LosesPrecision):
    """Hard choices do not excuse outputs that are all wrong."""


@rejected("xla", "(PyFunc|traced array)", backends=("tensorflow", "jax"))
class CannotBeCompiled(Differences):
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


@rejected("models", "trainable weights of")
class HidesAWeight(AttentionAverage):
    def build(self, input_shape):
        relevance = keras.layers.Dense(self.num_heads, use_bias=False)
        relevance.build(input_shape)
        # Keras does not track layers inside functions.
        self.relevance = lambda inputs: relevance(inputs)


@rejected("models", "functional model")
@rejected("any_size", "a model of any size, asked at")
class CountsItsCalls(Differences):
    def call(self, inputs, mask=None):
        self.num_calls = getattr(self, "num_calls", 0) + 1
        return super().call(inputs, mask) / self.num_calls


@rejected("saving", "Unregistered")
class Unregistered(Differences):
    pass


@registered
@rejected("saving", "a loaded .keras file")
class HasNumbersThatAreNotSaved(Differences):
    def build(self, input_shape):
        super().build(input_shape)
        self.offset = keras.random.normal(())

    def call(self, inputs, mask=None):
        return super().call(inputs, mask) + self.offset


@registered
@rejected("saving", "a loaded SavedModel", backends=("tensorflow",))
class IsWrongInGraphs(Differences):
    def call(self, inputs, mask=None):
        import tensorflow as tf

        factor = 1 if tf.executing_eagerly() else 2
        return factor * super().call(inputs, mask)


class LayerContractTest(LayerContract):
    def test_good_layers_pass(self):
        self.run_layer_contract(**DIFFERENCES)
        self.run_layer_contract(**AVERAGE)
        case = LayerCase(**{**DIFFERENCES, "layer_cls": PassesArgumentsOn})
        self.run_check("config", case)

    @parameterized.named_parameters(*BROKEN)
    def test_broken_layer(self, check, reason, layer_cls, changes):
        good = DIFFERENCES if issubclass(layer_cls, Differences) else AVERAGE
        case = LayerCase(**{**good, "layer_cls": layer_cls, **changes})
        message = f"(?s){layer_cls.__name__} .* check '{check}':.*{reason}"
        with pytest.raises(AssertionError, match=message):
            self.run_check(check, case)

    def test_all_checks_are_run(self):
        checks = {name for name in dir(self) if name.startswith("check_")}
        assert {f"check_{name}" for name in CHECKS} == checks
        broken = {**DIFFERENCES, "layer_cls": IsWrongByLittle}
        message = "Little breaks the layer contract, check 'reference': "
        with pytest.raises(AssertionError, match=message):
            self.run_layer_contract(**broken, checks=("config", "reference"))
