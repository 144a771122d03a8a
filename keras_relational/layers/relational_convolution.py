import itertools
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import dot_products
from keras_relational.layers._attention import project_to_heads
from keras_relational.layers._entities import check_entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import add_weights
from keras_relational.validation import check_positive_integers

# What `RelationalConvolution(groups=)` takes besides a list of groups.
GROUPS = {
    "combinations": itertools.combinations,
    "permutations": itertools.permutations,
}
POOLING = ("mean", "max")


@keras.saving.register_keras_serializable(package="keras_relational")
class InnerProductRelations(keras.layers.Layer):
    """Several relations of all pairs of entities, each an inner product.

    With the entities x, relation l of entity i to entity j is

        outputs[i, j, l] = x_i W_l · x_j U_l

    A relation compares one learned attribute of both. `RelationalConvolution`
    finds patterns in the relations of a group.

    Reference: multi-dimensional inner product relations of [Altabaa and
    Lafferty, 2023](https://arxiv.org/abs/2310.03240). The authors' program adds
    a bias to both attributes. This layer has none.

    Args:
        num_relations: Positive integer, number of relations.
        key_dim: Positive integer, size of an attribute. By default m.
        symmetric: Boolean. If `True`, U is W: j is to i what i is to j.
        kernel_initializer: Initializer of both kernels.

    Call arguments:
        inputs: Float tensor `(batch, n, m)`.
        mask: Optional boolean tensor `(batch, n)`. `True` marks a valid entity.
            The relations to and from the others are zero.

    Returns:
        Tensor `(batch, n, n, num_relations)` in the compute dtype.

    Raises:
        ValueError: If a size is not a positive integer, or the inputs are not
            3D with a last axis of known size.

    Example:

    >>> InnerProductRelations(16, key_dim=4)(keras.Input((9, 64))).shape
    (None, 9, 9, 16)
    """

    def __init__(
        self,
        num_relations: int,
        key_dim: int | None = None,
        symmetric: bool = False,
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(num_relations=num_relations)
        if key_dim is not None:
            check_positive_integers(key_dim=key_dim)
        self.num_relations = num_relations
        self.key_dim = key_dim
        self.symmetric = symmetric
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        features = check_entities_shape(self, input_shape)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: features})
        size = features if self.key_dim is None else self.key_dim
        shape = (features, self.num_relations * size)
        add_weights(self, self.kernel_initializer, query_kernel=shape)
        if not self.symmetric:
            add_weights(self, self.kernel_initializer, key_kernel=shape)

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor:
        # Attributes of padding are zero, and so are its relations.
        entities, _ = flatten_entities(self, inputs, mask)
        kernels = [self.query_kernel] * 2
        if not self.symmetric:
            kernels[1] = self.key_kernel
        queries, keys = (
            project_to_heads(entities, kernel, self.num_relations)
            for kernel in kernels
        )
        relations = dot_products(queries, keys)
        relations = ops.cast(relations, self.compute_dtype)
        return ops.transpose(relations, (0, 2, 3, 1))

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        batch, n, _ = input_shape
        return (batch, n, n, self.num_relations)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_relations": self.num_relations,
            "key_dim": self.key_dim,
            "symmetric": self.symmetric,
            "kernel_initializer": serialize(self.kernel_initializer),
        }


