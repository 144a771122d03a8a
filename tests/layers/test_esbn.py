import equations
import keras
import numpy as np
import pytest
from layer_contract import LayerContract
from layer_contract import outputs_and_gradients
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import assert_equals
from layers_for_tests import needs_float64
from layers_for_tests import random_array
from layers_for_tests import weights_of
from layers_for_tests import with_random_weights

from keras_relational.layers import ESBN
from keras_relational.layers.memory import esbn

UNITS, KEY_DIM = 3, 4
EVERYTHING = {"return_sequences": True, "return_retrieved": True}


def algorithm_1(extra_step=True, confidence=False, sequences=False):
    """Algorithm 1 in loops over examples and steps, with a growing memory."""

    @equations.each_example
    def reference(weights, inputs, valid):
        hs, retrieved = one_example(
            weights, inputs, valid, extra_step, confidence
        )
        return (hs, retrieved) if sequences else (hs[-1], retrieved[-1])

    return reference


def one_example(weights, z, valid, extra_step, confidence):
    h, c = np.zeros(UNITS), np.zeros(UNITS)
    read = np.zeros(KEY_DIM + confidence)
    predicted = np.zeros(z.shape[1])
    keys, values = [], []
    hs, retrieved = [], []
    steps = [(value, t in valid) for t, value in enumerate(z)]
    if extra_step:
        steps.append((None, valid.size))
    for value, is_valid in steps:
        if is_valid:
            gates = read @ weights["kernel"] + h @ weights["recurrent_kernel"]
            h, c = equations.lstm(gates + weights["bias"], c)
            written, key_gate = key_and_gate(weights, "write", h)
            asked, value_gate = key_and_gate(weights, "query", h)
            read = np.zeros(KEY_DIM + confidence)
            predicted = np.zeros(z.shape[1])
            if keys:
                shares = equations.softmax([k @ asked for k in keys])
                predicted = value_gate * (shares @ np.array(values))
            if keys and value is not None:
                products = [v @ value for v in values]
                shares = equations.softmax(products)
                for w, product, key in zip(shares, products, keys, strict=True):
                    if confidence:
                        match = equations.sigmoid(
                            weights["confidence_gain"] * product
                            + weights["confidence_bias"]
                        )
                        key = np.append(key, match)
                    read += key_gate * w * key
            if value is not None:
                keys.append(written)
                values.append(value)
        hs.append(h)
        retrieved.append(predicted)
    return np.stack(hs), np.stack(retrieved)


def key_and_gate(weights, name, h):
    outputs = h @ weights[f"{name}_kernel"] + weights[f"{name}_bias"]
    return np.maximum(outputs[:-1], 0), equations.sigmoid(outputs[-1])


def random_layer(**arguments):
    layer = ESBN(UNITS, KEY_DIM, **arguments)
    return with_random_weights(layer, (None, None, 5), scale=1)


def test_whether_the_first_two_are_alike_is_told_by_the_confidence_alone():
    z = random_array(2, 2, 5)
    z[1, 1] = z[1, 0]
    layer = random_layer(return_sequences=True)
    one, other = array(layer(z))
    np.testing.assert_array_equal(one, other)
    layer = random_layer(return_sequences=True, confidence=True)
    one, other = array(layer(z))
    np.testing.assert_array_equal(one[:2], other[:2])
    assert np.abs(one[2] - other[2]).max() > 1e-3


class ESBNTest(LayerContract):
    def check(self, num_weights, shapes, reference, output_mask, **arguments):
        scores = ((2, 5, 4), (2, 5, 4))
        if not arguments.get("extra_step", True):
            scores = ((2, 4, 4), (2, 4, 4))
        self.run_layer_contract(
            ESBN,
            init_kwargs={"units": UNITS, "key_dim": KEY_DIM, **arguments},
            reference=reference,
            output_mask=output_mask,
            attention_scores_shape=scores,
            expected_output_shape=shapes,
            expected_num_trainable_weights=num_weights,
            expected_output_dtype=("float32", "float32"),
        )

    @pytest.mark.any_backend
    def test_contract(self):
        shapes = ((2, UNITS), (2, 5))
        self.check(7, shapes, algorithm_1(), None, return_retrieved=True)

    @pytest.mark.any_backend
    @pytest.mark.slow
    def test_contract_of_sequences(self):
        self.check(
            9,
            ((2, 4, UNITS), (2, 4, 5)),
            algorithm_1(extra_step=False, confidence=True, sequences=True),
            lambda mask: (mask, mask),
            extra_step=False,
            return_retrieved=True,
            return_sequences=True,
            confidence=True,
        )


