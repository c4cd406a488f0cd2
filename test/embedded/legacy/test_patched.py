"""Methods that a subclass or a tracer replaces, and private names that tracers read: our own paths use them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from kafka import KafkaClient, KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from kafka.errors import IllegalStateError, MessageSizeTooLargeError
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import TopicPartition

VALUES = [b"%d" % number for number in range(5)]


pytestmark = pytest.mark.kafka_broker(topics={"events": 1})


@pytest.fixture
def producer(broker: Broker) -> Iterator[KafkaProducer]:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as made:
        yield made


@pytest.fixture
def consumer(broker: Broker) -> Iterator[KafkaConsumer]:
    broker.append_many("events", VALUES)
    with KafkaConsumer(
        "events",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="group",
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    ) as made:
        yield made


def watched(monkeypatch: pytest.MonkeyPatch, cls: type, name: str) -> list[Any]:
    """Replace a method by one that notes what it returns."""
    seen: list[Any] = []
    original: Callable[..., Any] = getattr(cls, name)

    @functools.wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        seen.append(result)
        return result

    monkeypatch.setattr(cls, name, replacement)
    return seen


# The consumer


def test_an_iteration_calls_a_replaced_next(consumer: KafkaConsumer, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(monkeypatch, KafkaConsumer, "__next__")
    assert [record.value for record in islice(consumer, len(VALUES))] == VALUES
    assert [record.value for record in seen] == VALUES


@pytest.mark.parametrize("name", ["poll", "_poll_once"])
def test_an_iteration_calls_a_replaced_poll(
    consumer: KafkaConsumer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    seen = watched(monkeypatch, KafkaConsumer, name)
    found = []
    for record in islice(consumer, len(VALUES)):
        found.append(record.value)
        assert consumer.position(TopicPartition("events", 0)) == record.offset + 1
    assert found == VALUES
    assert [r.value for batch in seen for records in batch.values() for r in records] == VALUES


def test_an_iteration_shows_each_record_to_one_of_two_tracers(
    consumer: KafkaConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled = watched(monkeypatch, KafkaConsumer, "poll")
    seen = watched(monkeypatch, KafkaConsumer, "__next__")
    assert [record.value for record in islice(consumer, len(VALUES))] == VALUES
    assert ([record.value for record in seen], polled) == (VALUES, [])


def test_poll_calls_a_replaced_poll_once(consumer: KafkaConsumer, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = KafkaConsumer._poll_once

    def replacement(this: Any, timeout_ms: float, max_records: int | None, update_offsets: bool = True) -> Any:
        calls.append((max_records, update_offsets))
        return original(this, timeout_ms, max_records, update_offsets=update_offsets)

    monkeypatch.setattr(KafkaConsumer, "_poll_once", replacement)
    (records,) = consumer.poll(10_000, max_records=3).values()
    assert [record.value for record in records] == VALUES[:3]
    assert calls == [(3, True)]


def test_a_subclass_that_overrides_poll_or_next_sees_each_record(broker: Broker) -> None:
    class Upper(KafkaConsumer):
        def poll(self, *args: Any, **kwargs: Any) -> Any:
            found = super().poll(*args, **kwargs)
            return {tp: [r._replace(value=b"seen " + r.value) for r in records] for tp, records in found.items()}

    class Counting(KafkaConsumer):
        count = 0

        def __next__(self) -> Any:
            record = super().__next__()
            self.count += 1
            return record

    broker.append_many("events", VALUES)
    options = {
        "bootstrap_servers": broker.bootstrap_servers,
        "auto_offset_reset": "earliest",
        "consumer_timeout_ms": 30_000,
    }
    with Upper("events", **options) as upper:
        assert [record.value for record in islice(upper, len(VALUES))] == [b"seen " + value for value in VALUES]
    with Counting("events", **options) as counting:
        assert [record.value for record in islice(counting, len(VALUES))] == VALUES
        assert counting.count == len(VALUES)


def test_a_consumer_without_patches_iterates_without_poll(consumer: KafkaConsumer) -> None:
    assert iter(consumer) is not consumer
    assert [record.value for record in islice(consumer, len(VALUES))] == VALUES


def test_the_private_names_of_a_consumer(consumer: KafkaConsumer) -> None:
    assert next(consumer).value == VALUES[0]
    assert consumer._subscription.subscription == {"events"}
    assert consumer._subscription._user_assignment == set()
    assert consumer._subscription.assignment[TopicPartition("events", 0)].position == 1
    assert consumer._client.cluster.topics() == {"events"}
    assert consumer._coordinator.group_id == "group"
    assert consumer._fetcher is not None
    assert not consumer._closed
    consumer.close()
    assert consumer._closed


# The producer


def test_send_many_calls_a_replaced_send(
    broker: Broker, producer: KafkaProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watched(monkeypatch, KafkaProducer, "send")
    producer.send_many("events", [b"one", (b"key", b"two")]).get(10)
    assert len(seen) == 2
    assert [(record.key, record.value) for record in broker.records("events")] == [(None, b"one"), (b"key", b"two")]


def test_a_send_that_is_replaced_on_the_object_is_called(broker: Broker, producer: KafkaProducer) -> None:
    topics = []
    original = producer.send

    def send(topic: str, *args: Any, **kwargs: Any) -> Any:
        topics.append(topic)
        return original(topic, *args, **kwargs)

    producer.send = send  # type: ignore[method-assign]
    producer.send_many("events", [b"one"]).get(10)
    assert topics == ["events"]


def test_threads_see_a_send_that_is_replaced_meanwhile(
    broker: Broker, producer: KafkaProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer.send("events", b"before").get(10)
    seen = watched(monkeypatch, KafkaProducer, "send")
    threads = [threading.Thread(target=producer.send, args=("events", b"x")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.flush(10)
    assert len(seen) == 4
    assert len(broker.records("events")) == 5


def test_the_private_names_of_a_producer(broker: Broker, producer: KafkaProducer) -> None:
    future = producer.send("events", b"x")
    assert future._produce_future.topic_partition == TopicPartition("events", 0)
    assert future._produce_future.wait(10)
    controller = producer._metadata.controller
    assert (controller[1], controller[2]) == ("127.0.0.1", broker.port())
    assert producer._metadata.partitions_for_topic("events") == {0}
    assert producer._partition("events", None, None, b"x", None, b"x") == 0
    assert producer._partition("events", 7, None, b"x", None, b"x") == 7
    assert producer._wait_on_metadata("events", 10) == {0}
    assert producer._serialize(None, "events", b"x") == b"x"
    assert producer._serialize(str.encode, "events", "x") == b"x"
    assert producer._client.cluster is producer._metadata
    assert producer._sender is not None
    assert producer._metrics is not None
    assert not producer._closed


def test_the_configuration_of_a_running_client(
    broker: Broker, producer: KafkaProducer, consumer: KafkaConsumer
) -> None:
    for client in (producer, consumer):
        assert client.config.get("bootstrap_servers") == [broker.bootstrap_servers]
        assert ";".join(client.config["bootstrap_servers"]) == broker.bootstrap_servers
    consumer.config["max_poll_records"] = 2
    assert [len(records) for records in consumer.poll(10_000).values()] == [2]


# The exceptions of wrong calls, by the types that the manual of kafka-python states


def test_wrong_calls_raise_what_the_manual_says(broker: Broker) -> None:
    partition = TopicPartition("events", 0)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        for call in (
            lambda: consumer.seek(partition, 1),
            consumer.seek_to_beginning,
            consumer.seek_to_end,
            consumer.subscribe,
        ):
            with pytest.raises(AssertionError):
                call()
        with pytest.raises(TypeError, match="ConsumerRebalanceListener"):
            consumer.subscribe(["events"], listener=object())
        consumer.subscribe("events")
        assert consumer.subscription() == {"events"}
        consumer.unsubscribe()
        consumer.assign([partition])
        for offset in (-1, "1", 1.5, None):
            with pytest.raises(AssertionError, match="offset must be"):
                consumer.seek(partition, offset)  # type: ignore[arg-type]
        with pytest.raises(IllegalStateError):
            consumer.subscribe(["events"])
        with pytest.raises(ValueError, match="timestamps"):
            consumer.offsets_for_times({partition: -5})
    with (
        KafkaClient(bootstrap_servers=broker.bootstrap_servers) as client,
        pytest.raises(AssertionError, match="no broker has the id 77"),
    ):
        client.send(77, MetadataRequest[1]([]))


def test_a_record_that_is_too_large_fails_its_future(producer: KafkaProducer) -> None:
    future = producer.send("events", b"x" * 2_000_000)
    with pytest.raises(MessageSizeTooLargeError, match="max_request_size"):
        future.get(10)
    assert future.failed()


def test_a_record_without_key_and_value_is_sent(broker: Broker, producer: KafkaProducer) -> None:
    producer.send("events").get(10)
    assert [(record.key, record.value) for record in broker.records("events")] == [(None, None)]
