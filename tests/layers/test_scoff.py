import itertools

import equations
import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import OTHER_ARGUMENTS
from layer_contract import LayerContract
from layer_contract import outputs_and_gradients
from layer_contract import scores_without_the_second_position
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import assert_equals
from layers_for_tests import needs_float64
from layers_for_tests import random_array
from layers_for_tests import with_random_weights

from keras_relational.layers import SCOFF
from keras_relational.layers import RIMs
from keras_relational.layers import SCOFFCell

FILES, UNITS, SCHEMATA = 3, 4, 2
HEADS, KEY, VALUE = 2, 3, 5
MESSAGE_HEADS, MESSAGE_KEY, MESSAGE_VALUE = 2, 2, 3
SIZES = {
    "units": UNITS,
    "num_object_files": FILES,
    "num_schemata": SCHEMATA,
    "num_heads": HEADS,
    "key_dim": KEY,
    "value_dim": VALUE,
    "num_message_heads": MESSAGE_HEADS,
    "message_key_dim": MESSAGE_KEY,
    "message_value_dim": MESSAGE_VALUE,
}
# The temperature, and the seed of what is drawn.
VARIABLES = {
    "expected_num_non_trainable_weights": 1,
    "expected_num_non_trainable_variables": 2,
    "expected_num_seed_generators": 1,
}


def in_loops(dynamics="gru", num_active=None, return_sequences=False):
    """Algorithm 1: example after example, step after step, file after file."""

    def of_one(weights, inputs, valid):
        weights = equations.of_cell(weights)
        noise = np.random.default_rng(0)
        noise = noise.standard_normal((FILES, UNITS), "float32")
        h = weights["initial_mean"] + weights["initial_scale"] * noise
        c = np.zeros((FILES, UNITS))
        rows = [np.zeros(FILES * UNITS)]
        for t, x in enumerate(inputs):
            if t in valid:
                h, c = one_step(weights, x, h, c, dynamics, num_active)
                rows.append(h.ravel())
            else:
                rows.append(rows[-1])
        return np.stack(rows[1:]) if return_sequences else rows[-1]

    return equations.each_example(of_one)


def one_step(weights, x, h, c, dynamics, num_active):
    # Step 1, but for the network: encodings of positions.
    positions = np.atleast_2d(x)
    if "position_encodings" in weights:
        encodings = weights["position_encodings"]
        positions = np.concatenate([positions, encodings], axis=1)
    # Step 2. Files compete for each position.
    z, attention = [np.zeros(0)] * FILES, np.zeros(FILES)
    queries = h @ weights["query_kernel"]
    for head in range(HEADS):
        read = np.zeros((FILES, VALUE))
        for p in positions:
            key = equations.part(p @ weights["key_kernel"], head, HEADS)
            own = equations.part(queries, head, HEADS)
            shares = equations.softmax(own @ key / KEY**0.5)
            attention += shares
            value = equations.part(p @ weights["value_kernel"], head, HEADS)
            read += np.outer(shares, value)
        z = [np.append(a, b) for a, b in zip(z, read, strict=True)]
    # Step 3.
    active = range(FILES)
    if num_active is not None:
        active = sorted(active, key=lambda k: -attention[k])[:num_active]
    new_h, new_c = h.copy(), c.copy()
    for k in active:
        candidates = [
            schema(weights, j, z[k], h[k], c[k], dynamics)
            for j in range(SCHEMATA)
        ]
        query = h[k] @ weights["schema_query_kernel"]
        matches = [
            match(weights, j, query, candidate)
            for j, (candidate, _) in enumerate(candidates)
        ]
        new_h[k], new_c[k] = candidates[int(np.argmax(matches))]
    # Step 4, if there are messages.
    if "message_query_kernel" not in weights:
        return new_h, new_c
    keys = new_h @ weights["message_key_kernel"]
    values = new_h @ weights["message_value_kernel"]
    after = new_h.copy()
    for k in active:
        query = h[k] @ weights["message_query_kernel"]
        read = equations.attend(query, keys, values, MESSAGE_HEADS)
        message = read @ weights["message_output_kernel"]
        if "message_gate_kernel" in weights:
            gate = read @ weights["message_gate_kernel"]
            message = np.tanh(message + weights["message_output_bias"])
            gate = gate + weights["message_gate_bias"]
            message = message * equations.sigmoid(gate)
        after[k] += message
    return after, new_c


