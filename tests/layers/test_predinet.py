import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract

from keras_relational.layers import AppendCoordinates
from keras_relational.layers import PrediNet

NUM_HEADS, NUM_RELATIONS, KEY_DIM = 2, 3, 7
ARGUMENTS = {
    "num_heads": NUM_HEADS,
    "num_relations": NUM_RELATIONS,
    "key_dim": KEY_DIM,
}


def predinet_in_loops(weights, inputs, mask=None):
    """Section 2 of the paper, one example and one head after the other."""
    if mask is None:
        mask = np.ones(inputs.shape[:2], bool)
    return np.stack(
        [
            one_predinet(weights, entities, valid)
            for entities, valid in zip(inputs, mask, strict=True)
        ]
    )


def one_predinet(weights, entities, valid):
    entities = np.where(valid[:, None], entities, 0)
    outputs = []
    for head in range(NUM_HEADS):
        attended = []
        for query_number in range(2):
            start = (query_number * NUM_HEADS + head) * KEY_DIM
            kernel = weights["query_kernel"][:, start : start + KEY_DIM]
            query = entities.flatten() @ kernel
            attended.append(attend(query, entities, valid, weights))
        first, second = attended
        for relation in range(NUM_RELATIONS):
            kernel = weights["relation_kernel"][:, relation]
            outputs.append(first @ kernel - second @ kernel)
        outputs.extend([first[-2], first[-1], second[-2], second[-1]])
    return np.array(outputs)


def attend(query, entities, valid, weights):
    exponentials = {
        i: np.exp(query @ (entities[i] @ weights["key_kernel"]))
        for i in np.flatnonzero(valid)
    }
    total = sum(exponentials.values())
    attended = np.zeros(entities.shape[1])
    for i, exponential in exponentials.items():
        attended += exponential / total * entities[i]
    return attended


def random_entities(shape=(3, 4, 5)):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def random_predinet(shape):
    """A layer whose attention is neither uniform nor on one entity only."""
    layer = PrediNet(**ARGUMENTS)
    layer.build(shape)
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(rng.normal(scale=0.3, size=weight.shape))
    return layer


class PrediNetTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract(self):
        self.run_layer_contract(
            PrediNet,
            init_kwargs={**ARGUMENTS, "kernel_initializer": "he_normal"},
            input_shape=(2, 4, 5),
            second_input_shape=(2, 6, 5),
            fixed_size=True,
            reference=predinet_in_loops,
            supports_masking=True,
            attention_scores_shape=((2, NUM_HEADS, 4), (2, NUM_HEADS, 4)),
            expected_output_shape=(2, 14),
            expected_output_dtype="float32",
            expected_num_trainable_weights=3,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )

    def test_output_size_and_number_of_parameters(self):
        k, j, g, n, m = 4, 6, 3, 5, 8
        layer = PrediNet(num_heads=k, num_relations=j, key_dim=g)
        assert layer(random_entities((2, n, m))).shape == (2, k * 10)
        # Each head has its own W_Q1 and W_Q2. All heads share W_K and W_S.
        assert layer.count_params() == 2 * k * (n * m * g) + m * g + m * j

    def test_swapped_queries_negate_distances_and_swap_positions(self):
        layer, entities = random_predinet((3, 4, 5)), random_entities()
        before = layer.propositions(entities)
        _, (scores_1, scores_2) = layer(entities, return_attention_scores=True)

        first, second = ops.split(layer.query_kernel, 2, axis=1)
        layer.query_kernel.assign(ops.concatenate([second, first], axis=1))

        after = layer.propositions(entities)
        _, scores = layer(entities, return_attention_scores=True)
        self.assertNotAllClose(before["distances"], 0)
        self.assertAllClose(after["distances"], -before["distances"])
        self.assertAllClose(after["positions_1"], before["positions_2"])
        self.assertAllClose(after["positions_2"], before["positions_1"])
        self.assertAllClose(scores[0], scores_2)
        self.assertAllClose(scores[1], scores_1)

    def test_equal_queries_find_no_difference(self):
        layer = random_predinet((3, 4, 5))
        first, _ = ops.split(layer.query_kernel, 2, axis=1)
        layer.query_kernel.assign(ops.concatenate([first, first], axis=1))
        propositions = layer.propositions(random_entities())
        self.assertAllClose(propositions["distances"], np.zeros((3, 2, 3)))
        self.assertAllEqual(
            propositions["positions_1"], propositions["positions_2"]
        )

    def test_propositions_are_the_outputs_head_by_head(self):
        layer, entities = random_predinet((3, 4, 5)), random_entities()
        outputs = ops.convert_to_numpy(layer(entities))
        propositions = layer.propositions(entities)
        size = NUM_RELATIONS + 4
        for head in range(NUM_HEADS):
            of_head = outputs[:, head * size : (head + 1) * size]
            self.assertAllEqual(
                propositions["distances"][:, head], of_head[:, :NUM_RELATIONS]
            )
            self.assertAllEqual(
                propositions["positions_1"][:, head], of_head[:, -4:-2]
            )
            self.assertAllEqual(
                propositions["positions_2"][:, head], of_head[:, -2:]
            )

    def test_large_inputs_in_half_precision(self):
        """Pixels up to 255 give logits that overflow in float16."""
        rng = np.random.default_rng(0)
        inputs = rng.uniform(0, 255, (2, 25, 34)).astype("float32")
        layer = PrediNet(2, 3, 4, dtype="mixed_float16")
        outputs, scores = layer(inputs, return_attention_scores=True)
        for tensor in (outputs, *scores):
            assert keras.backend.standardize_dtype(tensor.dtype) == "float16"
            assert np.isfinite(ops.convert_to_numpy(tensor)).all()

    def test_propositions_in_a_model(self):
        layer, entities = random_predinet((3, 4, 5)), random_entities()
        inputs = keras.Input((4, 5))
        model = keras.Model(inputs, layer.propositions(inputs))
        assert {k: v.shape for k, v in model.output.items()} == {
            "positions_1": (None, NUM_HEADS, 2),
            "positions_2": (None, NUM_HEADS, 2),
            "distances": (None, NUM_HEADS, NUM_RELATIONS),
        }
        expected = layer.propositions(entities)
        for name, values in model(entities).items():
            self.assertAllClose(values, expected[name])

    def test_propositions_take_a_mask(self):
        layer, entities = random_predinet((3, 4, 5)), random_entities()
        mask = np.array([[True, True, False, False]] * 3)
        outputs = ops.convert_to_numpy(layer(entities, mask=mask))
        propositions = layer.propositions(entities, mask=mask)
        self.assertAllEqual(propositions["positions_2"][:, -1], outputs[:, -2:])

    def test_positions_are_attended_coordinates(self):
        image = random_entities((3, 2, 3, 4))
        with_coordinates = AppendCoordinates(low=-0.5, high=0.8)(image)
        layer = random_predinet(with_coordinates.shape)
        propositions = layer.propositions(with_coordinates)
        _, scores = layer(with_coordinates, return_attention_scores=True)
        coordinates = ops.reshape(with_coordinates[..., -2:], (3, 6, 2))
        for number in (1, 2):
            positions = ops.convert_to_numpy(
                propositions[f"positions_{number}"]
            )
            self.assertAllClose(
                positions, ops.matmul(scores[number - 1], coordinates)
            )
            assert np.all(positions >= -0.5)
            assert np.all(positions <= 0.8)

    def test_attention_masks_sum_to_one(self):
        layer, entities = random_predinet((3, 4, 5)), random_entities()
        _, scores = layer(entities, return_attention_scores=True)
        mask = np.array([[True] * 4, [True, False, True, False], [False] * 4])
        _, masked = layer(entities, mask=mask, return_attention_scores=True)
        for number in range(2):
            self.assertAllClose(
                ops.sum(scores[number], axis=-1), np.ones((3, NUM_HEADS))
            )
            self.assertAllClose(
                ops.sum(masked[number], axis=-1), [[1, 1], [1, 1], [0, 0]]
            )
            valid = ops.convert_to_numpy(masked[number])
            assert not np.any(valid * ~mask[:, None])
        self.assertNotAllClose(scores[0], scores[1])

    def test_image_is_a_set_read_row_by_row(self):
        image = random_entities((3, 2, 4, 5))
        layer = PrediNet(**ARGUMENTS)
        outputs = layer(image)
        of_set = PrediNet(**ARGUMENTS)
        of_set.build((3, 8, 5))
        of_set.set_weights(layer.get_weights())
        self.assertAllClose(outputs, of_set(image.reshape(3, 8, 5)))
        assert layer(keras.Input((2, 4, 5))).shape == (None, 14)

    def test_refuses_another_shape_of_the_same_size(self):
        layer = PrediNet(**ARGUMENTS)
        layer.build((3, 2, 4, 5))
        with pytest.raises(ValueError, match=r"\(3, 2, 4, 5\).*\(3, 4, 2, 5\)"):
            layer(random_entities((3, 4, 2, 5)))


@pytest.mark.parametrize("argument", ["num_heads", "num_relations", "key_dim"])
@pytest.mark.parametrize("value", [0, -1, 2.0, "2", None, True])
def test_refuses_sizes_that_are_no_positive_integers(argument, value):
    message = f"`{argument}` must be a positive integer.*{argument}={value}"
    with pytest.raises(ValueError, match=message):
        PrediNet(**{**ARGUMENTS, argument: value})


@pytest.mark.parametrize(
    "shape", [(3, 5), (3, None, 5), (3, 4, None), (3, 2, None, 5), (1,) * 5]
)
def test_refuses_inputs_that_are_no_set_of_fixed_size(shape):
    layer = PrediNet(**ARGUMENTS, name="comparer")
    with pytest.raises(ValueError, match=r"comparer takes a set .* fixed size"):
        layer(keras.Input(batch_shape=shape))


def test_refuses_entities_without_a_position():
    with pytest.raises(ValueError, match=r"last two features .* for its pos"):
        PrediNet(**ARGUMENTS)(random_entities((3, 4, 1)))
