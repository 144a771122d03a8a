"""Equations that the references of several layers share, in NumPy."""

import numpy as np
from keras import tree
from layer_contract import first_of


def each_example(of_one):
    """The reference of a layer, from that of one example.

    `of_one` takes the weights, the inputs of the example, and the places of
    its valid items.
    """

    def reference(weights, inputs, mask=None):
        if mask is None:
            mask = np.ones(first_of(inputs).shape[:2], bool)
        outputs = []
        for example, valid in enumerate(mask):
            own = tree.map_structure(
                # Some symbols are the same for all examples.
                lambda x, i=example: x[i] if len(x) > 1 else x[0],
                inputs,
            )
            outputs.append(of_one(weights, own, np.flatnonzero(valid)))
        return tree.map_structure(lambda *x: np.stack(x), *outputs)

    return reference


def of_cell(weights):
    """The weights of an RNN, by their names in its cell."""
    return {name.split("/", 1)[1]: weight for name, weight in weights.items()}


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x)))


def softmax(logits):
    exponentials = np.exp(np.asarray(logits) - np.max(logits))
    return exponentials / exponentials.sum()


def attend(query, keys, values, num_heads, weigh=softmax):
    """What one query reads. Each head has its part of all vectors."""
    heads = []
    for head in range(num_heads):
        own = part(query, head, num_heads)
        logits = [own @ part(key, head, num_heads) for key in keys]
        shares = weigh(np.array(logits) / len(own) ** 0.5)
        read = 0
        for share, value in zip(shares, values, strict=True):
            read = read + share * part(value, head, num_heads)
        heads.append(read)
    return np.concatenate(heads)


def part(x, number, count):
    """One of so many equal parts of the last axis."""
    return np.split(x, count, axis=-1)[number]


def normalized(x, weights, name, epsilon=1e-3):
    """Layer normalization of the last axis."""
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt(np.mean(x**2, -1, keepdims=True) + epsilon)
    return x * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def feedforward(x, weights, hidden="hidden", update="update"):
    x = x @ weights[f"{hidden}/kernel"] + weights[f"{hidden}/bias"]
    x = np.maximum(x, 0)
    return x @ weights[f"{update}/kernel"] + weights[f"{update}/bias"]


def lstm(gates, c):
    """The new h and c."""
    i, f, g, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(of_input, of_state, h):
    """The new h. Both products have biases of their own, as in Keras."""
    (xz, xr, xh), (yz, yr, yh) = np.split(of_input, 3), np.split(of_state, 3)
    update = sigmoid(xz + yz)
    new = np.tanh(xh + sigmoid(xr + yr) * yh)
    return update * h + (1 - update) * new


def gated(gates, new, old):
    """What a row of a memory holds next."""
    of_input, forget = np.split(gates, 2)
    return sigmoid(of_input) * np.tanh(new) + sigmoid(forget + 1) * old


def below(weights, name):
    """The weights of one sublayer, by their names in that sublayer."""
    return {
        path.removeprefix(f"{name}/"): weight
        for path, weight in weights.items()
        if path.startswith(f"{name}/")
    }
