"""2-simplicial attention in NumPy, one triple at a time."""

import itertools

import equations
import numpy as np


def score(a, b, c, name):
    """One logit, as the papers define it."""
    if name == "unsigned":
        return np.linalg.norm((a @ b) * c - (a @ c) * b + (b @ c) * a)
    if name == "trilinear":
        return np.sum(a * b * c) / np.sqrt(len(a))
    pieces = zip(*(x.reshape(-1, 3) for x in (a, b, c)), strict=True)
    return sum(np.linalg.det(np.stack(x)) for x in pieces) / np.sqrt(len(a))


def attention_in_loops(num_heads, name="unsigned"):
    @equations.each_example
    def reference(weights, inputs, valid):
        query, base = inputs["query"], inputs["base"]
        pairs = list(itertools.product(range(len(base)), repeat=2))
        heads = []
        for head in range(num_heads):
            own = {
                kernel: equations.part(
                    weights[f"{kernel}_kernel"], head, num_heads
                )
                for kernel in ("query", "key_1", "key_2", "value")
            }
            keys_1, keys_2 = base @ own["key_1"], base @ own["key_2"]
            values = base @ own["value"]
            read = np.zeros((len(query), values.shape[1]))
            for i in valid:
                p = query[i] @ own["query"]
                logits = [
                    score(p, keys_1[j], keys_2[k], name) for j, k in pairs
                ]
                shares = equations.softmax(logits)
                for share, (j, k) in zip(shares, pairs, strict=True):
                    outer = np.outer(values[j], values[k])
                    products = weights["product_kernel"][head] * outer
                    read[i] += share * products.sum((1, 2))
            heads.append(read)
        return np.concatenate(heads, axis=1)

    return reference
