"""Records of share groups (KIP-932) over TCP: delivery, acknowledgements, locks, sessions, what outlives a broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kafka.broker import Broker, ShareRecord
from kafka.broker.cluster.cluster import Cluster
from kafka.broker.groups.service import GroupService
from kafka.errors import Code
from kafka.protocol.configs import IncrementalAlterConfigsRequest
from kafka.protocol.share import (
    DescribeShareGroupOffsetsRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from test.embedded.broker.wire import Wire
from test.embedded.share.test_share_consumer import eventually

GROUP = "workers"
TOPIC = "jobs"
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GROUP_RESOURCE = 32
#: The connections of a test's members.
WIRES: list[Wire] = []


class Member:
    """A member of a share group, by raw requests on a connection of its own."""

    def __init__(self, broker: Broker, name: str = "m1", *, user_port: int | None = None, topic: str = TOPIC) -> None:
        self.name = name
        self.wire = Wire(user_port or broker.port())
        WIRES.append(self.wire)
        self.topic_id: UUID = broker.run(lambda cluster: cluster.topics[topic].id)
        self.epoch = 0

    def fetch(
        self,
        *,
        most: int = 500,
        exactly: bool = False,
        wait_ms: int = 0,
        says: Sequence[tuple[int, int, list[int]]] = (),
        **fields: Any,
    ) -> Any:
        """Fetch with the session's next epoch; return the whole reply."""
        request: Any = ShareFetchRequest[2](GROUP, self.name, fields.pop("epoch", self.epoch))
        request.max_wait_ms, request.min_bytes, request.max_bytes = wait_ms, 1, 1 << 20
        request.max_records, request.batch_size, request.share_acquire_mode = most, 500, int(exactly)
        request.is_renew_ack = False
        request.topics = [(fields.pop("topic_id", self.topic_id), [(fields.pop("partition", 0), list(says))])]
        for name, value in fields.items():
            setattr(request, name, value)
        reply = self.wire.ask(request)
        if not reply.error_code:
            self.epoch = request.share_session_epoch + 1
        return reply

    def got(self, **options: Any) -> list[tuple[int, int]]:
        """Fetch; return offset and delivery count of each record."""
        reply = self.fetch(**options)
        assert not reply.error_code
        return acquired(reply)

    def acknowledge(self, *says: tuple[int, int, list[int]], renew: bool = False, epoch: int | None = None) -> int:
        """Acknowledge; return the code of the partition, or that of the reply."""
        request: Any = ShareAcknowledgeRequest[2](GROUP, self.name, self.epoch if epoch is None else epoch, renew)
        request.topics = [(self.topic_id, [(0, list(says))])]
        reply = self.wire.ask(request)
        if reply.error_code:
            return int(reply.error_code)
        self.epoch += 1
        assert reply.acquisition_lock_timeout_ms == 30_000
        return int(reply.responses[0].partitions[0].error_code)

    def close(self) -> None:
        """End the session as a member that closes does."""
        assert not self.wire.ask(ShareAcknowledgeRequest[2](GROUP, self.name, -1, False)).error_code
        self.epoch = 0


def acquired(reply: Any) -> list[tuple[int, int]]:
    return [
        (offset, one.delivery_count)
        for topic in reply.responses
        for part in topic.partitions
        for one in part.acquired_records
        for offset in range(one.first_offset, one.last_offset + 1)
    ]


def configure(broker: Broker, **configs: str) -> None:
    rows = [(name, 0, value) for name, value in configs.items()]
    with Wire(broker.port()) as wire:
        request: Any = IncrementalAlterConfigsRequest[1]([(GROUP_RESOURCE, GROUP, rows)], False)
        assert not wire.ask(request).responses[0].error_code


