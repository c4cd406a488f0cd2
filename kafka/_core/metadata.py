"""The metadata of a client: the topology of its cluster, the topics that it wants, the next request's time. No I/O.

Responses go in (`update_metadata`, `failed_update`); readers take an immutable snapshot (`topology`), from any thread.
`kafka._core.metadata_updater` sends the requests.

The wanted topics may change while a request is in flight. So changes are counted, a request covers the topics wanted at
some count (`wanted_version`), and a response that is older than the last change does not complete the update that the
change requested: `need_update` stays true and its futures stay pending.

A request names only the topics that are new, or whose last answer was not complete, unless all that is wanted is due to
be refreshed, by age or on demand: with one topic after the other, each request would be longer than the one before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka._arguments import check_callable, explain_key
from kafka._core.topology import Topology, merged, merging
from kafka._runtime.clock import Clock
from kafka._runtime.timers import Backoff
from kafka.errors import Code, IllegalArgumentError, MetadataEmptyBrokerList, for_code
from kafka.future import Future
from kafka.structs import BrokerMetadata, PartitionMetadata, TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.protocol.metadata import MetadataRequest, MetadataResponse

__all__ = ["Metadata", "MetadataState"]

log = logging.getLogger("kafka.client")

_NO_PARTITIONS: Final[dict[int, PartitionMetadata]] = {}
_LONGEST_NAME: Final = 2**15 - 1  # in bytes, the limit of the protocol


class MetadataState(Enum):
    """The state of a client's metadata, as ``health()`` names it."""

    FRESH = "fresh"
    DUE = "due"
    """A request is due: for metadata that is too old, or that was asked for."""
    REQUESTED = "requested"
    """A request is under way."""
    BACKING_OFF = "backing off"
    """The last request failed, or its answer was incomplete; the next one waits for retry_backoff_ms."""


class Merged(NamedTuple):
    """The topology after a response; it is used if `old` is still the present one."""

    old: Topology
    whole: bool
    forget: set[str]
    topology: Topology


