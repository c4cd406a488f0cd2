"""What tests can order a broker to do."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.aio import AIOKafkaProducer
from kafka.broker import CLOSE, NO_REPLY, Broker, Exchange
from kafka.broker.cluster.cluster import Cluster
from kafka.errors import (
    IllegalArgumentError,
    IllegalStateError,
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotLeaderOrFollowerError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin import ApiVersionsRequest, ListGroupsRequest
from kafka.protocol.api import Request
from kafka.protocol.commit import FindCoordinatorRequest
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.group import HeartbeatRequest, JoinGroupRequest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.offset import ListOffsetsRequest
from kafka.record.header import scan
from test.embedded.threads import nothing_left

from .batches import batch, produce
from .wire import Wire, wire

pytestmark = pytest.mark.kafka_broker(nodes=2, topics={"events": 4}, seed=1)


def metadata(client: Wire) -> object:
    return client.ask(MetadataRequest[1](["events"]))


def ends(version: int = 1) -> ListOffsetsRequest:
    return ListOffsetsRequest[version](replica_id=-1, topics=[("events", [(0, -1)])])


# Faults


def test_fail_answers_in_turn_and_then_no_more(broker: Broker) -> None:
    broker.fail("Metadata", [5, None, UnknownTopicOrPartitionError])
    with wire(broker) as client:
        codes = [client.ask(MetadataRequest[1](["events"])).topics[0].error_code for _ in range(4)]
    assert codes == [5, 0, 3, 0]


def test_fail_repeats_and_may_concern_one_node(broker: Broker) -> None:
    broker.fail(ListOffsetsRequest, [NotLeaderOrFollowerError], times=2, node=2)
    broker.move_leader(("events", 0), 2)
    with wire(broker, 1) as first, wire(broker, 2) as second:
        assert first.ask(ends()).topics[0].partitions[0].error_code == 6  # not the leader
        codes = [second.ask(ends()).topics[0].partitions[0].error_code for _ in range(3)]
    assert codes == [6, 6, 0]


def test_a_failed_produce_has_appended_nothing(broker: Broker) -> None:
    broker.move_leader(("events", 0), 1)
    broker.fail("Produce", [7])
    with wire(broker) as client:
        reply = client.ask(produce(batch(b"v")))
        assert reply.responses[0].partition_responses[0].error_code == 7
    assert broker.records("events") == []


def test_one_error_is_for_one_of_several_requests_that_arrive_together(broker: Broker) -> None:
    seen: list[Exchange] = []
    broker.intercept("Metadata", seen.append, times=1)
    broker.delay("ListGroups", 3600, times=1)
    broker.drop_connections(api="FindCoordinator", times=1)
    with ExitStack() as stack:
        clients = [stack.enter_context(wire(broker, 1)) for _ in range(4)]

        def together(request: Request) -> list[Wire]:
            """Have the requests of all connections wait before the broker's loop looks at any of them."""
            broker.run(lambda _: [client.send(request) for client in clients])
            return clients

        for client in together(MetadataRequest[1]([])):
            client.receive(MetadataRequest[1].RESPONSE_TYPE)
        assert len(seen) == 1
        cut = [client for client in together(FindCoordinatorRequest[0]("g")) if is_cut(client)]
        assert len(cut) == 1
        clients.remove(*cut)
        for client in clients:
            client.receive(FindCoordinatorRequest[0].RESPONSE_TYPE)
        waiting = {client.socket: client for client in together(ListGroupsRequest[0]())}
        while len(waiting) > 1:
            answered, _, _ = select.select(waiting, [], [], 60)
            assert answered
            for ready in answered:
                waiting.pop(ready).receive(ListGroupsRequest[0].RESPONSE_TYPE)
        assert waiting  # the one that is delayed


def is_cut(client: Wire) -> bool:
    """Wait for a reply, and leave it there, or for the end of the connection."""
    try:
        return client.socket.recv(1, socket.MSG_PEEK) == b""
    except ConnectionResetError:
        return True


def fetch(version: int, epoch: int, session: int = 0, topics: bool = True) -> Any:
    cls = FetchRequest[version]
    parts = [cls.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in (0, 1)]
    return cls(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        session_id=session,
        session_epoch=epoch,
        topics=[cls.FetchTopic(topic="events", partitions=parts)] if topics else [],
    )


