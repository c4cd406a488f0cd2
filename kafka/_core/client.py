"""The client core: connections to the brokers of a cluster, what is known of the cluster, and routing.

Coroutines on the client's loop, which run on the thread that turns it. The faces, the coordinators and the historic
`KafkaClient` use it. It sends each request to the broker that serves it and keeps metadata fresh. It knows neither
records nor groups, and does not retry requests that a broker has answered.

Connections are split by use: a fetch that waits at the broker for data must not hold up a
heartbeat, and a broker answers the requests of one connection one after another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka._core.attempts import Attempts
from kafka._core.metadata import MetadataUpdater
from kafka._core.routing import Route, Target, route
from kafka._runtime.tasks import Task
from kafka._runtime.timers import Backoff
from kafka._text import host_port
from kafka.cluster import GROUP, TRANSACTION, ClusterMetadata
from kafka.config import OPTIONS, Config, parse_servers
from kafka.errors import (
    ClientClosedError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    NoBrokersAvailable,
    NodeNotReadyError,
    UnknownBrokerIdError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.future import Future
from kafka.net.connection import Connection
from kafka.net.environment import Environment
from kafka.net.settings import ConnectionContext, ConnectionSettings
from kafka.net.states import WAITS_FOR, ConnectionStates
from kafka.protocol.api import Request, Response
from kafka.protocol.negotiation import ApiVersions
from kafka.structs import BrokerMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.commit import FindCoordinatorRequest, FindCoordinatorResponse

__all__ = ["COORDINATOR", "DEFAULT", "FETCH", "PRODUCE", "Client", "NodeId", "core_of", "make_client"]

log = logging.getLogger(__name__)

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound=Response)
NodeId = int | str

# Uses of connections; a caller may add a name.
DEFAULT: Final = "default"
PRODUCE: Final = "produce"
FETCH: Final = "fetch"
COORDINATOR: Final = "coordinator"

# A broker that is not connected after this long, in seconds, may be slow or stuck: other brokers are preferred.
_SLOW_TO_CONNECT: Final = 1.0

# How often, in seconds, to look at a connection that is in use, with a shorter connections_max_idle_ms.
_IDLE_CHECK: Final = 0.1

_KEY_TYPES: Final = {Target.GROUP: GROUP, Target.TRANSACTION: TRANSACTION}


class Client:
    """Connections, metadata and routing for one face."""

    def __init__(self, config: Config, environment: Environment | None = None) -> None:
        self.environment = environment or Environment()
        self.config = config
        self.loop = self.environment.make_loop(config["selector"])
        self.settings = ConnectionSettings(config)
        self.context = ConnectionContext(self.loop, self.settings, self.environment)
        self.cluster = ClusterMetadata(config=config, clock=self.environment.clock)
        controllers = config.get("bootstrap_controllers")
        self.of_controllers: Final = controllers is not None
        """Whether this client talks to the controllers (KIP-919): then every "broker" is a controller."""
        if controllers is not None:
            self.cluster.set_bootstrap(parse_servers(controllers))
        self.versions: ApiVersions | None = None
        """The API versions of the first broker that answered."""
        self.closed = False
        self.delivered: Callable[[Future[Any], object], object] | None = None
        """Called with each future that a response resolved, and the response."""
        self._links: dict[tuple[NodeId, str], Connection] = {}
        self._backoff = Backoff(
            config.seconds("retry_backoff_ms"), config.seconds("retry_backoff_max_ms"), self.loop.rng
        )
        self._lookups: dict[tuple[int, str], Task[int]] = {}
        self._idle_timer_set = False
        self.face: object = None
        """The application's `KafkaClient`, which must live as long as its core."""
        self.metadata = MetadataUpdater(self)
        # However the loop ends (close, interpreter exit, a crash), no future stays unresolved.
        self.loop.on_close(self.shut_down)
        if "metrics" in config and config["metrics"] is not None:
            from kafka._core.metrics import measure

            measure(self.context, config["metrics"], config["metric_group_prefix"])

    # Connections…

    def link(self, node_id: NodeId, use: str = DEFAULT) -> Connection:
        """Return the connection to a broker for a use, connected or not."""
        if self.closed:
            raise ClientClosedError("This client is closed.")
        broker = self.cluster.broker_metadata(node_id)
        link = self._links.get((node_id, use))
        if link is not None:
            if broker is None or (broker.host, broker.port) == (link.host, link.port):
                return link
            # The broker moved: requests under way at the old address fail, and callers retry at the new one.
            del self._links[node_id, use]
            link.close(KafkaConnectionError(f"{link} is at {host_port(broker.host, broker.port)} now"))
        if broker is None:
            raise UnknownBrokerIdError(f"no broker has the id {node_id}", node_id=node_id)
        link = Connection(self.context, broker.host, broker.port, node_id=node_id)
        link.on_state = self._link_changed
        link.delivered = self.delivered
        self._links[node_id, use] = link
        return link

    def known_link(self, node_id: NodeId, use: str = DEFAULT) -> Connection | None:
        """Return the connection to a broker for a use, if one was ever asked for; from any thread."""
        return self._links.get((node_id, use))

    def links(self, node_id: NodeId | None = None) -> Iterator[Connection]:
        """Go through the connections, of one broker or of all."""
        for (known, _), link in tuple(self._links.items()):
            if node_id is None or known == node_id:
                yield link

    def _link_changed(self, link: Connection) -> None:
        if link.state is ConnectionStates.CONNECTED:
            if self.versions is None:
                self.versions = link.versions
            if not self._idle_timer_set:
                self._idle_timer_set = True
                self.loop.call_later(self.settings.max_idle, self._close_idle)
        elif (
            link.state is ConnectionStates.DISCONNECTED
            and link.error is not None
            and not self.closed
            and not self.cluster.is_bootstrap(link.node_id)
        ):
            # A broker that closed the connection may have left, and its partitions have other leaders.
            self.cluster.request_update()

    def _close_idle(self) -> None:
        """Close connections that were idle for connections_max_idle_ms, and set the timer for the next one."""
        now = self.loop.time()
        next_due = None
        for link in self.links():
            since = link.idle_since
            if link.state is ConnectionStates.DISCONNECTED:
                continue
            # One that is in use is looked at again after a while, also where connections are to be closed at once.
            due = now + max(self.settings.max_idle, _IDLE_CHECK) if since is None else since + self.settings.max_idle
            if since is not None and due <= now:
                log.debug("Closing %s, which was idle for %.0f seconds", link, now - since)
                link.disconnect()
            else:
                next_due = due if next_due is None else min(due, next_due)
        self._idle_timer_set = next_due is not None
        if next_due is not None:
            self.loop.call_at(next_due, self._close_idle)

    # Choosing a broker…

    def candidates(self) -> list[BrokerMetadata]:
        """Return the brokers to choose from: those known, else the bootstrap servers."""
        return list(self.cluster.topology.brokers.values()) or list(self.cluster.bootstrap_brokers())

    def least_loaded_node(self) -> NodeId | None:
        """Return the broker with the fewest requests under way; None if all are backing off.

        Connected brokers come first, then brokers with an attempt to connect under way, then brokers without a
        connection, those with the fewest failures first, then brokers that throttle or whose attempt takes long.
        """
        connected: list[tuple[int, float, NodeId]] = []
        connecting: list[NodeId] = []
        others: list[tuple[int, float, NodeId]] = []
        slow: list[NodeId] = []
        now = self.loop.time()
        for broker in self.candidates():
            link = self._links.get((broker.nodeId, DEFAULT))
            if link is not None and link.throttled():
                slow.append(broker.nodeId)
            elif link is not None and link.ready:
                connected.append(
                    (link.pipeline.in_flight + link.pipeline.waiting, self.loop.rng.random(), broker.nodeId)
                )
            elif link is not None and link.is_opening:
                (connecting if now - link.last_attempt < _SLOW_TO_CONNECT else slow).append(broker.nodeId)
            elif link is None or not link.backing_off():
                others.append((0 if link is None else link.failures, self.loop.rng.random(), broker.nodeId))
        if connected:
            return min(connected)[2]
        if connecting:
            return connecting[0]
        if others:
            return min(others)[2]
        return slow[0] if slow else None

    def soonest_retry(self) -> float:
        """Return when the first of the brokers that back off may be tried again."""
        times = [
            self._links[broker.nodeId, DEFAULT].retry_at
            for broker in self.candidates()
            if (broker.nodeId, DEFAULT) in self._links
        ]
        return max(min(times, default=0.0), self.loop.time())

    async def some_node(self, deadline: float) -> NodeId:
        """Wait for a broker that may be asked, and return it."""
        while True:
            node_id = self.least_loaded_node()
            if node_id is not None:
                return node_id
            soonest = self.soonest_retry()
            if soonest >= deadline:
                raise self.no_brokers_error("No broker can be reached")
            await self.loop.sleep_until(soonest)

    async def some_link(self, deadline: float) -> Connection:
        """Wait for a connection to any broker, and return it; another broker replaces one that is slow to connect."""
        while True:
            link = self.link(await self.some_node(deadline))
            try:
                await self.open(link, min(deadline, self.loop.time() + _SLOW_TO_CONNECT))
            except KafkaError as error:
                if not error.retriable or self.loop.time() >= deadline:
                    raise
            else:
                return link

    def no_brokers_error(self, what: str) -> NoBrokersAvailable:
        """Return the error that lists each address that was tried, once, with the reason of its failure."""
        reasons: dict[str, str] = {}
        for link in self.links():
            address = host_port(link.host, link.port)
            if link.error is not None:
                reason = str(link.error.args[0]).removeprefix(f"{link}: ").removeprefix(f"{address}: ")
                reasons[address] = reason.replace(f" to {link}", "")
            elif not link.ready:
                step = WAITS_FOR.get(link.state)
                reasons.setdefault(address, "no answer yet" + (f", waiting for {step}" if step else ""))
            elif self.metadata.error is not None:
                reasons.setdefault(address, str(self.metadata.error).removeprefix(f"{link} "))
        return NoBrokersAvailable(what, attempts=tuple(reasons.items()))

    # Sending…

    def submit(
        self,
        node_id: NodeId,
        request: Request[ResponseT],
        *,
        use: str = DEFAULT,
        timeout: float | None = None,
        deadline: float | None = None,
        newest: int | None = None,
    ) -> Future[ResponseT]:
        """Send a request to a broker, connecting first if need be; the future resolves to the response.

        See `Connection.submit` for the arguments.
        """
        return self.link(node_id, use).submit(request, timeout, newest, deadline=deadline)

    def attempts(self, deadline: float, what: str, *, retries: bool = True) -> Attempts:
        """Return the attempts of a call by its deadline (see `kafka._core.attempts`), which `what` names.

        Without `retries` the first error is raised.
        """
        return Attempts(self, self._backoff, deadline, what, retries=retries)

    async def request(
        self,
        request: Request[ResponseT],
        *,
        node_id: NodeId | None = None,
        use: str | None = None,
        deadline: float | None = None,
    ) -> ResponseT:
        """Send a request to the broker that serves it (see `kafka._core.routing`) and return the response.

        Waits for a broker, for metadata or for the coordinator's address by `deadline`
        (request_timeout_ms from now by default). A request that could not be sent is tried elsewhere;
        one that was sent is not tried again, and has request_timeout_ms for its response. The caller handles error
        codes in the response.
        """
        if deadline is None:
            deadline = self.loop.time() + self.settings.request_timeout
        if node_id is not None:
            return await self.submit(node_id, request, use=use or DEFAULT, deadline=deadline)
        failures = 0
        while True:
            target = route(request, self.cluster)
            coordinated = target.target in {Target.GROUP, Target.TRANSACTION}
            where = await self._node_for(target, deadline)
            try:
                return await self.submit(
                    where, request, use=use or (COORDINATOR if coordinated else DEFAULT), deadline=deadline
                )
            except (NodeNotReadyError, KafkaTimeoutError):  # it was not sent: the broker cannot be reached
                failures += 1
                if coordinated:
                    self.cluster.forget_coordinator(_KEY_TYPES[target.target], str(target.key))
                delay = 0.0 if target.target is Target.ANY else self._backoff.delay(failures)
                if self.loop.time() + delay >= deadline:
                    raise
                await self.loop.sleep(delay)

    async def _node_for(self, target: Route, deadline: float) -> NodeId:
        if target.target is Target.CONTROLLER or self.of_controllers:
            return await self.controller(deadline)
        if target.target is Target.GROUP:
            return await self.coordinator(GROUP, str(target.key), deadline)
        if target.target is Target.TRANSACTION:
            return await self.coordinator(TRANSACTION, str(target.key), deadline)
        if target.target is Target.LEADER:
            assert isinstance(target.key, TopicPartition)
            return await self.leader(target.key, deadline)
        return (await self.some_link(deadline)).node_id

    async def controller(self, deadline: float) -> int:
        """Return the controller's id, from metadata as fresh as needed."""
        while True:
            controller = self.cluster.controller
            if controller is not None:
                return int(controller.nodeId)
            try:
                await self._try_to_refresh(deadline)
            except KafkaTimeoutError as error:
                raise KafkaTimeoutError("no broker named a controller in time") from error
            if self.cluster.controller is None and self.loop.time() >= deadline:
                raise LeaderNotAvailableError("the cluster has no controller now")

    async def _try_to_refresh(self, deadline: float) -> None:
        """Refresh metadata; one attempt that fails is not the end while there is time, as for any request."""
        try:
            await self.refresh(deadline)
        except KafkaError as error:
            if not error.retriable or self.loop.time() >= deadline:
                raise

    async def leader(self, partition: TopicPartition, deadline: float) -> int:
        """Return the leader of a partition, asking for its topic if need be."""
        while True:
            leader = self.cluster.leader_for_partition(partition)
            if leader is not None and leader >= 0:
                return leader
            if partition.topic not in self.cluster.wanted_topics and not self.cluster.need_all_topic_metadata:
                self.cluster.set_topics(self.cluster.wanted_topics | {partition.topic})
            await self._try_to_refresh(deadline)
            refused = self.cluster.topic_error(partition.topic)
            if refused is not None and issubclass(refused, KafkaError) and not refused.retriable:
                raise refused(f"no leader is known for {partition.topic}-{partition.partition}")
            known = self.cluster.leader_for_partition(partition)
            if (known is None or known < 0) and self.loop.time() >= deadline:
                kind = UnknownTopicOrPartitionError if known is None else LeaderNotAvailableError
                raise kind(f"no leader is known for {partition.topic}-{partition.partition}")

    # Coordinators…

    async def coordinator(self, key_type: int, key: str, deadline: float) -> int:
        """Return the coordinator of a group (0), a transaction (1) or a share group (2), looked up if need be."""
        known = self.cluster.get_coordinator(key_type, key)
        if known is not None and known >= 0 and self.cluster.broker_metadata(int(known)) is not None:
            return int(known)
        while True:
            task = self._lookups.get((key_type, key))
            joined = task is not None and not task.is_done
            if task is None or not joined:
                task = self._lookups[key_type, key] = self.loop.spawn(self._look_up(key_type, key, deadline))
                task.add_both(lambda _: self._lookups.pop((key_type, key), None))
            try:
                with self.loop.timeout_at(deadline, f"looking up the coordinator of {key!r}"):
                    return await task
            except KafkaError as error:
                # The caller that began the lookup may have had less time; this one asks again.
                if not joined or not error.retriable or self.loop.time() >= deadline:
                    raise

    async def _look_up(self, key_type: int, key: str, deadline: float) -> int:
        found: int | str | None = None
        async for attempt in self.attempts(deadline, f"looking up the coordinator of {key!r}"):
            with attempt:
                link = await self.some_link(attempt.deadline)
                response = await link.submit(_coordinator_request(link, key_type, key), deadline=attempt.deadline)
                found = self.cluster.add_coordinator(response, key_type, key)
                if found is None:
                    raise _coordinator_error(response, key)
        assert found is not None  # the attempts end with a coordinator or an error
        return int(found)

    async def open(self, link: Connection, deadline: float) -> None:
        """Wait until a connection is ready."""
        if link.ready:
            return
        try:
            with self.loop.timeout_at(deadline, f"connecting to {link}"):
                delay = link.backing_off()
                if delay:
                    await self.loop.sleep(delay)
                await link.open()
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(f"{error}{link.why_not_ready()}") from error

    # Metadata…

    async def bootstrap(self) -> None:
        """Get the first metadata from a bootstrap server, and keep it fresh from now on.

        Errors of credentials and configuration are raised at once; when no server answers within
        bootstrap_timeout_ms, NoBrokersAvailable lists each and why it did not.
        """
        await self.metadata.bootstrap()

    async def begin(self) -> None:
        """Get the first metadata as `bootstrap` does; with bootstrap_timeout_ms=0 a cluster may come later.

        Each bootstrap server is asked once. If no broker is there, the client looks for one in the background, and
        calls wait for it until their own deadlines.
        """
        await self.metadata.bootstrap(patient=self.settings.discovery_timeout == 0)

    async def refresh(self, deadline: float) -> None:
        """Request metadata and wait for the response; raise the error of the request."""
        await self.metadata.refresh(deadline)

    def drop_departed(self) -> None:
        """Close connections to brokers that left the cluster and to bootstrap servers, unless requests are under way.

        The connection to a bootstrap server that turns out to be a broker is kept as that broker's.
        """
        brokers = self.cluster.topology.brokers
        by_address = {(broker.host, broker.port): node_id for node_id, broker in brokers.items()}
        for (node_id, use), link in tuple(self._links.items()):
            if node_id in brokers or (not isinstance(node_id, str) and self.cluster.broker_metadata(node_id)):
                continue
            real = by_address.get((link.host, link.port))
            if link.ready and real is not None and (real, use) not in self._links:
                del self._links[node_id, use]
                link.node_id = real
                self._links[real, use] = link
            elif link.idle_since is not None:
                del self._links[node_id, use]
                link.close()

    def drop_unready(self) -> None:
        """Forget connections that are not open, with their backoff: the addresses are about to change."""
        for (node_id, use), link in tuple(self._links.items()):
            if not link.ready:
                del self._links[node_id, use]
                link.close(KafkaConnectionError(f"{link} is no longer part of the cluster"))

    # Health…

    def health(self) -> dict[str, Any]:
        """Return what works and what does not, and why: for people, probes and dashboards.

        Producers, consumers and clients answer in the same form, which ``json.dumps`` takes. ``ok`` is true as long as
        the client is open and ``problems`` is empty. ``problems`` has one sentence for each thing that blocks the
        client; ``brokers`` has for each connection its state, its error and how often it failed in a row; ``topics``
        has the topics that the cluster refuses, with the error; ``metadata_age_s`` is None before the first metadata;
        ``partitions`` is empty here, and has the partitions of a producer or a consumer.
        """
        return self.health_with({})

    def health_with(
        self, partitions: dict[str, dict[str, Any]], problems: Iterable[str] = (), *, closed: bool = False, **more: Any
    ) -> dict[str, Any]:
        """Return `health()` with the partitions of a producer or a consumer, its own problems, and more entries.

        A partition has at least a ``leader``, None if that is not known, and a ``problem``, None if there is none.
        """
        links = dict(self._links)  # a copy: another thread may ask while connections come and go
        # An error of one connection does not count if another connection reaches the broker.
        reached = {node_id for (node_id, _), link in links.items() if link.ready}
        lost = {
            node_id: str(link.error)
            for (node_id, _), link in links.items()
            if link.error is not None and node_id not in reached
        }
        for entry in partitions.values():
            entry["problem"] = entry["problem"] or lost.get(entry["leader"])
        topology = self.cluster.topology
        wanted = topology.errors if self.cluster.need_all_topic_metadata else self.cluster.wanted_topics
        topics = {name: for_code(code).__name__ for name, code in topology.errors.items() if name in wanted}
        age = self.cluster.update_age()
        closed = closed or self.closed
        found = list(problems)
        if age is None:
            found.append("the cluster has not sent metadata yet")
        if not reached:
            found += lost.values()
            if not lost and self.metadata.error is not None:  # the lost connections are forgotten already
                found.append(f"metadata could not be refreshed: {self.metadata.error}")
        found += [f"topic {name!r}: {error}" for name, error in topics.items()]
        found += [f"{name}: {entry['problem']}" for name, entry in partitions.items() if entry["problem"]]
        return {
            "ok": not closed and not found,
            "closed": closed,
            "problems": list(dict.fromkeys(found)),
            "metadata_age_s": age,
            "brokers": {
                f"{node_id}/{use}": {
                    "address": host_port(link.host, link.port),
                    "state": link.state.value.strip("<>"),
                    "error": None if link.error is None else str(link.error),
                    "failures": link.failures,
                    "in_flight": link.pipeline.in_flight,
                    "throttled_s": link.throttled(),
                }
                for (node_id, use), link in links.items()
            },
            "topics": topics,
            "partitions": partitions,
            **more,
        }

    # Ending…

    def close_links(self, error: KafkaError | None = None) -> None:
        """Close every connection for good; requests under way fail."""
        while self._links:  # a callback of a closed connection may ask for another
            _, link = self._links.popitem()
            link.close(error)

    def close_links_to(self, node_id: NodeId) -> None:
        """Close the connections to one broker for good."""
        for key in [key for key in self._links if key[0] == node_id]:
            self._links.pop(key).close()

    def shut_down(self) -> None:
        """Close connections and stop keeping metadata. Idempotent; the loop's driver closes the loop."""
        if self.closed:
            return
        self.closed = True  # first: a callback of a closed connection gets no other
        self.metadata.stop()
        self.close_links(ClientClosedError("The client was closed."))
        self.cluster.failed_update(ClientClosedError("The client was closed."))

    def __repr__(self) -> str:
        ready = sum(link.ready for link in self.links())
        return f"<{type(self).__name__} {self.cluster} connected={ready} of {len(self._links)}>"


