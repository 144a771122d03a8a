import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract
from layer_contract import outputs_and_gradients
from layer_contract import scores_without_the_second_position

from keras_relational.layers import RIMs
from keras_relational.layers import RIMsCell

MODULES, UNITS, ACTIVE = 4, 3, 2
HEADS, KEY, VALUE = 2, 3, 5
MESSAGE_HEADS, MESSAGE_KEY, MESSAGE_VALUE = 2, 2, 3
SIZES = {
    "units": UNITS,
    "num_modules": MODULES,
    "num_active": ACTIVE,
    "num_heads": HEADS,
    "key_dim": KEY,
    "value_dim": VALUE,
    "num_message_heads": MESSAGE_HEADS,
    "message_key_dim": MESSAGE_KEY,
    "message_value_dim": MESSAGE_VALUE,
}


def in_loops(dynamics="lstm"):
    """Example after example, step after step, module after module."""

    def reference(weights, inputs, mask=None):
        weights = {
            name.split("/")[-1]: value for name, value in weights.items()
        }
        if mask is None:
            mask = np.ones(inputs.shape[:2], bool)
        outputs = []
        for steps, valid in zip(inputs, mask, strict=True):
            h = [np.zeros(UNITS) for _ in range(MODULES)]
            c = [np.zeros(UNITS) for _ in range(MODULES)]
            for x in steps[valid]:
                h, c = one_step(weights, x, h, c, dynamics)
            outputs.append(np.concatenate(h))
        return np.stack(outputs)

    return reference


def one_step(weights, x, h, c, dynamics):
    positions = np.vstack([np.zeros(x.shape[-1]), x])
    z, unseen = [], []
    for k in range(MODULES):
        parts, nothing = [], 0
        for head in range(HEADS):
            keys = slice(head * KEY, (head + 1) * KEY)
            values = slice(head * VALUE, (head + 1) * VALUE)
            query = (h[k] @ weights["query_kernel"][k])[keys]
            shares = softmax(
                [
                    query @ (p @ weights["key_kernel"])[keys] / KEY**0.5
                    for p in positions
                ]
            )
            nothing += shares[0]
            parts.append(
                sum(
                    share * (p @ weights["value_kernel"])[values]
                    for share, p in zip(shares, positions, strict=True)
                )
            )
        z.append(np.concatenate(parts))
        unseen.append(nothing)
    active = sorted(range(MODULES), key=lambda k: unseen[k])[:ACTIVE]
    h, c = list(h), list(c)
    for k in active:
        gates = z[k] @ weights["kernel"][k] + weights["bias"][0, k]
        inner = h[k] @ weights["recurrent_kernel"][k]
        if dynamics == "gru":
            inner = inner + weights["bias"][1, k]
            (xz, xr, xh), (yz, yr, yh) = np.split(gates, 3), np.split(inner, 3)
            new = np.tanh(xh + sigmoid(xr + yr) * yh)
            h[k] = sigmoid(xz + yz) * h[k] + (1 - sigmoid(xz + yz)) * new
            continue
        i, f, g, o = np.split(gates + inner, 4)
        c[k] = sigmoid(f) * c[k] + sigmoid(i) * np.tanh(g)
        h[k] = sigmoid(o) * np.tanh(c[k])
    read = {k: [] for k in active}
    for k in active:
        for head in range(MESSAGE_HEADS):
            keys = slice(head * MESSAGE_KEY, (head + 1) * MESSAGE_KEY)
            values = slice(head * MESSAGE_VALUE, (head + 1) * MESSAGE_VALUE)
            query = (h[k] @ weights["message_query_kernel"][k])[keys]
            shares = softmax(
                [
                    query
                    @ (h[other] @ weights["message_key_kernel"][other])[keys]
                    / MESSAGE_KEY**0.5
                    for other in range(MODULES)
                ]
            )
            read[k].append(
                sum(
                    share
                    * (h[other] @ weights["message_value_kernel"][other])[
                        values
                    ]
                    for other, share in enumerate(shares)
                )
            )
    for k, parts in read.items():
        kernel = weights["message_output_kernel"][k]
        h[k] = h[k] + np.concatenate(parts) @ kernel
    return h, c


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    x = np.exp(np.array(x) - np.max(x))
    return x / x.sum()


