"""Metadata of a client: the first response from a bootstrap server, and how it stays fresh.

One task requests metadata by age, on demand and after errors. It asks one broker at a time, the least loaded. When
every known broker has failed to answer, it starts again from the bootstrap servers (KIP-899), as it does when a broker
demands it (KIP-1102).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, cast

from kafka._core.connections import SLOW_TO_CONNECT, Connections, NodeId
from kafka._runtime.tasks import Event, Task, deferred, wait_any
from kafka._text import host_port, printable
from kafka.errors import (
    Code,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MetadataEmptyBrokerList,
    MismatchedEndpointTypeError,
    SaslAuthenticationFailedError,
    UnsupportedVersionError,
    for_code,
)
from kafka.net.resolver import NoListenerError
from kafka.net.states import ConnectionStates

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from kafka.config import Config
    from kafka.net.connection import Connection
    from kafka.protocol.metadata import DescribeClusterResponse, MetadataResponse

__all__ = ["MetadataUpdater"]

log = logging.getLogger("kafka.client")

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
# How long a client that needs no broker waits for a server to accept its connection, and for the answer of one that
# has, in seconds: such a broker is there, and wrong credentials should be an error of the constructor.
_FIRST_LOOK: Final = 1.0
_FIRST_ANSWER: Final = 10.0
_NOT_ACCEPTED: Final = (ConnectionStates.RESOLVING, ConnectionStates.CONNECTING)
# How often each server must have refused before the client gives up ahead of time.
_ROUNDS: Final = 3
# The longest pause between attempts at one server, in seconds, whatever its connection's backoff: a caller waits.
_LONGEST_PAUSE: Final = 1.0


class _SlowToConnectError(KafkaTimeoutError):
    """A broker is not connected yet; another one may be faster."""


class MetadataUpdater:
    """Requests the metadata of a client."""

    def __init__(self, connections: Connections, config: Config, *, of_controllers: bool) -> None:
        self._connections = connections
        self._metadata = connections.cluster
        self._loop = connections.loop
        self._config = config
        self._of_controllers = of_controllers
        self._wanted = Event()
        self._task: Task[object] | None = None
        self._awaited = 0
        self._failed: set[NodeId] = set()  # brokers that did not answer since one last did
        self._failing_since: float | None = None
        self._retry_after: dict[NodeId, float] = {}
        self._hopeless: dict[NodeId, BaseException] = {}  # bootstrap servers that are no brokers, and why
        self._logged_cluster = False
        self._metadata.on_request = self._requested
        self.on_refusal: Callable[[KafkaError], object] = lambda _error: None
        """Called with the error when no broker is known and each bootstrap server refuses this client."""

    @property
    def refreshing(self) -> bool:
        """Whether a request for metadata is under way."""
        return self._metadata.requests > 0

    @property
    def awaited(self) -> bool:
        """Whether a caller waits for metadata; until it arrives, the requested topics must not shrink."""
        return self._awaited > 0

    # Bootstrap…

    async def bootstrap(self, *, patient: bool = False) -> None:
        """See `Client.bootstrap` and, if `patient`, `Client.begin`."""
        loop, settings = self._loop, self._connections.settings
        began = loop.time()
        deadline = began + (_FIRST_ANSWER if patient else settings.discovery_timeout)
        give_up = began + settings.refusal_timeout
        await self._canonical_names()
        attempts: dict[Task[None], NodeId] = {}
        self._hopeless.clear()
        try:
            while self._metadata.update_age() is None:
                node_id = self._next_server(set(attempts.values()))
                if node_id is not None:
                    attempts[loop.spawn(self._ask_server(node_id, deadline), "bootstrap")] = node_id
                wake = min(loop.time() + _STAGGER if attempts else self._soonest(), deadline)
                if wake > give_up > loop.time():
                    wake = give_up
                await wait_any(loop, *attempts, deadline=wake)
                self._collect(attempts)
                if not patient:
                    self._check_deadline(deadline, give_up)
                elif loop.time() >= deadline or self._none_is_there(loop.time() >= began + _FIRST_LOOK):
                    break
        finally:
            for task in attempts:
                task.cancel()
        if self._metadata.update_age() is None:
            error = self._connections.no_brokers_error("No broker is there yet")
            log.warning("%s; the client continues to look for one", error)
        self.start()

    def _none_is_there(self, looked: bool) -> bool:
        """Whether each server has failed, or has `looked` at no connection for long enough."""
        for broker in self._connections.candidates():
            link = self._connections.link(broker.nodeId)
            failed = link.failures or broker.nodeId in self._retry_after
            if not failed and not (looked and link.state in _NOT_ACCEPTED):
                return False
        return True

    async def _ask_server(self, node_id: NodeId, deadline: float) -> None:
        with self._loop.timeout_at(deadline, "looking for a broker"):
            await self._connections.link(node_id).open()
        await self._update_from(node_id, deadline)

    def _collect(self, attempts: dict[Task[None], NodeId]) -> None:
        """Take out the attempts that have ended, and raise what ends the search."""
        for task in [task for task in attempts if task.is_done]:
            node_id = attempts.pop(task)
            if task.exception is not None:
                self._raise_fatal(node_id, task.exception)

    def _check_deadline(self, deadline: float, give_up: float) -> None:
        """Raise if the deadline has passed, or if no server listens and the caller does not want to wait for one."""
        now = self._loop.time()
        if self._metadata.update_age() is not None:
            return
        connections = self._connections
        if now >= deadline:
            raise connections.no_brokers_error(
                f"No bootstrap server answered within {connections.settings.discovery_timeout:g} seconds "
                "(bootstrap_timeout_ms)"
            )
        if now >= give_up and self._no_listeners():
            raise connections.no_brokers_error(
                "Every bootstrap server refuses connections or has an unknown name; "
                "to wait for a cluster that starts later set bootstrap_timeout_ms"
            )

    def _no_listeners(self) -> bool:
        """Whether no server is slow or lost on the way: each has refused, or has no address, several times."""
        nodes = [broker.nodeId for broker in self._connections.candidates() if broker.nodeId not in self._hopeless]
        links = [self._connections.link(node_id) for node_id in nodes]
        return all(isinstance(link.error, NoListenerError) and link.failures >= _ROUNDS for link in links)

    def _next_server(self, busy: set[NodeId]) -> NodeId | None:
        """Return a server to ask in parallel with the servers in `busy`."""
        free = [
            broker.nodeId
            for broker in self._connections.candidates()
            if broker.nodeId not in busy
            and broker.nodeId not in self._hopeless
            and self._next_attempt_at(broker.nodeId) <= self._loop.time()
        ]
        return self._loop.rng.choice(free) if free else None

    def _next_attempt_at(self, node_id: NodeId) -> float:
        """Return when a server may be asked again: after its backoff, and after an answer without brokers."""
        link = self._connections.link(node_id)
        backoff = min(self._loop.time() + link.backing_off(), link.last_attempt + _LONGEST_PAUSE)
        return max(backoff, self._retry_after.get(node_id, 0.0))

    def _soonest(self) -> float:
        return min(
            (
                self._next_attempt_at(broker.nodeId)
                for broker in self._connections.candidates()
                if broker.nodeId not in self._hopeless
            ),
            default=self._loop.time(),
        )

    def _raise_fatal(self, node_id: NodeId, error: BaseException) -> None:
        """Raise errors that another attempt cannot fix: configuration, credentials, no server that is a broker.

        One server of several may have become something else.
        """
        for link in self._connections.links():
            if link.fatal is not None:
                raise link.fatal.with_traceback(None)
        if isinstance(error, KafkaError) and error.retriable:
            return
        self._hopeless[node_id] = error
        if all(broker.nodeId in self._hopeless for broker in self._connections.candidates()):
            raise error

    async def _canonical_names(self) -> None:
        config = self._config
        if config["client_dns_lookup"] != "resolve_canonical_bootstrap_servers_only":
            return
        servers: list[tuple[str, int]] = []
        for address in self._metadata.bootstrap_brokers():
            try:
                names = await self._connections.context.resolver.canonical_names(address.host, address.port)
            except KafkaConnectionError as error:
                log.warning("No canonical names for %s: %s", host_port(address.host, address.port), error)
                names = [address.host]
            servers += [(name, address.port) for name in names]
        self._metadata.set_bootstrap(dict.fromkeys(servers))

    # Refreshes…

    async def refresh(self, deadline: float, topics: Collection[str] = ()) -> None:
        """Ask for metadata, of some topics only or of all that are wanted, and wait; the error if it did not come."""
        future = self._metadata.request_update(topics)
        self.start()
        self._awaited += 1
        try:
            with self._loop.timeout_at(deadline, "waiting for metadata"):
                await future
        finally:
            self._awaited -= 1

    def start(self) -> None:
        """Keep metadata fresh from now on."""
        if self._task is None and not self._connections.closed:
            self._task = self._loop.spawn_logged(deferred(self._keep), "keep metadata")

    def stop(self) -> None:
        """End the task; no later call requests metadata."""
        if self._task is not None:
            self._task.cancel()

    def _requested(self) -> None:
        self._loop.call_soon(self._wanted.set)

    async def _keep(self) -> None:
        while True:
            wait = self._metadata.due_in()
            if wait > 0:
                self._wanted.clear()
                await self._wanted.wait_until(self._loop, self._loop.time() + wait)
            else:
                await self._update()
                self._maybe_start_over()

    async def _update(self) -> None:
        """Ask one broker; another one if the first is slow to connect."""
        deadline = self._loop.time() + self._connections.settings.request_timeout
        while True:
            try:
                node_id = await self._connections.some_node(deadline)
            except KafkaError as error:
                self._metadata.failed_update(error)
                return
            try:
                await self._update_from(node_id, deadline, patience=SLOW_TO_CONNECT)
            except _SlowToConnectError:
                log.debug(
                    "Broker %s is slow to connect; metadata is requested from another one if there is one", node_id
                )
            except KafkaError as error:
                log.debug("Metadata could not be refreshed from broker %s: %s", node_id, error)
                self._look_for_refusal()
                return
            else:
                return

    def _look_for_refusal(self) -> None:
        """Call `on_refusal` if it is so: calls that need a broker would wait for one without a word."""
        if self._metadata.topology.brokers:
            return
        errors = [self._connections.link(broker.nodeId).fatal for broker in self._connections.candidates()]
        if errors and None not in errors:
            self.on_refusal(cast("KafkaError", errors[0]))

    async def _update_from(self, node_id: NodeId, deadline: float, patience: float | None = None) -> None:
        """Ask one broker and update the metadata; an error is raised and remembered.

        `_SlowToConnectError` if there is no connection after `patience` seconds, though the deadline has not passed.
        """
        metadata = self._metadata
        version = None  # until a request has left, what goes wrong concerns all who wait
        metadata.requests += 1
        try:
            link = self._connections.link(node_id)
            await self._open(link, deadline, patience)
            version = metadata.wanted_version
            response, whole, partial = await self._ask(link, deadline)
            prepared = await self._loop.in_slices(metadata.prepare(response, whole=whole, partial=partial))
        except _SlowToConnectError as error:
            self._note_failure(node_id, error)
            raise
        except KafkaError as error:
            self._note_failure(node_id, error)
            metadata.failed_update(error, version=version)
            self._retry_after[node_id] = self._loop.time() + metadata.wait
            raise
        finally:
            metadata.requests -= 1
        self._failed.clear()
        self._retry_after.clear()
        self._failing_since = None
        metadata.update_metadata(response, whole=whole, version=version, partial=partial, prepared=prepared)
        self._log_cluster(link)
        self._connections.drop_departed()

    async def _open(self, link: Connection, deadline: float, patience: float | None) -> None:
        limit = deadline if patience is None else min(deadline, self._loop.time() + patience)
        try:
            await self._connections.open(link, limit)
        except KafkaTimeoutError as error:
            if limit < deadline:
                raise _SlowToConnectError(str(error)) from error
            raise

    async def _ask(self, link: Connection, deadline: float) -> tuple[MetadataResponse, bool, bool]:
        """Return a broker's metadata, whether it has all topics, and whether it has not all that are wanted."""
        due = self._metadata.due_topics()
        request, whole = self._request(link, due)
        response = await link.submit(request, deadline=deadline)
        code = getattr(response, "error_code", 0)
        if code == Code.REBOOTSTRAP_REQUIRED:
            self._start_over("a broker demands it")
        if code == MismatchedEndpointTypeError.errno:
            raise MismatchedEndpointTypeError(_NOT_A_CONTROLLER.format(link=link))
        if code:
            raise for_code(code)(f"{link} did not answer with metadata")
        if self._of_controllers:
            response = _metadata_of(response)
        if not response.brokers:
            raise MetadataEmptyBrokerList(f"{link} does not know any broker; it may be starting")
        return response, whole, due is not None and not whole

    def _note_failure(self, node_id: NodeId, error: KafkaError) -> None:
        # A broker that refuses the credentials can be reached: calls raise why, and its address is not looked up again.
        if not isinstance(error, SaslAuthenticationFailedError):
            self._failed.add(node_id)
        if self._failing_since is None:
            self._failing_since = self._loop.time()
        self._metadata.error = error

    def _log_cluster(self, link: Connection) -> None:
        """Log once to which cluster, and to which release of Kafka, this client is connected."""
        if self._logged_cluster or link.versions is None:
            return
        self._logged_cluster = True
        cluster, config = self._metadata, self._config
        log.info(
            "%s is connected to cluster %s through %s: Kafka %s, %d brokers, %s",
            config["client_id"] or "A client",
            printable(cluster.cluster_id or "without an id"),
            link,
            ".".join(map(str, link.versions.release)),
            len(cluster.topology.brokers),
            config["security_protocol"],
            extra={"kafka_client_id": config["client_id"]},
        )

    def _request(self, link: Connection, due: frozenset[str] | None) -> tuple[Any, bool]:
        """Return the request for what is due in this broker's version, and whether that is all topics."""
        from kafka.protocol.metadata import DescribeClusterRequest, MetadataRequest

        assert link.versions is not None
        if self._of_controllers:
            if not link.versions.reaches(DescribeClusterRequest.API_KEY, _CONTROLLERS_SINCE):
                raise UnsupportedVersionError(f"{link} does not describe controllers: that needs Kafka 3.7")
            return DescribeClusterRequest(endpoint_type=_CONTROLLERS), True
        if not link.versions.reaches(MetadataRequest.API_KEY):
            raise MismatchedEndpointTypeError(_NOT_A_BROKER.format(link=link))
        request = self._metadata.metadata_request(due)
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
        config = self._config
        if config["metadata_recovery_strategy"] != "rebootstrap":
            return
        known = set(self._metadata.topology.brokers)
        limit = config.seconds("metadata_recovery_rebootstrap_trigger_ms")
        if known and known <= self._failed:
            self._start_over("no known broker can be reached")
        elif known and self._failing_since is not None and self._loop.time() - self._failing_since > limit:
            self._start_over(f"metadata could not be refreshed for {limit:.0f} seconds")

    def _start_over(self, why: str) -> None:
        log.warning("Starting again from the bootstrap servers: %s", why)
        self._failed.clear()
        self._failing_since = None
        self._metadata.forget_brokers()
        for server in self._metadata.bootstrap_brokers():
            self._connections.context.resolver.forget(server.host)
        self._connections.drop_unready()


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