class Metadata:
    """The present topology, what of it is wanted, and when the next request is due."""

    topology: Topology = Topology()
    """The present picture; it does not change, another takes its place."""

    def __init__(
        self,
        bootstrap: Iterable[tuple[str, int]],
        clock: Clock,
        backoff: Backoff,
        *,
        max_age: float,
        auto_create_topics: bool = True,
    ) -> None:
        self._clock = clock
        self._backoff = backoff
        self._max_age = max_age
        self._auto_create_topics = auto_create_topics
        self._lock = Lock()
        self._coordinators: dict[tuple[int, str], int] = {}
        self._coordinator_brokers: dict[int, BrokerMetadata] = {}
        self._bootstrap: tuple[BrokerMetadata, ...] = ()
        self.set_bootstrap(bootstrap)
        # The wanted topics…
        self._topics: frozenset[str] = frozenset()
        self._wants_all = False
        self._held: list[frozenset[str] | None] = []  # what `also` adds; None for all topics
        self._learned: set[str] = set()  # what `learn` took since the last update of all that is wanted
        self._refused: frozenset[str] = frozenset()  # of the topics asked for, those whose names cannot be sent
        self._wanted_version = 0
        self._added_version = 0  # that of the last topics that were new
        self._answered_version = 0
        # By the version that they wait for, and whether for an answer about all that is wanted.
        self._waiting: dict[tuple[int, bool], Future[Self]] = {}
        self._listeners: set[Callable[[Any], object]] = set()
        self.creates_topics = True
        """Whether brokers may create a topic that is asked for, if ``allow_auto_create_topics`` says so too."""
        self.on_request: Callable[[], object] | None = None
        """Called when an update is requested; wakes the client that sends the requests."""
        # When the next request is due…
        self._need_update = True  # about all that is wanted
        self._full_version = 0  # the version that was wanted then
        self._due: dict[str, int] = {}  # topics to be asked about, each with the version of the first request for it
        self._wait = 0.0  # the backoff after the last failure
        self._failures = 0
        self._tried_at: float | None = None
        self._updated_at: float | None = None
        self.requests = 0
        """The number of requests under way."""
        self.error: BaseException | None = None
        """Why the last request failed; None if it succeeded."""

    # Bootstrap servers…

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

    def forget_brokers(self) -> None:
        """Know the bootstrap servers only, to start again from them (KIP-899); topics and leaders stay."""
        self.topology = self.topology.changed(brokers={})
        self._coordinators.clear()
        self._coordinator_brokers.clear()

    def update_partition_leader(
        self, partition: TopicPartition, leader: int, epoch: int, brokers: Iterable[BrokerMetadata] = ()
    ) -> bool:
        """Take a leader from another reply than metadata (KIP-951); whether that was news."""
        with self._lock:
            found = self.topology.with_leader(partition.topic, partition.partition, leader, epoch, brokers)
            if found is None:
                return False
            self.topology = found
        return True

    # The topics of the next request…

    def set_topics(self, topics: Iterable[str]) -> Future[Self]:
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
            refused = self.topology.errors.keys() & (self._topics - wanted)
            self._topics = wanted
            if refused:  # or there would be more of them with each name that a program tries
                errors = {name: code for name, code in self.topology.errors.items() if name not in refused}
                self.topology = self.topology.changed(errors=errors)
            if new:
                self._add(new)
        return self.request_update(new) if new else Future[Any]().success(self)

    def add_topic(self, topic: str) -> Future[Self]:
        """Ask for one topic more from now on."""
        if not isinstance(topic, str):
            explain_key("topic", topic, "a str")
        with self._lock:  # `set_topics` compares all topics
            new = topic not in self._topics
            if new:
                self._topics |= {topic}
                self._add((topic,))
        return self.request_update((topic,)) if new else Future[Any]().success(self)

    @contextmanager
    def also(self, topics: Iterable[str] = (), *, everything: bool = False) -> Iterator[None]:
        """Ask for some topics too, or for all, as long as the block lasts and whatever `set_topics` says meanwhile.

        An update follows if one of them is not known. No broker creates a topic meanwhile because it is asked for.
        """
        held = None if everything else frozenset(topics)
        with self._lock:
            new = not self._wants_everything if held is None else not held <= self._asked_topics
            unknown = frozenset() if held is None else held - self.topology.topics.keys()
            self._held.append(held)
            if new:
                self._add(unknown)
        try:
            if new and (held is None or unknown):
                self.request_update(unknown)
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
            if wants_all and not self._wants_all:
                self._add(())
                self._full_version = self._wanted_version
            self._wants_all = wants_all

    def _add(self, topics: Iterable[str]) -> None:
        """Count a change, and ask about these topics soon."""
        self._wanted_version += 1
        self._added_version = self._wanted_version
        self._due.update(dict.fromkeys(topics, self._wanted_version))

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

    def due_topics(self) -> frozenset[str] | None:
        """The topics that the next request is about; None if it is about all that is wanted."""
        with self._lock:
            if self._wants_everything or self._is_due(self._clock.monotonic()):
                return None
            asked = [self._topics, *(held for held in self._held if held is not None)]
            return frozenset(topic for topic in self._due if any(topic in topics for topics in asked))

    def metadata_request(self, topics: Collection[str] | None = None) -> MetadataRequest:
        """The request for some topics, or for all that is wanted; the version is the connection's to choose."""
        from kafka.protocol.metadata import MetadataRequest

        with self._lock:
            wanted = self._topics
            names = None if self._wants_everything else sorted(self._asked_topics if topics is None else topics)
            # One name that cannot be encoded must not cost the others their metadata.
            refused = frozenset(name for name in names or () if not _can_be_sent(name))
            news = refused - self._refused
            self._refused = refused if topics is None else refused | self._refused
        for name in news:
            log.warning("The topic name %.100r cannot be sent to a broker; it is left out of metadata requests", name)
        if names is None:
            return MetadataRequest(topics=None)
        names = [name for name in names if name not in refused]
        # A look at a topic must not create it. One that is wanted and does not exist is created by the request that
        # follows the look.
        may_create = self._auto_create_topics and self.creates_topics and wanted.issuperset(names)
        topic = MetadataRequest.MetadataRequestTopic
        return MetadataRequest(
            topics=[topic(name=name) for name in names],
            allow_auto_topic_creation=may_create,
        )

    # The time of the next request…

    @property
    def need_update(self) -> bool:
        """Whether an update was asked for."""
        return self._need_update or bool(self._due)

    def request_update(self, topics: Collection[str] = ()) -> Future[Self]:
        """Ask for an update of all that is wanted, or of some topics of it.

        The future resolves to this object when one came that has what is wanted now.
        """
        with self._lock:
            if not topics:
                self._need_update, self._full_version = True, self._wanted_version
            elif more := [topic for topic in topics if topic not in self._due]:
                self._wanted_version += 1
                self._due.update(dict.fromkeys(more, self._wanted_version))
            key = self._wanted_version, not topics
            future = self._waiting.get(key)
            if future is None or future.is_done:
                future = self._waiting[key] = Future()
        if self.on_request is not None:
            self.on_request()
        return future

    def due_in(self) -> float:
        """Seconds until a request is due: by age or on demand, and after the backoff of a failure. 0 for now."""
        now = self._clock.monotonic()
        due = now if self._due or self._updated_at is None or self._need_update else self._updated_at + self._max_age
        return max(0.0, due - now, self.backs_off_for())

    def _is_due(self, now: float) -> bool:
        """Whether all that is wanted is to be refreshed."""
        return self._need_update or self._updated_at is None or self._updated_at + self._max_age <= now

    def backs_off_for(self) -> float:
        """Seconds that the backoff after the last answer still lasts, or less than 0.

        Topics that were added since then do not wait, or the first record of each would take retry_backoff_ms more.
        """
        if not self._failures and self._answered_version < self._added_version:
            return 0.0
        return 0.0 if self._tried_at is None else self._tried_at + self._wait - self._clock.monotonic()

    @property
    def wait(self) -> float:
        """Seconds between the last answer or failure and the next request."""
        return self._wait

    @property
    def state(self) -> MetadataState:
        """What happens to the metadata now."""
        if self.requests:
            return MetadataState.REQUESTED
        if (self._failures or self.error is not None) and self.backs_off_for() > 0:
            return MetadataState.BACKING_OFF
        return MetadataState.FRESH if self.due_in() > 0 else MetadataState.DUE

    def update_age(self) -> float | None:
        """Seconds since the last update of all that is wanted; None before the first."""
        return None if self._updated_at is None else self._clock.monotonic() - self._updated_at

    # Responses…

    def update_metadata(
        self,
        metadata: MetadataResponse,
        *,
        whole: bool | None = None,
        version: int | None = None,
        partial: bool = False,
        prepared: Merged | None = None,
    ) -> None:
        """Take a MetadataResponse, with `version` as it was when it was asked for.

        It is `whole` if it is about all topics that there are, `partial` if it is not about all that is wanted.
        `prepared` is what `prepare` has returned for it, if that was called.
        """
        if not hasattr(metadata, "brokers"):
            raise TypeError(f"metadata must be a MetadataResponse, not {metadata!r:.200}")
        if not metadata.brokers:
            error = MetadataEmptyBrokerList("the broker does not know any broker; it may be starting")
            self.failed_update(error, version=version)
            return
        if whole is None:
            whole = self._wants_everything and not partial
        self.error = None
        now = self._clock.monotonic()
        with self._lock:
            forget: set[str] = set()
            if not partial:  # topics that are not wanted are refreshed by no request
                forget, self._learned = self._learned - self._asked_topics, set()
            topology = self._merge(metadata, whole, forget, prepared)
            if self._refused:
                topology = topology.changed(
                    errors={**topology.errors, **dict.fromkeys(self._refused, int(Code.INVALID_TOPIC_EXCEPTION))}
                )
            self.topology = topology
            if version is None:
                version = self._wanted_version
            futures = self._take_waiting(version, partial=partial)
            self._answered_version = max(version, self._answered_version)
            self._tried_at = now
            self._updated_at = self._updated_at if partial else now
            # Incomplete metadata is requested again, as after a failure.
            incomplete = _incomplete(topology, metadata)
            everything = bool(incomplete) and whole and self._wants_everything
            self._need_update = everything or (self._need_update and (partial or version < self._full_version))
            later = {topic: since for topic, since in self._due.items() if since > version}
            self._due = {**dict.fromkeys(() if everything else incomplete, version), **later}
            self._failures = self._failures + 1 if incomplete else 0
            self._wait = self._backoff.delay(max(1, self._failures))
        for future in futures:
            future.try_success(self)
        for listener in tuple(self._listeners):
            try:
                listener(self)
            except Exception:  # noqa: PERF203 - one listener's error is not the others'
                log.exception("A metadata listener failed: %r", listener)

    def prepare(
        self, metadata: MetadataResponse, *, whole: bool, partial: bool = False
    ) -> Generator[None, None, Merged]:
        """Do what takes long of `update_metadata`, or of `learn` if `partial`, a topic at a time."""
        old = self.topology
        forget = set() if partial else self._learned - self._asked_topics
        return Merged(old, whole, forget, (yield from merging(old, metadata, whole=whole, forget=forget)))

    def _merge(self, metadata: MetadataResponse, whole: bool, forget: set[str], prepared: Merged | None) -> Topology:
        if prepared is not None and prepared[:3] == (self.topology, whole, forget):
            return prepared.topology
        return merged(self.topology, metadata, whole=whole, forget=forget)

    def learn(self, metadata: MetadataResponse, *, whole: bool, prepared: Merged | None = None) -> None:
        """Take the answer to a request that a call sent for itself; `whole` if it was about all topics.

        It completes no update. Topics that are not wanted stay until the next update of all that is wanted: by age, or
        because a broker is gone.
        """
        if metadata.brokers:  # else the broker is starting, and knows nothing yet
            with self._lock:
                self.topology = self._merge(metadata, whole, set(), prepared)
                self._learned.update(topic.name for topic in metadata.topics if topic.name is not None)

    def failed_update(self, exception: BaseException, *, version: int | None = None) -> None:
        """Record that a metadata request failed, and fail the futures that wait for that update."""
        self.error = exception
        with self._lock:
            self._failures += 1
            self._wait = self._backoff.delay(self._failures)
            self._tried_at = self._clock.monotonic()
            futures = self._take_waiting(version)
        for future in futures:
            future.try_failure(exception)

    def _take_waiting(self, version: int | None, *, partial: bool = False) -> list[Future[Self]]:
        """Return who waits for an update that has what was wanted at a version; all who wait with None."""
        over = [
            (wanted, full)
            for wanted, full in self._waiting
            if (version is None or wanted <= version) and not (partial and full)
        ]
        return [self._waiting.pop(key) for key in over]

    def add_listener(self, listener: Callable[[Self], object]) -> None:
        """Call `listener(cluster)` after each update."""
        check_callable("listener", listener)
        self._listeners.add(listener)

    def remove_listener(self, listener: Callable[[Self], object]) -> None:
        """Call it no more."""
        check_callable("listener", listener)
        if listener not in self._listeners:
            raise IllegalArgumentError(
                f"{listener!r} is not among the listeners: add_listener() was not called with it"
            )
        self._listeners.remove(listener)


def _can_be_sent(name: str) -> bool:
    try:
        return len(name.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:
        return False


def _incomplete(topology: Topology, metadata: MetadataResponse) -> list[str]:
    """Return the topics for which a response has a transient error: one that is created, a leader that is elected.

    Topics that were not part of the request, because they are no longer wanted, do not count.
    """
    errors, topics, found = topology.errors, topology.topics, []
    for topic in metadata.topics:
        name = topic.name or topology.names_by_id.get(topic.topic_id)
        if name is None:
            continue
        if name in errors and for_code(errors[name]).retriable:
            found.append(name)
            continue
        for partition in topics.get(name, _NO_PARTITIONS).values():
            if partition.error is not None and partition.error.invalid_metadata and partition.leader < 0:
                found.append(name)
                break
    return found