def random_inputs(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def random_rims(**kwargs):
    layer = RIMs(**{**SIZES, **kwargs})
    layer.build((None, None, 5))
    rng = np.random.default_rng(1)
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(scale=0.5, size=weight.shape))
    return layer


def array(tensor):
    return ops.convert_to_numpy(tensor)


class RIMsTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            RIMs,
            init_kwargs={**SIZES, "dropout": 0.1},
            input_shape=(3, 4, 2, 5),
            second_input_shape=(3, 7, 2, 5),
            fixed_size=False,
            reference=in_loops(),
            supports_masking=True,
            makes_choices=True,
            attention_scores_shape=(
                (3, 4, HEADS, MODULES, 3),
                (3, 4, MODULES),
                (3, 4, MESSAGE_HEADS, MODULES, MODULES),
            ),
            expected_output_shape=(3, MODULES * UNITS),
            expected_output_dtype="float32",
            expected_num_trainable_weights=10,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=1,
            expected_num_seed_generators=1,
            expected_num_losses=0,
        )

    def test_gru_modules_of_vectors(self):
        layer, inputs = random_rims(dynamics="gru"), random_inputs(2, 6, 5)
        weights = {
            weight.path: array(weight.value).astype("float64")
            for weight in layer.weights
        }
        expected = in_loops("gru")(weights, inputs)
        self.assertAllClose(layer(inputs), expected, atol=1e-5)


