"""What a consumer comes to want while a request for metadata is under way, or is refused at first, it gets as well."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.broker.faults import Exchange
from kafka.cluster import ClusterMetadata
from kafka.consumer import KafkaConsumer
from kafka.errors import LeaderNotAvailableError, UnknownTopicOrPartitionError
from test.embedded.holding import held_up

from .conftest import MakeConsumer
from .reading import TIMEOUT, fill, read, tp

FACES = "both"


def cluster_of(consumer: KafkaConsumer) -> ClusterMetadata:
    core = consumer._core
    assert core is not None
    return core.client.cluster


def poll_until(consumer: KafkaConsumer, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, consumer.health()
        consumer.poll(timeout_ms=20)


def asked_for(broker: Broker) -> list[Any]:
    """Return which topics each request for metadata has named, None for all."""
    seen = [seen.request.topics for seen in broker.requests if seen.name == "Metadata"]
    return [topics if topics is None else {topic.name for topic in topics} for topics in seen]


@contextmanager
def metadata_under_way(broker: Broker, consumer: KafkaConsumer) -> Iterator[Callable[[], None]]:
    """Have a request for metadata wait at the broker until it is let go, or until the end of the block."""
    with held_up(broker, "Metadata") as let_go:
        broker.forget_requests()
        cluster_of(consumer).request_update()
        poll_until(consumer, lambda: asked_for(broker))
        yield let_go


def test_topics_subscribed_to_while_metadata_is_under_way_are_read(broker: Broker, make_consumer: MakeConsumer) -> None:
    broker.create_topic("other")
    broker.append("other", b"there")
    consumer = make_consumer("events", fetch_max_wait_ms=50)
    poll_until(consumer, consumer.assignment)
    with metadata_under_way(broker, consumer):
        consumer.subscribe(["other"])
        poll_until(consumer, lambda: cluster_of(consumer).wanted_topics == {"other"})
    assert [record.value for record in read(consumer, 1)] == [b"there"]
    assert asked_for(broker) == [{"events"}, {"other"}]


def test_offsets_of_another_topic_are_looked_up_without_asking_about_the_others(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    broker.create_topic("other")
    broker.append("other", b"there")
    consumer = make_consumer("events", fetch_max_wait_ms=50)
    poll_until(consumer, consumer.assignment)
    broker.forget_requests()
    assert consumer.end_offsets([tp(0, "other")]) == {tp(0, "other"): 1}
    assert asked_for(broker) == [{"other"}]


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda consumer: consumer.topics(), {"events", "other"}),
        (lambda consumer: consumer.partitions_for_topic("other"), {0, 1, 2}),
    ],
    ids=["topics", "partitions_for_topic"],
)
@pytest.mark.one_face  # aiokafka's partitions_for_topic() does not wait
def test_topics_listed_while_metadata_is_under_way_are_complete(
    broker: Broker, make_consumer: MakeConsumer, ask: Callable[[KafkaConsumer], object], answer: object
) -> None:
    broker.create_topic("other", 3)
    consumer = make_consumer("events", fetch_max_wait_ms=50)
    poll_until(consumer, consumer.assignment)
    cluster = cluster_of(consumer)
    with metadata_under_way(broker, consumer) as let_go:
        before = cluster.wanted_version

        def asked() -> None:
            """The answer to the earlier request comes when it is waited for another, and partitions are regrouped."""
            if wake is not None:
                wake()
            if cluster.wanted_version > before:
                let_go()

        wake, cluster.on_request = cluster.on_request, asked
        assert ask(consumer) == answer
    assert asked_for(broker)[0] == {"events"}
    poll_until(consumer, lambda: cluster.wanted_topics == {"events"})
    assert not cluster.need_all_topic_metadata


def test_listing_topics_bears_a_failure_after_partitions_were_regrouped(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    broker.create_topic("other")
    consumer = make_consumer("events", fetch_max_wait_ms=50)
    poll_until(consumer, consumer.assignment)
    cluster = cluster_of(consumer)
    with metadata_under_way(broker, consumer) as let_go:
        answers = 0

        def first_answer_then_trouble(_cluster: ClusterMetadata) -> None:
            nonlocal answers
            answers += 1
            if answers == 1:
                broker.drop_connections(api="Metadata")

        cluster.add_listener(first_answer_then_trouble)
        wake = cluster.on_request

        def asked() -> None:
            if wake is not None:
                wake()
            if cluster.need_all_topic_metadata:
                let_go()

        cluster.on_request = asked
        assert consumer.topics() == {"events", "other"}
    assert asked_for(broker) == [{"events"}, None, None]


@pytest.mark.parametrize("topics", [(), ("events",)], ids=["no subscription", "another subscription"])
@pytest.mark.parametrize("error", [LeaderNotAvailableError, UnknownTopicOrPartitionError])
def test_offsets_are_found_in_a_topic_that_is_being_created(
    broker: Broker, make_consumer: MakeConsumer, topics: tuple[str, ...], error: type[Exception]
) -> None:
    broker.create_topic("other")
    fill(broker, 7, topic="other")
    refused = 0

    def refuse(exchange: Exchange) -> None:
        nonlocal refused
        for topic in exchange.reply.topics:
            if topic.name == "other" and refused < 3:
                refused += 1
                topic.error_code, topic.partitions = error.errno, []  # type: ignore[attr-defined]

    broker.intercept("Metadata", refuse)
    consumer = make_consumer(*topics, fetch_max_wait_ms=50, allow_auto_create_topics=False)
    if topics:
        poll_until(consumer, consumer.assignment)
    assert consumer.end_offsets([tp(0, "other")], timeout_ms=TIMEOUT * 1000) == {tp(0, "other"): 7}
    assert refused == 3
    broker.forget_requests()
    consumer.topics()
    cluster_of(consumer).request_update()
    poll_until(consumer, lambda: set(topics) in asked_for(broker))  # and it is over with the other topic
