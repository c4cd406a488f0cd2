"""The client core: connections to the brokers of a cluster, what is known of the cluster, and routing.

Coroutines on the client's loop, which run on the thread that turns it. The faces, the coordinators and the historic
`KafkaClient` use it. It sends each request to the broker that serves it and keeps metadata fresh. It knows neither
records nor groups, and does not retry requests that a broker has answered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka._core.attempts import Attempts, is_not_sent, is_retriable
from kafka._core.connections import DEFAULT, Connections, NodeId
from kafka._core.metadata_updater import MetadataUpdater
from kafka._core.routing import Route, Target, route
from kafka._runtime.tasks import Task
from kafka._runtime.timers import Backoff
from kafka._text import host_port
from kafka.cluster import GROUP, TRANSACTION, ClusterMetadata
from kafka.config import OPTIONS, Config, parse_servers
from kafka.errors import (
    ClientClosedError,
    KafkaConfigurationError,
    KafkaError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.future import Future
from kafka.net.connection import Connection
from kafka.net.environment import Environment
from kafka.net.settings import ConnectionContext, ConnectionSettings
from kafka.protocol.api import Request, Response
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka._core.telemetry import Telemetry
    from kafka.metrics.series import Series
    from kafka.protocol.commit import FindCoordinatorRequest, FindCoordinatorResponse

__all__ = ["COORDINATOR", "DEFAULT", "FETCH", "PRODUCE", "Client", "Facts", "NodeId", "core_of", "make_client"]

ResponseT = TypeVar("ResponseT", bound=Response)

# Uses of connections, beside `DEFAULT`; a caller may add a name.
PRODUCE: Final = "produce"
FETCH: Final = "fetch"
COORDINATOR: Final = "coordinator"

_KEY_TYPES: Final = {Target.GROUP: GROUP, Target.TRANSACTION: TRANSACTION}


class Client(Connections):
    """Connections, metadata and routing for one face."""

    def __init__(self, config: Config, environment: Environment | None = None) -> None:
        self.environment = environment or Environment()
        self.config = config
        loop = self.environment.make_loop(config["selector"])
        cluster = ClusterMetadata(config=config, clock=self.environment.clock, rng=loop.rng)
        super().__init__(ConnectionContext(loop, ConnectionSettings(config), self.environment), cluster)
        controllers = config.get("bootstrap_controllers")
        self.of_controllers: Final = controllers is not None
        """Whether this client talks to the controllers (KIP-919): then every "broker" is a controller."""
        if controllers is not None:
            cluster.set_bootstrap(parse_servers(controllers))
        self.backoff: Final = Backoff(
            config.seconds("retry_backoff_ms"), config.seconds("retry_backoff_max_ms"), loop.rng
        )
        """The backoff of everything that is tried again."""
        self.metadata = MetadataUpdater(self, config, of_controllers=self.of_controllers)
        self._lookups: dict[tuple[int, str], Task[int]] = {}
        self.series: Series | None = None
        """What Prometheus and OpenTelemetry show of this client; None if its metrics are off."""
        self.telemetry: Telemetry | None = None
        """Pushes the metrics of this client to brokers; None if that is off."""
        self.face: object = None
        """The application's `KafkaClient`, which must live as long as its core."""
        # However the loop ends (close, interpreter exit, a crash), no future stays unresolved.
        loop.on_close(self.shut_down)
        if "metrics" in config and config["metrics"] is not None:
            from kafka._core.metrics import measure

            measure(self.context, config["metrics"], config["metric_group_prefix"])

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

    def attempts(self, deadline: float, what: str, may_retry: Callable[[KafkaError], bool] = is_retriable) -> Attempts:
        """Return the attempts of a call by its deadline (see `kafka._core.attempts`), which `what` names.

        An error for which `may_retry` is false is raised.
        """
        return Attempts(self, deadline, what, may_retry=may_retry)

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
        name = type(request).__name__
        async for attempt in Attempts(self, deadline, name, may_retry=is_not_sent):
            with attempt:
                target = route(request, self.cluster)
                coordinated = target.target in {Target.GROUP, Target.TRANSACTION}
                where = await self._node_for(target, deadline)
                try:
                    return await self.submit(
                        where, request, use=use or (COORDINATOR if coordinated else DEFAULT), deadline=deadline
                    )
                except KafkaError as error:
                    if coordinated and is_not_sent(error):
                        self.cluster.forget_coordinator(_KEY_TYPES[target.target], str(target.key))
                    raise
        raise AssertionError("the attempts end with a result or an error")

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
        async for attempt in self.attempts(deadline, "finding the controller"):
            with attempt:
                if self.cluster.controller is None and not attempt.failures:
                    await self.refresh(attempt.deadline)
                if self.cluster.controller is None:
                    raise LeaderNotAvailableError("the cluster has no controller now")
        assert self.cluster.controller is not None  # the attempts end with a controller or an error
        return int(self.cluster.controller.nodeId)

    async def leader(self, partition: TopicPartition, deadline: float) -> int:
        """Return the leader of a partition, asking for its topic if need be."""
        cluster, leader = self.cluster, self.cluster.leader_for_partition(partition)
        async for attempt in self.attempts(deadline, f"finding the leader of {partition.topic}-{partition.partition}"):
            attempt.topics = {partition.topic}
            with attempt:
                if (leader is None or leader < 0) and not attempt.failures:
                    if partition.topic not in cluster.wanted_topics and not cluster.need_all_topic_metadata:
                        cluster.set_topics(cluster.wanted_topics | {partition.topic})
                    await self.refresh(attempt.deadline, {partition.topic})
                leader = cluster.leader_for_partition(partition)
                if leader is None or leader < 0:
                    unknown = UnknownTopicOrPartitionError if leader is None else LeaderNotAvailableError
                    refused = cluster.topic_error(partition.topic) or unknown
                    raise refused(f"no leader is known for {partition.topic}-{partition.partition}")
        assert leader is not None  # the attempts end with a leader or an error
        return leader

    # Coordinators…

    async def coordinator(self, key_type: int, key: str, deadline: float) -> int:
        """Return the coordinator of a group (0), a transaction (1) or a share group (2), looked up if need be."""
        known = self.cluster.get_coordinator(key_type, key)
        if known is not None and known >= 0 and self.cluster.broker_metadata(int(known)) is not None:
            return int(known)
        # A caller that began the lookup may have had less time than one that joined it: then that one asks again.
        async for attempt in self.attempts(deadline, f"looking up the coordinator of {key!r}"):
            with attempt:
                task = self._lookups.get((key_type, key))
                if task is None or task.is_done:
                    task = self._lookups[key_type, key] = self.loop.spawn(self._look_up(key_type, key, deadline))
                    task.add_both(lambda _: self._lookups.pop((key_type, key), None))
                with self.loop.timeout_at(deadline, f"looking up the coordinator of {key!r}"):
                    return await task
        raise AssertionError("the attempts end with a result or an error")

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

    # Metadata…

    async def bootstrap(self) -> None:
        """Get the first metadata from a bootstrap server, and keep it fresh from now on.

        Errors of credentials and configuration are raised at once; when no server answers within
        bootstrap_timeout_ms, NoBrokersAvailable lists each and why it did not.
        """
        await self.metadata.bootstrap()
        self._fill_release()

    async def begin(self) -> None:
        """Get the first metadata as `bootstrap` does; with bootstrap_timeout_ms=0 a cluster may come later.

        Each bootstrap server is asked once. If no broker is there, the client looks for one in the background, and
        calls wait for it until their own deadlines.
        """
        await self.metadata.bootstrap(patient=self.settings.discovery_timeout == 0)
        self._fill_release()

    def _fill_release(self) -> None:
        """Have the release of the brokers in the configuration, where programs of kafka-python read it."""
        if (versions := self.versions) is not None:
            self.config.fill("api_version", lambda: versions.release)

    async def refresh(self, deadline: float, topics: Collection[str] = ()) -> None:
        """Request metadata, of some topics or of all that are wanted, and wait; raise the error of the request."""
        await self.metadata.refresh(deadline, topics)

    # Health…

    def health(self) -> dict[str, Any]:
        """Return what works and what does not, and why: for people, probes and dashboards.

        Producers, consumers and clients answer in the same form, which ``json.dumps`` takes. ``ok`` is true as long as
        the client is open and ``problems`` is empty. ``problems`` has one sentence for each thing that blocks the
        client; ``brokers`` has for each connection its state, its error and how often it failed in a row; ``topics``
        has the topics that the cluster refuses, with the error; ``metadata_age_s`` is None before the first metadata;
        ``metadata_state`` is "fresh", "due", "requested", or "backing off" after a failure;
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
        found = [*problems] if self.loop.broken is None else [str(self.loop.broken), *problems]
        if age is None:
            found.append("the cluster has not sent metadata yet")
        if not reached:
            found += lost.values()
            if not lost and self.cluster.error is not None:  # the lost connections are forgotten already
                found.append(f"metadata could not be refreshed: {self.cluster.error}")
        found += [f"topic {name!r}: {error}" for name, error in topics.items()]
        found += [f"{name}: {entry['problem']}" for name, entry in partitions.items() if entry["problem"]]
        return {
            "ok": not closed and not found,
            "closed": closed,
            "problems": list(dict.fromkeys(found)),
            "metadata_age_s": age,
            "metadata_state": self.cluster.state.value,
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

    async def end(self, deadline: float) -> None:
        """Push the last metrics, for a second and by the deadline at most, and shut down."""
        try:
            if self.telemetry is not None:
                await self.telemetry.finish(deadline)
        finally:
            self.shut_down()

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


class Facts:
    """The facts about a client for its tracer (`kafka._hooks.ClientFacts`)."""

    def __init__(self, client: Client, face: str) -> None:
        self.face = face
        self._client = client

    @property
    def client_id(self) -> str:
        """The name of the client."""
        return self._client.config["client_id"] or ""

    @property
    def group_id(self) -> str | None:
        """The group of a consumer."""
        group_id: str | None = self._client.config.get("group_id")
        return group_id

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster; None before it is known."""
        return self._client.cluster.cluster_id

    def address(self, topic: str, partition: int) -> tuple[str, int] | None:
        """Return host and port of the leader of a partition, if it is known."""
        cluster = self._client.cluster
        leader = cluster.leader_for_partition(TopicPartition(topic, partition))
        broker = None if leader is None else cluster.broker_metadata(leader)
        return None if broker is None else (broker.host, broker.port)


def _coordinator_request(link: Connection, key_type: int, key: str) -> FindCoordinatorRequest:
    from kafka.protocol.commit import FindCoordinatorRequest

    assert link.versions is not None
    if link.versions.version_for(FindCoordinatorRequest()) >= 4:
        return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    return FindCoordinatorRequest(key_type=key_type, key=key)


def _coordinator_error(response: FindCoordinatorResponse, key: str) -> KafkaError:
    entry = next((entry for entry in response.coordinators or ()), response)
    error = for_code(entry.error_code)
    why = f"no coordinator is known for {key!r}" if error.retriable else f"{key!r}: {error.description}"
    return error(entry.error_message or why)


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
