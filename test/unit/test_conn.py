"""BrokerConnection over the in-memory network: every step, every split, every end."""

from __future__ import annotations

import contextlib
import gc
import re
import socket
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka.conn import BrokerConnection, ConnectionStates
from kafka.errors import (
    CorrelationIdError,
    IllegalSaslStateError,
    IllegalStateError,
    InvalidReceiveError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    SslAuthenticationError,
    TooManyInFlightRequests,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
)
from kafka.metrics import Metrics
from kafka.metrics.stats import Count
from kafka.net.states import NEXT, ConnectionEvent, next_state
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.offset import ListOffsetsRequest
from kafka.protocol.produce import ProduceRequest
from kafka.testing import HANG_UP, SILENCE, MemoryNetwork, ScriptedBroker

ANCIENT = {
    (0, 9): {0: (0, 1), 1: (0, 1), 2: (0, 0), 3: (0, 0), 8: (0, 2), 9: (0, 1), 10: (0, 0), 16: (0, 0)},
    (0, 8, 2): {0: (0, 0), 1: (0, 0), 2: (0, 0), 3: (0, 0), 8: (0, 1), 9: (0, 1), 10: (0, 0)},
    (0, 8, 1): {0: (0, 0), 1: (0, 0), 2: (0, 0), 3: (0, 0), 8: (0, 0), 9: (0, 0)},
    (0, 8, 0): {0: (0, 0), 1: (0, 0), 2: (0, 0), 3: (0, 0)},
}


@pytest.fixture
def network():
    return MemoryNetwork()


@pytest.fixture
def broker(network):
    broker = ScriptedBroker(network)
    broker.on("Metadata", {"controller_id": 1, "brokers": [], "topics": []})
    return broker


@pytest.fixture
def make(network):
    made = []

    def make(host="broker", port=9092, **config):
        conn = BrokerConnection(host, port, socket.AF_UNSPEC, environment=network.environment(), **config)
        made.append(conn)
        return conn

    yield make
    for conn in made:
        conn.close()
        conn._loop.close()
    assert not network.open_sockets


def connect(conn, timeout=60):
    assert conn.connect_blocking(timeout)
    return conn


def ask(conn, request=None):
    future = conn.send(request or MetadataRequest(topics=[]))
    conn._loop.run_until(future, conn._loop.time() + 100)
    return future.value


def rest(conn, seconds):
    """Let time pass."""
    conn._loop.run_until(conn._loop.spawn(conn._loop.sleep(seconds)))


def answer_late(broker, loop, seconds):
    """Let each answer of a scripted broker take some time."""

    def reply(session, request, fields):
        header = next(header for header, unanswered in session.unanswered if unanswered is request)
        session.reply(header, request, fields)

    def late(handler):
        def answer(request, session):
            fields = handler(request, session)
            if fields is SILENCE or fields is HANG_UP:
                return fields
            loop.call_later(seconds, reply, session, request, fields)
            return SILENCE

        return answer

    for name, handler in list(broker.handlers.items()):
        broker.handlers[name] = late(handler)


# The table of states


def test_a_step_that_the_table_does_not_have_is_a_bug():
    with pytest.raises(AssertionError, match="cannot take requests"):
        next_state(ConnectionStates.DISCONNECTED, ConnectionEvent.READY)


def test_every_state_can_be_reached_and_left():
    assert {state for state, _ in NEXT} == set(ConnectionStates) == set(NEXT.values())


# Connecting


def test_it_connects_asks_for_versions_and_takes_requests(make, broker):
    conn = make()
    assert conn.disconnected()
    states = {conn.connect()}
    assert conn.connecting()
    while not conn.connected():
        states.add(conn.connect())
    assert ConnectionStates.CHECKING_API_VERSIONS in states
    assert ask(conn).controller_id == 1
    assert broker.asked("ApiVersions")[0].client_software_name == "purekafka"
    assert conn.check_version() >= (4, 0)
    assert conn.get_api_versions()[3] == (0, 13)
    assert not conn.in_flight_requests


def test_state_changes_are_reported(make, broker):
    told = []
    conn = make(state_change_callback=lambda node_id, sock, conn: told.append((node_id, conn.state)), node_id=5)
    connect(conn)
    conn.close()
    assert told[0] == (5, ConnectionStates.RESOLVING)
    assert told[-2:] == [(5, ConnectionStates.CONNECTED), (5, ConnectionStates.DISCONNECTED)]


def test_socket_options_and_buffers_reach_the_socket(make, broker, network):
    connect(make(socket_options=[(6, 1, 1)], receive_buffer_bytes=1000, send_buffer_bytes=2000))
    assert network.sockets[0].options == [
        (6, 1, 1),
        (socket.SOL_SOCKET, socket.SO_RCVBUF, 1000),
        (socket.SOL_SOCKET, socket.SO_SNDBUF, 2000),
    ]


def test_a_refused_connection_backs_off_with_growing_delays(make, network):
    conn = make(reconnect_backoff_ms=100, reconnect_backoff_max_ms=1000)
    delays = []
    for _ in range(6):
        while not conn.blacked_out():
            conn.connect()
        delays.append(conn.connection_delay())
        assert conn.connect() is ConnectionStates.DISCONNECTED  # not before its time
        network.clock.advance(conn.connection_delay() / 1000 + 0.001)
    for delay, expected in zip(delays, (100, 200, 400, 800, 1000, 1000), strict=True):
        assert expected * 0.8 <= delay <= expected * 1.2
    assert "Connection refused" in str(conn.error)
    assert "broker 0 (broker:9092)" in str(conn.error)


def test_backing_off_does_not_spin(make, network):
    conn = make(reconnect_backoff_ms=1000, reconnect_backoff_max_ms=1000)
    turns = conn._loop.turns
    conn.connect_blocking(10)
    attempts = len(network.sockets)
    assert attempts >= 8
    assert conn._loop.turns - turns <= 12 * attempts


def test_an_unreachable_address_times_out(make, network):
    network.unreachable.add(("broker", 9092))
    conn = make(socket_connection_setup_timeout_ms=1000, reconnect_backoff_ms=9000)
    assert not conn.connect_blocking(1.5)
    assert "took longer" in str(conn.error)
    assert not network.open_sockets


def test_the_next_address_is_tried_beside_a_slow_one(make, broker, network):
    network.names["broker-name"] = ["slow", "dead", "broker"]
    network.unreachable.add(("slow", 9092))
    before = network.clock.monotonic()
    connect(make("broker-name"))
    assert network.clock.monotonic() - before < 1.0
    assert [sock.address[0] for sock in network.open_sockets] == ["broker"]


def leave(end):
    """Close a connection when the first bytes arrive."""
    end.on_data = lambda _: end.close()


@pytest.mark.parametrize(
    ("accepted", "seconds"),
    [(lambda end: end.close(), 1), (leave, 1), (lambda end: None, 13)],
    ids=["closes it", "hangs up on the first request", "says nothing"],
)
def test_after_a_connection_that_came_to_nothing_the_next_address_is_tried(make, network, accepted, seconds):
    network.names["broker"] = ["10.0.0.1", "10.0.0.2"]
    network.listen("10.0.0.1", 9092, accepted)
    good = ScriptedBroker(network, "10.0.0.2")
    good.on("Metadata", {"controller_id": 1, "brokers": [], "topics": []})
    before = network.clock.monotonic()
    conn = connect(make())
    assert network.clock.monotonic() - before < seconds
    assert ask(conn).brokers == []
    # It is remembered, also when the connection that worked is lost.
    good.sessions[-1].sock.close()
    network.listen("10.0.0.1", 9092, lambda end: pytest.fail("the bad address was tried first"))
    rest(conn, 0.1)
    connect(conn)
    # And when the good one goes bad, the other one has its turn.
    good.stop()
    rest(conn, 0.1)
    network.listen("10.0.0.2", 9092, leave)
    other = ScriptedBroker(network, "10.0.0.1")
    connect(conn)
    assert len(other.sessions) == 1