def offsets(broker: Broker) -> tuple[int, int]:
    """Start offset and lag, as administrators see them at the group's coordinator."""
    for node in broker.run(lambda cluster: list(cluster.nodes)):
        with Wire(broker.port(node)) as wire:
            group = wire.ask(DescribeShareGroupOffsetsRequest[1]([(GROUP, [(TOPIC, [0])])])).groups[0]
        if not group.error_code:
            part = group.topics[0].partitions[0]
            return part.start_offset, part.lag
    raise AssertionError("no node coordinates the group")


def is_read(broker: Broker) -> bool:
    """Whether a node has the group's partition in memory."""

    def look(cluster: Cluster) -> bool:
        partition = cluster.topics[TOPIC].partitions[0]
        sessions = cluster.service(GroupService).share_sessions_at(partition.leader)
        return sessions is not None and sessions.partition(GROUP, (partition.topic.id, 0)) is not None

    return broker.run(look)


def restarted(path: Path) -> Broker:
    return Broker(topics=[TOPIC], data_dir=path)


@pytest.fixture(autouse=True)
def closed_wires() -> Iterator[None]:
    yield
    while WIRES:
        WIRES.pop().close()


pytestmark = pytest.mark.kafka_broker(topics=[TOPIC])


@pytest.fixture
def broker(kafka_broker: Broker) -> Broker:
    configure(kafka_broker, **{"share.auto.offset.reset": "earliest"})
    return kafka_broker


def test_a_record_is_delivered_again_until_it_is_acknowledged(broker: Broker) -> None:
    broker.append_many(TOPIC, ["a", "b", "c"])
    member = Member(broker)
    assert member.got() == [(0, 1), (1, 1), (2, 1)]
    assert member.acknowledge((0, 2, [ACCEPT, RELEASE, REJECT])) == 0
    assert broker.share_records(GROUP, TOPIC) == {
        1: ShareRecord("available", 1, None),
        2: ShareRecord("archived", 1, None),
    }
    assert member.got() == [(1, 2)]
    assert member.acknowledge((1, 1, [ACCEPT])) == 0
    assert broker.share_records(GROUP, TOPIC) == {}
    assert offsets(broker)[1] == 0


def test_two_members_never_have_a_record_at_the_same_time(broker: Broker) -> None:
    for _ in range(4):
        broker.append_many(TOPIC, [b"x"] * 5)
    one, two = Member(broker, "m1"), Member(broker, "m2")
    assert [offset for offset, _ in one.got(most=10)] == list(range(10))
    assert [offset for offset, _ in two.got(most=10)] == list(range(10, 20))
    assert two.acknowledge((0, 0, [ACCEPT])) == Code.INVALID_RECORD_STATE
    assert one.acknowledge((0, 9, [ACCEPT])) == 0


def test_batch_optimized_takes_whole_batches_and_record_limit_counts(broker: Broker) -> None:
    broker.append_many(TOPIC, [b"x"] * 20)
    one, two = Member(broker, "m1"), Member(broker, "m2")
    assert len(one.got(most=5, exactly=True)) == 5
    assert two.got(most=1) == [(offset, 1) for offset in range(5, 20)]


def test_the_last_delivery_that_is_released_archives_the_record(broker: Broker) -> None:
    configure(broker, **{"share.delivery.count.limit": "2"})
    broker.append(TOPIC, "poison")
    member = Member(broker)
    assert member.got() == [(0, 1)]
    assert member.acknowledge((0, 0, [RELEASE])) == 0
    assert member.got() == [(0, 2)]
    assert member.acknowledge((0, 0, [RELEASE])) == 0
    assert member.got() == []
    assert broker.share_records(GROUP, TOPIC) == {}


def test_deliveries_that_fail_are_narrowed_down_to_the_record(broker: Broker) -> None:
    broker.append_many(TOPIC, [b"x"] * 10)
    member = Member(broker)
    sizes = []
    while taken := member.got():
        sizes.append(len(taken))
        while more := member.got():
            sizes.append(len(more))
            taken += more
        for offset, _ in taken:
            assert member.acknowledge((offset, offset, [RELEASE])) == 0
    assert sizes == [10, 10, 10, 5, 5] + [1] * 10, "as Kafka 4.3 does with five deliveries"


