import itertools

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import CHECKS
from layer_contract import OTHER_ARGUMENTS
from layer_contract import LayerContract
from layer_contract import outputs_and_gradients
from layers_for_tests import array
from layers_for_tests import assert_close
from layers_for_tests import random_array
from simplicial_reference import attention_in_loops

from keras_relational.layers import TwoSimplicialAttention
from keras_relational.layers.transformer import two_simplicial_attention

SCORES = two_simplicial_attention.SCORES
triple_product = two_simplicial_attention.unsigned_scalar_triple_product


class TwoSimplicialAttentionTest(LayerContract):
    def run_with_base(
        self, num_heads, key_dim, name, query, base, checks=OTHER_ARGUMENTS
    ):
        (batch, n, m), (_, b, base_m) = query, base
        self.run_layer_contract(
            TwoSimplicialAttention,
            checks=checks,
            init_kwargs={
                "num_heads": num_heads,
                "key_dim": key_dim,
                "score": name,
                "kernel_initializer": "he_normal",
            },
            input_shape={"query_shape": query, "base_shape": base},
            second_input_shape={
                "query_shape": (batch, n + 2, m),
                "base_shape": (batch, b + 1, base_m),
            },
            reference=attention_in_loops(num_heads, name),
            output_mask=lambda mask: mask,
            attention_scores_shape=(batch, num_heads, n, b, b),
            expected_output_shape=(batch, n, num_heads * key_dim),
            expected_num_trainable_weights=5,
        )

    @pytest.mark.any_backend
    def test_contract(self):
        self.run_with_base(2, 4, "unsigned", (3, 5, 6), (3, 2, 7), CHECKS)

    @pytest.mark.any_backend
    def test_contract_trilinear_and_a_large_base(self):
        self.run_with_base(1, 5, "trilinear", (2, 3, 4), (2, 5, 4))

    @pytest.mark.any_backend
    def test_contract_determinant(self):
        self.run_with_base(2, 6, "determinant", (2, 4, 5), (2, 3, 5))


def multivector_product(a, b):
    """The product of two elements of a Clifford algebra.

    They are dictionaries from sorted tuples of basis vectors to coefficients.
    e_i e_i = 1, and e_i e_j = −e_j e_i.
    """
    result = {}
    for (left, x), (right, y) in itertools.product(a.items(), b.items()):
        indices, sign = [*left, *right], 1
        swapped = True
        while swapped:  # Bubble sort: each exchange changes the sign.
            swapped = False
            for k in range(len(indices) - 1):
                if indices[k] > indices[k + 1]:
                    indices[k : k + 2] = indices[k + 1], indices[k]
                    sign, swapped = -sign, True
        key = tuple(i for i in set(indices) if indices.count(i) % 2)
        key = tuple(sorted(key))
        result[key] = result.get(key, 0) + sign * x * y
    return result


def clifford(a, b, c):
    """⟨a, b, c⟩ by Definition C.8: the parts of abc below degree 3."""
    vectors = [{(i,): x for i, x in enumerate(v)} for v in (a, b, c)]
    product = multivector_product(
        multivector_product(vectors[0], vectors[1]), vectors[2]
    )
    return np.sqrt(sum(x**2 for key, x in product.items() if len(key) < 3))


def one(a, b, c):
    """The triple product of three vectors, by the layer's function."""
    a, b, c = (ops.convert_to_tensor(x[None], "float64") for x in (a, b, c))
    return float(array(triple_product(a, b, c))[0, 0, 0])


def nearly(number):
    """The tolerance of float64. On torch, Keras computes in float32."""
    torch = keras.backend.backend() == "torch"
    return pytest.approx(number, rel=1e-6 if torch else 1e-12)


@pytest.fixture(params=range(2))
def vectors(request, float64):
    return np.random.default_rng(request.param).normal(size=(3, 6))


def test_equals_the_clifford_algebra(vectors):
    assert one(*vectors) == nearly(clifford(*vectors))


def test_lemma_i_bounds(vectors):
    assert 0 <= one(*vectors) <= np.prod(np.linalg.norm(vectors, axis=1))