def test_with_one_address_a_silent_broker_has_all_the_time_for_a_request(make, network):
    network.names["broker"] = ["10.0.0.1", "10.0.0.2"]
    network.listen("10.0.0.2", 9092, lambda end: None)  # the other one refuses
    conn = make(request_timeout_ms=25_000)
    before = network.clock.monotonic()
    assert not conn.connect_blocking(25.01)
    assert network.clock.monotonic() - before == pytest.approx(25, abs=0.1)
    assert "did not answer within 25.0 seconds" in str(conn.error)


def test_a_family_that_the_machine_does_not_have_is_passed_over(make, broker, network):
    network.names["broker-name"] = ["broker", "broker"]
    conn = make("broker-name")
    tried = []

    def no_ipv6(family, kind):
        tried.append(family)
        if len(tried) == 1:
            raise OSError(97, "Address family not supported by protocol")
        return network.socket()

    conn.connection.context.make_socket = no_ipv6
    network.names["broker-name"] = ["one", "broker"]
    connect(conn)
    assert len(tried) == 2


def test_an_option_that_the_socket_refuses_is_reported(make, broker, network, monkeypatch):
    def refuse(self, *option):
        raise OSError(92, "Protocol not available")

    monkeypatch.setattr("kafka.testing.memory.MemorySocket.setsockopt", refuse)
    conn = make()
    conn.connect_blocking(0.01)
    assert "Protocol not available" in str(conn.error)


def test_sending_to_a_broker_that_is_gone_is_an_error_of_the_connection(make, broker):
    conn = connect(make())
    broker.sessions[-1].sock.closed = True
    future = conn.send(MetadataRequest(topics=[]))
    assert isinstance(future.exception, KafkaConnectionError)
    assert conn.disconnected()


def test_an_unknown_name_is_reported_as_unknown(make, network):
    network.names["nowhere"] = []
    conn = make("nowhere")
    conn.connect_blocking(0.01)
    assert "cannot resolve nowhere" in str(conn.error)


def test_an_older_broker_is_asked_again_in_its_version(make, broker):
    for high in (3, 2, 0):
        broker.requests.clear()
        broker.ranges[18] = (0, high)
        connect(make())
        versions = [version for name, version, _ in broker.requests if name == "ApiVersions"]
        assert versions == ([4, 3] if high >= 3 else [4, 0])


# 0.9.0 ignores what it does not know; the others hang up.
@pytest.mark.parametrize(("release", "ignores"), [((0, 9), True), *((release, False) for release in ANCIENT)])
@pytest.mark.parametrize("latency", [0, 5.0])
def test_a_broker_that_cannot_be_asked_is_found_out(make, broker, release, ignores, latency):
    broker.ranges = ANCIENT[release]
    broker.ignores_unknown = ignores
    broker.on("ListGroups", {})
    broker.on("FindCoordinator", {"error_code": 15, "node_id": -1, "host": "", "port": -1})
    broker.on("OffsetFetch", {"topics": []})
    conn = make()
    if latency:
        answer_late(broker, conn._loop, latency)
    connect(conn)
    assert conn.check_version()[: len(release)] == release
    assert ask(conn, MetadataRequest(topics=[])).topics == []
    assert broker.requests[-1][:2] == ("Metadata", 0)
    conn.close()
    before = len(broker.sessions)
    connect(conn)
    assert len(broker.sessions) == before + 1  # it is remembered


def test_a_broker_that_is_cut_off_in_the_middle_of_its_answer_is_not_ancient(make, broker):
    """It knows the question; one that does not hangs up without a word."""
    broker.on("ListGroups", {})
    honest = broker.handlers["ApiVersions"]

    def cut_off(request, session):
        honest(request, session)
        session.sock.send(b"\0\0\2\0\0\0\0\1\0\0")
        return HANG_UP

    broker.on("ApiVersions", cut_off)
    conn = make()
    assert not conn.connect_blocking(0.05)
    assert not broker.asked("ListGroups")
    broker.on("ApiVersions", honest)
    assert connect(conn).check_version() > (4, 0)


def test_a_broker_that_was_cut_off_and_then_takes_its_time_is_not_ancient(make, broker):
    broker.on("ListGroups", {})
    honest = broker.handlers["ApiVersions"]
    answers = [lambda *_: HANG_UP, lambda *_: SILENCE]

    def answer(request, session):
        return (answers.pop(0) if answers else honest)(request, session)

    broker.on("ApiVersions", answer)
    assert connect(make()).check_version() > (4, 0)
    assert not answers


@pytest.mark.parametrize(
    "newest", [4, 2, 0]
)  # the version of ApiVersions that the broker knows; else it is asked twice
@pytest.mark.parametrize("seconds", [0.9, 1.0, 1.8, 2.5, 4.0, 10.0, 29.0])
def test_a_broker_that_takes_its_time_is_connected_to_at_the_first_attempt(make, broker, network, seconds, newest):
    broker.on("ListGroups", {})
    broker.ranges[18] = (0, newest)
    conn = make()
    answer_late(broker, conn._loop, seconds)
    before = network.clock.monotonic()
    connect(conn, 100)
    assert network.clock.monotonic() - before == pytest.approx(seconds * (1 if newest == 4 else 2))
    assert conn.check_version() > (0, 10)
    assert ask(conn).brokers == []
    rest(conn, 100)
    assert conn.connected()
    assert len(broker.sessions) == 1


def test_the_second_question_to_a_slow_broker_may_be_answered_later_than_any_limit(make, broker):
    """It was asked in case that the broker is ancient. Once the first one is answered nobody waits for it."""
    broker.on("ListGroups", {})
    conn = make(request_timeout_ms=5000)
    answer_late(broker, conn._loop, 1.5)
    broker.on("ListGroups", lambda *_: SILENCE)
    connect(conn)
    rest(conn, 60)
    assert conn.connected()
    assert not conn.requests_timed_out()
    session = broker.sessions[0]
    session.reply(*session.unanswered.pop(), {})
    assert ask(conn).brokers == []
    assert len(broker.sessions) == 1


def test_a_stated_release_is_not_asked_for(make, broker):
    conn = connect(make(api_version=(2, 8)))
    assert not broker.asked("ApiVersions")
    assert conn.check_version() == (2, 8)


def test_a_version_of_a_stated_release_that_the_broker_does_not_serve_is_named(make, broker, caplog):
    """Kafka 4 closes the connection on requests of clients that are told to speak as to 0.10."""
    broker.on("ListOffsets", lambda *_: HANG_UP)
    conn = connect(make(api_version=(0, 10, 1)))
    assert ask(conn).brokers == []  # so the connection has worked before
    future = conn.send(ListOffsetsRequest(replica_id=-1, topics=[]))
    conn._loop.run_until(conn._loop.spawn(conn._loop.sleep(1)))
    said = "closed it on ListOffsetsRequest version 1, the version that api_version=(0, 10, 1) stands for"
    assert said in str(future.exception)
    assert said in caplog.text
    assert "leave api_version unset" in caplog.text


def each_in_turn(*accepted):
    """Treat connections in turn; the last of these also those that come after."""
    left = list(accepted)

    def accept(end):
        (left.pop(0) if len(left) > 1 else left[0])(end)

    return accept


