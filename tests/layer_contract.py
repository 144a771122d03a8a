"""The checks that every layer must pass, on TensorFlow, JAX and torch.

The test of a layer subclasses `LayerContract` and calls `run_layer_contract`.
It runs Keras' own `run_layer_test`, then checks for errors that this test does
not find. Properties of a single mechanism, such as its symmetry, are tested in
the test of that mechanism.

A check that is not possible on a backend is skipped as a subtest, with the
reason.
"""

import dataclasses
import inspect
import itertools
import json
import os
import warnings
from collections.abc import Callable

import keras
import numpy as np
from keras import ops
from keras import tree
from keras.src.testing import TestCase

# In the order in which they run. A check that explains the failures of others
# comes before them.
CHECKS = (
    "keras_layer_test",
    "config",
    "output_shape",
    "reference",
    "gradients",
    "zero_inputs",
    "batch_sizes",
    "set_sizes",
    "masks",
    "attention_scores",
    "seeds",
    "initial_weights",
    "integers",
    "dtype_policies",
    "xla",
    "models",
    "any_size",
    "saving",
)

# They take seconds a layer. `make test` leaves them to `make test-all`.
SLOW_CHECKS = ("dtype_policies", "xla")
# Where backends differ. `make test` runs no others but on TensorFlow.
NUMERICAL_CHECKS = (
    "reference",
    "gradients",
    "zero_inputs",
    "batch_sizes",
    "set_sizes",
    "masks",
    "integers",
)
# For a layer that leaves masks to Keras.
WITHOUT_MASKS = tuple(check for check in CHECKS if check != "masks")
# For a second contract of a class, with other arguments.
OTHER_ARGUMENTS = (
    "reference",
    "gradients",
    "set_sizes",
    "masks",
    "attention_scores",
)
left_out = set()  # Of the checks, in this run. `conftest.py` adds to it.