@keras.saving.register_keras_serializable(package="keras_relational")
class RelationalConvolution(keras.layers.Layer):
    """Compares the relations within groups of entities with learned patterns.

    A group g is a tuple of s entities. The relations of its members to each
    other are a small table. Each filter f is a pattern of such a table, called
    a graphlet:

        outputs[g, f] = Σ_a Σ_b Σ_l inputs[g_a, g_b, l] kernel[a, b, l, f]

    where a and b run over the s places in a group. With `pooling` the members
    have no order: it is the mean or the maximum of these sums over all orders
    of the group.

    The outputs are a vector for each group: entities for the next layer, whose
    relations are relations between groups.

    Reference: relational convolutions of [Altabaa and Lafferty, 2023](
    https://arxiv.org/abs/2310.03240).

    Args:
        filters: Positive integer, number of patterns.
        graphlet_size: Positive integer, s, number of entities of a group.
        groups: `"combinations"`, all sets of s entities, each in the order of
            the inputs; `"permutations"`, all of them in all orders; or a list
            of tuples of s positions.
        pooling: `"mean"` or `"max"` over all orders of a group, or `None` for
            the order in which it comes.
        kernel_initializer: Initializer of the patterns.

    Call arguments:
        inputs: Float tensor `(batch, n, n, r)` with a fixed n, relations as
            `InnerProductRelations` gives them.
        mask: Optional boolean tensor `(batch, n)`, or `(batch, n, n)`, of which
            the diagonal is read. `True` marks a valid entity. Groups with
            another one have zero outputs, and are masked for the next layer.

    Returns:
        Tensor `(batch, G, filters)` in the compute dtype.

    Raises:
        ValueError: If a size is not a positive integer, `groups` or `pooling`
            is not one of the above, a group has a position twice or beyond n,
            the inputs have no such shape, or later inputs have another size.

    Example:

    >>> entities = keras.Input((9, 64))
    >>> relations = InnerProductRelations(16, key_dim=4)(entities)
    >>> RelationalConvolution(8, graphlet_size=3)(relations).shape
    (None, 84, 8)
    """

    def __init__(
        self,
        filters: int,
        graphlet_size: int,
        groups: str | Sequence = "combinations",
        pooling: str | None = None,
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(filters=filters, graphlet_size=graphlet_size)
        if pooling is not None and pooling not in POOLING:
            raise ValueError(
                f"`pooling` must be None or one of {', '.join(POOLING)}. "
                f"Received: pooling={pooling!r}"
            )
        self.filters = filters
        self.graphlet_size = graphlet_size
        self.groups = _checked(groups, graphlet_size)
        self.pooling = pooling
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        num_relations, _ = self._check(input_shape)
        self.sizes = tuple(input_shape[1:])
        places = (self.graphlet_size,) * 2
        shape = (*places, num_relations, self.filters)
        add_weights(self, self.kernel_initializer, kernel=shape)

    def call(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor:
        num_relations, members = self._check(inputs.shape)
        n = inputs.shape[1]
        relations = ops.reshape(inputs, (-1, n * n, num_relations))
        if mask is None:
            return self._matches(relations, members, n)
        valid = _valid_entities(mask)
        pairs = valid[:, :, None] & valid[:, None]
        pairs = ops.reshape(pairs, (-1, n * n, 1))
        relations = ops.where(pairs, relations, 0)
        matches = self._matches(relations, members, n)
        groups = ops.expand_dims(_valid_groups(valid, members), -1)
        return ops.where(groups, matches, 0)

    def compute_mask(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor | None:
        if mask is None:
            return None
        _, members = self._check(inputs.shape)
        return _valid_groups(_valid_entities(mask), members)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        _, members = self._check(input_shape)
        return (input_shape[0], len(members), self.filters)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "filters": self.filters,
            "graphlet_size": self.graphlet_size,
            "groups": self.groups,
            "pooling": self.pooling,
            "kernel_initializer": serialize(self.kernel_initializer),
        }

    def _check(self, shape):
        """Checks the shape of the inputs.

        Returns:
            The number of relations, and the members of groups.
        """
        if len(shape) != 4 or None in shape[1:] or shape[1] != shape[2]:
            raise ValueError(
                f"{self.name} takes relations (batch, n, n, r) with a fixed n "
                f"and r. Received: inputs.shape={tuple(shape)}"
            )
        if self.built and tuple(shape[1:]) != self.sizes:
            raise ValueError(
                f"{self.name} was built for relations {self.sizes} of an "
                f"example. Received: inputs.shape={tuple(shape)}. Pad the "
                "entities to the number at build and mask the padding, or "
                "build a new layer."
            )
        return shape[3], _members_of_groups(
            self, self.groups, self.graphlet_size, shape[1]
        )

    def _matches(self, relations, members, n):
        """`(batch, n², r)` → `(batch, G, filters)`."""
        size = self.graphlet_size
        pairs = members[:, :, None] * n + members[:, None, :]
        tables = ops.take(relations, pairs.ravel(), axis=1)
        width = size * size * relations.shape[-1]
        tables = ops.reshape(tables, (-1, len(members), width))
        if self.pooling is None:
            kernel = ops.reshape(self.kernel, (width, self.filters))
            return ops.matmul(tables, kernel)
        # The same pattern, for the members in each other order.
        orders = np.array(list(itertools.permutations(range(size))))
        places = orders[:, :, None] * size + orders[:, None, :]
        kernel = ops.reshape(self.kernel, (size * size, -1))
        kernel = ops.take(kernel, places.ravel(), axis=0)
        kernel = ops.reshape(kernel, (len(orders), width, self.filters))
        if self.pooling == "mean":
            return ops.matmul(tables, ops.mean(kernel, axis=0))
        # All orders in one product.
        kernel = ops.reshape(ops.transpose(kernel, (1, 0, 2)), (width, -1))
        matches = ops.matmul(tables, kernel)
        shape = (-1, len(members), len(orders), self.filters)
        return ops.max(ops.reshape(matches, shape), axis=2)


def _members_of_groups(
    layer: keras.layers.Layer,
    groups: str | list[tuple[int, ...]],
    graphlet_size: int,
    n: int,
) -> np.ndarray:
    """The positions of the members of each group.

    Args:
        layer: The layer that reads the groups. An error names it.
        groups: One of `GROUPS`, or a list of tuples of positions.
        graphlet_size: Number of members of a group.
        n: Number of entities.

    Returns:
        Integer array `(num_groups, graphlet_size)`.

    Raises:
        ValueError: If there is no group, or a position beyond n.
    """
    found = groups
    if isinstance(groups, str):
        found = list(GROUPS[groups](range(n), graphlet_size))
    members = np.array(found, int).reshape(-1, graphlet_size)
    if not members.size or members.min() < 0 or members.max() >= n:
        raise ValueError(
            f"{layer.name} needs groups of {graphlet_size} entities, of the "
            f"positions 0 to {n - 1}. Received: groups={groups!r}"
        )
    return members


def _checked(groups, graphlet_size):
    """`groups` as a string, or as a list of tuples."""
    if isinstance(groups, str):
        if groups not in GROUPS:
            raise ValueError(
                f"`groups` must be one of {', '.join(GROUPS)}, or a list of "
                f"tuples. Received: groups={groups!r}"
            )
        return groups
    groups = [tuple(group) for group in groups]
    for group in groups:
        if not len(set(group)) == len(group) == graphlet_size:
            raise ValueError(
                f"A group has {graphlet_size} different entities, as "
                f"graphlet_size={graphlet_size} says. Received: {group}"
            )
    return groups


def _valid_entities(mask):
    if len(mask.shape) == 2:
        return mask
    return ops.diagonal(mask, axis1=1, axis2=2)


def _valid_groups(valid, members):
    """Which groups have valid members alone, `(batch, G)`."""
    valid = ops.take(valid, members.ravel(), axis=1)
    return ops.all(ops.reshape(valid, (-1, *members.shape)), axis=2)
