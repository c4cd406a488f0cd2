"""All transactional ids: fencing of producers, the partitions of a transaction, its end.

The rules are the ones of Kafka's coordinator, with both ways of ending: version 1, where an epoch lasts as long as its
producer, and version 2 of KIP-890, where each end counts it up and partitions are added by the first write to them.
The error that a method raises is the error of the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from kafka.broker.cluster.clock import BrokerClock, Timers
from kafka.broker.transactions.transaction import LAST_EPOCH, NO_EPOCH, NO_PRODUCER, Event, State, TransactionRecord
from kafka.errors import (
    ConcurrentTransactionsError,
    InvalidProducerIdMappingError,
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionalIdNotFoundError,
)
from kafka.structs import TopicPartition

#: Kafka's name -> the attribute here.
PROPERTIES = {
    "transaction.max.timeout.ms": "max_timeout",
    "transactional.id.expiration.ms": "id_expiration",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "expiry_interval",
}


@dataclass(frozen=True)
class TransactionSettings:
    """How the transaction coordinator behaves; times are in seconds.

    >>> TransactionSettings.from_properties({"transaction.max.timeout.ms": "1000"}).max_timeout
    1.0
    """

    max_timeout: float = 900.0
    id_expiration: float = 7 * 24 * 3600.0
    expiry_interval: float = 3600.0
    #: How long to wait before a marker is tried again whose partition has no leader.
    marker_retry: float = 0.1

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> TransactionSettings:
        """Read the properties that are ours."""
        return cls(**{own: float(properties[name]) / 1000 for name, own in PROPERTIES.items() if name in properties})


class MarkerLog(Protocol):
    """Where transactions end: partitions' logs and groups' offsets."""

    def write_marker(self, partition: TopicPartition, producer_id: int, epoch: int, *, committed: bool) -> bool:
        """End a producer's transaction on a partition; False if that must be tried again."""
        ...

    def end_offsets(self, producer_id: int, groups: Iterable[str], *, committed: bool) -> None:
        """End it for the offsets of these groups."""
        ...


class Granted(NamedTuple):
    """A producer id and the epoch to use it with."""

    producer_id: int
    epoch: int


_NOTHING: Final = Granted(NO_PRODUCER, NO_EPOCH)