# Largest error for each compute dtype, relative to the largest output. For
# float32 it only allows sums in another order.
TOLERANCES = {"float32": 5e-6, "float16": 1e-2, "bfloat16": 8e-2}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LayerCase:
    """A layer, an input, and what is expected of them.

    Args:
        layer_cls: The class of the layer.
        init_kwargs: Arguments of the layer. They should differ from the
            defaults.
        reference: The equations in NumPy and float64, with explicit loops over
            heads, positions and pairs. `reference(weights, inputs, mask)`
            returns what the layer returns. `weights` is a dictionary by name,
            with `"sublayer/kernel"` for a weight of a sublayer. `inputs` is an
            array or a dictionary of arrays. `mask` is None or a boolean array.
        expected_output_shape: Shape of the outputs, or a tuple of shapes.
        expected_num_trainable_weights: Number of trainable weights. This and
            the other expectations are those of Keras' `run_layer_test`.
        input_shape: Shape of the inputs `(batch, n, ...)`, where `n` is the
            size of the set. For a layer with several input tensors, a
            dictionary of the arguments of `build`: `{"query_shape": ...,
            "base_shape": ...}`. The mask belongs to the first of them.
        second_input_shape: The same with another size of the set. In models,
            the sizes that differ from `input_shape` are `None`, unless
            `fixed_size` is true.
        fixed_size: True if the layer has separate weights for each position.
            Then it must refuse the second size by a `ValueError` that names
            both sizes.
        items_of_both: True if the second tensor also has an item for each item
            of the first. The mask holds for both.
        supports_masking: True if the layer takes a mask.
        output_mask: Function in NumPy from the mask `(batch, n)` to the mask of
            the outputs. None if the layer passes no mask on. For several
            outputs it returns a tuple, with None for an output that is never
            masked.
        keeps_padding: True if the layer returns padded items unchanged. By
            default it must return zeros for them.
        mixes_examples: True if the outputs of an example depend on the other
            examples of the batch.
        makes_choices: True if the layer makes hard choices. In low precision it
            may choose differently between two options that are nearly equal.
            So one output in ten may be far off.
        attention_scores_shape: Shape, or tuple of shapes, of the scores that
            `return_attention_scores=True` adds to the outputs. None if the
            layer has no such argument.
    """

    layer_cls: type
    init_kwargs: dict
    reference: Callable
    expected_output_shape: tuple
    expected_num_trainable_weights: int
    expected_output_dtype: str | tuple = "float32"
    expected_num_non_trainable_weights: int = 0
    expected_num_non_trainable_variables: int = 0
    expected_num_seed_generators: int = 0
    expected_num_losses: int = 0
    input_shape: tuple | dict = (2, 4, 5)
    second_input_shape: tuple | dict = (2, 6, 5)
    fixed_size: bool = False
    items_of_both: bool = False
    supports_masking: bool = True
    output_mask: Callable | None = None
    keeps_padding: bool = False
    mixes_examples: bool = False
    makes_choices: bool = False
    attention_scores_shape: tuple | None = None

    def expectations(self):
        """All expectations that Keras' `run_layer_test` takes, by name.

        It accepts any value for one that is not given.
        """
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name.startswith("expected_")
        }

    def model_shape(self):
        """Shape of a model's inputs, with `None` for sizes that may vary."""
        if self.fixed_size:
            return with_batch(self.input_shape, None)
        shapes = self.input_shape, self.second_input_shape
        if isinstance(self.input_shape, dict):
            return {
                name: any_size(*(shape[name] for shape in shapes))
                for name in self.input_shape
            }
        return any_size(*shapes)

    def sizes(self):
        """Shapes of inputs that a model of `model_shape` takes."""
        if self.fixed_size:
            return [self.input_shape]
        return [self.input_shape, self.second_input_shape]

    def new_layer(self, dtype="float32"):
        return self.layer_cls(**self.init_kwargs, dtype=dtype)

    def built_layer(self, dtype="float32"):
        """A layer with its own initial weights."""
        layer = self.new_layer(dtype)
        apply(layer.build, self.input_shape)
        return layer

    def layers_of_size_one(self):
        """The layer with each of its numbers at 1, by what was changed.

        A number that must be larger, such as that of object files of which two
        are active, is left out.
        """
        yield "as it is", self.built_layer()
        for name, value in self.init_kwargs.items():
            if not name.startswith("num_") or value in (None, 0, 1):
                continue
            try:
                layer = self.layer_cls(**{**self.init_kwargs, name: 1})
                apply(layer.build, self.input_shape)
            except ValueError:
                continue
            yield f"{name}=1", layer

    def random_layer(self, dtype="float32"):
        """A layer with random weights. A bias of zero could hide an error."""
        layer = self.built_layer(dtype)
        rng = np.random.default_rng(1)
        for weight in layer.trainable_weights:
            weight.assign(rng.normal(scale=0.5, size=weight.shape))
        return layer

    def expected_outputs(self, layer, inputs, mask=None):
        """The outputs of the reference, with the weights of a layer."""
        weights = {
            # The path starts with the name of the layer.
            weight.path.split("/", 1)[1]: ops.convert_to_numpy(weight.value)
            for weight in layer.weights
        }
        weights, inputs = tree.map_structure(
            lambda array: np.asarray(array, "float64"), (weights, inputs)
        )
        return self.reference(weights, inputs, mask)