def schema(weights, j, z, h, c, dynamics):
    x = z @ weights["kernel"][:, j] + weights["bias"][0, j]
    y = h @ weights["recurrent_kernel"][:, j]
    if dynamics == "lstm":
        return equations.lstm(x + y, c)
    return equations.gru(x, y + weights["bias"][1, j], h), c


def match(weights, j, query, candidate):
    if "schema_key_bias" not in weights:
        return query @ (candidate @ weights["schema_key_kernel"])
    # Separate keys.
    key = candidate @ weights["schema_key_kernel"][j]
    key = key + weights["schema_key_bias"][j]
    return (query + weights["schema_query_bias"]) @ key / KEY**0.5


def random_scoff(shape=(None, 5), scale=0.4, **kwargs):
    layer = SCOFF(**{**SIZES, **kwargs})
    return with_random_weights(layer, (None, *shape), scale=scale)


class SCOFFTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            SCOFF,
            init_kwargs={
                **SIZES,
                "num_active": 2,
                "position_dim": 2,
                "dropout": 0.1,
                "return_sequences": True,
            },
            reference=in_loops(num_active=2, return_sequences=True),
            makes_choices=True,
            output_mask=lambda mask: mask,
            attention_scores_shape=(
                (2, 4, HEADS, FILES, 3),
                (2, 4, FILES, SCHEMATA),
                (2, 4, MESSAGE_HEADS, FILES, FILES),
            ),
            expected_output_shape=(2, 4, FILES * UNITS),
            expected_num_trainable_weights=15,
            input_shape=(2, 4, 3, 5),
            second_input_shape=(2, 7, 3, 5),
            **VARIABLES,
        )

    def test_contract_with_separate_keys_and_balance(self):
        self.run_layer_contract(
            SCOFF,
            checks=OTHER_ARGUMENTS,
            init_kwargs={
                **SIZES,
                "schema_keys": "separate",
                "balance": 0.1,
                "gated_messages": True,
            },
            reference=in_loops(),
            makes_choices=True,
            attention_scores_shape=(
                (2, 4, HEADS, FILES, 1),
                (2, 4, FILES, SCHEMATA),
                (2, 4, MESSAGE_HEADS, FILES, FILES),
            ),
            expected_output_shape=(2, FILES * UNITS),
            expected_num_trainable_weights=19,
            **VARIABLES,
        )


@pytest.mark.parametrize(
    ("dynamics", "shape", "active", "keys", "gated"),
    [
        ("lstm", (6, 5), None, "shared", False),
        ("gru", (6, 5), None, "shared", False),
        ("lstm", (3, 4, 5), None, "shared", False),
        ("gru", (3, 2, 5), None, "shared", False),
        ("lstm", (6, 5), 2, "shared", False),
        ("gru", (6, 5), None, "separate", False),
        ("lstm", (3, 2, 5), 2, "separate", False),
        ("gru", (3, 2, 5), 2, "shared", True),
        ("lstm", (6, 5), None, "shared", True),
    ],
)
def test_equals_the_algorithm(dynamics, shape, active, keys, gated):
    arguments = {
        "num_active": active,
        "schema_keys": keys,
        "gated_messages": gated,
    }
    layer = random_scoff(shape, dynamics=dynamics, **arguments)
    reference = in_loops(dynamics, active)
    assert_equals(layer, reference, random_array(2, *shape))


def test_without_messages():
    layer = random_scoff(num_message_heads=0, num_active=2)
    inputs = random_array(2, 6, 5)
    assert_equals(layer, in_loops(num_active=2), inputs)
    _, scores = layer(inputs, return_attention_scores=True)
    assert scores[2].shape == (2, 6, 0, FILES, FILES)


def test_an_image_is_a_set_read_row_by_row():
    image = random_array(2, 3, 2, 2, 5)
    of_image = random_scoff((3, 2, 2, 5), dynamics="lstm")(image)
    of_set = random_scoff((3, 4, 5), dynamics="lstm")(image.reshape(2, 3, 4, 5))
    assert_close(of_image, of_set)


def test_object_files_are_exchangeable(float64):
    # In float64, so that no choice depends on rounding.
    layer = random_scoff(return_sequences=True, num_active=2, dtype="float64")
    inputs = random_array(2, 6, 5).astype("float64")
    state = random_array(2, FILES, UNITS, seed=3).astype("float64")
    order = [2, 0, 1]
    outputs, permuted = (
        array(layer(inputs, initial_state=x.reshape(2, -1))).reshape(
            2, 6, FILES, UNITS
        )
        for x in (state, state[:, order])
    )
    assert_close(permuted, outputs[:, :, order])
    assert np.abs(permuted - outputs).max() > 0.1


