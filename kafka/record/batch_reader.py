"""Reading what a fetch brought for one partition: lazily, batch by batch, as many records as are asked for.

Data flow: the fetched buffer stays as it is; :class:`RecordReader` walks its headers, drops batches that need not
be looked at (below the wanted offset, control, aborted), checks and unpacks one batch at a time and decodes from
it the records that :meth:`~RecordReader.take` is asked for, which end where their bytes become too many. So a fetch of
50 MB costs those 50 MB, one unpacked batch, and the records taken.

Owned by one consumer and not locked. :meth:`~RecordReader.prepare` may run on another thread (checksum and
decompression release the GIL) as long as no other thread uses the reader at that time.

A damaged batch is refused as a whole, before the first of its records where that can be seen at the start. The error
comes when the batch's turn has come: records in front of it are delivered first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.codec import DEFAULT_LIMIT
from kafka.errors import CorruptRecordError, KafkaError, RecordDeserializationError
from kafka.record.aborted_transactions import AbortedTransactionFilter
from kafka.record.batch import check_batch, open_batch
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.crc32c import fastest
from kafka.record.deserialization import Deserialize, deserialize
from kafka.record.header import (
    CONTROL,
    LOG_OVERHEAD,
    V2_ATTRIBUTES_AT,
    BatchHeader,
    Buffer,
    corrupt,
    is_cut_off,
    read_header,
)
from kafka.record.message_v0_v1 import Nested, read_messages, to_rows
from kafka.record.record_decoder import decode_rows, record_ends, skip_rows
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.record.columns import BatchRecords, Columns

__all__ = ["TAKEN_BYTES", "RecordReader"]

#: How many bytes of records one taking decodes by default: the rest stays compressed in the buffer.
TAKEN_BYTES: Final = 8 << 20
#: How many records more than asked for are decoded if the batch ends with them.
_MOST_AHEAD: Final = 500

_new = tuple.__new__


class ScanResult(NamedTuple):
    """The facts of a buffer after its batches have been checked."""

    offset: int
    """Behind the last batch that is wanted."""
    leader_epoch: int
    """The last wanted batch's, -1 without one."""
    verified_to: int
    """The position up to which no checksum is wrong."""
    position: int
    """Behind the last batch that was looked at."""
    at_end: bool
    """Whether no whole batch follows."""


