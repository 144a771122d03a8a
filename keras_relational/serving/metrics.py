"""Counts and times of requests, in the format of Prometheus."""

import contextlib
import time
from collections.abc import Iterator

import prometheus_client
import tensorflow as tf

from keras_relational.serving.errors import STATUS_CODES

_COUNT = ":tensorflow:serving:request_count"
_LATENCY = ":tensorflow:serving:request_latency"


class Metrics:
    """Metrics of predictions, with the names that TensorFlow Serving uses.

    - `:tensorflow:serving:request_count`, by `model_name` and `status`.
    - `:tensorflow:serving:request_latency`, the microseconds of successful
      requests, by `model_name`, `API` and `entrypoint`.

    Requests for another model are not counted: names that clients make up would
    fill the memory.
    """

    CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST

    def __init__(self, model_name: str) -> None:
        self._model_name = model_name
        registry = prometheus_client.CollectorRegistry()
        self._count = prometheus_client.Counter(
            _COUNT,
            "The total number of requests.",
            ["model_name", "status"],
            registry=registry,
        )
        self._latency = prometheus_client.Histogram(
            _LATENCY,
            "Distribution of wall time (in microseconds).",
            ["model_name", "API", "entrypoint"],
            registry=registry,
            buckets=[10 * 1.8**power for power in range(33)],
        )
        # The client also records when each metric was created. TensorFlow
        # Serving does not.
        self._registry = registry.restricted_registry(
            [_COUNT + "_total"]
            + [_LATENCY + part for part in ("_bucket", "_sum", "_count")]
        )

    @contextlib.contextmanager
    def predicting(
        self, name: str, api: str, entrypoint: str
    ) -> Iterator[None]:
        """Counts and times the prediction in a `with` block."""
        start, status = time.monotonic(), "INTERNAL"
        try:
            yield
            status = "OK"
        except tf.errors.OpError as error:
            status = STATUS_CODES[error.error_code].name
            raise
        finally:
            if name == self._model_name:
                self._count.labels(name, status).inc()
                if status == "OK":
                    self._latency.labels(name, api, entrypoint).observe(
                        1e6 * (time.monotonic() - start)
                    )

    def page(self) -> bytes:
        """The page that Prometheus reads."""
        page = prometheus_client.generate_latest(self._registry)
        # The client adds "_total" to each counter. TensorFlow Serving does not.
        return page.replace(f"{_COUNT}_total".encode(), _COUNT.encode())
