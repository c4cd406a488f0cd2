"""An object of each class that takes options, put to the plainest use that it has."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kafka import BrokerConnection, KafkaAdminClient, KafkaClient, KafkaConsumer, KafkaProducer, KafkaShareConsumer
from kafka._runtime.network_thread import complete
from kafka.broker import Broker
from kafka.broker.faults import SeenRequest
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.base import BaseCoordinator
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError
from kafka.protocol.metadata import MetadataRequest

TOPIC = "t"
PATIENCE = 60.0  # for what comes at once, if the machine is not busy


class Used(ABC):
    """An object in use."""

    thing: Any

    @abstractmethod
    def ask(self) -> None:
        """Have it exchange a request and a reply with a broker; raises what goes wrong."""

    def turn(self) -> None:
        """Let it get on for a moment, where it has no thread of its own."""
        time.sleep(0.005)

    def until(self, condition: Callable[[], Any], patience: float = PATIENCE) -> None:
        """Let it get on until something holds."""
        deadline = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < deadline, f"did not come about: {condition}"
            self.turn()

    def get_on(self, seconds: float) -> None:
        """Let it get on for a while in which nothing is expected to come about."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.turn()

    def close(self) -> None:
        self.thing.close()


class UsedConnection(Used):
    def __init__(self, servers: str, **options: Any) -> None:
        host, _, port = servers.rpartition(":")
        self.thing = BrokerConnection(host, int(port), **options)

    def ask(self) -> None:
        conn = self.thing
        if not conn.connected() and not conn.connect_blocking(PATIENCE if not conn.blacked_out() else 1.0):
            raise conn.error or KafkaConnectionError("not connected")
        future = conn.send(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)]))
        self.until(lambda: future.is_done)
        if future.failed():
            raise future.exception

    def turn(self) -> None:
        self.thing.recv()
        time.sleep(0.002)

    def close(self) -> None:
        self.thing.close()
        self.thing.__del__()  # its loop, which ends with the last reference


class UsedClient(Used):
    def __init__(self, servers: str, **options: Any) -> None:
        self.thing = KafkaClient(bootstrap_servers=servers, **options)

    def ask(self) -> None:
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)])
        future = self.thing.submit(self.thing.least_loaded_node(), request)
        self.thing.poll(timeout_ms=PATIENCE * 1000, future=future)
        if not future.is_done:
            raise KafkaTimeoutError("no reply")
        if future.failed():
            raise future.exception

    def turn(self) -> None:
        self.thing.poll(timeout_ms=10)


class UsedProducer(Used):
    def __init__(self, servers: str, **options: Any) -> None:
        self.thing = KafkaProducer(bootstrap_servers=servers, **options)

    def ask(self) -> None:
        self.thing.send(TOPIC, b"value").get(timeout=PATIENCE)

    def close(self) -> None:
        self.thing.close(timeout=0.2)


class UsedShareConsumer(Used):
    def __init__(self, servers: str, **options: Any) -> None:
        self.thing = KafkaShareConsumer(TOPIC, bootstrap_servers=servers, **{"group_id": "shared", **options})

    def ask(self) -> None:
        core = self.thing._core
        deadline = core.deadline(PATIENCE)
        complete(core.run(core.client.refresh(deadline), deadline, "asking for metadata"))

    def turn(self) -> None:
        self.thing.poll(5)

    def close(self) -> None:
        self.thing.close(timeout_ms=200)


class UsedConsumer(Used):
    def __init__(self, servers: str, **options: Any) -> None:
        topics = options.pop("topics", ())
        self.thing = KafkaConsumer(*topics, bootstrap_servers=servers, **options)

    def ask(self) -> None:
        self.thing.topics()

    def turn(self) -> None:
        self.thing.poll(timeout_ms=10)

    def close(self) -> None:
        self.thing.close(timeout_ms=200)


class UsedAdmin(Used):
    def __init__(self, servers: str, **options: Any) -> None:
        self.thing = KafkaAdminClient(bootstrap_servers=servers, **options)

    def ask(self) -> None:
        self.thing.describe_topics()


