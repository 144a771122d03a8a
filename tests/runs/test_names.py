import pathlib
import re

import numpy as np

from keras_relational import runs

DEFAULTS = {"rate": 0.1, "size": None, "masked": False, "folder": None}


def test_options_in_a_name():
    for given, expected in (
        ({}, "sums"),
        ({"rate": 0.1}, "sums"),
        ({"rate": 0.0, "size": 3}, "sums-rate0.0-size3"),
        ({"rate": 1.0, "masked": True}, "sums-rate1.0-masked"),
        ({"size": [1, 3]}, "sums-size1+3"),
        ({"seed": 0, "size": 3}, "sums-size3-seed0"),
        # A path does not tell the files in it: their digest does.
        ({"folder": pathlib.Path("a/b")}, "sums"),
        ({"folder": [pathlib.Path("a/b")]}, "sums"),
    ):
        arguments = {**DEFAULTS, **given}
        assert runs.run_name("sums", arguments, DEFAULTS) == expected


def test_a_name_without_options_and_with_digests():
    arguments = {**DEFAULTS, "rate": 0.5, "size": 4, "seed": 2}
    name = runs.run_name(
        "sums",
        arguments,
        DEFAULTS,
        always=["size"],
        leave_out=["rate"],
        data={"published": "1a2b3c4d"},
    )
    assert name == "sums-4-published_1a2b3c4d-seed2"


def test_data_digest_tells_values_types_and_shapes_apart():
    zeros = np.zeros((2, 3), "uint8")
    ones = np.ones((2, 3), "uint8")
    data = [
        [zeros],
        [ones],
        [zeros, ones],
        [ones, zeros],
        [zeros.T],
        [zeros.astype("int8")],
        [["a", "b"]],
        [["a", "c"]],
        [np.uint8(0)],
        [zeros[:0]],
    ]
    digests = [runs.data_digest(*arrays) for arrays in data]
    assert len(set(digests)) == len(data)
    assert digests[0] == runs.data_digest(np.asfortranarray(zeros))
    assert all(re.fullmatch("[0-9a-f]{8}", digest) for digest in digests)
