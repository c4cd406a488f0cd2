"""Proofs for what is about connections and requests."""

from __future__ import annotations

import contextlib
import re
import selectors
import socket
import time
from collections.abc import Callable
from itertools import pairwise
from threading import Thread
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaClient
from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY
from kafka.cluster import ClusterMetadata
from kafka.errors import (
    BrokerResponseError,
    InvalidReceiveError,
    KafkaError,
    KafkaTimeoutError,
    MismatchedEndpointTypeError,
    NoBrokersAvailable,
    NotControllerError,
    NotEnoughReplicasError,
    TooManyInFlightRequests,
)
from kafka.protocol.group import HeartbeatRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import OffsetAndMetadata, TopicPartition

from .proofs import proves
from .servers import Door, free_port
from .subjects import PATIENCE, TOPIC, Subject, gaps, seen

# Where to connect


@proves("bootstrap_servers", kinds="producer consumer admin client share")
def it_is_where_to_connect(subject: Subject) -> None:
    broker = subject.broker()
    subject.use(broker)
    assert broker.requests


@proves("bootstrap_servers", kinds="cluster")
def they_are_the_first_brokers(subject: Subject) -> None:
    cluster = ClusterMetadata(bootstrap_servers="b1:1234")
    assert [(broker.host, broker.port) for broker in cluster.bootstrap_brokers()] == [("b1", 1234)]


@proves("bootstrap_controllers", kinds="admin")
def it_is_asked_for_the_controllers(subject: Subject) -> None:
    broker = subject.broker()
    with pytest.raises(MismatchedEndpointTypeError):  # it is a broker
        KafkaAdminClient(bootstrap_controllers=broker.bootstrap_servers)
    assert seen(broker, "DescribeCluster")
    assert not seen(broker, "Metadata")


@proves("node_id")
def a_connection_knows_its_broker(subject: Subject) -> None:
    told: list[Any] = []
    subject.use(subject.broker(), node_id=17, state_change_callback=lambda node_id, *_: told.append(node_id))
    assert set(told) == {17}


@proves("state_change_callback")
def changes_are_told(subject: Subject) -> None:
    told: list[Any] = []
    subject.use(subject.broker(), state_change_callback=lambda *what: told.append(what))
    assert told[-1][1:] == (told[-1][2].sock, told[-1][2])
    assert told[-1][2].connected()


@proves("client_dns_lookup")
def canonical_names_take_the_place_of_addresses(subject: Subject) -> None:
    canonical = socket.getnameinfo(("127.0.0.1", 1), 0)[0]
    port = free_port()

    def named(said: str) -> bool:
        return f"{canonical}:{port}" in said

    how = {"client_dns_lookup": "resolve_canonical_bootstrap_servers_only"}
    assert named(_give_up(subject, f"127.0.0.1:{port}", named, **how))
    assert f"127.0.0.1:{port}" in str(subject.attempt(f"127.0.0.1:{port}", bootstrap_timeout_ms=100))


@proves("proxy_url", "socks5_proxy")
def a_proxy_is_asked(subject: Subject) -> None:
    door = subject.enter(Door())
    options: dict[str, Any] = {subject.option: f"socks5://{door.address}", "socket_connection_setup_timeout_ms": 100}

    def greeted(_: str) -> bool:
        return any(visit.data == b"\x05\x01\x00" for visit in door.visits)

    assert greeted(_give_up(subject, f"127.0.0.1:{free_port()}", greeted, **options))


# How long


@proves("bootstrap_timeout_ms", kinds="producer consumer admin client share")
def nobody_answers_for_so_long(subject: Subject) -> None:
    began = time.monotonic()
    error = subject.attempt(f"127.0.0.1:{free_port()}", bootstrap_timeout_ms=300)
    assert isinstance(error, NoBrokersAvailable)
    assert 0.1 < time.monotonic() - began < 15  # 30 by default


@proves("bootstrap_timeout_ms", kinds="connection")
def the_version_is_sought_for_so_long(subject: Subject) -> None:
    door = subject.enter(Door())
    used = subject.make(door.address, bootstrap_timeout_ms=200)
    began = time.monotonic()
    try:
        used.thing.get_api_versions()
    except KafkaError:
        assert time.monotonic() - began < 15  # 30 by default
    else:
        raise AssertionError("somebody answered")


