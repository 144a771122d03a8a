"""2-simplicial attention in NumPy, one triple at a time."""

import itertools

import numpy as np


def score(a, b, c, name):
    """One logit, as the papers define it."""
    if name == "unsigned":
        return np.linalg.norm((a @ b) * c - (a @ c) * b + (b @ c) * a)
    if name == "trilinear":
        return np.sum(a * b * c) / np.sqrt(len(a))
    pieces = zip(*(x.reshape(-1, 3) for x in (a, b, c)), strict=True)
    return sum(np.linalg.det(np.stack(x)) for x in pieces) / np.sqrt(len(a))


def attention_in_loops(num_heads, key_dim, name="unsigned"):
    def reference(weights, inputs, mask=None):
        query, base = inputs["query"], inputs["base"]
        if mask is None:
            mask = np.ones(query.shape[:2], bool)
        outputs = np.zeros((*query.shape[:2], num_heads * key_dim))
        for example, head in np.ndindex(len(query), num_heads):
            part = slice(head * key_dim, (head + 1) * key_dim)
            keys_1, keys_2, values = (
                base[example] @ weights[kernel][:, part]
                for kernel in ("key_1_kernel", "key_2_kernel", "value_kernel")
            )
            pairs = list(itertools.product(range(len(values)), repeat=2))
            for i in np.flatnonzero(mask[example]):
                p = query[example, i] @ weights["query_kernel"][:, part]
                logits = [
                    score(p, keys_1[j], keys_2[k], name) for j, k in pairs
                ]
                attention = np.exp(logits) / np.sum(np.exp(logits))
                for weight, (j, k) in zip(attention, pairs, strict=True):
                    outer = np.outer(values[j], values[k])
                    for q in range(key_dim):
                        outputs[example, i, head * key_dim + q] += (
                            weight
                            * np.sum(weights["product_kernel"][head, q] * outer)
                        )
        return outputs

    return reference