class TransactionCoordinator:
    """Every transactional id."""

    def __init__(
        self,
        settings: TransactionSettings,
        clock: BrokerClock,
        timers: Timers,
        log: MarkerLog,
        new_producer_id: Callable[[], int],
        tables: Callable[[str], MutableMapping[str, Any]],
    ) -> None:
        self.settings = settings
        self.records: dict[str, TransactionRecord] = {}
        self._clock = clock
        self._timers = timers
        self._log = log
        self._new_producer_id = new_producer_id
        self._saved = tables("transactions")
        self._cleaner = timers.call_later(settings.expiry_interval, self._clean)

    def load(self) -> None:
        """Take up what was saved: open transactions continue, ends that were decided are carried out."""
        for transactional_id, saved in list(self._saved.items()):
            record = self.records[transactional_id] = TransactionRecord.from_json(transactional_id, saved)
            if record.state is State.ONGOING:
                self._watch(record)
            elif record.state.is_ending:
                self._write_markers(record)

    def close(self) -> None:
        """Stop all timers."""
        self._cleaner.cancel()
        for record in self.records.values():
            record.stop_timer()

    def _save(self, record: TransactionRecord) -> None:
        self._saved[record.transactional_id] = record.to_json()

    # Producers

    def init_producer(self, transactional_id: str | None, timeout: float, expected: Granted = _NOTHING) -> Granted:
        """Give a producer its id and epoch; abort the transaction that an earlier one left open first.

        ``expected`` is what the producer believes that it has (KIP-360): another one may have come meanwhile.
        """
        if transactional_id is None:
            return Granted(self._new_producer_id(), 0)
        if not transactional_id:
            raise InvalidRequestError
        if not 0 < timeout <= self.settings.max_timeout:
            raise InvalidTransactionTimeoutError
        record = self.records.get(transactional_id)
        if record is None:
            record = TransactionRecord(transactional_id, self._new_producer_id())
            self.records[transactional_id] = record
        if expected.producer_id != NO_PRODUCER and not _is_known(record, expected):
            raise ProducerFencedError
        if record.state.is_ending:
            raise ConcurrentTransactionsError
        if record.state is State.ONGOING:
            self._abort_fenced(record)
            raise ConcurrentTransactionsError
        record.timeout = timeout
        granted = self._bump(record, expected)
        record.move(Event.INIT, self._clock.now_ms())
        record.start_ms = -1
        self._save(record)
        return granted

    def _bump(self, record: TransactionRecord, expected: Granted) -> Granted:
        is_repeated = expected.epoch != NO_EPOCH and record.epoch not in (NO_EPOCH, expected.epoch)
        if is_repeated and not record.is_exhausted:
            if expected.epoch != record.last_epoch and expected.producer_id != record.previous_producer_id:
                raise ProducerFencedError
            return Granted(record.producer_id, record.epoch)
        knows_epoch = expected.epoch != NO_EPOCH
        last_epoch = record.epoch
        if record.is_exhausted:
            record.previous_producer_id = record.producer_id
            record.producer_id, record.epoch = self._new_producer_id(), 0
        else:
            record.epoch += 1
        record.last_epoch = last_epoch if knows_epoch else NO_EPOCH
        return Granted(record.producer_id, record.epoch)

    def _find(self, transactional_id: str, producer_id: int) -> TransactionRecord:
        if not transactional_id:
            raise InvalidRequestError
        record = self.records.get(transactional_id)
        if record is None or record.producer_id != producer_id:
            raise InvalidProducerIdMappingError
        return record

    # Adding

    def add(
        self, transactional_id: str, producer: Granted, partitions: Iterable[TopicPartition], groups: Iterable[str] = ()
    ) -> None:
        """Make partitions part of the transaction, which starts with the first."""
        record = self._find(transactional_id, producer.producer_id)
        if record.epoch != producer.epoch:
            raise ProducerFencedError
        if record.state.is_ending:
            raise ConcurrentTransactionsError
        wanted, readers = set(partitions), set(groups)
        if record.state is State.ONGOING and wanted <= record.partitions and readers <= record.groups:
            return
        if record.state.is_idle:
            record.start_ms = self._clock.now_ms()
            self._watch(record)
        record.move(Event.ADD, self._clock.now_ms())
        record.partitions |= wanted
        record.groups |= readers
        self._save(record)

    def verify(self, transactional_id: str, producer: Granted, partition: TopicPartition) -> None:
        """Raise unless the partition is part of the transaction already."""
        record = self._find(transactional_id, producer.producer_id)
        if record.epoch != producer.epoch:
            raise ProducerFencedError
        if record.state.is_ending:
            raise ConcurrentTransactionsError
        if record.state is not State.ONGOING or partition not in record.partitions:
            raise TransactionAbortableError

    # Ending

    def end(self, transactional_id: str, producer: Granted, *, committed: bool, bumps_epoch: bool) -> Granted:
        """Commit or abort; return the id and epoch that the producer continues with."""
        if not transactional_id:
            raise InvalidRequestError
        record = self.records.get(transactional_id)
        if record is None:
            raise InvalidProducerIdMappingError
        is_repeated = bumps_epoch and record.bumps_epoch and _is_repeated_end(record, producer)
        if record.producer_id != producer.producer_id and not is_repeated:
            raise InvalidProducerIdMappingError
        if record.epoch != producer.epoch and not is_repeated:
            raise ProducerFencedError
        if bumps_epoch:
            self._end_bumping(record, committed=committed, is_repeated=is_repeated)
        else:
            self._end_plainly(record, committed=committed)
        return Granted(record.producer_id, record.epoch)

    def _end_plainly(self, record: TransactionRecord, *, committed: bool) -> None:
        complete = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
        prepared = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
        if record.state is prepared:
            raise ConcurrentTransactionsError
        if record.state is State.ONGOING:
            record.bumps_epoch = False
            self._prepare(record, committed=committed)
        elif record.state is not complete:
            raise InvalidTxnStateError

    def _end_bumping(self, record: TransactionRecord, *, committed: bool, is_repeated: bool) -> None:
        complete = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
        prepared = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
        if is_repeated:
            if record.state is prepared:
                raise ConcurrentTransactionsError
            if record.state is not complete:
                raise InvalidTxnStateError
            return
        if record.state is not State.ONGOING and (committed or not record.state.is_idle):
            raise InvalidTxnStateError
        record.bumps_epoch = True
        record.last_epoch = record.epoch
        if record.is_exhausted:
            record.successor = (self._new_producer_id(), 0)
        record.epoch += 1
        self._prepare(record, committed=committed)

    def _prepare(self, record: TransactionRecord, *, committed: bool) -> None:
        record.stop_timer()
        record.move(Event.COMMIT if committed else Event.ABORT, self._clock.now_ms())
        self._save(record)
        self._write_markers(record)

    def _write_markers(self, record: TransactionRecord) -> None:
        """Write the remaining markers; try again later where a partition has no leader."""
        committed = record.state is State.PREPARE_COMMIT
        for partition in sorted(record.partitions):
            if self._log.write_marker(partition, record.producer_id, record.epoch, committed=committed):
                record.partitions.discard(partition)
        self._log.end_offsets(record.producer_id, record.groups, committed=committed)
        record.groups.clear()
        if record.partitions:
            self._save(record)
            record.timer = self._timers.call_later(self.settings.marker_retry, self._write_markers, record)
            return
        record.timer = None
        record.move(Event.WRITTEN, self._clock.now_ms())
        if record.successor is not None:
            record.previous_producer_id = record.producer_id
            record.producer_id, record.epoch = record.successor
            record.successor = None
        self._save(record)

    # Timeouts and expiry

    def _watch(self, record: TransactionRecord) -> None:
        record.stop_timer()
        left = record.timeout - (self._clock.now_ms() - record.start_ms) / 1000
        record.timer = self._timers.call_later(max(left, 0.0), self._timed_out, record)

    def _timed_out(self, record: TransactionRecord) -> None:
        record.timer = None
        if record.state is State.ONGOING:
            self._abort_fenced(record)

    def _abort_fenced(self, record: TransactionRecord) -> None:
        """Abort a transaction whose producer is gone or late; a producer that still writes with its epoch is fenced.

        If it asks for an epoch before another one does, it gets the epoch of the fence (KIP-588).
        """
        record.move(Event.FENCE, self._clock.now_ms())
        record.last_epoch = record.epoch
        if record.epoch <= LAST_EPOCH:
            record.epoch += 1
        # A producer that then ends it by KIP-890 is answered as if that had been its own end, with the new epoch.
        record.bumps_epoch = True
        self._prepare(record, committed=False)

    def _clean(self) -> None:
        self._cleaner = self._timers.call_later(self.settings.expiry_interval, self._clean)
        now = self._clock.now_ms()
        for record in list(self.records.values()):
            if record.state.is_idle and now - record.updated_ms >= self.settings.id_expiration * 1000:
                record.move(Event.EXPIRE, now)
                del self.records[record.transactional_id]
                self._saved.pop(record.transactional_id, None)

    # Administration

    def describe(self, transactional_id: str) -> TransactionRecord:
        """Return what is known of a transactional id, or raise."""
        if not transactional_id:
            raise InvalidRequestError
        record = self.records.get(transactional_id)
        if record is None:
            raise TransactionalIdNotFoundError
        return record

    def running_for_ms(self, record: TransactionRecord) -> int:
        """Return how long the present transaction has been open; 0 without one."""
        if record.state.is_idle or record.start_ms < 0:
            return 0
        return self._clock.now_ms() - record.start_ms

    def __iter__(self) -> Iterator[TransactionRecord]:
        return iter(list(self.records.values()))


def _is_known(record: TransactionRecord, expected: Granted) -> bool:
    """Whether the producer may be the one that this id belongs to (KIP-360)."""
    return record.epoch == NO_EPOCH or expected.producer_id in (record.producer_id, record.previous_producer_id)


def _is_repeated_end(record: TransactionRecord, producer: Granted) -> bool:
    """Whether this end was carried out already, and its answer got lost (KIP-890)."""
    if record.producer_id == producer.producer_id:
        return record.epoch == producer.epoch + 1 and record.state not in (State.ONGOING, State.EMPTY)
    return record.previous_producer_id == producer.producer_id and producer.epoch == LAST_EPOCH and record.epoch == 0
