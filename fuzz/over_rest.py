"""Attacks on REST that are proper HTTP.

Each public function is a class of attacks.
"""

import copy
import json
import urllib.parse

import numpy as np

from fuzz import attacks
from fuzz import draws
from fuzz import targets
from fuzz.attacks import HttpAttack
from fuzz.attacks import predict_body
from fuzz.attacks import predict_url
from fuzz.attacks import request

_STANDARD = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
_ODD_METHODS = ("BREW", "CONNECT", "TRACE", "get", "PROPFIND", "X" * 300, "M-S")
_ODD_TEXTS = (
    "",
    "\x00",
    "\ud800",
    "ÿ\u202e\U0001f9ff",
    "../../etc/passwd",
    "%s%n{0}${x}",
    "b64",
    "serving_default",
    "__saved_model_init_op",
    "é" * 1000,
)
_ODD_VALUES = (
    None,
    True,
    -1,
    0.5,
    2**31,
    2**63,
    2**64,
    -(2**63) - 1,
    1e39,
    1e308,
    float("nan"),
    float("inf"),
    -float("inf"),
    "",
    "1",
    "NaN",
    [],
    {},
    [[]],
    {"b64": "AAAA"},
    {"b64": 1},
)


def _posted(target, body, expect="any"):
    content = request("POST", predict_url(target), body)
    return HttpAttack((content,), expect)


def random_bytes(rng, target):
    return _posted(target, draws.random_bytes(rng, 4096), "refusal")


def damaged_json(rng, target):
    return _posted(target, draws.damaged(rng, predict_body(target)))


def structure(rng, target):
    """JSON that is proper, of another structure than was asked for."""
    document = json.loads(predict_body(target))
    if rng.random() < 0.3:
        document = {"instances": _rows(document["inputs"])}
    for _ in range(int(rng.integers(1, 4))):
        document = _changed(rng, document)
    return _posted(target, json.dumps(document).encode())


def _rows(columns):
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _changed(rng, node):
    """Changes something at a random depth."""
    inside = list(node.items()) if isinstance(node, dict) else []
    if isinstance(node, list):
        inside = list(enumerate(node))
    if inside and rng.random() < 0.75:
        key, value = draws.choice(rng, inside)
        how = rng.integers(6)
        if how > 1:
            node[key] = _changed(rng, value)
        elif how == 1:
            del node[key]
        elif isinstance(node, dict):
            node[draws.choice(rng, _ODD_TEXTS)] = value
        else:
            node.insert(key, value)
        return node
    return draws.choice(
        rng,
        (
            # A copy: the next change may be inside it.
            lambda: copy.deepcopy(draws.choice(rng, _ODD_VALUES)),
            lambda: [node],
            lambda: {"x": node},
            lambda: [node, node],
            lambda: node[0] if isinstance(node, list) and node else node,
            lambda: json.dumps(node),
            lambda: draws.choice(rng, _ODD_TEXTS),
        ),
    )()


def numbers(rng, target):
    """One number of the request is another thing."""
    text = predict_body(target).decode()
    odd = draws.choice(
        rng,
        (
            *("NaN", "-Infinity", "Infinity", "1e400", "-1e400", "1e39"),
            *("9" * int(rng.integers(10, 10_000)), "0." + "1" * 5000),
            *("00", "+1", ".5", "1.", "0x10", "1e", "--1", "1_000", "-0"),
            *("null", "true", '"1"', "-1", "0.5", "256", "2147483648"),
            *("18446744073709551616", "1E+2", "1e-400", "\uff11", "1,,2"),
        ),
    )
    # A number between two commas, of any input.
    places = [i for i in range(len(text)) if text[i] == ","]
    start = draws.choice(rng, places)
    stop = min(x for x in (text.find(c, start + 1) for c in ",]") if x > 0)
    return _posted(target, f"{text[: start + 1]} {odd}{text[stop:]}".encode())


def nesting(rng, target):
    depth = int(10 ** rng.uniform(1, 5.3))
    opening, closing = draws.choice(rng, (("[", "]"), ('{"a":', "}")))
    if rng.random() < 0.3:
        opening, closing = opening * 2, closing * 2
    deep = opening * depth
    if rng.random() < 0.7:
        deep += draws.choice(rng, ("", "1", "{}")) + closing * depth
    around = draws.choice(
        rng,
        ("%s", '{"inputs":%s}', '{"instances":%s}', '{"signature_name":%s}'),
    )
    return _posted(target, (around % deep).encode(), "refusal")


