import keras
from keras import ops

from keras_relational.layers.attention import masked_softmax
from keras_relational.layers.attention import merge_heads
from keras_relational.layers.attention import split_heads
from keras_relational.layers.entities import check_entities_shape
from keras_relational.layers.entities import flatten_entities
from keras_relational.layers.initial_weights import add_weights
from keras_relational.layers.operations import at_least_float32
from keras_relational.layers.operations import custom_gradient
from keras_relational.layers.operations import shapes_match
from keras_relational.validation import check_positive_integers

SCORES = ("unsigned", "trilinear", "determinant")

# Weights of one block of queries, an example: 2¹⁸ numbers are 1 MiB.
BLOCK_SIZE = 2**18


@keras.saving.register_keras_serializable(package="keras_relational")
class TwoSimplicialAttention(keras.layers.Layer):
    """Entities attend to pairs of entities, and receive products of values.

    With queries p = W_P e, keys l¹ = W_L1 e and l² = W_L2 e, values u = W_U e,
    and a learned bilinear map B, each head computes for every query i

        a_ijk = softmax over all (j, k) of ⟨p_i, l¹_j, l²_k⟩
        outputs_i = Σ_jk a_ijk B(u_j ⊗ u_k)
        B(u ⊗ w)_q = Σ_rs B_qrs u_r w_s

    where j and k run over the base, and, squared, the unsigned scalar triple
    product is

        ⟨a, b, c⟩² = (a·b)²(c·c) + (b·c)²(a·a) + (a·c)²(b·b)
                     − 2 (a·b)(a·c)(b·c)

    It is 0 where the three are orthogonal, and ‖a‖‖b‖‖c‖ where they are
    linearly dependent. The outputs of all heads stand one after the other.
    Reference: equations (6) to (10) of [Clift et al., 2019](
    https://arxiv.org/abs/1909.00668). The logits are not scaled, and there are
    no biases. The root is taken to have gradient 0 where it is 0.

    Two other scores, of [Roy et al., 2025](https://arxiv.org/abs/2507.02754),
    may take the place of the paper's: `"trilinear"`, Σ_r a_r b_r c_r / √d, and
    `"determinant"`, the sum of the determinants of a, b, c cut into pieces of
    three, / √d.

    With d for `key_dim`, a head takes some `n v² d` products for averages. For
    B it takes `n d² (v + d)` where a base is as large as the query, and the
    outer products of values are averaged before B is applied, otherwise `v d²
    (v + d)`, as B is applied to every pair of values first. Where both sizes
    are known and no scores are returned, the weights are computed for some
    queries at a time, and again for the gradient, so that never more than a MiB
    or `v²` numbers of them a head and example are held.

    Args:
        num_heads: Positive integer.
        key_dim: Positive integer d, the size of queries, keys and values of
            each head; a multiple of 3 with `score="determinant"`.
        score: `"unsigned"`, `"trilinear"` or `"determinant"`.
        kernel_initializer: Initializer of all kernels and of B.

    Call arguments:
        query: Float tensor `(batch, n, m)`: the entities that attend.
        base: Float tensor `(batch, v, m)`: the entities of which they attend to
            pairs, j and k; by default `query`.
        query_mask: Optional boolean tensor `(batch, n)`, `True` for entities
            that are there. The outputs of the others are zero.
        base_mask: Optional boolean tensor `(batch, v)`. Pairs with an entity
            that is not there get no attention; without any the outputs are
            zero. By default that of the query, where there is no base.
        mask: Another name of `query_mask`, by which Keras passes on that of
            a query without a base.
        return_attention_scores: Whether to return all a_ijk too.

    Returns:
        Tensor `(batch, n, num_heads * key_dim)` in the compute dtype. With
        `return_attention_scores=True` also the weights, `(batch, num_heads, n,
        v, v)`.

    Raises:
        ValueError: If a size is not a positive integer, `score` is unknown, or
            the inputs are not 3D with a last axis of fixed size, or the base
            has another one than at build, or another batch than the query.

    Example:

    >>> layer = TwoSimplicialAttention(num_heads=1, key_dim=48)
    >>> layer(keras.Input((40, 64)), base=keras.Input((2, 64))).shape
    (None, 40, 48)
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        score="unsigned",
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_integers(num_heads=num_heads, key_dim=key_dim)
        if score not in SCORES:
            raise ValueError(
                f"`score` must be one of {', '.join(SCORES)}. Received: "
                f"score={score!r}"
            )
        if score == "determinant" and key_dim % 3:
            raise ValueError(
                'With score="determinant", `key_dim` must be a multiple of 3. '
                f"Received: key_dim={key_dim}"
            )
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.score = score
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, query_shape, base_shape=None):
        base_shape = query_shape if base_shape is None else base_shape
        for name, shape in (("query", query_shape), ("base", base_shape)):
            check_entities_shape(self, shape, name)
        self.input_spec = keras.layers.InputSpec(
            ndim=3, axes={-1: query_shape[-1]}
        )
        width = self.num_heads * self.key_dim
        add_weights(
            self,
            self.kernel_initializer,
            query_kernel=(query_shape[-1], width),
            key_1_kernel=(base_shape[-1], width),
            key_2_kernel=(base_shape[-1], width),
            value_kernel=(base_shape[-1], width),
            product_kernel=(self.num_heads, *3 * (self.key_dim,)),
        )

    def call(
        self,
        query,
        base=None,
        query_mask=None,
        base_mask=None,
        return_attention_scores=False,
        mask=None,
    ):
        query_mask = mask if query_mask is None else query_mask
        if base is None:
            base = query
            base_mask = query_mask if base_mask is None else base_mask
        self._check_base(query, base)
        query, query_mask = flatten_entities(self, query, query_mask)
        base, base_mask = flatten_entities(self, base, base_mask)
        queries = self._heads(query, self.query_kernel)
        keys = [
            self._heads(base, kernel)
            for kernel in (self.key_1_kernel, self.key_2_kernel)
        ]
        values = self._heads(base, self.value_kernel)
        pair_mask = None
        if base_mask is not None:
            there = base_mask[:, None, None]
            pair_mask = there[..., :, None] & there[..., None, :]
        # Both orders take v² n products of weights and values, and then v d²
        # (v + d) with B first, n d² (v + d) with B last.
        n, v = query.shape[1], base.shape[1]
        products_first = None not in (n, v) and v < n
        # Taken here: what is computed again runs where Keras does not cast.
        product_kernel = ops.cast(self.product_kernel, self.compute_dtype)
        if products_first:
            values = products(values, product_kernel)

        def attend(queries, keys_1, keys_2, values, product_kernel):
            weights = self._weights(
                queries, keys_1, keys_2, pair_mask=pair_mask
            )
            if products_first:
                return weights, average(weights, values)
            return weights, average_product(weights, values, product_kernel)

        arguments = (queries, *keys, values, product_kernel)
        if return_attention_scores:
            scores, outputs = attend(*arguments)
        else:
            block = n if None in (n, v) else max(1, BLOCK_SIZE // v**2)
            outputs = in_blocks(
                lambda *arguments: attend(*arguments)[1],
                block,
                *arguments,
            )
        outputs = merge_heads(outputs)
        if query_mask is not None:
            outputs = ops.where(query_mask[..., None], outputs, 0)
        if return_attention_scores:
            return outputs, scores
        return outputs

    def values(self, inputs):
        """The values u of entities `(batch, v, m)`, all heads side by side."""
        return ops.matmul(inputs, self.value_kernel)

    def compute_mask(self, query, query_mask=None):
        return query_mask

    def compute_output_shape(self, query_shape, base_shape=None):
        return (*query_shape[:2], self.num_heads * self.key_dim)

    def compute_output_spec(
        self,
        query,
        base=None,
        query_mask=None,
        base_mask=None,
        return_attention_scores=False,
        mask=None,
    ):
        self._check_base(query, query if base is None else base)
        outputs = keras.KerasTensor(
            self.compute_output_shape(query.shape), self.compute_dtype
        )
        if not return_attention_scores:
            return outputs
        v = (query if base is None else base).shape[1]
        scores_shape = (query.shape[0], self.num_heads, query.shape[1], v, v)
        return outputs, keras.KerasTensor(scores_shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "score": self.score,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }

    def _check_base(self, query, base):
        expected = (query.shape[0], None, self.value_kernel.shape[0])
        if not shapes_match(base.shape, expected):
            raise ValueError(
                f"{self.name} takes a base of shape {expected}, with the "
                "query's batch and the last axis that it was built for. "
                f"Received: base.shape={tuple(base.shape)}, query.shape="
                f"{tuple(query.shape)}"
            )

    def _heads(self, inputs, kernel):
        """`(batch, size, m)` → `(batch, num_heads, size, key_dim)`."""
        return split_heads(ops.matmul(inputs, kernel), self.num_heads)

    def _weights(self, *queries_and_keys, pair_mask):
        vectors = [at_least_float32(x) for x in queries_and_keys]
        if self.score == "unsigned":
            logits = unsigned_scalar_triple_product(*vectors)
        else:
            logits = trilinear_product(*vectors, self.score == "determinant")
            logits = logits / self.key_dim**0.5
        shape = ops.shape(logits)
        flat = (*shape[:-2], shape[-2] * shape[-1])
        if pair_mask is not None:
            batch, v = ops.shape(pair_mask)[0], shape[-1]
            pair_mask = ops.reshape(pair_mask, (batch, 1, 1, v * v))
        weights = masked_softmax(ops.reshape(logits, flat), pair_mask)
        return ops.cast(ops.reshape(weights, shape), self.compute_dtype)


def unsigned_scalar_triple_product(a, b, c):
    """⟨a_i, b_j, c_k⟩ of every three vectors, from their dot products.

    Equation (8) of Clift et al., 2019. Its gradient is 0 where it is 0.

    Args:
        a: Float tensor `(..., n, d)`.
        b: Float tensor `(..., v, d)`.
        c: Float tensor `(..., w, d)`.

    Returns:
        Tensor `(..., n, v, w)`.
    """
    v = ops.shape(b)[-2]
    dots = ops.matmul(a, ops.swapaxes(ops.concatenate([b, c], axis=-2), -1, -2))
    return triple_product(
        dots[..., :v],
        dots[..., v:],
        ops.matmul(b, ops.swapaxes(c, -1, -2)),
        *(ops.sum(ops.square(x), axis=-1) for x in (a, b, c)),
    )


@custom_gradient
def triple_product(ab, ac, bc, aa, bb, cc):
    """The root of the right hand side of equation (8), from all dot products.

    The gradient is written as matrix products. Of the one it would derive
    itself, XLA makes sums over one axis and another in a single loop, which
    take five times as long on a CPU.

    Args:
        ab: `(..., n, v)`.
        ac: `(..., n, w)`.
        bc: `(..., v, w)`.
        aa: `(..., n)`.
        bb: `(..., v)`.
        cc: `(..., w)`.

    Returns:
        Tensor `(..., n, v, w)`.
    """
    ab_, ac_, bc_ = (
        ab[..., :, :, None],
        ac[..., :, None, :],
        bc[..., None, :, :],
    )
    square = (
        ops.square(ab_) * cc[..., None, None, :]
        + ops.square(ac_) * bb[..., None, :, None]
        + ops.square(bc_) * aa[..., :, None, None]
        - 2 * ab_ * ac_ * bc_
    )
    # Rounding may leave a little less than 0.
    root = ops.sqrt(ops.maximum(square, 0))

    def gradient(upstream):
        # Twice the gradient of the square; 0 where the slope is infinite.
        positive = root > 0
        g = ops.where(positive, upstream / ops.where(positive, root, 1), 0)
        g_bc = g * bc_
        bb_, cc_ = (
            ops.broadcast_to(x[..., None, :], ops.shape(y))
            for x, y in ((bb, ab), (cc, ac))
        )
        # Sums over k of g cc, g ac² and g bc ac, each (..., n, v); over j, of
        # g bb, g ab² and g bc ab, each (..., n, w).
        over_k = ops.matmul(g, ops.stack([cc_, ops.square(ac)], axis=-1))
        over_j = ops.matmul(ops.stack([bb_, ops.square(ab)], axis=-2), g)
        g_bc_ac = ops.matmul(g_bc, ac[..., :, None])[..., 0]
        g_bc_ab = ops.matmul(ab[..., None, :], g_bc)[..., 0, :]
        # Σ_jk g bc² (..., n) and Σ_i g aa (..., v, w).
        flat_bc = ops.reshape(bc, (*ops.shape(bc)[:-2], -1, 1))
        flat_g = ops.reshape(g, (*ops.shape(g)[:-2], ops.shape(flat_bc)[-2]))
        g_aa = ops.matmul(aa[..., None, :], flat_g)
        return (
            ab * over_k[..., 0] - g_bc_ac,
            ac * over_j[..., 0, :] - g_bc_ab,
            bc * ops.reshape(g_aa, ops.shape(bc))
            - ops.sum(g * (ab_ * ac_), axis=-3),
            ops.matmul(flat_g, ops.square(flat_bc))[..., 0] / 2,
            ops.sum(over_k[..., 1], axis=-2) / 2,
            ops.sum(over_j[..., 1, :], axis=-2) / 2,
        )

    return root, gradient


def trilinear_product(a, b, c, determinant=False):
    """Σ_r a_r b_r c_r of every three vectors, or determinants in their place.

    Args:
        a: Float tensor `(..., n, d)`.
        b: Float tensor `(..., v, d)`.
        c: Float tensor `(..., w, d)`.
        determinant: Whether to cut the vectors into pieces of three and to add
            up the determinants of the pieces.

    Returns:
        Tensor `(..., n, v, w)`.
    """
    b, c = b[..., :, None, :], c[..., None, :, :]
    if determinant:  # a · (b × c), piece by piece
        b, c = (
            ops.reshape(x, (*ops.shape(x)[:-1], x.shape[-1] // 3, 3))
            for x in (b, c)
        )
        # `ops.cross` does not broadcast on torch.
        (b_1, b_2, b_3), (c_1, c_2, c_3) = (
            ops.unstack(x, axis=-1) for x in (b, c)
        )
        bc = ops.stack(
            [
                b_2 * c_3 - b_3 * c_2,
                b_3 * c_1 - b_1 * c_3,
                b_1 * c_2 - b_2 * c_1,
            ],
            axis=-1,
        )
        bc = ops.reshape(bc, (*ops.shape(bc)[:-2], a.shape[-1]))
    else:
        bc = b * c
    v, w, d = ops.shape(bc)[-3:]
    bc = ops.reshape(bc, (*ops.shape(bc)[:-3], v * w, d))
    logits = ops.matmul(a, ops.swapaxes(bc, -1, -2))
    return ops.reshape(logits, (*ops.shape(logits)[:-1], v, w))


def products(values, product_kernel):
    """B(u_j ⊗ u_k) of every two values.

    Args:
        values: `(batch, heads, v, d)`.
        product_kernel: `(heads, d, d, d)`, B_qrs.

    Returns:
        Tensor `(batch, heads, v, v, d)`.
    """
    batch, heads, v, d = ops.shape(values)
    values = ops.swapaxes(values, 0, 1)
    # (heads, batch v, s) times (heads, s, q r): nothing large is transposed.
    kernel = ops.reshape(
        ops.transpose(product_kernel, (0, 3, 1, 2)), (heads, d, d * d)
    )
    partial = ops.matmul(ops.reshape(values, (heads, batch * v, d)), kernel)
    pairs = ops.matmul(
        ops.reshape(partial, (heads, batch, v * d, d)),
        ops.swapaxes(values, -1, -2),
    )
    pairs = ops.reshape(pairs, (heads, batch, v, d, v))
    return ops.transpose(pairs, (1, 0, 4, 2, 3))


def average(weights, pairs):
    """Σ_jk a_ijk t_jk.

    Args:
        weights: `(batch, heads, n, v, v)`.
        pairs: `(batch, heads, v, v, d)`.

    Returns:
        Tensor `(batch, heads, n, d)`.
    """
    batch, heads, n, v, _ = ops.shape(weights)
    return ops.matmul(
        ops.reshape(weights, (batch, heads, n, v * v)),
        ops.reshape(pairs, (batch, heads, v * v, pairs.shape[-1])),
    )


def average_product(weights, values, product_kernel):
    """B(Σ_jk a_ijk u_j ⊗ u_k), shapes as for `average` and `products`."""
    batch, heads, n, v, _ = ops.shape(weights)
    d = values.shape[-1]
    over_k = ops.matmul(ops.reshape(weights, (batch, heads, n * v, v)), values)
    over_jk = ops.einsum(
        "bhjr,bhijs->bhirs",
        values,
        ops.reshape(over_k, (batch, heads, n, v, d)),
    )
    return ops.einsum("bhirs,hqrs->bhiq", over_jk, product_kernel)


def in_blocks(function, size, queries, *others):
    """`function(queries, *others)`, for `size` of the queries at a time.

    What it computes on the way is not kept for the gradient, but computed
    again.

    Args:
        function: From `(batch, heads, n, d)` and the others to a tensor of the
            same shape, each query by itself.
        size: Positive integer.
        queries: `(batch, heads, n, d)`.
        *others: Tensors.
    """
    n = queries.shape[2]
    if n is None or n <= size:
        return function(queries, *others)
    count = -(-n // size)
    size = -(-n // count)
    padding = [(0, 0), (0, 0), (0, count * size - n), (0, 0)]
    batch, heads, _, d = ops.shape(queries)
    blocks = ops.reshape(
        ops.pad(queries, padding), (batch, heads, count, size, d)
    )
    again = keras.remat(function)
    outputs = ops.map(
        lambda block: again(block, *others), ops.moveaxis(blocks, 2, 0)
    )
    outputs = ops.reshape(
        ops.moveaxis(outputs, 0, 2), (batch, heads, count * size, d)
    )
    return outputs[:, :, :n]