def test_the_order_of_schemata_does_not_matter(float64):
    # In float64, so that no choice depends on rounding.
    layer = random_scoff(num_schemata=4, dtype="float64")
    inputs = random_array(3, 6, 5).astype("float64")
    outputs, scores = layer(inputs, return_attention_scores=True)
    order = [3, 1, 0, 2]
    for name, axis in (("kernel", 1), ("recurrent_kernel", 1), ("bias", 1)):
        weight = getattr(layer.cell, name)
        weight.assign(array(weight.value).take(order, axis))
    again, new_scores = layer(inputs, return_attention_scores=True)
    assert_close(again, outputs)
    assert_close(array(new_scores[1]), array(scores[1])[..., order])
    # All four are chosen somewhere, and not always the same one.
    assert len(np.unique(array(scores[1]).argmax(-1))) > 2


@pytest.mark.parametrize("dynamics", ["gru", "lstm"])
def test_one_of_each_is_keras_own(dynamics):
    """One schema, one file, no messages: a GRU or LSTM with attended input."""
    sizes = {"num_object_files": 1, "num_schemata": 1, "num_heads": 1}
    layer = random_scoff(**sizes, dynamics=dynamics, return_sequences=True)
    cell = layer.cell
    cell.message_value_kernel.assign(0 * cell.message_value_kernel)
    keras_layer = {"gru": keras.layers.GRU, "lstm": keras.layers.LSTM}[dynamics]
    other = keras_layer(UNITS, return_sequences=True)
    other.build((None, None, VALUE))
    bias = array(cell.bias.value)[:, 0]
    other.set_weights(
        [
            array(cell.kernel.value)[:, 0],
            array(cell.recurrent_kernel.value)[:, 0],
            bias if dynamics == "gru" else bias[0],
        ]
    )
    inputs = random_array(2, 7, 5)
    state = [random_array(2, UNITS, seed=1), random_array(2, UNITS, seed=2)]
    state = state[: len(cell.state_size)]
    assert_close(
        layer(inputs, initial_state=state),
        other(ops.matmul(inputs, cell.value_kernel), initial_state=state),
    )


