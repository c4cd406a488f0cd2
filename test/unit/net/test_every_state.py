"""A connection that gets stuck, is closed, or breaks, in every state that there is: one table, three questions each."""

from __future__ import annotations

import socket

import pytest

from kafka.conn import BrokerConnection, ConnectionStates
from kafka.errors import KafkaError
from kafka.future import Future
from kafka.protocol.metadata import MetadataRequest
from kafka.testing import SILENCE, MemoryNetwork, ScriptedBroker

State = ConnectionStates
SASL = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "ann",
    "sasl_plain_password": "pw",
}
# Longer than any limit of the connection's own, so that it is one of those that ends it.
PATIENT = 1000.0
# The limits: 10 seconds for a stream to be made (within 20 %), 3 for a reply, 30 to find out what a mute peer may be.
CONFIG = {"request_timeout_ms": 3000, "reconnect_backoff_ms": 50_000, "reconnect_backoff_max_ms": 50_000}
LIMITS = {
    State.RESOLVING: 12,
    State.CONNECTING: 12,
    State.TUNNELLING: 12,
    State.HANDSHAKE: 12,
    State.CHECKING_API_VERSIONS: 40,
    State.AUTHENTICATING: 3,
    State.CONNECTED: 3,
    State.REAUTHENTICATING: 3,
}


def test_the_table_has_every_state():
    assert {*LIMITS, State.DISCONNECTED} == set(State)


class _NeverDone:
    """Workers that are stuck, as lookups are behind a dead resolver."""

    def submit(self, function, *args):
        return Future()


class Stuck:
    """A connection that is on its way to a state, and will not leave it by itself."""

    def __init__(self, state):
        self.state = state
        self.network = network = MemoryNetwork()
        self.broker = ScriptedBroker(network)
        environment = network.environment()
        config = dict(CONFIG)
        self.prepare = lambda: None
        if state is State.RESOLVING:
            environment.lookup_workers = _NeverDone()
        elif state is State.CONNECTING:
            network.unreachable.add(("broker", 9092))
        elif state is State.TUNNELLING:
            network.listen("proxy", 1080)
            config["proxy_url"] = "socks5h://proxy:1080"
        elif state is State.HANDSHAKE:
            network.listen("broker", 9092)
            config["security_protocol"] = "SSL"
        elif state is State.CHECKING_API_VERSIONS:
            network.listen("broker", 9092)
        elif state is State.CONNECTED:
            self.broker.on("Metadata", lambda *_: SILENCE)
        else:
            self._prepare_sasl(config, renewed=state is State.REAUTHENTICATING)
        self.conn = BrokerConnection("broker", 9092, socket.AF_UNSPEC, environment=environment, **config)
        self.loop = self.conn._loop

    def _prepare_sasl(self, config, *, renewed):
        config.update(SASL)
        mute = lambda *_: SILENCE  # noqa: E731 - as others are given
        self.broker.on("SaslHandshake", {"error_code": 0, "mechanisms": ["PLAIN"]})
        self.broker.on("SaslAuthenticate", {"session_lifetime_ms": 10_000} if renewed else mute)
        if renewed:

            def prepare():
                assert self.conn.connect_blocking(10)
                self.broker.on("SaslAuthenticate", mute)
                self.network.clock.advance(9.9)

            self.prepare = prepare

    def reach(self):
        """Submit a request, and go on until the state is reached where it gets stuck."""
        self.prepare()
        timeout = 3.0 if self.state is State.CONNECTED else PATIENT
        future = self.conn.connection.submit(MetadataRequest(topics=[]), timeout)
        for _ in range(50):
            if self.conn.state is self.state and (self.state is not State.CONNECTED or self.conn.in_flight_requests):
                break
            self.loop.turn(0)
        assert self.conn.state is self.state
        for _ in range(3):
            self.loop.turn(0)
        return future

    def finish(self):
        self.conn.close()
        self.loop.close()
        assert not self.network.open_sockets


@pytest.fixture(params=list(LIMITS), ids=lambda state: state.name)
def stuck(request):
    stuck = Stuck(request.param)
    yield stuck
    stuck.finish()


def test_it_gives_up_after_the_time_for_that_state_and_does_not_spin(stuck):
    future = stuck.reach()
    before, turns = stuck.network.clock.monotonic(), stuck.loop.turns
    with pytest.raises(KafkaError) as caught:
        stuck.loop.run_until(future, before + PATIENT / 2)
    assert caught.value.retriable
    assert stuck.network.clock.monotonic() - before <= LIMITS[stuck.state]
    assert stuck.conn.disconnected()
    # A turn or two for each deadline that there is on the way; finding out about a mute peer takes several connections.
    assert stuck.loop.turns - turns <= (80 if stuck.state is State.CHECKING_API_VERSIONS else 12)


def test_it_can_be_closed(stuck):
    future = stuck.reach()
    stuck.conn.close()
    assert stuck.conn.disconnected()
    assert isinstance(future.exception, KafkaError)
    for _ in range(4):
        stuck.loop.turn(0)
    assert not stuck.loop._tasks
    assert not stuck.network.open_sockets


def test_the_loop_can_be_closed(stuck):
    future = stuck.reach()
    stuck.conn.close()
    stuck.loop.close(0)
    assert future.is_done


@pytest.mark.parametrize("how", ["end", "reset"])
@pytest.mark.parametrize("stuck", list(LIMITS)[2:], indirect=True, ids=lambda state: state.name)
def test_a_connection_that_breaks_is_noticed_at_once(stuck, how):
    future = stuck.reach()
    before = stuck.network.clock.monotonic()
    for sock in stuck.network.sockets:
        if sock.accepted:
            (sock.reset if how == "reset" else sock.close)()
    stuck.network.listeners.clear()
    with pytest.raises(KafkaError):
        stuck.loop.run_until(future, before + PATIENT / 2)
    assert stuck.network.clock.monotonic() - before <= 4
    assert stuck.conn.disconnected()
