"""Share consumers against Apache Kafka: what takes transactions, rights, several nodes, or older releases."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from kafka import AcknowledgeType, KafkaAdminClient, KafkaProducer, KafkaShareConsumer, TopicPartition
from kafka.admin import ACL, ACLFilter, ConfigResource, ResourcePattern, ResourcePatternFilter
from kafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError, UnsupportedVersionError
from test.embedded.faces import AIOShareConsumer
from test.real.conftest import StartKafka
from test.real.kafka_process import KafkaCluster

FACES = "both"

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
TIMEOUT = 60.0
Make = Callable[..., Any]


class Queue:
    """A topic and a share group."""

    def __init__(self, cluster: KafkaCluster, partitions: int = 1, replicas: int = 1) -> None:
        self.cluster = cluster
        self.name = f"share-{uuid.uuid4().hex[:10]}"
        self.place = TopicPartition(self.name, 0)
        cluster.create_topic(self.name, partitions=partitions, replicas=replicas)
        self.configure(**{"share.auto.offset.reset": "earliest"})

    def configure(self, **configs: str) -> None:
        with KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap_servers) as admin:
            admin.alter_configs([ConfigResource("GROUP", self.name, configs)])

    def put(self, *values: str, partition: int = 0) -> None:
        with KafkaProducer(bootstrap_servers=self.cluster.bootstrap_servers) as producer:
            for value in values:
                producer.send(self.name, value.encode(), partition=partition)

    def wait_for_members(self, count: int) -> None:
        """Wait until the group has so many members, and each has a partition."""
        deadline = time.monotonic() + 60
        with KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap_servers) as admin:
            while True:
                members = admin.describe_share_groups([self.name])[self.name].members
                if len(members) == count and all(member.assigned_partitions for member in members):
                    return
                assert time.monotonic() < deadline, members
                time.sleep(0.1)

    def lag(self) -> int:
        with KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap_servers) as admin:
            return sum(one.lag for one in admin.list_share_group_offsets(self.name)[self.name].values())


@pytest.fixture
def queue(share_kafka: KafkaCluster) -> Queue:
    return Queue(share_kafka)


@pytest.fixture
def member(queue: Queue, face: str) -> Iterator[Make]:
    with ExitStack() as opened:

        def make(**configs: Any) -> Any:
            chosen = {
                "bootstrap_servers": queue.cluster.bootstrap_servers,
                "group_id": queue.name,
                "share_acknowledgement_mode": "explicit",
                "consumer_timeout_ms": TIMEOUT * 1000,
                **configs,
            }
            made = KafkaShareConsumer(queue.name, **chosen)
            opened.callback(made.close)
            return made

        yield make


def taken(member: Any, count: int, kind: AcknowledgeType | None = None) -> list[Any]:
    """Poll until there are so many records; acknowledge them."""
    found: list[Any] = []
    deadline = time.monotonic() + TIMEOUT
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count}: {member.health()}"
        for records in member.poll(2000).values():
            found += records
            for record in records:
                if kind is not None:
                    member.acknowledge(record, kind)
    return found


def places(records: list[Any]) -> list[tuple[int, int]]:
    return [(record.offset, record.delivery_count) for record in records]


def test_control_records_and_aborted_ones_are_passed(queue: Queue, member: Make) -> None:
    queue.configure(**{"share.isolation.level": "read_committed"})
    with KafkaProducer(bootstrap_servers=queue.cluster.bootstrap_servers, transactional_id=queue.name) as producer:
        producer.init_transactions()
        for value, commits in ((b"no", False), (b"yes", True), (b"no", False), (b"yes", True)):
            producer.begin_transaction()
            producer.send(queue.name, value, partition=0)
            (producer.commit_transaction if commits else producer.abort_transaction)()
    one = member()
    assert [record.value for record in taken(one, 2, ACCEPT)] == [b"yes", b"yes"]
    one.commit()
    deadline = time.monotonic() + TIMEOUT
    while queue.lag():
        assert time.monotonic() < deadline
        assert one.poll(200) == {}


@pytest.mark.one_face  # members of both: each death of a broker costs seconds of a processor
def test_members_share_many_partitions_and_a_leader_that_dies_loses_nothing(kafka_cluster: KafkaCluster) -> None:
    cluster = kafka_cluster
    queue = Queue(cluster, partitions=6, replicas=3)
    made = [
        kind(
            queue.name,
            bootstrap_servers=cluster.bootstrap_servers,
            group_id=queue.name,
            share_acknowledgement_mode="explicit",
        )
        for kind in (KafkaShareConsumer, AIOShareConsumer, AIOShareConsumer)
    ]
    try:
        for number in range(6):
            queue.put(*(f"{number}-{index}" for index in range(50)), partition=number)
        done: set[bytes] = set()
        deadline = time.monotonic() + 2 * TIMEOUT
        killed = False
        while len(done) < 300:
            assert time.monotonic() < deadline, f"{len(done)}: {[one.health() for one in made]}"
            for one in made:
                for records in one.poll(300).values():
                    for record in records:
                        one.acknowledge(record)
                        done.add(record.value)
                one.commit(5000)
            if len(done) > 100 and not killed:
                killed = True
                cluster.kill(2)
        assert len(done) == 300
    finally:
        for one in made:
            one.close()


@pytest.mark.matrix  # test/embedded/share/test_share_consumer.py has a broker of each release
@pytest.mark.one_face  # both at one node
def test_kafka_without_share_groups_is_named(kafka_at: StartKafka) -> None:
    cluster = kafka_at("3.9.1")
    cluster.create_topic("jobs")
    for kind in (KafkaShareConsumer, AIOShareConsumer):
        one = kind("jobs", bootstrap_servers=cluster.bootstrap_servers, group_id="g")
        with one, pytest.raises(UnsupportedVersionError, match=r"Kafka 4\.2"):
            one.poll(30_000)


@pytest.mark.matrix
def test_kafka_4_1_serves_all_but_renewals_and_record_limits(kafka_at: StartKafka, face: str) -> None:
    cluster = kafka_at("4.1.1", properties={"group.coordinator.rebalance.protocols": "classic,consumer,share"})
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.update_features({"share.version": 1})
    queue = Queue(cluster)
    queue.put("a")
    options = {"bootstrap_servers": cluster.bootstrap_servers, "group_id": queue.name}
    one = KafkaShareConsumer(queue.name, **options, share_acknowledgement_mode="explicit")
    limited = KafkaShareConsumer(queue.name, **options, share_acquire_mode="record_limit")
    try:
        (record,) = taken(one, 1)
        with pytest.raises(UnsupportedVersionError, match="RENEW"):
            one.acknowledge(record, RENEW)
        one.acknowledge(record)
        assert one.commit() == {queue.place: None}
        with pytest.raises(UnsupportedVersionError, match="record_limit"):
            taken(limited, 1)
    finally:
        one.close()
        limited.close()


def test_without_rights_each_poll_raises_and_a_grant_ends_it(
    share_kafka: KafkaCluster, queue: Queue, face: str
) -> None:
    user = queue.name
    share_kafka.add_scram_user(user, "secret")
    reads = [
        ACL(f"User:{user}", "*", operation, "ALLOW", ResourcePattern(kind, queue.name))
        for kind, operation in (("GROUP", "READ"), ("TOPIC", "READ"), ("TOPIC", "DESCRIBE"))
    ]
    group, topic, describe = reads
    queue.put("a", "b")
    with KafkaAdminClient(bootstrap_servers=share_kafka.bootstrap_servers) as admin:
        admin.create_acls([describe])
        one = KafkaShareConsumer(
            queue.name,
            bootstrap_servers=share_kafka.bootstrap("SASL_PLAINTEXT"),
            group_id=queue.name,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_plain_username=user,
            sasl_plain_password="secret",
            share_acknowledgement_mode="explicit",
            max_poll_records=1,
            share_acquire_mode="record_limit",
        )
        try:
            deadline = time.monotonic() + TIMEOUT
            for missing, refused in ((group, GroupAuthorizationFailedError), (topic, TopicAuthorizationFailedError)):
                while refusal(one) is not refused:  # a grant takes its time to reach the broker
                    assert time.monotonic() < deadline
                assert refusal(one) is refused
                admin.create_acls([missing])
            until_granted(one, 1)
            admin.delete_acls([ACLFilter(None, None, "any", "any", ResourcePatternFilter("TOPIC", queue.name))])
            admin.create_acls([describe])
            with pytest.raises(TopicAuthorizationFailedError):
                taken(one, 2)
            admin.create_acls([topic])
            until_granted(one, 1)
            assert one.poll(1000) == {}, "no error from before the grant is left"
        finally:
            one.close()


def refusal(member: Any) -> type[Exception]:
    """Poll, and return which right was missing."""
    with pytest.raises((GroupAuthorizationFailedError, TopicAuthorizationFailedError)) as caught:
        member.poll(30_000)
    return caught.type


def until_granted(member: Any, count: int) -> None:
    """Take records; a grant takes its time to reach the broker, and so do the errors from before it."""
    deadline = time.monotonic() + TIMEOUT
    got = 0
    while got < count:
        assert time.monotonic() < deadline
        with suppress(GroupAuthorizationFailedError, TopicAuthorizationFailedError):
            got += len(taken(member, count, ACCEPT))
    assert not any(member.commit().values())
