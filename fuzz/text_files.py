"""JSON and tables, and what harms who reads them."""

import json

from fuzz import draws


def make_json(folder):
    content = {"header": {"is_possible": True}, "levels": [[1, 2.5, None]] * 9}
    (folder / "level.json").write_text(json.dumps(content))


def read_json(folder):
    from keras_relational import file_io

    return file_io.read_json(folder / "level.json")


def make_curves(folder):
    rows = [f"{i},{i / 7},{0.5 + i / 100}" for i in range(1, 20)]
    text = "\r\n".join(["updates,minutes,solved", *rows, ""])
    (folder / "curves.csv").write_text(text)


def read_curves(folder):
    from keras_relational import runs

    return runs.read_curves(folder / "curves.csv")


def text_bomb(rng, path):
    number = int(10 ** rng.uniform(3, 6.5))
    text = draws.choice(
        rng,
        ("[", '{"a":', "9", '"', ",", "1,2,3\r\n", "[],", "é", "\x00", "nan,"),
    )
    content = (text * number).encode()[: 10 * 2**20]
    path.write_bytes(draws.choice(rng, (b"", b"[", b"updates\r\n")) + content)