def test_lemma_ii_orthogonal_vectors(vectors):
    orthogonal = np.linalg.qr(vectors.T)[0].T
    assert one(*orthogonal) == pytest.approx(0, abs=1e-7)
    assert one(*vectors) > 1e-2


def test_lemma_iii_dependent_vectors(vectors):
    a, b, c = vectors
    largest = np.prod(np.linalg.norm(vectors, axis=1))
    assert one(a, b, c) < 0.99999 * largest
    dependent = 2 * a - b
    largest = np.prod(np.linalg.norm([a, b, dependent], axis=1))
    assert one(a, b, dependent) == nearly(largest)


def test_lemma_iv_permutations(vectors):
    for permuted in itertools.permutations(vectors):
        assert one(*permuted) == nearly(one(*vectors))


def test_lemma_v_factors(vectors):
    a, b, c = vectors
    expected = 0.5 * 3 * 7 * one(a, b, c)
    assert one(-0.5 * a, 3 * b, -7 * c) == nearly(expected)


@pytest.mark.parametrize("policy", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["zero", "parallel", "orthogonal", "tiny"])
def test_finite_outputs_and_gradients(policy, kind):
    identity = np.eye(6, dtype="float32")
    entities = {
        "zero": np.zeros((2, 3, 6), "float32"),
        "parallel": np.ones((2, 3, 6), "float32"),
        "orthogonal": np.stack([identity[:3], identity[3:]]),
        "tiny": np.full((2, 3, 6), 1e-7, "float32"),
    }[kind]
    for num_heads in (1, 2):
        layer = TwoSimplicialAttention(num_heads, 6, dtype=policy)
        layer.build(entities.shape)
        for kernel in layer.weights[:4]:  # The entities are the keys.
            kernel.assign(np.concatenate([identity] * num_heads, axis=1))
        found = outputs_and_gradients(layer, entities)
        for values in map(array, keras.tree.flatten(found)):
            assert np.isfinite(values).all()


@pytest.mark.parametrize(
    ("name", "base_size", "at_a_time"),
    [("unsigned", 3, 3), ("trilinear", 8, 3), ("determinant", 3, 1)],
)
def test_blocks_of_queries_change_nothing(
    monkeypatch, name, base_size, at_a_time
):
    """All eight queries at once, and in blocks, in both orders of B."""
    layer = TwoSimplicialAttention(2, 3, score=name)
    query, base = random_array(2, 8, 5), random_array(2, base_size, 5, seed=1)
    base_mask = np.arange(base_size) < [[base_size], [base_size - 1]]
    inputs = {"query": query, "base": base}
    layer.build(query.shape, base.shape)
    whole = outputs_and_gradients(layer, inputs, base_mask=base_mask)
    monkeypatch.setattr(
        two_simplicial_attention, "BLOCK_SIZE", at_a_time * base_size**2
    )
    for jit_compile in (False, True):
        parts = outputs_and_gradients(
            layer, inputs, base_mask=base_mask, jit_compile=jit_compile
        )
        for x, y in zip(
            keras.tree.flatten(whole), keras.tree.flatten(parts), strict=True
        ):
            np.testing.assert_allclose(x, y, atol=1e-5, rtol=1e-5)


def test_the_base_is_a_set_and_the_queries_keep_their_places():
    layer = TwoSimplicialAttention(2, 4)
    query, base = random_array(2, 6, 5), random_array(2, 4, 5, seed=1)
    outputs = array(layer(query, base))
    places = [2, 5, 0, 4, 1, 3]
    again = layer(query[:, places], base[:, [3, 0, 2, 1]])
    np.testing.assert_allclose(outputs[:, places], again, rtol=1e-4, atol=1e-5)
    assert np.abs(outputs - array(again)).max() > 1e-3