def _give_up(subject: Subject, servers: str, seen: Callable[[str], bool], **options: Any) -> str:
    """Try to reach what cannot be reached, for longer each time until enough was seen; what is said about it.

    The first of these times does on a machine that has little else to do. The last is below every default.
    """
    said = ""
    for seconds in (0.6, 2.4, 8.0):
        said = _give_up_after(seconds, subject, servers, **options)
        if seen(said):
            break
    return said


def _give_up_after(seconds: float, subject: Subject, servers: str, **options: Any) -> str:
    if subject.kind == "connection":
        connection = subject.make(servers, **options).thing
        connection.connect_blocking(seconds)
        return str(connection.error)
    pauses = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 1}
    error = subject.attempt(servers, bootstrap_timeout_ms=seconds * 1000, **pauses, **options)
    assert error is not None
    return str(error)


# The server never answers TLS' greeting, so that each attempt takes all of its time.
_TLS = {"security_protocol": "SSL", "reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 1}


@proves("socket_connection_setup_timeout_ms")
def an_attempt_takes_so_long(subject: Subject) -> None:
    door = subject.enter(Door())
    times = {"socket_connection_setup_timeout_ms": 300, "socket_connection_setup_timeout_max_ms": 300}
    said = _give_up(subject, door.address, lambda said: "took longer" in said, **times, **_TLS)
    assert re.search(r"took longer than 0\.[234] seconds", said), said  # 10 by default


@proves("socket_connection_setup_timeout_max_ms")
def attempts_do_not_get_longer_than_that(subject: Subject) -> None:
    door = subject.enter(Door())
    times = {"socket_connection_setup_timeout_ms": 100, "socket_connection_setup_timeout_max_ms": 100}

    def attempted_often(_: str) -> bool:
        visits, door.visits[:] = len(door.visits), ()
        return visits > 3

    said = _give_up(subject, door.address, attempted_often, **times, **_TLS)
    assert "took longer than 0.1 seconds" in said, said  # doubled each time it would be 0.4 by now


class _Dials:
    """When connections to an address were attempted."""

    def __init__(self, subject: Subject, port: int) -> None:
        self.times: list[float] = []
        real = socket.socket.connect_ex

        def connect_ex(sock: socket.socket, address: Any) -> int:
            if address[1] == port:
                self.times.append(time.monotonic())
            return real(sock, address)

        subject.monkeypatch.setattr(socket.socket, "connect_ex", connect_ex)

    def more_than(self, count: int) -> Callable[[str], bool]:
        """Whether there were more attempts than that; if not, they are forgotten."""

        def enough(_: str) -> bool:
            if len(self.times) <= count:
                self.times.clear()
            return bool(self.times)

        return enough


@proves("reconnect_backoff_ms")
def a_broker_is_left_alone_after_a_failure(subject: Subject) -> None:
    port = free_port()
    dials = _Dials(subject, port)
    _give_up(subject, f"127.0.0.1:{port}", dials.more_than(1), reconnect_backoff_ms=300)
    assert dials.times[1] - dials.times[0] > 0.2  # within 20%; 50 ms by default


@proves("reconnect_backoff_max_ms")
def the_pause_does_not_get_longer_than_that(subject: Subject) -> None:
    port = free_port()
    dials = _Dials(subject, port)
    options = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 20}
    _give_up(subject, f"127.0.0.1:{port}", dials.more_than(9), **options)
    pauses = [later - earlier for earlier, later in pairwise(dials.times)]
    assert min(pauses[6:9]) < 0.5, pauses  # doubled each time they would be of a second