def cut_answer(end):
    """Answer the first request with a few bytes and close the connection."""
    end.on_data = lambda _: (end.send(b"\0\0\2\0\0\0\0\1\0\0"), end.close())


def speaks_tls(end):
    end.on_data = lambda _: (
        end.send(b"\x15\x03\x03\x00\x02\x02\x28") if end.take()[:1] == b"\x16" else None,
        end.close(),
    )


WHAT_HAPPENS = {
    "nothing listens": (None, {}, "Connection refused"),
    "the address does not answer": ("unreachable", {}, r"took longer than .* waited for the connection to be accepted"),
    "the name is unknown": ("unknown", {}, "cannot resolve broker"),
    "the broker is silent": (lambda end: None, {}, r"accepted the connection and did not answer within 5.0 seconds"),
    "a broker with SASL is silent": (lambda end: None, "SASL", "accepted the connection and did not answer within 5.0"),
    "it closes each connection": (lambda end: end.close(), {}, "accepts connections and closes each at the first"),
    "it hangs up on each request": (leave, {}, "accepts connections and closes each at the first"),
    "it hangs up where SASL is configured": (leave, "SASL", r"closed it at the first request \(ApiVersions\)"),
    "it hangs up and is then silent": (
        (leave, lambda end: None),
        {},
        "closed the first connection and did not answer on the next within 5.0 seconds",
    ),
    "it breaks off its answer": (cut_answer, {}, "closed it in the middle of its first answer"),
    "it speaks TLS": (speaks_tls, {}, "broker speaks TLS on this port: set security_protocol to SSL"),
}


@pytest.mark.parametrize("case", WHAT_HAPPENS)
def test_an_error_of_connecting_says_what_happened(make, network, case):
    accepted, config, said = WHAT_HAPPENS[case]
    if accepted == "unreachable":
        network.unreachable.add(("broker", 9092))
    elif accepted == "unknown":
        network.names["broker"] = []
    elif accepted is not None:
        network.listen("broker", 9092, each_in_turn(*(accepted if isinstance(accepted, tuple) else [accepted])))
    conn = make(request_timeout_ms=5000, reconnect_backoff_ms=60_000, **(SASL if config else {}))
    with contextlib.suppress(SslAuthenticationError):
        conn.connect_blocking(50)
    text = str(conn.error)
    assert re.search(said, text), text
    if "silent" not in case:
        assert "did not answer" not in text
    if case == "the broker is silent":
        assert "close" not in text
    assert not re.search("ListGroups|FindCoordinator|OffsetFetch|Metadata", text)  # the user made no such request


@pytest.mark.parametrize("together", [True, False])
def test_a_broker_that_is_slow_answers_the_second_question_too_which_does_not_matter(make, broker, network, together):
    versions = broker.handlers["ApiVersions"]
    broker.on("ApiVersions", lambda *_: SILENCE)
    broker.on("ListGroups", lambda *_: SILENCE)
    conn = make()
    conn.connect()
    while not broker.asked("ListGroups"):
        conn._loop.turn()
    (session,) = broker.sessions
    (asked, request), (probed, probe) = session.unanswered
    session.reply(asked, request, versions(request, session))
    if together:
        session.reply(probed, probe, {})
    assert conn.connect_blocking(1)
    broker.on("Metadata", lambda *_: SILENCE)
    future = conn.send(MetadataRequest(topics=[]))
    conn.recv()
    if not together:
        session.reply(probed, probe, {})
    session.reply(*session.unanswered[-1], {"controller_id": 1})
    assert conn._loop.run_until(future, conn._loop.time() + 1).controller_id == 1
    assert conn.check_version() >= (4, 0)
    assert len(broker.sessions) == 1


def test_bytes_that_follow_the_last_answer_of_the_set_up_end_the_connection(make, broker):
    answer = broker.handlers["ApiVersions"]

    def answer_and_more(request, session):
        reply = session.reply
        session.reply = lambda *words: (reply(*words), session.sock.send(b"\0\0\0\x02ab"))
        return answer(request, session)

    broker.on("ApiVersions", answer_and_more)
    conn = make()
    assert not conn.connect_blocking(0.05)
    assert "sent 2 bytes without a request" in str(conn.error)


def test_a_broker_that_hangs_up_as_it_answers_the_last_question_leaves_no_half_open_connection(make, broker):
    """Such a connection once counted as ready without a stream, and requests waited for their timeout."""
    answer = broker.handlers["ApiVersions"]

    def answer_and_leave(request, session):
        reply = session.reply

        def reply_and_close(*words):
            reply(*words)
            session.sock.close()

        session.reply = reply_and_close
        return answer(request, session)

    broker.on("ApiVersions", answer_and_leave)
    conn = make()
    conn.connect_blocking(0.05)
    assert broker.asked("ApiVersions")
    assert not conn.connected()
    assert "closed the connection" in str(conn.error)


# Requests and replies


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_replies_may_be_split_at_every_byte(make, broker, network, limit):
    original = network.socket

    def split_socket(*args):
        sock = original(*args)
        sock.recv_limit = limit
        return sock

    network.socket = split_socket
    conn = connect(make(sock_chunk_bytes=64))
    futures = [conn.send(MetadataRequest(topics=[])) for _ in range(3)]
    for future in futures:
        conn._loop.run_until(future, conn._loop.time() + 10)
        assert future.value.controller_id == 1


def test_a_large_reply_is_received_in_place(make, broker):
    topics = [f"topic-{number}" for number in range(5000)]
    broker.on("Metadata", lambda request, session: {"topics": [_topic(request, name) for name in topics]})
    conn = connect(make(sock_chunk_bytes=1000))
    assert len(ask(conn).topics) == 5000


def _topic(request, name):
    topic = type(request)._unbound.RESPONSE_TYPE.MetadataResponseTopic
    return topic(name=name, partitions=[])


def test_requests_are_answered_in_order_and_limited_in_flight(make, broker):
    broker.on("Metadata", lambda *_: SILENCE)
    conn = connect(make(max_in_flight_requests_per_connection=2))
    futures = [conn.send(MetadataRequest(topics=[])) for _ in range(3)]
    assert isinstance(futures[2].exception, TooManyInFlightRequests)
    assert conn.in_flight_requests == 2
    assert not conn.can_send_more()
    conn.recv()
    session = broker.sessions[-1]
    for header, request in session.unanswered:
        session.reply(header, request, {"controller_id": header.correlation_id})
    received = conn.recv()
    assert [future for _, future in received] == futures[:2]
    assert received[0][0].controller_id < received[1][0].controller_id


@pytest.mark.parametrize("sasl", [False, True])
def test_recv_returns_the_responses_to_sent_requests_and_not_the_set_up_s(make, broker, network, sasl):
    sasl_broker(broker, lifetime=10_000)
    conn = make(**(SASL if sasl else {}))
    assert conn.connect_blocking()
    assert conn.recv() == []
    future = conn.send(MetadataRequest(topics=[]))
    ((response, answered),) = conn.recv()
    assert answered is future
    assert answered.success(response) is future  # as programs for kafka-python 2 do
    with pytest.raises(IllegalStateError):
        answered.success(object())
    assert response.controller_id == 1
    network.clock.advance(11)
    future = conn.send(MetadataRequest(topics=[]))
    received = []
    while not future.is_done:
        received += conn.recv()
    assert [found for _, found in received] == [future]
    assert len(broker.asked("SaslAuthenticate")) == (2 if sasl else 0)


