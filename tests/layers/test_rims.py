import equations
import keras
import numpy as np
import pytest
from layer_contract import LayerContract
from layer_contract import outputs_and_gradients
from layer_contract import scores_without_the_second_position
from layers_for_tests import array
from layers_for_tests import assert_equals
from layers_for_tests import random_array
from layers_for_tests import with_random_weights

from keras_relational.layers import RIMs
from keras_relational.layers import RIMsCell
from keras_relational.layers.slots._active import most_relevant

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

    def of_one(weights, inputs, valid):
        h, c = np.zeros((MODULES, UNITS)), np.zeros((MODULES, UNITS))
        for x in inputs[valid]:
            h, c = one_step(equations.of_cell(weights), x, h, c, dynamics)
        return h.ravel()

    return equations.each_example(of_one)


def one_step(weights, x, h, c, dynamics):
    positions = np.vstack([np.zeros(x.shape[-1]), x])
    keys = positions @ weights["key_kernel"]
    values = positions @ weights["value_kernel"]
    is_nothing = np.zeros((len(positions), HEADS))
    is_nothing[0] = 1
    queries = [h[k] @ weights["query_kernel"][k] for k in range(MODULES)]
    # How much each module attends to nothing, over all heads.
    unseen = [
        equations.attend(q, keys, is_nothing, HEADS).sum() for q in queries
    ]
    active = sorted(range(MODULES), key=lambda k: unseen[k])[:ACTIVE]
    h, c = h.copy(), c.copy()
    for k in active:
        z = equations.attend(queries[k], keys, values, HEADS)
        gates = z @ weights["kernel"][k] + weights["bias"][0, k]
        inner = h[k] @ weights["recurrent_kernel"][k]
        if dynamics == "gru":
            h[k] = equations.gru(gates, inner + weights["bias"][1, k], h[k])
        else:
            h[k], c[k] = equations.lstm(gates + inner, c[k])
    queries, keys, values = (
        [h[k] @ weights[f"message_{name}_kernel"][k] for k in range(MODULES)]
        for name in ("query", "key", "value")
    )
    for k in active:
        read = equations.attend(queries[k], keys, values, MESSAGE_HEADS)
        h[k] += read @ weights["message_output_kernel"][k]
    return h, c


def random_rims(**kwargs):
    return with_random_weights(RIMs(**{**SIZES, **kwargs}), (None, None, 5))


class RIMsTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            RIMs,
            init_kwargs={**SIZES, "dropout": 0.1},
            input_shape=(3, 4, 2, 5),
            second_input_shape=(3, 7, 2, 5),
            reference=in_loops(),
            makes_choices=True,
            attention_scores_shape=(
                (3, 4, HEADS, MODULES, 3),
                (3, 4, MODULES),
                (3, 4, MESSAGE_HEADS, MODULES, MODULES),
            ),
            expected_output_shape=(3, MODULES * UNITS),
            expected_num_trainable_weights=10,
            expected_num_non_trainable_variables=1,
            expected_num_seed_generators=1,
        )


def test_gru_modules_of_vectors():
    layer = random_rims(dynamics="gru")
    assert_equals(layer, in_loops("gru"), random_array(2, 6, 5))


def test_inactive_modules_keep_their_state_and_are_not_trained():
    layer = random_rims()
    inputs = random_array(1, 1, 5)
    state = [random_array(1, MODULES * UNITS, seed=n) for n in (1, 2)]
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
    names = [weight.name for weight in layer.trainable_weights]
    gradients = dict(zip(names, map(array, gradients), strict=True))
    gradients["bias"] = gradients["bias"][0]
    for name in (
        "kernel",
        "recurrent_kernel",
        "query_kernel",
        "bias",
        "message_query_kernel",
        "message_output_kernel",
    ):
        trained = gradients[name].reshape(MODULES, -1).any(-1)
        np.testing.assert_array_equal(trained, active, err_msg=name)


def test_before_training_states_stay_small():
    """Also with open gates, where nothing bounds the sum of messages."""
    keras.utils.set_random_seed(0)
    layer = RIMs(64, 4, 4, dynamics="gru", return_sequences=True)
    outputs = layer(np.repeat(10 * random_array(2, 1, 5), 100, axis=1))
    assert np.abs(array(outputs)).max() < 2


def test_scores_add_up():
    layer = random_rims()
    _, (inputs, active, messages) = layer(
        random_array(2, 4, 5), return_attention_scores=True
    )
    np.testing.assert_allclose(array(inputs).sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(array(active).sum(-1), ACTIVE)
    np.testing.assert_allclose(array(messages).sum(-1), 1, atol=1e-6)


def test_padded_positions_are_not_there():
    inputs = random_array(2, 6, 4, 5)
    scores = scores_without_the_second_position(random_rims(), inputs)
    assert not array(scores)[..., 2].any()  # The null input comes first.


def test_dropout_acts_in_training_only():
    layer = RIMs(**SIZES, dropout=0.5, seed=1)
    inputs = random_array(2, 5, 3, 4)
    outputs, again = (array(layer(inputs)) for _ in range(2))
    np.testing.assert_array_equal(again, outputs)
    trained = array(layer(inputs, training=True))
    assert np.abs(trained - outputs).max() > 1e-2


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.7])
def test_dropout_takes_as_much_as_it_says(rate):
    cell = RIMsCell(**SIZES, dropout=rate, seed=1)
    drawn = cell.noise((500,), (3, 4), True)
    assert set(drawn) == {"dropout_mask", "message_dropout_mask"}
    for mask in map(array, drawn.values()):
        values = [0, 1 / (1 - rate)]
        np.testing.assert_allclose(np.unique(mask), values, rtol=1e-6)
        assert (mask == 0).mean() == pytest.approx(rate, abs=0.02)


def test_the_most_relevant_while_keras_has_float64_as_default():
    relevance = keras.ops.convert_to_tensor([[1.0, 3.0, 2.0]])
    keras.config.set_floatx("float64")
    try:
        active = array(most_relevant(relevance, 2))
    finally:
        keras.config.set_floatx("float32")
    np.testing.assert_array_equal(active.argmax(-1), [[1, 2]])
    np.testing.assert_array_equal(active.sum(-1), [[1, 1]])
