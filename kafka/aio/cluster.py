"""`Cluster`: a connection to each broker, the partitions of each topic and their leaders, kept in step by `heal()`.

A coroutine client in the style of the Tornado era, for programs that send requests themselves and want to see the
connections. Connections are the library's own, so every security protocol works. `ClusterMetadata` is here, too, where
programs for aiokafka import it from.
"""

# ruff: noqa: SLF001 - a cluster and its connections are one thing in two classes

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from kafka._arguments import check_request
from kafka._runtime.asyncio_driver import as_asyncio
from kafka._runtime.tasks import TaskGroup
from kafka._runtime.timers import Backoff
from kafka.aio.arguments import checked_config
from kafka.aio.lifecycle import Lifecycle, Phase
from kafka.cluster import ClusterMetadata
from kafka.config import given_options, parse_servers
from kafka.errors import (
    ClientClosedError,
    Code,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    for_code,
)
from kafka.net.connection import Connection as CoreConnection
from kafka.net.settings import ConnectionContext, ConnectionSettings
from kafka.net.states import ConnectionStates

if TYPE_CHECKING:
    from kafka._runtime.loop import Loop
    from kafka.config import Config

__all__ = ["BrokerEntry", "Cluster", "ClusterMetadata", "Connection", "MetadataEntries", "PartitionEntry", "TopicEntry"]

log = logging.getLogger(__name__)

T = TypeVar("T")

# How long heal() may take unless the caller says otherwise, in milliseconds.
_HEAL_TIMEOUT_MS: Final = 60_000.0
# The first version of Metadata in which naming a topic need not create it.
_NO_CREATION_SINCE: Final = 4


class BrokerEntry(NamedTuple):
    """A broker in a metadata response."""

    broker_id: int
    host: str
    port: int


class PartitionEntry(NamedTuple):
    """A partition in a metadata response."""

    error_code: int
    partition_id: int
    leader: int
    replicas: Sequence[int] = ()
    isrs: Sequence[int] = ()


class TopicEntry(NamedTuple):
    """A topic in a metadata response."""

    error_code: int
    name: str
    partitions: Sequence[PartitionEntry] = ()


class MetadataEntries(NamedTuple):
    """A metadata response, as `Cluster.get_metadata` returns it."""

    brokers: Sequence[BrokerEntry]
    topics: Sequence[TopicEntry]


class Connection:
    """A connection to one broker. `closing` is true from the moment it is closed, aborted or lost."""

    def __init__(self, link: CoreConnection, aio: asyncio.AbstractEventLoop) -> None:
        self._link = link
        self._aio = aio
        self._under_way: set[asyncio.Future[Any]] = set()  # of requests
        self._was_ready = False
        self._on_end: Callable[[], object] | None = None
        self.closing = False
        link.on_state = self._changed

    @property
    def host(self) -> str:
        """The broker's host."""
        return self._link.host

    @property
    def port(self) -> int:
        """The broker's port."""
        return self._link.port

    async def _open(self, timeout: float) -> None:
        """Connect, on the library's side."""
        loop = self._link.context.loop
        with loop.timeout_at(loop.time() + timeout, f"connecting to {self._link}"):
            await self._connect()

    async def connect(self) -> None:
        """Connect to the broker, if that is not done; KafkaConnectionError if it cannot be reached."""
        if self.closing:
            raise KafkaConnectionError(f"the connection to {self._link} was closed")
        await as_asyncio(self._link.context.loop.spawn(self._connect()))

    async def _connect(self) -> None:
        await self._link.open()

    def send(self, request: Any) -> asyncio.Future[Any]:
        """Send a request; the future has the response, or the error, by request_timeout_ms."""
        check_request(request)
        if self.closing:
            refused = self._aio.create_future()
            refused.set_exception(KafkaConnectionError(f"the connection to {self._link} was closed"))
            return refused
        told = as_asyncio(self._link.context.loop.spawn(self._submit(request)))
        self._under_way.add(told)
        told.add_done_callback(self._answered)
        return told

    async def _submit(self, request: Any) -> Any:
        """Send a request and return the response, on the library's side."""
        return await self._link.submit(request)

    def _answered(self, told: asyncio.Future[Any]) -> None:
        self._under_way.discard(told)
        if self.closing and not self._under_way:
            self._end(None)

    def _changed(self, link: CoreConnection) -> None:
        if link.state is ConnectionStates.CONNECTED:
            self._was_ready = True
        elif link.state is ConnectionStates.DISCONNECTED and self._was_ready:
            self.closing = True  # it was lost; the cluster makes another one

    def close(self) -> None:
        """Take no further request, and close when those under way are answered."""
        self.closing = True
        if not self._under_way:
            self._end(None)

    def abort(self, error: KafkaError | None = None) -> None:
        """Close now; requests under way fail."""
        self.closing = True
        if self._under_way:
            error = error or KafkaConnectionError(f"the connection to {self._link} was aborted")
            for told in self._under_way:
                if not told.done():
                    told.set_exception(error)
        self._end(error)

    def _end(self, error: KafkaError | None) -> None:
        self._link.close(error)
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()

    def __repr__(self) -> str:
        return f"<Connection to {self._link}{' closing' if self.closing else ''}>"