class LayerContract(TestCase):
    """The checks. `run_check` runs one of them by its name."""

    def run_layer_contract(self, layer_cls, checks=CHECKS, **arguments):
        """Runs checks on a layer, without those left out in this run.

        Args:
            layer_cls: The class of the layer.
            checks: Names of checks. `OTHER_ARGUMENTS` if the class has another
                contract, with all of them, `WITHOUT_MASKS` if Keras sees to
                the masks.
            **arguments: The other arguments of `LayerCase`.

        Raises:
            AssertionError: Naming the layer and the first check that it fails.
        """
        case = LayerCase(layer_cls=layer_cls, **arguments)
        for check in checks:
            if check not in left_out:
                self.run_check(check, case)

    def run_check(self, check, case):
        try:
            getattr(self, f"check_{check}")(case)
        except Exception as error:
            raise AssertionError(
                f"{case.layer_cls.__name__} breaks the layer contract, check "
                f"'{check}': {error}"
            ) from error

    def check_keras_layer_test(self, case):
        several_inputs = isinstance(case.input_shape, dict)
        with warnings.catch_warnings():
            # The test itself feeds `fit` from a generator.
            warnings.filterwarnings("ignore", "`shuffle=True` was passed")
            self.run_layer_test(
                case.layer_cls,
                case.init_kwargs,
                input_shape=case.input_shape,
                supports_masking=case.supports_masking,
                # Its step passes one tensor, and warns if nothing trains.
                run_training_check=not several_inputs
                and case.expected_num_trainable_weights > 0,
                **case.expectations(),
            )

    def check_config(self, case):
        layer = case.new_layer()
        config = layer.get_config()
        arguments, inherited = init_arguments(case.layer_cls)
        missing = arguments - set(config)
        assert not missing, f"get_config lacks arguments of __init__: {missing}"
        unknown = set(config) - arguments - inherited
        assert not unknown, (
            f"get_config has no arguments of __init__: {unknown}"
        )
        for name in arguments:
            assert hasattr(layer, name), f"no attribute `{name}`"
        for name, value in case.init_kwargs.items():
            if isinstance(config[name], str | int | float | None):
                assert config[name] == value, f"config of `{name}`"
        before = json.dumps(config, sort_keys=True)
        apply(layer, random_inputs(case.input_shape))
        after = json.dumps(layer.get_config(), sort_keys=True)
        assert before == after, "config changed by build or call"

    def check_output_shape(self, case):
        for shape in (case.input_shape, with_batch(case.input_shape, None)):
            layer = case.new_layer()
            promised = shape_list(apply(layer.compute_output_shape, shape))
            outputs = apply(layer, symbolic_inputs(shape))
            assert promised == shapes_of(outputs), (
                "compute_output_shape, symbolic"
            )
        promised = shape_list(
            apply(case.new_layer().compute_output_shape, case.input_shape)
        )
        outputs = apply(case.new_layer(), random_inputs(case.input_shape))
        assert promised == shapes_of(outputs), "compute_output_shape, eager"

    def check_reference(self, case):
        tolerances = {"float32": TOLERANCES["float32"]}
        # Elsewhere Keras' common type of float64 and float32 is float32.
        if keras.backend.backend() == "tensorflow":
            tolerances["float64"] = 1e-12
        for dtype, tolerance in tolerances.items():
            layer = case.random_layer(dtype)
            inputs = tree.map_structure(
                lambda x, dtype=dtype: x.astype(dtype),
                random_inputs(case.input_shape),
            )
            self.assert_close(
                apply(layer, inputs),
                case.expected_outputs(layer, inputs),
                f"the reference in {dtype}",
                tolerance,
            )

    def check_gradients(self, case):
        layer, inputs = case.built_layer(), random_inputs(case.input_shape)
        outputs, gradients, input_gradients = outputs_and_gradients(
            layer, inputs, training=True
        )
        self.assert_finite("outputs", outputs)
        self.assert_finite("gradient of the inputs", input_gradients)
        for weight, gradient in zip(
            layer.trainable_weights, gradients, strict=True
        ):
            self.assert_finite(f"gradient of {weight.path}", gradient)
            assert np.any(ops.convert_to_numpy(gradient)), (
                f"the gradient of {weight.path} is zero"
            )

    def check_zero_inputs(self, case):
        zeros = tree.map_structure(
            np.zeros_like, random_inputs(case.input_shape)
        )
        self.assert_all_finite(case, zeros, "at zero")

    def check_batch_sizes(self, case):
        """A batch equals its rows, also with one head, one slot, one group.

        TensorFlow multiplies large batches by oneDNN, which treats an axis of
        size 1 in another way.
        """
        inputs = random_inputs(with_batch(case.input_shape, 32))
        if case.mixes_examples:
            layer, first = case.random_layer(), row(inputs, 0)
            outputs = as_one_function(layer)(first)
            expected = case.expected_outputs(layer, first)
            self.assert_close(outputs, expected, "a batch of one, reference")
            return
        for name, layer in case.layers_of_size_one():
            outputs = as_one_function(layer)(inputs)
            for number in (0, 17, 31):
                self.assert_close(
                    row(outputs, number),
                    as_one_function(layer)(row(inputs, number)),
                    f"{name}, row {number} of 32 beside the row alone",
                    2e-5,
                )

    def check_set_sizes(self, case):
        layer = case.random_layer()
        inputs = random_inputs(case.second_input_shape)
        if not case.fixed_size:
            self.assert_close(
                as_one_function(layer)(inputs),
                case.expected_outputs(layer, inputs),
                "the reference at a second set size",
            )
            return
        shapes = case.input_shape, case.second_input_shape
        first, second = (set(tree.flatten(shape)) for shape in shapes)
        sizes = {str(size) for size in first ^ second}
        assert sizes, "`second_input_shape` is `input_shape`"
        symbolic = symbolic_inputs(with_batch(case.second_input_shape, None))
        for values in (inputs, symbolic):
            try:
                apply(layer, values)
                raise AssertionError("another set size is not refused")
            except ValueError as error:
                text = str(error)
            words = "".join(c if c.isdigit() else " " for c in text).split()
            assert sizes <= set(words), (
                f"the error does not name the sizes {sizes}: {text}"
            )

    def check_masks(self, case):
        if not case.supports_masking:
            assert case.output_mask is None, "`supports_masking` is False"
            return
        layer = case.random_layer()
        inputs = random_inputs(with_batch(case.input_shape, 4))
        items, mask_name = first_of(inputs), mask_argument(inputs)
        # Nothing padded, the end, everything, the first.
        num_real = items.shape[1] // 2
        mask = np.ones(items.shape[:2], bool)
        mask[1, num_real:] = False
        mask[2] = False
        mask[3, 0] = False

        def padded_with(value):
            def pad(items):
                valid = mask.reshape(mask.shape + (1,) * (items.ndim - 2))
                return np.where(valid, items, np.float32(value))

            if case.items_of_both:
                return tree.map_structure(pad, inputs)
            return with_first(inputs, pad(items))

        expected = case.expected_outputs(layer, padded_with(0), mask)
        passed_on = None if case.output_mask is None else case.output_mask(mask)
        call = as_one_function(layer)
        for value in (0, 1e4, np.nan):
            outputs = call(padded_with(value), {mask_name: mask})
            if case.keeps_padding:
                outputs = self.without_padding(outputs, value, mask)
            self.assert_finite(f"outputs, padding of {value}", outputs)
            for output, output_mask in zip_outputs(outputs, passed_on):
                several = isinstance(passed_on, tuple)
                if several and output_mask is None:
                    continue
                assert not np.any(ops.convert_to_numpy(output)[2]), (
                    "outputs of a row that is all padding are not zero"
                )
            self.assert_close(
                outputs, expected, f"the reference, padding of {value}"
            )
        if not case.fixed_size and not case.mixes_examples:
            alone = row(inputs, 1)
            if case.items_of_both:
                alone = tree.map_structure(lambda x: x[:, :num_real], alone)
            else:
                alone = with_first(alone, items[1:2, :num_real])
            alone = call(alone)
            cut = tree.map_structure(
                lambda x, y: x[1:2][tuple(slice(size) for size in y.shape)],
                outputs,
                alone,
            )
            self.assert_close(cut, alone, "the set without its padding")

        padded = padded_with(np.nan)
        self.assert_all_finite(case, padded, "with a mask", **{mask_name: mask})

        # The mask that comes along with a tensor, and the one that goes on.
        masked = keras.layers.Masking()(first_of(padded_with(0)))
        outputs = apply(layer, with_first(inputs, masked))
        self.assert_close(outputs, expected, "the mask of the inputs")
        for output, output_mask in zip_outputs(outputs, passed_on):
            found = getattr(output, "_keras_mask", None)
            if output_mask is None:
                assert found is None, "passes on the mask of a set now gone"
            else:
                assert found is not None, "passes on no mask"
                np.testing.assert_array_equal(
                    ops.convert_to_numpy(found),
                    output_mask,
                    "the mask passed on",
                )

    def check_attention_scores(self, case):
        call = inspect.signature(case.layer_cls.call)
        assert ("return_attention_scores" in call.parameters) == (
            case.attention_scores_shape is not None
        ), "`return_attention_scores` in `call`, `attention_scores_shape`"
        if case.attention_scores_shape is None:
            return
        layer, inputs = case.random_layer(), random_inputs(case.input_shape)
        outputs, scores = apply(layer, inputs, return_attention_scores=True)
        self.assert_close(
            outputs, apply(layer, inputs), "the outputs beside the scores"
        )
        self.assert_finite("attention scores", scores)
        expected = shape_list(case.attention_scores_shape)
        assert shapes_of(scores) == expected, "attention scores, eager"
        model = functional_model(
            layer, case.input_shape, return_attention_scores=True
        )
        assert shapes_of(model.outputs)[-len(expected) :] == [
            (None, *shape[1:]) for shape in expected
        ], "attention scores, symbolic"
        self.assert_close(
            model(inputs), (outputs, scores), "attention scores in a model"
        )

    def check_seeds(self, case):
        inputs = random_inputs(case.input_shape)

        def first_outputs():
            keras.utils.set_random_seed(3)
            return apply(case.new_layer(), inputs, training=True)

        self.assert_close(
            first_outputs(), first_outputs(), "the outputs of the same seed", 0
        )

    def check_initial_weights(self, case):
        """No two weights start alike, even if the initializers have seeds."""
        names = sorted(init_arguments(case.layer_cls)[0])
        seeded = {
            name: keras.initializers.RandomNormal(seed=seed)
            for seed, name in enumerate(names)
            if name.endswith("_initializer")
        }
        for arguments in ({}, seeded):
            layer = case.layer_cls(**{**case.init_kwargs, **arguments})
            apply(layer.build, case.input_shape)
            weights = {
                weight.path: np.ravel(ops.convert_to_numpy(weight))
                for weight in layer.trainable_weights
            }
            drawn = [name for name in weights if np.ptp(weights[name]) > 0]
            for pair in itertools.combinations(drawn, 2):
                size = min(len(weights[name]) for name in pair)
                one, other = (weights[name][:size] for name in pair)
                assert not np.array_equal(one, other), (
                    f"{' and '.join(pair)} start alike: is an initializer "
                    f"shared? The seeded ones are {[*arguments]}"
                )

    def check_integers(self, case):
        """Integers are taken for the floats that they are."""
        inputs = tree.map_structure(
            lambda x: np.round(3 * x), random_inputs(case.input_shape)
        )
        integers = tree.map_structure(lambda x: x.astype("int32"), inputs)
        for policy in ("float32", "mixed_bfloat16"):
            layer = case.built_layer(policy)
            call = as_one_function(layer)
            outputs = call(integers)
            for output in tree.flatten(outputs):
                self.assertDType(
                    output,
                    layer.compute_dtype,
                    f"of integers an output is {output.dtype}, {policy}",
                )
            self.assert_close(outputs, call(inputs), f"of integers, {policy}")

    def check_dtype_policies(self, case):
        inputs = random_inputs(case.input_shape)
        exact = case.built_layer()
        expected = as_one_function(exact)(inputs)
        for policy in (
            "float32",
            "mixed_float16",
            "mixed_bfloat16",
            "bfloat16",
        ):
            layer = case.built_layer(policy)
            layer.set_weights(exact.get_weights())
            for part in layer._flatten_layers():
                assert part.dtype_policy.name == policy, (
                    f"policy of {part.name}"
                )
            for weight in layer.weights:
                if "float" in weight.dtype:
                    self.assertDType(
                        weight,
                        layer.variable_dtype,
                        f"{weight.path} is {weight.dtype}, {policy}",
                    )
            outputs = as_one_function(layer)(inputs)
            symbolic = apply(layer, symbolic_inputs(case.input_shape))
            for output in tree.flatten([outputs, symbolic]):
                self.assertDType(
                    output,
                    layer.compute_dtype,
                    f"an output is {output.dtype}, {policy}",
                )
            self.assert_finite(f"outputs, {policy}", outputs)
            tolerance = TOLERANCES[layer.compute_dtype]
            if case.makes_choices and policy != "float32":
                one, other = (
                    np.concatenate([x.ravel() for x in float64_arrays(nested)])
                    for nested in (outputs, expected)
                )
                far = np.abs(one - other) > tolerance * max(1, other.max())
                assert far.mean() <= 0.1, (
                    f"{policy} beside float32: {far.mean():.0%} are far off"
                )
                continue
            self.assert_close(
                outputs, expected, f"{policy} beside float32", tolerance
            )

    def skip(self, check, reason):
        """Reports that a check is skipped, and goes on with the others."""
        with self.subTest(check):
            self.skipTest(reason)

    def check_xla(self, case):
        if keras.backend.backend() == "torch":
            self.skip("xla", "there is no XLA under torch")
            return
        layer = case.random_layer()
        inputs = random_inputs(case.input_shape)
        masks, mask_name = {}, mask_argument(inputs)
        # A mask that only passes through a layer is no argument of its call.
        call = inspect.signature(case.layer_cls.call)
        if case.supports_masking and mask_name in call.parameters:
            masks[mask_name] = np.ones(first_of(inputs).shape[:2], bool)
            masks[mask_name][0, 0] = False
        compiled = outputs_and_gradients(
            layer, inputs, jit_compile=True, **masks
        )
        self.assert_close(
            compiled[0], apply(layer, inputs, **masks), "compiled by XLA"
        )
        if keras.backend.backend() != "tensorflow":
            return  # Gradients are always compiled on JAX.
        self.assert_close(
            compiled,
            outputs_and_gradients(layer, inputs, **masks),
            "compiled by XLA, gradients",
        )

    def check_models(self, case):
        layer, inputs = case.random_layer(), random_inputs(case.input_shape)
        expected = apply(layer, inputs)

        class Subclassed(keras.Model):
            def __init__(self):
                super().__init__()
                self.layer = layer

            def call(self, inputs):
                return apply(self.layer, inputs)

        models = {
            "a functional model": functional_model(layer, case.input_shape),
            "a subclassed model": Subclassed(),
        }
        if not isinstance(inputs, dict):
            models["a Sequential model"] = keras.Sequential(
                [keras.Input(inputs.shape[1:]), layer]
            )
        for name, model in models.items():
            self.assert_close(compiled(model)(inputs), expected, name)
            self.assertLen(
                model.trainable_weights,
                case.expected_num_trainable_weights,
                f"trainable weights of {name}",
            )

    def check_any_size(self, case):
        """One model answers and trains at two sizes."""
        if case.fixed_size:
            return
        layer = case.random_layer()
        inputs = symbolic_inputs(case.model_shape())
        model = keras.Model(inputs, apply(layer, inputs))
        # XLA knows the sizes when it compiles. TensorFlow's plain graph does
        # not. JAX would run each operation by itself, and compile it.
        jit_compile = keras.backend.backend() == "jax"
        model.compile("sgd", "mse", jit_compile=jit_compile)
        for shape in case.sizes():
            inputs = random_inputs(shape)
            expected = tree.map_structure(
                ops.convert_to_numpy, as_one_function(layer)(inputs)
            )
            self.assert_close(
                compiled(model)(inputs),
                expected,
                f"a model of any size, asked at {shape}",
            )
            if layer.trainable_weights:
                loss = model.train_on_batch(inputs, expected)
                self.assert_finite(f"the loss, {shape}", loss)

    def check_saving(self, case):
        layer = case.random_layer()
        model = functional_model(layer, case.model_shape())
        folder = self.get_temp_dir()

        path = os.path.join(folder, "model.keras")
        model.save(path)
        loaded = {"a loaded .keras file": keras.saving.load_model(path)}
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            path = os.path.join(folder, "saved_model")
            model.export(path, verbose=False)
            served = tf.saved_model.load(path)
            loaded["a loaded SavedModel"] = served.serve
        else:
            self.skip(
                "SavedModel", "a SavedModel is written on TensorFlow only"
            )
        for shape in case.sizes():
            inputs = random_inputs(shape)
            expected = apply(layer, inputs)
            for name, answer in loaded.items():
                self.assert_close(
                    answer(inputs), expected, f"{name}, {shape}", 1e-6
                )

    def without_padding(self, outputs, padding, mask):
        """Outputs with zeros for padded items, which come out as they were."""
        outputs = ops.convert_to_numpy(outputs)
        kept = outputs[~mask]
        assert np.array_equal(
            kept, np.full_like(kept, padding), equal_nan=True
        ), f"padding of {padding} comes out as {kept}"
        return np.where(mask[..., None], outputs, 0)

    def assert_all_finite(self, case, inputs, where, **masks):
        """Checks outputs and gradients, in float32 and in half precision."""
        for policy in ("float32", "mixed_float16"):
            outputs, gradients, of_inputs = outputs_and_gradients(
                case.built_layer(policy), inputs, **masks
            )
            if case.keeps_padding and masks:
                (mask,) = masks.values()
                outputs = self.without_padding(outputs, np.nan, mask)
            where_and_how = f"{where}, {policy}"
            self.assert_finite(f"outputs {where_and_how}", outputs)
            self.assert_finite(f"gradients {where_and_how}", gradients)
            self.assert_finite(f"gradient of inputs {where_and_how}", of_inputs)

    def assert_finite(self, name, values):
        for value in float64_arrays(values):
            assert np.all(np.isfinite(value)), f"not finite: {name}, {value}"

    def assert_close(self, actual, expected, name, tolerance=5e-6):
        """Checks tensors, to `tolerance` times the largest number or 1."""
        actual, expected = float64_arrays(actual), float64_arrays(expected)
        self.assertLen(actual, len(expected), f"{name}: number of tensors")
        for one, other in zip(actual, expected, strict=True):
            assert one.shape == other.shape, f"{name}: shape"
            largest = max(1.0, np.max(np.abs(other), initial=0))
            self.assertAllClose(
                one, other, atol=tolerance * largest, rtol=0, msg=name
            )


