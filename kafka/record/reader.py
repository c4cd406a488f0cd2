"""Reading what a fetch brought for one partition: lazily, batch by batch, as many records as are asked for.

Data flow: the fetched buffer stays as it is; :class:`RecordReader` walks its headers, drops batches that need not
be looked at (below the wanted offset, control, aborted), checks and unpacks one batch at a time and decodes from
it the records that :meth:`~RecordReader.take` is asked for. So a fetch of 50 MB costs those 50 MB, one unpacked
batch, and the records taken.

Owned by one consumer and not locked. :meth:`~RecordReader.prepare` may run on another thread (checksum and
decompression release the GIL) as long as nobody else uses the reader at that time.

A damaged batch is refused as a whole, before the first of its records where that can be seen at the start. The error
comes when the batch's turn has come: records in front of it are delivered first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from heapq import heapify, heappop
from typing import TYPE_CHECKING, Any, Final

from kafka.codec import DEFAULT_LIMIT
from kafka.errors import CorruptRecordError, KafkaError, RecordDeserializationError
from kafka.record._columns_plain import Section, from_rows
from kafka.record._decode import Origin, check_framing, skip_rows, take_rows, take_runs
from kafka.record._errors import corrupt
from kafka.record._joined import MOST_BYTES, MOST_RECORDS, Part, decode_joined, goes_with
from kafka.record._legacy import Nested, read_messages, to_rows
from kafka.record._numpy import column_decoder, has_numpy, index_batch
from kafka.record._open import Body, check_batch, control_type, open_batch
from kafka.record._rows_runs import RunIndex
from kafka.record._runs import SHORTEST
from kafka.record.columns import Columns
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.header import BatchHeader, Buffer, read_header
from kafka.record.rows import origin_of
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.record._rows_numpy import BatchIndex

#: Takes the bytes, or with ``deserialize_with_headers`` the record's headers and the bytes.
Deserialize = Callable[..., Any]

_ABORT: Final = 0
_COLUMN_BYTES: Final = 8 << 20
#: From so many records on numpy gains more than its calls cost; with more the index would take more memory (5 MB)
#: than one should spend behind the user's back.
_WORTH_INDEXING: Final = range(128, 65_537)
_new = tuple.__new__


class RecordReader:
    """The records in a fetched buffer, from an offset on.

    >>> from kafka.record.builder import BatchBuilder
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
        "_buffer",
        "_position",
        "_check_crcs",
        "_limit",
        "_committed_only",
        "_aborted",
        "_aborting",
        "_key_deserializer",
        "_value_deserializer",
        "_with_headers",
        "_nested",
        "_header",
        "_body",
        "_origin",
        "_at",
        "_left",
        "_messages",
        "_index",
        "_framed",
        "_at_end",
        "_alone_to",
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
    """The offset to fetch from once this reader is exhausted, or to go on from after an error. It passes batches that
    hold no records for the application, and offsets that compaction removed (KAFKA-5443)."""

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
    ) -> None:
        """Read ``buffer`` from ``fetch_offset`` on.

        Deserializers take the bytes, or the record's headers and the bytes if ``deserialize_with_headers``. Messages
        that were compressed twice are passed over with ``skip_double_compressed``, else they come still compressed.
        ``aborted`` has the producer id and first offset of each aborted transaction, as the fetch response lists them,
        in any order; it counts only with ``read_committed``. ``max_batch_bytes`` bounds what one batch may unpack to.
        """
        self.topic = topic
        self.partition = partition
        self.next_offset = fetch_offset
        self._buffer = buffer
        self._position = 0
        self._check_crcs = check_crcs
        self._limit = max_batch_bytes
        self._committed_only = read_committed
        self._aborted = [(first, producer) for producer, first in aborted]
        heapify(self._aborted)
        self._aborting: set[int] = set()
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._with_headers = deserialize_with_headers
        self._nested = Nested.SKIP if skip_double_compressed else Nested.KEEP
        self._header: BatchHeader | None = None
        self._body: Body | None = None
        self._origin: Origin | None = None
        self._at = self._left = 0
        self._messages: list[ConsumerRecord] = []
        self._index: BatchIndex | RunIndex | None = None
        self._framed = self._at_end = False
        self._alone_to = 0
        self._verified_to = 0
        self._failure: KafkaError | None = None
        self._refused: RecordDeserializationError | None = None
        self._raw: list[ConsumerRecord] = []
        self._offset_after_raw = fetch_offset

    # Taking

    def take(self, count: int) -> list[ConsumerRecord]:
        """Return the next records, ``count`` of them or as many as are left; an empty list at the end.

        Raises :class:`~kafka.errors.CorruptRecordError` for a damaged batch and
        :class:`~kafka.errors.RecordDeserializationError` for a record that a deserializer refused. Both come again
        at each call until :meth:`skip` is called.
        """
        if self._key_deserializer is None and self._value_deserializer is None:
            return self._take_raw(count)
        return self._take_deserialized(count)

    @property
    def exhausted(self) -> bool:
        """Whether all has been taken."""
        return self._at_end and not self._raw

    @property
    def is_cut_off(self) -> bool:
        """Whether the buffer ends within a batch: of brokers before 0.10.1, one that is larger than was asked for.

        >>> RecordReader(bytes(5), "events", 0, 0).is_cut_off
        True
        """
        position = self._position
        try:
            while (header := read_header(self._buffer, position)) is not None:
                position = header.end
        except CorruptRecordError:
            return False
        return position < len(self._buffer)

    def _take_raw(self, count: int) -> list[ConsumerRecord]:
        if self._failure is not None:
            raise self._failure
        rows: list[ConsumerRecord] = []
        try:
            while len(rows) < count and self._open_next():
                if self._messages or self._join(count - len(rows)):
                    self._take_messages(rows, count)
                else:
                    self._take_rows(rows, count)
            # Pass what holds no records, so that next_offset is as far as it can be.
            self._find_next()
        except KafkaError as err:
            self._fail(err)
            if not rows:
                raise
        return rows

    def _take_rows(self, rows: list[ConsumerRecord], count: int) -> None:
        """Decode from the open batch."""
        header, body = self._header, self._body
        assert header is not None
        assert body is not None
        origin = self._origin
        if origin is None:
            self._origin = origin = origin_of(header, self.topic, self.partition)
        before = len(rows)
        wanted = min(count - before, self._left)
        try:
            if wanted < self._left and not self._framed:
                self._index_runs(body, origin)
            index = self._index
            if index is None:
                self._at = self._decode(body, origin, wanted, rows)
            else:
                wanted = min(wanted, index.left)
                self._at = index.take(wanted, rows)
                if not index.left:
                    self._index = None
            if wanted == self._left and self._at != body.end:
                raise corrupt(f"{body.end - self._at} bytes after the last record", header.base_offset)
        except CorruptRecordError:
            del rows[before:]
            raise
        self._left -= wanted
        if self._left:
            self.next_offset = rows[-1].offset + 1
        else:
            self._close_batch(header)

    def _join(self, wanted: int) -> bool:
        """Decode the open batch with those behind it, if they are small; False where it is to be decoded alone.

        What was decoded is handed out as messages of the old formats are.
        """
        header, body = self._header, self._body
        assert header is not None
        assert body is not None
        if self._position <= self._alone_to or self._left != header.count or not goes_with(header):
            return False
        parts = [Part(*body, header.count, header.base_offset, header.base_timestamp)]
        count, size, last = header.count, body.end - body.start, header
        wanted = min(max(wanted, MOST_RECORDS >> 2), MOST_RECORDS)
        while count < wanted and size < MOST_BYTES and (following := self._next_to_join(last)) is not None:
            last, body = following
            parts.append(Part(*body, last.count, last.base_offset, last.base_timestamp))
            count += last.count
            size += body.end - body.start
        rows = None
        if len(parts) > 1:
            with suppress(CorruptRecordError):  # which one it is in, and what may be taken before, is seen one by one
                rows = decode_joined(parts, origin_of(header, self.topic, self.partition))
        if rows is None:
            # What could not be joined once is not worth to be tried, and unpacked twice, again and again.
            self._alone_to = last.end if len(parts) == 1 else len(self._buffer)
            return False
        self._messages = rows
        self._header, self._body = last, None
        self._position = last.end
        return True

    def _next_to_join(self, last: BatchHeader) -> tuple[BatchHeader, Body] | None:
        """Return the batch behind one, if it may be joined with that; the reader does not move."""
        if self._committed_only and (self._aborted or self._aborting):
            return None
        try:
            header = read_header(self._buffer, last.end)
            if header is None or not goes_with(header, last):
                return None
            return header, self._unpack(header)
        except KafkaError:  # damage, or a codec that is not there: to be told when its turn has come
            return None

    def _index_runs(self, body: Body, origin: Origin) -> None:
        """Before a batch is taken in pieces: index what is in runs, and see whether it is whole."""
        if self._index is not None:
            return
        even_only = self._left in _WORTH_INDEXING and has_numpy()
        runs = RunIndex(body.data, self._at, body.end, self._left, origin, even_only=even_only)
        if runs.left:
            check_framing(body.data, runs.end, body.end, self._left - runs.left, origin.base_offset)
            self._framed = True
            self._index = runs

    def _decode(self, body: Body, origin: Origin, wanted: int, rows: list[ConsumerRecord]) -> int:
        """Decode records where there is no index, or from here on make one; return the position after them."""
        pos, taken = take_runs(body.data, self._at, body.end, wanted, origin, rows)
        left = self._left - taken
        if left in _WORTH_INDEXING and wanted - taken >= SHORTEST and has_numpy():
            self._index = index = index_batch(body.data, pos, body.end, left, origin)
            return index.take(wanted - taken, rows)
        pos = take_rows(body.data, pos, body.end, wanted - taken, origin, rows)
        if wanted < self._left and not self._framed:
            check_framing(body.data, self._at, body.end, self._left, origin.base_offset)
            self._framed = True
        return pos

    def _take_messages(self, rows: list[ConsumerRecord], count: int) -> None:
        """Hand out messages of an old format, which are unpacked as a whole."""
        wanted = count - len(rows)
        rows += self._messages[:wanted]
        del self._messages[:wanted]
        self.next_offset = rows[-1].offset + 1
        if not self._messages:
            assert self._header is not None
            self._close_batch(self._header)

    def columns(self, *, at_least: int = 65_536, numpy: bool | None = None) -> Iterator[Columns]:
        """Yield all that is left as columns, ``at_least`` records at a time or 8 MiB, whichever is reached first.

        ``numpy`` says whether numpy and pyarrow are to be used; None means: where both are installed. Deserializers are
        not applied. A damaged batch raises when its turn comes, as in ``take``.

        >>> list(RecordReader(b"", "events", 0, 0).columns())
        []
        """
        decode = column_decoder(numpy)
        while True:
            if self._failure is not None:
                raise self._failure
            sections: list[Section] = []
            messages: list[ConsumerRecord] = []
            before = self._place()
            try:
                self._collect(sections, messages, at_least)
            except KafkaError as err:
                self._fail(err)
            if messages:
                yield from_rows(messages)
            elif sections:
                try:
                    decoded = decode(sections)
                except CorruptRecordError as err:
                    self._go_back(before)
                    if len(sections) == 1:
                        self._fail(err)
                        raise
                    at_least = 1  # go through them again one by one, up to the damaged one
                    continue
                yield decoded
            elif self._failure is None:
                return

    def _place(self) -> tuple[Any, ...]:
        """Return where the reader is, for :meth:`_go_back`."""
        aborts = (self._aborted.copy(), self._aborting.copy())
        batch = (self._header, self._body, self._origin, self._index, self._at, self._left)
        return aborts, batch, self._position, self.next_offset, self._at_end

    def _go_back(self, place: tuple[Any, ...]) -> None:
        aborts, batch, self._position, self.next_offset, self._at_end = place
        self._aborted, self._aborting = aborts
        self._header, self._body, self._origin, self._index, self._at, self._left = batch
        self._failure = None

    def _collect(self, sections: list[Section], messages: list[ConsumerRecord], at_least: int) -> None:
        """Take what is left of the open batch and whole batches after it, all of the new format or all of old ones."""
        count = size = 0
        while count < at_least and size < _COLUMN_BYTES and self._open_next():
            header = self._header
            if self._messages:
                if sections:
                    return
                count += len(self._messages)
                self._take_messages(messages, len(messages) + len(self._messages))
                continue
            if messages:
                return
            body = self._body
            assert header is not None
            assert body is not None
            sections.append(Section(body.data, self._at, body.end, self._left, header))
            count += self._left
            size += body.end - self._at
            self._close_batch(header)
        self._find_next()

    def _close_batch(self, header: BatchHeader) -> None:
        self._header = self._body = self._index = None
        self.next_offset = max(self.next_offset, header.last_offset + 1)

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

    def verify(self) -> tuple[int, int]:
        """Check the checksums of all batches now, so that ``take`` need not; a wrong one is left for ``take`` to raise.

        Returns the offset behind the last batch, and its leader epoch: -1 if nothing there is wanted. Raises
        :class:`~kafka.errors.CorruptRecordError` where it cannot be seen how far a batch goes.

        >>> RecordReader(b"", "events", 0, 7).verify()
        (7, -1)
        """
        buffer, position, checking = self._buffer, self._position, self._check_crcs
        offset, epoch = self.next_offset, -1
        while (header := read_header(buffer, position)) is not None:
            position = header.end
            if checking:
                checking = header.magic < 2 or _is_sound(buffer, header)
                if checking:
                    self._verified_to = position
            last = header.last_offset
            if last >= offset:
                offset, epoch = last + 1, header.leader_epoch
        return offset, epoch

    def _find_next(self) -> BatchHeader | None:
        """Move to the next batch that has records to deliver and return its header; None at the end."""
        while self._header is None:
            header = read_header(self._buffer, self._position)
            if header is None:
                self._at_end = True
                return None
            if self._is_wanted(header):
                self._header = header
            else:
                self._check_unwanted(header)
                self.next_offset = max(self.next_offset, header.last_offset + 1)
            self._position = header.end
        return self._header

    def _check_unwanted(self, header: BatchHeader) -> None:
        """See that it is no damage by which a batch looks like a marker, or like one of an aborted transaction."""
        if self._check_crcs and header.magic > 1 and header.position >= self._verified_to:
            check_batch(self._buffer, header)

    def _is_wanted(self, header: BatchHeader) -> bool:
        if self._committed_only and header.producer_id >= 0 and not self._is_committed(header):
            return False
        return header.last_offset >= self.next_offset and header.count != 0 and not header.is_control

    def _is_committed(self, header: BatchHeader) -> bool:
        # An aborted transaction reaches from its first offset to its producer's next abort marker. Its batches are
        # known by the producer's id, as that has one transaction at a time.
        while self._aborted and self._aborted[0][0] <= header.last_offset:
            self._aborting.add(heappop(self._aborted)[1])
        if header.is_control:
            if header.producer_id in self._aborting:
                body = self._unpack(header)
                if control_type(body, header) == _ABORT:
                    self._aborting.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._aborting)

    def _open_next(self) -> bool:
        """Open the next batch unless one is open; False at the end."""
        while self._body is None and not self._messages:
            header = self._find_next()
            if header is None:
                return False
            if header.magic < 2:
                self._open_messages(header)
            else:
                self._open_batch(header)
        return True

    def _unpack(self, header: BatchHeader) -> Body:
        check_crc = self._check_crcs and header.position >= self._verified_to
        return open_batch(self._buffer, header, check_crc=check_crc, limit=self._limit)

    def _open_messages(self, header: BatchHeader) -> None:
        messages = read_messages(
            self._buffer, header, check_crcs=self._check_crcs, limit=self._limit, nested=self._nested
        )
        wanted = [message for message in messages if message[0] >= self.next_offset]
        self._messages = to_rows(wanted, self.topic, self.partition)
        if not wanted:
            self._close_batch(header)

    def _open_batch(self, header: BatchHeader) -> None:
        body = self._unpack(header)
        self._at, self._left = body.start, header.count
        self._framed = False
        self._index = None
        if self.next_offset > header.base_offset:
            wanted = self.next_offset - header.base_offset
            skipped, self._at = skip_rows(body.data, body.start, body.end, header.count, wanted)
            self._left -= skipped
        if not self._left:
            self._close_batch(header)
            return
        self._body = body
        self._origin = None

    # Damage, and what deserializers refuse

    def _fail(self, err: KafkaError) -> None:
        if isinstance(err, CorruptRecordError) and err.topic_partition is None:
            err.topic_partition = TopicPartition(self.topic, self.partition)
            if err.offset is None and self._header is not None:
                err.offset = self._header.base_offset
        self._failure = err

    @property
    def behind_failure(self) -> range:
        """The offsets that are as good as where :meth:`skip` leads to; none where nothing failed or that is not known.

        >>> RecordReader(b"", "events", 0, 0).behind_failure
        range(0, 0)
        """
        if self._refused is not None:  # compaction may have removed offsets up to the next record
            following = self._raw[1].offset if len(self._raw) > 1 else self._offset_after_raw
            return range(self._raw[0].offset + 1, following + 1)
        if self._failure is not None and self._header is not None:
            return range(self._header.last_offset + 1, self._header.last_offset + 2)
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
        self._body = self._index = None
        self._messages = []
        header = self._header
        if header is None:  # the header itself is damaged, or the batch is a marker
            try:
                header = read_header(self._buffer, self._position)
            except CorruptRecordError:
                header = None
            if header is None:
                self._position = len(self._buffer)
                self._at_end = True
                return
            self._position = header.end
        self._close_batch(header)

    def _take_deserialized(self, count: int) -> list[ConsumerRecord]:
        """Take records through the deserializers; what is behind a refused one waits."""
        if self._refused is not None:
            raise self._refused
        if not self._raw:
            self._raw = self._take_raw(count)
            self._offset_after_raw = self.next_offset
        key_deserializer = self._key_deserializer or _as_it_is
        value_deserializer = self._value_deserializer or _as_it_is
        with_headers = self._with_headers
        rows: list[ConsumerRecord] = []
        for record in self._raw[:count]:
            origin = "key"
            try:
                if with_headers:
                    key = key_deserializer(record.headers, record.key)
                    origin = "value"
                    value = value_deserializer(record.headers, record.value)
                else:
                    key = key_deserializer(record.key)
                    origin = "value"
                    value = value_deserializer(record.value)
            except Exception as err:  # whatever the application's code raises
                self._refused = _refusal(record, origin, err)
                break
            rows.append(_new(ConsumerRecord, (*record[:5], key, value, *record[7:])))
        del self._raw[: len(rows)]
        self.next_offset = self._raw[0].offset if self._raw else self._offset_after_raw
        if self._refused is not None and not rows:
            raise self._refused
        return rows


def _is_sound(buffer: Buffer, header: BatchHeader) -> bool:
    try:
        check_batch(buffer, header)
    except CorruptRecordError:
        return False
    return True


def _as_it_is(*given: Any) -> Any:
    return given[-1]


def _refusal(record: ConsumerRecord, origin: str, cause: Exception) -> RecordDeserializationError:
    err = RecordDeserializationError(
        f"the {origin} deserializer raised {type(cause).__name__}: {cause}",
        topic_partition=TopicPartition(record.topic, record.partition),
        offset=record.offset,
        origin=origin,
        key_bytes=record.key,
        value_bytes=record.value,
        headers=record.headers,
        timestamp=record.timestamp,
    )
    err.__cause__ = cause
    return err
