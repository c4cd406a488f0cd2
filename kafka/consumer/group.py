"""`KafkaConsumer`: what an application reads records with. Argument checking and units; the work is the engine's."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, overload

from kafka.config import defaults, resolve
from kafka.consumer.arguments import (
    checked_callback,
    checked_limit,
    checked_offsets,
    checked_partition,
    checked_partitions,
    checked_place,
    checked_reason,
    checked_timeout,
    checked_timestamp,
    checked_timestamps,
    hint_for_attribute,
)
from kafka.consumer.reset import EARLIEST, LATEST, Reset
from kafka.consumer.subscription import Mode
from kafka.errors import ClientClosedError, IllegalStateError
from kafka.structs import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OnCommit,
    SubscriptionPattern,
    TopicPartition,
    check_topic,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.consumer.engine import Engine
    from kafka.future import Future
    from kafka.record.columns import Columns
    from kafka.record.consumer_record import ConsumerRecord

__all__ = ["KafkaConsumer"]

_FOREVER: Final = math.inf
# A timeout up to this that is not a whole number's type is in seconds, in the mind of whoever wrote it.
_LIKELY_SECONDS: Final = 10.0
# Records that poll_batches returns unless told otherwise: max_poll_records suits rows, columns pay off by the thousand.
_COLUMN_RECORDS: Final = 65_536


class KafkaConsumer:
    """Reads records from a Kafka cluster.

    Made with topics it reads them; `subscribe` and `assign` change what it reads. Iterate it for one
    record at a time, `poll` for a few hundred, `poll_batches` for columns. It fetches ahead in the
    background. One thread at a time may use it, or IllegalStateError says which other thread is inside a call; only
    `wakeup`, `health` and `metrics` may be called from any.

    >>> from kafka.broker import Broker
    >>> with Broker(topics=["events"]) as broker:
    ...     _ = broker.append("events", value=b"hello")
    ...     with KafkaConsumer(
    ...         "events", bootstrap_servers=broker.bootstrap_servers,
    ...         auto_offset_reset="earliest", consumer_timeout_ms=5000,
    ...     ) as consumer:
    ...         print(next(consumer).value)
    b'hello'

    Keyword arguments are the options in ``KafkaConsumer.DEFAULT_CONFIG``. The constructor connects,
    for bootstrap_timeout_ms at most, and raises NoBrokersAvailable if no broker answers.
    """

    DEFAULT_CONFIG: Final[dict[str, Any]] = defaults("consumer")
    #: What session_timeout_ms is by default with brokers before 0.10.1, which allow no more; as 3.x and 2.x name it.
    DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735: Final[int] = 30_000
    DEFAULT_SESSION_TIMEOUT_MS_0_9: Final[int] = DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735

    def __init__(self, *topics: str, **configs: Any) -> None:
        self._engine: Engine | None = None
        for topic in topics:
            if isinstance(topic, (Mapping, list, tuple, set, frozenset)):
                raise TypeError(
                    f"KafkaConsumer() takes names of topics and options by name, not {type(topic).__name__}: "
                    "KafkaConsumer('events', 'orders', bootstrap_servers='localhost:9092', group_id='readers')"
                )
        self.config = resolve("consumer", configs)
        # Imported with the first consumer: it is most of what importing KafkaConsumer would take.
        from kafka.consumer.engine import Engine

        engine = self._engine = Engine(self.config)
        self._subscription = engine.subscription
        self._iteration: Iterator[ConsumerRecord] | None = None
        timeout = self.config["consumer_timeout_ms"]
        self._patience = _FOREVER if timeout < 0 or timeout == math.inf else timeout / 1000
        try:
            if topics:
                self.subscribe(topics)
                engine.client.cluster.set_topics(topics)
        except BaseException:
            engine.close(0.0)
            raise
        engine.start()

    # What to read…

    def subscribe(self, topics: Iterable[str] = (), pattern: Any = None, listener: Any = None) -> None:
        """Read these topics, or those whose names match a pattern, in place of what was subscribed to before.

        Without a group_id this consumer reads all of their partitions, also those that are added later. A pattern is
        a text or what `re.compile` returns, and matched here from the start of the names; or a `SubscriptionPattern`,
        which the brokers match (``group_protocol='consumer'``).
        """
        engine = self._open()
        if isinstance(pattern, SubscriptionPattern) and (
            engine.membership is None or self.config["group_protocol"] == "classic"
        ):
            raise IllegalStateError(
                "A SubscriptionPattern is matched by the group's coordinator: it needs a group_id and "
                "group_protocol='consumer'. With subscribe(pattern='...') the consumer matches by itself."
            )
        engine.subscription.subscribe(topics, pattern, listener)
        engine.look_again()

    def unsubscribe(self) -> None:
        """Read nothing; what was assigned by hand goes too."""
        engine = self._open()
        try:
            if engine.membership is not None:
                engine.membership.unsubscribed(engine.deadline(engine.close_timeout))
        finally:  # what a listener or a commit's callback raises comes after that
            self._subscription.unsubscribe()

    def subscription(self) -> set[str] | None:
        """The topics subscribed to; with a pattern those that it matches now. None if there are none.

        Which topics a SubscriptionPattern matches only the brokers know: then those of `assignment`.
        """
        subscription = self._subscription
        if isinstance(subscription.pattern, SubscriptionPattern):
            return {partition.topic for partition in subscription.assigned()} or None
        return set(subscription.subscribed_topics) or None

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions. Those that were assigned before keep their positions."""
        self._open().subscription.assign_by_user(partitions)

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read."""
        return self._subscription.assigned()

    # Reading…

    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return records by partition, `max_records` (max_poll_records) in all at most.

        Waits for `timeout_ms` if there are none. With ``update_offsets=False`` the positions stay, and the same
        records come again.
        """
        engine = self._open()
        limit = self._limit(max_records)
        return engine.poll(limit, self._poll_deadline(engine, timeout_ms), move_on=update_offsets)

    def poll_batches(self, timeout_ms: float = 0, max_records: int | None = None) -> dict[TopicPartition, Columns]:
        """Return records as columns: for those who take them by the thousand and need no object for each.

        Batches are not cut in two, so there may be more records than `max_records` (65,536) by one batch.
        Keys and values are bytes; deserializers are not applied. ``columns.to_arrow()`` gives a
        ``pyarrow.RecordBatch``. An interceptor cannot see columns: IllegalStateError with one that has on_consume().
        """
        engine = self._open()
        if engine.interceptors is not None and engine.interceptors.has("on_consume"):
            raise IllegalStateError(
                "poll_batches() returns columns, which on_consume() of this consumer's interceptors cannot see: use "
                "poll(), or make a consumer without them"
            )
        at_least = _COLUMN_RECORDS if max_records is None else self._limit(max_records)
        return engine.poll_columns(at_least, self._poll_deadline(engine, timeout_ms))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        if self._engine is not None and self._engine.busy_thread:
            self._engine.check_thread()
        if self._iteration is None:
            self._iteration = self._records()
        return self._iteration

    def __next__(self) -> ConsumerRecord:
        return next(iter(self))

    def _records(self) -> Iterator[ConsumerRecord]:
        subscription, patience = self._subscription, self._patience
        limit = self.config["max_poll_records"]
        try:
            while True:
                engine = self._open()
                if subscription.mode is Mode.NONE:
                    raise IllegalStateError("There is nothing to read: call subscribe() or assign() first")
                chunk = engine.poll_chunk(limit, engine.deadline(patience))
                if chunk is None:
                    return
                cursor = chunk.cursor
                for record in chunk.records:  # hot, and no call between the last two lines: see Chunk
                    if chunk.interrupted:
                        break
                    cursor.returned = record
                    yield record
                if subscription.chunk is chunk:
                    subscription.put_down()
        finally:
            self._iteration = None

    def wakeup(self) -> None:
        """Let `poll` (or the iteration) end with WakeupError, this one or the next. From any thread."""
        if self._engine is not None:
            self._engine.wakeup()

    # Positions…

    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record of a partition."""
        return self._open().position(checked_partition(partition), self._deadline(timeout_ms))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Go on with this offset."""
        self._open().subscription.seek(checked_partition(partition), *checked_place(offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go to the first record of these partitions, or of all; looked up when it is needed.

        IllegalStateError if none are named and none were assigned yet: a subscription's are assigned within `poll`.
        """
        self._seek_all("seek_to_beginning()", partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go behind the last record of these partitions, or of all; looked up when it is needed.

        IllegalStateError if none are named and none were assigned yet: a subscription's are assigned within `poll`.
        """
        self._seek_all("seek_to_end()", partitions, LATEST)

    def seek_to_timestamp(self, timestamp_ms: int, *partitions: TopicPartition) -> None:
        """Go to the first record at or after a time (in ms) in these partitions, or in all; else to the end.

        IllegalStateError if none are named and none were assigned yet: a subscription's are assigned within `poll`.
        """
        self._seek_all("seek_to_timestamp()", partitions, Reset(checked_timestamp(timestamp_ms)))

    def _seek_all(self, what: str, partitions: Collection[TopicPartition], reset: Reset) -> None:
        engine = self._open()
        checked_partitions(partitions)
        if not partitions:
            engine.check_assigned(what)
        engine.seek_all(partitions, lambda partition: engine.subscription.seek_to(partition, reset))

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`; what was fetched is kept."""
        for partition in checked_partitions(partitions):
            self._open().subscription.pause(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again."""
        for partition in checked_partitions(partitions):
            self._open().subscription.resume(partition)

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return self._subscription.paused()

    def highwater(self, partition: TopicPartition) -> int | None:
        """The offset that the next record written to a partition gets, as of the last fetch; None before the first."""
        return self._subscription.get(partition).high_watermark

    def current_lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the position is behind the end, as of the last fetch; None before the first.

        With isolation_level='read_committed' the end is the first record of a transaction that is still open.
        """
        state = self._subscription.get(partition)
        committed_only = self.config["isolation_level"] == "read_committed"
        end = state.stable_offset if committed_only and state.stable_offset is not None else state.high_watermark
        if end is None or state.cursor.position is None:
            return None
        return max(0, end - state.cursor.position)

    # The group…

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets, by default of all that was returned, and wait until the broker has stored them.

        CommitFailedError if the group has moved on and the partitions are others' now.
        """
        engine = self._open()
        membership = engine.check_group()
        chosen = self._to_commit(offsets)
        deadline = self._deadline(timeout_ms)
        if chosen:
            engine.run(membership.commit(chosen, deadline), deadline, "the commit")
            engine.tell_interceptors()

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None, callback: OnCommit | None = None
    ) -> Future[Any]:
        """Commit without waiting. `callback(offsets, response or error)` is called from a later poll or close."""
        membership = self._open().check_group()
        chosen = self.config["default_offset_commit_callback"] if callback is None else checked_callback(callback)
        return membership.commit_async(self._to_commit(offsets), chosen)

    def _to_commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            return self._subscription.consumed()
        return checked_offsets(offsets)

    @overload
    def committed(
        self, partition: TopicPartition, metadata: Literal[False] = False, timeout_ms: float | None = None
    ) -> int | None: ...

    @overload
    def committed(
        self, partition: TopicPartition, metadata: Literal[True], timeout_ms: float | None = None
    ) -> OffsetAndMetadata | None: ...

    @overload
    def committed(
        self, partition: Collection[TopicPartition], metadata: bool = False, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...

    def committed(
        self,
        partition: TopicPartition | Collection[TopicPartition],
        metadata: bool = False,
        timeout_ms: float | None = None,
    ) -> Any:
        """The committed offset of a partition, or None; with ``metadata=True`` as OffsetAndMetadata.

        For a collection of partitions a dictionary of OffsetAndMetadata or None.
        """
        engine = self._open()
        membership = engine.check_group()
        one = isinstance(partition, TopicPartition)
        asked = checked_partitions([partition] if isinstance(partition, TopicPartition) else partition, "partition")
        deadline = self._deadline(timeout_ms)
        found = engine.run(membership.committed(asked, deadline), deadline, "looking up committed offsets")
        if not one:
            return {entry: found.get(entry) for entry in asked}
        offset = found.get(asked[0])
        return offset if metadata or offset is None else offset.offset

    def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Go to the committed offsets of these partitions, or of all; where there is none auto_offset_reset decides.

        Partitions that are not assigned yet start there anyway.
        """
        engine = self._open()
        engine.check_group()
        checked_partitions(partitions)
        engine.seek_all(partitions, engine.subscription.seek_to_committed)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who this member is, for `KafkaProducer.send_offsets_to_transaction`."""
        return self._open().check_group().metadata()

    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Let the group assign its partitions anew; that happens in the polls to come."""
        self._open().check_group().request_rejoin(checked_reason(reason))

    # Looking offsets up…

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offsets of partitions, assigned or not."""
        return self._edge(partitions, EARLIEST, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records of partitions get; with read_committed the first not decided yet."""
        return self._edge(partitions, LATEST, timeout_ms)

    def _edge(
        self, partitions: Iterable[TopicPartition], place: Reset, timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(checked_partitions(partitions), place.timestamp)
        found = self._open().find_offsets(wanted, self._deadline(timeout_ms))
        return {partition: 0 if offset is None else offset.offset for partition, offset in found.items()}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time (in ms) in each partition; None where none is so late."""
        wanted = checked_timestamps(timestamps)
        return dict(self._open().find_offsets(wanted, self._deadline(timeout_ms)))

    # Topics…

    def topics(self, timeout_ms: float | None = None) -> set[str]:
        """All topics of the cluster that this client may see."""
        return self._open().topics(self._deadline(timeout_ms))

    def partitions_for_topic(self, topic: str, timeout_ms: float | None = None) -> set[int] | None:
        """The partitions of a topic; None if the topic does not exist, and it is not created then."""
        check_topic(topic)
        return self._open().partitions_for_topic(topic, self._deadline(timeout_ms))

    # How it is…

    def bootstrap(self, timeout_ms: float | None = None, refresh: bool = False) -> None:
        """Know the cluster: that is so once the consumer is made; with `refresh` ask for its metadata anew, and wait.

        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        ...     consumer.bootstrap(timeout_ms=5000, refresh=True)
        """
        engine = self._open()
        if refresh:
            engine.refresh_metadata(self._deadline(timeout_ms))

    def bootstrap_connected(self) -> bool:
        """Whether there is a connection to a broker."""
        return any(link.connected() for link in self._open_for_any_thread().client.links())

    def metrics(self, raw: bool = False) -> Any:
        """The metrics: names and values by group, or with `raw` the metrics themselves; None if they are off."""
        metrics = self._open_for_any_thread().metrics
        if metrics is None:
            return None
        found: Mapping[Any, Any] = metrics.metrics if raw else metrics.snapshot()
        return dict(found)

    def health(self) -> dict[str, Any]:
        """Return what works and what does not, and why: for people, probes and dashboards; `json.dumps` takes it.

        In the form of all clients (``docs/operations.rst``). ``partitions`` has those assigned, each with its position
        and the problem that keeps records from coming; ``group`` has the member's state and what it waits for.
        """
        if self._engine is None:
            raise ClientClosedError("KafkaConsumer() raised an error, so this consumer cannot be used.")
        return self._engine.health()

    # When it ends…

    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """Commit if that is automatic, leave the group, free everything. Idempotent.

        It takes `timeout_ms` at most, also when brokers do not answer. By default that is 30 seconds (or
        default_api_timeout_ms, if that is less), and 5 while no broker can be reached.
        """
        engine = self._engine
        if engine is not None:
            engine.close(None if timeout_ms is None else self._seconds(timeout_ms), commit=autocommit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None and not engine.closed:
            try:
                warnings.warn(f"{self!r} was not closed: use `with` or call close()", ResourceWarning, 2, self)
            finally:  # warnings may be errors
                engine.close(0.0, commit=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: make one in each process that needs one")

    if not TYPE_CHECKING:  # for which every name would be right then

        def __getattr__(self, name: str) -> NoReturn:
            hint = "" if name.startswith("_") else hint_for_attribute(name, dir(type(self)))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)

    def __repr__(self) -> str:
        closed = " closed" if self._engine is None or self._engine.closed else ""
        return f"<KafkaConsumer client_id={self.config['client_id']!r} group_id={self.config['group_id']!r}{closed}>"

    # Arguments…

    def _open(self) -> Engine:
        """Return the engine for a call that one thread at a time may make."""
        engine = self._open_for_any_thread()
        if engine.busy_thread:
            engine.check_thread()
        return engine

    def _open_for_any_thread(self) -> Engine:
        engine = self._engine
        if engine is None or engine.closed:
            raise ClientClosedError("This consumer is closed.")
        if engine.loop.forked:  # what was fetched before is the parent's to hand out
            engine.loop.check_usable()
        return engine

    def _seconds(self, timeout_ms: float | None) -> float:
        return checked_timeout(self.config["default_api_timeout_ms"] if timeout_ms is None else timeout_ms)

    def _deadline(self, timeout_ms: float | None) -> float:
        return self._open().deadline(self._seconds(timeout_ms))

    @staticmethod
    def _poll_deadline(engine: Engine, timeout_ms: float) -> float:
        if type(timeout_ms) is float and 0 < timeout_ms <= _LIKELY_SECONDS:
            warnings.warn(
                f"poll({timeout_ms}) waits for {timeout_ms:g} milliseconds: timeouts of a KafkaConsumer are in "
                f"milliseconds, as in poll({timeout_ms * 1000:.0f}) for {timeout_ms:g} seconds",
                stacklevel=3,
            )
        return engine.deadline(checked_timeout(timeout_ms))

    def _limit(self, max_records: int | None) -> int:
        if max_records is None:
            return int(self.config["max_poll_records"])
        return checked_limit(max_records)