@pytest.mark.parametrize("name", ["unsigned", "determinant"])
def test_scores_that_rotations_leave_alone(name):
    """Rotating p, l¹ and l² together does not change the attention."""
    turned = np.linalg.qr(random_array(3, 3, seed=5))[0]
    turned *= np.sign(np.linalg.det(turned))
    layer = TwoSimplicialAttention(1, 3, score=name)
    entities = random_array(2, 5, 4)
    _, scores = layer(entities, return_attention_scores=True)
    for kernel in (layer.query_kernel, layer.key_1_kernel, layer.key_2_kernel):
        kernel.assign(ops.matmul(kernel, turned))
    _, again = layer(entities, return_attention_scores=True)
    np.testing.assert_allclose(scores, again, rtol=1e-4, atol=1e-6)
    sums = array(ops.sum(scores, axis=(-2, -1)))
    np.testing.assert_allclose(sums, 1, rtol=1e-5)


def test_a_mask_of_the_base_takes_entities_out_of_it():
    layer = TwoSimplicialAttention(2, 4)
    query, base = random_array(2, 3, 5), random_array(2, 4, 5, seed=1)
    mask = np.array([[True, True, False, False], [False] * 4])
    base[:, 2:] = np.nan
    outputs = array(layer(query, base, base_mask=mask))
    alone = layer(query[:1], base[:1, :2])
    np.testing.assert_allclose(outputs[:1], alone, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(outputs[1], 0)
    # The same holds if the queries are the base.
    alone = array(layer(query, base_mask=mask[:, :3]))
    expected = array(layer(query, query, base_mask=mask[:, :3]))
    np.testing.assert_array_equal(alone, expected)
    assert (alone[0] != array(layer(query))[0]).any()


def test_one_entity_is_a_base_too():
    layer = TwoSimplicialAttention(2, 4)
    query, base = random_array(2, 3, 5), random_array(2, 1, 5, seed=1)
    mask = np.array([[True], [False]])
    outputs, scores = layer(
        query, base, base_mask=mask, return_attention_scores=True
    )
    scores = np.ravel(array(scores))
    np.testing.assert_array_equal(scores, [1] * 6 + [0] * 6)
    np.testing.assert_array_equal(outputs[1], 0)
    alone = layer(query, base)
    np.testing.assert_allclose(outputs[0], alone[0], rtol=1e-5)


def test_a_mask_that_comes_with_the_query_is_used():
    """With one input, Keras passes the mask as `mask`."""
    inputs = random_array(2, 4, 3)
    inputs[:, 2] = 0
    layer = TwoSimplicialAttention(2, 3)
    model = keras.Sequential(
        [keras.Input((4, 3)), keras.layers.Masking(), layer]
    )
    mask = np.array(2 * [[True, True, False, True]])
    expected = layer(inputs, query_mask=mask)
    assert_close(model(inputs), expected)
    unmasked = array(layer(inputs))
    assert np.abs(unmasked - array(expected)).max() > 1e-3


def test_large_inputs_in_half_precision():
    """Sums of 48 large products overflow in float16."""
    inputs = 4 * random_array(2, 6, 8)
    layer = TwoSimplicialAttention(1, 48, dtype="float16")
    outputs = array(layer(inputs.astype("float16")))
    exact = TwoSimplicialAttention(1, 48)
    exact.build((None, 6, 8))
    exact.set_weights([array(w) for w in layer.weights])
    expected = array(exact(inputs))
    assert np.isfinite(outputs).all()
    error = np.abs(outputs - expected).max() / np.abs(expected).max()
    assert error < 0.05


def test_one_model_for_any_number_of_entities():
    """A model predicts and trains at three sizes; the query is the base."""
    layer = TwoSimplicialAttention(num_heads=2, key_dim=4)
    model = keras.Sequential([keras.Input((None, 8)), layer])
    xla = keras.backend.backend() != "torch"
    model.compile("sgd", "mse", jit_compile=xla)
    for size in (6, 12, 3):
        x = random_array(4, size, 8)
        expected = array(layer(x))
        outputs = model.predict(x, verbose=0)
        assert_close(outputs, expected, atol=1e-5)
        model.fit(x, np.zeros_like(expected), verbose=0)