def test_a_state_change_callback_that_raises_leaves_no_request_open(make, broker, caplog):
    def refuse(_node_id, _sock, conn):
        if conn.disconnected():
            raise ValueError("the callback fails")

    broker.on("Metadata", lambda *_: SILENCE)
    conn = connect(make(state_change_callback=refuse))
    futures = [conn.connection.submit(MetadataRequest(topics=[])) for _ in range(3)]
    conn.recv()
    broker.stop()
    for _ in range(3):
        conn.recv()
    assert all(future.is_done for future in futures)
    assert "The state_change_callback of broker 0 (broker:9092) failed" in caplog.text
    assert "ValueError: the callback fails" in caplog.text


def test_submitted_requests_wait_their_turn(make, broker):
    conn = connect(make(max_in_flight_requests_per_connection=1))
    futures = [conn.connection.submit(MetadataRequest(topics=[])) for _ in range(10)]
    for future in futures:
        conn._loop.run_until(future, conn._loop.time() + 1)
    assert conn.connection.pipeline.in_flight == 0


def test_a_reply_out_of_order_ends_the_connection(make, broker):
    broker.on("Metadata", lambda *_: SILENCE)
    conn = connect(make())
    futures = [conn.send(MetadataRequest(topics=[])) for _ in range(2)]
    conn.recv()
    session = broker.sessions[-1]
    header, request = session.unanswered[1]
    session.reply(header, request, {})
    conn.recv()
    assert conn.disconnected()
    for future in futures:
        assert isinstance(future.exception, CorrelationIdError)
        assert future.exception.outcome_unknown
    assert not conn.error.outcome_unknown


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\0\0\0\x04\0\0\0\x63", KafkaProtocolError),
        (b"\0\0\0\x00", KafkaProtocolError),
        (b"\x80\0\0\0", InvalidReceiveError),
        (b"\x7f\xff\xff\xff", InvalidReceiveError),
        (b"HTTP/1.1 400 Bad Request\r\n", InvalidReceiveError),
        (b"SSH-2.0-OpenSSH", InvalidReceiveError),
        (b"\x15\x03\x03\x00\x02\x02\x50", SslAuthenticationError),
    ],
)
def test_bytes_that_are_no_reply_end_the_connection(make, broker, data, error):
    broker.on("Metadata", lambda *_: data)
    conn = connect(make(max_in_flight_requests_per_connection=1))
    future = conn.send(MetadataRequest(topics=[]))
    waiting = conn.connection.submit(MetadataRequest(topics=[]))
    with pytest.raises(error) as caught:
        conn._loop.run_until(future, conn._loop.time() + 1)
    assert caught.value.outcome_unknown
    assert "outcome_unknown" not in str(caught.value)
    assert not waiting.exception.outcome_unknown
    assert conn.disconnected()


def test_a_reply_that_does_not_decode_ends_the_connection_before_its_request_fails(make, broker):
    broker.on("Metadata", lambda *_: b"\0\0\0\x06\0\0\0\x02\0\x99")
    conn = connect(make())
    states = []
    future = conn.send(MetadataRequest(topics=[]))
    future.add_errback(lambda _: states.append(conn.state))
    with pytest.raises(KafkaProtocolError) as caught:
        conn._loop.run_until(future, conn._loop.time() + 1)
    assert caught.value.outcome_unknown
    assert states == [ConnectionStates.DISCONNECTED]


def test_requests_that_callbacks_of_late_requests_send_again_hold_up_none(make, broker):
    """Each request fails at its time, and the broker that hangs is disconnected from then."""
    broker.on("Metadata", lambda *_: SILENCE)
    conn = connect(make(request_timeout_ms=10_000))
    again = []

    def submit(_error=None):
        again.append(conn.connection.submit(MetadataRequest(topics=[])))

    futures = [conn.connection.submit(MetadataRequest(topics=[])) for _ in range(3)]
    for future in futures[:2]:
        future.add_errback(submit)
    before = conn._loop.time()
    with pytest.raises(RequestTimedOutError):
        conn._loop.run_until(futures[2], before + 60)
    assert conn._loop.time() - before == pytest.approx(10, abs=0.1)
    assert all(future.is_done for future in futures)
    assert len(broker.sessions[0].unanswered) == 3
    assert [future.exception.outcome_unknown for future in again] == [False, False]


def test_an_unasked_reply_ends_the_connection(make, broker):
    conn = connect(make())
    broker.sessions[-1].sock.send(b"\0\0\0\x04\0\0\0\x01")
    conn.recv()
    assert "without a request" in str(conn.error)


@settings(max_examples=60, deadline=None)
@given(
    st.binary(min_size=1, max_size=60),
    st.sampled_from(["ApiVersions", "Metadata", "SaslHandshake", "SaslAuthenticate"]),
)
def test_whatever_a_broker_answers_at_whatever_step_only_kafka_errors_go_out(data, step):
    network = MemoryNetwork()
    broker = ScriptedBroker(network)
    broker.on("Metadata", {})
    broker.on("SaslHandshake", {"error_code": 0, "mechanisms": ["PLAIN"]})
    broker.on("SaslAuthenticate", {})
    broker.on(step, lambda *_: data)
    conn = BrokerConnection(
        "broker",
        9092,
        environment=network.environment(),
        request_timeout_ms=1000,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="a",
        sasl_plain_password="b",
    )
    try:
        if conn.connect_blocking(5):
            future = conn.send(MetadataRequest(topics=[]))
            conn._loop.run_until(future, conn._loop.time() + 5)
    except KafkaError:
        pass
    conn.close()
    conn._loop.close()
    assert not network.open_sockets


def test_a_request_without_a_reply_is_done_when_it_has_left(make, broker):
    conn = connect(make())
    future = conn.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]))
    assert future.succeeded()
    assert future.value is None
    assert ask(conn).controller_id == 1


def test_a_request_without_a_reply_that_did_not_leave_fails_with_the_connection(make, broker, network):
    conn = connect(make())
    network.sockets[0].send_limit = 0
    future = conn.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]))
    assert not conn.send_pending_requests()
    assert not future.is_done
    conn.close()
    assert isinstance(future.exception, KafkaConnectionError)


def test_a_request_without_a_reply_that_cannot_leave_times_out_and_ends_the_connection(make, broker, network):
    """A broker whose process was stopped takes no bytes and sends none, for as long as TCP tries: 15 minutes."""
    conn = connect(make(request_timeout_ms=3000))
    assert conn.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[])).succeeded()
    network.sockets[0].send_limit = 0
    futures = []
    for _ in range(10):
        futures.append(conn.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[])))
        network.clock.advance(0.1)
    before = network.clock.monotonic()
    assert conn.connection.idle_since is None
    with pytest.raises(KafkaTimeoutError, match=r"ProduceRequest could not be written within 3\.0 seconds"):
        conn._loop.run_until(futures[0])
    assert network.clock.monotonic() - before == pytest.approx(2)
    assert all(isinstance(future.exception, (KafkaConnectionError, KafkaTimeoutError)) for future in futures)
    assert conn.disconnected()
    assert not len(conn.connection.pipeline.outgoing)


def test_bytes_that_a_full_socket_does_not_take_are_written_later(make, broker, network):
    conn = connect(make())
    network.sockets[0].send_limit = 5
    assert ask(conn).controller_id == 1


def test_a_version_that_the_broker_lacks_fails_the_request_alone(make, broker):
    broker.ranges[3] = (0, 5)
    conn = connect(make())
    future = conn.send(MetadataRequest[9](topics=[]))
    assert isinstance(future.exception, UnsupportedVersionError)
    assert ask(conn).controller_id == 1
    assert broker.requests[-1][1] == 5