def apply(function, values, **kwargs):
    """Calls a function with one value, or with a dictionary of arguments."""
    if isinstance(values, dict):
        return function(**values, **kwargs)
    return function(values, **kwargs)


def float64_arrays(tensors):
    """Tensors, or any structure of them, as a list of arrays."""
    return [
        np.asarray(ops.convert_to_numpy(tensor), "float64")
        for tensor in tree.flatten(tensors)
    ]


def row(tensors, number):
    """One example of a batch, as a batch of one."""
    return tree.map_structure(lambda x: x[number : number + 1], tensors)


def as_one_function(layer):
    """The layer as a function that JAX compiles as a whole.

    Otherwise JAX compiles each operation separately, which takes long.
    """

    def call(inputs, call_kwargs=None):
        return apply(layer, inputs, **(call_kwargs or {}))

    return compiled(call)


def compiled(function):
    """The function, compiled on JAX."""
    if keras.backend.backend() != "jax":
        return function

    import jax

    return jax.jit(function)


def init_arguments(layer_cls):
    """The arguments of `__init__`, and those that its `**kwargs` may hold.

    An `__init__` with `*args` takes the arguments of the base class. So the
    first class whose `__init__` has no `*args` defines the arguments. A layer
    around a cell, its `cell_class`, takes those of the cell as well.

    Returns:
        Two sets of names.
    """
    named, inherited = None, set()
    for cls in layer_cls.__mro__:
        if "__init__" not in vars(cls) or cls is object:
            continue
        parameters = inspect.signature(cls.__init__).parameters.values()
        names = {
            parameter.name
            for parameter in parameters
            if parameter.kind
            not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        } - {"self"}
        takes_any = any(p.kind == p.VAR_POSITIONAL for p in parameters)
        if named is None and not takes_any:
            named = names
        else:
            inherited |= names
    if hasattr(layer_cls, "cell_class"):
        named |= init_arguments(layer_cls.cell_class)[0]
    return named, inherited


