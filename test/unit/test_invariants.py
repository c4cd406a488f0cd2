"""Each rule of `test.invariants` finds what breaks it, and nothing in the same exchange done well."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kafka import KafkaAdminClient
from kafka.broker import Broker
from kafka.protocol.commit import FindCoordinatorRequest, OffsetCommitRequest
from kafka.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.group import ConsumerGroupHeartbeatRequest, HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest
from kafka.protocol.versioned import encode_versioned
from kafka.record.batch_builder import BatchBuilder
from test.invariants import Checker, Record, storms
from test.invariants.clients import Clients, Peer
from test.invariants.replies import check_reply

TOPIC_ID = UUID(int=7)


class Wire:
    """A client that talks to a broker, as a checker sees it: both sides are the test's."""

    def __init__(self, kind: str = "consumer", **options: Any) -> None:
        self.record = Record()
        self.clients = Clients(self.record.report)
        defaults = {"retry_backoff_ms": 100, "reconnect_backoff_ms": 50, "heartbeat_interval_ms": 3000}
        peer = Peer("the client", {**defaults, **options}, kind=kind)
        self.clients.peer = lambda _host, port: peer if port else None  # type: ignore[method-assign]
        self.checker = Checker(self.clients, self.record)
        self.number = 0
        self.waiting: list[bytes] = []
        self.connect()

    def connect(self, port: int = 5) -> None:
        """Open the next connection."""
        self.number += 1
        self.connection: Any = SimpleNamespace(
            number=self.number,
            host="127.0.0.1",
            port=port,
            node=SimpleNamespace(node_id=1),
            software_name="unknown",
            _waiting=self.waiting,
        )
        self.checker.opened(self.connection)

    def disconnect(self) -> None:
        """End the connection."""
        self.checker.closed(self.connection)

    def ask(self, request: Any) -> Any:
        """Have a request arrive; return its call."""
        call: Any = SimpleNamespace(
            connection=self.connection,
            node=self.connection.node,
            version=request.API_VERSION,
            client_id="client",
            header=SimpleNamespace(request_api_key=request.API_KEY),
            cluster=SimpleNamespace(topics_by_id={TOPIC_ID: SimpleNamespace(name="events")}, clock=storms.time),
        )
        self.checker.arrived(call, request)
        return call

    def exchange(self, request: Any, **fields: Any) -> None:
        """Have a request arrive and be answered."""
        self.checker.answered(self.ask(request), request, request.RESPONSE_TYPE(**fields))

    def rules(self) -> list[str]:
        """Return the rules that were broken since the last look."""
        return [violation.rule for violation in self.record.take()]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time of the rules about storms."""
    made = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(storms, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


# Storms…


@pytest.mark.parametrize(("pause", "broken"), [(0.01, ["storms"]), (0.08, [])])
def test_a_request_repeatedly_without_backoff(clock: SimpleNamespace, pause: float, broken: list[str]) -> None:
    wire = Wire()
    for _ in range(30):
        wire.exchange(FindCoordinatorRequest[3]("group", 0), error_code=15, node_id=-1)
        clock.now += pause
    assert wire.rules() == broken


def test_calls_of_an_application_are_not_a_storm(clock: SimpleNamespace) -> None:
    for kind, code in (("admin", 15), ("consumer", 0)):
        wire = Wire(kind)
        for _ in range(30):
            request = OffsetCommitRequest[8](group_id="g", topics=[("events", [(0, 1, -1, "")])])
            wire.exchange(request, topics=[("events", [(0, code)])])
        assert wire.rules() == []
    wire = Wire()
    for _ in range(30):
        wire.exchange(request, topics=[("events", [(0, 15)])])
    assert wire.rules() == ["storms"], "an error is retried by the client"


@pytest.mark.parametrize(("takes", "broken"), [(0.001, ["storms"]), (0.4, [])])
def test_empty_fetches_before_their_time(clock: SimpleNamespace, takes: float, broken: list[str]) -> None:
    wire = Wire()
    wire.exchange(fetch(0, 0, [0]), session_id=9, responses=fetched())
    for epoch in range(1, 40):
        request = fetch(9, epoch)
        call = wire.ask(request)
        clock.now += takes
        wire.checker.answered(call, request, request.RESPONSE_TYPE(session_id=9))
    assert wire.rules() == broken


@pytest.mark.parametrize(("pause", "broken"), [(0.1, ["storms"]), (2.9, [])])
def test_heartbeats_faster_than_their_interval(clock: SimpleNamespace, pause: float, broken: list[str]) -> None:
    wire = Wire(retry_backoff_ms=0)
    for _ in range(10):
        wire.exchange(HeartbeatRequest[4]("g", 1, "m"))
        clock.now += pause
    assert wire.rules() == broken
    for _ in range(10):
        wire.exchange(ConsumerGroupHeartbeatRequest[0]("k", "m", 1), heartbeat_interval_ms=4000, member_epoch=1)
        clock.now += pause
    assert wire.rules() == broken


@pytest.mark.parametrize(("pause", "broken"), [(0.01, ["storms"]), (0.06, [])])
def test_connections_repeatedly_without_backoff(clock: SimpleNamespace, pause: float, broken: list[str]) -> None:
    wire = Wire()
    for _ in range(40):
        wire.connect()
        clock.now += pause
        wire.disconnect()
    assert wire.rules() == broken


def test_connections_that_are_used_are_not_a_storm(clock: SimpleNamespace) -> None:
    wire = Wire()
    for _ in range(40):
        wire.connect()
        wire.exchange(FindCoordinatorRequest[3]("group", 0), node_id=1)
        clock.now += 0.06
    assert wire.rules() == []


# Idempotent producers…


def batch(sequence: int, count: int = 1, *, value: bytes = b"v", epoch: int = 0, transactional: bool = False) -> bytes:
    builder = BatchBuilder(100_000)
    for _ in range(count):
        builder.append(1, None, value)
    sealed = builder.seal(producer_id=4, producer_epoch=epoch, base_sequence=sequence, transactional=transactional)
    return bytes(sealed.data)


def produce(records: bytes, *, version: int = 9, transactional_id: str | None = None, partition: int = 0) -> Any:
    return ProduceRequest[version](transactional_id, -1, 1000, [("events", [(partition, records)])])


def produced(wire: Wire, records: bytes, code: int = 0, **more: Any) -> None:
    offset = -1 if code else 1
    wire.exchange(produce(records, **more), responses=[("events", [(0, code, offset, -1, 0)])])


def numbered() -> Wire:
    """Return a producer with an id and batches 0 to 4."""
    wire = Wire("producer")
    wire.exchange(InitProducerIdRequest[3](None, 1000), producer_id=4, producer_epoch=0)
    produced(wire, batch(0, 3))
    produced(wire, batch(3, 2))
    assert wire.rules() == []
    return wire


def test_sequence_numbers_that_follow_are_well_done() -> None:
    wire = numbered()
    produced(wire, batch(3, 2))  # a retry with the same bytes
    produced(wire, batch(5, 4), code=10)  # too large: its parts have its numbers
    produced(wire, batch(5, 2))
    produced(wire, batch(7, 2))
    produced(wire, batch(9))
    produced(wire, batch(0, epoch=1))  # numbers of the next epoch begin with 0
    assert wire.rules() == []


@pytest.mark.parametrize(
    "records",
    [batch(6), batch(4), batch(3, 2, value=b"w"), batch(3, 3)],
    ids=["a gap", "an overlap", "other bytes", "other count"],
)
def test_sequence_numbers_that_no_broker_can_follow(records: bytes) -> None:
    wire = numbered()
    produced(wire, records)
    assert wire.rules() == ["sequence numbers"]


def test_a_producer_id_begins_with_zero() -> None:
    wire = numbered()
    produced(wire, batch(2, epoch=1))
    assert wire.rules() == ["sequence numbers"]


def test_a_batch_that_may_be_written_keeps_its_bytes() -> None:
    wire = numbered()
    wire.ask(produce(batch(5, 4)))  # no answer: the connection is lost
    wire.connect()
    produced(wire, batch(5, 4), code=10)
    produced(wire, batch(5, 2))
    assert wire.rules() == ["sequence numbers"]


def test_more_than_five_produce_requests_in_flight() -> None:
    for waiting, broken in ((4, []), (5, ["sequence numbers"])):
        wire = numbered()
        wire.waiting += [b"\0\0...."] * waiting
        produced(wire, batch(5))
        assert wire.rules() == broken


def add(wire: Wire, code: int = 0, epoch: int = 0) -> None:
    request = AddPartitionsToTxnRequest[3]("t", 4, epoch, [("events", [0])])
    wire.exchange(request, results_by_topic_v3_and_below=[("events", [(0, code)])])


def in_transaction(sequence: int = 0, epoch: int = 0) -> dict[str, Any]:
    return {"records": batch(sequence, epoch=epoch, transactional=True), "transactional_id": "t"}


def test_batches_within_their_transaction() -> None:
    wire = Wire("producer")
    add(wire)
    produced(wire, **in_transaction())
    wire.exchange(EndTxnRequest[3]("t", 4, 0, True))
    add(wire)
    produced(wire, **in_transaction(1))
    assert wire.rules() == []


@pytest.mark.parametrize("case", ["never added", "refused", "ended", "not transactional", "epoch ended"])
def test_batches_outside_of_their_transaction(case: str) -> None:
    wire = Wire("producer")
    more: dict[str, Any] = in_transaction()
    if case != "never added":
        add(wire, code=51 if case == "refused" else 0)
    if case == "ended":
        wire.exchange(EndTxnRequest[3]("t", 4, 0, True))
    if case == "epoch ended":
        wire.exchange(EndTxnRequest[5]("t", 4, 0, True), producer_id=4, producer_epoch=1)
        more["version"] = 12
    if case == "not transactional":
        more["records"] = batch(0)
    produced(wire, **more)
    assert wire.rules() == ["transactions"]


# Fetch sessions…


def fetch(session: int, epoch: int, partitions: list[int] | None = None, forgotten: Any = ()) -> Any:
    named = [(p, -1, 0, -1, -1, 1000) for p in partitions or ()]
    return FetchRequest[12](
        max_wait_ms=500,
        session_id=session,
        session_epoch=epoch,
        topics=[FetchRequest[12].FetchTopic(topic="events", partitions=[_part(*each) for each in named])],
        forgotten_topics_data=[
            FetchRequest[12].ForgottenTopic(topic="events", partitions=list(forgotten)) for _ in forgotten[:1]
        ],
    )


def _part(partition: int, _epoch: int, offset: int, *_more: int) -> Any:
    return FetchRequest[12].FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1000)


def fetched(*codes: int) -> list[Any]:
    kind = FetchRequest[12].RESPONSE_TYPE
    parts = [kind.PartitionData(partition_index=at, error_code=code) for at, code in enumerate(codes or (0,))]
    return [kind.FetchableTopicResponse(topic="events", partitions=parts)]


def test_a_fetch_session_that_continues() -> None:
    wire = Wire()
    wire.exchange(fetch(0, 0, [0]), session_id=9, responses=fetched())
    wire.exchange(fetch(9, 1, [1]), session_id=9)
    wire.exchange(fetch(9, 2, [], [1]), session_id=9)
    wire.exchange(fetch(9, 3), error_code=71)
    wire.exchange(fetch(9, 0, [0]), session_id=8, responses=fetched())
    wire.disconnect()  # perhaps with the reply
    wire.connect()
    wire.exchange(fetch(8, 0, [0]), session_id=7, responses=fetched())
    wire.disconnect()
    wire.connect()
    wire.exchange(fetch(7, 1), session_id=7)
    wire.exchange(fetch(7, -1, []))
    assert wire.rules() == []


def test_the_end_of_a_fetch_session_that_overtakes_a_request_on_another_connection() -> None:
    wire = Wire()
    wire.exchange(fetch(0, 0, [0]), session_id=9, responses=fetched())
    main = wire.connection
    wire.connect()
    wire.exchange(fetch(9, -1, []))
    assert wire.rules() == []
    wire.ask(fetch(9, 1))
    assert wire.rules() == ["fetch sessions"]  # on the connection of the end nothing is under way
    wire.connection = main
    wire.exchange(fetch(9, 1), error_code=70)
    assert wire.rules() == []
    wire.ask(fetch(9, 2))
    assert wire.rules() == ["fetch sessions"]  # the client has been told


@pytest.mark.parametrize(
    "request_",
    [fetch(9, 2), fetch(8, 1), fetch(0, 1), fetch(9, 1, [], [3]), fetch(9, 0, [0]), fetch(9, 1, [1, 1])],
    ids=["epoch skipped", "other session", "no id", "forgotten, not known", "full without reason", "twice"],
)
def test_a_fetch_session_that_does_not_continue(request_: Any) -> None:
    wire = Wire()
    wire.exchange(fetch(0, 0, [0]), session_id=9, responses=fetched())
    wire.ask(request_)
    assert wire.rules() == ["fetch sessions"]


# Commits…


def commit(wire: Wire, partition: int, offset: int, generation: int = 1, member: str = "m") -> None:
    request = OffsetCommitRequest[8]("g", generation, member, None, [("events", [(partition, offset, -1, "")])])
    wire.exchange(request, topics=[("events", [(partition, 0)])])


def assign(wire: Wire, generation: int, *partitions: int) -> None:
    data = encode_versioned(ConsumerProtocolAssignment[1]([("events", list(partitions))], b""))
    wire.exchange(SyncGroupRequest[3]("g", generation, "m", None, []), assignment=data)


def join(wire: Wire, *kept: int) -> None:
    data = encode_versioned(ConsumerProtocolSubscription[1](["events"], b"", [("events", list(kept))]))
    request = JoinGroupRequest[5]("g", 1000, 1000, "m", None, "consumer", [("range", data)])
    wire.exchange(request, generation_id=2, member_id="m", leader="m")


def test_a_commit_that_a_join_on_another_connection_has_overtaken() -> None:
    """The coordinator stores it while nobody has the next generation, and refuses it after that."""
    wire = Wire()
    assign(wire, 1, 0, 1)
    join(wire)
    commit(wire, 1, 5)
    join(wire)  # again, as after an error
    commit(wire, 1, 6)
    assign(wire, 2, 0)
    commit(wire, 1, 7)
    assert wire.rules() == []


def test_commits_of_a_member() -> None:
    wire = Wire()
    assign(wire, 1, 0, 1)
    commit(wire, 0, 5)
    commit(wire, 1, 5)
    wire.exchange(fetch(0, 0, [0]), session_id=9, responses=fetched())  # the position went back to 0
    commit(wire, 0, 2)
    join(wire, 0, 1)
    assign(wire, 2, 0)
    commit(wire, 1, 7, generation=2)  # before it is given up
    commit(wire, 3, 1, member="")  # an assignment of its own
    assert wire.rules() == []


@pytest.mark.parametrize("case", ["back", "never owned", "given up", "given up by KIP-848"])
def test_commits_that_a_member_must_not_make(case: str) -> None:
    wire = Wire()
    if case == "given up by KIP-848":
        held = [(TOPIC_ID, [0, 1])]
        for topics in (held, [(TOPIC_ID, [0])]):
            request = ConsumerGroupHeartbeatRequest[0](group_id="g", member_id="m", member_epoch=1)
            request.topic_partitions = [ConsumerGroupHeartbeatRequest[0].TopicPartitions(*each) for each in topics]
            wire.exchange(request, member_id="m", member_epoch=1, heartbeat_interval_ms=5000)
    else:
        assign(wire, 1, 0, 1)
    commit(wire, 0, 5)
    if case == "given up":
        join(wire)
        assign(wire, 2, 0)
    commit(wire, {"back": 0, "never owned": 2}.get(case, 1), 4, generation=2)
    assert wire.rules() == ["commits"]


# Replies…


def _topic(code: int) -> Any:
    kind = MetadataRequest[9].RESPONSE_TYPE
    return kind.MetadataResponseTopic(
        name="events", error_code=code, partitions=[kind.MetadataResponsePartition(leader_id=1)]
    )


REPLIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "Fetch: an error of partitions at the top": (fetch(0, 0, [0]), {"error_code": 1}),
    "Fetch: an error of sessions without one": (fetch(0, 0, [0]), {"error_code": 70}),
    "Fetch: an error of sessions at a partition": (fetch(0, 0, [0]), {"responses": fetched(70)}),
    "Fetch: a partition is missing": (fetch(0, 0, [0, 1]), {"responses": fetched(0)}),
    "Fetch: a partition was not asked for": (fetch(0, 0, [0]), {"responses": fetched(0, 0)}),
    "Fetch: a session that was not asked for": (fetch(0, -1, [0]), {"session_id": 4, "responses": fetched()}),
    "Fetch: another session": (fetch(9, 1), {"session_id": 4}),
    "Metadata: no brokers": (MetadataRequest[9](), {"brokers": [], "topics": []}),
    "Metadata: a topic with an error and partitions": (
        MetadataRequest[9](),
        {"brokers": [(1, "h", 1, None)], "topics": [_topic(3)]},
    ),
    "Metadata: an error at the top": (MetadataRequest[13](), {"error_code": 41}),
    "Produce: a partition is missing": (produce(batch(0)), {"responses": []}),
    "Produce: written without an offset": (produce(batch(0)), {"responses": [("events", [(0, 0, -1, -1, 0)])]}),
    "Produce: an error with an offset": (produce(batch(0)), {"responses": [("events", [(0, 6, 7, -1, 0)])]}),
    "FindCoordinator: nobody": (FindCoordinatorRequest[3]("g", 0), {"node_id": -1}),
    "FindCoordinator: another key": (FindCoordinatorRequest[4](key_type=0, coordinator_keys=["g"]), {}),
    "InitProducerId: no id": (InitProducerIdRequest[3](None, 1), {"producer_id": -1}),
    "AddPartitionsToTxn: a partition is missing": (AddPartitionsToTxnRequest[3]("t", 4, 0, [("events", [0])]), {}),
    "JoinGroup: no member id": (JoinGroupRequest[5]("g", 1, 1, "", None, "consumer", []), {"member_id": ""}),
    "SyncGroup: an assignment and an error": (
        SyncGroupRequest[3]("g", 1, "m", None, []),
        {"error_code": 27, "assignment": b"x"},
    ),
    "heartbeat: no interval": (ConsumerGroupHeartbeatRequest[0]("k", "m", 1), {"member_epoch": 1}),
    "OffsetCommit: a partition is missing": (
        OffsetCommitRequest[8](group_id="g", topics=[("events", [(0, 1, -1, "")])]),
        {"topics": []},
    ),
    "a negative throttle time": (HeartbeatRequest[4]("g", 1, "m"), {"throttle_time_ms": -1}),
}


@pytest.mark.parametrize("case", REPLIES)
def test_replies_that_no_broker_sends(case: str) -> None:
    request, fields = REPLIES[case]
    reply = request.RESPONSE_TYPE(**fields)
    assert len(list(check_reply(request, reply))) >= 1
    wire = Wire()
    wire.exchange(request, **fields)
    assert "replies" in wire.rules()


# Which clients are judged, closing, leftovers…


def test_other_clients_are_not_judged() -> None:
    wire = Wire()
    wire.connect(port=0)
    wire.ask(fetch(0, 1))
    assert wire.rules() == []
    wire.connection.software_name = "purekafka"  # of another process
    wire.ask(fetch(0, 1))
    assert wire.rules() == ["fetch sessions"]
    wire.connect(port=0)
    wire.connection.software_name = "purekafka"
    wire.ask(fetch(7, 3))  # begun on the connection before
    assert wire.rules() == []


def test_connections_of_closed_clients() -> None:
    with Broker() as broker:
        record = Record()
        clients = Clients(record.report)
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            client = admin._core.client
            client.context.make_socket = socket.socket
            client.close_links_to(1)
            clients.follow(client)
            assert admin.describe_cluster()
            assert clients.check_closed() == [client]
            client.closed = True
            assert clients.check_closed() == []
            assert [violation.rule for violation in record.take()] == ["closing"]
            clients.follow(client)
            client.context.make_socket(2, 1).close()
            assert [violation.rule for violation in record.take()] == ["closing"]
            client.closed = False


LEAVES = """
import socket, threading, pytest
from kafka import KafkaAdminClient
from kafka.broker.faults import Faults
from test.invariants import plugin

