"""One image at a time through the server, beside the SavedModel itself.

The server runs in a process of its own. Clients keep their connections, and
send requests that were encoded before.
"""

import concurrent.futures
import http.client
import json
import tempfile
import time

import grpc
import numpy as np
import tensorflow as tf

from benchmarks.measuring import interleaved
from benchmarks.measuring import seconds_of
from fuzz import servers
from keras_relational import models
from keras_relational import serving
from keras_relational.serving.serving_api import serving_api

NUM_CLIENTS = 8
IMAGE = np.random.default_rng(0).integers(0, 256, (1, 36, 36, 3), "uint8")


def main():
    with tempfile.TemporaryDirectory() as folder:
        serving.export_model(models.from_preset("predinet_between"), folder)
        direct = tf.saved_model.load(f"{folder}/1").signatures
        direct, image = direct["serving_default"], tf.constant(IMAGE)
        log = f"{folder}/server.log"
        with servers.running(folder, "relations", log) as server:
            clients = {
                "the SavedModel, in this process": lambda: (
                    lambda: direct(image=image)["label"].numpy()
                ),
                "over gRPC": lambda: over_grpc(server.grpc),
                "over REST": lambda: over_rest(server.rest),
            }
            asks = [seconds_of(make()) for make in clients.values()]
            times = interleaved(asks, rounds=300)
            for name, seconds in zip(clients, times, strict=True):
                median, late = 1e3 * np.quantile(seconds, (0.5, 0.95))
                print(
                    f"One image, {name}: {median:.2f} ms at the median, "
                    f"{late:.2f} for 95 %",
                    flush=True,
                )
            for name in list(clients)[1:]:
                rate = requests_a_second(clients[name])
                print(
                    f"{NUM_CLIENTS} clients at once, {name}: {rate:,.0f} "
                    "images a second",
                    flush=True,
                )


def over_rest(address):
    """A function that asks over a connection of its own."""
    connection = http.client.HTTPConnection(*address)
    body = json.dumps({"inputs": {"image": IMAGE.tolist()}}).encode()

    def ask():
        connection.request("POST", "/v1/models/relations:predict", body)
        return json.loads(connection.getresponse().read())["outputs"]

    return ask


def over_grpc(grpc_address):
    request = serving_api("predict_pb2").PredictRequest()
    request.model_spec.name = "relations"
    request.inputs["image"].CopyFrom(tf.make_tensor_proto(IMAGE))
    channel = grpc.insecure_channel(grpc_address)
    services = serving_api("prediction_service_pb2_grpc")
    service = services.PredictionServiceStub(channel)
    return lambda: service.Predict(request, timeout=10)


def requests_a_second(make, seconds=5):
    """Of several clients at once, each in a thread."""

    def count(ask):
        number, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            ask()
            number += 1
        return number

    asks = [make() for _ in range(NUM_CLIENTS)]
    for ask in asks:
        ask()
    with concurrent.futures.ThreadPoolExecutor(NUM_CLIENTS) as pool:
        return sum(pool.map(count, asks)) / seconds