def test_a_lock_that_ends_makes_the_record_available_and_late_acknowledgements_fail(broker: Broker) -> None:
    broker.append_many(TOPIC, ["a", "b"])
    one, two = Member(broker, "m1"), Member(broker, "m2")
    assert one.got() == [(0, 1), (1, 1)]
    broker.clock.advance(29)
    assert two.got() == []
    broker.clock.advance(2)
    assert one.acknowledge((0, 1, [ACCEPT])) == Code.INVALID_RECORD_STATE
    assert two.got() == [(0, 2), (1, 2)]
    broker.expire_share_locks(GROUP, TOPIC)
    assert {record.state for record in broker.share_records(GROUP, TOPIC).values()} == {"available"}


def test_a_renewal_keeps_record_and_count(broker: Broker) -> None:
    broker.append(TOPIC, "slow")
    one, two = Member(broker, "m1"), Member(broker, "m2")
    assert one.got() == [(0, 1)]
    for _ in range(3):
        broker.clock.advance(20)
        assert one.acknowledge((0, 0, [RENEW]), renew=True) == 0
    assert broker.share_records(GROUP, TOPIC) == {0: ShareRecord("acquired", 1, "m1")}
    assert two.got() == []
    assert one.acknowledge((0, 0, [RENEW])) == Code.INVALID_REQUEST, "without the flag"
    configure(broker, **{"share.renew.acknowledge.enable": "false"})
    assert one.acknowledge((0, 0, [RENEW]), renew=True) == Code.INVALID_RECORD_STATE


def test_a_fetch_with_renewals_fetches_nothing(broker: Broker) -> None:
    broker.append_many(TOPIC, ["a", "b"])
    member = Member(broker)
    assert len(member.got(most=1, exactly=True)) == 1
    renewing = {"is_renew_ack": True, "says": [(0, 0, [RENEW])]}
    assert member.fetch(**renewing).error_code == Code.INVALID_REQUEST
    reply = member.fetch(most=0, min_bytes=0, max_bytes=0, **renewing)
    assert (reply.error_code, acquired(reply)) == (0, [])
    assert reply.responses[0].partitions[0].acknowledge_error_code == 0


@pytest.mark.parametrize("ends", ["closes", "is gone"])
def test_a_session_that_ends_releases_what_its_member_has(broker: Broker, ends: str) -> None:
    broker.append_many(TOPIC, ["a", "b"])
    one, two = Member(broker, "m1"), Member(broker, "m2")
    assert two.got(most=1, exactly=True) == [(0, 1)]
    assert one.got() == [(1, 1)]
    if ends == "closes":
        one.close()
    else:
        one.wire.close()
    assert two.got(wait_ms=10_000) == [(1, 2)]


@pytest.mark.parametrize("ends", ["closes", "is gone"])
def test_when_the_last_member_is_gone_the_next_begins_with_what_is_stored(broker: Broker, ends: str) -> None:
    broker.append_many(TOPIC, ["a", "b", "c", "d", "e"])
    one = Member(broker)
    assert len(one.got()) == 5
    assert one.acknowledge((1, 1, [ACCEPT]), (2, 2, [REJECT])) == 0
    if ends == "closes":
        one.close()
    available = ShareRecord("available", 1, None)
    left = {0: available, 1: ShareRecord("acknowledged", 1, None), 2: ShareRecord("archived", 1, None)}
    one.wire.close()
    eventually(lambda: broker.share_records(GROUP, TOPIC) == {**left, 3: available, 4: available})
    # In pieces of the same state and count, where the member before got whole batches.
    eventually(lambda: not is_read(broker))
    assert Member(broker, "m2").got(most=1) == [(0, 2)]


