"""Versions of a model: damaged ones, and those that come and go."""

import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import grpc
import pytest
from tensorflow_serving.apis import get_model_status_pb2
from tiny_servable import X
from tiny_servable import factor_of
from tiny_servable import predict
from tiny_servable import save_multiplier
from tiny_servable import services

from keras_relational import serving
from keras_relational.serving import served_model
from keras_relational.serving.served_model import ServedModel


@pytest.fixture(autouse=True)
def _look_often(monkeypatch):
    monkeypatch.setattr(served_model, "SECONDS_BETWEEN_LOOKS", 0.05)


def wait_until(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("Waited in vain")


def states(server):
    return serving.model_status(server.rest_url, server.model_name)


def wait_for_looks(monkeypatch, number=3):
    """Waits until the folder was looked at that many times."""
    seen = threading.Semaphore(0)
    look = ServedModel._look

    def counted(model):
        look(model)
        seen.release()

    monkeypatch.setattr(ServedModel, "_look", counted)
    for _ in range(number):
        assert seen.acquire(timeout=30)


DAMAGED = {
    "saved_model.pb": lambda content: content[: len(content) // 2],
    "fingerprint.pb": lambda content: b"damaged",
    "variables/variables.index": lambda content: content[:-10],
    "variables/variables.data-00000-of-00001": lambda content: bytes(
        x ^ 255 for x in content
    ),
    "assets.extra/tf_serving_warmup_requests": lambda content: content[:-5],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_version_is_passed_by(name, tmp_path, capfd):
    save_multiplier(tmp_path, version=1)
    save_multiplier(tmp_path, version=2, factor=3)
    damaged = tmp_path / "2" / name
    damaged.write_bytes(DAMAGED[name](damaged.read_bytes()))
    with serving.serve(tmp_path, "tiny") as server:
        assert server.version == 1
        assert factor_of(server) == 2
        assert states(server) == {2: "END", 1: "AVAILABLE"}
        request = get_model_status_pb2.GetModelStatusRequest(
            model_spec={"name": "tiny", "version": {"value": 2}}
        )
        with services(server) as (_, models):
            (status,) = models.GetModelStatus(request).model_version_status
    assert status.state == status.END
    assert status.status.error_code == grpc.StatusCode.UNKNOWN.value[0]
    errors = capfd.readouterr().err
    assert (
        "Version 2 of 'tiny' does not load and is not served: "
        f"{status.status.error_message}\n" in errors
    )
    assert "Traceback" not in errors


def test_a_new_version_takes_over_and_no_request_is_lost(tmp_path):
    save_multiplier(tmp_path)
    stopped = threading.Event()
    factors = []

    def ask(network):
        while not stopped.is_set():
            factors.append(factor_of(server, network))

    with (
        serving.serve(tmp_path, "tiny") as server,
        concurrent.futures.ThreadPoolExecutor(4) as pool,
    ):
        asking = [pool.submit(ask, x) for x in ("rest", "grpc") * 2]
        try:
            wait_until(lambda: len(factors) > 20)
            save_multiplier(tmp_path, version=2, factor=3)
            wait_until(lambda: factors[-1] == 3)
        finally:
            stopped.set()
        for future in asking:
            future.result()
        assert set(factors) == {2, 3}
        assert server.version == 2
        assert states(server) == {1: "END", 2: "AVAILABLE"}
        with pytest.raises(serving.ServingError, match="not found: 'tiny' v1"):
            predict(server, "rest", {"x": [[1, 2]]}, version=1)


def test_a_version_is_unloaded_when_its_last_request_is_done(tmp_path):
    save_multiplier(tmp_path)
    model = ServedModel(tmp_path, "tiny")

    def states():
        return {
            status.version: status.State.Name(status.state)
            for status in model.status_response("tiny").model_version_status
        }

    with model.watched():
        with model.servable("tiny") as old:
            with model.servable("tiny"):
                save_multiplier(tmp_path, version=2, factor=3)
                wait_until(lambda: model.version == 2)
            assert states() == {1: "UNLOADING", 2: "AVAILABLE"}
            assert old.version == 1
        assert states() == {1: "END", 2: "AVAILABLE"}


def test_a_broken_new_version_is_named_once_until_it_is_mended(
    tmp_path, monkeypatch, capfd
):
    save_multiplier(tmp_path)
    save_multiplier(tmp_path, version=3, factor=3)
    os.rename(tmp_path / "3", tmp_path / "whole")
    with serving.serve(tmp_path, "tiny") as server:
        shutil.copytree(tmp_path / "whole", tmp_path / ".aside")
        (tmp_path / ".aside/saved_model.pb").write_bytes(b"damaged")
        os.rename(tmp_path / ".aside", tmp_path / "3")
        wait_until(lambda: states(server).get(3) == "END")
        wait_for_looks(monkeypatch)
        assert (server.version, factor_of(server)) == (1, 2)
        assert capfd.readouterr().err.count("does not load") == 1
        # As by a slow copy into the folder itself.
        shutil.copy(tmp_path / "whole/saved_model.pb", tmp_path / "3")
        wait_until(lambda: server.version == 3)
        assert factor_of(server) == 3
        assert states(server) == {1: "END", 3: "AVAILABLE"}


def test_the_folder_of_a_version_goes(tmp_path, monkeypatch):
    """As in the real server, it is how to go back to the one before."""
    save_multiplier(tmp_path)
    save_multiplier(tmp_path, version=2, factor=3)
    with serving.serve(tmp_path, "tiny") as server:
        assert server.version == 2
        shutil.rmtree(tmp_path / "2")
        wait_until(lambda: server.version == 1)
        assert factor_of(server) == 2
        assert states(server) == {1: "AVAILABLE", 2: "END"}
        shutil.rmtree(tmp_path / "1")
        wait_for_looks(monkeypatch)
        assert factor_of(server) == 2
        save_multiplier(tmp_path, version=2, factor=5)
        wait_until(lambda: server.version == 2)
        assert factor_of(server) == 5


def test_the_command_serves_tells_of_a_new_version_and_stops(tmp_path):
    save_multiplier(tmp_path)
    command = [sys.executable, "-m", "keras_relational.serving"]
    command += [f"--model-dir={tmp_path}", "--model-name=shapes"]
    with subprocess.Popen(
        [*command, "--rest-port=0", "--grpc-port=0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            rest_url, grpc_address = re.fullmatch(
                r"Serving shapes version 1: REST on (http://127\.0\.0\.1:\d+), "
                r"gRPC on (127\.0\.0\.1:\d+)\n",
                process.stdout.readline(),
            ).groups()
            inputs = {"x": X}
            for outputs in (
                serving.predict_rest(rest_url, inputs, "shapes"),
                serving.predict_grpc(grpc_address, inputs, "shapes"),
            ):
                (y,) = outputs.values()
                assert y.tolist() == (2 * X).tolist()
            save_multiplier(tmp_path, version=2)
            assert (
                process.stdout.readline()
                == "Serving shapes version 2 from now on\n"
            )
            process.send_signal(signal.SIGTERM)
            assert process.stdout.read() == "Stopped\n"
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
