"""Proofs for what is about metadata."""

from __future__ import annotations

from typing import Any

from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY, Exchange
from kafka.cluster import ClusterMetadata
from kafka.errors import KafkaConnectionError
from kafka.protocol.metadata import MetadataResponse
from kafka.testing import FakeClock

from .proofs import proves
from .servers import free_port
from .subjects import TOPIC, Subject, seen


def _watching(subject: Subject, broker: Broker, **options: Any) -> Any:
    """An object that wants to know about the topic from now on."""
    if subject.kind == "consumer":
        options["topics"] = [TOPIC]
    used = subject.use(broker, **options)
    if subject.kind == "client":
        broker.forget_requests()  # among them the one that the test made itself
        used.thing.set_topics([TOPIC])
    return used


@proves("metadata_max_age_ms", kinds="producer consumer share admin client")
def metadata_is_refreshed_when_it_is_so_old(subject: Subject) -> None:
    broker = subject.broker()
    used = _watching(subject, broker, metadata_max_age_ms=50)
    before = len(seen(broker, "Metadata"))
    used.until(lambda: len(seen(broker, "Metadata")) > before + 2)


def _learned(**options: Any) -> tuple[ClusterMetadata, FakeClock]:
    clock = FakeClock()
    cluster = ClusterMetadata(clock=clock, **options)
    brokers = [MetadataResponse.MetadataResponseBroker(node_id=1, host="b1", port=9092)]
    cluster.update_metadata(MetadataResponse(brokers=brokers, controller_id=1, topics=[]))
    return cluster, clock


@proves("metadata_max_age_ms", kinds="cluster")
def what_is_known_is_due_when_it_is_so_old(subject: Subject) -> None:
    cluster, clock = _learned(metadata_max_age_ms=7000)
    assert 6900 < cluster.ttl() <= 7000
    clock.advance(7)
    assert cluster.ttl() == 0


def _after_failures(count: int, **options: Any) -> float:
    cluster, _ = _learned(**options)
    for _ in range(count):
        cluster.request_update()
        cluster.failed_update(KafkaConnectionError("no"))
    return cluster.ttl()


@proves("retry_backoff_ms", kinds="cluster")
def the_next_attempt_waits(subject: Subject) -> None:
    assert 300 < _after_failures(1, retry_backoff_ms=400) < 500


@proves("retry_backoff_max_ms", kinds="cluster")
def the_wait_does_not_get_longer(subject: Subject) -> None:
    assert _after_failures(10, retry_backoff_ms=20, retry_backoff_max_ms=20) < 30


@proves("allow_auto_create_topics", kinds="producer consumer share client")
def asking_for_a_topic_may_create_it_or_not(subject: Subject) -> None:
    for allow in (True, False):
        broker = subject.broker()
        used = _watching(subject, broker, allow_auto_create_topics=allow)
        used.until(lambda broker=broker: any(_names_topic(request) for request in seen(broker, "Metadata")))
        asked = [request.request for request in seen(broker, "Metadata") if _names_topic(request)]
        assert {request.allow_auto_topic_creation for request in asked} == {allow}


def _names_topic(seen_request: Any) -> bool:
    return any(topic.name == TOPIC for topic in seen_request.request.topics or ())


@proves("allow_auto_create_topics", kinds="cluster")
def the_request_says_whether_topics_may_be_created(subject: Subject) -> None:
    for allow in (True, False):
        cluster = ClusterMetadata(allow_auto_create_topics=allow)
        cluster.set_topics([TOPIC])
        assert cluster.metadata_request().allow_auto_topic_creation is allow


def _astray(subject: Subject, **options: Any) -> tuple[Any, Broker]:
    """An object whose only known broker is at an address where nobody is."""
    broker = subject.broker()
    used = subject.use(broker, metadata_max_age_ms=50, retry_backoff_ms=10, reconnect_backoff_ms=10, **options)
    nowhere = free_port()
    lies: list[Exchange] = []

    def mislead(exchange: Exchange) -> None:
        lies.append(exchange)
        for node in exchange.reply.brokers:
            node.port = nowhere

    broker.intercept("Metadata", mislead)
    used.until(lambda: lies)  # after the first there need be no more that reach this broker
    broker.forget_requests()
    return used, broker


@proves("metadata_recovery_strategy")
def it_starts_again_from_the_beginning_or_not(subject: Subject) -> None:
    used, broker = _astray(subject, metadata_recovery_strategy="rebootstrap")
    used.until(lambda: seen(broker, "Metadata"))
    used, broker = _astray(subject, metadata_recovery_strategy="none")
    used.get_on(0.3)
    assert not seen(broker, "Metadata")


@proves("metadata_recovery_rebootstrap_trigger_ms")
def it_starts_again_when_metadata_stays_away_for_so_long(subject: Subject) -> None:
    text = "Starting again from the bootstrap servers: metadata could not be refreshed"
    broker = subject.broker(nodes=2)
    used = subject.use(
        broker,
        metadata_max_age_ms=50,
        request_timeout_ms=500,
        metadata_recovery_rebootstrap_trigger_ms=0,
    )
    broker.intercept("Metadata", lambda _: NO_REPLY)
    used.until(lambda: text in subject.caplog.text)
