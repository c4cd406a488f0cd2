"""The broker as a user meets it: start, stop, and the orders that tests give. Everything here may be called from any
thread; the work is done on the broker's event loop, which has a daemon thread of its own.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kafka.broker.cluster.clock import BrokerClock
from kafka.broker.cluster.cluster import Cluster
from kafka.broker.control import Control, check_topic, text_of
from kafka.broker.server.node import ListenerOptions, Node, format_address
from kafka.broker.server.versions import ApiTable
from kafka.broker.storage import MemoryStorage, Storage
from kafka.errors import IllegalArgumentError, IllegalStateError

if TYPE_CHECKING:
    import ssl

    from typing_extensions import Self

__all__ = ["Broker", "Snapshot"]

T = TypeVar("T")
_CALL_TIMEOUT = 60.0
_LAST_PORT = 65535


class Snapshot(NamedTuple):
    """What a cluster was at some time; see :meth:`Broker.snapshot`."""

    tables: dict[str, dict[str, Any]]
    apis: ApiTable


class Broker(Control):
    """A Kafka cluster in this process, on loopback: one node or several.

    >>> with Broker(nodes=3, topics={"events": 3}) as broker:
    ...     servers = broker.bootstrap_servers
    >>> len(servers.split(","))
    3

    Nodes are numbered from 1. Records are kept in memory, or with ``data_dir`` on disk, where the next broker finds
    them again. ``configs`` are broker options under Kafka's names. ``as_version`` has it advertise what that release of
    Kafka does. ``port`` is the first node's, the others follow; 0 means any free ones. ``advertise``, a host or
    ``host:port``, is what clients are told to connect to where that differs from ``host`` and ``port``; for 0.0.0.0 and
    ``::`` it is the loopback address unless it is given. ``ssl_context`` (a server's) has
    it speak TLS; ``sasl``, triples of mechanism, user and password, has it ask clients who they are.
    """

    def __init__(
        self,
        nodes: int = 1,
        topics: Mapping[str, int] | Iterable[str] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertise: str | None = None,
        data_dir: str | Path | None = None,
        fsync: bool = False,
        configs: Mapping[str, Any] | None = None,
        as_version: str | None = None,
        racks: Sequence[str] = (),
        ssl_context: ssl.SSLContext | None = None,
        sasl: Sequence[tuple[str, str, str]] = (),
        seed: int | None = None,
    ) -> None:
        self._topics = _check_options(nodes, port, topics, sasl)
        self._node_count = nodes
        self._listener = ListenerOptions(host, ssl_context, needs_sasl=bool(sasl), advertise=advertise)
        self._sasl = list(sasl)
        self._first_port = port
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._fsync = fsync
        self._configs = {name: text_of(value) for name, value in (configs or {}).items()}
        self._as_version = as_version
        self._racks = list(racks)
        self._seed = seed
        #: The broker's time, which a test may advance, stop and resume.
        self.clock = BrokerClock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._cluster: Cluster | None = None

    if not TYPE_CHECKING:  # type checkers look at the options of __init__

        def __new__(cls, *_args: Any, **options: Any) -> Self:
            """Refuse an option that there is none of with the nearest one."""
            known = [name for name in inspect.signature(cls.__init__).parameters if name != "self"]
            for name in options:
                if name not in known:
                    near = difflib.get_close_matches(name, known, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
                    raise TypeError(f"{cls.__name__}() has no option {name!r}; {hint}")
            return super().__new__(cls)

    # Starting and stopping

    def start(self) -> Self:
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

    def __repr__(self) -> str:
        where = f"at {self.bootstrap_servers}" if self._cluster is not None else "not running"
        return f"<Broker nodes={self._node_count} {where}>"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, started: threading.Event, failure: list[BaseException]) -> None:
        # Selectors on every platform: the listeners need add_reader, which Windows' other loop lacks.
        loop = asyncio.SelectorEventLoop()
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
            cluster = self._make_cluster(loop, storage, ApiTable(self._as_version))
        except BaseException:
            storage.close(())
            raise
        ports = [self._first_port + number if self._first_port else 0 for number in range(self._node_count)]
        self._start_nodes(cluster, ports)
        cluster.start_services()
        for name, partitions in self._topics.items():
            if name not in cluster.topics:
                cluster.create_topic(name, partitions)

    def _make_cluster(self, loop: asyncio.AbstractEventLoop, storage: Storage, apis: ApiTable) -> Cluster:
        self._cluster = cluster = Cluster(
            loop,
            self.clock,
            storage,
            apis=apis,
            configs=self._configs,
            random=Random(self._seed),  # noqa: S311 - nothing secret comes of it
            sasl=self._sasl,
        )
        self.clock.listen(self._time_jumped)
        return cluster

    def _start_nodes(self, cluster: Cluster, ports: list[int]) -> None:
        for number, port in enumerate(ports):
            rack = self._racks[number % len(self._racks)] if self._racks else None
            cluster.nodes[number + 1] = node = Node(cluster, number + 1, self._listener, port, rack)
            node.start()
        cluster.load_topics()
        cluster.nodes_changed()

    def _open_storage(self) -> Storage:
        if self._data_dir is None:
            return MemoryStorage()
        from kafka.broker.storage.disk import DiskStorage

        return DiskStorage(self._data_dir, fsync=self._fsync)

    def _time_jumped(self) -> None:
        if self._cluster is not None and self._loop is not None and self._loop.is_running():
            self._do(self._cluster.timers.run_due)

    # Back to what was

    def snapshot(self) -> Snapshot:
        """Remember the state of the cluster for :meth:`restore`, as a fixture does that several tests share."""
        if self._data_dir is not None:
            raise IllegalStateError("a broker with a data directory keeps its state there; snapshots are of memory")
        return self._do(lambda: Snapshot(self.cluster.store.contents(), self.cluster.apis.copy()))

    def restore(self, snapshot: Snapshot) -> None:
        """Make the cluster what it was at a snapshot, at the same addresses; it is as if all nodes had restarted.

        Connections are closed. All nodes run, the clock goes by the system's time, orders of tests (``fail``,
        ``delay``, ``intercept``) are taken back, ``requests`` is empty. Topics, configuration, groups, committed
        offsets, transactions, users, rights and advertised versions are those of the snapshot. Three things stay:
        records written to a topic that the snapshot has, leader epochs, and producer ids that were given out.
        """
        self._await(self._restore(snapshot))

    async def _restore(self, snapshot: Snapshot) -> None:
        cluster = self.cluster
        ports = [node.listener.port for _, node in sorted(cluster.nodes.items())]
        storage = cluster.storage
        kept = {topic["id"] for topic in snapshot.tables.get("topics", {}).values()}
        for topic in list(cluster.topics.values()):
            if str(topic.id) not in kept:
                cluster.delete_topic(topic)
        epochs = {topic.id: [one.leader_epoch for one in topic.partitions] for topic in cluster.topics.values()}
        identity = dict(cluster.store.table("cluster"))
        await cluster.close()
        await asyncio.sleep(0)  # the transports tell their protocols that they are closed
        self.clock.reset()
        for name in {*cluster.store.contents(), *snapshot.tables}:
            table = cluster.store.table(name)
            table.clear()
            table.update(identity if name == "cluster" else snapshot.tables.get(name, {}))
        fresh = self._make_cluster(cluster.loop, storage, snapshot.apis.copy())
        self._start_nodes(fresh, ports)
        for topic in fresh.topics.values():
            # Clients take no leader of an earlier epoch than they have seen.
            for partition, epoch in zip(topic.partitions, epochs.get(topic.id, ()), strict=False):
                if epoch > partition.leader_epoch:
                    partition.leader_epoch = epoch + 1
                    partition.log.begin_epoch(epoch + 1)
            fresh.save_topic(topic)
        fresh.start_services(restored=True)

    # Doing things on the broker's loop

    def _do(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run ``call`` on the broker's loop and return its result; at once if this is its thread (an interceptor)."""
        if threading.get_ident() == getattr(self._thread, "ident", None):
            return call(*args, **kwargs)

        async def work() -> T:
            return call(*args, **kwargs)

        return self._await(work())

    def _await(self, work: Coroutine[Any, Any, T], timeout: float = _CALL_TIMEOUT) -> T:
        loop = self._loop
        if loop is None:
            work.close()
            raise IllegalStateError("the broker is not running")
        if threading.get_ident() == getattr(self._thread, "ident", None):
            work.close()
            raise IllegalStateError("an interceptor runs on the broker's loop and cannot wait for it")
        return asyncio.run_coroutine_threadsafe(work, loop).result(timeout)

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
        """The addresses of all nodes, as clients take them: those that are advertised."""
        return ",".join(format_address(node.host, node.port) for node in self.cluster.nodes.values())

    @property
    def listeners(self) -> str:
        """The addresses that the nodes listen on."""
        listeners = [node.listener for node in self.cluster.nodes.values()]
        return ",".join(format_address(each.host, each.port) for each in listeners)

    @property
    def node_ids(self) -> list[int]:
        """The numbers of the nodes."""
        return sorted(self.cluster.nodes)

    def port(self, node: int = 1) -> int:
        """The port that a node listens on."""
        return self._node(node).listener.port


def _check_options(
    nodes: int, port: int, topics: Mapping[str, int] | Iterable[str], sasl: Sequence[tuple[str, str, str]]
) -> dict[str, int]:
    """Raise for what cannot be meant; return the topics with their numbers of partitions."""
    for name, value in (("nodes", nodes), ("port", port)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise IllegalArgumentError(f"{name} must be an int, not {value!r}")
    if nodes < 1:
        raise IllegalArgumentError(f"a broker has at least one node, not {nodes}")
    if port and not 0 < port <= port + nodes - 1 <= _LAST_PORT:
        last = "" if nodes == 1 else f" to {port + nodes - 1}"
        raise IllegalArgumentError(f"ports go from 1 to {_LAST_PORT}, or 0 for any: there is no {port}{last}")
    for user in sasl:
        if not isinstance(user, (tuple, list)) or len(user) != 3:
            raise IllegalArgumentError("sasl takes triples of mechanism, user and password, as ('PLAIN', 'ada', 'b')")
    if isinstance(topics, str):
        topics = (topics,)
    found = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
    for name, partitions in found.items():
        check_topic(name, partitions)
    return found
