"""Patterns that the group's coordinator matches (KIP-848): RE2, against whole names."""

from __future__ import annotations

import re
import time

import pytest

from kafka import KafkaConsumer, SubscriptionPattern
from kafka.broker import Broker, Exchange
from kafka.errors import IllegalStateError, InvalidRegularExpressionError, UnsupportedVersionError

from .conftest import MakeConsumer

FACES = "both"

WAIT = 60.0


def topics_read(consumer: KafkaConsumer, wanted: set[str]) -> set[str]:
    """Read until a record of each topic that is wanted has come; the topics of all that came."""
    seen: set[str] = set()
    deadline = time.monotonic() + WAIT
    while not wanted <= seen and time.monotonic() < deadline:
        seen |= {partition.topic for partition in consumer.poll(timeout_ms=200)}
    return seen


@pytest.fixture
def broker(broker: Broker) -> Broker:
    for topic in ("log-1", "log-2", "log-two", "a-log-1"):
        broker.create_topic(topic)
        broker.append(topic, topic.encode())
    return broker


def test_whole_names_are_matched_in_re2_and_new_topics_follow(broker: Broker, make_consumer: MakeConsumer) -> None:
    consumer = make_consumer(group_id="g", group_protocol="consumer")
    consumer.subscribe(pattern=SubscriptionPattern("log-[[:digit:]]"))
    assert topics_read(consumer, {"log-1", "log-2"}) == {"log-1", "log-2"}
    assert consumer.subscription() == {"log-1", "log-2"}
    broker.create_topic("log-3")
    broker.append("log-3", b"later")
    assert topics_read(consumer, {"log-3"}) == {"log-3"}


def test_only_what_is_assigned_is_asked_of_the_cluster(broker: Broker, make_consumer: MakeConsumer) -> None:
    consumer = make_consumer(group_id="g", group_protocol="consumer")
    broker.forget_requests()
    consumer.subscribe(pattern=SubscriptionPattern("log-1"))
    topics_read(consumer, {"log-1"})
    asked = [seen.request for seen in broker.requests if type(seen.request).__name__.startswith("MetadataRequest")]
    assert asked
    assert all(request.topics is not None for request in asked)


def test_a_topic_that_was_deleted_is_not_created_by_asking_for_it(broker: Broker, make_consumer: MakeConsumer) -> None:
    consumer = make_consumer(group_id="g", group_protocol="consumer", metadata_max_age_ms=50)
    consumer.subscribe(pattern=SubscriptionPattern("log-1"))
    topics_read(consumer, {"log-1"})
    named: list[bool] = []

    def look(exchange: Exchange) -> None:
        if any(topic.name == "log-1" for topic in exchange.request.topics or ()):
            named.append(exchange.request.allow_auto_topic_creation)

    broker.intercept("Metadata", look)
    deadline = time.monotonic() + WAIT
    while not named and time.monotonic() < deadline:
        consumer.poll(timeout_ms=100)
    assert named
    assert not any(named)


def test_another_pattern_and_topics_take_its_place(broker: Broker, make_consumer: MakeConsumer) -> None:
    consumer = make_consumer(group_id="g", group_protocol="consumer")
    consumer.subscribe(pattern=SubscriptionPattern("log-1"))
    topics_read(consumer, {"log-1"})
    consumer.subscribe(pattern=SubscriptionPattern("log-2"))
    assert topics_read(consumer, {"log-2"}) == {"log-2"}
    consumer.subscribe(["log-two"])
    assert topics_read(consumer, {"log-two"}) == {"log-two"}
    assert consumer.subscription() == {"log-two"}
    consumer.subscribe(pattern=re.compile("a-"))
    assert topics_read(consumer, {"a-log-1"}) == {"a-log-1"}


@pytest.mark.parametrize("late", [False, True])
def test_a_pattern_that_the_broker_cannot_compile_is_raised(
    broker: Broker, make_consumer: MakeConsumer, late: bool
) -> None:
    consumer = make_consumer(group_id="g", group_protocol="consumer")
    consumer.subscribe(pattern=SubscriptionPattern("log-(?=x)"))
    with pytest.raises(InvalidRegularExpressionError):
        topics_read(consumer, {"none"})
    if late:  # the next calls try again, and are refused again
        with pytest.raises(InvalidRegularExpressionError):
            topics_read(consumer, {"none"})
    consumer.subscribe(pattern=SubscriptionPattern("log-1"))
    assert topics_read(consumer, {"log-1"}) == {"log-1"}


@pytest.mark.parametrize("configs", [{}, {"group_id": "g"}, {"group_protocol": "consumer"}])
def test_without_the_protocol_it_is_refused_at_once(make_consumer: MakeConsumer, configs: dict[str, str]) -> None:
    consumer = make_consumer(**configs)
    with pytest.raises(IllegalStateError, match="group_protocol='consumer'"):
        consumer.subscribe(pattern=SubscriptionPattern("log-1"))
    assert consumer.subscription() is None


@pytest.mark.parametrize("protocol", ["consumer", "auto"])
@pytest.mark.parametrize("release", ["3.6", "3.9"])
def test_brokers_that_cannot_match_say_so(release: str, protocol: str) -> None:
    with (
        Broker(topics={"log-1": 1}, as_version=release) as broker,
        KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="g", group_protocol=protocol) as consumer,
    ):
        consumer.subscribe(pattern=SubscriptionPattern("log-1"))
        with pytest.raises(UnsupportedVersionError, match="KIP-848"):
            topics_read(consumer, {"none"})