def test_an_error_of_sessions_waits_for_a_fetch_that_continues_one(broker: Broker) -> None:
    with Wire(broker.port()) as client:
        broker.fail("Fetch", "INVALID_FETCH_SESSION_EPOCH")
        reply = client.ask(fetch(12, 0))
        assert reply.error_code == 0
        assert client.ask(fetch(12, -1, reply.session_id)).error_code == 0, "it ends the session"
        session = client.ask(fetch(12, 0)).session_id
        reply = client.ask(fetch(12, 1, session, topics=False))
        assert (reply.error_code, reply.responses) == (71, [])


def test_a_fetch_fails_at_the_partitions_that_its_session_remembers(broker: Broker) -> None:
    with wire(broker, broker.leader("events")) as client:
        broker.move_leader(("events", 0), broker.leader("events"))
        session = client.ask(fetch(12, 0)).session_id
        assert session
        broker.fail("Fetch", ["TOPIC_AUTHORIZATION_FAILED", "FETCH_SESSION_ID_NOT_FOUND"])
        reply = client.ask(fetch(12, 1, session, topics=False))
        assert (reply.error_code, reply.session_id) == (0, session)
        parts = reply.responses[0].partitions
        assert [(part.partition_index, part.error_code) for part in parts] == [(0, 29), (1, 29)]
        reply = client.ask(fetch(12, 2, session, topics=False))
        assert (reply.error_code, reply.responses) == (70, [])
        # The session has gone on; and the partition is told once more, as after each error (KAFKA-9835).
        reply = client.ask(fetch(12, 2, session, topics=False))
        assert (reply.error_code, reply.session_id) == (0, session)
        assert reply.responses[0].partitions[0].error_code == 0


def test_a_failed_metadata_keeps_the_nodes(broker: Broker) -> None:
    broker.fail("Metadata", [29, 72, 29, 29, 129, 129])
    with wire(broker) as client:
        reply = client.ask(MetadataRequest[12](topics=[(ZERO_UUID, "events")]))
        assert [node.node_id for node in reply.brokers] == [1, 2]
        assert (reply.controller_id, [(one.name, one.error_code) for one in reply.topics]) == (1, [("events", 29)])
        (topic,) = client.ask(MetadataRequest[12](topics=[(ZERO_UUID, "events")])).topics
        assert (topic.error_code, {(one.error_code, one.leader_id) for one in topic.partitions}) == (0, {(72, -1)})
        assert client.ask(MetadataRequest[12](topics=[])).topics == []  # asks for no topic: the errors are to come
        assert [one.error_code for one in client.ask(MetadataRequest[12](topics=None)).topics] == [29]
        reply = client.ask(MetadataRequest[13](topics=[(ZERO_UUID, "new")]))
        assert (reply.error_code, reply.topics[0].error_code, len(reply.brokers)) == (0, 29, 2)
        assert client.ask(MetadataRequest[13](topics=None)).error_code == 129
        assert client.ask(MetadataRequest[12](topics=[(ZERO_UUID, "new")])).topics[0].error_code == 129
    assert "new" not in broker.run(lambda cluster: cluster.topics)


def test_a_failed_produce_without_acks_closes_the_connection(broker: Broker) -> None:
    broker.fail("Produce", 29)
    with wire(broker) as client:
        client.send(produce(batch(b"v"), acks=0))
        assert client.is_closed()


def test_a_version_of_api_versions_that_is_not_served_is_answered_in_v0(broker: Broker) -> None:
    broker.fail("ApiVersions", "UNSUPPORTED_VERSION")
    with wire(broker) as client:
        client.send(ApiVersionsRequest[4](client_software_name="x", client_software_version="1"))
        _, reply = client.receive(ApiVersionsRequest[0].RESPONSE_TYPE)
        assert (reply.error_code, [tuple(one) for one in reply.api_keys]) == (35, [(18, 0, 4)])


def test_interceptors_see_and_change_replies(broker: Broker) -> None:
    seen: list[Exchange] = []

    def rename(exchange: Exchange) -> None:
        seen.append(exchange)
        exchange.reply.topics[0].name = "renamed"

    with broker.intercept("Metadata", rename), wire(broker) as client:
        assert client.ask(MetadataRequest[1](["events"])).topics[0].name == "renamed"
        assert (seen[0].node_id, seen[0].client_id, seen[0].version) == (1, "test", 1)
    with wire(broker) as client:
        assert client.ask(MetadataRequest[1](["events"])).topics[0].name == "events"