@pytest.mark.parametrize(("dynamics", "forget"), [("lstm", 1), ("gru", 0)])
def test_schemata_forget_little_at_first(dynamics, forget):
    layer = SCOFF(**SIZES, dynamics=dynamics)
    layer.build((None, None, 5))
    bias = array(layer.cell.bias.value)
    gates = np.split(bias, bias.shape[-1] // UNITS, axis=-1)
    for number, gate in enumerate(gates):
        np.testing.assert_array_equal(gate, (number == 1) * forget)


def test_files_of_the_default_state_differ():
    layer = SCOFF(8, 5, 2)
    files = array(layer(random_array(1, 1, 4))).reshape(5, 8)
    for one, other in itertools.combinations(files, 2):
        assert np.abs(one - other).max() > 0.1


@pytest.mark.parametrize("cells", [1, 64])
def test_before_training_states_stay_small_and_schemata_open(cells):
    """Also in long sequences, where nothing bounds the sum of messages."""
    keras.utils.set_random_seed(1)
    layer = SCOFF(64, 1, 3, num_heads=4, return_sequences=True)
    inputs = abs(random_array(2, 200, cells, 16))
    outputs, (_, schemata, _) = layer(inputs, return_attention_scores=True)
    assert np.abs(array(outputs)).max() < 5
    # The probability that the best schema is chosen in spite of the noise.
    assert np.median(array(schemata).max(axis=-1)) < 0.95


def test_gradients_reach_all_schemata():
    """One file, one step: one schema is chosen, and the others learn too.

    So it is without noise, too: an agent learns from its own actions.
    """
    layer = random_scoff(num_object_files=1, num_schemata=4)
    for training in (True, False):
        _, gradients, _ = outputs_and_gradients(
            layer, random_array(1, 1, 5), training=training
        )
        names = [weight.name for weight in layer.trainable_weights]
        gradient = array(gradients[names.index("kernel")])
        assert (np.abs(gradient).max((0, 2)) > 0).all()


def test_schemata_are_drawn_in_training():
    """With the probabilities of the softmax, at any temperature."""
    layer = random_scoff(num_object_files=1, num_schemata=3)
    inputs = np.repeat(random_array(1, 1, 5), 4000, axis=0)
    _, (_, scores, _) = layer(inputs[:1], return_attention_scores=True)
    layer.cell.current_temperature.assign(0.3)
    _, (_, drawn, _) = layer(
        inputs, training=True, return_attention_scores=True
    )
    drawn = array(drawn)[:, 0, 0].argmax(-1)
    shares = np.bincount(drawn, minlength=3) / len(drawn)
    assert_close(shares, array(scores)[0, 0, 0], atol=0.03)
    # Without noise it is the largest.
    outputs = array(layer(inputs))
    assert np.ptp(outputs, axis=0).max() == 0


@pytest.mark.parametrize("num_active", [None, 1])
def test_messages_that_dropout_takes_are_not_read(num_active):
    cell = random_scoff(num_active=num_active).cell
    inputs = cell.keys_and_values(random_array(2, 5))
    states = cell.get_initial_state(2)
    ones = np.ones((2, *cell.scores_shapes((5,))[2]), "float32")

    def after_messages(mask):
        mask = ops.convert_to_tensor(mask)
        (h,), _ = cell.step(
            inputs, states, cell.products(), message_dropout_mask=mask
        )
        return array(h).reshape(2, FILES, UNITS)

    nothing, all_of_them = after_messages(0 * ones), after_messages(ones)
    # Nobody reads from the last object file.
    mask = ones.copy()
    mask[..., -1] = 0
    without_last = after_messages(mask)
    assert np.abs(without_last - all_of_them).max() > 1e-3
    assert np.abs(without_last - nothing).max() > 1e-3
    # The first object file reads nothing, and the others read as before.
    mask = ones.copy()
    mask[:, :, 0] = 0
    deaf = after_messages(mask)
    assert_close(deaf[:, 0], nothing[:, 0])
    assert_close(deaf[:, 1:], all_of_them[:, 1:])


@pytest.mark.parametrize("dtype", ["bfloat16", "mixed_float16"])
def test_the_schema_with_the_best_score_is_the_one_chosen(dtype):
    """In half precision two scores may be rounded to the same number."""
    layer = SCOFF(16, 4, 4, return_sequences=True, unroll=True, dtype=dtype)
    taken, choice_of = [], layer.cell.choose_schema

    def noted(*args):
        choice, scores = choice_of(*args)
        taken.append(array(ops.cast(choice, "float32")).argmax(-1))
        return choice, scores

    layer.cell.choose_schema = noted
    outputs, (_, schemata, _) = layer(
        random_array(16, 10, 8), return_attention_scores=True
    )
    taken = np.stack(taken, axis=1)
    np.testing.assert_array_equal(array(schemata).argmax(-1), taken)
    assert keras.backend.standardize_dtype(schemata.dtype) == "float32"
    assert keras.backend.standardize_dtype(outputs.dtype) == layer.compute_dtype


def test_the_temperature_can_be_changed():
    def gradient_of_keys():
        keras.utils.set_random_seed(0)
        layer = random_scoff(seed=0)
        for temperature in (1.0, 10.0):
            layer.cell.current_temperature.assign(temperature)
            layer.cell.seed_generator.state.assign([0, 0])
            _, gradients, _ = outputs_and_gradients(
                layer, random_array(2, 3, 5), training=True
            )
            names = [weight.name for weight in layer.trainable_weights]
            yield array(gradients[names.index("schema_key_kernel")])

    one, ten = gradient_of_keys()
    assert np.abs(ten).mean() < 0.5 * np.abs(one).mean()


def test_weights_do_not_depend_on_the_number_of_files():
    small, large = (
        random_scoff(num_object_files=n, return_sequences=True) for n in (2, 5)
    )
    assert small.count_params() == large.count_params()
    large.set_weights(small.get_weights())
    inputs = random_array(2, 3, 5)
    # The first files start alike.
    first = array(large.get_initial_state(1)[0])[:, : 2 * UNITS]
    np.testing.assert_array_equal(first, small.get_initial_state(1)[0])
    assert large(inputs).shape == (2, 3, 5 * UNITS)


def test_balance_is_smallest_if_schemata_are_used_alike():
    layer = random_scoff(
        balance=0.5, seed=3, num_active=2, return_sequences=True
    )
    inputs, mask = random_array(2, 6, 5), np.ones((2, 6), bool)
    mask[1, 3:] = False
    assert not layer.losses
    layer(inputs, mask=mask)
    assert not layer.losses  # Not in training.
    _, scores = layer(
        *(inputs, None, mask), training=True, return_attention_scores=True
    )
    (loss,) = layer.losses
    # The scores of 2 active files at 9 real steps sum to 18.
    shares = array(scores[1]).sum((0, 1, 2)) / 18
    np.testing.assert_allclose(shares.sum(), 1, rtol=1e-5)
    expected = 0.5 * (shares * np.log(shares)).sum()
    np.testing.assert_allclose(array(loss), expected, rtol=1e-5)
    assert 0.5 * np.log(1 / SCHEMATA) <= array(loss) < 0


def test_balance_opens_schemata_that_nothing_chooses():
    """Training by this loss alone makes both schemata as likely."""
    layer = random_scoff(balance=1.0, schema_keys="separate", seed=3)
    layer.cell.schema_key_bias.assign([[5.0] * KEY, [-5.0] * KEY])
    layer.cell.schema_query_bias.assign([1.0] * KEY)
    model = keras.Sequential([keras.Input((6, 5)), layer])
    inputs = random_array(8, 6, 5)

    def share():
        _, scores = layer(inputs, return_attention_scores=True)
        return array(scores[1])[..., 0].mean()

    assert share() > 0.99
    model.compile(keras.optimizers.Adam(0.1), loss=lambda y, pred: 0 * pred)
    model.fit(inputs, np.zeros((8, FILES * UNITS)), epochs=60, verbose=0)
    assert 0.2 < share() < 0.8


def test_files_that_are_not_active_keep_their_state():
    layer = random_scoff(num_active=1, return_sequences=True, dynamics="lstm")
    inputs = random_array(4, 1, 5)
    state = [random_array(4, FILES * UNITS, seed=n) for n in (5, 6)]
    outputs, (scores, schemata, messages) = layer(
        inputs, initial_state=state, return_attention_scores=True
    )
    same = (
        array(outputs).reshape(4, FILES, UNITS)
        == state[0].reshape(4, FILES, UNITS)
    ).all(-1)
    assert (same.sum(-1) == FILES - 1).all()
    most = array(scores)[:, 0].sum((1, 3)).argmax(-1)
    np.testing.assert_array_equal((~same).argmax(-1), most)
    # No schema is chosen for them, and they read no messages.
    assert_close(array(schemata)[:, 0].sum(-1), ~same)
    read = array(messages)[:, 0].sum(-1)
    assert_close(read, np.broadcast_to(~same[:, None], read.shape))


@pytest.mark.parametrize("dynamics", ["gru", "lstm"])
def test_states_go_from_call_to_call(dynamics):
    kwargs = {"dynamics": dynamics, "return_sequences": True}
    whole = random_scoff(**kwargs)
    inputs = random_array(2, 6, 5)
    expected = array(whole(inputs))

    with_state = random_scoff(**kwargs, return_state=True)
    first, *states = with_state(inputs[:, :4])
    second, *_ = with_state(inputs[:, 4:], initial_state=states)
    halves = np.concatenate([array(first), array(second)], axis=1)
    assert_close(halves, expected)

    stateful = SCOFF(**SIZES, **kwargs, stateful=True)
    stateful.build((2, 4, 5))
    stateful.set_weights(whole.get_weights())
    for _ in range(2):
        stateful.reset_state()
        halves = [array(stateful(x)) for x in (inputs[:, :4], inputs[:, 4:])]
        assert_close(np.concatenate(halves, axis=1), expected)


def test_padded_positions_are_not_there():
    layer = random_scoff((None, 4, 5), position_dim=0, return_sequences=True)
    scores = scores_without_the_second_position(layer, random_array(2, 6, 4, 5))
    assert not array(scores)[..., 1].any()


PADDING = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], bool)
# Small weights keep h near 1, where float32 is exact to 1e-7.
SMALL = {"scale": 0.2, "return_sequences": True}


