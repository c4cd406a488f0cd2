"""Groups of our members, and of ours with Java's, on Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.errors import UnsupportedVersionError
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.embedded.coordinator.member import Member, poll_until, stable
from test.real.java_client import JavaClient
from test.real.kafka_process import KafkaCluster

KINDS: dict[str, dict[str, Any]] = {
    **{
        name: {"partition_assignment_strategy": [name]}
        for name in ("range", "roundrobin", "sticky", "cooperative-sticky")
    },
    "consumer": {"group_protocol": "consumer"},
}


def topic_of(kafka: KafkaCluster, name: str) -> str:
    return kafka.create_topic(name, partitions=6)


def rounds_of_two(servers: str, topic: str, **config: Any) -> None:
    """One, two, one again; what the first consumed is there for the second."""
    with Member(servers, [topic], **config) as one:
        poll_until(stable(one, partitions=6), one)
        for number in range(6):
            one.consume(TopicPartition(topic, number), 10 + number)
        with Member(servers, [topic], **config) as two:
            poll_until(stable(one, two, partitions=6), one, two)
            mine = [TopicPartition(topic, number) for number in sorted(two.assigned)]
            assert two.committed(*mine) == [10 + partition.partition for partition in mine]
        poll_until(stable(one, partitions=6), one)


@pytest.mark.parametrize("kind", list(KINDS))
def test_members_share_and_take_over(kafka: KafkaCluster, kind: str) -> None:
    topic = topic_of(kafka, f"groups-{kind}")
    rounds_of_two(kafka.bootstrap_servers, topic, group_id=f"groups-{kind}", **KINDS[kind])


@pytest.mark.parametrize("kind", ["range", "cooperative-sticky", "consumer"])
def test_a_static_member_comes_back_to_what_it_had(kafka: KafkaCluster, kind: str) -> None:
    topic = topic_of(kafka, f"static-{kind}")
    config = {"group_id": f"static-{kind}", **KINDS[kind]}
    with Member(kafka.bootstrap_servers, [topic], group_instance_id="a", **config) as one:
        two = Member(kafka.bootstrap_servers, [topic], group_instance_id="b", **config)
        poll_until(stable(one, two, partitions=6), one, two)
        had, mine, generation = two.assigned, one.assigned, one.coordinator.generation
        two.close()
        with Member(kafka.bootstrap_servers, [topic], group_instance_id="b", **config) as again:
            poll_until(lambda: again.state == "STABLE" and again.assigned == had, one, again)
            assert one.assigned == mine
            if kind == "range":
                assert one.coordinator.generation == generation


def test_a_group_goes_over_to_the_new_protocol_and_back(kafka: KafkaCluster) -> None:
    topic = topic_of(kafka, "migration")
    servers, config = kafka.bootstrap_servers, {"group_id": "migration"}
    one, two = Member(servers, [topic], **config), Member(servers, [topic], **config)
    try:
        poll_until(stable(one, two, partitions=6), one, two)
        for number in range(6):
            owner = one if number in one.assigned else two
            owner.consume(TopicPartition(topic, number), 7)
        for protocol in ("consumer", "consumer", "classic", "classic"):
            one.close()
            one, two = two, Member(servers, [topic], group_protocol=protocol, **config)
            poll_until(stable(one, two, partitions=6), one, two)
        assert two.committed(*(TopicPartition(topic, number) for number in range(6))) == [7] * 6
    finally:
        one.close()
        two.close()


def test_what_java_committed_is_read_and_the_other_way_round(kafka: KafkaCluster, java_client: JavaClient) -> None:
    topic = kafka.create_topic("with-java")
    servers, partition = kafka.bootstrap_servers, TopicPartition("with-java", 0)
    java_client.produce(servers, topic, [{"value": b"%d" % number} for number in range(3)])
    java_client.consume(servers, topic, count=1, group_id="with-java")
    with Member(servers, [topic], group_id="with-java") as one:
        poll_until(lambda: one.assigned == {0}, one)
        (before,) = one.committed(partition)
        assert before is not None
        assert 1 <= before <= 3
        one.coordinator.commit_offsets_sync({partition: OffsetAndMetadata(2, "ours")})
    (record,) = java_client.consume(servers, topic, count=1, group_id="with-java")
    assert record["value"] == b"2"


def test_a_pattern_that_the_broker_matches(kafka: KafkaCluster) -> None:
    kafka.create_topic("re2-a", partitions=2)
    with Member(kafka.bootstrap_servers, (), group_id="re2", group_protocol="consumer") as one:
        one.subscribe_for_broker("re2-.*")
        poll_until(lambda: len(one.subscription.assigned()) == 2, one)


@pytest.mark.matrix
def test_groups_work_on_every_release(kafka_matrix: KafkaCluster) -> None:
    topic = topic_of(kafka_matrix, "matrix-groups")
    servers = kafka_matrix.bootstrap_servers
    release = tuple(int(part) for part in str(kafka_matrix.release).split("."))
    options: dict[str, Any] = {"group_id": "matrix"}
    if release < (0, 10):
        options["api_version"] = release[:3]
    if release >= (0, 9):
        rounds_of_two(servers, topic, **options)
        if release < (3, 7):
            auto = {key: value for key, value in options.items() if key != "group_id"}
            rounds_of_two(servers, topic, group_id="auto", group_protocol="auto", **auto)
        return
    with Member(servers, [topic], **options) as one, pytest.raises(UnsupportedVersionError, match="no consumer groups"):
        poll_until(lambda: False, one)
    with Member(servers, (), **options) as one:
        partition = TopicPartition(topic, 0)
        one.subscription.assign_by_user([partition])
        one.coordinator.commit_offsets_sync({partition: OffsetAndMetadata(5)})
        assert one.committed(partition, TopicPartition(topic, 1)) == [5, None]