def test_an_interceptor_may_answer_instead(broker: Broker) -> None:
    def answer(exchange: Exchange) -> object:
        return exchange.call.response(brokers=[], controller_id=77, topics=[])

    broker.intercept("Metadata", answer, before=True, times=1)
    with wire(broker) as client:
        assert client.ask(MetadataRequest[1]([])).controller_id == 77
        assert client.ask(MetadataRequest[1]([])).controller_id == 1


def test_an_answer_takes_the_version_of_its_request(broker: Broker) -> None:
    broker.intercept("Metadata", lambda _: MetadataResponse(brokers=[], controller_id=77, topics=[]), before=True)
    with wire(broker) as client:
        for version in (1, 12):
            assert client.ask(MetadataRequest[version](topics=[])).controller_id == 77


def test_an_interceptor_may_close_or_stay_silent(broker: Broker) -> None:
    broker.intercept("Metadata", lambda exchange: CLOSE, times=1)
    with wire(broker) as client:
        client.send(MetadataRequest[1]([]))
        assert client.is_closed()
    silent = broker.intercept("Metadata", lambda exchange: NO_REPLY)
    with wire(broker) as client:
        client.send(MetadataRequest[1]([]))
        client.socket.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)
    silent.remove()
    with wire(broker) as client:
        client.ask(MetadataRequest[1]([]))


def test_delays_follow_the_brokers_clock(broker: Broker) -> None:
    broker.clock.freeze()
    broker.delay("Metadata", 30)
    with wire(broker) as client:
        client.send(MetadataRequest[1]([]))
        client.socket.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)
        client.socket.settimeout(60)
        broker.clock.advance(31)
        client.receive(MetadataRequest[1].RESPONSE_TYPE)


def test_connections_are_dropped_now_or_at_a_request(broker: Broker) -> None:
    with wire(broker, 1) as first, wire(broker, 2) as second:
        metadata(first), metadata(second)
        assert broker.drop_connections(1) == 1
        assert first.is_closed()
        metadata(second)
    broker.drop_connections(api="Fetch")
    with wire(broker) as client:
        metadata(client)
        client.send(FetchRequest[4](max_wait_ms=0, min_bytes=0, topics=[]))
        assert client.is_closed()


def test_clear_faults_takes_everything_back(broker: Broker) -> None:
    broker.fail("Metadata", [5], times=100)
    broker.drop_connections(api="Metadata", times=100)
    broker.clear_faults()
    with wire(broker) as client:
        assert client.ask(MetadataRequest[1](["events"])).topics[0].error_code == 0


def test_the_advertised_versions_are_served(broker: Broker) -> None:
    broker.advertise("Metadata", 0, 3)
    broker.advertise("Fetch", 1, 0)
    with wire(broker) as client:
        offered = {
            api.api_key: (api.min_version, api.max_version) for api in client.ask(ApiVersionsRequest[0]()).api_keys
        }
        assert offered[3] == (0, 3)
        assert 1 not in offered
        client.send(MetadataRequest[4]([]))
        assert client.is_closed()
    with pytest.raises(IllegalArgumentError, match="versions 0 to 13"):
        broker.advertise("Metadata", 0, 99)


def test_as_version_offers_what_that_release_did() -> None:
    with Broker(as_version="1.1") as broker, wire(broker) as client:
        offered = {api.api_key: api.max_version for api in client.ask(ApiVersionsRequest[1]()).api_keys}
        assert (offered[0], offered[1], offered[3]) == (5, 7, 5)
        assert 68 not in offered


def test_requests_are_logged(broker: Broker) -> None:
    with wire(broker, 2) as client:
        metadata(client)
    (seen,) = broker.requests
    assert (seen.name, seen.version, seen.client_id, seen.node_id) == ("Metadata", 1, "test", 2)
    assert seen.request.topics[0].name == "events"
    broker.forget_requests()
    assert broker.requests == []


# Nodes and leaders