def test_a_value_that_cannot_be_encoded_fails_the_request_alone(make, broker):
    conn = connect(make())
    future = conn.send(ProduceRequest(transactional_id=3.5, acks=1, timeout_ms=1, topic_data=[]))
    assert isinstance(future.exception, KafkaError)
    assert ask(conn).controller_id == 1


def test_a_header_that_cannot_be_encoded_fails_the_request_alone(make, broker):
    """The future of such a request once stayed pending; the option is bounded, a subclass may still set it."""
    conn = connect(make())
    before, conn.connection.pipeline._client_id = conn.connection.pipeline._client_id, "x" * 40_000
    future = conn.send(MetadataRequest(topics=[]))
    assert isinstance(future.exception, KafkaProtocolError)
    conn.connection.pipeline._client_id = before
    assert ask(conn).controller_id == 1


def test_sending_before_it_is_connected_is_refused(make, broker):
    conn = make()
    assert isinstance(conn.send(MetadataRequest(topics=[])).exception, KafkaConnectionError)
    conn.connect()
    assert isinstance(conn.send(MetadataRequest(topics=[])).exception, NodeNotReadyError)


# Time


def test_a_request_without_a_reply_times_out_and_ends_the_connection(make, broker, network):
    broker.on("Metadata", lambda *_: SILENCE)
    conn = connect(make(request_timeout_ms=5000))
    first = conn.send(MetadataRequest(topics=[]))
    network.clock.advance(1)
    second = conn.send(MetadataRequest(topics=[]))
    assert not conn.requests_timed_out()
    turns, before = conn._loop.turns, network.clock.monotonic()
    with pytest.raises(RequestTimedOutError, match=r"no response to MetadataRequest within 5\.0"):
        conn._loop.run_until(first)
    assert network.clock.monotonic() - before == pytest.approx(4)
    assert conn._loop.turns - turns <= 4
    with pytest.raises(KafkaConnectionError, match=r"was closed: no response to MetadataRequest within 5\.0 seconds$"):
        second.result()
    assert conn.disconnected()


def test_a_request_may_have_a_separate_time_limit(make, broker, network):
    broker.on("Metadata", lambda *_: SILENCE)
    conn = connect(make())
    future = conn.send(MetadataRequest(topics=[]), request_timeout_ms=100)
    before = network.clock.monotonic()
    with pytest.raises(RequestTimedOutError):
        conn._loop.run_until(future)
    assert network.clock.monotonic() - before == pytest.approx(0.1)


@pytest.mark.parametrize("step", ["ApiVersions", "SaslHandshake", "SaslAuthenticate"])
def test_silence_during_the_handshake_times_out(make, broker, network, step):
    broker.on("SaslHandshake", {"error_code": 0, "mechanisms": ["PLAIN"]})
    broker.on("SaslAuthenticate", {})
    broker.on(step, lambda *_: SILENCE)
    conn = make(request_timeout_ms=1000, reconnect_backoff_ms=60_000, reconnect_backoff_max_ms=60_000, **SASL)
    conn.connect_blocking(50)
    assert re.search(r"did not answer within 1\.0 s|no response to Sasl", str(conn.error))
    assert conn.blacked_out()


def test_a_request_that_has_no_time_left_is_not_sent_and_harms_no_other(make, broker, network):
    conn = connect(make())
    late = conn.connection.submit(MetadataRequest(topics=[]), 0.0)
    assert isinstance(late.exception, KafkaTimeoutError)
    assert ask(conn).controller_id == 1
    assert len(broker.asked("Metadata")) == 1
    assert len(broker.sessions) == 1


def test_a_request_that_waits_for_a_connection_fails_at_its_deadline(make, network):
    network.unreachable.add(("broker", 9092))
    conn = make()
    future = conn.connection.submit(MetadataRequest(topics=[]), 2.0)
    before = network.clock.monotonic()
    with pytest.raises(KafkaTimeoutError):
        conn._loop.run_until(future)
    assert network.clock.monotonic() - before == pytest.approx(2)


def test_a_request_waits_out_the_backoff(make, broker, network):
    broker.stop()
    conn = make(reconnect_backoff_ms=1000)
    conn.connect_blocking(0.01)
    assert conn.blacked_out()
    broker.start()
    future = conn.connection.submit(MetadataRequest(topics=[]))
    before = network.clock.monotonic()
    assert conn._loop.run_until(future).controller_id == 1
    assert 0.5 < network.clock.monotonic() - before < 1.5


def test_a_throttled_connection_waits_without_spinning(make, broker, network):
    answers = iter([{"throttle_time_ms": 5000}, {"controller_id": 2}])
    broker.on("Metadata", lambda *_: next(answers))
    conn = connect(make())
    ask(conn)
    assert conn.throttle_delay() == pytest.approx(5000)
    turns, before = conn._loop.turns, network.clock.monotonic()
    future = conn.connection.submit(MetadataRequest(topics=[]))
    assert conn._loop.run_until(future).controller_id == 2
    assert network.clock.monotonic() - before == pytest.approx(5)
    assert conn._loop.turns - turns <= 6


@pytest.mark.parametrize(
    ("asked_ms", "pause", "told"),
    [
        (9_999, 9.999, None),
        (30_000, 30, "throttles this client for 30 seconds, for example because of a quota"),
        (2**31 - 1, 60, "for 2147484 seconds, for example because of a quota; the client pauses for 60 seconds"),
    ],
)
def test_a_long_pause_that_a_broker_asks_for_is_cut_and_told(make, broker, network, caplog, asked_ms, pause, told):
    answers = iter([{"throttle_time_ms": asked_ms}, {}])
    broker.on("Metadata", lambda *_: next(answers))
    conn = connect(make())
    ask(conn)
    before = network.clock.monotonic()
    conn._loop.run_until(conn.connection.submit(MetadataRequest(topics=[]), 120))
    assert network.clock.monotonic() - before == pytest.approx(pause)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == (told is not None)
    assert told is None or (warnings[0].endswith(told) and str(conn) in warnings[0])


def test_brokers_before_2_0_throttle_themselves(make, broker):
    broker.ranges[1] = (0, 7)
    broker.on("Metadata", {"throttle_time_ms": 5000})
    conn = connect(make())
    ask(conn)
    assert conn.throttle_delay() == 0


# Ending


def test_the_broker_hanging_up_fails_what_was_under_way(make, broker):
    broker.on("Metadata", lambda *_: HANG_UP)
    conn = connect(make())
    future = conn.send(MetadataRequest(topics=[]))
    with pytest.raises(KafkaConnectionError) as caught:
        conn._loop.run_until(future, conn._loop.time() + 1)
    assert caught.value.outcome_unknown
    assert conn.disconnected()
    broker.on("Metadata", {"controller_id": 1})
    assert ask(connect(conn)).controller_id == 1
    assert conn.connection.failures == 0


@pytest.mark.parametrize("step", ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "Metadata"])
def test_a_reply_cut_at_any_byte_ends_in_an_error_and_the_next_attempt_works(network, step):
    broker = ScriptedBroker(network)
    broker.on("Metadata", {"controller_id": 1})
    sasl_broker(broker)
    honest = broker.handlers[step]
    for size in range(0, 60, 3):
        cut = {"left": 1}

        def cutting(request, session, size=size, cut=cut):
            answer = honest(request, session)
            if cut["left"] == 0:
                return answer
            cut["left"] -= 1
            whole = type(request)._unbound.RESPONSE_TYPE(**answer) if step != "ApiVersions" else None
            session.sock.send(
                (whole.frame(2, type(request).API_VERSION) if whole else b"\0\0\1\0\0\0\0\1")[:size] or b"\0"
            )
            return HANG_UP

        broker.on(step, cutting)
        conn = BrokerConnection("broker", 9092, environment=network.environment(), request_timeout_ms=5000, **SASL)
        future = conn.connection.submit(MetadataRequest(topics=[]))
        with contextlib.suppress(KafkaError):
            conn._loop.run_until(future, conn._loop.time() + 60)
        assert conn.connect_blocking(60)
        assert ask(conn).controller_id == 1
        conn.close()
        conn._loop.close()
    assert not network.open_sockets