def test_inactive_modules_keep_their_state_and_are_not_trained():
    layer = random_rims()
    inputs = random_inputs(1, 1, 5)
    state = [random_inputs(1, MODULES * UNITS, seed=n) for n in (1, 2)]
    outputs, (scores, active, _) = layer(
        inputs, initial_state=state, return_attention_scores=True
    )
    active = array(active)[0, 0] > 0
    nothing = array(scores)[0, 0, :, :, 0].mean(0)
    assert active.sum() == ACTIVE
    assert nothing[active].max() < nothing[~active].min()
    same = (array(outputs) == state[0]).reshape(MODULES, UNITS).all(-1)
    np.testing.assert_array_equal(same, ~active)

    class WithState(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def call(self, inputs, training=False):
            return self.layer(inputs, initial_state=state, training=training)

    _, gradients, _ = outputs_and_gradients(WithState(), inputs, training=True)
    for weight, gradient in zip(
        layer.trainable_weights, gradients, strict=True
    ):
        if weight.name not in (
            *("kernel", "recurrent_kernel", "query_kernel", "bias"),
            *("message_query_kernel", "message_output_kernel"),
        ):
            continue
        gradient = np.abs(array(gradient))
        if weight.name == "bias":
            gradient = gradient[0]
        trained = gradient.reshape(MODULES, -1).max(-1) > 0
        np.testing.assert_array_equal(trained, active, err_msg=weight.name)


def test_before_training_states_stay_small():
    """Also with open gates, where nothing bounds the sum of messages."""
    keras.utils.set_random_seed(0)
    layer = RIMs(64, 4, 4, dynamics="gru", return_sequences=True)
    outputs = layer(np.repeat(10 * random_inputs(2, 1, 5), 100, axis=1))
    assert np.abs(array(outputs)).max() < 2


def test_scores_add_up():
    layer = random_rims()
    _, (inputs, active, messages) = layer(
        random_inputs(2, 4, 5), return_attention_scores=True
    )
    np.testing.assert_allclose(array(inputs).sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(array(active).sum(-1), ACTIVE)
    np.testing.assert_allclose(array(messages).sum(-1), 1, atol=1e-6)


def test_padded_positions_are_not_there():
    layer = random_rims()
    inputs = random_inputs(2, 6, 4, 5)
    scores = scores_without_the_second_position(layer, inputs)
    assert not array(scores)[..., 2].any()  # The null input comes first.


def test_dropout_acts_in_training_only():
    keras.utils.set_random_seed(0)
    layer = RIMs(**SIZES, dropout=0.5, seed=1)
    inputs = random_inputs(2, 5, 3, 4)
    outputs, again = (array(layer(inputs)) for _ in range(2))
    np.testing.assert_array_equal(again, outputs)
    trained = array(layer(inputs, training=True))
    assert np.abs(trained - outputs).max() > 1e-2
    drawn = layer.cell.noise((500,), inputs.shape[2:], True)
    assert set(drawn) == {"dropout_mask", "message_dropout_mask"}
    for mask in map(array, drawn.values()):
        assert set(np.unique(mask)) == {0, 2}
        assert mask.mean() == pytest.approx(1, abs=0.05)


def test_what_dropout_takes_is_not_seen():
    cell = random_rims().cell
    inputs = random_inputs(2, 4, 5)
    states = [random_inputs(2, MODULES * UNITS) for _ in range(2)]
    shapes = cell.scores_shapes((4, 5))
    mask, message_mask = (np.ones((2, *shapes[n]), "float32") for n in (0, 2))

    def outputs(*masks):
        names = ("dropout_mask", "message_dropout_mask")
        drawn = dict(
            zip(names, map(ops.convert_to_tensor, masks), strict=False)
        )
        return array(cell.step(inputs, states, **drawn)[0][0])

    whole = outputs()
    np.testing.assert_allclose(outputs(mask, message_mask), whole, atol=1e-6)
    unseen = outputs(0 * mask, message_mask)
    unread = outputs(mask, 0 * message_mask)
    for kernel, without in (
        (cell.message_value_kernel, unread),
        (cell.value_kernel, unseen),
    ):
        assert np.abs(without - whole).max() > 1e-3
        weights = array(kernel)
        kernel.assign(0 * weights)
        np.testing.assert_allclose(outputs(), without, atol=1e-6)
        kernel.assign(weights)


def test_no_two_modules_are_alike():
    keras.utils.set_random_seed(0)
    layer = RIMs(4, 3, 2)
    layer.build((None, None, 5))
    for weight in layer.trainable_weights:
        values = array(weight)
        if len(values) == 3 and values.ndim == 3:
            for i, j in ((0, 1), (0, 2), (1, 2)):
                distance = np.abs(values[i] - values[j]).max()
                assert distance > 0.1 * np.abs(values).max(), weight.name


def test_the_cell_in_a_keras_rnn():
    layer, inputs = random_rims(), random_inputs(2, 6, 5)
    rnn = keras.layers.RNN(RIMsCell(**SIZES))
    rnn.build((None, None, 5))
    rnn.set_weights(layer.get_weights())
    np.testing.assert_allclose(rnn(inputs), layer(inputs), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_modules": 0}, "num_modules=0"),
        ({"num_active": 5}, "at most 4.*num_active=5"),
        ({"num_active": None}, "num_active=None"),
    ],
)
def test_arguments_are_checked(arguments, words):
    with pytest.raises(ValueError, match=words):
        RIMs(**{**SIZES, **arguments})


@pytest.mark.parametrize("rate", [0.1, 0.7])
def test_dropout_takes_as_much_as_it_says(rate):
    cell = RIMsCell(**SIZES, dropout=rate, seed=1)
    for mask in map(array, cell.noise((500,), (3, 4), True).values()):
        values = [0, 1 / (1 - rate)]
        np.testing.assert_allclose(np.unique(mask), values, rtol=1e-6)
        assert (mask == 0).mean() == pytest.approx(rate, abs=0.02)
