"""What every client tells about itself, on both faces: whether it is connected, and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from kafka.errors import IllegalStateError

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.metrics import Metrics
    from kafka.metrics.metric import KafkaMetric

__all__ = ["ClientStatus"]


def _check_metric(metric: object) -> None:
    from kafka.metrics import KafkaMetric

    if not isinstance(metric, KafkaMetric):
        raise TypeError(f"metric must be a kafka.metrics.KafkaMetric, not {type(metric).__name__}")


class ClientStatus:
    """The base of the clients of both faces. A client brings `_connections` and `_measured`, and its own `health`."""

    def __repr__(self) -> str:
        made = vars(self)
        if "config" not in made:  # an error report with variables shows what a constructor that raised has made
            return f"<{type(self).__name__} not made>"
        config, phase = made["config"], made.get("_phase")
        names = " ".join(f"{name}={config[name]!r}" for name in ("client_id", "group_id") if name in config)
        return f"<{type(self).__name__} {names} {self._state() if phase is None else phase.value}>"

    def _state(self) -> str:
        try:
            client = self._connections()
        except AttributeError:
            return "not made"
        return "closed" if client is None or client.closed else "open"

    def bootstrap_connected(self) -> bool:
        """Whether there is a connection to any broker."""
        client = self._connections()
        return client is not None and any(link.ready for link in client.links())

    def metrics(self, raw: bool = False) -> Any:
        """Return the metrics: names and values by group, or with `raw` the metrics themselves; None if they are off."""
        metrics = self._measured()
        if metrics is None:
            return None
        return dict(metrics.metrics if raw else metrics.snapshot())

    def register_metric_for_subscription(self, metric: KafkaMetric) -> None:
        """Push a metric of the application too, to brokers that ask for it (KIP-1076).

        Its name there is ``org.apache.kafka.`` with its group and its name. Without effect with
        enable_metrics_push=False.

        >>> from kafka import KafkaProducer
        >>> from kafka.broker import Broker
        >>> from kafka.metrics import AnonMeasurable, KafkaMetric, MetricConfig, MetricName
        >>> depth = AnonMeasurable(lambda config, now: 3.0)
        >>> with Broker() as broker, KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...     metric = KafkaMetric(MetricName("depth", "shop-queue-metrics"), depth, MetricConfig())
        ...     producer.register_metric_for_subscription(metric)
        """
        _check_metric(metric)
        client = self._connections()
        if client is None:
            raise IllegalStateError("register_metric_for_subscription() needs a client that was started")
        if client.telemetry is not None:
            client.telemetry.add(metric)

    def unregister_metric_from_subscription(self, metric: KafkaMetric) -> None:
        """Push a metric of `register_metric_for_subscription` no more."""
        _check_metric(metric)
        client = self._connections()
        if client is not None and client.telemetry is not None:
            client.telemetry.remove(metric)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: make one in each process that needs one")

    def _connections(self) -> Client | None:
        """Return the client that has the connections; None before it is made."""
        raise NotImplementedError

    def _measured(self) -> Metrics | None:
        """Return the metrics; None if they are off."""
        raise NotImplementedError