class RecordReader:
    """The records in a fetched buffer, from an offset on.

    >>> from kafka.record.batch_builder import BatchBuilder
    >>> batch = BatchBuilder(limit=1000)
    >>> batch.extend([b"a", b"b", b"c"], 1700000000000)
    3
    >>> reader = RecordReader(batch.seal().data, "events", 0, fetch_offset=1)
    >>> [record.value for record in reader.take(1)], reader.next_offset
    ([b'b'], 2)
    >>> [record.value for record in reader.take(500)], reader.next_offset, reader.exhausted
    ([b'c'], 3, True)
    """

    __slots__ = (  # noqa: RUF023 - in the order of their use
        "topic",
        "partition",
        "next_offset",
        "leader_epoch",
        "decoded",
        "_buffer",
        "_position",
        "_check_crcs",
        "_limit",
        "_aborted",
        "_key_deserializer",
        "_value_deserializer",
        "_with_headers",
        "_record_type",
        "_nested",
        "_header",
        "_following",
        # The records of the open batch that were not taken yet.
        "_data",
        "_at",
        "_end",
        "_left",
        "_framed",
        "_messages",
        "_at_end",
        "_verified_to",
        "_failure",
        "_refused",
        # Decoded records that have not been through the deserializers.
        "_raw",
        "_offset_after_raw",
    )

    topic: str
    partition: int
    next_offset: int
    """The offset to fetch from once this reader is exhausted, or to continue from after an error. It passes batches
    that hold no records for the application, and offsets that compaction removed (KAFKA-5443)."""
    leader_epoch: int
    """The leader epoch of the last batch before ``next_offset``, records for the application in it or not; -1 before
    the first (KIP-320)."""
    decoded: int
    """How many bytes of records were decoded so far, before compression."""

    def __init__(
        self,
        buffer: Buffer,
        topic: str,
        partition: int,
        fetch_offset: int,
        *,
        check_crcs: bool = True,
        read_committed: bool = False,
        aborted: Iterable[tuple[int, int]] = (),
        max_batch_bytes: int = DEFAULT_LIMIT,
        key_deserializer: Deserialize | None = None,
        value_deserializer: Deserialize | None = None,
        deserialize_with_headers: bool = False,
        skip_double_compressed: bool = False,
        record_type: type[ConsumerRecord] = ConsumerRecord,
    ) -> None:
        """Read ``buffer`` from ``fetch_offset`` on.

        Deserializers take the bytes, or the record's headers and the bytes if ``deserialize_with_headers``. Messages
        that were compressed twice are passed over with ``skip_double_compressed``, else they come still compressed.
        ``aborted`` has the producer id and first offset of each aborted transaction, as the fetch response lists them,
        in any order; it counts only with ``read_committed``. ``max_batch_bytes`` bounds what one batch may unpack to.
        ``record_type`` is the class of the records: `ConsumerRecord`, or a subclass of the same fields.
        """
        self.topic = topic
        self.partition = partition
        self.next_offset = fetch_offset
        self.leader_epoch = -1
        self.decoded = 0
        self._buffer = buffer
        self._position = 0
        self._check_crcs = check_crcs
        self._limit = max_batch_bytes
        self._aborted = AbortedTransactionFilter(aborted) if read_committed else None
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._with_headers = deserialize_with_headers
        self._record_type = record_type
        self._nested = Nested.SKIP if skip_double_compressed else Nested.KEEP
        self._header: BatchHeader | None = None
        self._following = fetch_offset
        self._data = b""
        self._at = self._end = self._left = 0
        self._framed = False
        self._messages: list[ConsumerRecord] = []
        self._at_end = False
        self._verified_to = 0
        self._failure: KafkaError | None = None
        self._refused: RecordDeserializationError | None = None
        self._raw: list[ConsumerRecord] = []
        self._offset_after_raw = fetch_offset

    # Taking

    def take(self, count: int, room: int = TAKEN_BYTES) -> list[ConsumerRecord]:  # noqa: C901, PLR0912 - hot
        """Return the next records, ``count`` of them or as many as are left; an empty list at the end.

        Fewer come if their bytes amount to about ``room``, but one at least.

        Raises :class:`~kafka.errors.CorruptRecordError` for a damaged batch and
        :class:`~kafka.errors.RecordDeserializationError` for a record that a deserializer refused. Both come again
        at each call until :meth:`skip` is called.
        """
        if self._refused is not None:
            raise self._refused.with_traceback(None)
        if self._raw:
            return self._deserialized(count)
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        rows: list[ConsumerRecord] = []
        full = self.decoded + room
        try:
            while len(rows) < count and self.decoded < full and self._open_next():
                if self._messages:
                    self._take_messages(rows, count)
                    continue
                header, left, before = self._header, self._left, len(rows)
                data, at, end = self._data, self._at, self._end
                assert header is not None
                wanted = min(count - before, left)
                fits = end - at <= full - self.decoded
                if not fits:  # of their average size, as the batch is in memory anyway: it bounds what a large one adds
                    wanted = min(wanted, max(1, left * (full - self.decoded) // (end - at)))
                last = before + wanted
                if fits and left - wanted <= _MOST_AHEAD:
                    last = before + left  # to set the decoder up again costs more than to keep a few records
                elif not self._framed:
                    # The batch is taken in pieces: one with more or fewer records than it claims is refused as a whole.
                    record_ends(data, at, end, left, header.base_offset)
                    self._framed = True
                try:
                    at = decode_rows(
                        data, at, end, last - before, header, self.topic, self.partition, rows, self._record_type
                    )
                    if last - before == left and at != end:
                        raise corrupt(f"{end - at} bytes after the last record", header.base_offset)
                except CorruptRecordError:
                    del rows[before:]  # after damage nothing has been taken
                    raise
                self.decoded += at - self._at
                if wanted == left:
                    self._close_batch()
                    continue
                self._at, self._left = at, left - (last - before)
                if not self._left:
                    self._messages = rows[before + wanted :]
                    del rows[before + wanted :]
                self.next_offset, self.leader_epoch = rows[-1].offset + 1, header.leader_epoch
            if not self._at_end:
                self._find_next()  # passes what holds no records, so that next_offset is as far as it can be
        except KafkaError as err:
            self._fail(err)
            if not rows:
                raise
        if not rows or (self._key_deserializer is None and self._value_deserializer is None):
            return rows
        self._raw, self._offset_after_raw = rows, self.next_offset
        return self._deserialized(count)

    @property
    def exhausted(self) -> bool:
        """Whether all has been taken."""
        return self._at_end and self._header is None and not self._raw

    @property
    def is_cut_off(self) -> bool:
        """Whether the buffer ends within a batch: of brokers before 0.10.1, one that is larger than was asked for.

        >>> RecordReader(bytes(5), "events", 0, 0).is_cut_off
        True
        """
        return is_cut_off(self._buffer, self._position)

    def _take_messages(self, rows: list[ConsumerRecord], count: int) -> None:
        """Hand out what is decoded already: messages of formats v0 and v1, and records that were decoded ahead."""
        wanted = count - len(rows)
        rows += self._messages[:wanted]
        del self._messages[:wanted]
        self.next_offset = rows[-1].offset + 1
        if not self._messages:
            self._close_batch()

    def columns(
        self, *, at_least: int = 65_536, room: int = TAKEN_BYTES, numpy: bool | None = None
    ) -> Iterator[Columns]:
        """Yield all that is left as columns, ``at_least`` records at a time, or fewer that fill ``room`` bytes.

        ``numpy`` says whether numpy and pyarrow are to be used; None means: where both are installed. Deserializers are
        not applied, so a record that one of them refused is there too. A damaged batch raises when its turn comes, as
        in ``take``.

        >>> list(RecordReader(b"", "events", 0, 0).columns())
        []
        """
        from kafka.record.columns import column_decoder, from_rows

        decode = column_decoder(numpy)
        if self._raw:  # `take` has decoded these, from a record on that a deserializer refused
            columns = from_rows(self._raw)
            self._raw, self._refused, self.next_offset = [], None, self._offset_after_raw
            yield columns
        while True:
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            batches: list[BatchRecords] = []
            messages: list[ConsumerRecord] = []
            before = self._snapshot()
            try:
                self._collect(batches, messages, at_least, room)
            except KafkaError as err:
                self._fail(err)
            if messages:
                yield from_rows(messages)
            elif batches:
                try:
                    decoded = decode(batches)
                except CorruptRecordError as err:
                    self._restore(before)
                    if len(batches) == 1:
                        self._find_next()  # which is the damaged one: `skip` steps over that
                        self._fail(err)
                        raise
                    at_least = 1  # go through them again one by one, up to the damaged one
                    continue
                yield decoded
            elif self._failure is None:
                return

    def _snapshot(self) -> tuple[Any, ...]:
        """Return where the reader is, for :meth:`_restore`."""
        aborted = None if self._aborted is None else self._aborted.copy()
        opened = self._data, self._at, self._end, self._left, self._framed, self._following
        return aborted, self._header, opened, self._position, self.next_offset, self._at_end

    def _restore(self, place: tuple[Any, ...]) -> None:
        self._aborted, self._header, opened, self._position, self.next_offset, self._at_end = place
        self._data, self._at, self._end, self._left, self._framed, self._following = opened
        self._messages = []  # messages opened since; there were none then, or they would have been taken first
        self._failure = None

    def _collect(self, batches: list[BatchRecords], messages: list[ConsumerRecord], at_least: int, room: int) -> None:
        """Take what is left of the open batch and whole batches after it, all in format v2 or all in older ones."""
        from kafka.record.columns import BatchRecords

        count = 0
        full = self.decoded + room
        while count < at_least and self.decoded < full and self._open_next():
            if self._messages:
                if batches:
                    return
                count += len(self._messages)
                self._take_messages(messages, len(messages) + len(self._messages))
                continue
            if messages:
                return
            header = self._header
            assert header is not None
            batches.append(BatchRecords(self._data, self._at, self._end, self._left, header))
            count += self._left
            self.decoded += self._end - self._at
            self._close_batch()
        self._find_next()

    def _close_batch(self) -> None:
        header = self._header
        if header is not None:
            self.leader_epoch = header.leader_epoch
        self._header = None
        self._data = b""
        self._left = 0
        following = self._following
        if following > self.next_offset:  # noqa: PLR1730 - max() takes three times as long
            self.next_offset = following

    # Finding and opening batches

    def prepare(self) -> None:
        """Check and unpack the next batch now, for instance on another thread, so that ``take`` need not.

        What goes wrong is kept and raised by ``take``.
        """
        if self._failure is None:
            try:
                self._open_next()
            except KafkaError as err:
                self._fail(err)

    def verify(self, room: float = inf, after: ScanResult | None = None) -> ScanResult:
        """Check the checksums of batches now, so that ``take`` need not; a wrong one is left for ``take`` to raise.

        It stops after about ``room`` bytes, and continues ``after`` that result until it is ``at_end``: that has the
        offset behind the last batch, and its leader epoch, -1 if nothing there is wanted. Nothing may be taken before.
        Raises :class:`~kafka.errors.CorruptRecordError` where it cannot be seen how far a batch goes.

        >>> RecordReader(b"", "events", 0, 7).verify().offset
        7
        """
        if after is None:
            verified_to = max(self._verified_to, self._position)
            after = ScanResult(self.next_offset, -1, verified_to, self._position, at_end=False)
        offset, epoch, verified_to, position, _ = after
        buffer = self._buffer
        view, checksum = memoryview(buffer), fastest()
        check_crcs = self._check_crcs and verified_to >= position
        size = len(buffer)
        stop = min(position + room, size)
        # Small batches feel what is done for each: locals, not the properties of the header and `check_batch`.
        while position < stop and (header := read_header(buffer, position)) is not None:
            _, base_offset, length, leader_epoch, magic, crc, _, last_delta, _, _, _, _, _, _ = header
            end = position + length + LOG_OVERHEAD
            if check_crcs and position >= verified_to:
                check_crcs = magic < 2 or checksum(view[position + V2_ATTRIBUTES_AT : end], 0) == crc
                if check_crcs:
                    verified_to = end
            last = base_offset + last_delta
            if last >= offset:
                offset, epoch = last + 1, leader_epoch
            position = end
        self._verified_to = verified_to
        return ScanResult(offset, epoch, verified_to, position, at_end=position < stop or position >= size)

    def _find_next(self) -> BatchHeader | None:
        """Move to the next batch that has records to deliver and return its header; None at the end."""
        # Small batches feel what is done for each: locals, not the properties of the header.
        found = self._header
        while found is None and not self._at_end:
            header = read_header(self._buffer, self._position)
            if header is None:
                self._at_end = True
                return None
            position, base_offset, length, epoch, magic, _, attributes, last_delta, _, _, _, _, _, count = header
            following = base_offset + last_delta + 1
            has_records = following > self.next_offset and count != 0 and (magic < 2 or not attributes & CONTROL)
            try:
                wanted = (has_records and self._aborted is None) or self._is_wanted(header, has_records=has_records)
            except KafkaError:
                self._header, self._position = header, header.end  # for `skip` to step over it
                raise
            if wanted:
                self._header = found = header
                self._following = following
            elif following > self.next_offset:
                self.next_offset, self.leader_epoch = following, epoch
            self._position = position = position + length + LOG_OVERHEAD
            self._at_end = position >= len(self._buffer)
        return found

    def _is_wanted(self, header: BatchHeader, *, has_records: bool) -> bool:
        """Whether records of the batch are to be delivered; `has_records` is whether it has some from the offset on."""
        if self._aborted is not None and header.producer_id >= 0:
            # Damage may not look like an offset up to which transactions have begun, or like the end of one.
            self._check(header)
            if self._aborted.covers(header, partial(open_batch, self._buffer, check_crc=False, limit=self._limit)):
                return False
        if not has_records:
            self._check(header)  # nor like a batch that need not be looked at
        return has_records

    def _check(self, header: BatchHeader) -> None:
        """See that the header can be believed, before the batch is opened or instead of that."""
        if self._check_crcs and header.magic > 1 and header.position >= self._verified_to:
            check_batch(self._buffer, header)
            self._verified_to = header.end

    def _open_next(self) -> bool:
        """Open the next batch unless one is open; False at the end."""
        while not self._left and not self._messages:
            header = self._find_next()
            if header is None:
                return False
            if header.magic < 2:
                self._open_messages(header)
                continue
            check_crc = self._check_crcs and header.position >= self._verified_to
            data, at, end = open_batch(self._buffer, header, check_crc=check_crc, limit=self._limit)
            left = header.count
            if self.next_offset > header.base_offset:
                skipped, at = skip_rows(data, at, end, left, self.next_offset - header.base_offset)
                left -= skipped
            if left:
                self._data, self._at, self._end, self._left, self._framed = data, at, end, left, False
            else:
                self._close_batch()
        return True

    def _open_messages(self, header: BatchHeader) -> None:
        messages = read_messages(
            self._buffer, header, check_crcs=self._check_crcs, limit=self._limit, nested=self._nested
        )
        wanted = [message for message in messages if message[0] >= self.next_offset]
        self._messages = to_rows(wanted, self.topic, self.partition, self._record_type)
        self.decoded += sum([row.serialized_value_size for row in self._messages])
        if not wanted:
            self._close_batch()

    # Damage, and what deserializers refuse

    def _fail(self, err: KafkaError) -> None:
        if isinstance(err, CorruptRecordError) and err.topic_partition is None:
            err.topic_partition = TopicPartition(self.topic, self.partition)
            if err.offset is None and self._header is not None:
                err.offset = self._header.base_offset
        self._failure = err

    @property
    def skip_target(self) -> range:
        """The offsets that are as good as where :meth:`skip` leads to; none where nothing failed or that is not known.

        >>> RecordReader(b"", "events", 0, 0).skip_target
        range(0, 0)
        """
        if self._refused is not None:  # compaction may have removed offsets up to the next record
            following = self._raw[1].offset if len(self._raw) > 1 else self._offset_after_raw
            return range(self._raw[0].offset + 1, following + 1)
        if self._failure is not None and self._header is not None:
            behind = self._behind(self._header)
            return range(behind, behind + 1)
        return range(0)

    def skip(self) -> None:
        """Step over what the last error was about: the record that a deserializer refused, or the damaged batch.

        Where not even the batch's length can be trusted, all that is left is given up.
        """
        if self._refused is not None:
            self._refused = None
            del self._raw[0]
            self.next_offset = self._raw[0].offset if self._raw else self._offset_after_raw
            return
        if self._failure is None:
            return
        self._failure = None
        self._data = b""
        self._left = 0
        self._messages = []
        header = self._header
        if header is None:  # it is the header that is damaged
            try:
                header = read_header(self._buffer, self._position)
            except CorruptRecordError:
                header = None
            if header is None:
                self._position = len(self._buffer)
                self._at_end = True
                return
            self._position = header.end
        self.next_offset, self.leader_epoch = (
            max(self.next_offset, self._behind(header)),
            -1,
        )  # the epoch may be damaged
        self._header = None

    def _behind(self, damaged: BatchHeader) -> int:
        """Return the offset behind a batch, of which what the header says may be part of the damage."""
        behind = damaged.last_offset + 1
        try:
            following = read_header(self._buffer, damaged.end)
        except CorruptRecordError:
            return behind
        if following is not None and damaged.base_offset < following.base_offset < behind:
            return following.base_offset
        return behind

    def _deserialized(self, count: int) -> list[ConsumerRecord]:
        """Pass decoded records through the deserializers; the records after a refused one wait."""
        rows, self._refused = deserialize(
            self._raw[:count],
            self._record_type,
            self._key_deserializer,
            self._value_deserializer,
            with_headers=self._with_headers,
        )
        del self._raw[: len(rows)]
        self.next_offset = self._raw[0].offset if self._raw else self._offset_after_raw
        if self._refused is not None and not rows:
            raise self._refused.with_traceback(None)
        return rows
