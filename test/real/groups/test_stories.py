"""What stops consumers for good elsewhere, done to a real broker: paused, administered, denied."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from kafka.client_async import KafkaClient
from kafka.consumer import KafkaConsumer
from kafka.errors import (
    AuthorizationError,
    CommitFailedError,
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
)
from kafka.producer import KafkaProducer
from kafka.protocol.acl import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kafka.protocol.admin import DeleteTopicsRequest
from kafka.protocol.group import LeaveGroupRequest
from kafka.structs import TopicPartition
from test.real.conftest import QUICK_SESSIONS, StartKafka
from test.real.java_tools import JavaTools
from test.real.kafka_process import KafkaCluster

from .conftest import KINDS, MakeGroup
from .judge import check
from .waiting import wait_read
from .writer import Writer

pytestmark = pytest.mark.slow

PROTOCOLS = ["classic", "consumer"]
PATIENCE = 60.0


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def member(opened: ExitStack, servers: str, topics: list[str], protocol: str, **configs: Any) -> KafkaConsumer:
    consumer = KafkaConsumer(
        *topics,
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        group_protocol=protocol,
        metadata_max_age_ms=1000,
        allow_auto_create_topics=False,
        **configs,
    )
    opened.callback(consumer.close, timeout_ms=5000)
    return consumer


def write(servers: str, topic: str, count: int = 10) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=number % 2)


def read(consumer: KafkaConsumer, count: int) -> list[Any]:
    found: list[Any] = []

    def poll() -> None:
        for records in consumer.poll(timeout_ms=100).values():
            found.extend(records)

    until(lambda: len(found) >= count, poll, consumer)
    return found


def until(condition: Callable[[], bool], do: Callable[[], object], consumer: KafkaConsumer) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        do()
        assert time.monotonic() < deadline, consumer.health()


def pause_during_a_rebalance(cluster: KafkaCluster, make_group: MakeGroup, seconds: float) -> None:
    topic = cluster.create_topic("paused", 6)
    groups = []
    with Writer(cluster.bootstrap_servers, topic, 6) as writer:
        for kind, plan in KINDS.items():
            options = {"request_timeout_ms": 5000}
            if kind != "consumer":
                options |= {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}
            group = make_group(cluster, topic, f"paused-{kind}", options=options, **plan)
            group.join(2)
            groups.append(group)
        for group in groups:
            group.wait_shared_out()
            group.join()
        for group in groups:
            group.wait(lambda group=group: bool(group.live[-1].said("started")), "third member")
        cluster.pause(1)
        time.sleep(seconds)
        cluster.resume(1)
        for group in groups:
            group.wait_shared_out(90)
        wait_read(groups, writer)
        writer.stop()
        wait_read(groups, writer)
    for kind, group in zip(KINDS, groups, strict=True):
        group.stop()
        print(f"{kind}, paused for {seconds:.0f} s: {check(group.members, writer.written)}")


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_broker_that_hangs_for_20_seconds_during_a_rebalance_is_outlived(
    kafka_at: StartKafka, make_group: MakeGroup
) -> None:
    pause_during_a_rebalance(kafka_at(properties=QUICK_SESSIONS), make_group, 20.0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_topic_is_deleted_and_made_again_under_its_readers(
    kafka: KafkaCluster, opened: ExitStack, protocol: str
) -> None:
    servers, stays, goes = kafka.bootstrap_servers, f"stays-{protocol}", f"goes-{protocol}"
    for topic in (stays, goes):
        kafka.create_topic(topic, 2)
        write(servers, topic)
    consumer = member(opened, servers, [stays, goes], protocol, group_id=f"deleted-{protocol}")
    assert len(read(consumer, 20)) == 20
    with KafkaClient(bootstrap_servers=servers) as client:
        client.ask(DeleteTopicsRequest(topic_names=[goes], topics=[{"name": goes}], timeout_ms=10_000))
    write(servers, stays)
    assert {record.topic for record in read(consumer, 10)} == {stays}
    until(
        lambda: {partition.topic for partition in consumer.assignment()} == {stays},
        lambda: consumer.poll(timeout_ms=100),
        consumer,
    )
    kafka.create_topic(goes, 2)
    write(servers, goes)
    assert {record.topic for record in read(consumer, 10)} == {goes}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_that_an_administrator_removes_comes_back(
    kafka: KafkaCluster, java_tools: JavaTools, opened: ExitStack, protocol: str
) -> None:
    servers, topic = kafka.bootstrap_servers, kafka.create_topic(f"removed-{protocol}", 2)
    consumer = member(opened, servers, [topic], protocol, group_id=topic)
    write(servers, topic)
    read(consumer, 10)
    consumer.commit()
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    said = java_tools.run(tool, "--bootstrap-server", servers, "--delete", "--group", topic)
    assert "not empty" in said.out + said.err  # the tool deletes no group that lives
    who = consumer.group_metadata().member_id
    with KafkaClient(bootstrap_servers=servers) as client:
        client.ask(LeaveGroupRequest(group_id=topic, members=[{"member_id": who, "group_instance_id": None}]))
    write(servers, topic)
    partitions = [TopicPartition(topic, number) for number in range(2)]
    done: list[int] = []

    def poll_and_commit() -> None:
        consumer.poll(timeout_ms=100)
        with suppress(CommitFailedError):  # it has yet to hear that it is out
            consumer.commit()
            done.append(sum(offset.offset for offset in consumer.committed(partitions).values() if offset))

    until(lambda: 20 in done, poll_and_commit, consumer)


class Rights:
    """What alice may read, changed from outside; by the beginning of names."""

    def __init__(self, client: KafkaClient) -> None:
        self._client = client

    def grant(self, kind: int, name: str) -> None:
        who = {"principal": "User:alice", "host": "*", "operation": READ, "permission_type": ALLOW}
        what = {"resource_type": kind, "resource_name": name, "resource_pattern_type": PREFIXED}
        answer = self._client.ask(CreateAclsRequest(creations=[what | who]))
        assert [result.error_code for result in answer.results] == [0]
        ask = DescribeAclsRequest(
            resource_type_filter=kind,
            resource_name_filter=name,
            pattern_type_filter=PREFIXED,
            principal_filter="User:alice",
            host_filter=None,
            operation=READ,
            permission_type=ALLOW,
        )
        deadline = time.monotonic() + PATIENCE
        while not self._client.ask(ask).resources:  # the controller has made it; the broker learns of it a little later
            assert time.monotonic() < deadline

    def take(self, kind: int, name: str) -> None:
        who = {"principal_filter": "User:alice", "host_filter": "*", "operation": READ, "permission_type": ALLOW}
        what = {"resource_type_filter": kind, "resource_name_filter": name, "pattern_type_filter": PREFIXED}
        answer = self._client.ask(DeleteAclsRequest(filters=[what | who]))
        assert len(answer.filter_results[0].matching_acls) == 1


READ, ALLOW, PREFIXED = 3, 3, 4
TOPIC, GROUP = 2, 3


def test_rights_are_taken_away_while_consuming(kafka_cluster: KafkaCluster, opened: ExitStack) -> None:
    plain, servers = kafka_cluster.bootstrap_servers, kafka_cluster.bootstrap("SASL_PLAINTEXT")
    kafka_cluster.create_topic("guarded", 2, replicas=3)
    kafka_cluster.add_scram_user("alice", "secret")
    client = opened.enter_context(KafkaClient(bootstrap_servers=plain))
    rights = Rights(client)
    login = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "secret",
    }
    rights.grant(TOPIC, "guarded")
    rights.grant(GROUP, "guarded")
    consumers = [
        member(opened, servers, ["guarded"], protocol, group_id=f"guarded-{protocol}", **login)
        for protocol in PROTOCOLS
    ]
    write(plain, "guarded")
    for consumer in consumers:
        assert len(read(consumer, 10)) == 10
        consumer.commit()

    def denied(consumer: KafkaConsumer, wanted: type[KafkaError]) -> None:
        heard: list[KafkaError] = []

        def poll() -> None:
            try:
                consumer.poll(timeout_ms=100)
            except AuthorizationError as error:  # one of the other kind may have been under way
                heard.append(error)

        until(lambda: any(isinstance(error, wanted) for error in heard), poll, consumer)

    for kind, wanted in ((TOPIC, TopicAuthorizationFailedError), (GROUP, GroupAuthorizationFailedError)):
        rights.take(kind, "guarded")
        write(plain, "guarded")
        for consumer in consumers:
            denied(consumer, wanted)
        rights.grant(kind, "guarded")
        ends = end_of(kafka_cluster)
        for consumer in consumers:
            wait_for_end(consumer, ends)


def end_of(cluster: KafkaCluster) -> dict[TopicPartition, int]:
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers) as watcher:
        return watcher.end_offsets([TopicPartition("guarded", 0), TopicPartition("guarded", 1)])


def wait_for_end(consumer: KafkaConsumer, ends: dict[TopicPartition, int]) -> None:
    """Poll until everything was read; what is denied still, for a moment, is polled past."""

    def poll() -> None:
        with suppress(AuthorizationError):
            consumer.poll(timeout_ms=100)

    def done() -> bool:
        try:
            return consumer.assignment() == ends.keys() and all(consumer.position(tp) == ends[tp] for tp in ends)
        except AuthorizationError:
            return False

    until(done, poll, consumer)