def test_a_stopped_node_hands_its_partitions_over_and_comes_back() -> None:
    with Broker(nodes=3) as broker:
        broker.create_topic("copied", 1, replication_factor=3)
        broker.create_topic("single", 1, replication_factor=1)
        broker.move_leader(("copied", 0), 1)
        broker.move_leader(("single", 0), 1)
        port = broker.port(1)
        epoch = broker.run(lambda cluster: cluster.partition("copied", 0).leader_epoch)
        with wire(broker, 1) as client:
            broker.stop_node(1)
            assert client.is_closed()
        with pytest.raises(ConnectionRefusedError):
            Wire(port)
        assert broker.leader("copied") in {2, 3}
        assert broker.leader("single") == -1
        with wire(broker, 2) as client:
            reply = client.ask(MetadataRequest[7](["copied", "single"]))
            copied, single = reply.topics[0].partitions[0], reply.topics[1].partitions[0]
            assert [node.node_id for node in reply.brokers] == [2, 3]
            assert (copied.error_code, copied.offline_replicas, copied.leader_epoch) == (0, [1], epoch + 1)
            assert (single.error_code, single.leader_id) == (5, -1)
        broker.start_node(1)
        assert broker.port(1) == port
        assert broker.leader("single") == 1
        with wire(broker, 1) as client:
            metadata(client)


def test_the_port_of_a_stopped_node_goes_to_no_other_program() -> None:
    """As one end of another connection it kept the node from starting, on a busy machine."""
    with Broker() as broker, socket.socket() as other:
        port = broker.port(1)
        broker.stop_node(1)
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    with socket.socket() as after:
        after.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        after.bind(("127.0.0.1", port))


def test_a_leader_that_moves_ends_the_waits_of_its_readers(broker: Broker) -> None:
    broker.move_leader(("events", 0), 1)
    with wire(broker, 1) as client:
        cls = FetchRequest[4]
        part = cls.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        topics = [cls.FetchTopic(topic="events", partitions=[part])]
        client.send(cls(max_wait_ms=60_000, min_bytes=1, max_bytes=1000, topics=topics))
        deadline = time.monotonic() + 10
        while not any(seen.name == "Fetch" for seen in broker.requests):
            assert time.monotonic() < deadline
            threading.Event().wait(0.005)
        broker.move_leader(("events", 0), 2)
        _, reply = client.receive(cls.RESPONSE_TYPE)
        assert reply.responses[0].partitions[0].error_code == 6


def test_leaders_are_spread_and_shuffled(broker: Broker) -> None:
    before = [broker.leader("events", index) for index in range(4)]
    assert sorted(before) == [1, 1, 2, 2]
    broker.shuffle_leaders()
    assert [broker.leader("events", index) for index in range(4)] == [3 - leader for leader in before]


def test_rehash_moves_coordinators(broker: Broker) -> None:
    def where() -> list[int]:
        return broker.run(lambda c: [c.coordinators.node_for(0, f"group-{n}").node_id for n in range(6)])

    before = where()
    broker.rehash_coordinators()
    assert where() == [3 - node for node in before]


# Records


def test_records_are_written_and_read_without_a_client(broker: Broker) -> None:
    assert broker.append("events", "text", key=b"k", headers=[("h", b"1")], partition=2, timestamp_ms=5) == 0
    assert broker.append_many("events", ["a", ("key", "b"), (None, None)], partition=2) == 1
    first, *rest = broker.records("events", 2)
    assert (first.key, first.value, first.headers, first.timestamp) == (b"k", b"text", [("h", b"1")], 5)
    assert [(record.key, record.value) for record in rest] == [(None, b"a"), (b"key", b"b"), (None, None)]
    assert broker.offsets("events", 2) == (0, 4, 4)
    assert len(broker.records("events")) == 4


def test_a_broker_that_is_closed_says_so() -> None:
    broker = Broker()
    with pytest.raises(IllegalStateError, match="not running"):
        broker.append("events", b"v")
    with broker:
        with pytest.raises(IllegalStateError, match="already running"):
            broker.start()
        with pytest.raises(IllegalArgumentError, match="node 9 does not exist"):
            broker.stop_node(9)
    broker.close()
    with broker:  # and it can be started again, empty
        assert broker.run(lambda cluster: list(cluster.topics)) == []