@proves("connections_max_idle_ms")
def idle_connections_are_closed(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.use(broker, connections_max_idle_ms=100)
    if subject.kind == "share":
        used.turn = lambda: time.sleep(0.005)  # each poll() would fetch
    used.until(lambda: broker.run(lambda cluster: not cluster.nodes[1].listener.connections))


# Who is asking


@proves("client_id")
def requests_say_who_asks(subject: Subject) -> None:
    broker = subject.broker()
    subject.use(broker, client_id="somebody")
    assert {request.client_id for request in broker.requests} == {"somebody"}


@proves("client_software_name", "client_software_version")
def the_broker_hears_the_library_s_name(subject: Subject) -> None:
    broker = subject.broker()
    subject.use(broker, **{subject.option: "mine-7"})
    assert {getattr(asked.request, subject.option) for asked in seen(broker, "ApiVersions")} == {"mine-7"}


@proves("api_version", kinds="producer consumer admin client connection")
def a_stated_release_is_not_asked_for(subject: Subject) -> None:
    broker = subject.broker()
    subject.use(broker, api_version=(1, 0))
    assert not seen(broker, "ApiVersions")
    assert {request.version for request in seen(broker, "Metadata")} == {5}  # that release's newest


# Requests


@proves("request_timeout_ms", kinds="connection client producer consumer admin share")
def a_reply_is_waited_for_so_long(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.use(broker, request_timeout_ms=1000)
    broker.intercept("Produce" if subject.kind == "producer" else "Metadata", lambda _: NO_REPLY, times=1)
    began = time.monotonic()
    try:
        used.ask()
    except KafkaError:
        assert subject.kind not in {"producer", "admin"}  # which try again
    assert 0.5 < time.monotonic() - began < 10  # 30 by default


@proves("request_timeout_ms", kinds="coordinator consumer_coordinator")
def a_coordinator_that_does_not_answer_is_looked_up_again(subject: Subject) -> None:
    broker = subject.broker()
    broker.intercept("FindCoordinator", lambda _: NO_REPLY, times=1)
    began = time.monotonic()
    subject.use(broker, group_id="g", request_timeout_ms=200)
    assert time.monotonic() - began < 15  # 30 by default


@proves("default_api_timeout_ms", kinds="admin")
def a_call_of_an_administrator_takes_so_long(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.make(broker, default_api_timeout_ms=200, request_timeout_ms=100)
    broker.intercept("DescribeCluster", lambda _: NO_REPLY)
    began = time.monotonic()
    try:
        used.thing.describe_cluster()
    except KafkaTimeoutError:
        assert time.monotonic() - began < 15  # 60 by default
    else:
        raise AssertionError("a broker answered")


@proves("default_api_timeout_ms", kinds="consumer")
def a_call_takes_so_long(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.make(broker, request_timeout_ms=100, default_api_timeout_ms=200)
    broker.intercept("ListOffsets", lambda _: NO_REPLY)
    used.thing.assign([TopicPartition(TOPIC, 0)])
    began = time.monotonic()
    try:
        used.thing.position(TopicPartition(TOPIC, 0))
    except KafkaTimeoutError:
        assert time.monotonic() - began < 15  # 60 by default
    else:
        raise AssertionError("somebody answered")


def _retried(subject: Subject, failures: int, **options: Any) -> list[float]:
    """Have a request fail a few times; the seconds between the attempts."""
    broker = subject.broker()
    if subject.kind == "producer":
        broker.fail("Produce", [NotEnoughReplicasError], times=failures)
        subject.use(broker, **options)
        return gaps(broker, "Produce")
    if subject.kind == "admin":
        used = subject.use(broker, **options)
        broker.fail("CreateTopics", [NotControllerError], times=failures)
        used.thing.create_topics(["created"])
        return gaps(broker, "CreateTopics")
    broker.fail("JoinGroup" if "coordinator" in subject.kind else "FindCoordinator", [15], times=failures)
    if subject.kind == "client":
        with KafkaClient(bootstrap_servers=broker.bootstrap_servers, **options) as client:
            client.ask(HeartbeatRequest(group_id="g"), timeout_ms=PATIENCE * 1000)
    elif subject.kind in {"consumer", "share"}:
        topics = {"topics": [TOPIC]} if subject.kind == "consumer" else {}
        used = subject.use(broker, group_id="g", **topics, **options)
        used.until(lambda: len(seen(broker, "FindCoordinator")) > failures)
    else:
        subject.use(broker, group_id="g", **options)
        return gaps(broker, "JoinGroup")[:failures]
    return gaps(broker, "FindCoordinator")[:failures]


@proves("retry_backoff_ms", kinds="producer consumer share admin client coordinator consumer_coordinator")
def a_request_that_failed_is_tried_again_after_a_pause(subject: Subject) -> None:
    assert _retried(subject, 1, retry_backoff_ms=400)[0] > 0.3  # within 20%; 100 ms by default


@proves("retry_backoff_max_ms", kinds="producer consumer share admin client coordinator consumer_coordinator")
def that_pause_does_not_get_longer(subject: Subject) -> None:
    # Doubled each time the sixth pause would be 960 ms, and those after it longer; a busy machine may draw out one.
    assert min(_retried(subject, 8, retry_backoff_ms=30, retry_backoff_max_ms=30)[5:]) < 0.5


@proves("max_in_flight_requests_per_connection", kinds="connection client")
def more_requests_than_that_are_refused(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.use(broker, max_in_flight_requests_per_connection=2)
    broker.intercept("Metadata", lambda _: NO_REPLY)
    request: Callable[[], Any] = lambda: MetadataRequest(topics=[])  # noqa: E731
    thing = used.thing
    if subject.kind == "connection":
        used.until(lambda: thing.can_send_more() and thing.in_flight_requests == 0)
        futures = [thing.send(request()) for _ in range(3)]
    else:
        used.until(lambda: thing.in_flight_request_count() == 0)
        futures = [thing.send(thing.least_loaded_node(), request()) for _ in range(3)]
    assert [future.is_done for future in futures] == [False, False, True]
    assert isinstance(futures[2].exception, TooManyInFlightRequests)


@proves("max_in_flight_requests_per_connection", kinds="producer")
def one_batch_at_a_time_is_under_way(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.make(broker, max_in_flight_requests_per_connection=1, batch_size=0, linger_ms=0)
    broker.intercept("Produce", lambda _: NO_REPLY)
    for number in range(3):
        used.thing.send(TOPIC, b"%d" % number)
    used.until(lambda: seen(broker, "Produce"))
    used.get_on(0.2)
    assert len(seen(broker, "Produce")) == 1


@proves("max_in_flight_requests_per_connection", kinds="admin")
def so_many_calls_at_a_time_are_under_way(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.use(broker, max_in_flight_requests_per_connection=1)
    broker.intercept("DescribeCluster", lambda _: NO_REPLY)
    calls = [Thread(target=_describe_in_vain, args=(used.thing,)) for _ in range(3)]
    for call in calls:
        call.start()
    used.until(lambda: seen(broker, "DescribeCluster"))
    used.get_on(0.2)
    assert len(seen(broker, "DescribeCluster")) == 1
    used.thing.close()
    for call in calls:
        call.join(PATIENCE)


def _describe_in_vain(admin: Any) -> None:
    with contextlib.suppress(KafkaError):
        admin.describe_cluster()


@proves("max_in_flight_requests_per_connection", kinds="consumer")
def one_commit_at_a_time_is_under_way(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.use(broker, max_in_flight_requests_per_connection=1, group_id="g", topics=[TOPIC])
    used.until(used.thing.assignment)
    broker.intercept("OffsetCommit", lambda _: NO_REPLY)
    for offset in range(3):
        used.thing.commit_async({TopicPartition(TOPIC, 0): OffsetAndMetadata(offset, "")})
    used.until(lambda: seen(broker, "OffsetCommit"))
    used.get_on(0.2)
    assert len(seen(broker, "OffsetCommit")) == 1


@proves("receive_message_max_bytes")
def a_larger_reply_is_refused(subject: Subject) -> None:
    broker = subject.broker(topics={TOPIC: 300})
    options: dict[str, Any] = {"receive_message_max_bytes": 2048}
    brief: dict[str, Any] = {}  # what waits in vain need not wait for long
    if subject.kind in {"consumer", "share"}:
        options |= {"fetch_max_bytes": 512}
        brief = {"default_api_timeout_ms": 300, "request_timeout_ms": 100}
    if subject.kind == "producer":
        brief = {"max_block_ms": 300}
    if subject.kind == "admin":
        brief = {"default_api_timeout_ms": 500, "request_timeout_ms": 100}
    error = subject.attempt(broker, **options, **brief)
    assert isinstance(error, InvalidReceiveError | KafkaTimeoutError), error
    assert not isinstance(error, BrokerResponseError)
    assert "2048" in f"{error} {error.__cause__}" or subject.kind in {"consumer", "share"}
    # With less to tell it gets its reply.
    assert subject.attempt(subject.broker(), **options) is None


# Sockets


class _SetOptions:
    """What setsockopt was called with."""

    def __init__(self, subject: Subject) -> None:
        self.calls: set[tuple[Any, ...]] = set()
        real = socket.socket.setsockopt

        def setsockopt(sock: socket.socket, *option: Any) -> None:
            self.calls.add(option)
            real(sock, *option)

        subject.monkeypatch.setattr(socket.socket, "setsockopt", setsockopt)


@proves("receive_buffer_bytes", "send_buffer_bytes")
def the_socket_s_buffer_has_that_size(subject: Subject) -> None:
    options = _SetOptions(subject)
    subject.use(subject.broker(), **{subject.option: 54321})
    which = socket.SO_RCVBUF if subject.option == "receive_buffer_bytes" else socket.SO_SNDBUF
    assert (socket.SOL_SOCKET, which, 54321) in options.calls


@proves("socket_options")
def the_socket_has_these_options(subject: Subject) -> None:
    options = _SetOptions(subject)
    subject.use(subject.broker(), socket_options=[(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)])
    assert (socket.SOL_SOCKET, socket.SO_OOBINLINE, 1) in options.calls
    assert (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1) not in options.calls


class _Reads:
    """The reads of sockets, and between which of them the loop looked at all connections."""

    def __init__(self, subject: Subject, broker: Broker) -> None:
        self.sizes: list[int] = []
        self.in_a_row: list[int] = [0]
        real = socket.socket.recv_into

        def recv_into(sock: socket.socket, buffer: Any, *more: Any) -> int:
            if sock.getpeername()[1] == broker.port():
                self.sizes.append(memoryview(buffer).nbytes)
                self.in_a_row[-1] += 1
            return real(sock, buffer, *more)

        outer = self

        class Selector(selectors.DefaultSelector):
            def select(self, timeout: float | None = None) -> Any:
                outer.in_a_row.append(0)
                return super().select(timeout)

        self.selector = Selector
        subject.monkeypatch.setattr(socket.socket, "recv_into", recv_into)


@proves("sock_chunk_bytes")
def a_read_asks_for_so_much(subject: Subject) -> None:
    broker = subject.broker()
    reads = _Reads(subject, broker)
    subject.use(broker, sock_chunk_bytes=777)
    assert reads.sizes[0] == 777


@proves("sock_chunk_buffer_count")
def others_have_their_turn_after_so_many_reads(subject: Subject) -> None:
    broker = subject.broker(topics={TOPIC: 300})
    few = _Reads(subject, broker)
    subject.use(broker, sock_chunk_buffer_count=1, sock_chunk_bytes=64, selector=few.selector)
    assert max(few.in_a_row) <= 2  # the end of a connection's set-up reads once more in the same pass
    many = _Reads(subject, broker)
    subject.use(broker, sock_chunk_bytes=64, selector=many.selector)
    assert max(many.in_a_row) > 2


@proves("selector")
def it_is_what_is_waited_with(subject: Subject) -> None:
    made: list[Any] = []

    class Selector(selectors.SelectSelector):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    subject.use(subject.broker(), selector=Selector)
    assert made


@proves("kafka_client")
def the_application_s_own_client_is_used(subject: Subject) -> None:
    made: list[Any] = []

    class Mine(KafkaClient):
        def __init__(self, **options: Any) -> None:
            made.append(options["client_id"])
            super().__init__(**options)

    subject.use(subject.broker(), kafka_client=Mine, client_id="somebody")
    assert made == ["somebody"]

    def factory(bootstrap_servers: Any, client_id: str) -> KafkaClient:
        """Take the options that are given, and nothing else."""
        made.append(client_id)
        return KafkaClient(bootstrap_servers=bootstrap_servers, client_id=client_id)

    subject.use(subject.broker(), kafka_client=factory, client_id="other")
    assert made == ["somebody", "other"]
