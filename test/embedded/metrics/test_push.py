"""KIP-714 on both faces: clients push the metrics that brokers ask for, as Java's do, and nothing where none ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, KafkaShareConsumer
from kafka.admin import ConfigResource
from kafka.broker import Broker
from kafka.codec import decompressor
from kafka.errors import IllegalStateError, UnsupportedVersionError
from kafka.metrics import AnonMeasurable, KafkaMetric, MetricConfig, MetricName
from test.embedded.faces import AIOConsumer, AIOProducer, AIOShareConsumer

INTERVAL_MS = 200
PREFIX = "org.apache.kafka."
PLUGIN = {"metric.reporters": "com.example.Reporter"}
Make = Callable[..., Any]
KINDS = {
    "producer": (KafkaProducer, AIOProducer),
    "consumer": (KafkaConsumer, AIOConsumer),
    "share": (KafkaShareConsumer, AIOShareConsumer),
}
#: What KIP-714 requires of each client.
REQUIRED = {
    "producer": {
        "producer.connection.creation.rate", "producer.connection.creation.total", "producer.node.request.latency.avg",
        "producer.node.request.latency.max", "producer.produce.throttle.time.avg", "producer.produce.throttle.time.max",
        "producer.record.queue.time.avg", "producer.record.queue.time.max",
    },
    "consumer": {
        "consumer.connection.creation.rate", "consumer.connection.creation.total", "consumer.node.request.latency.avg",
        "consumer.node.request.latency.max", "consumer.poll.idle.ratio.avg", "consumer.coordinator.commit.latency.avg",
        "consumer.coordinator.commit.latency.max", "consumer.coordinator.assigned.partitions",
        "consumer.coordinator.rebalance.latency.avg", "consumer.coordinator.rebalance.latency.max",
        "consumer.coordinator.rebalance.latency.total", "consumer.fetch.manager.fetch.latency.avg",
        "consumer.fetch.manager.fetch.latency.max",
    },
    "share": {
        "consumer.share.connection.creation.total", "consumer.share.fetch.manager.fetch.latency.avg",
        "consumer.share.fetch.manager.acknowledgements.send.total", "consumer.share.coordinator.heartbeat.rate",
    },
}  # fmt: skip


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"orders": 1}, "configs": PLUGIN}


@pytest.fixture
def broker(kafka_broker: Broker) -> Broker:
    with KafkaAdminClient(bootstrap_servers=kafka_broker.bootstrap_servers, enable_metrics_push=False) as admin:
        admin.alter_configs([ConfigResource("GROUP", "g", {"share.auto.offset.reset": "earliest"})])
    return kafka_broker


def subscribe(broker: Broker, metrics: str = "*", interval_ms: int = INTERVAL_MS) -> None:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, enable_metrics_push=False) as admin:
        resource = ConfigResource("client_metrics", "all", {"metrics": metrics, "interval.ms": interval_ms})
        admin.alter_configs([resource])


@pytest.fixture(params=[0, 1], ids=["threads", "asyncio"])
def make(request: pytest.FixtureRequest, broker: Broker) -> Iterator[Make]:
    """Make a client of a kind on the face of the test."""
    with ExitStack() as opened:

        def made(kind: str = "producer", **options: Any) -> Any:
            chosen = {"bootstrap_servers": broker.bootstrap_servers}
            if kind != "producer":
                chosen["group_id"] = "g"
            if kind == "consumer":
                chosen["auto_offset_reset"] = "earliest"
            topics = () if kind == "producer" else ("orders",)
            client = KINDS[kind][request.param](*topics, **{**chosen, **options})
            opened.callback(client.close)
            return client

        yield made


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + 30
    while not (found := condition()):
        assert time.monotonic() < deadline, f"no {what} in 30 s"
        time.sleep(0.01)
    return found


def requests(broker: Broker, name: str) -> list[Any]:
    return [seen.request for seen in tuple(broker.requests) if seen.name == name]


def pushed(broker: Broker) -> Any:
    """What the one client has pushed last, of some metrics."""
    return next((one for one in broker.client_metrics().values() if one.points), None)


def values(found: Any) -> dict[str, float]:
    return {point.name.removeprefix(PREFIX): point.value for point in found.points}


def last_push(broker: Broker, instance: Any) -> Any:
    """Wait for the push of close(), which waits for its answer a second at most: a busy broker may take longer."""

    def ended() -> Any:
        found = broker.client_metrics().get(instance)
        return found if found is not None and found.terminating else None

    return wait_for(ended, "last push")


def use(client: Any, kind: str, broker: Broker) -> None:
    """Let a client do what its metrics are about."""
    if kind == "producer":
        client.send("orders", b"x")
        client.flush()
        return
    broker.append("orders", b"x")
    wait_for(lambda: client.poll(500), "record")
    client.commit()


@pytest.mark.parametrize("kind", list(KINDS))
def test_required_metrics_come_with_java_s_names_and_labels(broker: Broker, make: Make, kind: str) -> None:
    subscribe(broker)
    client = make(kind, client_id="me", **({} if kind == "producer" else {"client_rack": "b1"}))
    use(client, kind, broker)

    def all_of_them() -> Any:
        found = pushed(broker)
        return found if found is not None and values(found).keys() >= REQUIRED[kind] else None

    found = wait_for(all_of_them, "push with all metrics")
    assert (found.client_id, found.is_delta, found.terminating) == ("me", True, False)
    assert all(point.name.startswith(PREFIX) for point in found.points)
    latencies = [point for point in found.points if point.name.endswith("node.request.latency.avg")]
    assert {"node_id": "node-1"} in [point.labels for point in latencies]
    assert not any("client_id" in point.labels or "client-id" in point.labels for point in found.points)
    if kind != "producer":
        assert found.resource["client_rack"] == "b1"
        assert found.resource["group_id"] == "g"
        assert found.resource["group_member_id"]
    assert client.client_instance_id() in broker.client_metrics()


def test_o10_a_payload_makes_few_calls_for_each_metric(broker: Broker, make: Make) -> None:
    """O10: 0.3 ms of CPU for a consumer: what does not change between pushes is not made again."""
    payloads: list[int] = []
    is_inside = False

    def count(frame: Any, event: str, _: object) -> None:
        nonlocal is_inside
        if frame.f_code.co_name == "_payload" and event in {"call", "return"}:
            is_inside = event == "call"
            payloads.extend([0] * is_inside)
        elif is_inside and event in {"call", "c_call"}:
            payloads[-1] += 1

    subscribe(broker)
    threading.setprofile(count)
    try:
        client = make("consumer")
    finally:
        threading.setprofile(None)
    use(client, "consumer", broker)
    wait_for(lambda: len(payloads) > 3, "third payload")
    assert payloads[2] < 40 * len(pushed(broker).points), payloads  # 26 for each; it was 73


def test_sums_are_since_the_last_push(broker: Broker, make: Make) -> None:
    subscribe(broker, "org.apache.kafka.producer.record.send.total")
    sums: list[float] = []

    def take(exchange: Any) -> None:
        found = decode(exchange.request)
        sums.extend(point.value for point in found.points)

    broker.intercept("PushTelemetry", take)
    producer = make()
    for count in (3, 0, 2):
        for _ in range(count):
            producer.send("orders", b"x")
        producer.flush()
        before = len(sums)
        wait_for(lambda before=before: len(sums) > before + 1, "push")
    assert sum(sums) == 5
    assert 0.0 in sums


def decode(request: Any) -> Any:
    from kafka.protocol.otlp import decode_metrics

    data, codec = bytes(request.metrics), request.compression_type
    return decode_metrics(decompressor(codec)(data, 1 << 20) if codec else data)


def test_a_broker_that_wants_sums_since_the_start_gets_them(broker: Broker, make: Make) -> None:
    subscribe(broker, "org.apache.kafka.producer.record.send.total")

    def cumulative(exchange: Any) -> Any:
        exchange.reply.delta_temporality = False
        return exchange.reply

    broker.intercept("GetTelemetrySubscriptions", cumulative)
    producer = make()
    use(producer, "producer", broker)
    count = len(requests(broker, "PushTelemetry"))
    wait_for(lambda: len(requests(broker, "PushTelemetry")) > count + 2, "third push")
    (point,) = pushed(broker).points
    assert (point.value, point.is_sum, pushed(broker).is_delta) == (1.0, True, False)


def test_close_pushes_for_the_last_time(broker: Broker, make: Make) -> None:
    subscribe(broker, interval_ms=60_000)
    producer = make()
    wait_for(lambda: requests(broker, "GetTelemetrySubscriptions"), "question")
    instance = producer.client_instance_id()
    use(producer, "producer", broker)
    producer.close()
    found = last_push(broker, instance)
    assert values(found)["producer.record.send.total"] == 1.0
    assert len(requests(broker, "PushTelemetry")) == 1


@pytest.mark.parametrize("kind", list(KINDS))
def test_close_waits_a_second_at_most_for_a_broker_that_is_silent(broker: Broker, make: Make, kind: str) -> None:
    subscribe(broker, interval_ms=60_000)
    client = make(kind)
    client.client_instance_id()
    with broker.delay("PushTelemetry", 60):
        begun = time.monotonic()
        client.close()
        assert time.monotonic() - begun < 20, "one second, and what a busy machine takes"
        wait_for(lambda: len(requests(broker, "PushTelemetry")) == 1, "last push")


def test_only_what_is_asked_for_is_pushed(broker: Broker, make: Make) -> None:
    subscribe(broker, "org.apache.kafka.producer.record.,org.apache.kafka.producer.node")
    producer = make()
    use(producer, "producer", broker)
    found = wait_for(lambda: pushed(broker), "push")
    assert {name.split(".")[1] for name in values(found)} == {"record", "node"}


def test_a_subscription_that_nothing_matches_gets_empty_pushes(broker: Broker, make: Make) -> None:
    subscribe(broker, "com.example.")
    make()
    request = wait_for(lambda: requests(broker, "PushTelemetry"), "push")[0]
    assert (bytes(request.metrics), request.compression_type) == (b"", 0)


def test_a_client_that_is_asked_for_nothing_asks_again_after_the_interval(broker: Broker, make: Make) -> None:
    def soon(exchange: Any) -> Any:
        exchange.reply.push_interval_ms = 50
        exchange.reply.error_code = 0
        return exchange.reply

    broker.intercept("GetTelemetrySubscriptions", soon)
    make()
    wait_for(lambda: len(requests(broker, "GetTelemetrySubscriptions")) > 2, "third question")
    assert not requests(broker, "PushTelemetry")


def test_a_change_of_the_subscription_is_taken_at_once(broker: Broker, make: Make) -> None:
    subscribe(broker, "org.apache.kafka.producer.record.")
    producer = make()
    use(producer, "producer", broker)
    wait_for(lambda: pushed(broker), "push")
    instance = producer.client_instance_id()
    subscribe(broker, "org.apache.kafka.producer.batch.")

    def others() -> bool:
        found = pushed(broker)
        return found is not None and all("batch" in name for name in values(found))

    wait_for(others, "push of others")
    assert producer.client_instance_id() == instance
    assert len(requests(broker, "GetTelemetrySubscriptions")) == 2


@pytest.mark.parametrize(("accepted", "codec"), [([], 0), ([1], 1), ([99, 4, 1], 4)])
def test_the_first_compression_that_both_have(broker: Broker, make: Make, accepted: list[int], codec: int) -> None:
    subscribe(broker)

    def only(exchange: Any) -> Any:
        exchange.reply.accepted_compression_types = accepted
        return exchange.reply

    broker.intercept("GetTelemetrySubscriptions", only)
    make()
    request = wait_for(lambda: requests(broker, "PushTelemetry"), "push")[0]
    assert request.compression_type == codec
    assert decode(request).points


@pytest.mark.parametrize("error", ["TELEMETRY_TOO_LARGE", "THROTTLING_QUOTA_EXCEEDED"])
def test_after_an_error_that_passes_the_next_push_comes_in_time(broker: Broker, make: Make, error: str) -> None:
    subscribe(broker)
    broker.fail("PushTelemetry", error, times=1)
    make()
    wait_for(lambda: len(requests(broker, "PushTelemetry")) > 1, "second push")
    assert len(requests(broker, "GetTelemetrySubscriptions")) == 1


@pytest.mark.parametrize("error", ["UNKNOWN_SUBSCRIPTION_ID", "UNSUPPORTED_COMPRESSION_TYPE"])
def test_after_these_the_client_asks_again(broker: Broker, make: Make, error: str) -> None:
    subscribe(broker)
    broker.fail("PushTelemetry", error, times=1)
    make()
    wait_for(lambda: len(requests(broker, "GetTelemetrySubscriptions")) > 1, "second question")


@pytest.mark.parametrize("api", ["PushTelemetry", "GetTelemetrySubscriptions"])
def test_after_others_it_stops_and_says_so_once(
    broker: Broker, make: Make, api: str, caplog: pytest.LogCaptureFixture
) -> None:
    subscribe(broker)
    broker.fail(api, "INVALID_REQUEST")
    producer = make()
    wait_for(lambda: "No client metrics are pushed from now on" in caplog.text, "warning")
    use(producer, "producer", broker)
    time.sleep(3 * INTERVAL_MS / 1000)
    assert len(requests(broker, api)) == 1
    assert caplog.text.count("No client metrics") == 1


def test_a_payload_that_is_too_large_goes_without_the_nodes(broker: Broker, make: Make) -> None:
    most = 1 << 20

    def limited(exchange: Any) -> Any:
        exchange.reply.accepted_compression_types = []
        exchange.reply.telemetry_max_bytes = most
        return exchange.reply

    def latest(*, with_nodes: bool) -> Any:
        request = next(iter(requests(broker, "PushTelemetry")[-1:]), None)
        if request is None or any(point.labels for point in decode(request).points) is not with_nodes:
            return None
        return request

    broker.intercept("GetTelemetrySubscriptions", limited)
    subscribe(broker)
    use(make(), "producer", broker)
    most = len(wait_for(lambda: latest(with_nodes=True), "push with nodes").metrics) - 1
    subscribe(broker, interval_ms=INTERVAL_MS + 1)  # so that the client asks again
    request = wait_for(lambda: latest(with_nodes=False), "push without nodes")
    assert len(request.metrics) <= most
    assert decode(request).points


def test_metrics_of_the_application_are_pushed(broker: Broker, make: Make) -> None:
    subscribe(broker, "org.apache.kafka.shop.")
    name = MetricName("depth", "shop-queue-metrics", tags={"queue-name": "in"})
    metric = KafkaMetric(name, AnonMeasurable(lambda _config, _now: 3.0), MetricConfig())
    broken = KafkaMetric(MetricName("b", "shop-metrics"), AnonMeasurable(lambda _config, _now: 1 / 0), MetricConfig())
    client = make("consumer")
    for one in (metric, broken):
        client.register_metric_for_subscription(one)
    (point,) = wait_for(lambda: pushed(broker), "push").points
    assert (point.name, point.value, point.labels) == ("org.apache.kafka.shop.queue.depth", 3.0, {"queue_name": "in"})
    client.unregister_metric_from_subscription(metric)
    wait_for(lambda: not pushed(broker), "push without it")


def test_switched_off_nothing_is_sent(broker: Broker, make: Make) -> None:
    subscribe(broker)
    for options in ({"enable_metrics_push": False}, {"metrics_enabled": False}):
        client = make(**options)
        use(client, "producer", broker)
        with pytest.raises(IllegalStateError, match="enable_metrics_push"):
            client.client_instance_id()
    assert not requests(broker, "GetTelemetrySubscriptions")


@pytest.mark.parametrize("kind", list(KINDS))
def test_brokers_without_a_plugin_see_nothing(make: Make, kind: str) -> None:
    with Broker(topics={"orders": 1}) as plain:
        client = make(kind, bootstrap_servers=plain.bootstrap_servers)
        with pytest.raises(UnsupportedVersionError, match=r"needs Kafka 3\.7, and brokers with a plugin"):
            client.client_instance_id()
        assert client._core.client.telemetry._task is None if hasattr(client, "_core") else True
        assert not requests(plain, "GetTelemetrySubscriptions")
        client.close()


def test_the_administrator_pushes_too(broker: Broker) -> None:
    subscribe(broker)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, client_id="boss") as admin:
        found = wait_for(lambda: pushed(broker), "push")
        assert found.client_id == "boss"
        assert "admin.client.request.rate" in values(found) or "admin.request.rate" in values(found), values(found)
        instance = admin.client_instance_id()
    last_push(broker, instance)
