from collections.abc import Callable

import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._attention import merge_heads
from keras_relational.layers._attention import projections
from keras_relational.layers._attention import split_heads
from keras_relational.layers._entities import check_entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers._operations import at_least_float32
from keras_relational.layers._operations import custom_gradient
from keras_relational.layers._operations import shapes_match
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

SCORES = ("unsigned", "trilinear", "determinant")

# Largest number of attention weights in a block of queries, for one example and
# head. 2¹⁸ float32 numbers are 1 MiB.
BLOCK_SIZE = 2**18


@keras.saving.register_keras_serializable(package="keras_relational")
class TwoSimplicialAttention(keras.layers.Layer):
    """Attention to pairs of entities: 2-simplicial attention.

    Each head has queries p = W_P e, keys l¹ = W_L1 e and l² = W_L2 e, values u
    = W_U e, and a learned bilinear map B. For every query i it computes

        a_ijk = softmax over all (j, k) of ⟨p_i, l¹_j, l²_k⟩
        outputs_i = Σ_jk a_ijk B(u_j ⊗ u_k)
        B(u ⊗ w)_q = Σ_rs B_qrs u_r w_s

    j and k run over the entities of the base. ⟨a, b, c⟩ is the unsigned scalar
    triple product. Its square is

        ⟨a, b, c⟩² = (a·b)²(c·c) + (b·c)²(a·a) + (a·c)²(b·b)
                     − 2 (a·b)(a·c)(b·c)

    The layer concatenates the outputs of all heads. The logits are not scaled,
    and there are no biases. Where ⟨a, b, c⟩ is 0, its gradient is set to 0.
    Reference: equations (6) to (10) of [Clift et al., 2019](
    https://arxiv.org/abs/1909.00668).

    Two other scores, from [Roy et al., 2025](https://arxiv.org/abs/2507.02754),
    can replace the triple product. `"trilinear"` is Σ_r a_r b_r c_r / √d.
    `"determinant"` cuts a, b and c into pieces of three numbers. It is the sum
    of the determinants of the pieces, divided by √d.

    Memory. If `n` and `v` are known and no scores are returned, the layer
    computes the weights block by block, and again for the gradient. A block is
    as many queries as have 1 MiB of weights for each head and example, and at
    least one query.

    Args:
        num_heads: Positive integer, number of heads.
        key_dim: Positive integer d, the size of queries, keys and values of
            each head. With `score="determinant"`, a multiple of 3.
        score: `"unsigned"` for the unsigned scalar triple product,
            `"trilinear"` or `"determinant"`.
        kernel_initializer: Initializer of all kernels and of B.

    Call arguments:
        query: Float tensor `(batch, n, m)`, the entities i that attend.
        base: Float tensor `(batch, v, m)`, the entities j and k that form the
            pairs. By default it is `query`.
        query_mask: Optional boolean tensor `(batch, n)`. `True` marks a valid
            entity of the query. The outputs of the others are zero.
        base_mask: Optional boolean tensor `(batch, v)`. `True` marks a valid
            entity of the base. Pairs with an invalid entity get no attention.
            If no pair is valid, the outputs are zero. Without a `base` it
            defaults to `query_mask`.
        return_attention_scores: Boolean. If `True`, the layer also returns the
            weights a_ijk.
        mask: Another name of `query_mask`. Keras passes the mask of the query
            under this name if there is no base.

    Returns:
        Tensor `(batch, n, num_heads * key_dim)` in the compute dtype. With
        `return_attention_scores`, a pair: this tensor, and the weights `(batch,
        num_heads, n, v, v)`.

    Raises:
        ValueError: If a size is not a positive integer, if `score` is unknown,
            if the inputs are not 3D with a last axis of known size, or if the
            base has another last axis than at build or another batch size than
            the query.

    Example:

    >>> layer = TwoSimplicialAttention(num_heads=1, key_dim=48)
    >>> layer(keras.Input((40, 64)), base=keras.Input((2, 64))).shape
    (None, 40, 48)
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        score: str = "unsigned",
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(num_heads=num_heads, key_dim=key_dim)
        check_choice("score", score, SCORES)
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

    def build(
        self,
        query_shape: tuple[int | None, ...],
        base_shape: tuple[int | None, ...] | None = None,
    ) -> None:
        base_shape = query_shape if base_shape is None else base_shape
        features = check_entities_shape(self, query_shape, "query")
        base_features = check_entities_shape(self, base_shape, "base")
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: features})
        width = self.num_heads * self.key_dim
        add_weights(
            self,
            self.kernel_initializer,
            query_kernel=(features, width),
            key_1_kernel=(base_features, width),
            key_2_kernel=(base_features, width),
            value_kernel=(base_features, width),
            product_kernel=(self.num_heads, *3 * (self.key_dim,)),
        )

    def call(
        self,
        query: keras.KerasTensor,
        base: keras.KerasTensor | None = None,
        query_mask: keras.KerasTensor | None = None,
        base_mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor | tuple:
        query_mask = mask if query_mask is None else query_mask
        if base is None:
            base = query
            base_mask = query_mask if base_mask is None else base_mask
        self._check_base(query, base)
        query, query_mask = flatten_entities(self, query, query_mask)
        base, base_mask = flatten_entities(self, base, base_mask)
        kernels = (self.key_1_kernel, self.key_2_kernel, self.value_kernel)
        projected = ops.matmul(query, self.query_kernel)
        projected = [projected, *projections(base, kernels)]
        queries, *keys, values = (
            split_heads(x, self.num_heads) for x in projected
        )
        pair_mask = None
        if base_mask is not None:
            valid = base_mask[:, None, None]
            pair_mask = valid[..., :, None] & valid[..., None, :]
        # Multiplications by B: v d² (v + d) if B comes first, n d² (v + d) if
        # it comes last. For n = v, first takes half the time, and no more
        # memory up to v = d.
        n, v = query.shape[1], base.shape[1]
        products_first = None not in (n, v) and (
            v < n or v == n <= self.key_dim
        )
        # `in_blocks` computes its function again for the gradient. Keras does
        # not cast weights there, so the cast is here.
        product_kernel = ops.cast(self.product_kernel, self.compute_dtype)
        if products_first:
            values = products(values, product_kernel)

        def attend(queries, keys_1, keys_2, values, product_kernel):
            weights = self._weights(
                queries, keys_1, keys_2, pair_mask=pair_mask
            )
            if products_first:  # Each value belongs to a pair.
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

    def values(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        """The values u = W_U e of entities, with all heads concatenated.

        Args:
            inputs: Float tensor `(batch, v, m)`.

        Returns:
            Tensor `(batch, v, num_heads * key_dim)`.
        """
        return ops.matmul(inputs, self.value_kernel)

    def compute_output_shape(
        self,
        query_shape: tuple[int | None, ...],
        base_shape: tuple[int | None, ...] | None = None,
    ) -> tuple[int | None, ...]:
        return (*query_shape[:2], self.num_heads * self.key_dim)

    def compute_output_spec(
        self,
        query: keras.KerasTensor,
        base: keras.KerasTensor | None = None,
        query_mask: keras.KerasTensor | None = None,
        base_mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor | tuple:
        self._check_base(query, query if base is None else base)
        outputs = keras.KerasTensor(
            self.compute_output_shape(query.shape), self.compute_dtype
        )
        if not return_attention_scores:
            return outputs
        v = (query if base is None else base).shape[1]
        scores_shape = (query.shape[0], self.num_heads, query.shape[1], v, v)
        return outputs, keras.KerasTensor(scores_shape, self.compute_dtype)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "score": self.score,
            "kernel_initializer": serialize(self.kernel_initializer),
        }

    def _check_base(self, query, base):
        expected = (query.shape[0], None, self.value_kernel.shape[0])
        if not shapes_match(base.shape, expected):
            raise ValueError(
                f"{self.name} takes a base of shape {expected}, with the batch "
                "size of the query and the last axis that the layer was built "
                "for. "
                f"Received: base.shape={tuple(base.shape)}, query.shape="
                f"{tuple(query.shape)}"
            )

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


def unsigned_scalar_triple_product(
    a: keras.KerasTensor, b: keras.KerasTensor, c: keras.KerasTensor
) -> keras.KerasTensor:
    """⟨a_i, b_j, c_k⟩ of all triples of vectors: equation (8).

    Where it is 0, its gradient is set to 0.

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
def triple_product(
    ab: keras.KerasTensor,
    ac: keras.KerasTensor,
    bc: keras.KerasTensor,
    aa: keras.KerasTensor,
    bb: keras.KerasTensor,
    cc: keras.KerasTensor,
) -> tuple[keras.KerasTensor, Callable]:
    """The root of the right-hand side of equation (8), from the dot products.

    The gradient is written by hand, as matrix products. Automatic
    differentiation gives sums over different axes. XLA fuses these into one
    loop, which takes five times as long on a CPU.

    Args:
        ab: Tensor `(..., n, v)`, a_i · b_j.
        ac: Tensor `(..., n, w)`, a_i · c_k.
        bc: Tensor `(..., v, w)`, b_j · c_k.
        aa: Tensor `(..., n)`, a_i · a_i.
        bb: Tensor `(..., v)`, b_j · b_j.
        cc: Tensor `(..., w)`, c_k · c_k.

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
    # Rounding may make the square a little less than 0.
    root = ops.sqrt(ops.maximum(square, 0))

    def gradient(upstream):
        # Twice the gradient of the square, and 0 where the slope is infinite.
        positive = root > 0
        g = ops.where(positive, upstream / ops.where(positive, root, 1), 0)
        g_bc = g * bc_
        bb_, cc_ = (
            ops.broadcast_to(x[..., None, :], ops.shape(y))
            for x, y in ((bb, ab), (cc, ac))
        )
        # Σ_k of g cc, g ac² and g bc ac, each (..., n, v).
        # Σ_j of g bb, g ab² and g bc ab, each (..., n, w).
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


def trilinear_product(
    a: keras.KerasTensor,
    b: keras.KerasTensor,
    c: keras.KerasTensor,
    determinant: bool = False,
) -> keras.KerasTensor:
    """Σ_r a_r b_r c_r of all triples of vectors, or a sum of determinants.

    Args:
        a: Float tensor `(..., n, d)`.
        b: Float tensor `(..., v, d)`.
        c: Float tensor `(..., w, d)`.
        determinant: Boolean. If `True`, the vectors are cut into pieces of
            three numbers, and the determinants of the pieces are added up.

    Returns:
        Tensor `(..., n, v, w)`.
    """
    b, c = b[..., :, None, :], c[..., None, :, :]
    if determinant:  # The determinant is a · (b × c).
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


def products(
    values: keras.KerasTensor, product_kernel: keras.KerasTensor
) -> keras.KerasTensor:
    """B(u_j ⊗ u_k) of all pairs of values.

    Args:
        values: Tensor `(batch, heads, v, d)`.
        product_kernel: Tensor `(heads, d, d, d)`, B_qrs.

    Returns:
        Tensor `(batch, heads, v, v, d)`.
    """
    batch, heads, v, d = ops.shape(values)
    values = ops.swapaxes(values, 0, 1)
    # In this order no large tensor is transposed.
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


def average(
    weights: keras.KerasTensor, pairs: keras.KerasTensor
) -> keras.KerasTensor:
    """Σ_jk a_ijk t_jk, the average of a vector t_jk for each pair.

    Args:
        weights: Tensor `(batch, heads, n, v, v)`, a_ijk.
        pairs: Tensor `(batch, heads, v, v, d)`, t_jk.

    Returns:
        Tensor `(batch, heads, n, d)`.
    """
    batch, heads, n, v, _ = ops.shape(weights)
    return ops.matmul(
        ops.reshape(weights, (batch, heads, n, v * v)),
        ops.reshape(pairs, (batch, heads, v * v, pairs.shape[-1])),
    )


def average_product(
    weights: keras.KerasTensor,
    values: keras.KerasTensor,
    product_kernel: keras.KerasTensor,
) -> keras.KerasTensor:
    """B(Σ_jk a_ijk u_j ⊗ u_k).

    Args:
        weights: Tensor `(batch, heads, n, v, v)`, a_ijk.
        values: Tensor `(batch, heads, v, d)`, u_j.
        product_kernel: Tensor `(heads, d, d, d)`, B_qrs.

    Returns:
        Tensor `(batch, heads, n, d)`.
    """
    batch, heads, n, v, _ = ops.shape(weights)
    d = values.shape[-1]
    over_k = ops.matmul(ops.reshape(weights, (batch, heads, n * v, v)), values)
    over_jk = ops.einsum(
        "bhjr,bhijs->bhirs",
        values,
        ops.reshape(over_k, (batch, heads, n, v, d)),
    )
    return ops.einsum("bhirs,hqrs->bhiq", over_jk, product_kernel)


def in_blocks(
    function: Callable,
    size: int,
    queries: keras.KerasTensor,
    *others: keras.KerasTensor,
) -> keras.KerasTensor:
    """Computes `function(queries, *others)` for one block of queries at a time.

    Intermediate results are not stored for the gradient, but computed again.

    Args:
        function: Takes queries `(batch, heads, n, d)` and the other tensors,
            and returns a tensor of the shape of the queries. It treats each
            query independently.
        size: Positive integer, the largest number of queries of a block.
        queries: Tensor `(batch, heads, n, d)`.
        *others: Further arguments of `function`.

    Returns:
        Tensor `(batch, heads, n, d)`.
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
    rematerialized = keras.remat(function)
    outputs = ops.map(
        lambda block: rematerialized(block, *others),
        ops.moveaxis(blocks, 2, 0),
    )
    outputs = ops.reshape(
        ops.moveaxis(outputs, 0, 2), (batch, heads, count * size, d)
    )
    return outputs[:, :, :n]