def test_nothing_is_left_behind() -> None:
    with nothing_left(), Broker(nodes=3, topics=["events"]) as broker:
        client = wire(broker, broker.leader("events"))
        client.send(
            FetchRequest[4](
                max_wait_ms=60_000,
                min_bytes=1,
                max_bytes=1000,
                topics=[("events", [FetchRequest[4].FetchPartition(partition_max_bytes=10)])],
            )
        )
        port = broker.port()
    assert client.is_closed()
    client.close()
    with pytest.raises(ConnectionRefusedError):
        Wire(port)


def test_idle_connections_are_closed_after_a_while(broker: Broker) -> None:
    broker.clock.freeze()
    with wire(broker) as idle, wire(broker) as busy:
        metadata(idle), metadata(busy)
        broker.clock.advance(400)
        metadata(busy)
        broker.clock.advance(300)
        assert idle.is_closed()
        metadata(busy)
        broker.clock.advance(601)
        assert busy.is_closed()


# Groups


def test_a_member_is_expired_at_once(broker: Broker) -> None:
    node = broker.run(lambda cluster: cluster.coordinators.node_for(0, "readers").node_id)
    with wire(broker, node) as client:
        join = JoinGroupRequest[1](
            group_id="readers",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[("range", b"")],
        )
        joined = client.ask(join)
        assert joined.error_code == 0
        assert broker.group_members("readers") == {joined.member_id: "test"}
        broker.expire_member("readers", "test")
        assert broker.group_members("readers") == {}
        beat = HeartbeatRequest[0](group_id="readers", generation_id=1, member_id=joined.member_id)
        assert client.ask(beat).error_code == 25
        with pytest.raises(IllegalArgumentError, match="0 members"):
            broker.expire_member("readers")


def test_a_broker_shows_where_it_is_and_whether_it_runs() -> None:
    broker = Broker(nodes=2)
    assert repr(broker) == "<Broker nodes=2 not running>"
    with broker:
        assert repr(broker) == f"<Broker nodes=2 at {broker.bootstrap_servers}>"
    assert repr(broker) == "<Broker nodes=2 not running>"


# What a test author types first