def test_a_reset_is_an_error_of_the_connection(make, broker):
    conn = connect(make())
    broker.sessions[-1].sock.reset()
    conn.recv()
    assert isinstance(conn.error, KafkaConnectionError)
    assert "reset" in str(conn.error)


@pytest.mark.parametrize("turns", range(12))
def test_close_in_every_state_leaves_nothing(make, broker, network, turns):
    broker.on("SaslHandshake", {"error_code": 0, "mechanisms": ["PLAIN"]})
    broker.on("SaslAuthenticate", {})
    conn = make(**SASL)
    future = conn.connection.submit(MetadataRequest(topics=[]))
    for _ in range(turns):
        conn._loop.turn(0)
    conn.close()
    assert future.is_done
    assert conn.disconnected()
    for _ in range(5):
        conn._loop.turn(0)
    assert not network.open_sockets
    assert not conn._loop._tasks
    assert conn.connection.pipeline.next_deadline() is None
    conn.close()
    assert ask(connect(conn)) is not None


def test_close_with_an_error_fails_with_that(make, broker):
    broker.on("Metadata", lambda *_: SILENCE)
    conn = connect(make())
    future = conn.send(MetadataRequest(topics=[]))
    mine = KafkaConnectionError("mine")
    conn.close(mine)
    assert future.exception is mine


def test_a_forgotten_connection_frees_its_socket(network, broker):
    conn = BrokerConnection("broker", 9092, environment=network.environment())
    connect(conn)
    del conn
    gc.collect()
    assert not network.open_sockets


# SASL

SASL = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "ann",
    "sasl_plain_password": "pw",
}


def sasl_broker(broker, lifetime=0):
    broker.on("SaslHandshake", {"error_code": 0, "mechanisms": ["PLAIN"]})
    broker.on("SaslAuthenticate", {"session_lifetime_ms": lifetime})


def test_it_authenticates_before_it_takes_requests(make, broker):
    sasl_broker(broker)
    conn = connect(make(**SASL))
    ask(conn)
    assert [name for name, _, _ in broker.requests] == ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "Metadata"]
    assert broker.asked("SaslAuthenticate")[0].auth_bytes == b"\0ann\0pw"


def test_wrong_credentials_are_raised_at_once(make, broker, network):
    sasl_broker(broker)
    broker.on("SaslAuthenticate", {"error_code": 58, "error_message": "Authentication failed: no such user"})
    before = network.clock.monotonic()
    with pytest.raises(SaslAuthenticationFailedError, match=r"broker 0 \(broker:9092\).*no such user"):
        make(**SASL).connect_blocking(60)
    assert network.clock.monotonic() - before < 1


@pytest.mark.parametrize("step", ["SaslHandshake", "SaslAuthenticate"])
def test_text_of_a_broker_cannot_forge_log_lines(make, network, step, caplog):
    broker = ScriptedBroker(network, "b\nforged", 9092)
    forged = "no\n2026-01-01 CRITICAL all is lost \x1b[2J"
    broker.on("SaslHandshake", {"error_code": 33 if step == "SaslHandshake" else 0, "mechanisms": [forged]})
    broker.on("SaslAuthenticate", {"error_code": 58, "error_message": forged})
    conn = make("b\nforged", **SASL)
    with pytest.raises(KafkaError) as caught:
        conn.connect_blocking(5)
    assert str(caught.value).isprintable()
    assert "2026-01-01 CRITICAL all is lost" in str(caught.value)
    lines = [record.getMessage() for record in caplog.records]
    assert lines
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("host", "mechanism", "told"),
    [("broker", "PLAIN", 1), ("localhost", "PLAIN", 0), ("127.0.0.1", "PLAIN", 0), ("broker", "SCRAM-SHA-256", 0)],
)
def test_a_password_that_goes_over_the_network_in_clear_text_is_logged_once(
    make, network, caplog, host, mechanism, told
):
    broker = ScriptedBroker(network, host, 9092)
    sasl_broker(broker)
    broker.on("SaslHandshake", {"error_code": 0, "mechanisms": [mechanism]})
    conn = make(host, **{**SASL, "sasl_mechanism": mechanism})
    for _ in range(2):
        with contextlib.suppress(KafkaError):
            conn.connect_blocking(5)
        conn.close()
        network.clock.advance(60)
    texts = [record.getMessage() for record in caplog.records if "clear text" in record.getMessage()]
    assert len(texts) == told
    assert all("goes to broker 0 (broker:9092)" in text and "s3cret" not in text for text in texts)


def test_a_mechanism_that_the_broker_lacks_names_those_it_has(make, broker):
    broker.on("SaslHandshake", {"error_code": 33, "mechanisms": ["GSSAPI", "SCRAM-SHA-512"]})
    with pytest.raises(UnsupportedSaslMechanismError, match="SCRAM-SHA-512"):
        make(**SASL).connect_blocking(60)


def test_a_listener_without_sasl_says_so(make, broker):
    broker.on("SaslHandshake", {"error_code": 34, "mechanisms": []})
    with pytest.raises(IllegalSaslStateError, match="PLAINTEXT or SSL"):
        make(**SASL).connect_blocking(60)


def test_tokens_are_bare_with_brokers_before_1_0(make, broker):
    del broker.ranges[36]
    broker.ranges[17] = (0, 0)
    tokens = []

    def handshake(_request, session):
        session.raw = bare
        return {"error_code": 0, "mechanisms": ["PLAIN"]}

    refuses = False

    def bare(token, session):
        tokens.append(token)
        session.raw = None
        return HANG_UP if refuses else b""

    broker.on("SaslHandshake", handshake)
    ask(connect(make(**SASL)))
    assert tokens == [b"\0ann\0pw"]
    refuses = True
    with pytest.raises(SaslAuthenticationFailedError, match=r"before 1\.0"):
        make(**SASL).connect_blocking(60)


def test_a_client_without_sasl_at_a_listener_with_it_gets_an_error_that_says_so(make, broker, network):
    broker.on("Metadata", lambda *_: HANG_UP)
    broker.on("SaslHandshake", {"error_code": 33, "mechanisms": ["PLAIN", "SCRAM-SHA-512"]})
    conn = connect(make())
    before = network.clock.monotonic()
    with pytest.raises(IllegalSaslStateError, match=r"SASL_PLAINTEXT.*PLAIN, SCRAM-SHA-512"):
        ask(conn)
    assert network.clock.monotonic() - before < 1
    assert conn.connection.fatal


@pytest.mark.parametrize("code", [34, 0])
def test_a_broker_that_hangs_up_for_another_reason_is_not_blamed_on_sasl(make, broker, code):
    broker.on("Metadata", lambda *_: HANG_UP)
    broker.on("SaslHandshake", {"error_code": code, "mechanisms": []})
    conn = connect(make())
    with pytest.raises(KafkaConnectionError):
        ask(conn)
    assert conn.connection.fatal is None


def test_closing_while_the_reason_is_looked_for(make, broker):
    broker.on("Metadata", lambda *_: HANG_UP)
    broker.on("SaslHandshake", lambda *_: SILENCE)
    conn = connect(make())
    future = conn.send(MetadataRequest(topics=[]))
    for _ in range(4):
        conn._loop.turn(0)
    conn.close()
    assert future.is_done
    for _ in range(4):
        conn._loop.turn(0)
    assert conn.connection.failures == 0
    assert not conn._loop._tasks