def random_inputs(shape):
    """A random float32 array, or one for each name of a dictionary."""
    rng = np.random.default_rng(0)
    if isinstance(shape, dict):
        return {
            name.removesuffix("_shape"): rng.normal(size=size).astype("float32")
            for name, size in shape.items()
        }
    return rng.normal(size=shape).astype("float32")


def symbolic_inputs(shape):
    """`keras.Input` of a shape with the batch, or one for each name."""
    if isinstance(shape, dict):
        return {
            name.removesuffix("_shape"): keras.Input(
                batch_shape=size, name=name.removesuffix("_shape")
            )
            for name, size in shape.items()
        }
    return keras.Input(batch_shape=shape)


def first_of(inputs):
    return next(iter(inputs.values())) if isinstance(inputs, dict) else inputs


def with_first(inputs, value):
    """The inputs with the first tensor replaced."""
    if isinstance(inputs, dict):
        return {**inputs, next(iter(inputs)): value}
    return value


def zip_outputs(outputs, masks):
    """Pairs of an output and its mask."""
    outputs = tree.flatten(outputs)
    if not isinstance(masks, tuple):
        masks = [masks] * len(outputs)
    return zip(outputs, masks, strict=True)


def mask_argument(inputs):
    """Name of the mask: `mask` for a single input, otherwise `<name>_mask`."""
    if isinstance(inputs, dict):
        return f"{next(iter(inputs))}_mask"
    return "mask"


