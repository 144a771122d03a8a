"""Attacks on the HTTP of REST, byte by byte.

Each public function is a class of attacks.
"""

import zlib

from fuzz import attacks
from fuzz import draws
from fuzz.attacks import HttpAttack
from fuzz.attacks import known_request
from fuzz.attacks import predict_body
from fuzz.attacks import predict_url


def _headed(target, *lines):
    """The head of the known request with other headers, and its body."""
    url, body = predict_url(target), predict_body(target)
    head = "\r\n".join((f"POST {url} HTTP/1.1", "Host: x", *lines, "", ""))
    return head.encode("utf-8", "surrogateescape"), body


def _hidden(target):
    """A request that an unclear length may bring to light."""
    return f"GET /v1/models/{target.name} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def content_lengths(rng, target):
    """Lengths that can be read in two ways."""
    length = len(predict_body(target))
    lines = draws.choice(
        rng,
        (
            (f"Content-Length: {length}", "Content-Length: 0"),
            ("Content-Length: 0", f"Content-Length: {length}"),
            (f"Content-Length: {length}", f"content-length: {length + 1}"),
            (f"Content-Length: {length}", "Transfer-Encoding: chunked"),
            ("Transfer-Encoding: chunked", f"Content-Length: {length}"),
            (f"Content-Length: {length}, {length + 5}",),
            (f"Content-Length: +{length}",),
            (f"Content-Length: -{length}",),
            (f"Content-Length: {length}.0",),
            (f"Content-Length: 0x{length:x}",),
            (f"Content-Length: {length // 1000}_{length % 1000:03d}",),
            (f"Content-Length: {length} {length}",),
            ("Content-Length: ",),
            ("Content-Length: ١٢",),
        ),
    )
    head, body = _headed(target, *lines)
    return HttpAttack((head + body + _hidden(target),), "refusal")


def headers(rng, target):
    """Lines of the head that are none, or should not be."""
    length = len(predict_body(target))
    line = draws.choice(
        rng,
        (
            f"Content-Length : {length}",
            f"Content-Length\t: {length}",
            f" Content-Length: {length}",
            f"Content-Length:\r\n {length}",
            "no colon at all",
            ": without a name",
            f"X: {chr(int(rng.integers(32)))}",
            f"X{chr(int(rng.integers(32)))}: y",
            "X: \udcff\udcfe",
            "Transfer-Encoding : chunked",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding: chunked, identity",
            "Expect: 100-continue",
            "Expect: the impossible",
            "Upgrade: h2c",
            "Connection: upgrade, \x0b",
            "Content-Encoding: gzip",
            "Host: y",
        ),
    )
    expect = "refusal" if "th : " in line or "th\t: " in line else "closing"
    lines = [f"Content-Length: {length}", line]
    if "Content-Length" in line:
        lines = [line]
    head, body = _headed(target, *lines)
    also = (501,) if "Transfer" in line else ()
    return HttpAttack((head + body, "listen", "no more"), expect, also=also)


def header_floods(rng, target):
    magnitude = rng.uniform(0, 4)
    number = int(10**magnitude)
    long = "x" * int(10 ** rng.uniform(0, 6.3 - magnitude))
    lines = draws.choice(
        rng,
        (
            [f"X-{i}: {long}" for i in range(number)],
            [f"X: {long}"] * number,
            [f"{long}: x"] * number,
            [f"Cookie: {long}"] + [" " + long] * number,
        ),
    )
    lines.append(f"Content-Length: {len(predict_body(target))}")
    head, body = _headed(target, *lines)
    return HttpAttack((head + body, "listen", "no more"), "closing")


def unfinished(rng, target):
    """A part of a request, and then no more."""
    content = known_request(target)
    head = content.index(b"\r\n\r\n")
    stop = draws.choice(
        rng, (head, head + 2, head + 3, int(rng.integers(1, len(content))))
    )
    end = draws.choice(rng, ("no more", "close", "reset"))
    return HttpAttack((content[:stop], end), "closing")


def slow(rng, target):
    """Parts of a request with pauses between them, then gone."""
    content = known_request(target)
    steps, start = [], 0
    for _ in range(int(rng.integers(2, 8))):
        stop = start + int(rng.integers(1, 80))
        steps += [content[start:stop], float(rng.uniform(0, 0.05))]
        start = stop
    end = draws.choice(rng, ("no more", "close", "reset"))
    return HttpAttack((*steps, end), "closing")


