"""Which topics a producer asks the cluster for, and for how long."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import pytest

from kafka import KafkaClient
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import (
    IllegalArgumentError,
    IllegalStateError,
    InvalidTopicError,
    KafkaProtocolError,
    KafkaTimeoutError,
)
from test.unit.producer.memory_cluster import Cluster, Producer

IMPOSSIBLE = {
    "cannot be encoded": "tenant-\udcff",
    "too long for the protocol": "x" * 40_000,
    "too long": "x" * 250,
    "a space": "a b",
    "a slash": "a/b",
    "NUL": "x\0y",
    "a line break at the end": "events\n",
    "empty": "",
    "a dot": ".",
    "two dots": "..",
}
NO_NAMES: list[Any] = [None, 3, b"events", ["events"], {"events": 1}, ("events",)]


def names_asked_for(cluster: Cluster) -> set[str]:
    return {topic.name for request in cluster.asked("Metadata") for topic in request.topics or ()}


def wanted(producer: Producer) -> set[str]:
    return set(producer.core.cluster.wanted_topics)


@pytest.mark.parametrize("name", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_name_costs_its_own_record_and_nothing_else(make_producer, name):
    cluster = Cluster({"events": 2, "more": 1}, nodes=2)
    producer = make_producer(cluster, delivery_timeout_ms=4000, request_timeout_ms=1000)
    producer.send("events", b"0", partition=1).get(3)
    assert isinstance(producer.send(name, b"x").exception, InvalidTopicError)
    assert wanted(producer) == {"events"}
    cluster.leaders["events", 1] = 0
    cluster.advertised.discard(1)
    cluster.brokers[1].stop()
    assert producer.send("events", b"1", partition=1).get(3).partition == 1
    assert producer.send("more", b"2").get(3).topic == "more"
    assert names_asked_for(cluster) == {"events", "more"}


def test_an_impossible_name_is_refused_in_words(make_producer):
    producer = make_producer(Cluster({"events": 1}))
    with pytest.raises(InvalidTopicError, match=r"'a/b' is not a legal name of a topic: names have 1 to 249 .*'_'"):
        producer.send("a/b", b"x").get(1)
    with pytest.raises(InvalidTopicError):
        producer.partitions_for("a/b")
    with pytest.raises(InvalidTopicError):
        producer.send_many("a/b", [b"x"])
    with pytest.raises(InvalidTopicError) as long:
        producer.partitions_for("x" * 40_000)
    assert len(str(long.value)) < 300


@pytest.mark.parametrize("name", NO_NAMES, ids=repr)
def test_a_name_of_another_type_is_a_type_error_in_words(make_producer, name):
    producer = make_producer(Cluster({"events": 1}))
    for call in (
        lambda: producer.send(name, b"x"),
        lambda: producer.send(name, b"x", b"key"),
        lambda: producer.send(name, b"x", partition=0),
        lambda: producer.send_many(name, [b"x"]),
        lambda: producer.partitions_for(name),
    ):
        with pytest.raises(TypeError, match="a topic's name must be a str, not "):
            call()


@pytest.mark.parametrize("name", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_client_and_a_consumer_refuse_the_same_names(name):
    cluster = Cluster({"events": 1})
    with KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0") as client:
        with pytest.raises(IllegalArgumentError, match="is not a legal name of a topic"):
            client.add_topic(name)
        with pytest.raises(IllegalArgumentError, match="is not a legal name of a topic"):
            client.set_topics(["events", name])
        assert client.cluster.wanted_topics == frozenset()
    with pytest.raises(IllegalArgumentError, match="is not a legal name of a topic"):
        SubscriptionState().subscribe([name])


def test_a_client_takes_a_list_of_topics_not_a_name():
    cluster = Cluster({"events": 1})
    client = KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0")
    with client, pytest.raises(TypeError, match=r"call add_topic\('events'\)"):
        client.set_topics("events")


# Topics that are used, or not used any more


@pytest.mark.parametrize("many", [False, True], ids=["send", "send_many"])
def test_a_topic_in_constant_use_is_never_forgotten(make_producer, many):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, metadata_max_idle_ms=5000, metadata_max_age_ms=1000)
    topic = None
    for _ in range(80):  # 20 seconds, and every batch is written long before the next one
        if many:
            producer.send_many("events", [b"x"]).get(1)
        else:
            producer.send("events", b"x").get(1)
        topic = topic or producer._accumulator.topics["events"]
        producer.rest(0.25)
        assert producer._accumulator.topics.get("events") is topic
    assert len(cluster.asked("Metadata")) > 10


def test_a_topic_that_only_callbacks_send_to_is_never_forgotten(make_producer):
    cluster = Cluster({"events": 1, "dead-letters": 1})
    producer = make_producer(cluster, metadata_max_idle_ms=5000, metadata_max_age_ms=1000)
    producer.partitions_for("dead-letters")
    outcomes = []

    def dead_letter(_: object) -> None:
        try:
            outcomes.append(producer.send("dead-letters", b"again"))
        except Exception as error:
            outcomes.append(error)

    for _ in range(50):
        producer.send("events", b"x").add_callback(dead_letter).get(1)
        producer.rest(0.4)
    producer.flush()
    assert [type(outcome).__name__ for outcome in outcomes] == ["FutureRecordMetadata"] * 50
    assert all(outcome.succeeded() for outcome in outcomes)


def test_a_callback_may_send_to_a_topic_that_was_idle_for_long(make_producer):
    cluster = Cluster({"events": 1, "dead-letters": 1})
    producer = make_producer(cluster, metadata_max_idle_ms=5000, metadata_max_age_ms=1000)
    producer.partitions_for("dead-letters")
    for _ in range(40):
        producer.send("events", b"x").get(1)
        producer.rest(0.4)
    assert wanted(producer) == {"events"}
    sent = []
    producer.send("events", b"x").add_callback(lambda _: sent.append(producer.send("dead-letters", b"x"))).get(1)
    assert sent[0].get(1).topic == "dead-letters"
    assert wanted(producer) == {"events", "dead-letters"}


def test_a_callback_cannot_wait_for_a_topic_and_gets_an_error_that_names_the_fix(make_producer):
    producer = make_producer(Cluster({"events": 1, "dead-letters": 1}))
    errors = []

    def dead_letter(_: object) -> None:
        for call, name in ((partial(producer.send, value=b"x"), "send"), (producer.partitions_for, "partitions_for")):
            with pytest.raises(IllegalStateError, match=r"call partitions_for\('dead-letters'\) once before") as error:
                call("dead-letters")
            assert str(error.value).startswith(f"{name}(")
            errors.append(error)

    producer.send("events", b"x").add_callback(dead_letter).get(1)
    assert len(errors) == 2


# Names that never become topics


@pytest.mark.parametrize("name", ["nothing", "invalid-nothing"])
def test_a_name_that_the_cluster_refuses_is_not_asked_for_any_more(make_producer, name):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, max_block_ms=2000, metadata_max_age_ms=1000)
    producer.send("events", b"x").get(1)
    with pytest.raises((KafkaTimeoutError, InvalidTopicError)):
        producer.send(name, b"x").get(1)
    assert wanted(producer) == {"events"}
    assert name not in producer.core.cluster.topology.errors
    before = len(cluster.asked("Metadata"))
    producer.rest(10)
    later = cluster.asked("Metadata")[before:]
    assert 5 < len(later) < 20
    assert all(topic.name == "events" for request in later for topic in request.topics)


def test_names_from_outside_do_not_pile_up(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, max_block_ms=300)
    for number in range(50):
        with pytest.raises(KafkaTimeoutError):
            producer.send(f"nothing-{number}", b"x")
    core = producer.core
    assert len(wanted(producer)) < 10, "those without an answer yet"
    producer.until(lambda: not wanted(producer), seconds=10)
    assert not core.cluster.topology.errors
    assert not core._sought
    assert not core._searches


def test_a_name_without_an_answer_is_asked_for_until_there_is_one(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, max_block_ms=0, metadata_max_age_ms=1000)
    for name in ("events", "nothing"):
        with pytest.raises(KafkaTimeoutError):
            producer.send(name, b"x")
    producer.rest(2)
    assert wanted(producer) == {"events"}
    assert producer.send("events", b"x").get(1).offset == 0, "the metadata came meanwhile"


def test_a_name_without_an_answer_is_forgotten_when_no_call_wants_it(make_producer):
    cluster = Cluster({"events": 1, "later": 1})
    producer = make_producer(cluster, max_block_ms=0, metadata_max_age_ms=1000, metadata_max_idle_ms=5000)
    with pytest.raises(KafkaTimeoutError):
        producer.send("later", b"x")
    producer.rest(7)
    assert wanted(producer) == set()


def test_a_search_continues_when_another_one_for_the_same_name_ends(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster)
    core = producer.core
    now = core.now()
    searches = [core.loop.spawn(core.find_topic("later", now + seconds)) for seconds in (1, 20)]
    producer.until(lambda: searches[0].is_done)
    assert isinstance(searches[0].exception, KafkaTimeoutError)
    assert wanted(producer) == {"later"}
    cluster.topics["later"] = 1
    producer.until(lambda: searches[1].is_done)
    assert searches[1].result().name == "later"
    producer.rest(400)
    assert producer.send("later", b"x").get(1).offset == 0


def test_a_topic_that_is_missing_is_in_the_log_at_once_and_once(make_producer, caplog):
    caplog.set_level(logging.WARNING)
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, max_block_ms=30_000)

    def warned() -> list[str]:
        return [each.getMessage() for each in caplog.records]

    began = cluster.now
    sending = producer.core.loop.spawn(producer.core.find_topic("evnets", began + 30))
    producer.until(warned)
    assert cluster.now - began < 1
    producer.until(lambda: sending.is_done)
    assert warned() == [
        "The cluster does not have topic 'evnets', check its name; send() waits for it, for max_block_ms (30000 ms)"
    ]


def test_a_topic_that_a_broker_creates_is_not_missing(make_producer, caplog):
    caplog.set_level(logging.WARNING)
    cluster = Cluster({})
    producer = make_producer(cluster)
    finding = producer.core.loop.spawn(producer.core.find_topic("events", cluster.now + 30))
    producer.until(lambda: "events" in names_asked_for(cluster))
    cluster.topics["events"] = 1
    producer.until(lambda: finding.is_done)
    assert finding.value.name == "events"
    assert not caplog.records


@pytest.mark.parametrize("slice_", [0.0, 1000.0])
def test_a_large_answer_about_topics_is_read_in_slices(make_producer, slice_):
    cluster = Cluster({f"topic-{number}": 3 for number in range(400)})
    producer = make_producer(cluster)
    producer.core.loop.slice = slice_
    producer.core.client.cluster.set_topics(cluster.topics)
    assert producer.partitions_for("topic-399") == {0, 1, 2}
    topology = producer.core.client.cluster.topology
    assert {name: len(partitions) for name, partitions in topology.topics.items()} == dict(cluster.topics)
    assert len(topology.topic_ids) == len(topology.names_by_id) == 400
    large = max(len(request.topics) for request in cluster.asked("Metadata"))
    assert large == 400


def test_a_large_answer_that_is_damaged_ends_its_connection(make_producer, monkeypatch):
    def damaged(*_):
        def slices(_frame):
            yield
            raise KafkaProtocolError("the reply is damaged")

        return slices

    cluster = Cluster({f"topic-{number}": 3 for number in range(400)})
    producer = make_producer(cluster)
    producer.core.loop.slice = 1000.0
    producer.core.client.cluster.set_topics(cluster.topics)
    monkeypatch.setattr("kafka.net.pipeline.slices_of", damaged)
    with pytest.raises(KafkaProtocolError, match="damaged"):
        producer.partitions_for("topic-399", timeout=5)
    monkeypatch.undo()
    assert producer.partitions_for("topic-399") == {0, 1, 2}
