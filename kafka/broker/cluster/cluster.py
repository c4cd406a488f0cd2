"""The state of the whole cluster, which all nodes of a broker share: topics, leaders, nodes, what tests ordered.

One object per :class:`~kafka.broker.Broker`, living on its event loop and touched by that thread only; the control
methods of the broker come here by way of the loop. Large parts have separate modules and are attributes here:

=====================  ==============================================================================================
``clock``, ``timers``  time (:mod:`kafka.broker.cluster.clock`)
``apis``, ``faults``   the APIs that are advertised; the faults that a test has set
``configs``            broker and topic configuration (:mod:`kafka.broker.configs`)
``storage``            where logs and tables are kept
``features``           what is enabled (:mod:`kafka.broker.cluster.features`)
``coordinators``       which node coordinates a group or transaction
``service(Class)``     the one ``Class(cluster)`` of this cluster: group coordinator, transaction coordinator ...
=====================  ==============================================================================================
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from kafka.broker.cluster.clock import BrokerClock, Timers
from kafka.broker.cluster.coordinators import Coordinators
from kafka.broker.cluster.features import ELIGIBLE_LEADERS, Features
from kafka.broker.cluster.topics import Partition, Topic, elect_leader, move_leader, place_replicas
from kafka.broker.configs import Configs
from kafka.broker.faults import Faults
from kafka.broker.security.acls import AccessControl
from kafka.broker.server.dispatch import Dispatcher
from kafka.broker.server.node import Node
from kafka.broker.server.versions import ApiTable
from kafka.broker.storage import Storage
from kafka.broker.storage.log import Log
from kafka.errors import KafkaStorageError, UnknownTopicOrPartitionError
from kafka.protocol.fields import Buffer

if TYPE_CHECKING:
    from kafka.broker.transactions.service import TransactionService

T = TypeVar("T")

#: Services that are made when the broker starts.
EARLY_SERVICES: tuple[str, ...] = ("kafka.broker.storage.cleaner:LogCleaner",)
#: Services that are made then if there may be state on disk that sets their timers, else by the first request.
DURABLE_SERVICES: tuple[str, ...] = (
    "kafka.broker.groups.service:GroupService",
    "kafka.broker.transactions.service:TransactionService",
    "kafka.broker.security.service:Security",
)
#: The one that is made at once where clients log in or need rights.
SECURITY: tuple[str, ...] = ("kafka.broker.security.service:Security",)


class Cluster:
    """Everything that the nodes of one broker share."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: BrokerClock,
        storage: Storage,
        *,
        apis: ApiTable | None = None,
        configs: Mapping[str, str] | None = None,
        random: Random | None = None,
        sasl: Sequence[tuple[str, str, str]] = (),
    ) -> None:
        self.loop = loop
        self.clock = clock
        self.timers = Timers(clock, loop)
        self.random = random or Random()  # noqa: S311 - nothing secret comes of it
        self.apis = apis or ApiTable()
        self.faults = Faults()
        self.dispatcher = Dispatcher(self)
        self.storage = storage
        self.store = storage.store
        self.features = Features(self.store, self.apis.release)
        self.configs = Configs(self.store, configs or {}, lambda: self.features.level(ELIGIBLE_LEADERS) > 0)
        if self.configs.takes_client_metrics():
            self.apis.offer_telemetry()
        self.coordinators = Coordinators(self)
        self.nodes: dict[int, Node] = {}
        self._controller_id = -1
        #: Counts the controllers that there have been, as the leader epoch of the metadata's log.
        self.controller_epoch = 0
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[uuid.UUID, Topic] = {}
        #: Mechanism, user and password of the users that may log in from the start.
        self.sasl_users = list(sasl)
        #: Says who may do what; without one everything is allowed.
        self.authorizer: AccessControl | None = None
        #: Asked before a transactional append (KIP-890).
        self.transaction_gate: TransactionService | None = None
        #: Told the name of each topic that was deleted.
        self.on_topic_deleted: list[Callable[[str], None]] = []
        #: Told each topic that was created or has got more partitions.
        self.on_partitions_added: list[Callable[[Topic], None]] = []
        #: Called after a change of the brokers' configuration.
        self.on_configs_changed: list[Callable[[], None]] = []
        #: Called with the id of each group whose configuration was changed.
        self.on_group_configs_changed: list[Callable[[str], None]] = []
        self._services: dict[Callable[[Cluster], object], Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread: ThreadPoolExecutor | None = None
        self._identity = self.store.table("cluster")
        if "id" not in self._identity:
            self._identity["id"] = _cluster_id(self.random)
        self.cluster_id: str = self._identity["id"]

    # Parts made by others

    def service(self, cls: Callable[[Cluster], T]) -> T:
        """Return this cluster's one instance of ``cls``, made as ``cls(cluster)`` when it is first asked for.

        One that has a ``close()`` is closed with the cluster.
        """
        found = self._services.get(cls)
        if found is None:
            found = self._services[cls] = cls(self)
        return found

    def start_services(self, *, restored: bool = False) -> None:
        """Make the services that cannot wait to be asked for; all that have state where there may be some."""
        names = EARLY_SERVICES
        if self.storage.is_durable or restored:
            names += DURABLE_SERVICES
        elif self.sasl_users or self.configs.broker_value("authorizer.class.name"):
            names += SECURITY
        for name in names:
            module, _, cls = name.partition(":")
            self.service(getattr(import_module(module), cls))

    def background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine beside the requests; it is cancelled when the cluster closes."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._background_done)
        return task

    def _background_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.loop.call_exception_handler({"message": "the broker's background work failed", "exception": error})

    async def in_thread(self, call: Callable[..., T], *args: object, **options: Any) -> T:
        """Run what takes long in a thread beside the loop, one at a time, so that its memory is needed once.

        It must touch nothing of the cluster: arguments in, result out.
        """
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "kafka-broker-checks")
        return await self.loop.run_in_executor(self._thread, partial(call, *args, **options))

    async def sleep(self, seconds: float) -> None:
        """Wait on the broker's clock."""
        done: asyncio.Future[None] = self.loop.create_future()
        timer = self.timers.call_later(seconds, _set_done, done)
        try:
            await done
        finally:
            timer.cancel()

    # Nodes

    @property
    def controller_id(self) -> int:
        """The live node with the lowest id; -1 if there is none."""
        return min((node.node_id for node in self.nodes.values() if node.is_live), default=-1)

    def live_nodes(self) -> list[Node]:
        """Return the nodes that run and are registered, by id."""
        return [node for _, node in sorted(self.nodes.items()) if node.is_live]

    def offline(self, partition: Partition) -> list[int]:
        """Return the replicas of a partition whose nodes do not run."""
        return [
            node_id for node_id in partition.replicas if (node := self.nodes.get(node_id)) is None or not node.is_live
        ]

    def endpoints(self, node_ids: Iterable[int]) -> list[tuple[int, str, int, str | None]]:
        """Return id, host, port and rack of the nodes that run, as replies list them (KIP-951)."""
        return [
            (node.node_id, node.host, node.port, node.rack)
            for node_id in sorted(node_ids)
            if (node := self.nodes.get(node_id)) is not None and node.is_live
        ]

    def nodes_changed(self) -> None:
        """A node has started or stopped: elect leaders, move coordinators."""
        live = {node.node_id for node in self.nodes.values() if node.is_live}
        if self.controller_id != self._controller_id:
            self._controller_id = self.controller_id
            self.controller_epoch += 1
        for topic in self.topics.values():
            changed = [partition for partition in topic.partitions if elect_leader(partition, live)]
            if changed:
                self.save_topic(topic)
        self.coordinators.moved()

    # Topics

    def topic(self, name: str | None = None, topic_id: uuid.UUID | None = None) -> Topic | None:
        """Find a topic by its name, or without one by its id."""
        if name:
            return self.topics.get(name)
        return self.topics_by_id.get(topic_id) if topic_id is not None else None

    def partition(self, topic: str, index: int) -> Partition | None:
        """Find a partition."""
        found = self.topics.get(topic)
        return None if found is None else found.partition(index)

    def existing_topic(self, name: str) -> Topic:
        """Find a topic; raise an error for a program, with the name that it may have meant."""
        found = self.topics.get(name)
        if found is None:
            names = [topic.name for topic in self.topics.values() if not topic.is_internal]
            near = get_close_matches(str(name), names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "; create_topic() makes it"
            raise UnknownTopicOrPartitionError(f"topic {name!r} does not exist{hint}")
        return found

    def existing_partition(self, topic: str, index: int) -> Partition:
        """Find a partition; raise an error for a program."""
        found = self.existing_topic(topic)
        partition = found.partition(index) if isinstance(index, int) else None
        if partition is None:
            raise UnknownTopicOrPartitionError(
                f"partition {index!r} of topic {topic!r} does not exist: "
                f"it has {len(found.partitions)}, numbered from 0"
            )
        return partition

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
        assignment: Iterable[list[int]] | None = None,
        topic_id: uuid.UUID | None = None,
    ) -> Topic:
        """Create a topic; its name, numbers and configuration are checked already. Defaults are the brokers'."""
        topic = Topic(name, topic_id or self.new_uuid(), dict(configs or {}))
        self.topics[name] = topic
        self.topics_by_id[topic.id] = topic
        if assignment is None:
            wanted = self.configs.broker_int("num.partitions") if partitions is None else partitions
            copies = replication_factor or self.configs.broker_int("default.replication.factor")
            assignment = place_replicas(wanted, min(copies, len(self.nodes)), sorted(self.nodes), self.random)
        try:
            self.add_partitions(topic, assignment)
        except KafkaStorageError:
            del self.topics[name], self.topics_by_id[topic.id]
            raise
        return topic

    def _open_log(self, topic: Topic, index: int) -> Log:
        log = self.storage.open_log(topic, index, self.configs, self.clock)
        log.call_later = self.timers.call_later
        return log

    def add_partitions(self, topic: Topic, assignment: Iterable[list[int]]) -> None:
        """Give a topic more partitions, with these replicas: all of them, or with KafkaStorageError none."""
        live = {node.node_id for node in self.nodes.values() if node.is_live} or set(self.nodes)
        first = len(topic.partitions)
        added: list[Partition] = []
        try:
            for index, replicas in enumerate(assignment, first):
                added.append(Partition(topic, index, list(replicas), self._open_log(topic, index)))
        except OSError as error:
            for partition in added:
                self.storage.delete_log(partition.log)
            raise KafkaStorageError(f"the log of {topic.name}-{first + len(added)} cannot be made: {error}") from error
        for partition in added:
            topic.partitions.append(partition)
            if not elect_leader(partition, live):
                partition.log.begin_epoch(partition.leader_epoch)
        self.save_topic(topic)
        for tell in tuple(self.on_partitions_added):
            tell(topic)

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic and its records; waiting requests are answered."""
        topic.is_deleted = True
        self.topics.pop(topic.name, None)
        self.topics_by_id.pop(topic.id, None)
        self.store.table("topics").pop(topic.name, None)
        for partition in topic.partitions:
            partition.leader = -1
            partition.changed()
            self.storage.delete_log(partition.log)
        for forget in self.on_topic_deleted:
            forget(topic.name)

    def shuffle_leaders(self) -> None:
        """Give every partition another leader, where there is another node to lead it."""
        live = [node.node_id for node in self.live_nodes()]
        for topic in self.topics.values():
            for partition in topic.partitions:
                if others := [node for node in live if node != partition.leader]:
                    move_leader(partition, self.random.choice(others))
            self.save_topic(topic)

    def save_topic(self, topic: Topic) -> None:
        """Remember a topic as it is now."""
        if not topic.is_deleted:
            self.store.table("topics")[topic.name] = topic.to_json()

    def load_topics(self) -> None:
        """Open the topics that the storage remembers."""
        for name, saved in list(self.store.table("topics").items()):
            topic = Topic(name, uuid.UUID(saved["id"]), saved["configs"])
            self.topics[name] = topic
            self.topics_by_id[topic.id] = topic
            for index, (replicas, leader, epoch) in enumerate(saved["partitions"]):
                log = self._open_log(topic, index)
                # There may be fewer nodes than before: the broker does not wait for the missing ones.
                here = [node for node in replicas if node in self.nodes] or [min(self.nodes)]
                partition = Partition(topic, index, here, log)
                partition.leader, partition.leader_epoch = leader if leader in here else -1, epoch
                topic.partitions.append(partition)

    def configs_changed(self, topic: Topic | None = None) -> None:
        """Have the logs, of one topic or all, go by the configuration as it is now."""
        for one in [topic] if topic is not None else self.topics.values():
            config = self.configs.log_config(one)
            for partition in one.partitions:
                partition.log.config = config

        if topic is None:
            if self.configs.takes_client_metrics():
                self.apis.offer_telemetry()
            for tell in tuple(self.on_configs_changed):
                tell()

    def group_configs_changed(self, group_id: str) -> None:
        """Apply a group's present configuration to it."""
        for tell in tuple(self.on_group_configs_changed):
            tell(group_id)

    # Numbers

    def new_uuid(self) -> uuid.UUID:
        """Return a random id that Kafka would make: none that begins with a dash in its text form."""
        while True:
            found = uuid.UUID(int=self.random.getrandbits(128), version=4)
            if found.bytes[0] >> 2 != 62:
                return found

    def new_producer_id(self) -> int:
        """Return a producer id that was never given out; ids are given out in blocks, so a crash skips some."""
        next_id: int = self._identity.get("next_producer_id", 0)
        self._identity["next_producer_id"] = next_id + 1
        return next_id

    # Records, for code that writes them beside the Produce API

    def append(self, partition: Partition, data: Buffer) -> int:
        """Append one sealed batch to a partition and wake its readers; return its first offset."""
        offset = partition.log.append(data, partition.leader_epoch)
        partition.changed()
        return offset

    def append_marker(
        self,
        partition: Partition,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        coordinator_epoch: int = 0,
    ) -> int:
        """End a producer's transaction on a partition with a control record; wake its readers; return its offset."""
        offset = partition.log.append_marker(
            producer_id,
            producer_epoch,
            partition.leader_epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
        )
        partition.changed()
        return offset

    # The end

    async def close(self) -> None:
        """Stop the nodes, the services and the background work; close the files."""
        for node in self.nodes.values():
            if node.is_running:
                node.stop()
            node.listener.close()
        for service in reversed(self._services.values()):
            close = getattr(service, "close", None)
            if close is not None:
                close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
        self.timers.close()
        self.storage.close(self.topics.values())


def _set_done(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _cluster_id(random: Random) -> str:
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(random.getrandbits(128).to_bytes(16, "big")).decode().rstrip("=")
