import keras
from keras import ops
from keras.initializers import serialize

from keras_relational.layers._attention import masked_softmax
from keras_relational.layers._attention import project_to_heads
from keras_relational.layers._attention import scaled_dot_products
from keras_relational.layers._attention import weighted_sum
from keras_relational.layers._entities import check_entities_shape
from keras_relational.layers._entities import flatten_entities
from keras_relational.layers._initial_weights import InitializerLike
from keras_relational.layers._initial_weights import add_weights
from keras_relational.layers._sublayers import built_dense
from keras_relational.layers._sublayers import built_normalization
from keras_relational.validation import check_positive_integers


@keras.saving.register_keras_serializable(package="keras_relational")
class SharedWorkspace(keras.layers.Layer):
    """A small memory through which all slots speak to each other.

    The slots s compete to write into the rows of the memory M. Then all slots
    read from it. With TopK, which keeps the `num_writers` largest scores of a
    row and sets the others to zero,

        A = TopK(softmax(M W_Q (s W_K)ᵀ / √d)) s W_V          for each head
        N = norm(M + A)
        N = norm(N + W₂ relu(W₁ N + b₁) + b₂)
        i, f = mean_k(relu(w ∘ s_k)) W_G + tanh(M) U_G + b_G
        M = sigmoid(i) tanh(N) + sigmoid(f + 1) M
        s = s + softmax(s R_Q (M R_K)ᵀ / √d) M R_V             for each head

    d is the size of the queries of a head. What slots say to each other must
    pass through the few rows of the memory. So the cost grows with n and not
    with n², and the slots have to agree on what matters. Apply the layer after
    each update of the slots, and hand on the memory. `VirtualEntities` gives a
    first one.

    Reference: [Goyal et al., 2022](https://arxiv.org/abs/2103.01197). N and the
    gates are those of a relational memory, as in the authors' program, which
    also leaves the scores as they are after TopK. It differs in eight points:

    - Scores are not divided by √d.
    - Queries, keys and values have biases, and the same three matrices serve to
      write and to read.
    - A dense layer projects the slots first.
    - One dense layer stands for both W₁ and W₂, and relu follows the second.
    - Each row of the memory has a U_G of its own.
    - The normalizations have ε = 1e-5, here 1e-3.
    - Exactly `num_writers` slots write into a row, even if scores are equal.
    - The first memory is an identity matrix.

    Args:
        num_heads: Positive integer that divides m and u, number of heads.
        num_writers: Positive integer, how many slots write into a row of the
            memory, or `None` for all. Equal scores count as one.
        kernel_initializer: Initializer of all kernels, and of w.

    Call arguments:
        slots: Float tensor `(batch, n, m)`.
        memory: Float tensor `(batch, k, u)`.
        slots_mask: Optional boolean tensor `(batch, n)`. `True` marks a valid
            slot. The others do not write, and their outputs are zero.
        return_attention_scores: Boolean. If `True`, the layer also returns the
            scores.

    Returns:
        Pair of the new slots `(batch, n, m)` and the new memory `(batch, k,
        u)`, in the compute dtype. With `return_attention_scores`, a pair: this
        pair, and a pair of the scores of writing, `(batch, num_heads, k, n)`,
        and of reading, `(batch, num_heads, n, k)`.

    Raises:
        ValueError: If a size is not a positive integer, `num_heads` does not
            divide m and u, or the slots or the memory are not 3D with a last
            axis of known size.

    Example:

    >>> from keras_relational.layers import VirtualEntities
    >>> slots = keras.Input((20, 64))
    >>> memory = VirtualEntities(4)(slots)
    >>> slots, memory = SharedWorkspace(4, num_writers=5)(slots, memory)
    >>> slots.shape, memory.shape
    ((None, 20, 64), (None, 4, 64))
    """

    def __init__(
        self,
        num_heads: int,
        num_writers: int | None = None,
        kernel_initializer: InitializerLike = "glorot_uniform",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        check_positive_integers(num_heads=num_heads)
        if num_writers is not None:
            check_positive_integers(num_writers=num_writers)
        self.num_heads = num_heads
        self.num_writers = num_writers
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(
        self,
        slots_shape: tuple[int | None, ...],
        memory_shape: tuple[int | None, ...],
    ) -> None:
        m = check_entities_shape(self, slots_shape, "slots")
        u = check_entities_shape(self, memory_shape, "memory")
        if m % self.num_heads or u % self.num_heads:
            raise ValueError(
                f"`num_heads` must divide the sizes of a slot and of a row of "
                f"the memory, which are {m} and {u}. Received: num_heads="
                f"{self.num_heads}"
            )
        add_weights(
            self,
            self.kernel_initializer,
            write_query_kernel=(u, u),
            write_key_kernel=(m, u),
            write_value_kernel=(m, u),
            read_query_kernel=(m, u),
            read_key_kernel=(u, u),
            read_value_kernel=(u, m),
            slots_scale=(1, m),
            slots_gates_kernel=(m, 2 * u),
            memory_gates_kernel=(u, 2 * u),
        )
        add_weights(self, "zeros", gates_bias=(2 * u,))
        self.written_normalization = built_normalization(
            self, memory_shape, "written_normalization"
        )
        self.hidden = built_dense(self, memory_shape, u, "hidden", "relu")
        self.update = built_dense(self, memory_shape, u, "update")
        self.update_normalization = built_normalization(
            self, memory_shape, "update_normalization"
        )

    def call(
        self,
        slots: keras.KerasTensor,
        memory: keras.KerasTensor,
        slots_mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> tuple:
        slots, mask = flatten_entities(self, slots, slots_mask)
        memory = ops.cast(memory, self.compute_dtype)
        written, writing = self._written(slots, memory, mask)
        new = self.written_normalization(memory + written)
        new = self.update_normalization(new + self.update(self.hidden(new)))
        i, f = ops.split(self._gates(slots, memory, mask), 2, axis=-1)
        memory = ops.sigmoid(i) * ops.tanh(new) + ops.sigmoid(f + 1) * memory
        read, reading = self._read(slots, memory)
        slots = slots + read
        if mask is not None:
            slots = ops.where(ops.expand_dims(mask, -1), slots, 0)
        if return_attention_scores:
            scores = tuple(
                ops.cast(x, self.compute_dtype) for x in (writing, reading)
            )
            return (slots, memory), scores
        return slots, memory

    def compute_mask(
        self,
        slots: keras.KerasTensor,
        slots_mask: keras.KerasTensor | None = None,
    ) -> tuple[keras.KerasTensor | None, None]:
        return slots_mask, None

    def compute_output_shape(
        self,
        slots_shape: tuple[int | None, ...],
        memory_shape: tuple[int | None, ...],
    ) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
        return tuple(slots_shape), tuple(memory_shape)

    def compute_output_spec(
        self,
        slots: keras.KerasTensor,
        memory: keras.KerasTensor,
        slots_mask: keras.KerasTensor | None = None,
        return_attention_scores: bool = False,
    ) -> tuple:
        outputs = tuple(
            keras.KerasTensor(x.shape, self.compute_dtype)
            for x in (slots, memory)
        )
        if not return_attention_scores:
            return outputs
        batch, n, k = slots.shape[0], slots.shape[1], memory.shape[1]
        scores = tuple(
            keras.KerasTensor(
                (batch, self.num_heads, *sizes), self.compute_dtype
            )
            for sizes in ((k, n), (n, k))
        )
        return outputs, scores

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_writers": self.num_writers,
            "kernel_initializer": serialize(self.kernel_initializer),
        }

    def _attend(self, queries_of, keys_of, kernels, mask=None, num_kept=None):
        """The sum of values that each query reads, and the scores."""
        query_kernel, key_kernel, value_kernel = kernels
        queries = project_to_heads(queries_of, query_kernel, self.num_heads)
        keys = project_to_heads(keys_of, key_kernel, self.num_heads)
        values = project_to_heads(keys_of, value_kernel, self.num_heads)
        if mask is not None:
            mask = mask[:, None, None]
        scores = masked_softmax(scaled_dot_products(queries, keys), mask)
        n = scores.shape[-1]
        if num_kept is not None and (n is None or num_kept < n):
            # Sorted, so that there may be fewer than `num_kept`.
            least = ops.sort(scores, axis=-1)[..., -num_kept:][..., :1]
            scores = ops.where(scores >= least, scores, 0)
        return weighted_sum(scores, values), scores

    def _written(self, slots, memory, mask):
        kernels = (
            self.write_query_kernel,
            self.write_key_kernel,
            self.write_value_kernel,
        )
        return self._attend(memory, slots, kernels, mask, self.num_writers)

    def _read(self, slots, memory):
        kernels = (
            self.read_query_kernel,
            self.read_key_kernel,
            self.read_value_kernel,
        )
        return self._attend(slots, memory, kernels)

    def _gates(self, slots, memory, mask):
        """i and f, `(batch, k, 2 u)`."""
        # Padded slots are zero, and so are their parts of the sum.
        total = ops.sum(ops.relu(slots * self.slots_scale), axis=1)
        number = ops.cast(ops.shape(slots)[1], total.dtype)
        if mask is not None:
            number = ops.sum(ops.cast(mask, total.dtype), axis=1)[:, None]
            number = ops.maximum(number, 1)
        from_slots = ops.matmul(total / number, self.slots_gates_kernel)
        gates = ops.matmul(ops.tanh(memory), self.memory_gates_kernel)
        return gates + from_slots[:, None] + self.gates_bias