def test_the_session_is_renewed_between_requests(make, broker, network):
    sasl_broker(broker, lifetime=10_000)
    conn = connect(make(**SASL))
    for _ in range(40):
        ask(conn)
        network.clock.advance(1)
    names = [name for name, _, _ in broker.requests]
    assert len(broker.sessions) == 1
    assert 4 <= names.count("SaslAuthenticate") <= 6


def test_requests_wait_while_the_session_is_renewed(make, broker, network):
    sasl_broker(broker, lifetime=10_000)
    conn = connect(make(**SASL))
    network.clock.advance(9.9)
    broker.on("SaslAuthenticate", lambda *_: SILENCE)
    futures = [conn.connection.submit(MetadataRequest(topics=[])) for _ in range(3)]
    for _ in range(10):
        conn._loop.turn(0)
    assert conn.state is ConnectionStates.REAUTHENTICATING
    assert conn.connected()
    assert not broker.asked("Metadata")
    session = broker.sessions[-1]
    session.reply(*session.unanswered[-1], {"session_lifetime_ms": 0})
    for future in futures:
        assert conn._loop.run_until(future, conn._loop.time() + 1).controller_id == 1


def test_a_connection_that_renews_its_session_is_used_and_not_set_up_again(make, broker, network):
    metrics = Metrics()
    metrics.sensor("conn-metrics.connections-created").add(metrics.metric_name("created", "test"), Count())
    created = metrics.metrics[metrics.metric_name("created", "test")]
    sasl_broker(broker, lifetime=10_000)
    conn = connect(make(metrics=metrics, metric_group_prefix="conn", **SASL))
    network.clock.advance(9.9)
    broker.on("SaslAuthenticate", lambda *_: SILENCE)
    first = conn.connection.submit(MetadataRequest(topics=[]))
    states = []
    conn.connection.on_state = lambda connection: states.append(connection.state)
    for _ in range(10):
        conn._loop.turn(0)
        assert conn.connection.ready
        assert conn.connection.open().succeeded()
    assert conn.connect() is ConnectionStates.REAUTHENTICATING
    assert conn.connect_blocking(0)
    second = conn.send(MetadataRequest(topics=[]))
    session = broker.sessions[-1]
    session.reply(*session.unanswered[-1], {"session_lifetime_ms": 0})
    for future in (first, second):
        assert conn._loop.run_until(future, conn._loop.time() + 1).controller_id == 1
    assert states == [ConnectionStates.CONNECTED]
    assert len(broker.sessions) == 1
    assert conn.connection.failures == 0
    assert created.value() == 1


def test_a_request_in_flight_is_answered_before_the_session_is_renewed_however_long_that_takes(make, broker, network):
    """A JoinGroup takes as long as the group does; a broker answers one request after the other."""
    sasl_broker(broker, lifetime=10_000)
    conn = connect(make(request_timeout_ms=3000, **SASL))
    broker.on("Metadata", lambda *_: SILENCE)
    slow = conn.connection.submit(MetadataRequest(topics=[]), 60)
    rest(conn, 9.9)
    behind = conn.connection.submit(MetadataRequest(topics=[]))
    rest(conn, 20)
    assert conn.state is ConnectionStates.REAUTHENTICATING
    assert isinstance(behind.exception, KafkaTimeoutError)
    assert "waiting for another authentication" in str(behind.exception)
    assert len(broker.asked("SaslHandshake")) == 1
    session = broker.sessions[-1]
    session.reply(*session.unanswered[-1], {"controller_id": 7})
    assert conn._loop.run_until(slow, conn._loop.time() + 1).controller_id == 7
    broker.on("Metadata", {"controller_id": 1, "brokers": [], "topics": []})
    assert ask(conn).controller_id == 1
    assert len(broker.asked("SaslHandshake")) == 2
    assert len(broker.sessions) == 1


@pytest.mark.parametrize("acks", [0, 1])
def test_bytes_that_the_socket_has_not_taken_go_out_before_the_session_is_renewed(make, broker, network, acks):
    sasl_broker(broker, lifetime=10_000)
    broker.on("Produce", {"responses": []})
    conn = connect(make(**SASL))
    network.sockets[0].send_limit = 3
    future = conn.send(ProduceRequest(acks=acks, timeout_ms=1, topic_data=[]))
    network.clock.advance(9.9)
    assert ask(conn).controller_id == 1
    assert future.succeeded()
    names = [name for name, _, _ in broker.requests[3:]]
    assert names == ["Produce", "SaslHandshake", "SaslAuthenticate", "Metadata"]


def test_a_connection_that_ends_while_its_renewal_waits_is_set_up_again(make, broker, network):
    sasl_broker(broker, lifetime=10_000)
    conn = connect(make(**SASL))
    broker.on("Metadata", lambda *_: SILENCE)
    futures = [conn.connection.submit(MetadataRequest(topics=[]))]
    conn.recv()
    network.clock.advance(9.9)
    futures.append(conn.connection.submit(MetadataRequest(topics=[])))
    conn.recv()
    broker.sessions[-1].sock.close()
    rest(conn, 1)
    assert [future.exception.outcome_unknown for future in futures] == [True, False]
    broker.on("Metadata", {"controller_id": 1, "brokers": [], "topics": []})
    assert ask(connect(conn)).controller_id == 1
    assert not [task for task in conn._loop._tasks if "authenticate" in task.name]


def test_a_session_is_not_renewed_within_a_second_which_brokers_refuse(make, broker, network):
    sasl_broker(broker, lifetime=400)
    handshakes = []
    broker.on("SaslHandshake", lambda *_: handshakes.append(network.clock.monotonic()) or {"mechanisms": ["PLAIN"]})
    conn = connect(make(**SASL))
    for _ in range(40):
        ask(conn)
        network.clock.advance(0.1)
    assert len(broker.sessions) == 1
    assert len(handshakes) >= 3
    assert all(later - sooner >= 1 for sooner, later in pairwise(handshakes))


def test_closing_while_the_session_is_renewed_leaves_nothing(make, broker, network):
    sasl_broker(broker, lifetime=10_000)
    conn = connect(make(**SASL))
    network.clock.advance(9.9)
    broker.on("SaslHandshake", lambda *_: SILENCE)
    future = conn.connection.submit(MetadataRequest(topics=[]))
    assert conn.state is ConnectionStates.REAUTHENTICATING
    conn.close()
    assert future.is_done
    for _ in range(3):
        conn._loop.turn(0)
    assert not conn._loop._tasks
    sasl_broker(broker)
    assert ask(connect(conn)).controller_id == 1


def test_an_idle_session_is_renewed_when_it_is_needed_and_not_before(make, broker, network):
    sasl_broker(broker, lifetime=10_000)
    conn = connect(make(**SASL))
    turns = conn._loop.turns
    network.clock.advance(3600)
    conn.recv()
    assert conn._loop.turns - turns <= 2
    assert len(broker.asked("SaslAuthenticate")) == 1
    ask(conn)
    assert len(broker.asked("SaslAuthenticate")) == 2


def test_a_renewal_that_fails_ends_the_connection(make, broker, network):
    sasl_broker(broker, lifetime=10_000)
    conn = connect(make(**SASL))
    network.clock.advance(9.9)
    broker.on("SaslAuthenticate", {"error_code": 58, "error_message": "expired"})
    future = conn.connection.submit(MetadataRequest(topics=[]))
    with pytest.raises(SaslAuthenticationFailedError, match="expired"):
        conn._loop.run_until(future, conn._loop.time() + 1)
    assert conn.disconnected()
    assert conn.connection.failures == 1


