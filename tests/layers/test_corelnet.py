import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import LayerContract

from keras_relational.layers import CoRelNet

CAUSAL = (True, False)


def similarities_in_loops(causal):
    """Each pair of entities in turn."""

    def reference(weights, inputs, mask=None):
        assert not weights
        outputs = []
        for example, entities in enumerate(inputs):
            n = len(entities)
            valid = [True] * n if mask is None else mask[example]
            rows = np.zeros((n, n))
            for i in range(n):
                others = [
                    j
                    for j in range(i + 1 if causal else n)
                    if valid[i] and valid[j]
                ]
                a = [float(entities[i] @ entities[j]) for j in others]
                exponentials = np.exp(np.array(a) - max(a, default=0))
                rows[i, others] = exponentials / exponentials.sum()
            outputs.append(
                [
                    rows[i, j]
                    for i in range(n)
                    for j in range(i + 1 if causal else n)
                ]
            )
        return np.array(outputs)

    return reference


def random_entities(shape=(3, 4, 5)):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


class CoRelNetTest(LayerContract):
    @pytest.mark.any_backend
    def test_contract_of_earlier_entities(self):
        self.run_contract(True, 10)

    @pytest.mark.any_backend
    def test_contract_of_all_entities(self):
        self.run_contract(False, 16)

    def run_contract(self, causal, size):
        self.run_layer_contract(
            CoRelNet,
            init_kwargs={"causal": causal},
            input_shape=(2, 4, 5),
            second_input_shape=(2, 6, 5),
            fixed_size=True,
            reference=similarities_in_loops(causal),
            supports_masking=True,
            attention_scores_shape=(2, 4, 4),
            expected_output_shape=(2, size),
            expected_output_dtype="float32",
            expected_num_trainable_weights=0,
            expected_num_non_trainable_weights=0,
            expected_num_non_trainable_variables=0,
            expected_num_seed_generators=0,
            expected_num_losses=0,
        )

    def test_other_features_with_the_same_products_change_nothing(self):
        """Rotations and reflections keep all dot products."""
        entities = random_entities()
        rotation, _ = np.linalg.qr(random_entities((5, 5)))
        for causal in CAUSAL:
            layer = CoRelNet(causal)
            self.assertAllClose(layer(entities @ rotation), layer(entities))
            self.assertNotAllClose(layer(2 * entities), layer(entities))

    def test_rows_and_columns_move_with_the_entities(self):
        entities, order = random_entities(), np.array([2, 0, 3, 1])
        layer = CoRelNet(causal=False)
        _, scores = layer(entities, return_attention_scores=True)
        _, moved = layer(entities[:, order], return_attention_scores=True)
        scores = ops.convert_to_numpy(scores)
        self.assertAllClose(moved, scores[:, order][:, :, order])

    def test_later_entities_change_no_earlier_row(self):
        entities = random_entities()
        outputs = CoRelNet()(entities)
        entities[:, 3] += 1
        changed = ops.convert_to_numpy(CoRelNet()(entities))
        self.assertAllClose(changed[:, :6], outputs[:, :6])
        self.assertNotAllClose(changed[:, 6:], outputs[:, 6:])

    def test_image_is_a_set_read_row_by_row(self):
        image = random_entities((3, 2, 4, 5))
        for causal in CAUSAL:
            of_image = CoRelNet(causal)(image)
            of_set = CoRelNet(causal)(image.reshape(3, 8, 5))
            self.assertAllClose(of_image, of_set)
        assert CoRelNet()(keras.Input((2, 4, 5))).shape == (None, 36)

    def test_large_inputs_in_half_precision(self):
        """Pixels up to 255 give products that overflow in float16."""
        inputs = np.random.default_rng(0).uniform(0, 255, (2, 25, 34))
        layer = CoRelNet(dtype="mixed_float16")
        for tensor in layer(inputs, return_attention_scores=True):
            assert keras.backend.standardize_dtype(tensor.dtype) == "float16"
            assert np.isfinite(ops.convert_to_numpy(tensor)).all()


@pytest.mark.parametrize("causal", [0, 1, None, "yes"])
def test_refuses_what_is_no_boolean(causal):
    with pytest.raises(ValueError, match="`causal` must be True or False"):
        CoRelNet(causal)


@pytest.mark.parametrize("shape", [(3, 5), (3, None, 5), (1,) * 5])
def test_refuses_inputs_of_unknown_size(shape):
    with pytest.raises(ValueError, match=r"similar takes a set .* fixed size"):
        CoRelNet(name="similar")(keras.Input(batch_shape=shape))
