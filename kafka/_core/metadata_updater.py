"""Metadata of a client: the first response from a bootstrap server, and how it stays fresh.

One task requests metadata by age, on demand and after errors. It asks one broker at a time, the least loaded. When
every known broker has failed to answer, it starts again from the bootstrap servers (KIP-899), as it does when a broker
demands it (KIP-1102).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafka._runtime.tasks import Event, Task, deferred, wait_any
from kafka._text import host_port, printable
from kafka.errors import (
    Code,
    KafkaConnectionError,
    KafkaError,
    MetadataEmptyBrokerList,
    MismatchedEndpointTypeError,
    UnsupportedVersionError,
    for_code,
)
from kafka.net.resolver import NoListenerError

if TYPE_CHECKING:
    from kafka._runtime.loop import Loop
    from kafka.cluster import ClusterMetadata
    from kafka.config import Config
    from kafka.errors import NoBrokersAvailable
    from kafka.net.connection import Connection
    from kafka.net.settings import ConnectionContext, ConnectionSettings
    from kafka.protocol.metadata import DescribeClusterResponse, MetadataResponse
    from kafka.structs import BrokerMetadata

__all__ = ["MetadataUpdater"]

log = logging.getLogger(__name__)

_AUTO_CREATION_SINCE: Final = 4
# The endpoint type of controllers, and the first version of DescribeCluster that has endpoint types.
_CONTROLLERS: Final = 2
_CONTROLLERS_SINCE: Final = 1
_NOT_A_CONTROLLER: Final = "{link} is a broker's listener, not a controller's: give it in bootstrap_servers"
_NOT_A_BROKER: Final = (
    "{link} is a controller's listener, not a broker's: give a broker's address; KafkaAdminClient takes a controller's "
    "as bootstrap_controllers"
)
# How long one bootstrap server may take before the next is asked beside it, in seconds.
_STAGGER: Final = 1.0
# How often each server must have refused before the client gives up ahead of time.
_ROUNDS: Final = 3
# The longest pause between attempts at one server, in seconds, whatever its connection's backoff: a caller waits.
_LONGEST_PAUSE: Final = 1.0


class MetadataClient(Protocol):
    """The part of a client that keeping its metadata needs."""

    loop: Loop
    config: Config
    settings: ConnectionSettings
    context: ConnectionContext
    cluster: ClusterMetadata
    closed: bool

    @property
    def of_controllers(self) -> bool:
        """Whether the nodes are controllers instead of brokers."""
        ...

    def link(self, node_id: int | str, use: str = ...) -> Connection:
        """Return the connection to a broker."""
        ...

    def links(self, node_id: int | str | None = None) -> Iterator[Connection]:
        """Go through the connections."""
        ...

    def candidates(self) -> list[BrokerMetadata]:
        """Return the brokers to choose from."""
        ...

    async def open(self, link: Connection, deadline: float) -> None:
        """Wait until a connection is ready."""
        ...

    async def some_node(self, deadline: float) -> int | str:
        """Wait for a broker that may be asked."""
        ...

    def no_brokers_error(self, what: str) -> NoBrokersAvailable:
        """Return the error that lists the addresses."""
        ...

    def drop_departed(self) -> None:
        """Close connections to brokers that left the cluster."""
        ...

    def drop_unready(self) -> None:
        """Forget connections that are not open."""
        ...


class MetadataUpdater:
    """Requests the metadata of a client."""

    def __init__(self, client: MetadataClient) -> None:
        self._client = client
        self._loop = client.loop
        self._cluster = client.cluster
        self._wanted = Event()
        self._task: Task[object] | None = None
        self._under_way = 0
        self._awaited = 0
        self._failed: set[int | str] = set()  # brokers that did not answer since one last did
        self._failing_since: float | None = None
        self._told = False
        self.error: KafkaError | None = None
        """Why the last request for metadata failed; None if it succeeded."""
        self._retry_after: dict[int | str, float] = {}
        client.cluster.on_request = self._requested

    @property
    def refreshing(self) -> bool:
        """Whether a request for metadata is under way."""
        return self._under_way > 0

    @property
    def awaited(self) -> bool:
        """Whether a caller waits for metadata; until it arrives, the requested topics must not shrink."""
        return self._awaited > 0

    # Bootstrap…

    async def bootstrap(self) -> None:
        """See `Client.bootstrap`."""
        loop, settings = self._loop, self._client.settings
        deadline = loop.time() + settings.discovery_timeout
        give_up = loop.time() + settings.refusal_timeout
        await self._canonical_names()
        attempts: dict[Task[None], int | str] = {}
        try:
            while self._cluster.update_age() is None:
                node_id = self._next_server(set(attempts.values()))
                if node_id is not None:
                    attempts[loop.spawn(self._ask_server(node_id, deadline), "bootstrap")] = node_id
                wake = min(loop.time() + _STAGGER if attempts else self._soonest(), deadline)
                if wake > give_up > loop.time():
                    wake = give_up
                await wait_any(loop, *attempts, deadline=wake)
                self._collect(attempts)
                self._check_deadline(deadline, give_up)
        finally:
            for task in attempts:
                task.cancel()
        self.start()

    async def _ask_server(self, node_id: int | str, deadline: float) -> None:
        with self._loop.timeout_at(deadline, "looking for a broker"):
            await self._client.link(node_id).open()
        await self._update_from(node_id, deadline)

    def _collect(self, attempts: dict[Task[None], int | str]) -> None:
        """Take out the attempts that have ended, and raise what ends the search."""
        for task in [task for task in attempts if task.is_done]:
            del attempts[task]
            if task.exception is not None:
                self._raise_fatal(task.exception)

    def _check_deadline(self, deadline: float, give_up: float) -> None:
        """Raise if the deadline has passed, or if no server listens and the caller does not want to wait for one."""
        now = self._loop.time()
        if self._cluster.update_age() is not None:
            return
        client = self._client
        if now >= deadline:
            raise client.no_brokers_error(
                f"No bootstrap server answered within {client.settings.discovery_timeout:g} seconds "
                "(bootstrap_timeout_ms)"
            )
        if now >= give_up and self._no_listeners():
            raise client.no_brokers_error(
                "Every bootstrap server refuses connections or has an unknown name; "
                "to wait for a cluster that starts later set bootstrap_timeout_ms"
            )

    def _no_listeners(self) -> bool:
        """Whether no server is slow or lost on the way: each has refused, or has no address, several times."""
        links = [self._client.link(broker.nodeId) for broker in self._client.candidates()]
        return all(isinstance(link.error, NoListenerError) and link.failures >= _ROUNDS for link in links)

    def _next_server(self, busy: set[int | str]) -> int | str | None:
        """Return a server to ask in parallel with the servers in `busy`."""
        free = [
            broker.nodeId
            for broker in self._client.candidates()
            if broker.nodeId not in busy and self._next_attempt_at(broker.nodeId) <= self._loop.time()
        ]
        return self._loop.rng.choice(free) if free else None

    def _next_attempt_at(self, node_id: int | str) -> float:
        """Return when a server may be asked again: after its backoff, and after an answer without brokers."""
        link = self._client.link(node_id)
        backoff = min(self._loop.time() + link.backing_off(), link.last_attempt + _LONGEST_PAUSE)
        return max(backoff, self._retry_after.get(node_id, 0.0))

    def _soonest(self) -> float:
        return min(
            (self._next_attempt_at(broker.nodeId) for broker in self._client.candidates()), default=self._loop.time()
        )

    def _raise_fatal(self, error: BaseException) -> None:
        """Raise errors that another attempt cannot fix: configuration, credentials, a listener of another kind."""
        for link in self._client.links():
            if link.fatal is not None:
                raise link.fatal.with_traceback(None)
        if not (isinstance(error, KafkaError) and error.retriable):
            raise error

    async def _canonical_names(self) -> None:
        config = self._client.config
        if config["client_dns_lookup"] != "resolve_canonical_bootstrap_servers_only":
            return
        servers: list[tuple[str, int]] = []
        for address in self._cluster.bootstrap_brokers():
            try:
                names = await self._client.context.resolver.canonical_names(address.host, address.port)
            except KafkaConnectionError as error:
                log.warning("No canonical names for %s: %s", host_port(address.host, address.port), error)
                names = [address.host]
            servers += [(name, address.port) for name in names]
        self._cluster.set_bootstrap(dict.fromkeys(servers))

    # Refreshes…

    async def refresh(self, deadline: float) -> None:
        """Ask for metadata and wait until it came; the error if it did not."""
        future = self._cluster.request_update()
        self.start()
        self._awaited += 1
        try:
            with self._loop.timeout_at(deadline, "waiting for metadata"):
                await future
        finally:
            self._awaited -= 1

    def start(self) -> None:
        """Keep metadata fresh from now on."""
        if self._task is None and not self._client.closed:
            self._task = self._loop.spawn_logged(deferred(self._keep), "keep metadata")

    def stop(self) -> None:
        """End the task; no later call requests metadata."""
        if self._task is not None:
            self._task.cancel()

    def _requested(self) -> None:
        self._loop.call_soon(self._wanted.set)

    async def _keep(self) -> None:
        while True:
            wait = self._cluster.ttl() / 1000
            if wait > 0:
                self._wanted.clear()
                timer = self._loop.call_later(wait, self._wanted.set)
                try:
                    await self._wanted.wait()
                finally:
                    timer.cancel()
                continue
            await self._try_once()

    async def _try_once(self) -> None:
        deadline = self._loop.time() + self._client.settings.request_timeout
        try:
            node_id = await self._client.some_node(deadline)
        except KafkaError as error:
            self.error = error
            self._cluster.failed_update(error)
        else:
            try:
                await self._update_from(node_id, deadline)
            except KafkaError as error:
                log.debug("Metadata could not be refreshed from broker %s: %s", node_id, error)
        self._maybe_start_over()

    async def _update_from(self, node_id: int | str, deadline: float) -> None:
        """Ask one broker and update the cluster; an error is raised and remembered."""
        client = self._client
        self._under_way += 1
        version = None  # until a request has left, what goes wrong concerns all who wait
        try:
            link = client.link(node_id)
            await client.open(link, deadline)
            version = self._cluster.wanted_version
            request, whole = self._request(link)
            response = await link.submit(request, deadline=deadline)
            code = getattr(response, "error_code", 0)
            if code == Code.REBOOTSTRAP_REQUIRED:
                self._start_over("a broker demands it")
            if code == MismatchedEndpointTypeError.errno:
                raise MismatchedEndpointTypeError(_NOT_A_CONTROLLER.format(link=link))
            if code:
                raise for_code(code)(f"{link} does not tell metadata")
            if self._client.of_controllers:
                response = _metadata_of(response)
            if not response.brokers:
                raise MetadataEmptyBrokerList(f"{link} does not know any broker; it may be starting")
        except KafkaError as error:
            self._failed.add(node_id)
            if self._failing_since is None:
                self._failing_since = self._loop.time()
            self.error = error
            self._cluster.failed_update(error, version=version)
            self._retry_after[node_id] = self._loop.time() + self._cluster.refresh_backoff() / 1000
            raise
        finally:
            self._under_way -= 1
        self._failed.clear()
        self._retry_after.clear()
        self._failing_since = self.error = None
        self._cluster.update_metadata(response, whole=whole, version=version)
        self._tell_once(link)
        client.drop_departed()

    def _tell_once(self, link: Connection) -> None:
        """Say in the log that there is a connection, and to what: the first thing to look for when something is odd."""
        if self._told or link.versions is None:
            return
        self._told = True
        cluster, config = self._cluster, self._client.config
        log.info(
            "%s is connected to cluster %s through %s: Kafka %s, %d brokers, %s",
            config["client_id"] or "A client",
            printable(cluster.cluster_id or "without an id"),
            link,
            ".".join(map(str, link.versions.release)),
            len(cluster.topology.brokers),
            config["security_protocol"],
        )

    def _request(self, link: Connection) -> tuple[Any, bool]:
        """Return the request for the wanted topics in this broker's version, and whether that is all topics."""
        from kafka.protocol.metadata import DescribeClusterRequest, MetadataRequest

        assert link.versions is not None
        if self._client.of_controllers:
            if not link.versions.reaches(DescribeClusterRequest.API_KEY, _CONTROLLERS_SINCE):
                raise UnsupportedVersionError(f"{link} does not describe controllers: that needs Kafka 3.7")
            return DescribeClusterRequest(endpoint_type=_CONTROLLERS), True
        if not link.versions.reaches(MetadataRequest.API_KEY):
            raise MismatchedEndpointTypeError(_NOT_A_BROKER.format(link=link))
        request = self._cluster.metadata_request()
        version = link.versions.version_for(request)
        topics = request.topics
        if version < _AUTO_CREATION_SINCE and topics is not None and not request.allow_auto_topic_creation:
            # Before 0.11 naming a topic may create it; asking for all never does.
            topics, request = None, MetadataRequest(topics=None)
        if version == 0:
            # In version 0 no topic means all topics; there is no way to ask for none.
            return MetadataRequest(topics=topics or []), not topics
        return request, topics is None

    # Starting again…

    def _maybe_start_over(self) -> None:
        config = self._client.config
        if config["metadata_recovery_strategy"] != "rebootstrap":
            return
        known = set(self._cluster.topology.brokers)
        limit = config.seconds("metadata_recovery_rebootstrap_trigger_ms")
        if known and known <= self._failed:
            self._start_over("no known broker can be reached")
        elif known and self._failing_since is not None and self._loop.time() - self._failing_since > limit:
            self._start_over(f"metadata could not be refreshed for {limit:.0f} seconds")

    def _start_over(self, why: str) -> None:
        log.warning("Starting again from the bootstrap servers: %s", why)
        self._failed.clear()
        self._failing_since = None
        self._cluster.forget_brokers()
        for server in self._cluster.bootstrap_brokers():
            self._client.context.resolver.forget(server.host)
        self._client.drop_unready()


def _metadata_of(described: DescribeClusterResponse) -> MetadataResponse:
    """Return what a controller tells of all controllers as the metadata of a cluster without topics."""
    from kafka.protocol.metadata import MetadataResponse

    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=one.broker_id, host=one.host, port=one.port, rack=one.rack)
            for one in described.brokers
        ],
        cluster_id=described.cluster_id,
        controller_id=described.controller_id,
        topics=[],
    )