def test_while_a_member_is_there_a_batch_stays_in_one_piece(broker: Broker) -> None:
    broker.append_many(TOPIC, ["a", "b", "c", "d", "e"])
    one, two = Member(broker, "m1"), Member(broker, "m2")
    assert len(one.got()) == 5
    assert two.got() == []
    assert one.acknowledge((1, 1, [ACCEPT]), (2, 2, [REJECT])) == 0
    one.wire.close()
    assert two.got(most=1, wait_ms=10_000) == [(0, 2), (3, 2), (4, 2)]


def test_a_fetch_waits_for_new_records_and_for_released_ones(broker: Broker) -> None:
    one, two = Member(broker, "m1"), Member(broker, "m2")
    assert one.got() == []
    waiting = threading.Timer(0.1, broker.append, (TOPIC, "a"))
    waiting.start()
    assert one.got(wait_ms=30_000) == [(0, 1)]
    waiting.join()
    releasing = threading.Timer(0.1, one.acknowledge, ((0, 0, [RELEASE]),))
    releasing.start()
    assert two.got(wait_ms=30_000) == [(0, 2)]
    releasing.join()


def test_a_fetch_that_finds_nothing_ends_with_its_time(broker: Broker) -> None:
    assert Member(broker).got(wait_ms=50) == []


def test_records_that_a_fetch_releases_itself_come_with_the_next_one(broker: Broker) -> None:
    broker.append(TOPIC, "a")
    member = Member(broker)
    assert member.got() == [(0, 1)]
    broker.append(TOPIC, "b")
    assert member.got(says=[(0, 0, [RELEASE])]) == [(1, 1)]
    assert member.got() == [(0, 2)]


@pytest.mark.parametrize(
    ("epoch", "code"), [(0, Code.INVALID_SHARE_SESSION_EPOCH), (5, Code.INVALID_SHARE_SESSION_EPOCH)]
)
def test_an_acknowledgement_needs_the_session_and_its_epoch(broker: Broker, epoch: int, code: Code) -> None:
    broker.append(TOPIC, "a")
    member = Member(broker)
    assert member.acknowledge((0, 0, [ACCEPT]), epoch=1) == Code.SHARE_SESSION_NOT_FOUND
    assert member.got() == [(0, 1)]
    assert member.acknowledge((0, 0, [ACCEPT]), epoch=epoch) == code
    assert member.fetch(epoch=7).error_code == Code.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge((0, 0, [ACCEPT])) == 0


def test_the_first_fetch_of_a_session_takes_no_acknowledgements(broker: Broker) -> None:
    assert Member(broker).fetch(says=[(0, 0, [ACCEPT])]).error_code == Code.INVALID_REQUEST


@pytest.mark.parametrize(
    "says",
    [
        [(0, 1, [])],
        [(0, 2, [ACCEPT, ACCEPT])],
        [(1, 0, [ACCEPT])],
        [(0, 1, [ACCEPT]), (1, 2, [ACCEPT])],
        [(0, 1, [9])],
        [(0, 100, [ACCEPT])],
    ],
)
def test_malformed_acknowledgements_change_nothing(broker: Broker, says: list[tuple[int, int, list[int]]]) -> None:
    broker.append_many(TOPIC, ["a", "b", "c"])
    member = Member(broker)
    assert len(member.got()) == 3
    assert member.acknowledge(*says) == Code.INVALID_REQUEST
    assert {record.state for record in broker.share_records(GROUP, TOPIC).values()} == {"acquired"}


def test_one_wrong_acknowledgement_undoes_the_others_of_the_partition(broker: Broker) -> None:
    broker.append_many(TOPIC, ["a", "b", "c"])
    one, two = Member(broker, "m1"), Member(broker, "m2")
    assert one.got(most=2, exactly=True) == [(0, 1), (1, 1)]
    assert two.got() == [(2, 1)]
    assert one.acknowledge((0, 0, [ACCEPT]), (1, 2, [ACCEPT])) == Code.INVALID_RECORD_STATE
    assert one.acknowledge((0, 1, [ACCEPT])) == 0


