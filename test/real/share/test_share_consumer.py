"""Share consumers against Apache Kafka: what its brokers deliver, again and to whom."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka import AcknowledgeType, KafkaAdminClient, KafkaProducer, KafkaShareConsumer, TopicPartition
from kafka.admin import ConfigResource
from kafka.errors import InvalidRecordStateError, UnsupportedVersionError
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
def queue(kafka: KafkaCluster) -> Queue:
    return Queue(kafka)


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


def test_the_worker_loop_empties_the_queue(queue: Queue, member: Make) -> None:
    queue.put("good", "bad", "good")
    one, seen = member(), []
    for record in one:
        with one.processing(record, max_deliveries=3):
            seen.append((record.offset, record.delivery_count))
            if record.value == b"bad":
                raise ValueError(record.value)
        if len(seen) == 5:
            break
    assert sorted(seen) == [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1)]
    assert one.commit() == {queue.place: None}
    deadline = time.monotonic() + TIMEOUT
    while queue.lag():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_poll_accepts_and_close_releases(queue: Queue, member: Make) -> None:
    one = member(share_acknowledgement_mode="implicit")
    queue.put("a")
    assert places(taken(one, 1)) == [(0, 1)]
    queue.put("b")
    assert places(taken(one, 1)) == [(1, 1)]
    one.close()
    two = member()
    assert places(taken(two, 1, ACCEPT)) == [(1, 2)]
    assert two.commit() == {queue.place: None}


def test_a_renewal_costs_no_other_acknowledgement_and_does_not_hold_up_a_poll(queue: Queue, member: Make) -> None:
    queue.put("long", "short")
    one = member()
    long, short = taken(one, 2)
    one.acknowledge(long, RENEW)
    one.acknowledge(short)
    assert one.commit() == {queue.place: None}
    queue.put("next")
    assert places(taken(one, 1, ACCEPT)) == [(2, 1)]
    one.acknowledge(long)
    assert one.commit() == {queue.place: None}
    assert one.commit() == {}


def test_a_released_record_goes_to_another_member_and_a_rejected_one_to_none(queue: Queue, member: Make) -> None:
    queue.put("a", "b")
    one, two = member(), member()
    first, second = taken(one, 2)
    one.acknowledge(first, RELEASE)
    one.acknowledge(second, REJECT)
    assert one.commit() == {queue.place: None}
    one.close()
    assert places(taken(two, 1, ACCEPT)) == [(0, 2)]
    assert two.commit() == {queue.place: None}
    assert two.poll(1000) == {}


def test_record_limit_is_kept(queue: Queue, member: Make) -> None:
    queue.put(*("x" for _ in range(20)))
    one = member(share_acquire_mode="record_limit", max_poll_records=3)
    got: list[int] = []
    while len(got) < 20:
        found = taken(one, 1, ACCEPT)
        assert len(found) <= 3
        got += [record.offset for record in found]
    assert got == list(range(20))


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


@pytest.mark.one_face
def test_a_lock_that_has_run_out_is_an_error_of_its_partition(queue: Queue, member: Make) -> None:
    queue.configure(**{"share.record.lock.duration.ms": "15000"})
    queue.put("slow")
    one, two = member(), member()
    (record,) = taken(one, 1)
    assert one.acquisition_lock_timeout_ms() == 15_000
    assert places(taken(two, 1)) == [(0, 2)]
    one.acknowledge(record)
    assert isinstance(one.commit()[queue.place], InvalidRecordStateError)


def test_members_share_many_partitions_and_a_leader_that_dies_loses_nothing(
    kafka_cluster: KafkaCluster, face: str
) -> None:
    cluster = kafka_cluster
    queue = Queue(cluster, partitions=6, replicas=3)
    made = [
        KafkaShareConsumer(
            queue.name,
            bootstrap_servers=cluster.bootstrap_servers,
            group_id=queue.name,
            share_acknowledgement_mode="explicit",
        )
        for _ in range(3)
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


def test_kafka_without_share_groups_is_named(kafka_at: StartKafka, face: str) -> None:
    cluster = kafka_at("3.9.1")
    cluster.create_topic("jobs")
    one = KafkaShareConsumer("jobs", bootstrap_servers=cluster.bootstrap_servers, group_id="g")
    try:
        with pytest.raises(UnsupportedVersionError, match=r"Kafka 4\.2"):
            one.poll(30_000)
    finally:
        one.close()
