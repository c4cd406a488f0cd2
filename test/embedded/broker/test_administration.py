"""What administrators ask for, request by request: the answers are those that Apache Kafka 4.3 gives."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.errors import IllegalArgumentError, RecordListTooLargeError, UnknownTopicOrPartitionError
from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, ElectLeadersRequest
from kafka.protocol.configs import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.metadata import MetadataRequest
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


def create(wire: Wire, name: str, partitions: int = 1, assignments: Any = (), **configs: str) -> tuple[int, str | None]:
    settings = [(key.replace("_", "."), value) for key, value in configs.items()]
    copies = -1 if assignments else 1
    topic = (name, -1 if assignments else partitions, copies, list(assignments), settings)
    (result,) = wire.ask(CreateTopicsRequest[7](topics=[topic], timeout_ms=5000)).topics
    return result.error_code, result.error_message


def test_an_invalid_plan_for_a_topic_is_refused(shared: Broker, client: Wire) -> None:
    double = "Found multiple manual partition assignments for partition 0"
    assert create(client, "double", assignments=[(0, [1]), (0, [1])]) == (39, double)
    assert create(client, "huge", 10_001) == (44, "Excessively large number of partitions per request.")
    assert not {"double", "huge"} & set(shared.run(lambda cluster: list(cluster.topics)))


def test_a_topic_is_not_made_on_nodes_that_are_down() -> None:
    with Broker(nodes=2) as broker:
        broker.stop_node(2)
        with wire(broker) as client:
            code, message = create(client, "t", assignments=[(0, [1]), (1, [2])])
            assert code == 39
            assert "partition 1 are fenced" in (message or "")
            assert create(client, "t", assignments=[(0, [2, 1])])[0] == 0


def test_a_topic_that_is_named_twice_is_not_deleted(shared: Broker, client: Wire) -> None:
    shared.create_topic("twice")
    topic_id = shared.run(lambda cluster: cluster.topics["twice"].id)

    def delete(*topics: Any) -> list[Any]:
        reply = client.ask(DeleteTopicsRequest[6](topics=list(topics), timeout_ms=5000))
        return [(one.name, one.topic_id, one.error_code, one.error_message) for one in reply.responses]

    name, by_id = ("twice", ZERO_UUID), (None, topic_id)
    assert delete(name, name) == [(*name, 42, "Duplicate topic name.")]
    assert delete(by_id, by_id) == [(*by_id, 42, "Duplicate topic id.")]
    both = "The provided topic name maps to an ID that was already supplied."
    assert delete(by_id, name) == [("twice", topic_id, 42, both)]
    old = client.ask(DeleteTopicsRequest[1](topic_names=["nope", "nope", "twice"], timeout_ms=5000))
    assert [(one.name, one.error_code) for one in old.responses] == [("nope", 42), ("twice", 0)]


@pytest.mark.parametrize("version", [1, 4, 9, 12])
def test_a_topic_is_described_once(shared: Broker, client: Wire, version: int) -> None:
    cls = MetadataRequest[version]
    topics = [cls.MetadataRequestTopic(name=name) for name in ("nope", "nope")]
    reply = client.ask(cls(topics=topics, **({"allow_auto_topic_creation": False} if version >= 4 else {})))
    assert [one.name for one in reply.topics] == ["nope"]


def test_metadata_goes_by_ids_where_there_are_any(shared: Broker, client: Wire) -> None:
    shared.create_topic("by-id")
    topic_id = shared.run(lambda cluster: cluster.topics["by-id"].id)

    def ask(version: int, *topics: Any) -> list[Any]:
        reply = client.ask(MetadataRequest[version](topics=list(topics), allow_auto_topic_creation=False))
        return [(one.name, one.error_code) for one in reply.topics]

    assert ask(12, (topic_id, "another"), (ZERO_UUID, "third"), (topic_id, None)) == [("by-id", 0)]
    assert ask(12, (uuid.UUID(int=5), "by-id")) == [(None, 100)]
    assert ask(11, (topic_id, "by-id")) == [("by-id", 42)]


def test_topics_that_make_themselves_do_not_collide_and_internal_ones_are_large() -> None:
    with Broker() as broker, wire(broker) as client:

        def ask(name: str) -> tuple[int, int]:
            (topic,) = client.ask(MetadataRequest[9](topics=[(name,)], allow_auto_topic_creation=True)).topics
            return topic.error_code, len(topic.partitions)

        assert ask("co.l") == (0, 1)
        assert ask("co_l") == (3, 0)
        assert ask("__consumer_offsets") == (0, 50)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("retention.ms", "1_000", 40),
        ("retention.ms", " +1000 ", 0),
        ("min.cleanable.dirty.ratio", "nan", 40),
        ("min.cleanable.dirty.ratio", "5e-1", 0),
        ("internal.segment.bytes", "1000", 0),
    ],
)
def test_options_take_what_kafka_takes(client: Wire, name: str, value: str, code: int) -> None:
    topic = f"options-{name}-{code}"
    assert create(client, topic, **{name.replace(".", "_"): value})[0] == code


def test_segments_can_be_as_small_as_in_kafka_s_own_tests(shared: Broker) -> None:
    shared.create_topic("small", configs={"internal.segment.bytes": 200})
    for _ in range(3):
        shared.append("small", b"v" * 80)
    with pytest.raises(RecordListTooLargeError, match=r"it has 2\d\d bytes, segment.bytes is 200"):
        shared.append("small", b"v" * 180)
    assert shared.run(lambda cluster: len(cluster.partition("small", 0).log.segments)) == 3


def test_an_election_needs_a_kind_and_a_candidate(shared: Broker, client: Wire) -> None:
    shared.create_topic("vote")
    reply = client.ask(ElectLeadersRequest[2](election_type=7, topic_partitions=[("vote", [0])], timeout_ms=5000))
    assert reply.error_code == reply.replica_election_results[0].partition_result[0].error_code == 42
    with Broker(nodes=2) as broker:
        broker.create_topic("t", replication_factor=1)
        leader = broker.leader("t")
        broker.stop_node(leader)
        with wire(broker, 3 - leader) as other:
            for kind, code in ((0, 80), (1, 83)):
                ask = ElectLeadersRequest[2](election_type=kind, topic_partitions=[("t", [0])], timeout_ms=5000)
                assert other.ask(ask).replica_election_results[0].partition_result[0].error_code == code


def test_a_resource_is_changed_once_in_a_request_or_not_at_all(shared: Broker, client: Wire) -> None:
    shared.create_topic("altered")
    twice = (2, "altered", [("retention.ms", 0, "5")])
    other = (2, "altered", [("retention.ms", 0, "6")])
    reply = client.ask(IncrementalAlterConfigsRequest[1](resources=[twice, other]))
    told = (42, "Each resource must appear at most once.")
    assert [(one.error_code, one.error_message) for one in reply.responses] == [told, told]
    assert shared.run(lambda cluster: cluster.topics["altered"].configs) == {}
    absent = (2, "altered", [("no.such.option", 1, None)])
    assert client.ask(IncrementalAlterConfigsRequest[1](resources=[absent])).responses[0].error_code == 0


def test_more_partitions_than_kafka_makes_at_once_are_refused() -> None:
    much = 1_000_000_000
    with Broker(topics=["t"], configs={"num.partitions": much}) as broker, wire(broker) as client:
        made = client.ask(
            CreateTopicsRequest[7](topics=[("u", much, 1, [], []), ("v", -1, 1, [], [])], timeout_ms=1000)
        )
        assert [one.error_code for one in made.topics] == [44, 44]
        grown = client.ask(CreatePartitionsRequest[3]([("t", much, None)], 1000, False))
        assert [(one.error_code, one.error_message) for one in grown.results] == [(-1, None)]
        assert client.ask(MetadataRequest[4](["w"], True)).topics[0].error_code == 3
        with pytest.raises(UnknownTopicOrPartitionError):
            broker.append("w", "")
        with pytest.raises(IllegalArgumentError, match=r"topic 'x': at most 10,000 partitions, not 1,000,000,000"):
            broker.create_topic("x", much)
        assert client.ask(CreatePartitionsRequest[3]([("t", 10_001, None)], 1000, False)).results[0].error_code == 0
    with pytest.raises(IllegalArgumentError, match="at most 10,000 partitions"):
        Broker(topics={"t": much})