def test_no_more_records_are_in_delivery_than_locks_allow(broker: Broker) -> None:
    configure(broker, **{"share.partition.max.record.locks": "100"})
    for _ in range(30):
        broker.append_many(TOPIC, [b"x"] * 5)
    one, two = Member(broker, "m1"), Member(broker, "m2")
    assert len(one.got()) == 100
    assert two.got() == []
    assert one.acknowledge((0, 4, [ACCEPT])) == 0
    assert two.got() == [(offset, 1) for offset in range(100, 105)]


def test_sessions_have_a_limit() -> None:
    with Broker(topics=[TOPIC], configs={"group.share.max.share.sessions": 1}) as broker:
        one, two = Member(broker, "m1"), Member(broker, "m2")
        assert not one.fetch().error_code
        assert two.fetch(wait_ms=20).error_code == Code.SHARE_SESSION_LIMIT_REACHED
        one.close()
        assert not two.fetch().error_code


@pytest.mark.parametrize(("reset", "expected"), [("earliest", [0, 1]), ("latest", []), ("by_duration:PT1H", [1])])
def test_a_group_begins_where_its_configuration_says(reset: str, expected: list[int]) -> None:
    with Broker(topics=[TOPIC]) as broker:
        configure(broker, **{"share.auto.offset.reset": reset})
        now = broker.clock.now_ms()
        broker.append(TOPIC, "old", timestamp_ms=now - 7_200_000)
        broker.append(TOPIC, "new", timestamp_ms=now)
        assert [offset for offset, _ in Member(broker).got()] == expected


def test_a_follower_names_the_leader_and_deliveries_begin_again_from_what_is_stored() -> None:
    with Broker(nodes=2, topics=[TOPIC]) as broker:
        broker.move_leader((TOPIC, 0), 1)
        member = Member(broker)
        assert member.got() == [], "the group begins at the end of the log"
        broker.append_many(TOPIC, ["a", "b", "c"])
        assert len(member.got()) == 3
        assert member.acknowledge((0, 1, [ACCEPT, RELEASE])) == 0
        broker.move_leader((TOPIC, 0), 2)
        reply = member.fetch()
        part = reply.responses[0].partitions[0]
        assert (part.error_code, part.current_leader.leader_id) == (Code.NOT_LEADER_OR_FOLLOWER, 2)
        assert [node.port for node in reply.node_endpoints] == [broker.port(2)]
        assert member.acknowledge((2, 2, [ACCEPT])) == Code.UNKNOWN_TOPIC_OR_PARTITION
        there = Member(broker, "m1", user_port=broker.port(2))
        assert there.got() == [(1, 2), (2, 1)], (
            "the release is stored with its count, the delivery that was open is not"
        )


def test_a_topic_that_is_deleted_and_one_that_never_was(broker: Broker) -> None:
    broker.append(TOPIC, "a")
    member = Member(broker)
    assert member.got() == [(0, 1)]
    broker.delete_topic(TOPIC)
    assert member.acknowledge((0, 0, [ACCEPT])) == Code.UNKNOWN_TOPIC_ID
    assert member.fetch(topic_id=uuid4(), epoch=0).responses[0].partitions[0].error_code == Code.UNKNOWN_TOPIC_ID


def test_state_outlives_the_broker(tmp_path: Path) -> None:
    with restarted(tmp_path) as broker:
        configure(broker, **{"share.auto.offset.reset": "earliest"})
        broker.append_many(TOPIC, ["a", "b", "c", "d"])
        member = Member(broker)
        assert len(member.got()) == 4
        assert member.acknowledge((0, 2, [ACCEPT, RELEASE, REJECT])) == 0
        member.wire.close()  # which releases the fourth
        other = Member(broker, "m2")
        assert other.got(most=1, wait_ms=10_000, exactly=True) == [(1, 2)]
        assert other.acknowledge((1, 1, [RELEASE])) == 0
    with restarted(tmp_path) as broker:
        assert offsets(broker) == (1, 2)
        assert Member(broker).got() == [(1, 3), (3, 2)]