kept = []
plugin._PATIENCE = 0.1

def test_thread():
    kept.append(threading.Event())
    threading.Thread(target=kept[-1].wait, daemon=True).start()  # it ends with the run, whatever fails

def test_file():
    kept.append(socket.socket())

def test_client(kafka_broker):
    kept.append(KafkaAdminClient(bootstrap_servers=kafka_broker.bootstrap_servers))

def test_reply(kafka_broker):
    kafka_broker.intercept("Metadata", lambda exchange: setattr(exchange.reply, "brokers", []), times=1)
    KafkaAdminClient(bootstrap_servers=kafka_broker.bootstrap_servers).close()

@pytest.mark.breaks_invariant("leftovers", reason="shows what the mark does")
def test_marked():
    kept.append(socket.socket())

def test_nothing(kafka_broker):
    KafkaAdminClient(bootstrap_servers=kafka_broker.bootstrap_servers).close()

def test_ends():
    kept[0].set()
    for opened in kept[1:]:
        opened.close()
"""


def test_leftovers_of_a_test_fail_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from test.invariants.plugin import invariants_hold, pytest_configure\n")
    (tmp_path / "test_leaves.py").write_text(LEAVES)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rE",
        "-W",
        "ignore",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
    ]
    root = str(Path(__file__).parents[2])
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    failed = re.findall(r"^ERROR \S+::(\w+)", result.stdout, re.MULTILINE)
    assert sorted(failed) == ["test_client", "test_file", "test_reply", "test_thread"], result.stdout + result.stderr
    assert "7 passed" in result.stdout