class Workers(BaseCoordinator):
    """The plainest group."""

    def protocol_type(self) -> str:
        return "workers"

    def group_protocols(self) -> list[tuple[str, Any]]:
        return [("share", b"strong")]

    def _perform_assignment(self, leader_id: str, protocol: str, members: Any) -> dict[str, Any]:
        return {member.member_id: b"all" for member in members}

    def _on_join_complete(self, generation: int, member_id: str, protocol: str, assignment: bytes) -> None:
        """Nothing is to be done."""


class UsedCoordinator(Used):
    """A coordinator by hand, on a client of its own."""

    def __init__(self, servers: str, **options: Any) -> None:
        self.client = KafkaClient(bootstrap_servers=servers, retry_backoff_ms=5)
        self.thing = self._coordinator(options)

    def _coordinator(self, options: dict[str, Any]) -> BaseCoordinator:
        return Workers(self.client, **options)

    def ask(self) -> None:
        if not self.thing.ensure_active_group(PATIENCE * 1000):
            raise KafkaTimeoutError("not a member")

    def turn(self) -> None:
        self.client.poll(timeout_ms=10)

    def close(self) -> None:
        self.thing.close(timeout_ms=200)
        self.client.close()


class UsedConsumerCoordinator(UsedCoordinator):
    def _coordinator(self, options: dict[str, Any]) -> BaseCoordinator:
        self.subscription = SubscriptionState()
        if "pattern" in options:
            self.subscription.subscribe(pattern=options.pop("pattern"))
        else:
            self.subscription.subscribe([TOPIC])
        self.client.set_topics([TOPIC])
        return ConsumerCoordinator(self.client, self.subscription, **options)

    def turn(self) -> None:
        super().turn()
        complete(self.thing.serve())


_USES: dict[str, Callable[..., Used]] = {
    "connection": UsedConnection,
    "client": UsedClient,
    "producer": UsedProducer,
    "consumer": UsedConsumer,
    "share": UsedShareConsumer,
    "admin": UsedAdmin,
    "coordinator": UsedCoordinator,
    "consumer_coordinator": UsedConsumerCoordinator,
}


class Subject:
    """What a proof works with: a class, and a world in which to use it."""

    def __init__(self, kind: str, option: str, stack: ExitStack, request: pytest.FixtureRequest) -> None:
        self.kind, self.option = kind, option
        self._stack, self._request = stack, request

    @property
    def monkeypatch(self) -> pytest.MonkeyPatch:
        found: pytest.MonkeyPatch = self._request.getfixturevalue("monkeypatch")
        return found

    @property
    def tmp_path(self) -> Path:
        found: Path = self._request.getfixturevalue("tmp_path")
        return found

    @property
    def caplog(self) -> pytest.LogCaptureFixture:
        found: pytest.LogCaptureFixture = self._request.getfixturevalue("caplog")
        return found

    def enter(self, context: Any) -> Any:
        """Enter a context that is left when the proof is over."""
        return self._stack.enter_context(context)

    def broker(self, **options: Any) -> Broker:
        """A broker with the topic; gone when the proof is over."""
        broker: Broker = self.enter(Broker(**{"topics": {TOPIC: 1}, **options}))
        return broker

    def make(self, servers: str | Broker, **options: Any) -> Any:
        """An object of the class, closed when the proof is over."""
        used = _USES[self.kind](servers if isinstance(servers, str) else servers.bootstrap_servers, **options)
        self._stack.callback(used.close)
        return used

    def use(self, servers: str | Broker, **options: Any) -> Any:
        """An object of the class that has exchanged a request and a reply with a broker."""
        used = self.make(servers, **options)
        used.ask()
        return used

    def attempt(self, servers: str | Broker, **options: Any) -> KafkaError | None:
        """Use an object of the class and close it; the error that it ended in."""
        used = None
        try:
            used = _USES[self.kind](servers if isinstance(servers, str) else servers.bootstrap_servers, **options)
            used.ask()
        except KafkaError as error:
            return error
        finally:
            if used is not None:
                used.close()
        return None


def seen(broker: Broker, name: str) -> list[SeenRequest]:
    """The requests of one API that have come."""
    return [request for request in broker.requests if request.name == name]


def gaps(broker: Broker, name: str) -> list[float]:
    """The seconds between the requests of one API."""
    times = [request.time for request in seen(broker, name)]
    return [later - earlier for earlier, later in pairwise(times)]
