"""The client's metadata of the cluster, and when it must be refreshed. Does no I/O.

Responses go in (`update_metadata`, `add_group_coordinator`); lookups read an immutable snapshot
(`kafka._core.topology`) that any thread may read. `kafka._core.metadata` sends the requests.

The wanted topics may change while a request is in flight. So changes are counted, a request covers the topics wanted at
some count (`wanted_version`), and a response that is older than the last change does not complete the update that the
change requested: `need_update` stays true and its futures stay pending.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from kafka._arguments import check_callable, explain_key, explain_partition
from kafka._core.topology import Topology, merged
from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka._runtime.timers import Backoff
from kafka.config import Config, collect_hosts, get_ip_port_afi, parse_servers, part_of_defaults, resolve_part
from kafka.errors import IllegalArgumentError, MetadataEmptyBrokerList, for_code
from kafka.future import Future
from kafka.structs import BrokerMetadata, PartitionMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.metadata import MetadataRequest, MetadataResponse

__all__ = ["ClusterMetadata", "NodeId", "collect_hosts", "get_ip_port_afi"]

log = logging.getLogger(__name__)

GROUP: Final = 0
TRANSACTION: Final = 1
_INVALID_TOPIC: Final = 17
_TOPIC_UNAUTHORIZED: Final = 29
_LONGEST_NAME: Final = 2**15 - 1  # in bytes, the limit of the protocol


class NodeId(int):
    """A broker's id that is true even for broker 0: older programs test it as a bool.

    >>> bool(NodeId(0)), NodeId(0) == 0
    (True, True)
    """

    def __bool__(self) -> bool:
        return True


class ClusterMetadata:
    """The cluster as far as it is known.

    Keyword arguments are the options in ``ClusterMetadata.DEFAULT_CONFIG``.

    >>> cluster = ClusterMetadata(bootstrap_servers="b1:9092")
    >>> cluster.bootstrap_brokers()[0].host
    'b1'
    >>> cluster.topics(), cluster.partitions_for_topic("events"), cluster.ttl()
    (set(), None, 0)
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = part_of_defaults(
        "client",
        "bootstrap_servers",
        "client_dns_lookup",
        "retry_backoff_ms",
        "retry_backoff_max_ms",
        "metadata_max_age_ms",
        "allow_auto_create_topics",
    )

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        from kafka.legacy.cluster_tables import fills_tables, use_tables

        if fills_tables(cls):
            use_tables(cls)

    def __init__(self, *, config: Config | None = None, clock: Clock = SYSTEM_CLOCK, **configs: Any) -> None:
        from random import Random

        if config is None:
            config = resolve_part("ClusterMetadata", "client", configs, self.DEFAULT_CONFIG)
        self.config = config
        self._clock = clock
        self._lock = Lock()
        self._topology = Topology()
        self._backoff = Backoff(
            self.config.seconds("retry_backoff_ms"),
            self.config.seconds("retry_backoff_max_ms"),
            Random(),  # noqa: S311 - jitter
        )
        self._wait = 0.0  # the backoff after the last failure
        self._failures = 0
        self._tried_at: float | None = None
        self._updated_at: float | None = None
        self._need_update = True
        self._wants_all = False
        self._wanted_version = 0
        self._answered_version = 0
        self._waiting: dict[int, Future[ClusterMetadata]] = {}  # by the version that they wait for
        self._listeners: set[Callable[[ClusterMetadata], object]] = set()
        self._coordinators: dict[tuple[int, str], int] = {}
        self._coordinator_brokers: dict[int, BrokerMetadata] = {}
        self._bootstrap = tuple(
            BrokerMetadata(f"bootstrap-{number}", address.host, address.port, None)
            for number, address in enumerate(parse_servers(self.config["bootstrap_servers"]))
        )
        self._topics: frozenset[str] = frozenset()
        self._refused: frozenset[str] = frozenset()  # of the topics asked for, those whose names cannot be sent
        self._held: list[frozenset[str] | None] = []  # what `also` adds; None for all topics
        self.creates_topics = True
        """Whether brokers may create a topic that is asked for, if ``allow_auto_create_topics`` says so too."""
        self.on_request: Callable[[], object] | None = None
        """Called when an update is requested; wakes the client that sends the requests."""

    # Brokers…

    @property
    def topology(self) -> Topology:
        """The present picture; it does not change."""
        return self._topology

    def brokers(self) -> set[BrokerMetadata]:
        """All brokers; the bootstrap servers as long as no broker is known."""
        return set(self._topology.brokers.values()) or set(self._bootstrap)

    def bootstrap_brokers(self) -> tuple[BrokerMetadata, ...]:
        """The bootstrap servers, under their temporary ids."""
        return self._bootstrap

    def set_bootstrap(self, servers: Iterable[tuple[str, int]]) -> None:
        """Replace the bootstrap servers, as by their canonical names."""
        self._bootstrap = tuple(
            BrokerMetadata(f"bootstrap-{number}", host, port, None) for number, (host, port) in enumerate(servers)
        )

    def is_bootstrap(self, node_id: int | str) -> bool:
        """Whether an id is a bootstrap server's."""
        return any(broker.nodeId == node_id for broker in self._bootstrap)

    def broker_metadata(self, broker_id: int | str) -> BrokerMetadata | None:
        """The address of a broker, a coordinator or a bootstrap server; None if it is not known."""
        if isinstance(broker_id, str):
            return next((broker for broker in self._bootstrap if broker.nodeId == broker_id), None)
        try:
            return self._topology.brokers.get(broker_id) or self._coordinator_brokers.get(broker_id)
        except TypeError:  # not hashable
            explain_key("broker_id", broker_id, "a broker's id")

    @property
    def controller(self) -> BrokerMetadata | None:
        """The broker to send administrative requests to."""
        return self._topology.brokers.get(self._topology.controller_id)

    @property
    def cluster_id(self) -> str | None:
        """The cluster's own name for itself."""
        return self._topology.cluster_id

    def forget_brokers(self) -> None:
        """Know the bootstrap servers only, to start again from them (KIP-899); topics and leaders stay."""
        self._topology = self._topology.changed(brokers={})
        self._coordinators.clear()
        self._coordinator_brokers.clear()

    # Topics…

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """The topics known, with or without the cluster's internal ones."""
        found = set(self._topology.topics)
        return found - self._topology.internal_topics if exclude_internal_topics else found

    @property
    def internal_topics(self) -> set[str]:
        """The topics that the cluster keeps for itself."""
        return set(self._topology.internal_topics)

    @property
    def unauthorized_topics(self) -> set[str]:
        """The topics that this client may not describe."""
        return {name for name, code in self._topology.errors.items() if code == _TOPIC_UNAUTHORIZED}

    def topic_error(self, topic: str) -> type[Exception] | None:
        """The error with which the cluster last answered for a topic, None if there was none."""
        try:
            code = self._topology.errors.get(topic)
        except TypeError:  # not hashable
            explain_key("topic", topic, "a topic's name")
        return None if code is None else for_code(code)

    def topic_id(self, topic: str) -> UUID | None:
        """The id of a topic (KIP-516), where brokers have them."""
        try:
            return self._topology.topic_ids.get(topic)
        except TypeError:  # not hashable
            explain_key("topic", topic, "a topic's name")

    def topic_name_for_id(self, topic_id: UUID) -> str | None:
        """The name of the topic with an id."""
        try:
            return self._topology.names_by_id.get(topic_id)
        except TypeError:  # not hashable
            explain_key("topic_id", topic_id, "a topic's UUID")

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """All partitions of a topic, with a leader or not; None if the topic is not known."""
        try:
            partitions = self._topology.topics.get(topic)
        except TypeError:  # not hashable
            explain_key("topic", topic, "a topic's name")
        return None if partitions is None else set(partitions)

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """The partitions of a topic that have a leader; None if the topic is not known."""
        try:
            partitions = self._topology.topics.get(topic)
        except TypeError:  # not hashable
            explain_key("topic", topic, "a topic's name")
        if partitions is None:
            return None
        return {number for number, partition in partitions.items() if partition.leader != -1}

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """The leader's id; -1 if there is none now, None if the partition is not known."""
        try:
            known = self._topology.partition(partition.topic, partition.partition)
        except (AttributeError, TypeError):
            explain_partition(partition)
        return None if known is None else known.leader

    def leader_epoch_for_partition(self, partition: TopicPartition) -> int:
        """The epoch of the leader; -1 if it is not known."""
        try:
            known = self._topology.partition(partition.topic, partition.partition)
        except (AttributeError, TypeError):
            explain_partition(partition)
        return -1 if known is None else known.leader_epoch

    def partition_metadata(self, partition: TopicPartition) -> PartitionMetadata | None:
        """Leader, replicas and state of a partition."""
        try:
            return self._topology.partition(partition.topic, partition.partition)
        except (AttributeError, TypeError):
            explain_partition(partition)

    def partitions_for_broker(self, broker_id: int) -> set[TopicPartition] | None:
        """The partitions that a broker leads; None if there are none."""
        try:
            return set(self._topology.led_by(broker_id)) or None
        except TypeError:  # not hashable
            explain_key("broker_id", broker_id, "a broker's id")

    def is_replica_node(self, partition: TopicPartition, node_id: int) -> bool:
        """Whether a broker has a copy of a partition that is online."""
        try:
            known = self._topology.partition(partition.topic, partition.partition)
        except (AttributeError, TypeError):
            explain_partition(partition)
        return known is not None and node_id in known.replicas and node_id not in known.offline_replicas

    def update_partition_leader(
        self, partition: TopicPartition, leader: int, epoch: int, brokers: Iterable[BrokerMetadata] = ()
    ) -> bool:
        """Take a leader from another reply than metadata (KIP-951); whether that was news."""
        with self._lock:
            found = self._topology.with_leader(partition.topic, partition.partition, leader, epoch, brokers)
            if found is None:
                return False
            self._topology = found
        return True

    def with_partitions(self, partitions_to_add: Iterable[PartitionMetadata]) -> ClusterMetadata:
        """A copy that has some partitions more."""
        copy = ClusterMetadata(config=self.config, clock=self._clock)
        copy.need_all_topic_metadata = self.need_all_topic_metadata
        topics = {name: dict(partitions) for name, partitions in self._topology.topics.items()}
        for partition in partitions_to_add:
            topics.setdefault(partition.topic, {})[partition.partition] = partition
        copy._topology = self._topology.changed(topics=topics)
        copy._coordinators = dict(self._coordinators)
        copy._bootstrap = self._bootstrap
        return copy

    # Coordinators…

    def coordinator_for_group(self, group: str) -> int | None:
        """The id of a group's coordinator; -1 if it has none now, None if it was not looked up."""
        try:
            return self._coordinators.get((GROUP, group))
        except TypeError:  # not hashable
            explain_key("group", group, "a group's id")

    def get_coordinator(self, key_type: int, key: str) -> int | None:
        """The id of the coordinator of a group (key type 0), a transaction (1) or a share group (2)."""
        try:
            return self._coordinators.get((key_type, key))
        except TypeError:  # not hashable
            explain_key("key", key, "a group's or transaction's id")

    def add_group_coordinator(self, group: str, response: object) -> NodeId | None:
        """Take a reply about a group's coordinator; its id, or None if the reply is an error."""
        return self.add_coordinator(response, GROUP, group)

    def add_coordinator(self, response: Any, key_type: int, key: str) -> NodeId | None:
        """Take a reply about a coordinator; its id, or None if the reply is an error."""
        entries = getattr(response, "coordinators", None)
        entry = next((entry for entry in entries or () if entry.key == key), None) or response
        if entry.error_code:
            log.debug("No coordinator for %s: %s", key, for_code(entry.error_code).__name__)
            self._coordinators[key_type, key] = -1
            return None
        node_id = NodeId(entry.node_id)
        self._coordinator_brokers[node_id] = BrokerMetadata(int(node_id), entry.host, entry.port, None)
        self._coordinators[key_type, key] = node_id
        return node_id

    def forget_coordinator(self, key_type: int, key: str) -> None:
        """Look a coordinator up again the next time."""
        try:
            self._coordinators.pop((key_type, key), None)
        except TypeError:  # not hashable
            explain_key("key", key, "a group's or transaction's id")

    # The topics of the next request…

    def set_topics(self, topics: Iterable[str]) -> Future[ClusterMetadata]:
        """Ask for these topics from now on; an update follows if one of them is new."""
        if isinstance(topics, str) or not isinstance(topics, Iterable):
            explain_key("topics", topics, "a list of names")
        topics = list(topics)
        try:
            wanted = frozenset(topics)
            strange = [topic for topic in wanted - self._topics if not isinstance(topic, str)]
        except TypeError:  # not hashable
            strange = [topic for topic in topics if not isinstance(topic, str)]
        if strange:
            explain_key("a topic", strange[0], "a str")
        with self._lock:
            new = wanted - self._topics
            refused = self._topology.errors.keys() & (self._topics - wanted)
            self._topics = wanted
            if refused:  # or there would be more of them with each name that a program tries
                errors = {name: code for name, code in self._topology.errors.items() if name not in refused}
                self._topology = self._topology.changed(errors=errors)
            self._wanted_version += bool(new)
        return self.request_update() if new else Future[ClusterMetadata]().success(self)

    def add_topic(self, topic: str) -> Future[ClusterMetadata]:
        """Ask for one topic more from now on."""
        if not isinstance(topic, str):
            explain_key("topic", topic, "a str")
        return self.set_topics(self._topics | {topic})

    @contextmanager
    def also(self, topics: Iterable[str] = (), *, everything: bool = False) -> Iterator[None]:
        """Ask for some topics too, or for all, as long as the block lasts and whatever `set_topics` says meanwhile.

        An update follows if one of them is not known. No broker creates a topic meanwhile because it is asked for.
        """
        held = None if everything else frozenset(topics)
        with self._lock:
            new = not self._wants_everything if held is None else not held <= self._asked_topics
            self._held.append(held)
            self._wanted_version += new
        try:
            if new and (held is None or not held <= self._topology.topics.keys()):
                self.request_update()
            yield
        finally:
            with self._lock:
                self._held.remove(held)

    @property
    def wanted_topics(self) -> frozenset[str]:
        """The topics that are asked for until `set_topics` says otherwise."""
        return self._topics

    @property
    def need_all_topic_metadata(self) -> bool:
        """Whether all topics are asked for, as for a pattern subscription."""
        return self._wants_all

    @need_all_topic_metadata.setter
    def need_all_topic_metadata(self, wants_all: bool) -> None:
        with self._lock:
            self._wanted_version += wants_all and not self._wants_all
            self._wants_all = wants_all

    @property
    def wanted_version(self) -> int:
        """Counts changes of the wanted topics; a client reads it before a request and passes it with the outcome."""
        return self._wanted_version

    @property
    def _asked_topics(self) -> frozenset[str]:
        return self._topics.union(*(held for held in self._held if held is not None))

    @property
    def _wants_everything(self) -> bool:
        return self._wants_all or None in self._held

    def metadata_request(self) -> MetadataRequest:
        """The request that the next update takes; the version is the connection's to choose."""
        from kafka.protocol.metadata import MetadataRequest

        with self._lock:
            wanted = self._topics
            names = None if self._wants_everything else sorted(self._asked_topics)
            # One name that cannot be encoded must not cost the others their metadata.
            refused = frozenset(name for name in names or () if not _can_be_sent(name))
            news, self._refused = refused - self._refused, refused
        for name in news:
            log.warning("The topic name %.100r cannot be sent to a broker; it is left out of metadata requests", name)
        if names is None:
            return MetadataRequest(topics=None)
        names = [name for name in names if name not in refused]
        # A look at a topic must not create it. One that is wanted and does not exist is created by the request that
        # follows the look.
        allowed = self.config.get("allow_auto_create_topics", True)  # an admin client has no such option
        may_create = allowed and self.creates_topics and wanted.issuperset(names)
        topic = MetadataRequest.MetadataRequestTopic
        return MetadataRequest(
            topics=[topic(name=name) for name in names],
            allow_auto_topic_creation=may_create,
        )

    # The time of the next request…

    @property
    def need_update(self) -> bool:
        """Whether an update was asked for."""
        return self._need_update

    def request_update(self) -> Future[ClusterMetadata]:
        """Ask for an update; the future resolves to this object when one came that has what is wanted now."""
        with self._lock:
            self._need_update = True
            future = self._waiting.get(self._wanted_version)
            if future is None or future.is_done:
                future = self._waiting[self._wanted_version] = Future()
        if self.on_request is not None:
            self.on_request()
        return future

    def ttl(self) -> float:
        """Milliseconds until metadata should be refreshed; 0 for now."""
        now = self._clock.monotonic()
        if self._need_update or self._updated_at is None:
            age = 0.0
        else:
            age = self._updated_at + self.config.seconds("metadata_max_age_ms") - now
        retry = 0.0 if self._tried_at is None else self._tried_at + self._wait - now
        return max(0, age * 1000, retry * 1000)

    def refresh_backoff(self) -> float:
        """Milliseconds to wait after the last failure before the next attempt."""
        return self._wait * 1000 if self._failures else float(self.config["retry_backoff_ms"])

    def update_age(self) -> float | None:
        """Seconds since the last update; None before the first."""
        return None if self._updated_at is None else self._clock.monotonic() - self._updated_at

    # Responses…

    def update_metadata(
        self, metadata: MetadataResponse, *, whole: bool | None = None, version: int | None = None
    ) -> None:
        """Take a MetadataResponse; `whole` if all topics had been asked for, `version` as it was then."""
        if not hasattr(metadata, "brokers"):
            raise TypeError(f"metadata must be a MetadataResponse, not {metadata!r:.200}")
        if not metadata.brokers:
            error = MetadataEmptyBrokerList("the broker does not know any broker; it may be starting")
            self.failed_update(error, version=version)
            return
        if whole is None:
            whole = self._wants_everything
        now = self._clock.monotonic()
        with self._lock:
            topology = merged(self._topology, metadata, whole=whole)
            if self._refused:
                topology = topology.changed(errors={**topology.errors, **dict.fromkeys(self._refused, _INVALID_TOPIC)})
            self._topology = topology
            self._tried_at = self._updated_at = now
            futures = self._take_waiting(version)
            if version is None:
                version = self._wanted_version
            self._answered_version = max(version, self._answered_version)
            names = topology.names_by_id
            incomplete = _incomplete(topology, {topic.name or names.get(topic.topic_id) for topic in metadata.topics})
            self._need_update = incomplete or self._answered_version < self._wanted_version
            # Incomplete metadata is requested again, as after a failure.
            self._failures = self._failures + 1 if incomplete else 0
            self._wait = self._backoff.delay(max(1, self._failures))
        for future in futures:
            future.try_success(self)
        for listener in tuple(self._listeners):
            try:
                listener(self)
            except Exception:  # noqa: PERF203 - one listener's error is not the others'
                log.exception("A metadata listener failed: %r", listener)

    def failed_update(self, exception: BaseException, *, version: int | None = None) -> None:
        """Record that a metadata request failed, and fail the futures that wait for that update."""
        with self._lock:
            self._failures += 1
            self._wait = self._backoff.delay(self._failures)
            self._tried_at = self._clock.monotonic()
            futures = self._take_waiting(version)
        for future in futures:
            future.try_failure(exception)

    def _take_waiting(self, version: int | None) -> list[Future[ClusterMetadata]]:
        """Return who waits for an update that has what was wanted at a version; all who wait with None."""
        over = [wanted for wanted in self._waiting if version is None or wanted <= version]
        return [self._waiting.pop(wanted) for wanted in over]

    def add_listener(self, listener: Callable[[ClusterMetadata], object]) -> None:
        """Call `listener(cluster)` after each update."""
        check_callable("listener", listener)
        self._listeners.add(listener)

    def remove_listener(self, listener: Callable[[ClusterMetadata], object]) -> None:
        """Call it no more."""
        check_callable("listener", listener)
        if listener not in self._listeners:
            raise IllegalArgumentError(
                f"{listener!r} is not among the listeners: add_listener() was not called with it"
            )
        self._listeners.remove(listener)

    def __str__(self) -> str:
        topology = self._topology
        return (
            f"ClusterMetadata(brokers: {len(topology.brokers)}, topics: {len(topology.topics)}, "
            f"coordinators: {len(self._coordinators)})"
        )


def _can_be_sent(name: str) -> bool:
    try:
        return len(name.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:
        return False


def _incomplete(topology: Topology, answered: Collection[str | None]) -> bool:
    """Whether a response has a transient error: a topic being created, a leader being elected.

    Topics that were not part of the request, because they are no longer wanted, do not count.
    """
    return any(for_code(code).retriable for name, code in topology.errors.items() if name in answered) or any(
        partition.error is not None and partition.error.invalid_metadata and partition.leader < 0
        for name, partitions in topology.topics.items()
        if name in answered
        for partition in partitions.values()
    )