@pytest.mark.parametrize("confidence", [False, True])
def test_of_values_rotated_alike_only_the_retrieved_ones_differ(confidence):
    """The controller sees no fillers: its outputs stay the same."""
    layer = random_layer(**EVERYTHING, confidence=confidence)
    z = random_array(6, 9, 5)
    rotation, _ = np.linalg.qr(random_array(5, 5, seed=2))
    h, retrieved = layer(z)
    rotated_h, rotated = layer(z @ rotation)
    assert_close(rotated_h, h, atol=1e-5)
    assert_close(rotated, array(retrieved) @ rotation, atol=1e-4)
    # Other relations between the values do change the outputs.
    other, _ = layer(z[:, [1, 0, *range(2, 9)]] * np.float32(1.5))
    assert np.abs(array(other) - array(h)).max() > 1e-3


def test_fillers_permuted():
    layer = random_layer(return_sequences=True)
    fillers = np.eye(5, dtype="float32")
    roles = np.array([[0, 1, 2, 1, 0], [3, 3, 1, 2, 3]])
    permuted = np.array([4, 2, 0, 1, 3])[roles]
    assert_close(layer(fillers[permuted]), layer(fillers[roles]))


def test_memory_never_reads_its_own_step_or_later_ones():
    layer = random_layer(**EVERYTHING)
    z = random_array(2, 6, 5)
    _, scores = layer(z, return_attention_scores=True)
    for weights in map(array, scores):
        assert weights.shape == (2, 7, 6)
        assert (weights[:, np.arange(7)[:, None] <= np.arange(6)] == 0).all()
        sums = weights.sum(-1)
        np.testing.assert_allclose(sums[:, 1:6], 1, atol=1e-5)
    key_scores, value_scores = map(array, scores)
    assert (key_scores[:, 6] == 0).all()  # No key is read at the extra step.
    np.testing.assert_allclose(value_scores[:, 6].sum(-1), 1, atol=1e-5)


def test_a_value_does_not_change_what_came_before_it():
    layer = random_layer(**EVERYTHING)
    z = random_array(2, 6, 5)
    changed = z.copy()
    changed[:, 4] += 1
    h, retrieved = map(array, layer(z))
    new_h, new_retrieved = map(array, layer(changed))
    # The key read at step 4 is seen at step 5.
    assert_close(new_h[:, :5], h[:, :5])
    assert_close(new_retrieved[:, :5], retrieved[:, :5])
    assert np.abs(new_h[:, 5:] - h[:, 5:]).max() > 1e-4


def test_the_last_step_is_that_of_the_sequence():
    for extra_step in (True, False):
        arguments = {"extra_step": extra_step, "return_retrieved": True}
        sequences = random_layer(return_sequences=True, **arguments)
        last = random_layer(**arguments)
        z = random_array(2, 6, 5)
        outputs = list(map(array, sequences(z)))
        assert {x.shape[1] for x in outputs} == {6 + extra_step}
        assert_close([x[:, -1] for x in outputs], last(z))


def test_it_is_alive_before_any_training():
    keras.utils.set_random_seed(0)
    layer = ESBN(512, 256)
    same = np.eye(8, dtype="float32")[[[0, 1, 0, 1]]]
    different = np.eye(8, dtype="float32")[[[0, 1, 2, 3]]]
    assert np.abs(array(layer(same)) - array(layer(different))).max() > 1e-4


