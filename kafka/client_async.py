"""`KafkaClient`, the historic low-level client: requests to the brokers of a cluster, driven by `poll`.

It gives the client core (`kafka._core.client`) the names, units and calling rules of the manuals, for programs that
speak the protocol themselves. One thread at a time; the thread that polls turns the loop.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from kafka._arguments import check_callable, check_node, check_request, check_time, checked_topics
from kafka._core.client import Client, NodeId, face_environment
from kafka._core.offset_lookup import OffsetLookup
from kafka._runtime.network_thread import run_here
from kafka._runtime.signals import SignalsDeferred
from kafka._runtime.timers import Timer
from kafka.cluster import ClusterMetadata
from kafka.config import Config, defaults, given_options, resolve
from kafka.conn import can_send_more, connection_delay_ms, send_if_connected
from kafka.errors import (
    Cancelled,
    ClientClosedError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    NodeNotReadyError,
    UnknownBrokerIdError,
)
from kafka.future import Future
from kafka.net.environment import Environment
from kafka.protocol.broker_release import KNOWN_RELEASES
from kafka.structs import OffsetAndTimestamp, TopicPartition, check_topic

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from kafka.net.connection import Connection
    from kafka.options import ClientOptions
    from kafka.protocol.api import Request, Response

__all__ = ["KafkaClient"]

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound="Response")

log = logging.getLogger(__name__)

# Releases that have a shorter name too.
_SHORT: Final[dict[tuple[int, ...], tuple[tuple[int, ...], ...]]] = {
    (0, 11, 0): ((0, 11),),
    (0, 10, 0): ((0, 10),),
    (0, 9, 0): ((0, 9),),
}


class KafkaClient:
    """A client for requests of the protocol.

    ::

        client = KafkaClient(bootstrap_servers="localhost:9092")
        node_id = client.least_loaded_node()
        client.await_ready(node_id)
        future = client.send(node_id, MetadataRequest[1](["events"]))
        client.poll(future=future)
        print(future.value)

    Keyword arguments are the options in ``KafkaClient.DEFAULT_CONFIG``. `sasl_mechanism` is one of PLAIN, GSSAPI,
    OAUTHBEARER, SCRAM-SHA-256, SCRAM-SHA-512 and AWS_MSK_IAM. Unless `api_version` is given
    the constructor connects and asks a broker for it, for bootstrap_timeout_ms at most, and raises
    NoBrokersAvailable if none answers.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = defaults("client")
    API_VERSIONS: Final = [name for release in reversed(KNOWN_RELEASES) for name in (release, *_SHORT.get(release, ()))]

    def __init__(
        self,
        options: Mapping[str, object] | None = None,
        /,
        *,
        config: Config | None = None,
        environment: Environment | None = None,
        bootstrap: bool = True,
        **configs: Unpack[ClientOptions],
    ) -> None:
        if config is None:
            config = resolve("client", given_options("KafkaClient", options, configs), self.DEFAULT_CONFIG)
        face = face_environment.get()
        if face is not None:  # made by the option `kafka_client`, which is called with options alone
            (environment,), bootstrap = face, False
        self.core = Client(config, environment)
        """The client core: connections, metadata and routing."""
        self.config = self.core.config
        self.cluster = self.core.cluster
        self._loop = self.core.loop
        self._arrived: list[Any] = []
        self._polling = False
        self._woken = False
        self._scheduled: dict[Callable[[], object], tuple[Timer, Future[Any]]] = {}
        self._overdue: list[Callable[[], object]] = []
        self._delayed_tasks = True
        self.core.delivered = self._delivered
        if bootstrap and self.config["api_version"] is None:
            try:
                self._run(self.core.bootstrap())
            except BaseException:
                self.close()
                raise

    # Connections…

    def link(self, node_id: NodeId, use: str = "default") -> Connection:
        """Return the connection to a broker for a use, connected or not."""
        check_node(node_id)
        return self.core.link(node_id, use)

    def _delivered(self, _future: Future[Any], response: Any) -> None:
        if self._polling:  # `poll` returns the responses; a driver's thread has no use for them
            self._arrived.append(response)

    def _known(self, node_id: NodeId) -> Connection | None:
        check_node(node_id)
        return self.core.known_link(node_id)

    def least_loaded_node(self) -> NodeId | None:
        """Return the broker with the fewest requests under way, connected ones first; None if all are backing off."""
        return self.core.least_loaded_node()

    def maybe_connect(self, node_id: NodeId, wakeup: bool = True) -> bool:
        """Begin to connect to a broker, unless it is backing off; return whether an attempt is under way or done."""
        try:
            link = self.link(node_id)
        except UnknownBrokerIdError:
            return False
        if not link.ready and not link.backing_off():
            link.open()
            if wakeup:
                self._loop.wakeup()
        return not link.is_disconnected

    def ready(self, node_id: NodeId, metadata_priority: bool = True) -> bool:
        """Whether a request can be sent to a broker now; otherwise the next polls connect."""
        self.maybe_connect(node_id)
        return self.is_ready(node_id, metadata_priority)

    def is_ready(self, node_id: NodeId, metadata_priority: bool = True) -> bool:
        """Whether a request can be sent to a broker now; due metadata has priority."""
        link = self._known(node_id)
        if metadata_priority and (self.core.metadata.refreshing or self.cluster.ttl() == 0):
            return False
        return link is not None and link.ready and not link.throttled() and can_send_more(link)

    def await_ready(self, node_id: NodeId, timeout_ms: float = 30000) -> bool:
        """Wait for the connection to a broker; KafkaConnectionError if that takes longer than the timeout."""
        check_time("timeout_ms", timeout_ms)
        link = self.link(node_id)
        deadline = self._loop.time() + timeout_ms / 1000
        try:
            self._run(self.core.open(link, deadline))
        except KafkaTimeoutError as error:
            raise KafkaConnectionError(f"{link} is not ready after {timeout_ms:g} ms{link.why_not_ready()}") from error
        return True

    def connected(self, node_id: NodeId) -> bool:
        """Whether there is a connection to a broker."""
        link = self._known(node_id)
        return link is not None and link.ready

    def is_disconnected(self, node_id: NodeId) -> bool:
        """Whether the connection to a broker was closed or has failed."""
        link = self._known(node_id)
        return link is not None and link.is_disconnected

    def connection_delay(self, node_id: NodeId) -> float:
        """Milliseconds to wait before sending: the backoff, 0 while connecting, infinity when connected."""
        link = self._known(node_id)
        return 0 if link is None else connection_delay_ms(link)

    def throttle_delay(self, node_id: NodeId) -> float:
        """Milliseconds until a broker accepts more requests; 0 for now."""
        link = self._known(node_id)
        return 0 if link is None else link.throttled() * 1000

    def bootstrap_connected(self) -> bool:
        """Whether there is a connection to a bootstrap server or to a broker."""
        return any(link.ready for link in self.core.links())

    def in_flight_request_count(self, node_id: NodeId | None = None) -> int:
        """How many requests are under way, to one broker or to all."""
        if node_id is not None:
            check_node(node_id)
        return sum(link.in_flight_requests for link in self.core.links(node_id))

    # Sending…

    def send(self, node_id: NodeId, request: Request[ResponseT], wakeup: bool = True) -> Future[ResponseT]:
        """Send a request to a broker; the future resolves to the response.

        UnknownBrokerIdError if the broker is not known. Fails with NodeNotReadyError unless `ready` says so;
        to wait for the connection instead, use `submit`.
        """
        check_node(node_id)
        check_request(request)
        if self.cluster.broker_metadata(node_id) is None:
            raise UnknownBrokerIdError(f"no broker has the id {node_id!r}", node_id=node_id)
        if not self.maybe_connect(node_id, wakeup=False) or not self.connected(node_id):
            return Future[ResponseT]().failure(NodeNotReadyError(f"broker {node_id} is not ready"))
        future = send_if_connected(self.core.link(node_id), request)
        if wakeup:
            self._loop.wakeup()
        return future

    def submit(
        self,
        node_id: NodeId,
        request: Request[ResponseT],
        *,
        use: str = "default",
        timeout: float | None = None,
        newest: int | None = None,
    ) -> Future[ResponseT]:
        """Send a request to a broker, connecting first if need be; the future resolves to the response.

        Each `use` has a separate connection, so that a large response does not hold up others.
        A request is sent in the newest version that the broker has. `newest` is a limit, for a message whose later
        versions need what the program does not have: ``FetchRequest`` names topics by id from version 13 on.
        """
        check_request(request)
        if timeout is not None:
            check_time("timeout", timeout, unit="seconds")
        return self.core.submit(node_id, request, use=use, timeout=timeout, newest=newest)

    def ask(
        self, request: Request[ResponseT], node_id: NodeId | None = None, timeout_ms: float | None = None
    ) -> ResponseT:
        """Send a request to the broker that serves it and wait for the response.

        That is the controller, a partition's leader, the coordinator of a group or a transaction, or any broker,
        depending on the API; or `node_id`. The caller handles error codes in the response.

        >>> from kafka.broker import Broker
        >>> from kafka.protocol.metadata import MetadataRequest
        >>> with Broker(topics={"events": 2}) as broker:
        ...     with KafkaClient(bootstrap_servers=broker.bootstrap_servers) as client:
        ...         response = client.ask(MetadataRequest(topics=[{"name": "events"}]))
        >>> len(response.topics[0].partitions)
        2
        """
        check_request(request)
        if node_id is not None:
            check_node(node_id)
        if timeout_ms is not None:
            check_time("timeout_ms", timeout_ms)
        timeout = self.core.settings.request_timeout if timeout_ms is None else timeout_ms / 1000
        return self._run(self.core.request(request, node_id=node_id, deadline=self._loop.time() + timeout))

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, committed_only: bool = False, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset of each partition at or after a time in milliseconds; -1: the end, -2: the beginning.

        None stands for a partition whose records are all earlier. With `committed_only` the end is the last stable
        offset, before the first open transaction. Leaders are asked at the same time, and followed when they move;
        KafkaTimeoutError if that takes longer than the timeout (``request_timeout_ms`` by default).

        >>> from kafka import TopicPartition
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaClient(bootstrap_servers=broker.bootstrap_servers) as client:
        ...         client.list_offsets({TopicPartition("events", 0): -1})
        {TopicPartition(topic='events', partition=0): OffsetAndTimestamp(offset=0, timestamp=-1, leader_epoch=0)}
        """
        if timeout_ms is not None:
            check_time("timeout_ms", timeout_ms)
        timeout = self.core.settings.request_timeout if timeout_ms is None else timeout_ms / 1000
        lookup = OffsetLookup(self.core, committed_only=committed_only)
        return self._run(lookup.find(dict(timestamps), self._loop.time() + timeout))

    def poll(
        self,
        timeout_ms: float | None = None,
        future: Future[Any] | None = None,
        sleep: bool = True,
        delayed_tasks: bool = True,
    ) -> list[Any]:
        """Send and receive until a response arrives, `future` is done, or the timeout expires; return the responses.

        Without a `future`, `wakeup` ends it too.
        Runs scheduled tasks too, unless `delayed_tasks` is false. With `sleep=False` it does not wait if no request
        is under way.
        """
        if timeout_ms is None:
            timeout_ms = self.config["request_timeout_ms"]
        check_time("timeout_ms", timeout_ms)
        if future is not None and not hasattr(future, "is_done"):
            raise TypeError(f"future must be a Future, as send() returns it, not {future!r}")
        self.core.metadata.start()
        self._delayed_tasks = delayed_tasks
        if delayed_tasks:
            self._run_overdue()
        if not sleep and future is None and not self._busy():
            timeout_ms = 0
        self._polling = True
        try:
            self._turn_until(self._loop.time() + timeout_ms / 1000, future)
        finally:
            self._polling = self._woken = False
            arrived, self._arrived = self._arrived, []
        return arrived

    def _turn_until(self, deadline: float, future: Future[Any] | None) -> None:
        """Turn the loop at least once, until there is something to return or the timeout expires."""
        with SignalsDeferred(self._loop) as pending:
            while not pending:
                remaining = deadline - self._loop.time()
                ended = self._woken if future is None else future.is_done
                self._loop.turn(0 if ended else max(0.0, remaining))
                if remaining <= 0 or ((self._woken or bool(self._arrived)) if future is None else future.is_done):
                    return

    def _busy(self) -> bool:
        return any(link.is_opening or link.in_flight_requests for link in self.core.links())

    def wakeup(self) -> None:
        """End the poll of another thread, or the next poll before it waits, unless that poll waits for a future."""
        self._woken = True
        self._loop.wakeup()

    # Metadata…

    def set_topics(self, topics: Iterable[str]) -> Future[ClusterMetadata]:
        """Track these topics; the future resolves when they are known."""
        names = checked_topics(topics, "add_topic")
        self._loop.check_usable()
        return self._tracked(self.cluster.set_topics(names))

    def add_topic(self, topic: str) -> Future[ClusterMetadata]:
        """Track one more topic; the future resolves when it is known."""
        check_topic(topic)
        self._loop.check_usable()
        return self._tracked(self.cluster.add_topic(topic))

    def _tracked(self, future: Future[ClusterMetadata]) -> Future[ClusterMetadata]:
        self.core.metadata.start()
        return future

    # Versions…

    @property
    def api_version(self) -> tuple[int, ...] | None:
        """The release of the brokers: as configured, or as a broker reports it."""
        stated: tuple[int, ...] | None = self.config["api_version"]
        return stated or (self.core.versions.release if self.core.versions is not None else None)

    def check_version(
        self,
        node_id: NodeId | None = None,
        timeout: float = 2,
        strict: bool = False,  # noqa: ARG002 - historic: the client does not guess
    ) -> tuple[int, ...]:
        """The release of a broker, or of any; blocks for `timeout` seconds.

        NodeNotReadyError if that broker, NoBrokersAvailable if no broker answered.
        """
        check_time("timeout", timeout, unit="seconds")
        if node_id is not None:
            check_node(node_id)
        deadline = self._loop.time() + timeout
        try:
            if node_id is None:
                return self._run(self._any_version(deadline))
            return self._run(self._version_of(node_id, deadline))
        except NoBrokersAvailable:
            raise
        except KafkaError as error:
            if not error.retriable:
                raise
            if node_id is None:
                raise self.core.no_brokers_error("No broker answered with its version") from error
            raise NodeNotReadyError(f"broker {node_id} did not answer with its version: {error}") from error

    async def _version_of(self, node_id: NodeId, deadline: float) -> tuple[int, ...]:
        link = self.core.link(node_id)
        await self.core.open(link, deadline)
        assert link.versions is not None
        return link.versions.release

    async def _any_version(self, deadline: float) -> tuple[int, ...]:
        while True:
            node_id = await self.core.some_node(deadline)
            try:
                return await self._version_of(node_id, deadline)
            except KafkaError as error:
                if not error.retriable or self._loop.time() >= deadline:
                    raise

    def get_api_versions(self) -> dict[int, tuple[int, int]] | None:
        """API keys with the lowest and highest version of the brokers; None before the first connection."""
        return None if self.core.versions is None else dict(self.core.versions.ranges)

    # Tasks…

    def schedule(self, task: Callable[[], T], at: float) -> Future[T]:
        """Call `task()` in the first poll after `at` (seconds since the epoch); the future is of its result.

        A task that is scheduled already gets the new time, and keeps its future.
        """
        check_callable("task", task)
        check_time("at", at, unit="seconds since the epoch", least=float("-inf"))
        self._loop.check_usable()
        found = self._remove(task)
        future: Future[T] = Future() if found is None else found
        delay = max(0.0, at - self.core.environment.clock.time())
        self._scheduled[task] = (self._loop.call_later(delay, self._due, task), future)
        return future

    def unschedule(self, task: Callable[[], object]) -> None:
        """Remove a task, whose future fails with `Cancelled`; nothing happens if it is not scheduled."""
        check_callable("task", task)
        future = self._remove(task)
        if future is not None:
            future.try_failure(Cancelled(f"{task!r} was taken back by unschedule()"))

    def _remove(self, task: Callable[[], object]) -> Future[Any] | None:
        timer, future = self._scheduled.pop(task, (None, None))
        if timer is not None:
            timer.cancel()
        if task in self._overdue:
            self._overdue.remove(task)
        return future

    def _due(self, task: Callable[[], object]) -> None:
        self._overdue.append(task)
        if self._delayed_tasks:
            self._run_overdue()

    def _run_overdue(self) -> None:
        while self._overdue:  # one at a time: a task may remove or reschedule another
            task = self._overdue.pop(0)
            _, future = self._scheduled.pop(task)
            try:
                future.try_success(task())
            except Exception as error:  # the task's error is its result
                future.try_failure(error)

    def health(self) -> dict[str, Any]:
        """Return what works and what does not, and why, in the form of all clients (see `docs/operations.rst`)."""
        return self.core.health()

    # Ending…

    def close(self, node_id: NodeId | None = None) -> None:
        """Close the connections to one broker; without a broker, close the client."""
        if node_id is not None:
            check_node(node_id)
            self.core.close_links_to(node_id)
            return
        self.core.shut_down()
        for task in tuple(self._scheduled):
            if (future := self._remove(task)) is not None:
                future.try_failure(ClientClosedError(f"The client was closed before {task!r} was due."))
        if not self._loop.in_pass:
            self._loop.close(0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, coro: Coroutine[Any, Any, T]) -> T:
        """Turn the loop in this thread until a coroutine has ended."""
        return run_here(self._loop, self._loop.spawn(coro))

    def __del__(self) -> None:
        loop = getattr(self, "_loop", None)
        if loop is None or loop.closed:
            return
        # A client that was closed in a callback still has its loop, and tasks on it that have not begun.
        try:
            if not self.core.closed:
                warnings.warn(f"{self!r} was not closed: use it in a with statement", ResourceWarning, stacklevel=2)
        finally:  # warnings may be errors
            self.core.shut_down()
            loop.close(0.0)

    def __repr__(self) -> str:
        name = type(self).__name__
        return repr(self.core).replace("Client", name, 1) if "core" in vars(self) else f"<{name} not made>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a KafkaClient cannot be copied or pickled: create one in each process that needs one")
