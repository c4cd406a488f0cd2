"""A cluster and the thread that it runs on: starting and stopping, calls from other threads, snapshots."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, NamedTuple, TypeVar

from kafka.broker.cluster.clock import BrokerClock
from kafka.broker.cluster.cluster import Cluster
from kafka.broker.options import ClusterOptions
from kafka.broker.server.node import Node
from kafka.broker.server.versions import ApiTable
from kafka.broker.storage import MemoryStorage, Storage
from kafka.errors import IllegalStateError

T = TypeVar("T")
_CALL_TIMEOUT = 60.0


class Snapshot(NamedTuple):
    """The state of a cluster at a time; see :meth:`Broker.snapshot`."""

    tables: dict[str, dict[str, Any]]
    apis: ApiTable


class ClusterThread:
    """A cluster, and the daemon thread whose event loop does all the work of the cluster."""

    def __init__(self, options: ClusterOptions) -> None:
        self._options = options
        self.clock = BrokerClock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._cluster: Cluster | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is a cluster."""
        return self._cluster is not None

    @property
    def cluster(self) -> Cluster:
        """The cluster; raises while it does not run."""
        if self._cluster is None:
            raise IllegalStateError("the broker is not running")
        return self._cluster

    def start(self) -> None:
        """Start the thread; return once all nodes take connections."""
        if self._thread is not None:
            raise IllegalStateError("the broker is already running")
        started = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(started, failure), name="kafka-broker", daemon=True)
        self._thread.start()
        started.wait()
        if failure:
            self._thread.join()
            self._thread = None
            raise failure[0]

    def close(self) -> None:
        """Stop all nodes and the thread; does nothing if they are closed already."""
        thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        self._loop = self._cluster = None

    def call(self, call: Callable[..., T], *args: object, **kwargs: Any) -> T:
        """Run ``call`` on the broker's loop and return its result; at once if this is its thread (an interceptor)."""
        if threading.get_ident() == getattr(self._thread, "ident", None):
            return call(*args, **kwargs)

        async def work() -> T:
            return call(*args, **kwargs)

        return self.wait(work())

    def wait(self, work: Coroutine[Any, Any, T], timeout: float = _CALL_TIMEOUT) -> T:
        """Run a coroutine on the broker's loop and return its result."""
        loop = self._loop
        if loop is None:
            work.close()
            raise IllegalStateError("the broker is not running")
        if threading.get_ident() == getattr(self._thread, "ident", None):
            work.close()
            raise IllegalStateError("an interceptor runs on the broker's loop and cannot wait for it")
        return asyncio.run_coroutine_threadsafe(work, loop).result(timeout)

    def snapshot(self) -> Snapshot:
        """Return the state of the cluster, which must be in memory."""
        if self._options.data_dir is not None:
            raise IllegalStateError("a broker with a data directory keeps its state there; snapshots are of memory")
        return self.call(lambda: Snapshot(self.cluster.store.contents(), self.cluster.apis.copy()))

    def restore(self, snapshot: Snapshot) -> None:
        """Replace the cluster by one with the state of the snapshot, at the same addresses."""
        self.wait(self._restore(snapshot))

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
            cluster = self._make_cluster(loop, storage, ApiTable(self._options.as_version))
        except BaseException:
            storage.close(())
            raise
        ports = [self._options.port + number if self._options.port else 0 for number in range(self._options.nodes)]
        self._start_nodes(cluster, ports)
        cluster.start_services()
        for name, partitions in self._options.topics.items():
            if name not in cluster.topics:
                cluster.create_topic(name, partitions)

    def _make_cluster(self, loop: asyncio.AbstractEventLoop, storage: Storage, apis: ApiTable) -> Cluster:
        self._cluster = cluster = Cluster(
            loop,
            self.clock,
            storage,
            apis=apis,
            configs=self._options.configs,
            random=Random(self._options.seed),  # noqa: S311 - nothing secret comes of it
            sasl=self._options.sasl,
        )
        self.clock.listen(self._time_jumped)
        return cluster

    def _start_nodes(self, cluster: Cluster, ports: list[int]) -> None:
        for number, port in enumerate(ports):
            rack = self._options.racks[number % len(self._options.racks)] if self._options.racks else None
            cluster.nodes[number + 1] = node = Node(cluster, number + 1, self._options.listener, port, rack)
            node.start()
        cluster.load_topics()
        cluster.nodes_changed()

    def _open_storage(self) -> Storage:
        if self._options.data_dir is None:
            return MemoryStorage()
        from kafka.broker.storage.disk import DiskStorage

        return DiskStorage(self._options.data_dir, fsync=self._options.fsync)

    def _time_jumped(self) -> None:
        if self._cluster is not None and self._loop is not None and self._loop.is_running():
            self.call(self._cluster.timers.run_due)

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
