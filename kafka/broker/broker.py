"""The broker as a user meets it: start, stop, and the orders that tests give. Everything here may be called from any
thread; the work is done on the broker's event loop, which has a daemon thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from kafka.broker import leaders
from kafka.broker.clock import BrokerClock
from kafka.broker.cluster import Cluster
from kafka.broker.faults import ErrorLike, Interceptor, Order, SeenRequest, error_code
from kafka.broker.node import ListenerOptions, Node
from kafka.broker.storage import MemoryStorage, Storage
from kafka.broker.topics import Partition, is_valid_topic_name
from kafka.broker.versions import ApiKeyLike, ApiTable
from kafka.errors import IllegalArgumentError, IllegalStateError, UnknownTopicOrPartitionError

if TYPE_CHECKING:
    import ssl

    from kafka.structs import TopicPartition

__all__ = ["Broker"]

T = TypeVar("T")
_CALL_TIMEOUT = 60.0


class Broker:
    """A Kafka cluster in this process, on loopback: one node or several.

    >>> with Broker(nodes=3, topics={"events": 3}) as broker:
    ...     servers = broker.bootstrap_servers
    >>> len(servers.split(","))
    3

    Records are kept in memory, or with ``data_dir`` on disk, where the next broker finds them again. ``configs`` are
    broker options under Kafka's names. ``as_version`` has it advertise what that release of Kafka does. ``port`` is
    the first node's, the others follow; 0 means any free ones.
    """

    def __init__(
        self,
        nodes: int = 1,
        topics: Mapping[str, int] | Iterable[str] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        data_dir: str | Path | None = None,
        fsync: bool = False,
        configs: Mapping[str, Any] | None = None,
        as_version: str | None = None,
        racks: Sequence[str] = (),
        ssl_context: ssl.SSLContext | None = None,
        seed: int | None = None,
    ) -> None:
        if nodes < 1:
            raise IllegalArgumentError(f"a broker has at least one node, not {nodes}")
        self._node_count = nodes
        self._topics = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
        self._listener = ListenerOptions(host, ssl_context)
        self._first_port = port
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._fsync = fsync
        self._configs = {name: _text(value) for name, value in (configs or {}).items()}
        self._as_version = as_version
        self._racks = list(racks)
        self._seed = seed
        #: The broker's time, which a test may advance, stop and resume.
        self.clock = BrokerClock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._cluster: Cluster | None = None

    # Starting and stopping

    def start(self) -> Broker:
        """Start it; return once all nodes take connections."""
        if self._thread is not None:
            raise IllegalStateError("the broker runs already")
        started = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(started, failure), name="kafka-broker", daemon=True)
        self._thread.start()
        started.wait()
        if failure:
            self._thread.join()
            self._thread = None
            raise failure[0]
        return self

    def close(self) -> None:
        """Stop all nodes and free everything; harmless when it is closed already."""
        thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        self._loop = self._cluster = None

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, started: threading.Event, failure: list[BaseException]) -> None:
        loop = asyncio.new_event_loop()
        try:
            self._loop = loop
            loop.run_until_complete(self._open(loop))
        except BaseException as error:
            failure.append(error)
            if self._cluster is not None:
                loop.run_until_complete(self._cluster.close())
            self._cluster = self._loop = None
            loop.close()
            started.set()
            return
        started.set()
        try:
            loop.run_forever()
        finally:
            assert self._cluster is not None
            loop.run_until_complete(self._cluster.close())
            # Let the transports tell their protocols that they are closed.
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    async def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        storage = self._open_storage()
        try:
            self._cluster = cluster = Cluster(
                loop,
                self.clock,
                storage,
                apis=ApiTable(self._as_version),
                configs=self._configs,
                random=Random(self._seed),
            )
        except BaseException:
            storage.close(())
            raise
        self.clock.listen(self._time_jumped)
        for number in range(self._node_count):
            node_id = number + 1
            port = self._first_port + number if self._first_port else 0
            rack = self._racks[number % len(self._racks)] if self._racks else None
            cluster.nodes[node_id] = node = Node(cluster, node_id, self._listener, port, rack)
            await node.start()
        cluster.load_topics()
        cluster.nodes_changed()
        cluster.start_services()
        for name, partitions in self._topics.items():
            if name not in cluster.topics:
                _check_topic(name, partitions)
                cluster.create_topic(name, partitions)

    def _open_storage(self) -> Storage:
        return MemoryStorage()

    def _time_jumped(self) -> None:
        if self._cluster is not None and self._loop is not None and self._loop.is_running():
            self._do(self._cluster.timers.run_due)

    # Doing things on the broker's loop

    def _do(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run ``call`` on the broker's loop and return its result; at once if this is its thread (an interceptor)."""
        if threading.get_ident() == getattr(self._thread, "ident", None):
            return call(*args, **kwargs)

        async def work() -> T:
            return call(*args, **kwargs)

        return self._await(work())

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._loop
        if loop is None:
            work.close()
            raise IllegalStateError("the broker is not running")
        return asyncio.run_coroutine_threadsafe(work, loop).result(_CALL_TIMEOUT)

    @property
    def cluster(self) -> Cluster:
        """The state of the cluster, for what has no method here; touch it from an interceptor or ``run`` only."""
        if self._cluster is None:
            raise IllegalStateError("the broker is not running")
        return self._cluster

    def run(self, call: Callable[[Cluster], T]) -> T:
        """Run ``call(cluster)`` on the broker's loop and return what it returns.

        >>> with Broker(topics=["events"]) as broker:
        ...     broker.run(lambda cluster: sorted(cluster.topics))
        ['events']
        """
        return self._do(call, self.cluster)

    # Where it is

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, as clients take them."""
        nodes = self.cluster.nodes.values()
        return ",".join(
            f"[{node.host}]:{node.port}" if ":" in node.host else f"{node.host}:{node.port}" for node in nodes
        )

    @property
    def node_ids(self) -> list[int]:
        """The numbers of the nodes."""
        return sorted(self.cluster.nodes)

    def port(self, node: int = 1) -> int:
        """The port of a node."""
        return self._node(node).port

    def _node(self, node: int) -> Node:
        found = self.cluster.nodes.get(node)
        if found is None:
            raise IllegalArgumentError(f"there is no node {node}, only {self.node_ids}")
        return found

    # Faults

    def fail(self, api: ApiKeyLike, errors: Sequence[ErrorLike] = (), times: int = 1, node: int | None = None) -> Order:
        """Answer the next requests of an API with errors; nothing of what they ask for is done.

        ``errors`` (codes or error classes; None lets one request through) are given in turn, ``times`` over.
        """
        codes = deque(error_code(error) for _ in range(times) for error in errors)
        if not codes:
            raise IllegalArgumentError("fail() needs at least one error")
        return self._do(self.cluster.faults.add, api, errors=codes, times=None, node=node)

    def intercept(
        self,
        api: ApiKeyLike | None,
        call: Interceptor,
        *,
        before: bool = False,
        times: int | None = None,
        node: int | None = None,
    ) -> Order:
        """Have ``call(exchange)`` see each request of an API (of any API with None) and its reply.

        What it returns takes the reply's place; None leaves the reply, ``faults.NO_REPLY`` and ``faults.CLOSE`` do what
        they say. With ``before`` it is asked before the request is served, and an answer means that it is not.
        It runs on the broker's loop: it must not block.
        """
        return self._do(self.cluster.faults.add, api, interceptor=call, before=before, times=times, node=node)

    def delay(
        self, api: ApiKeyLike | None, seconds: float, *, times: int | None = None, node: int | None = None
    ) -> Order:
        """Have requests of an API wait, on the broker's clock, before they are served."""
        return self._do(self.cluster.faults.add, api, delay=seconds, times=times, node=node)

    def drop_connections(self, node: int | None = None, *, api: ApiKeyLike | None = None, times: int = 1) -> int:
        """Cut all connections, of one node or all, and return how many; with ``api``, cut those that next ask for it."""
        if api is not None:
            self._do(self.cluster.faults.add, api, drops=True, times=times, node=node)
            return 0
        nodes = [self._node(node)] if node is not None else list(self.cluster.nodes.values())
        return self._do(lambda: sum(found.listener.drop() for found in nodes))

    def clear_faults(self) -> None:
        """Take back all that ``fail``, ``intercept``, ``delay`` and ``drop_connections`` have ordered."""
        self._do(self.cluster.faults.clear)

    def advertise(self, api: ApiKeyLike, low: int, high: int) -> None:
        """Serve an API in these versions only; with ``high`` below ``low`` not at all."""
        self._do(self.cluster.apis.advertise, api, low, high)

    @property
    def requests(self) -> list[SeenRequest]:
        """The requests that have come, oldest first (the latest, up to 16 MiB of them)."""
        return self._do(self.cluster.faults.seen)

    def forget_requests(self) -> None:
        """Empty :attr:`requests`."""
        self._do(self.cluster.faults.forget)

    # Nodes and leaders

    def stop_node(self, node: int, *, crash: bool = False) -> None:
        """Take a node away: its connections close (with ``crash`` without a goodbye), others lead its partitions."""
        found = self._node(node)

        def stop() -> None:
            if found.is_running:
                found.stop(crash=crash)
                self.cluster.nodes_changed()

        self._do(stop)

    def start_node(self, node: int) -> None:
        """Bring a node back, on the port it had."""
        found = self._node(node)

        async def start() -> None:
            if not found.is_running:
                await found.start()
                self.cluster.nodes_changed()

        self._await(start())

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition; -1 if none does."""
        return self._do(lambda: self._partition(topic, partition).leader)

    def move_leader(self, tp: TopicPartition | tuple[str, int], node: int) -> None:
        """Have a node lead a partition."""
        self._node(node)

        def move() -> None:
            partition = self._partition(*tp)
            leaders.move(partition, node)
            self.cluster.save_topic(partition.topic)

        self._do(move)

    def shuffle_leaders(self) -> None:
        """Give every partition another leader, where there is another node to lead it."""

        def shuffle() -> None:
            cluster = self.cluster
            live = [node.node_id for node in cluster.live_nodes()]
            for topic in cluster.topics.values():
                for partition in topic.partitions:
                    others = [node for node in live if node != partition.leader]
                    if others:
                        leaders.move(partition, cluster.random.choice(others))
                cluster.save_topic(topic)

        self._do(shuffle)

    def rehash_coordinators(self) -> None:
        """Move every group and transactional id to another coordinator, where there is another node."""
        self._do(self.cluster.coordinators.rehash)

    def _partition(self, topic: str, index: int) -> Partition:
        found = self.cluster.partition(topic, index)
        if found is None:
            raise UnknownTopicOrPartitionError(f"there is no partition {index} of {topic!r}")
        return found

    # Topics

    def create_topic(
        self, name: str, partitions: int = 1, replication_factor: int = 1, configs: Mapping[str, Any] | None = None
    ) -> None:
        """Create a topic."""
        _check_topic(name, partitions)
        settings = {key: _text(value) for key, value in (configs or {}).items()}
        self._do(self.cluster.create_topic, name, partitions, replication_factor, settings)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records."""

        def delete() -> None:
            topic = self.cluster.topic(name)
            if topic is None:
                raise UnknownTopicOrPartitionError(f"there is no topic {name!r}")
            self.cluster.delete_topic(topic)

        self._do(delete)


def _check_topic(name: str, partitions: int) -> None:
    if not is_valid_topic_name(name):
        raise IllegalArgumentError(f"{name!r} is no name for a topic")
    if partitions < 1:
        raise IllegalArgumentError(f"a topic has at least one partition, not {partitions}")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
