"""2-simplicial attention in NumPy, one triple at a time."""

import itertools

import numpy as np
from layers_for_tests import each_example
from layers_for_tests import softmax


def score(a, b, c, name):
    """One logit, as the papers define it."""
    if name == "unsigned":
        return np.linalg.norm((a @ b) * c - (a @ c) * b + (b @ c) * a)
    if name == "trilinear":
        return np.sum(a * b * c) / np.sqrt(len(a))
    pieces = zip(*(x.reshape(-1, 3) for x in (a, b, c)), strict=True)
    return sum(np.linalg.det(np.stack(x)) for x in pieces) / np.sqrt(len(a))


def attention_in_loops(num_heads, name="unsigned"):
    @each_example
    def reference(weights, inputs, valid):
        query, base = inputs["query"], inputs["base"]
        outputs = np.zeros((len(query), weights["query_kernel"].shape[1]))
        pairs = list(itertools.product(range(len(base)), repeat=2))
        for head in range(num_heads):
            queries, keys_1, keys_2, values = (
                x @ np.split(weights[f"{kernel}_kernel"], num_heads, 1)[head]
                for kernel, x in (
                    ("query", query),
                    ("key_1", base),
                    ("key_2", base),
                    ("value", base),
                )
            )
            own = np.split(outputs, num_heads, axis=1)[head]
            for i in valid:
                shares = softmax(
                    [
                        score(queries[i], keys_1[j], keys_2[k], name)
                        for j, k in pairs
                    ]
                )
                for share, (j, k) in zip(shares, pairs, strict=True):
                    outer = np.outer(values[j], values[k])
                    for q, product in enumerate(
                        weights["product_kernel"][head]
                    ):
                        own[i, q] += share * np.sum(product * outer)
        return outputs

    return reference