@pytest.mark.parametrize(
    "error",
    [6, "NOT_LEADER_OR_FOLLOWER", "NotLeaderOrFollowerError", NotLeaderOrFollowerError, NotLeaderOrFollowerError()],
    ids=["code", "name", "class name", "class", "instance"],
)
def test_one_error_is_given_in_any_form(error: Any) -> None:
    with Broker(topics=["events"]) as broker, wire(broker) as client:
        broker.fail("ListGroups", error, times=2)
        codes = [client.ask(ListGroupsRequest[4]()).error_code for _ in range(3)]
        assert codes == [6, 6, 0]


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (lambda b: b.fail("Produce"), "fail() needs at least one error, such as"),
        (lambda b: b.fail("Produce", "NONE", times=0), "fail() needs at least one error, such as"),
        (lambda b: b.fail("Produce", "CORRUPT_MESSAGE", node=9), "node 9 does not exist"),
        (lambda b: b.delay("Produce", 1, node=9), "node 9 does not exist"),
        (lambda b: b.delay("Produce", "1"), "the time of a delay must be a number of seconds, not '1'"),
        (lambda b: b.delay("Produce", -1), "the time of a delay must not be negative"),
        (lambda b: b.intercept("Produce", None), "must be callable, not None"),
        (lambda b: b.clock.advance(float("nan")), "the time to advance must be a number of seconds, not nan"),
        (lambda b: b.clock.advance(-1), "the time to advance must not be negative"),
        (lambda b: b.fail("Produce", "NOT_LEADER"), "Kafka has no error 'NOT_LEADER'; did you mean 'NOT_"),
        (lambda b: b.append("events", {"a": 1}), "value of a record must be bytes, str or None, not dict; give json"),
        (lambda b: b.append("events", 7), "not int; give json.dumps(...)"),
        (lambda b: b.append("events", b"", key=1.5), "the key of a record must be bytes, str or None, not float"),
        (lambda b: b.append("events", b"", headers={"h": 1}), "the header 'h' of a record must be"),
        (lambda b: b.append("events", b"", headers=["h"]), "headers are a dict, or pairs of a str and"),
        (lambda b: b.append("events", b"", headers=[(b"h", b"")]), "headers are a dict, or pairs of a str and"),
        (lambda b: b.records("event"), "topic 'event' does not exist; did you mean 'events'?"),
        (lambda b: b.append("e/f", b""), "'e/f' contains one or more characters other than"),
        (
            lambda b: b.append("events", b"", partition=7),
            "partition 7 of topic 'events' does not exist: it has 2, numbered from 0",
        ),
        (lambda b: b.append("events", b"", partition="0"), "partition '0' of topic 'events' does not exist"),
        (lambda b: b.append_many("events", "abc"), "append_many() takes a list of records, not str"),
        (lambda b: b.append_many("events", []), "append_many() needs at least one record"),
        (lambda b: b.append_many("events", [("k", "v", (), 1)]), "not a tuple of 4"),
        (lambda b: b.create_topic("other", "3"), "the number of partitions must be an int, not '3'"),
        (lambda b: b.create_topic(None), "None is not a valid name for a topic"),
        (lambda b: b.stop_node(0), "node 0 does not exist: nodes are numbered from 1, these are [1, 2]"),
        (lambda b: b.records("none"), "topic 'none' does not exist; create_topic() makes it"),
    ],
)
def test_a_mistake_is_answered_with_a_sentence(order: Callable[[Broker], Any], says: str) -> None:
    with Broker(nodes=2, topics={"events": 2}) as broker, pytest.raises((KafkaError, TypeError)) as raised:
        order(broker)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"nodez": 3}, "Broker() has no option 'nodez'; did you mean 'nodes'?"),
        ({"bootstrap": 3}, "Broker() has no option 'bootstrap'; it takes nodes, topics, host"),
        ({"nodes": "3"}, "nodes must be an int, not '3'"),
        ({"port": "9092"}, "port must be an int, not '9092'"),
        ({"as_version": 2.8}, "as_version must be a release of Kafka such as '2.8', not 2.8"),
        ({"topics": {"events": "3"}}, "topic 'events': the number of partitions must be an int"),
        ({"topics": ["no good"]}, "'no good' is not a valid name for a topic"),
        ({"sasl": ["PLAIN"]}, "sasl takes triples of mechanism, user and password"),
    ],
)
def test_a_wrong_option_is_answered_with_a_sentence(options: dict[str, Any], says: str) -> None:
    with pytest.raises((KafkaError, TypeError)) as raised:
        Broker(**options)
    assert says in str(raised.value)


def test_one_topic_is_given_by_its_name() -> None:
    with Broker(topics="events") as broker:
        assert broker.run(lambda cluster: list(cluster.topics)) == ["events"]


def test_a_topic_is_created_by_its_first_record_as_by_a_producer() -> None:
    with Broker(configs={"num.partitions": 3}) as broker:
        assert broker.append("orders", "tea", partition=2) == 0
        assert broker.run(lambda cluster: len(cluster.topics["orders"].partitions)) == 3
        broker.append("a.b", "")
        with pytest.raises(UnknownTopicOrPartitionError):  # the names of the metrics would be the same
            broker.append("a_b", "")
    with Broker(configs={"auto.create.topics.enable": False}) as broker:
        with pytest.raises(UnknownTopicOrPartitionError, match=r"'orders' does not exist; create_topic\(\) makes it"):
            broker.append("orders", "tea")
        with pytest.raises(UnknownTopicOrPartitionError):
            broker.records("orders")


def test_a_topic_s_rules_hold_for_what_a_test_appends() -> None:
    with Broker() as broker:
        broker.create_topic("table", configs={"cleanup.policy": "compact"})
        with pytest.raises(InvalidRecordError, match=r"topic 'table' takes no .*: .*without key in topic partition"):
            broker.append_many("table", [("k", "v"), "no key"])
        broker.append("table", "no key", raw=True)
        assert [record.value for record in broker.records("table")] == [b"no key"]

        broker.create_topic("small", configs={"max.message.bytes": 100})
        with pytest.raises(MessageSizeTooLargeError, match=r"it has 5\d\d\d bytes, max.message.bytes is 100"):
            broker.append("small", b"x" * 5000)
        broker.append("small", b"x" * 5000, raw=True)
        assert broker.append_many("small", [b"x" * 20] * 10) == 1
        sizes = broker.run(lambda cluster: [entry[1] for entry in stored(cluster, "small")])
        assert max(sizes[1:]) <= 100
        assert len(broker.records("small")) == 11

        broker.create_topic("brokers-time", configs={"message.timestamp.type": "LogAppendTime"})
        broker.append("brokers-time", "a", timestamp_ms=1000)
        broker.append("brokers-time", "a", timestamp_ms=1000, raw=True)
        first, second = broker.records("brokers-time")
        assert first.timestamp > 1_600_000_000_000
        assert (first.timestamp_type, second.timestamp, second.timestamp_type) == (1, 1000, 0)

        broker.create_topic("zipped", configs={"compression.type": "gzip"})
        broker.append("zipped", b"a" * 1000)
        broker.append("zipped", b"a" * 1000, raw=True)
        assert broker.run(lambda cluster: [entry[0] for entry in stored(cluster, "zipped")]) == [1, 0]


