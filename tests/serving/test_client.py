import socket
import sys
import time

import numpy as np
import pytest
from tiny_servable import predict

from keras_relational import serving

IMAGES = np.zeros((1, 36, 36, 3), "uint8")


@pytest.fixture
def silent_address():
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def free_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return f"127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("network", "code"), [("rest", 404), ("grpc", "NOT_FOUND")]
)
def test_refusals_carry_the_explanation(network, code, server):
    with pytest.raises(
        serving.ServingError, match=f"{code}.*'other'.*Served he"
    ) as refused:
        predict(server, network, {"image": IMAGES}, model_name="other")
    assert refused.value.code == code


def test_model_names_are_escaped(server):
    with pytest.raises(serving.ServingError, match="not found: 'a/b c:d'"):
        serving.model_status(server.rest_url, "a/b c:d")


def test_no_server(free_address):
    url = f"http://{free_address}"
    with pytest.raises(ConnectionError, match=f"No server at {url}"):
        serving.predict_rest(url, {"image": IMAGES})
    with pytest.raises(ConnectionError, match=f"No answer from {free_address}"):
        serving.predict_grpc(free_address, {"image": IMAGES})
    with pytest.raises(ConnectionError, match=f"No server at {url}"):
        serving.model_status(url)


def test_timeouts(silent_address):
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"within 0\.2 seconds"):
        serving.predict_rest(
            f"http://{silent_address}", {"image": IMAGES}, timeout=0.2
        )
    with pytest.raises(TimeoutError, match=r"within 0\.2 seconds"):
        serving.predict_grpc(silent_address, {"image": IMAGES}, timeout=0.2)
    with pytest.raises(TimeoutError, match=r"within 0\.2 seconds"):
        serving.model_status(f"http://{silent_address}", timeout=0.2)
    assert time.monotonic() - start < 10


def test_proxies_are_passed_by(server, free_address, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "grpc_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://{free_address}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    inputs = {"image": IMAGES}
    rest, grpc = (predict(server, x, inputs) for x in ("rest", "grpc"))
    np.testing.assert_array_equal(rest["probabilities"], grpc["probabilities"])
    assert rest["probabilities"].dtype == grpc["probabilities"].dtype


@pytest.mark.parametrize("url", ["127.0.0.1:8501", "file:///etc/hosts", ""])
def test_urls_are_http(url):
    with pytest.raises(ValueError, match="must start with http"):
        serving.model_status(url)


def test_without_the_extra(server, monkeypatch):
    name = "tensorflow_serving.apis.predict_pb2"
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"keras_relational\[serving\]"):
        serving.predict_grpc(server.grpc_address, {"image": IMAGES})
    # REST needs no messages.
    assert serving.model_status(server.rest_url) == {1: "AVAILABLE"}