def test_initial_weights_are_those_of_appendix_a1():
    keras.utils.set_random_seed(0)
    units = key_dim = 128
    layer = ESBN(units, key_dim, return_retrieved=True)
    layer.build((None, None, 5))
    xavier = np.sqrt(2 / (key_dim + units)), np.sqrt(2 / (units + units))
    for kernel, deviation in zip(
        (layer.kernel, layer.recurrent_kernel), xavier, strict=True
    ):
        i, f, g, o = np.split(array(kernel), 4, axis=1)
        for gate in (i, f, o):
            assert gate.std() == pytest.approx(deviation, rel=0.05)
        assert g.std() == pytest.approx(5 / 3 * deviation, rel=0.05)
    assert (array(layer.kernel) != array(layer.recurrent_kernel)).all()
    for kernel in (layer.write_kernel, layer.query_kernel):
        key, gate = np.split(array(kernel), [key_dim], axis=1)
        assert key.std() == pytest.approx(np.sqrt(2 / units), rel=0.05)
        assert gate.std() == pytest.approx(np.sqrt(2 / (units + 1)), rel=0.3)
    for bias in (layer.bias, layer.write_bias, layer.query_bias):
        assert 0.9 < np.abs(array(bias)).max() * np.sqrt(units) <= 1


@pytest.mark.parametrize(
    ("confidence", "extra_step"), [(False, True), (True, False)]
)
def test_the_fused_recurrence_equals_the_plain_steps_and_their_gradients(
    monkeypatch, confidence, extra_step
):
    options = {"confidence": confidence, "extra_step": extra_step}
    layer = random_layer(**EVERYTHING, **options)
    z = random_array(4, 6, 5)
    mask = np.ones((4, 6), bool)
    mask[1, 4:] = mask[2, 1:3] = mask[3] = False
    for arguments in ({}, {"mask": mask}):
        ours = outputs_and_gradients(layer, z, **arguments)
        with monkeypatch.context() as patch:
            patch.setattr(esbn, "esbn_recurrence", esbn.esbn_steps)
            theirs = outputs_and_gradients(layer, z, **arguments)
        for one, other in zip(
            keras.tree.flatten(ours), keras.tree.flatten(theirs), strict=True
        ):
            scale = max(1, np.abs(array(other)).max())
            assert_close(one, other, atol=1e-5 * scale)


def test_two_hundred_steps_compiled_with_gradients():
    layer = ESBN(UNITS, KEY_DIM, return_retrieved=True)
    layer.build((None, None, 5))
    z = random_array(2, 200, 5)
    outputs, gradients, _ = outputs_and_gradients(layer, z, jit_compile=True)
    expected = algorithm_1()(weights_of(layer), z)
    assert_close(outputs, expected, atol=1e-5)
    for gradient in map(array, gradients):
        assert np.isfinite(gradient).all()
        assert gradient.any()


@pytest.mark.parametrize("confidence", [False, True])
def test_padding_with_the_extra_step(confidence):
    """The extra step follows the padding. It is real if any step is."""
    layer = random_layer(**EVERYTHING, confidence=confidence)
    z, mask = random_array(4, 5, 5), np.ones((4, 5), bool)
    mask[1, 3:] = mask[2, :2] = mask[3] = False
    reference = algorithm_1(confidence=confidence, sequences=True)
    assert_equals(layer, reference, z, mask)
    extra = np.array([[True], [True], [True], [False]])
    for output_mask in layer.compute_mask(z, mask):
        np.testing.assert_array_equal(output_mask, np.hstack([mask, extra]))


def test_what_does_not_retrieve_has_no_weights_for_it():
    layer, both = random_layer(), random_layer(return_retrieved=True)
    assert len(layer.weights) == 5
    assert len(both.weights) == 7
    layer.set_weights(both.get_weights()[:5])
    z = random_array(2, 6, 5)
    outputs, key_scores = layer(z, return_attention_scores=True)
    (h, _), (expected, _) = both(z, return_attention_scores=True)
    assert_close((outputs, key_scores), (h, expected))


@needs_float64
@pytest.mark.parametrize("confidence", [False, True])
def test_nothing_is_lost_in_float64(confidence):
    layer = random_layer(**EVERYTHING, confidence=confidence, dtype="float64")
    reference = algorithm_1(confidence=confidence, sequences=True)
    z = random_array(3, 6, 5).astype("float64")
    assert_equals(layer, reference, z, atol=1e-12)


def test_written_keys_of_any_dtype():
    """They are cast, as in a call."""
    layer = ESBN(3, 4, confidence=True)
    z = random_array(2, 4, 5)
    layer(z)
    np.testing.assert_allclose(
        layer.written_keys(z.astype("float64")), layer.written_keys(z)
    )
