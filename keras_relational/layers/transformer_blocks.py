import keras
from keras import ops

from keras_relational.layers.attention import dot_product_attention
from keras_relational.layers.attention import split_heads
from keras_relational.layers.entities import check_entities_shape
from keras_relational.layers.entities import flatten_entities
from keras_relational.layers.initial_weights import add_weights
from keras_relational.layers.initial_weights import clone_initializer
from keras_relational.layers.operations import shapes_match
from keras_relational.layers.two_simplicial_attention import (
    TwoSimplicialAttention,
)
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class VirtualEntities(keras.layers.Layer):
    """Learned entities, the same for every example, beside those of a set.

    `outputs[b, j] = embeddings[j]`: the scratch pad of the 2-simplicial
    Transformer, e_{N+1} to e_{N+M} in section 2 of [Clift et al., 2019](
    https://arxiv.org/abs/1909.00668). Of the inputs only the batch size and the
    last axis are used.

    Args:
        num_entities: Positive integer, M in the paper.
        embeddings_initializer: Initializer of the `(num_entities, m)` entities.

    Call arguments:
        inputs: Float tensor `(batch, n, m)`.
        mask: Changes nothing, and is not passed on.

    Returns:
        Tensor `(batch, num_entities, m)` in the compute dtype.

    Raises:
        ValueError: If `num_entities` is not a positive integer, or the inputs
            are not 3D with a last axis of fixed size.

    Example:

    >>> VirtualEntities(2)(keras.Input((40, 64))).shape
    (None, 2, 64)
    """

    def __init__(
        self, num_entities, embeddings_initializer="random_normal", **kwargs
    ):
        super().__init__(**kwargs)
        check_positive_integers(num_entities=num_entities)
        self.num_entities = num_entities
        self.embeddings_initializer = keras.initializers.get(
            embeddings_initializer
        )
        self.supports_masking = True

    def build(self, input_shape):
        check_entities_shape(self, input_shape)
        self.input_spec = keras.layers.InputSpec(
            ndim=3, axes={-1: input_shape[-1]}
        )
        add_weights(
            self,
            self.embeddings_initializer,
            embeddings=(self.num_entities, input_shape[-1]),
        )

    def call(self, inputs, mask=None):
        batch = ops.shape(inputs)[0]
        return ops.broadcast_to(
            self.embeddings, (batch, *self.embeddings.shape)
        )

    def compute_mask(self, inputs, mask=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.num_entities, input_shape[-1])

    def get_config(self):
        return {
            **super().get_config(),
            "num_entities": self.num_entities,
            "embeddings_initializer": keras.initializers.serialize(
                self.embeddings_initializer
            ),
        }