def stored(cluster: Cluster, topic: str) -> list[tuple[int, int]]:
    """Codec and size of each batch of partition 0."""
    log = cluster.topics[topic].partitions[0].log
    headers = []
    for segment, number in log.batches_from(0):
        entry = segment.entry(number)
        headers += scan(segment.read(entry.position, entry.end))
    return [(header.codec, header.size) for header in headers]


def test_headers_are_a_dict_or_pairs() -> None:
    with Broker(topics="events") as broker:
        broker.append("events", b"a", headers={"one": "1", "two": None})
        broker.append_many("events", [("k", "b", [("one", b"1")]), ("k", "c", {"one": bytearray(b"1")})])
        assert [list(record.headers) for record in broker.records("events")] == [
            [("one", b"1"), ("two", None)],
            [("one", b"1")],
            [("one", b"1")],
        ]


def test_a_key_chooses_the_partition_as_a_producer_does() -> None:
    with Broker(topics={"events": 5, "produced": 5}) as broker:
        keys = [f"key {number}" for number in range(40)]
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for key in keys:
                producer.send("produced", key=key.encode(), value=b"")
        broker.append_many("events", [(key, "") for key in keys], partition=None)
        places = [
            {record.key: record.partition for record in broker.records(topic)} for topic in ("events", "produced")
        ]
        assert places[0] == places[1]
        broker.create_topic("keyless", 3)
        assert [broker.append("keyless", "a", partition=None) for _ in range(4)] == [0, 0, 0, 1]


def test_a_test_waits_for_records_that_are_still_to_come() -> None:
    with Broker() as broker:

        def write() -> None:
            broker.create_topic("events", 2)
            broker.append("events", "a")
            broker.append("events", "b", partition=1)

        writer = threading.Thread(target=write)
        writer.start()
        assert {record.value for record in broker.wait_for("events", 2)} == {b"a", b"b"}
        writer.join()
        with pytest.raises(KafkaTimeoutError, match=r"waited 0.05 s for 3 records: 'events' has 2 records"):
            broker.wait_for("events", 3, timeout=0.05)
        with pytest.raises(KafkaTimeoutError, match="topic 'none' does not exist"):
            broker.wait_for("none", timeout=0.01)
        watchers = broker.run(lambda c: [one._watchers for one in c.topics["events"].partitions])
        assert watchers == [set(), set()]


def test_waiting_in_an_event_loop_raises_an_error_that_names_asyncio_to_thread(broker: Broker) -> None:
    async def test() -> None:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=20) as producer:
            await producer.send("events", b"a")
            with pytest.raises(KafkaTimeoutError, match=r"event loop stood still meanwhile.*asyncio.to_thread\(\)"):
                broker.wait_for("events", timeout=0.1)
            assert len(await asyncio.to_thread(broker.wait_for, "events")) == 1

    asyncio.run(test())


def test_only_committed_records_are_waited_for_if_so_asked() -> None:
    with Broker(topics="events") as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("events", b"a").get(10)
        assert len(broker.wait_for("events", 1)) == 1
        with pytest.raises(KafkaTimeoutError):
            broker.wait_for("events", 1, timeout=0.05, committed=True)
        committing = threading.Thread(target=producer.commit_transaction)
        committing.start()
        assert [record.value for record in broker.wait_for("events", 1, committed=True)] == [b"a"]
        committing.join()
        producer.close()