def test_directions_and_loops():
    inputs = random_array(2, 5, 5)
    layer = random_scoff(**SMALL)
    expected = array(layer(inputs))
    turned = array(layer(inputs[:, ::-1].copy()))
    backwards = random_scoff(go_backwards=True, **SMALL)
    assert_close(backwards(inputs), turned)
    unrolled = random_scoff((5, 5), unroll=True, **SMALL)
    assert_close(unrolled(inputs), expected)
    both = keras.layers.Bidirectional(SCOFF(**SIZES, return_sequences=True))
    both.build((2, 5, 5))
    for one in (both.forward_layer, both.backward_layer):
        one.set_weights(layer.get_weights())
    expected = np.concatenate([expected, turned[:, ::-1]], axis=-1)
    assert_close(both(inputs), expected)


def test_padded_steps_change_nothing_and_have_no_scores():
    layer, inputs = random_scoff(**SMALL), random_array(2, 5, 5)
    mask = np.array([True, False, True, True, False, True, True])
    padded = np.full((2, 7, 5), np.nan, "float32")
    padded[:, mask] = inputs
    outputs, scores = layer(
        padded, mask=np.stack([mask, mask]), return_attention_scores=True
    )
    assert_close(array(outputs)[:, mask], layer(inputs))
    np.testing.assert_array_equal(array(outputs)[:, 1], array(outputs)[:, 0])
    for score in scores:
        assert not array(score)[:, ~mask].any()
        assert array(score)[:, mask].any()


