"""A producer that carries on under one transactional id after another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka.broker import Broker
from kafka.errors import CoordinatorNotAvailableError, KafkaTimeoutError, ProducerFencedError
from kafka.producer import KafkaProducer
from kafka.producer.transaction_handover import HandoverProducer, end_transactions
from kafka.protocol.transaction import EndTxnRequest, InitProducerIdRequest

pytestmark = pytest.mark.kafka_broker(topics={"t": 1})


@pytest.fixture
def producer(broker: Broker) -> Iterator[HandoverProducer]:
    with HandoverProducer(bootstrap_servers=broker.bootstrap_servers) as made:
        yield made


def committed(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.records("t", committed=True)]


def test_the_previous_holder_of_an_id_is_fenced_and_its_open_transaction_aborted(
    broker: Broker, producer: HandoverProducer
) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="task") as earlier:
        earlier.init_transactions()
        earlier.begin_transaction()
        earlier.send("t", b"open").get(10)
        producer.take_over("task")
        with pytest.raises(ProducerFencedError):
            earlier.commit_transaction()
    with producer.transaction():
        producer.send("t", b"taken over")
    assert committed(broker) == [b"taken over"]


def test_an_open_transaction_outlives_its_producer_until_another_client_ends_it(
    broker: Broker, producer: HandoverProducer
) -> None:
    with HandoverProducer(bootstrap_servers=broker.bootstrap_servers) as first:
        first.take_over("task")
        first.begin_transaction()
        first.send("t", b"whole")
        left = first.leave_open()
    assert left.transactional_id == "task"
    assert committed(broker) == []
    end_transactions({"bootstrap_servers": broker.bootstrap_servers}, [left], committed=True)
    assert committed(broker) == [b"whole"]


def test_one_that_is_not_left_to_another_client_is_aborted_when_its_producer_closes(broker: Broker) -> None:
    with HandoverProducer(bootstrap_servers=broker.bootstrap_servers) as first:
        first.take_over("task")
        first.begin_transaction()
        first.send("t", b"lost")
    ends = [each.request for each in broker.requests if isinstance(each.request, EndTxnRequest)]
    assert [(each.transactional_id, each.committed) for each in ends] == [("task", False)]


def test_a_coordinator_without_an_answer_yet_is_an_error_and_can_be_waited_for(
    broker: Broker, producer: HandoverProducer
) -> None:
    producer.take_over("first")
    refusals = broker.fail(InitProducerIdRequest, [CoordinatorNotAvailableError], times=100_000)
    with refusals, pytest.raises(KafkaTimeoutError, match=r"take_over\(\) took longer than 0.2 seconds"):
        producer.take_over("task", timeout=0.2)
    producer.init_transactions()
    with producer.transaction():
        producer.send("t", b"a")
    assert committed(broker) == [b"a"]