def pieces(rng, target):
    """The known request, whole, but one piece at a time."""
    content = known_request(target)
    places = sorted(int(rng.integers(len(content))) for _ in range(4))
    steps = []
    for start, stop in zip([0, *places], [*places, None], strict=True):
        steps += [content[start:stop], 0.005]
    return HttpAttack(tuple(steps), "known")


def pipelining(rng, target):
    """Many requests at once; each reply is the known answer."""
    content = known_request(target)
    return HttpAttack((content * int(rng.integers(2, 9)),), "known")


def chunked(rng, target):
    """A body in chunks, as it should be."""
    head, body = _headed(target, "Transfer-Encoding: chunked")
    content, start = b"", 0
    extension = draws.choice(rng, (b"", b";a=b", b' ; a="b"'))
    while start < len(body):
        stop = start + int(rng.integers(1, 10_000))
        content += _chunk(body[start:stop], extension)
        start = stop
    trailer = draws.choice(rng, (b"", b"X: y\r\n"))
    content += b"0\r\n" + trailer + b"\r\n"
    return HttpAttack((head + content,), "known or refusal", also=(501,))


def _chunk(content, extension=b""):
    return b"%x%s\r\n%s\r\n" % (len(content), extension, content)


def broken_chunks(rng, target):
    head, body = _headed(target, "Transfer-Encoding: chunked")
    if rng.random() < 0.1:
        # Proper, but far more chunks than bytes of JSON, which is none.
        many = b"1\r\n{\r\n" * int(rng.integers(1, 50_000)) + b"0\r\n\r\n"
        return HttpAttack((head + many,), "refusal", also=(501,))
    good = _chunk(body)
    content = draws.choice(
        rng,
        (
            good,
            good + b"0\r\n",
            good[:-2] + b"0\r\n\r\n",
            b"-1\r\n" + good,
            b"0x10\r\n" + good,
            b"zz\r\n" + good,
            b"\r\n" + good,
            b"f" * int(rng.integers(8, 5000)) + b"\r\n" + good,
            b"7fffffffffffffff\r\n" + body,
            b"1;" + b"x" * int(rng.integers(1, 10**6)) + b"\r\nx\r\n",
            b"%x\r\n%s\r\n0\r\n\r\n" % (len(body) - 1, body),
            draws.random_bytes(rng, 4096),
        ),
    )
    steps = (head + content + _hidden(target), "listen", "no more")
    return HttpAttack(steps, "refusal", also=(501,))


def absurd_lengths(rng, target):
    """A length that never comes."""
    length = draws.choice(
        rng, (60 * 2**20, 2**31, 2**32, 2**63, 2**64, 10**30, 10**400)
    )
    head, body = _headed(target, f"Content-Length: {length}")
    return HttpAttack((head + body, "listen", "no more"), "refusal")


def early_close(rng, target):
    """Gone before the answer, or in the middle of it."""
    content = known_request(target)
    pause = float(draws.choice(rng, (0, 0.001, 0.01)))
    end = draws.choice(rng, ("close", "reset"))
    return HttpAttack((content, pause, end), "closing")


def garbage(rng, target):
    """No HTTP/1.1 at all."""
    content = known_request(target)
    version = draws.choice(
        rng, (b"HTTP/0.9", b"HTTP/2.0", b"HTTP/9.9", b"HTTP/1.x", b"ICY/1", b"")
    )
    text = draws.choice(
        rng,
        (
            draws.random_bytes(rng, 4096),
            draws.damaged(rng, content[: content.index(b"\r\n\r\n") + 4]),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.bytes(500),
            b"GET /v1/models/x\r\n",
            b"\r\n" * int(rng.integers(1, 1000)) + content,
            b"\n\n" + content.replace(b"\r\n", b"\n"),
            content.replace(b"HTTP/1.1", version, 1),
            content.replace(b" ", b"\t", 2),
            b" " + content,
            b"A" * 200_000,
            zlib.compress(content),
        ),
    )
    return HttpAttack((text, "listen", "no more"), "closing", also=(501, 505))


ATTACKS = attacks.classes_of(__name__, "http")