# Through proxies


class Socks:
    """A SOCKS5 proxy in memory that leads to the network's listeners."""

    def __init__(self, network, reply=0):
        self.network, self.reply, self.asked = network, reply, []
        network.listen("proxy", 1080, self.connected)

    def connected(self, sock):
        sock.on_data = self.greeting

    def greeting(self, sock):
        sock.take()
        sock.on_data = self.request
        sock.send(b"\x05\x00")

    def request(self, sock):
        data = bytes(sock.take())
        host = data[5:-2].decode() if data[3] == 3 else ".".join(map(str, data[4:-2]))
        self.asked.append(host)
        if self.reply:
            sock.send(bytes([5, self.reply, 0, 1]) + bytes(6))
            return
        through = self.network.socket()
        through.accepted = True  # not the client's
        assert through.connect_ex((host, int.from_bytes(data[-2:], "big"))) == 0
        sock.on_data = lambda end: through.send(end.take())
        through.on_data = lambda end: sock.send(end.take())
        sock.send(b"\x05\x00\x00\x01" + bytes(6))


def test_a_socks_proxy_resolves_the_name_or_not(make, broker, network):
    proxy = Socks(network)
    network.names["broker"] = ["10.0.0.7"]
    network.listeners["10.0.0.7", 9092] = network.listeners["broker", 9092]
    ask(connect(make(proxy_url="socks5h://proxy:1080")))
    ask(connect(make(socks5_proxy="socks5://proxy:1080")))
    assert proxy.asked == ["broker", "10.0.0.7"]


@pytest.mark.parametrize("accepted", [leave, lambda end: None], ids=["hangs up", "says nothing"])
def test_the_next_address_of_a_proxy_and_of_what_is_behind_it_is_tried(make, broker, network, accepted):
    network.names["several"] = ["10.0.0.1", "proxy"]
    network.listen("10.0.0.1", 1080, accepted)
    proxy = Socks(network)
    network.names["broker"] = ["10.0.0.6", "10.0.0.7"]
    network.listen("10.0.0.6", 9092, accepted)
    network.listeners["10.0.0.7", 9092] = network.listeners["broker", 9092]
    ask(connect(make(proxy_url="socks5://several:1080"), 200))
    assert proxy.asked[-1] == "10.0.0.7"


def test_an_address_that_does_not_answer_the_tls_handshake_is_left_for_the_next(make, network):
    network.names["broker"] = ["10.0.0.1", "10.0.0.2"]
    tried = []
    for host in network.names["broker"]:
        network.listen(host, 9092, lambda end, host=host: tried.append(host))
    conn = make(security_protocol="SSL", socket_connection_setup_timeout_ms=1000)
    conn.connect_blocking(30)
    assert tried[:4] == network.names["broker"] * 2
    assert "waited for the TLS handshake" in str(conn.error)


def test_a_proxy_that_cannot_reach_the_broker_says_why(make, broker, network):
    Socks(network, reply=5)
    conn = make(proxy_url="socks5h://proxy:1080")
    conn.connect_blocking(0.01)
    assert "connection refused" in str(conn.error)


# TLS


def test_a_plain_client_at_a_tls_port_gets_an_error_that_says_so(make, network):
    def hang_up_on_kafka(end):
        data = end.take()
        if data[:1] == b"\x16":
            end.send(b"\x15\x03\x03\x00\x02\x02\x28")
        else:
            end.close()

    network.listen("broker", 9092, lambda sock: setattr(sock, "on_data", hang_up_on_kafka))
    with pytest.raises(SslAuthenticationError, match="set security_protocol to SSL"):
        make().connect_blocking(60)


def test_a_tls_client_at_a_plain_port_gets_an_error_that_says_so(make, broker):
    with pytest.raises(SslAuthenticationError, match="PLAINTEXT or SASL_PLAINTEXT"):
        make(security_protocol="SSL").connect_blocking(60)


def test_a_certificate_file_that_does_not_exist_is_raised_at_once(make, broker):
    with pytest.raises(KafkaConfigurationError, match="ssl_cafile"):
        make(security_protocol="SSL", ssl_cafile="/nowhere/ca.pem").connect_blocking(60)


# Metrics


def test_metrics_count_bytes_and_requests(make, broker):
    from kafka.metrics import Metrics

    metrics = Metrics()
    conn = connect(make(metrics=metrics, metric_group_prefix="x"))
    ask(conn)
    values = {(name.group, name.name): metric.value() for name, metric in metrics.metrics.items()}
    assert values["x-metrics", "request-rate"] > 0
    assert values["x-node-metrics.node-0", "incoming-byte-rate"] > 0
    assert values["x-metrics", "request-latency-avg"] >= 0
    metrics.close()


def test_requests_of_one_pass_leave_at_its_end_in_one_system_call(make, broker):
    conn = make()
    assert conn.connect_blocking(10)
    writes = []
    loop, stream = conn._loop, conn.connection.sock
    sendmsg = stream.sendmsg
    stream.sendmsg = lambda pieces: writes.append(conn.connection.pipeline.in_flight) or sendmsg(pieces)
    loop.call_soon(conn.connection.submit, MetadataRequest(topics=[]))
    loop.call_soon(conn.connection.submit, MetadataRequest(topics=[]))
    loop.turn(0)
    assert writes == [2]


# The log of failures


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_a_refused_connection_is_logged_with_its_address_once_and_the_time_of_the_retry(make, network, caplog):
    conn = make("10.0.0.1", reconnect_backoff_ms=50)
    assert not conn.connect_blocking(0.01)
    (line,) = warnings_of(caplog)
    assert line.startswith("broker 0 (10.0.0.1:9092): Connection refused; retry in ")
    assert line.endswith(" ms")
    assert line.count("10.0.0.1:9092") == 1


def test_a_name_is_logged_with_the_addresses_that_refused(make, network, caplog):
    network.names["broker"] = ["10.0.0.1", "10.0.0.2"]
    assert not make(reconnect_backoff_ms=50).connect_blocking(0.01)
    (line,) = warnings_of(caplog)
    assert "10.0.0.1:9092: Connection refused; 10.0.0.2:9092: Connection refused; retry in " in line


def test_repeated_failures_are_counted_in_the_log(make, caplog):
    assert not make("10.0.0.1").connect_blocking(1)
    assert any("; failed 2 times in a row; retry in " in line for line in warnings_of(caplog))


def test_a_wrong_password_is_logged_without_a_retry(make, broker, caplog):
    broker.on("SaslHandshake", {"mechanisms": ["PLAIN"]})
    broker.on("SaslAuthenticate", {"error_code": 58, "error_message": "no such user"})
    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    conn = make(sasl_plain_username="ann", sasl_plain_password="pw", **options)
    with pytest.raises(SaslAuthenticationFailedError):
        conn.connect_blocking(1)
    line = warnings_of(caplog)[-1]
    assert line.endswith("no such user (as ann via SASL PLAIN)")
    assert "retry" not in line


def test_closing_a_connection_leaves_no_task_and_no_timer(make, broker):
    """Whatever the connection was doing: opening, waiting for a response, waiting to connect again."""
    broker.on("Metadata", lambda *_: SILENCE)
    conn = connect(make())
    conn.connection.submit(MetadataRequest(topics=[]))
    rest(conn, 0.1)
    broker.stop()
    rest(conn, 0.01)
    conn.connection.submit(MetadataRequest(topics=[]))
    conn.close()
    rest(conn, 0.01)
    assert not conn._loop._tasks
    assert not len(conn._loop.timers)