def test_read_committed_leaves_out_what_was_aborted(broker: Broker) -> None:
    configure(broker, **{"share.isolation.level": "read_committed"})
    from kafka import KafkaProducer

    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(TOPIC, b"no").get()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(TOPIC, b"yes").get()
        member = Member(broker)
        # The marker of the aborted transaction is delivered: clients acknowledge it as a gap.
        assert [offset for offset, _ in member.got()] == [1]
        producer.commit_transaction()
    assert member.got(wait_ms=10_000)[0][0] == 2


def test_compacted_records_do_not_hold_up_the_group() -> None:
    with Broker() as broker:
        broker.create_topic(TOPIC, configs={"cleanup.policy": "compact"})
        configure(broker, **{"share.auto.offset.reset": "earliest"})
        for number in range(6):
            broker.append(TOPIC, str(number), key="same" if number < 5 else "last")
        member = Member(broker)
        assert len(member.got()) == 6
        broker.roll(TOPIC)
        broker.compact()
        assert member.acknowledge((0, 5, [RELEASE])) == 0
        taken = [offset for offset, _ in member.got()]
        assert taken == [4, 5]
        assert member.acknowledge((4, 5, [ACCEPT])) == 0
        assert broker.share_records(GROUP, TOPIC) == {}


def test_records_that_are_deleted_leave_the_group() -> None:
    with Broker(topics=[TOPIC]) as broker:
        configure(broker, **{"share.auto.offset.reset": "earliest"})
        broker.append_many(TOPIC, [b"x"] * 4)
        member = Member(broker)
        assert member.got(most=2, exactly=True) == [(0, 1), (1, 1)]
        broker.run(lambda cluster: cluster.partition(TOPIC, 0).log.delete_before(3))  # type: ignore[union-attr]
        assert member.got() == [], "the fetch that finds it out gets nothing, as in Kafka"
        assert member.got() == [(3, 1)]
        assert member.acknowledge((0, 1, [ACCEPT]), (3, 3, [ACCEPT])) == 0


def test_a_member_without_rights_reads_nothing() -> None:
    users = [("PLAIN", "root", "r"), ("PLAIN", "eve", "e")]
    rules = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:root",
    }
    with Broker(topics=[TOPIC], sasl=users, configs=rules) as broker:
        from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

        member = Member(broker)
        member.wire.ask(SaslHandshakeRequest[1]("PLAIN"))
        member.wire.ask(SaslAuthenticateRequest[2](b"\0eve\0e"))
        assert member.fetch().error_code == Code.GROUP_AUTHORIZATION_FAILED
        assert member.acknowledge((0, 0, [ACCEPT]), epoch=1) == Code.GROUP_AUTHORIZATION_FAILED


def test_a_release_before_share_groups_does_not_have_them() -> None:
    with Broker(topics=[TOPIC], as_version="4.0") as broker:
        assert broker.run(lambda cluster: (cluster.apis.get(78), cluster.apis.get(79))) == (None, None)


def test_a_group_continues_at_an_offset_that_an_administrator_sets(broker: Broker) -> None:
    from kafka.protocol.share import AlterShareGroupOffsetsRequest

    broker.append_many(TOPIC, [b"x"] * 5)
    member = Member(broker)
    with Wire(broker.port()) as wire:
        joined = wire.ask(
            ShareGroupHeartbeatRequest[1](
                group_id=GROUP, member_id="m1", member_epoch=0, rack_id=None, subscribed_topic_names=[TOPIC]
            )
        )
        assert not joined.error_code
        assert len(member.got()) == 5
        assert member.acknowledge((0, 4, [ACCEPT])) == 0
        member.close()
        wire.ask(ShareGroupHeartbeatRequest[1](group_id=GROUP, member_id="m1", member_epoch=-1))
        reply = wire.ask(AlterShareGroupOffsetsRequest[0](GROUP, [(TOPIC, [(0, 3)])]))
        assert not reply.error_code
    assert member.got() == [(3, 1), (4, 1)]