@keras.saving.register_keras_serializable(package="keras_relational")
class RelationalTransformerBlock(keras.layers.Layer):
    """A Transformer block that normalizes before attention and at its end.

    With all its entities e, one block computes

        x = LayerNorm(e)
        a = softmax(Q Kᵀ / √key_dim) V for each head, side by side,
            with Q, K, V = x W_Q, x W_K, x W_V of that head
        outputs = LayerNorm(e + W₂ relu(W₁ a + b₁) + b₂)

    Reference: equations (1) to (4), section 4 and Remark 4.1 of [Clift et al.,
    2019](https://arxiv.org/abs/1909.00668), the block of the relational agent.
    Equation (2) leaves out the division by √key_dim, which their agents make.

    Args:
        num_heads: Positive integer.
        key_dim: Positive integer, size of queries, keys and values of a head.
        hidden_units: Positive integer, size of the hidden layer.
        num_iterations: Positive integer. The block is applied that many times,
            always with the same weights, but for the layer normalizations: each
            iteration has its own.
        kernel_initializer: Initializer of all kernels.

    Call arguments:
        inputs: Float tensor `(batch, n, m)`.
        mask: Optional boolean tensor `(batch, n)`, `True` for entities that are
            there. Nobody attends to the others, and their outputs are zero.
        return_attention_scores: Whether to return the attention too.

    Returns:
        Tensor `(batch, n, m)` in the compute dtype. With
        `return_attention_scores=True` also the scores, `(batch,
        num_iterations, num_heads, n, n)`: the last axis is attended to.

    Raises:
        ValueError: If a size is not a positive integer, or the inputs are not
            3D with a last axis of fixed size.

    Example:

    >>> block = RelationalTransformerBlock(2, key_dim=32, hidden_units=64)
    >>> block(keras.Input((40, 64))).shape
    (None, 40, 64)
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        hidden_units,
        num_iterations=1,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_integers(
            num_heads=num_heads,
            key_dim=key_dim,
            hidden_units=hidden_units,
            num_iterations=num_iterations,
        )
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.hidden_units = hidden_units
        self.num_iterations = num_iterations
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        check_entities_shape(self, input_shape)
        features = input_shape[-1]
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: features})
        self._build_attention(features)
        self._build_feedforward(features, self.num_heads * self.key_dim)

    def call(self, inputs, mask=None, return_attention_scores=False):
        entities, mask = flatten_entities(self, inputs, mask)
        scores = []
        for iteration in range(self.num_iterations):
            x = self.input_normalizations[iteration](entities)
            attended, score = dot_product_attention(*self._heads(x), mask)
            entities = self._feedforward(entities, attended, iteration)
            scores.append(ops.cast(score, self.compute_dtype))
        if mask is not None:
            entities = ops.where(ops.expand_dims(mask, -1), entities, 0)
        if return_attention_scores:
            return entities, ops.stack(scores, axis=1)
        return entities

    def compute_mask(self, inputs, mask=None):
        return mask

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def compute_output_spec(
        self, inputs, mask=None, return_attention_scores=False
    ):
        outputs = keras.KerasTensor(inputs.shape, self.compute_dtype)
        if not return_attention_scores:
            return outputs
        batch, n, _ = inputs.shape
        shape = (batch, self.num_iterations, self.num_heads, n, n)
        return outputs, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "hidden_units": self.hidden_units,
            "num_iterations": self.num_iterations,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }

    def _build_attention(self, features):
        width = self.num_heads * self.key_dim
        add_weights(
            self,
            self.kernel_initializer,
            query_kernel=(features, width),
            key_kernel=(features, width),
            value_kernel=(features, width),
        )
        self.input_normalizations = self._normalizations("input", features)

    def _build_feedforward(self, features, width):
        """From attended values of some width back to entities."""

        def dense(units, width, name, activation=None):
            layer = keras.layers.Dense(
                units,
                activation,
                kernel_initializer=clone_initializer(
                    self.kernel_initializer, len(self.weights)
                ),
                dtype=self.dtype_policy,
                name=name,
            )
            layer.build((None, None, width))
            return layer

        self.hidden = dense(self.hidden_units, width, "hidden", "relu")
        self.update = dense(features, self.hidden_units, "update")
        self.output_normalizations = self._normalizations("output", features)

    def _normalizations(self, name, features):
        """One an iteration."""
        layers = [
            keras.layers.LayerNormalization(
                dtype=self.dtype_policy, name=f"{name}_normalization_{i}"
            )
            for i in range(self.num_iterations)
        ]
        for layer in layers:
            layer.build((None, None, features))
        return layers

    def _heads(self, x):
        """Queries, keys and values, each `(batch, num_heads, n, key_dim)`."""
        # One product of all three would be slower: XLA's products on a CPU take
        # wide kernels badly.
        kernels = (self.query_kernel, self.key_kernel, self.value_kernel)
        return [
            split_heads(ops.matmul(x, kernel), self.num_heads)
            for kernel in kernels
        ]

    def _feedforward(self, entities, attended, iteration):
        update = self.update(self.hidden(attended))
        return self.output_normalizations[iteration](entities + update)


@keras.saving.register_keras_serializable(package="keras_relational")
class SimplicialTransformerBlock(RelationalTransformerBlock):
    """A Transformer block with 1- and 2-simplicial attention.

    With x = LayerNorm(e) of all entities, N standard and M virtual ones, the
    standard entities attend to each other, and to pairs of virtual ones; the
    virtual entities attend to all, and keep their own values:

        a¹_i = 1-simplicial attention of x_i to x_1 … x_N,
               for virtual i to x_1 … x_{N+M}
        a²_i = TwoSimplicialAttention of x_i to pairs of x_{N+1} … x_{N+M},
               for virtual i its value u_i = W_U x_i
        outputs = LayerNorm(e + W₂ relu(W₁ [a¹, LayerNorm(a²)] + b₁) + b₂)

    Reference: equations (12) to (14) and section 4 of [Clift et al., 2019](
    https://arxiv.org/abs/1909.00668). The softmax of equation (13) runs over
    the M² pairs of virtual entities. With several 2-simplicial heads the inner
    normalization is over all of them together.

    Args:
        num_heads: Positive integer, number of 1-simplicial heads.
        key_dim: Positive integer, size of queries, keys and values of a
            1-simplicial head.
        num_simplicial_heads: Positive integer, number of 2-simplicial heads.
        simplicial_key_dim: Positive integer, size of queries, keys and values
            of a 2-simplicial head.
        hidden_units: Positive integer, size of the hidden layer.
        num_iterations: As for `RelationalTransformerBlock`.
        score: As for `TwoSimplicialAttention`.
        kernel_initializer: Initializer of all kernels.

    Call arguments:
        entities: Float tensor `(batch, n, m)`, the standard entities.
        virtual_entities: Float tensor `(batch, v, m)`.
        entities_mask: Optional boolean tensor `(batch, n)`, `True` for entities
            that are there. Nobody attends to the others, and their outputs are
            zero.
        return_attention_scores: Whether to return the attention too.

    Returns:
        Both kinds of entities, `(batch, n, m)` and `(batch, v, m)`, in the
        compute dtype. With `return_attention_scores=True` a pair: both kinds of
        entities, and, each `(batch, num_iterations, heads, …)`, three scores:
        of entities `(…, n, n)`, of virtual entities `(…, v, n + v)`, and of
        entities to pairs of virtual ones `(…, n, v, v)`.

    Raises:
        ValueError: If a size is not a positive integer, `score` is unknown, or
            the inputs are not 3D with the same last axis.

    Example:

    >>> entities = keras.Input((40, 64))
    >>> virtual_entities = VirtualEntities(2)(entities)
    >>> block = SimplicialTransformerBlock(2, 32, 1, 48, hidden_units=64)
    >>> entities, virtual_entities = block(entities, virtual_entities)
    >>> entities.shape, virtual_entities.shape
    ((None, 40, 64), (None, 2, 64))
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        num_simplicial_heads,
        simplicial_key_dim,
        hidden_units,
        num_iterations=1,
        score="unsigned",
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(
            num_heads,
            key_dim,
            hidden_units,
            num_iterations,
            kernel_initializer,
            **kwargs,
        )
        self.num_simplicial_heads = num_simplicial_heads
        self.simplicial_key_dim = simplicial_key_dim
        self.score = score
        # Here, so that bad arguments are refused at once.
        self.simplicial_attention = TwoSimplicialAttention(
            num_simplicial_heads,
            simplicial_key_dim,
            score,
            clone_initializer(self.kernel_initializer, 0),
            dtype=self.dtype_policy,
            name="simplicial_attention",
        )

    def build(self, entities_shape, virtual_entities_shape):
        check_entities_shape(self, entities_shape, "entities")
        check_entities_shape(self, virtual_entities_shape, "virtual_entities")
        self._check_virtual_entities(entities_shape, virtual_entities_shape)
        features = entities_shape[-1]
        self._build_attention(features)
        self.simplicial_attention.build(entities_shape, virtual_entities_shape)
        simplicial_width = self.num_simplicial_heads * self.simplicial_key_dim
        self.simplicial_normalizations = self._normalizations(
            "simplicial", simplicial_width
        )
        self._build_feedforward(
            features, self.num_heads * self.key_dim + simplicial_width
        )

    def call(
        self,
        entities,
        virtual_entities,
        entities_mask=None,
        return_attention_scores=False,
    ):
        self._check_virtual_entities(entities.shape, virtual_entities.shape)
        entities, mask = flatten_entities(self, entities, entities_mask)
        n = ops.shape(entities)[1]
        # Standard entities first, then the virtual ones.
        both = ops.concatenate([entities, virtual_entities], axis=1)
        mask_of_both = None
        if mask is not None:
            there = ops.ones_like(virtual_entities[..., 0], dtype="bool")
            mask_of_both = ops.concatenate([mask, there], axis=1)
        scores = []
        for iteration in range(self.num_iterations):
            x = self.input_normalizations[iteration](both)
            queries, keys, values = self._heads(x)
            standard, standard_scores = dot_product_attention(
                queries[:, :, :n], keys[:, :, :n], values[:, :, :n], mask
            )
            virtual, virtual_scores = dot_product_attention(
                queries[:, :, n:], keys, values, mask_of_both
            )
            simplicial = self.simplicial_attention(
                x[:, :n],
                base=x[:, n:],
                return_attention_scores=return_attention_scores,
            )
            if return_attention_scores:
                simplicial, simplicial_scores = simplicial
                scores.append(
                    (
                        ops.cast(standard_scores, self.compute_dtype),
                        ops.cast(virtual_scores, self.compute_dtype),
                        simplicial_scores,
                    )
                )
            own_values = self.simplicial_attention.values(x[:, n:])
            simplicial = self.simplicial_normalizations[iteration](
                ops.concatenate([simplicial, own_values], axis=1)
            )
            attended = ops.concatenate([standard, virtual], axis=1)
            attended = ops.concatenate([attended, simplicial], axis=-1)
            both = self._feedforward(both, attended, iteration)
        entities, virtual_entities = both[:, :n], both[:, n:]
        if mask is not None:
            entities = ops.where(ops.expand_dims(mask, -1), entities, 0)
        if return_attention_scores:
            stacked = tuple(
                ops.stack(of_iterations, axis=1)
                for of_iterations in zip(*scores, strict=True)
            )
            return (entities, virtual_entities), stacked
        return entities, virtual_entities

    def compute_mask(self, entities, entities_mask=None):
        return entities_mask, None

    def compute_output_shape(self, entities_shape, virtual_entities_shape):
        return tuple(entities_shape), tuple(virtual_entities_shape)

    def compute_output_spec(
        self,
        entities,
        virtual_entities,
        entities_mask=None,
        return_attention_scores=False,
    ):
        self._check_virtual_entities(entities.shape, virtual_entities.shape)
        outputs = tuple(
            keras.KerasTensor(x.shape, self.compute_dtype)
            for x in (entities, virtual_entities)
        )
        if not return_attention_scores:
            return outputs
        (batch, n, _), v = entities.shape, virtual_entities.shape[1]
        n_and_v = None if None in (n, v) else n + v
        shapes = (
            (self.num_heads, n, n),
            (self.num_heads, v, n_and_v),
            (self.num_simplicial_heads, n, v, v),
        )
        return outputs, tuple(
            keras.KerasTensor(
                (batch, self.num_iterations, *shape), self.compute_dtype
            )
            for shape in shapes
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_simplicial_heads": self.num_simplicial_heads,
            "simplicial_key_dim": self.simplicial_key_dim,
            "score": self.score,
        }

    def _check_virtual_entities(self, entities_shape, virtual_entities_shape):
        batch, *_, features = entities_shape
        if not shapes_match(virtual_entities_shape, (batch, None, features)):
            raise ValueError(
                f"{self.name} takes standard and virtual entities with one "
                "batch and one last axis. Received: entities.shape="
                f"{tuple(entities_shape)}, virtual_entities.shape="
                f"{tuple(virtual_entities_shape)}"
            )