class _Stopped:
    """The end of a cluster: it may be awaited, and need not be."""

    def __init__(self, ended: asyncio.Future[None] | None) -> None:
        self._ended = ended

    def __await__(self) -> Generator[object, None, None]:
        if self._ended is not None:
            yield from asyncio.shield(self._ended).__await__()


class Cluster(Lifecycle):
    """The brokers of a cluster, each with a connection, and the leaders of all partitions.

    ::

        cluster = Cluster(["broker1", "broker2:9093"])
        await cluster.start()
        connection = cluster[cluster.get_leader("events", 0)]
        response = await connection.send(request)
        await cluster.heal()  # after an error: a broker has gone, a leader has moved
        cluster.stop()

    `bootstrap_hosts` are names or addresses, with a port or with 9092; keyword arguments are the options of
    `KafkaClient`, for TLS and SASL as everywhere. Works under asyncio, and under Tornado, which runs on it.
    """

    _kind = "cluster"

    def __init__(
        self, bootstrap_hosts: str | Iterable[object], *, loop: asyncio.AbstractEventLoop | None = None, **configs: Any
    ) -> None:
        super().__init__(loop)
        self.bootstrap_hosts = bootstrap_hosts if isinstance(bootstrap_hosts, str) else list(bootstrap_hosts)
        self.config: Config = checked_config(
            "client", "Cluster", {**given_options("Cluster", None, configs), "bootstrap_servers": self.bootstrap_hosts}
        )
        self.conns: dict[int, Connection] = {}
        """The connection to each broker, by its id."""
        self.topics: defaultdict[str, list[int]] = defaultdict(list)
        """The partitions of each topic."""
        self.leaders: defaultdict[str, dict[int, int]] = defaultdict(dict)
        """The leader of each partition of each topic."""
        self._away: dict[int, Connection] = {}  # brokers that could not be reached; each keeps its backoff
        self._healing: asyncio.Lock
        self._context: ConnectionContext
        self._settings: ConnectionSettings
        self._backoff: Backoff
        self._limit: asyncio.TimerHandle | None = None

    # The connections…

    def __getitem__(self, broker_id: int) -> Connection:
        return self.conns[broker_id]

    def __contains__(self, broker_id: object) -> bool:
        return broker_id in self.conns

    def __iter__(self) -> Iterator[int]:
        return iter(self.conns)

    def __len__(self) -> int:
        return len(self.conns)

    def get_leader(self, topic: str, partition_id: int) -> int:
        """Return the id of the broker that leads a partition; KeyError if none is known."""
        leader = self.leaders.get(topic, {}).get(partition_id)
        if leader is None:
            raise KeyError(f"no leader of partition {partition_id} of topic {topic!r} is known: heal() asks for it")
        return leader

    # Starting…

    def _open(self) -> Loop:
        environment = self._world(self.config)
        loop = environment.make_loop(self.config["selector"])
        self._healing = asyncio.Lock()
        self._settings = ConnectionSettings(self.config)
        self._context = ConnectionContext(loop, self._settings, environment)
        self._backoff = Backoff(
            self.config.seconds("retry_backoff_ms"), self.config.seconds("retry_backoff_max_ms"), loop.rng
        )
        return loop

    async def _begin(self) -> None:
        await self._heal(await self._bootstrap(None), self._deadline(_HEAL_TIMEOUT_MS / 1000), whole=True)

    async def start(self) -> None:
        """Ask the bootstrap hosts in order until one answers, and connect to all brokers.

        NoBrokersError if none answers. When it raises, or is cancelled, everything is freed; it may be called again.
        """
        await super().start()

    async def _bootstrap(self, topics: Iterable[str] | None) -> MetadataEntries:
        failures: list[tuple[str, str]] = []
        for server in parse_servers(self.config["bootstrap_servers"]):
            connection = self._connection(server.host, server.port, f"bootstrap {server}")
            try:
                return await self._run(partial(self._first_answer, connection, topics))
            except KafkaError as error:
                self._raise_fatal(connection, error)
                failures.append((str(server), str(error)))
                log.info("Bootstrap host %s: %s", server, error)
            finally:
                connection.abort()
        raise NoBrokersAvailable("No bootstrap host answered", attempts=tuple(failures))

    async def _first_answer(self, connection: Connection, topics: Iterable[str] | None) -> MetadataEntries:
        await connection._open(self._settings.request_timeout)
        return await self._ask(connection, topics)

    def _connection(self, host: str, port: int, node_id: int | str) -> Connection:
        assert self._aio is not None
        return Connection(CoreConnection(self._context, host, port, node_id=node_id), self._aio)

    def _raise_fatal(self, connection: Connection, error: KafkaError) -> None:
        """Raise at once what trying elsewhere, or again, does not change: configuration and credentials."""
        if connection._link.fatal is not None:
            raise connection._link.fatal.with_traceback(None) from error

    async def _run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await self._application.run(make())

    # Metadata…

    async def get_metadata(self, topics: Iterable[str] | None = None) -> MetadataEntries:
        """Ask one connection after the other for metadata, of some topics or of all.

        NoBrokersError if none answers.
        """
        self._check_usable()
        return await self._ask_connections(None if topics is None else list(topics))

    async def _ask_connections(self, names: Iterable[str] | None) -> MetadataEntries:
        failures: list[tuple[str, str]] = []
        for connection in tuple(self.conns.values()):
            if connection.closing:
                continue
            try:
                entries: MetadataEntries = await self._run(partial(self._ask, connection, names))
            except KafkaError as error:
                failures.append((f"{connection.host}:{connection.port}", str(error)))
            else:
                return entries
        raise NoBrokersAvailable("No connection of the cluster answered", attempts=tuple(failures))

    async def _ask(self, connection: Connection, topics: Iterable[str] | None) -> MetadataEntries:
        """Ask for metadata, on the library's side. No topic is created by that."""
        from kafka.protocol.metadata import MetadataRequest

        link = connection._link
        assert link.versions is not None
        names = None if topics is None else set(topics)
        wanted = [] if names is None else [{"name": name} for name in sorted(names)]
        request = MetadataRequest(topics=None if names is None else wanted, allow_auto_topic_creation=False)
        version = link.versions.version_for(request)
        if version < _NO_CREATION_SINCE:  # then naming a topic may create it; in version 0 no name means all topics
            request = MetadataRequest(topics=None if version else [])
        response = await link.submit(request)
        entries = _entries(response)
        code = getattr(response, "error_code", 0)
        if code:
            raise for_code(code)(f"{link} sent no metadata")
        if names is None or version >= _NO_CREATION_SINCE:
            return entries
        found = [topic for topic in entries.topics if topic.name in names]
        unknown = names - {topic.name for topic in found}
        return entries._replace(
            topics=[*found, *(TopicEntry(Code.UNKNOWN_TOPIC_OR_PARTITION, name) for name in sorted(unknown))]
        )

    # Healing…

    async def heal(self, response: object = None, *, timeout_ms: float = _HEAL_TIMEOUT_MS) -> None:
        """Bring connections, topics and leaders in step with the cluster, and return when nothing is missing.

        With a metadata `response` that comes first, else fresh metadata. While a broker cannot be reached, or a
        partition has no leader, it asks again, at growing intervals; KafkaTimeoutError names what remains missing.
        """
        self._check_usable()
        deadline = self._deadline(timeout_ms / 1000)
        async with self._healing:
            for broker_id, connection in tuple(self.conns.items()):
                if connection.closing:
                    del self.conns[broker_id]
            entries = await self._any_metadata(None) if response is None else _entries(response)
            await self._heal(entries, deadline, whole=response is None)

    async def _heal(self, entries: MetadataEntries, deadline: float, *, whole: bool) -> None:
        failures = 0
        while True:
            missing_brokers = await self._process_brokers(entries.brokers, deadline)
            missing_topics = self._process_topics(entries.topics, whole=whole)
            if not missing_brokers and not missing_topics:
                return
            failures += 1
            delay = self._backoff.delay(failures)
            assert self._loop is not None
            if self._loop.time() + delay >= deadline:
                raise KafkaTimeoutError(
                    f"The cluster is not complete: {_missing(missing_brokers, missing_topics)}; the other brokers are "
                    "connected and can be used"
                )
            await asyncio.sleep(delay)
            entries = await self._any_metadata(missing_topics or None)
            whole = not missing_topics

    async def _any_metadata(self, topics: Iterable[str] | None) -> MetadataEntries:
        """Ask the connections, then the bootstrap hosts."""
        try:
            return await self._ask_connections(topics)
        except NoBrokersAvailable as error:
            try:
                return await self._bootstrap(topics)
            except NoBrokersAvailable as nobody:
                raise nobody from error

    async def process_brokers(self, brokers: Iterable[object]) -> set[int]:
        """Connect to the brokers that are new, and abort connections to those not listed.

        Returns the ids of the brokers that could not be reached.
        """
        self._check_usable()
        return await self._process_brokers(
            [_broker(broker) for broker in brokers], self._deadline(self._settings.request_timeout)
        )

    async def _process_brokers(self, brokers: Iterable[BrokerEntry], deadline: float) -> set[int]:
        listed = {broker.broker_id: broker for broker in brokers}
        for known in (self.conns, self._away):
            for broker_id, connection in tuple(known.items()):
                broker = listed.get(broker_id)
                if broker is None or (broker.host, broker.port) != (connection.host, connection.port):
                    del known[broker_id]
                    connection.abort()
                elif connection.closing:
                    del known[broker_id]
        for broker_id, broker in listed.items():
            if broker_id not in self.conns and broker_id not in self._away:
                self._away[broker_id] = self._connection(broker.host, broker.port, broker_id)
        if self._away:
            away = dict(self._away)
            unreachable: set[int] = await self._run(partial(self._connect_all, away, deadline))
            for broker_id in away.keys() - unreachable:
                if self._away.get(broker_id) is away[broker_id]:
                    self.conns[broker_id] = self._away.pop(broker_id)
        return set(self._away)

    async def _connect_all(self, connections: dict[int, Connection], deadline: float) -> set[int]:
        """Connect to brokers at the same time, on the library's side; return the ids that could not be reached."""
        unreachable: set[int] = set()
        assert self._loop is not None
        timeout = min(self._settings.request_timeout, max(0.0, deadline - self._loop.time()))

        async def connect(broker_id: int, connection: Connection) -> None:
            try:
                await connection._open(timeout)
            except KafkaError as error:
                self._raise_fatal(connection, error)
                unreachable.add(broker_id)

        async with TaskGroup(self._loop) as group:
            for broker_id, connection in connections.items():
                group.spawn(connect(broker_id, connection))
        return unreachable

    def process_topics(self, response_topics: Iterable[object]) -> set[str]:
        """Take partitions and leaders of these topics; other topics stay as they are known.

        Returns the names of topics that lack data, or have a partition without a leader that is connected.
        """
        return self._process_topics([_topic(topic) for topic in response_topics], whole=False)

    def _process_topics(self, topics: Iterable[TopicEntry], *, whole: bool) -> set[str]:
        missing: set[str] = set()
        topics = list(topics)
        if whole:
            for name in self.topics.keys() - {topic.name for topic in topics}:
                self._forget(name)
        for topic in topics:
            if topic.error_code in {Code.REPLICA_NOT_AVAILABLE, Code.LEADER_NOT_AVAILABLE}:
                missing.add(topic.name)
            elif topic.error_code:
                log.warning(
                    "Topic %r is left out: %s",
                    topic.name,
                    for_code(topic.error_code).__name__,
                    extra={"kafka_topic": topic.name},
                )
                self._forget(topic.name)
                continue
            leaders = {
                partition.partition_id: partition.leader
                for partition in topic.partitions
                if partition.error_code != Code.LEADER_NOT_AVAILABLE and partition.leader in self.conns
            }
            self.topics[topic.name] = sorted(partition.partition_id for partition in topic.partitions)
            self.leaders[topic.name] = leaders
            if len(leaders) < len(topic.partitions):
                missing.add(topic.name)
        return missing

    def _forget(self, name: str) -> None:
        self.topics.pop(name, None)
        self.leaders.pop(name, None)

    # Stopping…

    def stop(self, timeout: float | None = None) -> Any:
        """Close each connection; one with requests under way closes when they are answered.

        The result may be awaited: all connections are closed then. Requests that are not answered within `timeout`
        seconds (10 by default) fail. The cluster may be started again after that.
        """
        aio = self._aio
        if self._phase is Phase.NEW or aio is None:
            return _Stopped(None)
        if self._phase is Phase.STOPPING:
            return _Stopped(self._ended)
        if aio.is_closed():
            self._stopped()
            return _Stopped(None)
        self._check_own_loop()
        if self._phase is Phase.STARTED:
            for connection in self.conns.values():
                connection._on_end = self._one_ended
                connection.close()
        if self._all_ended():
            self._stopped()
            return _Stopped(None)
        self._phase, self._ended = Phase.STOPPING, aio.create_future()
        self._limit = aio.call_later(self._stop_seconds(timeout), self._stopped)
        return _Stopped(self._ended)

    def _all_ended(self) -> bool:
        return not any(connection._under_way for connection in self.conns.values())

    def _one_ended(self) -> None:
        if self._phase is Phase.STOPPING and self._all_ended():
            self._stopped()

    def _stopped(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        self._free()
        self._phase = Phase.NEW
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _release(self) -> None:
        for connections in (self.conns, self._away):
            while connections:
                _, connection = connections.popitem()
                connection._on_end = None
                connection.abort(ClientClosedError("The cluster was stopped."))


def _missing(brokers: Iterable[int], topics: Iterable[str]) -> str:
    parts = [f"broker {broker_id} cannot be reached" for broker_id in sorted(brokers)]
    parts += [f"topic {name!r} lacks a leader" for name in sorted(topics)]
    return ", ".join(parts)


# Responses of the library's protocol, of kiel's, or entries from here…


def _entries(response: Any) -> MetadataEntries:
    if isinstance(response, MetadataEntries):
        return response
    return MetadataEntries([_broker(each) for each in response.brokers], [_topic(each) for each in response.topics])


def _broker(broker: Any) -> BrokerEntry:
    if isinstance(broker, BrokerEntry):
        return broker
    return BrokerEntry(_first(broker, "broker_id", "node_id"), broker.host, broker.port)


def _topic(topic: Any) -> TopicEntry:
    if isinstance(topic, TopicEntry):
        return topic
    return TopicEntry(
        topic.error_code, _first(topic, "name", "topic"), [_partition(each) for each in topic.partitions or ()]
    )


def _partition(partition: Any) -> PartitionEntry:
    if isinstance(partition, PartitionEntry):
        return partition
    return PartitionEntry(
        partition.error_code,
        _first(partition, "partition_id", "partition_index", "partition"),
        _first(partition, "leader", "leader_id"),
        _first(partition, "replicas", "replica_nodes"),
        _first(partition, "isrs", "isr_nodes", "isr"),
    )


def _first(entry: object, *names: str) -> Any:
    for name in names:
        if hasattr(entry, name):
            return getattr(entry, name)
    raise TypeError(f"{entry!r} is not part of a metadata response: it has no attribute {names[0]!r}")