def long_texts(rng, target):
    """Names and values that are long, or no text."""
    length = int(10 ** rng.uniform(2, 6))
    text = (
        draws.choice(rng, ("x", "é", '\\"', "\x00", "\ud800", "\U0001d518"))
        * length
    )
    body = json.loads(predict_body(target))
    name = draws.choice(rng, list(target.inputs))
    how = rng.integers(6)
    if how == 0:
        body["signature_name"] = text
    elif how == 1:
        body["inputs"][text] = body["inputs"].pop(name)
    elif how == 2:
        body["inputs"][name] = text
    elif how == 3:
        body["inputs"][name] = [[text]]
    elif how == 4:
        body = {text: body}
    else:
        url = predict_url(target).replace(target.name, text[:60_000])
        quoted = urllib.parse.quote(url, "/:", errors="replace")
        return HttpAttack((request("POST", quoted, b"{}"),), "refusal")
    content = json.dumps(body, ensure_ascii=bool(rng.integers(2)))
    return _posted(target, content.encode("utf-8", "surrogatepass"), "refusal")


def many_values(rng, target):
    """What is short as text, and large as lists and objects."""
    number = int(10 ** rng.uniform(3, 5.7))
    piece = draws.choice(rng, ("[]", "{}", "0", '""', "[0]", "0.5", "null"))
    values = "[" + ",".join([piece] * number) + "]"
    names = list(target.inputs)
    around = draws.choice(
        rng,
        (
            f'{{"inputs":{values}}}',
            f'{{"instances":{values}}}',
            "{" + f'"inputs":{{"{names[0]}":{values}}}' + "}",
            values,
        ),
    )
    return _posted(target, around.encode(), "refusal")


def shapes(rng, target):
    """An input of another shape or kind of value than the model's."""
    name = draws.choice(rng, list(target.inputs))
    value = target.inputs[name]
    how = rng.integers(5)
    if how == 0:
        wrong = value[..., None]
    elif how == 1:
        wrong = value[0]
    elif how == 2 and value.ndim > 2:
        axis = -1 - int(rng.integers(value.ndim - 2))
        shape = [*value.shape]
        shape[axis] = draws.choice(rng, (0, 1, shape[axis] + 1))
        wrong = np.resize(value, shape)
    elif how == 3:
        wrong = np.full(value.shape, draws.choice(rng, ("1", "", None)), object)
    else:
        other = 0.5 if value.dtype.kind in "iub" else True
        wrong = np.full(value.shape, other, object)
    return _posted(target, predict_body(target, **{name: wrong}), "refusal")


def batch_sizes(rng, target):
    body = predict_body(target, **targets.other_batch(rng, target))
    return _posted(target, body, "refusal")


def indices(rng, target):
    body = predict_body(target, **targets.bad_indices(rng, target))
    return _posted(target, body, "refusal")


def states(rng, target):
    body = predict_body(target, **targets.not_finite(rng, target))
    return _posted(target, body, "refusal")


def empty_batches(rng, target):
    names = list(target.inputs)
    some = [name for name in names if rng.integers(2)]
    body = draws.choice(
        rng,
        (
            {"instances": []},
            {"instances": [{}]},
            {"instances": {}},
            {"inputs": []},
            {"inputs": {}},
            {"inputs": {key: [] for key in names}},
            {"inputs": {name: [[]] for name in names}},
            {"inputs": {key: [] for key in some}},
            {},
            [],
            None,
        ),
    )
    return _posted(target, json.dumps(body).encode())


def urls(rng, target):
    """Odd methods, paths, queries and versions, with a good body."""
    name = target.name
    version = draws.choice(
        rng,
        ("0", "2", "-1", "1.0", "x", "", "9" * 18, "9" * 400, "\uff11", "01"),
    )
    path = draws.choice(
        rng,
        (
            f"/v1/models/{name}:predict",
            f"/v1/models/{name}",
            f"/v1/models/{name}/metadata",
            f"/v1/models/{name}/versions/{version}",
            f"/v1/models/{name}/versions/{version}:predict",
            f"/v1/models/{name}/labels/{version}:predict",
            f"/v1/models/{name}:{version}",
            f"/v1/models/{version}:predict",
            f"/v1/models/{urllib.parse.quote(rng.bytes(8))}:predict",
            f"/v1/models/{name}%3Apredict",
            f"/v1/models/{name}:predict?{version}=1",
            f"/v1/models/{name}:predict#{version}",
            f"//v1//models//{name}:predict",
            f"/v1/models/../models/{name}:predict",
            f"http://127.0.0.1/v1/models/{name}:predict",
            "*",
            "/",
            "/v1/models/",
            "/v1/models/%",
            "/v1/models/%00:predict",
            "/" + "a/" * int(rng.integers(1, 20_000)),
            "/" + "".join(chr(x) for x in rng.integers(33, 127, size=40)),
        ),
    )
    methods = _STANDARD if rng.random() < 0.7 else _ODD_METHODS
    method = draws.choice(rng, methods)
    return HttpAttack(
        (request(method, path, predict_body(target)),),
        method=method,
        also=() if method in _STANDARD else (501,),
    )


ATTACKS = attacks.classes_of(__name__, "rest")