def _coordinator_request(link: Connection, key_type: int, key: str) -> FindCoordinatorRequest:
    from kafka.protocol.commit import FindCoordinatorRequest

    assert link.versions is not None
    if link.versions.version_for(FindCoordinatorRequest()) >= 4:
        return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    return FindCoordinatorRequest(key_type=key_type, key=key)


def _coordinator_error(response: FindCoordinatorResponse, key: str) -> KafkaError:
    entry = next((entry for entry in response.coordinators or ()), response)
    return for_code(entry.error_code)(entry.error_message or f"no coordinator is known for {key!r}")


def core_of(client: Any) -> Client:
    """Return the core of a `KafkaClient`; a core is its own."""
    core: Client = getattr(client, "core", client)
    return core


# Where `kafka_client` makes the client of a face: the face's environment. The face looks for the brokers itself.
face_environment: Final[ContextVar[tuple[Environment | None] | None]] = ContextVar("face_environment", default=None)


def make_client(config: Config, environment: Environment | None = None) -> Client:
    """Return the client core for a face with this configuration; it has not looked for a broker yet.

    With the option `kafka_client` it is the core of the application's `KafkaClient`, which gets the given options that
    a client has.
    """
    factory = config["kafka_client"]
    if factory is None:
        return Client(config, environment)
    options = {name: config[name] for name in config.given if "client" in OPTIONS[name].kinds}
    options.setdefault("client_id", config["client_id"])
    token = face_environment.set((environment,))
    try:
        made = factory(**options)
    finally:
        face_environment.reset(token)
    core = core_of(made)
    if not isinstance(core, Client):
        raise KafkaConfigurationError(
            f"kafka_client must make a KafkaClient, not a {type(made).__name__}", option="kafka_client"
        )
    core.face = made
    return core
