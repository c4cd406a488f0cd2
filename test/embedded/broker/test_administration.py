"""What administrators ask for, request by request: the answers are those that Apache Kafka 4.3 gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka.broker import Broker
from kafka.protocol.configs import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from kafka.protocol.users import AlterClientQuotasRequest, DescribeClientQuotasRequest

from .wire import Wire, wire


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(seed=1) as broker:
        yield broker


@pytest.fixture
def client(shared: Broker) -> Iterator[Wire]:
    with wire(shared) as connection:
        yield connection


def test_of_a_quota_s_entity_types_the_last_one_counts(client: Wire) -> None:
    cls = AlterClientQuotasRequest[1]
    entity = [("user", "ann"), ("client-id", None), ("user", None)]
    entry = cls.EntryData(entity=entity, ops=[("producer_byte_rate", 10.0, False)])
    assert client.ask(cls(entries=[entry])).entries[0].error_code == 0
    reply = client.ask(DescribeClientQuotasRequest[1](components=[("user", 1, None)], strict=False))
    (found,) = reply.entries
    assert {one.entity_type: one.entity_name for one in found.entity} == {"user": None, "client-id": None}


def test_a_broker_s_configuration_is_the_affair_of_that_broker() -> None:
    with Broker(nodes=2) as broker, wire(broker) as client:
        for name, code in (("1", 0), ("", 0), ("2", 42), ("77", 42)):
            (described,) = client.ask(DescribeConfigsRequest[4](resources=[(4, name, None)])).results
            assert described.error_code == code
            change = IncrementalAlterConfigsRequest[1](resources=[(4, name, [("message.max.bytes", 0, "2000000")])])
            (altered,) = client.ask(change).responses
            assert altered.error_code == code
        assert altered.error_message == "Unexpected broker id, expected 1, but received 77"