def test_scores_add_up():
    layer = random_scoff((None, 3, 5), go_backwards=True)
    outputs, scores = layer(
        random_array(2, 4, 3, 5), return_attention_scores=True
    )
    for score, axis in zip(scores, (3, -1, -1), strict=True):
        np.testing.assert_allclose(array(score).sum(axis), 1, atol=1e-6)
    assert outputs.shape == (2, FILES * UNITS)


def test_without_encodings_any_number_of_positions():
    layer = SCOFF(4, 2, 3, position_dim=0)
    layer(random_array(1, 2, 5, 3))
    assert layer(random_array(1, 2, 7, 3)).shape == (1, 8)


@needs_float64
def test_nothing_is_lost_in_float64():
    layer = random_scoff((6, 5), dtype="float64", num_active=2)
    inputs = random_array(2, 6, 5).astype("float64")
    assert_equals(layer, in_loops(num_active=2), inputs, atol=1e-12)
    _, scores = layer(inputs, return_attention_scores=True)
    assert {str(array(x).dtype) for x in scores} == {"float64"}


@pytest.mark.parametrize("of_layer", [True, False])
@pytest.mark.parametrize("cls", [SCOFF, RIMs])
def test_configurations_of_older_files(cls, of_layer):
    """Options that are gone are left out, if the weights hold their effect."""
    made = cls(4, 3, 2)
    made = made if of_layer else made.cell
    config = made.get_config()
    older = {
        **config,
        "unit_forget_bias": False,
        "temperature": 0.5,
        "activation": "tanh",
        "recurrent_activation": "sigmoid",
        "bias_initializer": "ones",
        "kernel_initializer": {"class_name": "GlorotUniform", "config": {}},
        "recurrent_initializer": {"class_name": "Orthogonal", "config": {}},
    }
    assert type(made).from_config(older).get_config() == config
    assert older["temperature"] == 0.5
    with pytest.raises(ValueError, match=r"'tanh' always.*activation='relu'"):
        type(made).from_config({**older, "activation": "relu"})


def test_a_seed_fixes_what_is_drawn():
    """Schemata and dropout do not depend on Keras' global seed."""
    drawn = []
    for seed in (1, 1, 2):
        cell = SCOFFCell(**SIZES, dropout=0.5, seed=seed)
        noise = cell.noise((4,), (5,), True)
        drawn.append([array(x) for x in noise.values()])
    for one, again, other in zip(*drawn, strict=True):
        np.testing.assert_array_equal(again, one)
        assert (other != one).any()


def test_backwards_with_a_mask():
    layer, inputs = random_scoff(**SMALL), random_array(2, 5, 5)
    backwards = random_scoff(go_backwards=True, **SMALL)
    expected, scores = layer(
        inputs[:, ::-1].copy(),
        mask=PADDING[:, ::-1].copy(),
        return_attention_scores=True,
    )
    outputs, found = backwards(
        inputs, mask=PADDING, return_attention_scores=True
    )
    assert_close(outputs, expected)
    # Scores stay with the steps of the input.
    assert_close(found, [array(x)[:, ::-1] for x in scores])


def test_both_directions_are_zero_at_padding():
    both = keras.layers.Bidirectional(SCOFF(**SIZES, return_sequences=True))
    outputs = array(both(random_array(2, 5, 5), mask=PADDING))
    assert not outputs[~PADDING].any()
    assert outputs[PADDING].all()
