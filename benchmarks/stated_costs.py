"""The costs that the docstrings of the layers state, as numbers."""

import re

import keras


def costs(layer: keras.layers.Layer, sizes: dict[str, int]) -> dict[str, int]:
    """Evaluates the formulas in the docstring of a layer.

    Factors stand side by side, and ² is a square. Names are those of the
    layer's attributes, of `sizes`, and of formulas before.
    """
    values = {
        name: value
        for name, value in vars(layer).items()
        if isinstance(value, int)
    }
    values |= sizes
    block = re.search(r"\n    Cost.*?\n\n(.*?)\n\n", layer.__doc__, re.S)
    found = {}
    for name, formula in re.findall(
        r"^ {8}([a-zA-Z_ ]+?) = (.*?)(?=^ {8}[a-zA-Z]|\Z)",
        block[1],
        re.M | re.S,
    ):
        found[name] = values[name] = _evaluated(formula, values)
    return found


def _evaluated(formula, values):
    tokens = re.findall(r"[A-Za-z_][A-Za-z_0-9]*|\d+|[²()+]", formula)
    if "".join(tokens) != re.sub(r"\s", "", formula):
        raise ValueError(f"No formula of sums and products: {formula}")
    program, after_factor = [], False
    for part in tokens:
        if after_factor and part not in ")²+":
            program.append("*")
        program.append("**2" if part == "²" else part)
        after_factor = part not in "(+"
    return eval("".join(program), {}, values)  # noqa: S307
