"""Transactions and their producers through `KafkaAdminClient`, against the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import AbortTransactionSpec, TransactionState
from kafka.broker import Broker
from kafka.broker.faults import Exchange
from kafka.errors import (
    InvalidRegularExpressionError,
    ProducerFencedError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)

FIRST, MISSING = TopicPartition("events", 0), TopicPartition("evnets", 0)


@pytest.fixture
def producer(broker: Broker) -> Iterator[KafkaProducer]:
    """A producer with an open transaction that has written one record."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="orders")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("events", b"record", partition=0).get(timeout=10)
    yield producer
    producer.close(timeout=5)


def test_transactions_are_listed_by_broker_and_filter(admin: KafkaAdminClient, producer: KafkaProducer):
    found = admin.list_transactions()
    assert sorted(found) == [1, 2, 3]
    ((listing,),) = [some for some in found.values() if some]
    assert (listing.transactional_id, listing.state) == ("orders", TransactionState.ONGOING)
    node = admin.find_coordinator("orders", "transaction")
    assert list(admin.list_transactions([node])) == [node]

    def names(**filters: object) -> list[str]:
        return [one.transactional_id for some in admin.list_transactions(**filters).values() for one in some]

    assert names(state_filters=["ongoing"]) == ["orders"]
    assert names(state_filters=[TransactionState.COMPLETE_COMMIT]) == []
    assert names(producer_id_filters=[listing.producer_id]) == ["orders"]
    assert names(producer_id_filters=[listing.producer_id + 1]) == []
    assert names(duration_filter_ms=3_600_000) == []
    assert names(transactional_id_pattern="ord.*") == ["orders"]
    assert names(transactional_id_pattern="x.*") == []
    with pytest.raises(InvalidRegularExpressionError):
        names(transactional_id_pattern="(")


def test_transactions_are_described(admin: KafkaAdminClient, producer: KafkaProducer):
    found = admin.describe_transactions(["orders"])["orders"]
    assert (found.state, found.topic_partitions) == (TransactionState.ONGOING, {FIRST})
    assert found.transaction_start_time_ms > 0
    assert found.coordinator_id == admin.find_coordinator("orders", "transaction")
    producer.commit_transaction()
    assert admin.describe_transactions(["orders"])["orders"].topic_partitions == set()
    with pytest.raises(TransactionalIdNotFoundError, match="'nobody'") as caught:
        admin.describe_transactions(["orders", "nobody"])
    assert caught.value.results["orders"].producer_id == found.producer_id


def test_producers_of_partitions_are_described(admin: KafkaAdminClient, producer: KafkaProducer):
    ((state,),) = [one.active_producers for one in admin.describe_producers([FIRST]).values()]
    assert state.current_transaction_start_offset == 0
    assert state.last_sequence == 0
    with pytest.raises(UnknownTopicOrPartitionError, match="evnets-0") as caught:
        admin.describe_producers([FIRST, MISSING])
    assert caught.value.results[FIRST].active_producers == [state]


def test_an_open_transaction_is_aborted_in_a_partition(
    admin: KafkaAdminClient, producer: KafkaProducer, broker: Broker
):
    (state,) = admin.describe_producers([FIRST])[FIRST].active_producers
    spec = AbortTransactionSpec(FIRST, state.producer_id, state.producer_epoch, max(0, state.coordinator_epoch))
    admin.abort_transaction(spec)
    (after,) = admin.describe_producers([FIRST])[FIRST].active_producers
    assert after.current_transaction_start_offset == -1
    assert broker.records("events", committed=True) == []


def test_producers_are_fenced(admin: KafkaAdminClient, producer: KafkaProducer):
    before = admin.describe_transactions(["orders"])["orders"]
    fenced = admin.fence_producers(["orders"])["orders"]
    assert fenced.producer_id == before.producer_id
    assert fenced.producer_epoch > before.producer_epoch
    with pytest.raises(ProducerFencedError):
        producer.commit_transaction()
    admin.force_terminate_transaction("orders")
    assert admin.describe_transactions(["orders"])["orders"].state is not TransactionState.ONGOING


def test_only_transactions_that_the_coordinator_does_not_know_hang(
    admin: KafkaAdminClient, producer: KafkaProducer, broker: Broker
):
    assert admin.find_hanging_transactions(max_transaction_timeout_ms=0) == []  # its coordinator knows it
    known = admin.describe_transactions(["orders"])["orders"]

    def without_topics(exchange: Exchange) -> Any:
        """The reply of a coordinator that has lost what the transaction wrote to."""
        reply = exchange.reply
        for one in reply.transaction_states:
            one.topics = []
        return reply

    with broker.intercept("DescribeTransactions", without_topics):
        (hanging,) = admin.find_hanging_transactions(max_transaction_timeout_ms=0)
    assert (hanging.topic_partition, hanging.producer_id, hanging.start_offset) == (FIRST, known.producer_id, 0)
    assert admin.find_hanging_transactions() == []  # it is younger than a transaction may be
    admin.abort_transaction(hanging.as_abort())
    assert broker.records("events", committed=True) == []


def test_an_old_broker_lists_none():
    with Broker(as_version="2.8") as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        for call in (admin.list_transactions, admin.find_hanging_transactions):
            with pytest.raises(UnsupportedVersionError, match=r"needs Kafka 3\.0"):
                call()
