"""Each kind of request that a broker refuses for a while is repeated after retry_backoff_ms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from kafka.structs import OffsetAndMetadata, TopicPartition

#: The first back-off in seconds; up to 20 % less or more at random, and longer after each failure.
BACKOFF = 0.1
TP = TopicPartition("events", 0)
WAIT = 60


#: Requests of transactions before KIP-890.
CLASSIC = ("AddPartitionsToTxn", "AddOffsetsToTxn")


@pytest.fixture
def kafka_broker_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    params = getattr(request.node, "callspec", None)
    is_classic = params is not None and params.params.get("api") in CLASSIC
    return {"topics": ["events"], "as_version": "3.9" if is_classic else None}


def consumer(broker: Broker, **options: Any) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        retry_backoff_ms=BACKOFF * 1000,
        auto_offset_reset="earliest",
        group_id="group",
        **options,
    )


def producer(broker: Broker, **options: Any) -> KafkaProducer:
    return KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=BACKOFF * 1000, **options)


def subscribes(broker: Broker, **options: Any) -> None:
    with consumer(broker, **options) as client:
        client.subscribe(["events"])
        while not client.poll(timeout_ms=100):
            pass


def commits(broker: Broker) -> None:
    with consumer(broker) as client:
        client.assign([TP])
        client.commit({TP: OffsetAndMetadata(1, "", -1)})


def reads_commits(broker: Broker) -> None:
    with consumer(broker) as client:
        assert client.committed(TP) is None


def looks_up_ends(broker: Broker) -> None:
    with consumer(broker) as client:
        assert client.end_offsets([TP]) == {TP: 1}


def sends(broker: Broker) -> None:
    with producer(broker) as client:
        client.send("events", b"v").get(WAIT)


def commits_transaction(broker: Broker) -> None:
    with producer(broker, transactional_id="t") as client:
        client.init_transactions()
        client.begin_transaction()
        client.send("events", b"v")
        client.send_offsets_to_transaction({TP: OffsetAndMetadata(1, "", -1)}, "group")
        client.commit_transaction()


def describes(broker: Broker) -> None:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=BACKOFF * 1000) as client:
        client.describe_topics(["events"])
        client.list_consumer_group_offsets("group")


CASES: list[tuple[str, str, Callable[[Broker], None]]] = [
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", reads_commits),
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", subscribes),
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", commits_transaction),
    ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", subscribes),
    ("SyncGroup", "COORDINATOR_LOAD_IN_PROGRESS", subscribes),
    (
        "ConsumerGroupHeartbeat",
        "COORDINATOR_LOAD_IN_PROGRESS",
        lambda broker: subscribes(broker, group_protocol="consumer"),
    ),
    ("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", commits),
    ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS", reads_commits),
    ("ListOffsets", "LEADER_NOT_AVAILABLE", looks_up_ends),
    ("Fetch", "NOT_LEADER_OR_FOLLOWER", subscribes),
    ("Produce", "NOT_ENOUGH_REPLICAS", sends),
    ("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS", sends),
    ("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS", commits_transaction),
    ("AddPartitionsToTxn", "COORDINATOR_LOAD_IN_PROGRESS", commits_transaction),
    ("AddOffsetsToTxn", "COORDINATOR_LOAD_IN_PROGRESS", commits_transaction),
    ("TxnOffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", commits_transaction),
    ("EndTxn", "COORDINATOR_LOAD_IN_PROGRESS", commits_transaction),
    ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS", describes),
]


@pytest.mark.parametrize(("api", "error", "work"), CASES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_request_that_is_refused_for_a_while_is_repeated_after_the_backoff(
    broker: Broker, api: str, error: str, work: Callable[[Broker], None]
) -> None:
    broker.append("events", b"v")
    broker.fail(api, error, times=3)
    work(broker)
    times = [seen.time for seen in broker.requests if seen.name == api][:4]
    assert len(times) == 4, "three that were refused, and one that was not"
    # The back-off begins when the reply has come, so that a busy machine makes the pauses longer only.
    pauses = [after - before for before, after in pairwise(times)]
    assert min(pauses) >= BACKOFF * 0.8, pauses


def test_no_more_requests_are_in_flight_than_the_option_allows(broker: Broker) -> None:
    waiting: list[int] = []
    with producer(broker, max_in_flight_requests_per_connection=2, linger_ms=0, batch_size=1) as client:
        client.send("events", b"first").get(WAIT)
        broker.intercept(
            "Produce", lambda exchange: waiting.append(len(exchange.call.connection._waiting)), before=True
        )
        broker.delay("Produce", 0.05, times=4)
        for future in [client.send("events", b"v") for _ in range(8)]:
            future.get(WAIT)
    assert max(waiting) == 1, "behind the one that is served"