def with_batch(shape, batch):
    if isinstance(shape, dict):
        return {name: (batch, *size[1:]) for name, size in shape.items()}
    return (batch, *shape[1:])


def any_size(shape, other):
    """The shape with `None` for the batch and for sizes that differ."""
    pairs = zip(shape[1:], other[1:], strict=True)
    return (None, *(one if one == two else None for one, two in pairs))


def shape_list(shapes):
    """A shape, or a structure of shapes, as a list of tuples."""
    if all(size is None or isinstance(size, int) for size in shapes):
        return [tuple(shapes)]
    return [shape for part in shapes for shape in shape_list(part)]


def shapes_of(tensors):
    return [tuple(tensor.shape) for tensor in tree.flatten(tensors)]


def functional_model(layer, shape, **kwargs):
    """A model of the layer, for any batch size."""
    inputs = symbolic_inputs(with_batch(shape, None))
    return keras.Model(inputs, apply(layer, inputs, **kwargs))


def outputs_and_gradients(layer, inputs, jit_compile=False, **call_kwargs):
    """The outputs of a layer, and the gradients of a weighted sum of them.

    Args:
        layer: A layer that is built.
        inputs: An array, or a dictionary of arrays.
        jit_compile: Boolean. If true, XLA compiles the computation. It always
            does on JAX, and never on torch.
        **call_kwargs: Further arguments of the call.

    Returns:
        The outputs, the list of gradients of the trainable weights, and the
        gradient of the inputs. A missing gradient is zero.
    """
    inputs = tree.map_structure(ops.convert_to_tensor, inputs)

    def one_number(outputs):
        # A plain sum has no gradient through a softmax.
        rng, total = np.random.default_rng(2), 0
        for output in tree.flatten(outputs):
            factors = ops.convert_to_tensor(
                rng.normal(size=output.shape), "float32"
            )
            total = total + ops.sum(ops.cast(output, "float32") * factors)
        return total

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        def step(inputs):
            variables = [weight.value for weight in layer.trainable_weights]
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                outputs = apply(layer, inputs, **call_kwargs)
                number = one_number(outputs)
            gradients = tape.gradient(
                number, (variables, inputs), unconnected_gradients="zero"
            )
            return outputs, *gradients

        if jit_compile:
            step = tf.function(step, jit_compile=True, autograph=False)
        return step(inputs)

    if keras.backend.backend() == "torch":
        import torch

        inputs = tree.map_structure(
            lambda tensor: tensor.requires_grad_(), inputs
        )
        outputs = apply(layer, inputs, **call_kwargs)
        variables = [weight.value for weight in layer.trainable_weights]
        gradients = torch.autograd.grad(
            one_number(outputs),
            (*variables, *tree.flatten(inputs)),
            materialize_grads=True,
        )
        return (
            outputs,
            list(gradients[: len(variables)]),
            tree.pack_sequence_as(inputs, gradients[len(variables) :]),
        )

    import jax

    def number_and_outputs(trainable, inputs):
        # `layer.stateless_call` would leave the inputs in their own dtype.
        values = zip(layer.trainable_variables, trainable, strict=True)
        with keras.StatelessScope(state_mapping=list(values)):
            outputs = apply(layer, inputs, **call_kwargs)
        return one_number(outputs), outputs

    step = jax.jit(
        jax.value_and_grad(number_and_outputs, argnums=(0, 1), has_aux=True)
    )
    trainable = [weight.value for weight in layer.trainable_variables]
    (_, outputs), gradients = step(trainable, inputs)
    return outputs, *gradients


def scores_without_the_second_position(layer, inputs):
    """Checks that a padded position has the same effect as a missing one.

    Args:
        layer: A layer of sequences of sets of any size, such as SCOFF.
        inputs: Array `(batch, time, n, m)`.

    Returns:
        The first of the layer's attention scores, with position 1 padded.
    """
    padded, mask = inputs.copy(), np.ones(inputs.shape[:3], bool)
    padded[:, :, 1], mask[:, :, 1] = np.nan, False
    outputs, (scores, *_) = layer(
        padded, mask=mask, return_attention_scores=True
    )
    expected = ops.convert_to_numpy(layer(np.delete(inputs, 1, axis=2)))
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    others = ops.convert_to_numpy(layer(inputs))
    assert np.abs(others - expected).max() > 1e-2
    return scores
