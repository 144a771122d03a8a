"""The files for the official server, as far as they can be tried without it."""

import pathlib
import re
import runpy
import sys

import pytest
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from keras_relational import serving
from keras_relational.serving import warmup

DEPLOYMENT = pathlib.Path(__file__).parents[2] / "serving"


def test_the_model_config_is_one():
    config = text_format.Parse(
        (DEPLOYMENT / "models.config").read_text(),
        model_server_config_pb2.ModelServerConfig(),
    )
    (model,) = config.model_config_list.config
    assert model.name == "relations"
    assert model.model_version_policy.latest.num_versions == 1
    compose = (DEPLOYMENT / "compose.yaml").read_text()
    assert f":{model.base_path}:ro" in compose


def test_compose_mounts_what_is_there_and_publishes_on_loopback():
    compose = (DEPLOYMENT / "compose.yaml").read_text()
    mounted = re.findall(r"- \./(\S+):/config/(\S+):ro", compose)
    assert {name for name, _ in mounted} == {
        path.name for path in DEPLOYMENT.glob("*.config")
    }
    for name, target in mounted:
        assert f"=/config/{target}\n" in compose
        assert name == target
    ports = re.findall(r'^ +- "(.*:\d+:\d+)"', compose, re.MULTILINE)
    assert ports == ["127.0.0.1:8500:8500", "127.0.0.1:8501:8501"]


def test_warmup_fits_into_a_batch(model_dir):
    batching = (DEPLOYMENT / "batching.config").read_text()
    most = int(re.search(r"max_batch_size { value: (\d+) }", batching)[1])
    for request in warmup.read_warmup_requests(model_dir / "1"):
        size = request.inputs["image"].tensor_shape.dim[0].size
        assert 1 <= size <= most


@pytest.fixture
def run_client(monkeypatch):
    def run(server, *arguments):
        monkeypatch.setattr(
            sys,
            "argv",
            [
                "client.py",
                f"--rest-url={server.rest_url}",
                f"--grpc-address={server.grpc_address}",
                *arguments,
            ],
        )
        runpy.run_path(str(DEPLOYMENT / "client.py"), run_name="__main__")

    return run


def test_client(run_client, server, capsys):
    run_client(server)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Versions of relations: {1: 'AVAILABLE'}"
    assert sum("is right, the model says" in line for line in lines) == 8
    assert "gRPC and REST agree" in lines
    assert sum("Image 0, head" in line for line in lines) == 3


def test_client_with_an_unknown_model(run_client, server):
    with pytest.raises(serving.ServingError, match="not found: 'other'"):
        run_client(server, "--model-name=other")
