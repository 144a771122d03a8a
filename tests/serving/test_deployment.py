"""The files for the official server, as far as they can be tried without it."""

import pathlib
import re
import runpy
import sys
import urllib.request

import pytest
import yaml
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from keras_relational import serving
from keras_relational.serving import saved_model_files

DEPLOYMENT = pathlib.Path(__file__).parents[2] / "serving"


IMAGE = "tensorflow/serving:2.20.0"


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((DEPLOYMENT / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def kubernetes():
    """The objects of the manifest, by kind."""
    text = (DEPLOYMENT / "kubernetes.yaml").read_text()
    return {item["kind"]: item for item in yaml.safe_load_all(text)}


@pytest.fixture(scope="module")
def container(kubernetes):
    spec = kubernetes["Deployment"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return container


def model_config():
    text = (DEPLOYMENT / "models.config").read_text()
    config = text_format.Parse(
        text, model_server_config_pb2.ModelServerConfig()
    )
    (model,) = config.model_config_list.config
    return model


def test_the_model_config_is_one():
    assert model_config().name == "relations"
    assert model_config().model_version_policy.latest.num_versions == 1


def test_the_image_is_the_same_everywhere(compose, container):
    assert compose["services"]["tensorflow-serving"]["image"] == IMAGE
    assert container["image"] == IMAGE
    assert f"`{IMAGE}`" in (DEPLOYMENT / "README.md").read_text()


def test_compose_mounts_what_is_there_and_publishes_on_loopback(compose):
    (service,) = compose["services"].values()
    model, *mounted = service["volumes"]
    assert model.endswith(f":{model_config().base_path}:ro")
    configs = sorted(path.name for path in DEPLOYMENT.glob("*.config"))
    assert sorted(mounted) == [f"./{x}:/config/{x}:ro" for x in configs]
    assert service["ports"] == ["127.0.0.1:8500:8500", "127.0.0.1:8501:8501"]


def test_the_cluster_runs_what_compose_runs(compose, kubernetes, container):
    assert (
        container["args"]
        == (compose["services"]["tensorflow-serving"]["command"])
    )
    mounted = {x["name"]: x["mountPath"] for x in container["volumeMounts"]}
    assert all(x["readOnly"] for x in container["volumeMounts"])
    assert mounted == {"model": model_config().base_path, "config": "/config"}
    template = kubernetes["Deployment"]["spec"]["template"]
    volumes = {x["name"]: x for x in template["spec"]["volumes"]}
    assert volumes.keys() == mounted.keys()
    name = volumes["config"]["configMap"]["name"]
    text = (DEPLOYMENT / "kubernetes.yaml").read_text()
    command = re.search(r"#     (kubectl create .*\\\n.*)\n", text)[1]
    assert f"configmap {name} " in command
    files = re.findall(r"--from-file=(\S+)", command)
    assert all((DEPLOYMENT / x).exists() for x in files)
    assert {f"/config/{x}" for x in files} == {
        x.split("=")[1] for x in container["args"] if "=/config/" in x
    }


def test_the_ports_of_the_cluster_agree(kubernetes, container):
    ports = {x["name"]: x["containerPort"] for x in container["ports"]}
    assert ports == {"grpc": 8500, "rest": 8501}
    service = kubernetes["Service"]["spec"]
    assert {x["name"]: x["port"] for x in service["ports"]} == ports
    assert all(x["targetPort"] == x["name"] for x in service["ports"])
    template = kubernetes["Deployment"]["spec"]["template"]
    for labels in (
        service["selector"],
        kubernetes["Deployment"]["spec"]["selector"]["matchLabels"],
    ):
        assert labels.items() <= template["metadata"]["labels"].items()
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["tcpSocket"]["port"] in ports
    annotations = template["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(ports["rest"])


def test_probe_and_metrics_are_answered(kubernetes, container, server):
    """By the stand-in, under the URLs of the real server."""
    probe = container["readinessProbe"]["httpGet"]
    assert probe["port"] == "rest"
    assert probe["path"] == f"/v1/models/{server.model_name}/metadata"
    assert server.model_name == model_config().name
    with urllib.request.urlopen(server.rest_url + probe["path"]) as reply:
        assert reply.status == 200
    template = kubernetes["Deployment"]["spec"]["template"]
    path = template["metadata"]["annotations"]["prometheus.io/path"]
    text = (DEPLOYMENT / "monitoring.config").read_text()
    assert f'path: "{path}"' in text
    with urllib.request.urlopen(server.rest_url + path) as reply:
        assert reply.status == 200


def test_warmup_fits_into_a_batch(model_dir):
    batching = (DEPLOYMENT / "batching.config").read_text()
    most = int(re.search(r"max_batch_size { value: (\d+) }", batching)[1])
    for request in saved_model_files.read_warmup_requests(model_dir / "1"):
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
