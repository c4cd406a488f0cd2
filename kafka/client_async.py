"""`KafkaClient`, the historic low-level client: raw requests to the brokers of a cluster, driven by `poll`.

It is the client core (`kafka._core.client`) with the names, units and calling rules of the manuals, for
programs that speak the protocol themselves. One thread at a time; whoever polls turns the loop.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from kafka._arguments import check_callable, check_node, check_request, check_time, checked_topics
from kafka._core.client import Client, NodeId
from kafka._runtime.network_thread import run_here
from kafka._runtime.signals import SignalsDeferred
from kafka._runtime.timers import Timer
from kafka.cluster import ClusterMetadata
from kafka.config import Config, defaults, resolve
from kafka.conn import BrokerConnection
from kafka.errors import (
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
from kafka.structs import check_topic

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["KafkaClient"]

T = TypeVar("T")

log = logging.getLogger(__name__)


class KafkaClient(Client):
    """A client for raw requests.

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

    DEFAULT_CONFIG: Final[dict[str, Any]] = defaults("client")
    API_VERSIONS: Final = list(reversed(KNOWN_RELEASES))

    def __init__(
        self,
        *,
        config: Config | None = None,
        environment: Environment | None = None,
        bootstrap: bool = True,
        **configs: Any,
    ) -> None:
        super().__init__(config if config is not None else resolve("client", configs), environment)
        self._arrived: list[Any] = []
        self._polling = False
        self._scheduled: dict[Callable[[], Any], tuple[Timer, Future[Any]]] = {}
        self._overdue: list[Callable[[], Any]] = []
        self._delayed_tasks = True
        if bootstrap and self.config["api_version"] is None:
            try:
                self._run(self.bootstrap())
                # Programs read the release there that was found out.
                self.config = Config("client", {**self.config, "api_version": self.api_version}, self.config.given)
            except BaseException:
                self.close()
                raise

    # Connections…

    def link(self, node_id: NodeId, use: str = "default") -> BrokerConnection:
        """Return the connection to a broker for a use, connected or not."""
        check_node(node_id)
        link = super().link(node_id, use)
        link.delivered = self._delivered
        return link

    def _delivered(self, _future: Future[Any], response: Any) -> None:
        if self._polling:  # under a driver nobody comes to fetch them
            self._arrived.append(response)

    def _known(self, node_id: NodeId) -> BrokerConnection | None:
        check_node(node_id)
        return self._links.get((node_id, "default"))

    def maybe_connect(self, node_id: NodeId, wakeup: bool = True) -> bool:
        """Begin to connect to a broker, unless that has to wait; whether it is under way or done."""
        try:
            link = self.link(node_id)
        except UnknownBrokerIdError:
            return False
        if not link.ready and not link.backing_off():
            link.open()
            if wakeup:
                self.wakeup()
        return not link.disconnected()

    def ready(self, node_id: NodeId, metadata_priority: bool = True) -> bool:
        """Whether a request can be sent to a broker now; connects otherwise, in the polls to come."""
        self.maybe_connect(node_id)
        return self.is_ready(node_id, metadata_priority)

    def is_ready(self, node_id: NodeId, metadata_priority: bool = True) -> bool:
        """Whether a request can be sent to a broker now; while metadata is due that goes first."""
        link = self._known(node_id)
        if metadata_priority and (self.metadata.refreshing or self.cluster.ttl() == 0):
            return False
        return link is not None and link.connected() and not link.throttled() and link.can_send_more()

    def await_ready(self, node_id: NodeId, timeout_ms: float = 30000) -> bool:
        """Wait until a broker can be sent to; KafkaConnectionError if it could not be connected to in time."""
        check_time("timeout_ms", timeout_ms)
        link = self.link(node_id)
        deadline = self.loop.time() + timeout_ms / 1000
        try:
            self._run(self.open(link, deadline))
        except KafkaTimeoutError as error:
            raise KafkaConnectionError(f"{link} is not ready after {timeout_ms:g} ms") from error
        return True

    def connected(self, node_id: NodeId) -> bool:
        """Whether there is a connection to a broker."""
        link = self._known(node_id)
        return link is not None and link.connected()

    def is_disconnected(self, node_id: NodeId) -> bool:
        """Whether the connection to a broker was closed or has failed."""
        link = self._known(node_id)
        return link is not None and link.disconnected()

    def connection_delay(self, node_id: NodeId) -> float:
        """Milliseconds to wait before sending: the backoff, 0 while connecting, very many when connected."""
        link = self._known(node_id)
        return 0 if link is None else link.connection_delay()

    def throttle_delay(self, node_id: NodeId) -> float:
        """Milliseconds until a broker wants more requests; 0 for now."""
        link = self._known(node_id)
        return 0 if link is None else link.throttle_delay()

    def bootstrap_connected(self) -> bool:
        """Whether there is a connection to a bootstrap server, or to a broker learnt from one."""
        return any(link.connected() for link in self.links())

    def in_flight_request_count(self, node_id: NodeId | None = None) -> int:
        """How many requests are under way, to one broker or to all."""
        if node_id is not None:
            check_node(node_id)
        return sum(link.in_flight_requests for link in self.links(node_id))

    # Sending…

    def send(self, node_id: NodeId, request: Any, wakeup: bool = True) -> Future[Any]:
        """Send a request to a broker; the future resolves to the response.

        UnknownBrokerIdError if the broker is not known. Fails with NodeNotReadyError unless `ready` says so;
        to wait for the connection instead, use `submit`.
        """
        check_node(node_id)
        check_request(request)
        if self.cluster.broker_metadata(node_id) is None:
            raise UnknownBrokerIdError(f"no broker has the id {node_id!r}", node_id=node_id)
        if not self.maybe_connect(node_id, wakeup=False) or not self.connected(node_id):
            return Future[Any]().failure(NodeNotReadyError(f"broker {node_id} is not ready"))
        future = self.link(node_id).send(request, blocking=False)
        if wakeup:
            self.wakeup()
        return future

    def submit(
        self, node_id: NodeId, request: Any, *, use: str = "default", timeout: float | None = None
    ) -> Future[Any]:
        """Send a request to a broker, connecting first if need be; the future resolves to the response."""
        check_request(request)
        if timeout is not None:
            check_time("timeout", timeout, unit="seconds")
        return super().submit(node_id, request, use=use, timeout=timeout)

    def ask(self, request: Any, node_id: NodeId | None = None, timeout_ms: float | None = None) -> Any:
        """Send a request to whom it is for and wait for the response.

        To the controller, to a partition's leader, to a group's or a transaction's coordinator, or to any
        broker, as the API demands; or to `node_id`. Error codes in the response are the caller's to read.

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
        timeout = self.settings.request_timeout if timeout_ms is None else timeout_ms / 1000
        return self._run(self.request(request, node_id=node_id, deadline=self.loop.time() + timeout))

    def poll(
        self,
        timeout_ms: float | None = None,
        future: Future[Any] | None = None,
        sleep: bool = True,
        delayed_tasks: bool = True,
    ) -> list[Any]:
        """Get on with everything until a response came, `future` is done, or the time is up; return the responses.

        Runs scheduled tasks too unless `delayed_tasks` is false. With `sleep=False` it does not wait
        when nothing is under way.
        """
        if timeout_ms is None:
            timeout_ms = self.config["request_timeout_ms"]
        check_time("timeout_ms", timeout_ms)
        if future is not None and not hasattr(future, "is_done"):
            raise TypeError(f"future must be a Future, as send() returns it, not {future!r}")
        self.metadata.start()
        self._delayed_tasks = delayed_tasks
        if delayed_tasks:
            self._run_overdue()
        if not sleep and future is None and not self._busy():
            timeout_ms = 0
        self._polling = True
        try:
            self._turn_until(self.loop.time() + timeout_ms / 1000, future)
        finally:
            self._polling = False
            arrived, self._arrived = self._arrived, []
        return arrived

    def _turn_until(self, deadline: float, future: Future[Any] | None) -> None:
        """Turn the loop at least once, until there is something to return or the time is up."""
        with SignalsDeferred(self.loop) as pending:
            while not pending:
                remaining = deadline - self.loop.time()
                self.loop.turn(0 if future is not None and future.is_done else max(0.0, remaining))
                if remaining <= 0 or (bool(self._arrived) if future is None else future.is_done):
                    return

    def _busy(self) -> bool:
        return any(link.is_opening or link.in_flight_requests for link in self.links())

    def wakeup(self) -> None:
        """End a poll that another thread waits in, or the next one before it waits."""
        self.loop.wakeup()

    # Metadata…

    def set_topics(self, topics: Iterable[str]) -> Future[ClusterMetadata]:
        """Track these topics; the future resolves when they are known."""
        names = checked_topics(topics, "add_topic")
        self.loop.check_usable()
        return self._tracked(self.cluster.set_topics(names))

    def add_topic(self, topic: str) -> Future[ClusterMetadata]:
        """Track one topic more; the future resolves when it is known."""
        check_topic(topic)
        self.loop.check_usable()
        return self._tracked(self.cluster.add_topic(topic))

    def _tracked(self, future: Future[ClusterMetadata]) -> Future[ClusterMetadata]:
        self.metadata.start()
        return future

    # Versions…

    @property
    def api_version(self) -> tuple[int, ...] | None:
        """The brokers' release: as configured, or as found out."""
        stated: tuple[int, ...] | None = self.config["api_version"]
        return stated or (self.versions.release if self.versions is not None else None)

    def check_version(
        self,
        node_id: NodeId | None = None,
        timeout: float = 2,
        strict: bool = False,  # noqa: ARG002 - historic: nothing is guessed that could be wrong
    ) -> tuple[int, ...]:
        """The release of a broker, or of any; blocks for `timeout` seconds.

        NodeNotReadyError if that broker, NoBrokersAvailable if none could be asked.
        """
        check_time("timeout", timeout, unit="seconds")
        if node_id is not None:
            check_node(node_id)
        deadline = self.loop.time() + timeout
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
                raise self.nobody("No broker could be asked for its version") from error
            raise NodeNotReadyError(f"broker {node_id} could not be asked for its version: {error}") from error

    async def _version_of(self, node_id: NodeId, deadline: float) -> tuple[int, ...]:
        link = self.link(node_id)
        await self.open(link, deadline)
        assert link.versions is not None
        return link.versions.release

    async def _any_version(self, deadline: float) -> tuple[int, ...]:
        while True:
            node_id = await self.some_node(deadline)
            try:
                return await self._version_of(node_id, deadline)
            except KafkaError as error:
                if not error.retriable or self.loop.time() >= deadline:
                    raise

    def get_api_versions(self) -> dict[int, tuple[int, int]] | None:
        """API keys with the lowest and highest version that the brokers have; None before that is known."""
        return None if self.versions is None else dict(self.versions.ranges)

    # Tasks…

    def schedule(self, task: Callable[[], Any], at: float) -> Future[Any]:
        """Call `task()` in the first poll after `at` (seconds since the epoch); the future is of its result.

        A task that is scheduled already is scheduled anew.
        """
        check_callable("task", task)
        check_time("at", at, unit="seconds since the epoch", least=float("-inf"))
        self.loop.check_usable()
        self.unschedule(task)
        future: Future[Any] = Future()
        delay = max(0.0, at - self.environment.clock.time())
        self._scheduled[task] = (self.loop.call_later(delay, self._due, task), future)
        return future

    def unschedule(self, task: Callable[[], Any]) -> None:
        """Take a task back; nothing happens if it is not scheduled."""
        check_callable("task", task)
        found = self._scheduled.pop(task, None)
        if found is not None:
            found[0].cancel()
        if task in self._overdue:
            self._overdue.remove(task)

    def _due(self, task: Callable[[], Any]) -> None:
        self._overdue.append(task)
        if self._delayed_tasks:
            self._run_overdue()

    def _run_overdue(self) -> None:
        while self._overdue:  # one by one: a task may take back another, or put it off
            task = self._overdue.pop(0)
            _, future = self._scheduled.pop(task)
            try:
                future.try_success(task())
            except Exception as error:  # the task's error is its result
                future.try_failure(error)

    # Ending…

    def close(self, node_id: NodeId | None = None) -> None:
        """Close the connections to one broker; without a broker, close the client."""
        if node_id is not None:
            check_node(node_id)
            for key in [key for key in self._links if key[0] == node_id]:
                self._links.pop(key).retire()
            return
        self.shut_down()
        if not self.loop.in_pass:
            self.loop.close(0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, coro: Coroutine[Any, Any, T]) -> T:
        """Turn the loop in this thread until a coroutine has ended."""
        return run_here(self.loop, self.loop.spawn(coro))

    def __del__(self) -> None:
        loop = getattr(self, "loop", None)
        if loop is None or loop.closed:
            return
        # A client whose constructor raised has not come to the point where there is something to close. One that was
        # closed in a callback, or shut down, still has its loop, and tasks on it that never began.
        try:
            if not getattr(self, "closed", True):
                warnings.warn(f"{self!r} was not closed: use it in a with statement", ResourceWarning, stacklevel=2)
        finally:  # warnings may be errors
            if hasattr(self, "metadata"):
                self.shut_down()
            loop.close(0.0)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a KafkaClient cannot be copied or pickled: make one in each process that needs one")