def test_an_interceptor_cannot_wait() -> None:
    raised: list[BaseException] = []
    with Broker(topics="events") as broker, wire(broker) as client:

        def look(_exchange: Any) -> None:
            with pytest.raises(IllegalStateError, match="cannot wait") as error:
                broker.wait_for("events")
            raised.append(error.value)

        broker.intercept("ListGroups", look)
        client.ask(ListGroupsRequest[4]())
    assert len(raised) == 1


def test_committed_offsets_are_seen() -> None:
    with Broker(topics={"events": 2}) as broker:
        broker.append("events", "a")
        assert broker.committed("billing", "events") is None
        with KafkaConsumer(
            "events", bootstrap_servers=broker.bootstrap_servers, group_id="billing", auto_offset_reset="earliest"
        ) as consumer:
            next(consumer)
            consumer.commit()
            assert broker.committed("billing", "events") == 1
        assert broker.committed("billing", "events", 1) in {None, 0}
        assert broker.committed("other", "events") is None


# Snapshots


def test_a_cluster_is_what_it_was_at_its_snapshot() -> None:
    with Broker(nodes=3, topics={"kept": 2}, configs={"default.replication.factor": 3}) as broker:
        servers = broker.bootstrap_servers
        broker.append("kept", "before")
        broker.advertise("ListGroups", 0, 3)
        before = broker.snapshot()

        broker.fail("Produce", 6)
        broker.delay("ListGroups", 100)
        broker.create_topic("new")
        broker.append("kept", "after")
        for _ in range(3):
            broker.shuffle_leaders()
        broker.stop_node(2)
        with KafkaConsumer("kept", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest") as consumer:
            next(consumer)
            consumer.commit()
        broker.advertise("Fetch", 4, 5)
        broker.clock.freeze()
        broker.clock.advance(30 * 86400)
        seen = broker.run(lambda c: c.topics["kept"].partitions[0].leader_epoch)

        broker.restore(before)

        assert broker.bootstrap_servers == servers
        assert not broker.clock.is_frozen
        assert abs(broker.clock.time() - time.time()) < 3600
        assert broker.run(lambda c: sorted(c.topics)) == ["kept"]
        assert broker.run(lambda c: c.apis.get(1)) != (4, 5)
        assert broker.run(lambda c: c.apis.get(16)) == (0, 3)
        assert broker.committed("g", "kept") is None
        assert broker.requests == []
        assert broker.run(lambda c: c.topics["kept"].partitions[0].leader_epoch) > seen
        assert broker.run(lambda c: [len(one.isr) for one in c.topics["kept"].partitions]) == [3, 3]
        broker.append("kept", "once more")
        broker.apply_retention()
        assert broker.records("kept", 0)[-1].value == b"once more"
        with KafkaProducer(bootstrap_servers=servers) as producer:
            assert producer.send("kept", b"more", partition=0).get(10).offset == 3


def test_a_client_that_lives_longer_than_a_test_continues() -> None:
    with (
        Broker(nodes=3, topics={"kept": 3}, configs={"default.replication.factor": 3}) as broker,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
    ):
        for number in range(3):
            before = broker.snapshot()
            for partition in range(3):
                producer.send("kept", b"v", partition=partition)
            producer.flush(30)
            broker.shuffle_leaders()
            broker.stop_node(1 + number)
            broker.clock.advance(700)
            broker.restore(before)
        for partition in range(3):
            assert producer.send("kept", b"last", partition=partition).get(30).offset == 3


def test_snapshots_are_of_memory(tmp_path: Path) -> None:
    with (
        Broker(data_dir=tmp_path / "data") as broker,
        pytest.raises(IllegalStateError, match="are of memory"),
    ):
        broker.snapshot()


def test_a_connection_that_is_accepted_as_the_broker_closes_is_closed() -> None:
    with Broker() as broker, socket.socket() as client:
        client.settimeout(30)
        host, port = broker.listeners.split(":")

        def accept_and_close(cluster: Cluster) -> None:
            before = asyncio.all_tasks()
            client.connect((host, int(port)))
            cluster.nodes[1].listener._accept()  # as the loop does, which could not be held between the two
            (task,) = asyncio.all_tasks() - before
            task.cancel()  # as Cluster.close() does, here before the task's first step

        broker.run(accept_and_close)
        assert client.recv(1) == b""
