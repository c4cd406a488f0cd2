"""What producers send, checked and brought into the form in which it is kept.

A batch is taken as it is wherever possible: the bytes that were checked are the bytes that are stored and later
fetched. They are rewritten only where the topic asks for another codec, the format is old, the broker's time counts
or the header's greatest timestamp is not that of the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.codec import CODEC_NAMES, CODEC_ZSTD, DEFAULT_LIMIT, codec_id
from kafka.errors import Code, CorruptRecordError, KafkaError, UnsupportedCodecError
from kafka.record.batch import decode_batch
from kafka.record.batch_builder import BatchBuilder
from kafka.record.header import (
    MAGIC_AT,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    V2_ATTRIBUTES_AT,
    V2_HEADER_SIZE,
    BatchHeader,
    Buffer,
    read_header,
    scan,
)
from kafka.record.log_append import assign_offsets, up_convert, validate_produced_batch

if TYPE_CHECKING:
    from kafka.broker.storage.log import LogConfig
    from kafka.record.consumer_record import ConsumerRecord
    from kafka.structs import TopicPartition

_ZSTD_FROM: Final = 7
_NEWEST_MAGIC: Final = 2
_ONE_BATCH_FROM: Final = 3
_LONG_MAX: Final = 2**63 - 1
#: The low byte of the attributes.
_FLAGS_AT: Final = V2_ATTRIBUTES_AT + 1
_timestamp_of = attrgetter("timestamp")

#: The largest batch that is checked on the event loop, in some tens of milliseconds; a thread checks larger ones.
QUICK_BYTES: Final = 4 << 20
QUICK_RECORDS: Final = 20_000
#: A batch may unpack to this many times max.message.bytes, or times a megabyte where that is less.
_GROWTH: Final = 64
_MEGABYTE: Final = 1 << 20


class Accepted(NamedTuple):
    """A batch that may be appended."""

    data: Buffer
    header: BatchHeader
    append_time: int
    """The broker's time if records get that, else -1."""


class Refused(Exception):  # noqa: N818 - an outcome, which becomes a code in the reply
    """The batch is refused."""

    def __init__(
        self,
        code: int,
        message: str | None = None,
        records: Sequence[tuple[int, str | None]] = (),
        *,
        by_log: bool = False,
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        #: The records at fault: index in the batch and why (KIP-467).
        self.records = list(records)
        #: Whether the log refused it, so that the reply tells where the log starts.
        self.by_log = by_log


class Heavy(Exception):  # noqa: N818 - an outcome: to be checked elsewhere
    """The batch takes too long to check on the event loop."""


class _Bounds(NamedTuple):
    """How much may come out of one batch."""

    size: int
    records: int
    is_quick: bool

    def check_count(self, count: int) -> None:
        """Raise where a header says that there are more records."""
        if count > self.records:
            if self.is_quick:
                raise Heavy
            raise Refused(Code.INVALID_RECORD, f"{count} records in one batch: the limit is {self.records}")


def is_transactional(data: Buffer | None) -> bool:
    """Whether the first batch says that it belongs to a transaction."""
    return (
        data is not None
        and len(data) >= V2_HEADER_SIZE
        and data[MAGIC_AT] > 1
        and bool(data[_FLAGS_AT] & TRANSACTIONAL)
    )


def accept(
    data: Buffer | None, version: int, config: LogConfig, tp: TopicPartition, now_ms: int, *, quick: bool = False
) -> Accepted:
    """Check what a produce request of ``version`` has for a partition, and return what to append.

    Raises :class:`Refused`; with ``quick`` :class:`Heavy` for what takes long.
    """
    if not data:
        raise Refused(Code.INVALID_RECORD)
    # Return the bounds for what a batch unpacks to. Kafka has none; its checks need no memory for what they read.
    base = max(config.max_message_bytes, _MEGABYTE)
    size, records = min(_GROWTH * base, DEFAULT_LIMIT), base
    bounds = (
        _Bounds(min(size, QUICK_BYTES), min(records, QUICK_RECORDS), True) if quick else _Bounds(size, records, False)
    )
    try:
        if version < _ONE_BATCH_FROM:
            accepted = _accept_old(data, config, tp, now_ms, bounds)
        else:
            accepted = _accept(data, version, config, tp, now_ms, bounds)
    except CorruptRecordError as error:
        raise Refused(Code.CORRUPT_MESSAGE) from error
    except UnsupportedCodecError as error:
        raise Refused(Code.UNSUPPORTED_COMPRESSION_TYPE) from error
    except KafkaError as error:
        raise Refused(getattr(error, "code", Code.INVALID_RECORD), by_log=True) from error
    if accepted.header.size > config.segment_bytes:
        raise Refused(Code.RECORD_LIST_TOO_LARGE)  # no segment can hold it
    return accepted


def _accept(
    data: Buffer, version: int, config: LogConfig, tp: TopicPartition, now_ms: int, bounds: _Bounds
) -> Accepted:
    if len(data) > MAGIC_AT and data[MAGIC_AT] > _NEWEST_MAGIC:
        raise Refused(Code.CORRUPT_MESSAGE, f"Invalid magic found in record: {data[MAGIC_AT]}")
    header = read_header(data)
    if header is None or header.end != len(data):
        raise Refused(Code.INVALID_RECORD)  # cut off, or more than one batch
    if header.codec == CODEC_ZSTD and version < _ZSTD_FROM:
        raise Refused(Code.UNSUPPORTED_COMPRESSION_TYPE)
    if header.size > config.max_message_bytes:
        raise Refused(Code.MESSAGE_TOO_LARGE)
    header = validate_produced_batch(data, read_records=False)
    if header.base_offset:
        raise Refused(Code.INVALID_RECORD, by_log=True)
    bounds.check_count(header.count)
    rows = _rows_of(data, header, bounds)
    _check_keys(rows, config, tp)
    greatest = max(map(_timestamp_of, rows))
    if config.append_time:
        return _with_append_time(data, rows, config, now_ms)
    _check_timestamps(rows, greatest, config, now_ms)
    wanted = _codec(config)
    if wanted is not None and wanted != header.codec:
        return _rewritten(rows, header, wanted, config, None)
    if greatest != header.max_timestamp:
        return _rewritten(rows, header, header.codec, config, None)
    return Accepted(data, header, NO_TIMESTAMP)


def _rows_of(data: Buffer, header: BatchHeader, bounds: _Bounds) -> list[ConsumerRecord]:
    """Return the records of a batch whose checksum is right: an error in them was made by the producer.

    It was not damaged on its way, and would be no better a second time: so it gets the error that is final.
    """
    try:
        rows = decode_batch(data, header, check_crc=False, limit=bounds.size)
    except CorruptRecordError as error:
        if bounds.is_quick and header.codec:  # perhaps only because of the limit
            raise Heavy from None
        raise Refused(Code.INVALID_RECORD, by_log=True) from error
    if rows[0].offset or rows[-1].offset != len(rows) - 1:
        raise Refused(Code.INVALID_RECORD, by_log=True)
    return rows


def _codec(config: LogConfig) -> int | None:
    """Return the codec that the topic insists on, None for the producer's."""
    if config.compression == "producer":
        return None
    return 0 if config.compression == "uncompressed" else codec_id(config.compression)


def _check_keys(rows: list[ConsumerRecord], config: LogConfig, tp: TopicPartition) -> None:
    if not config.compacts:
        return
    keyless = [index for index, row in enumerate(rows) if row.key is None]
    if keyless:
        reason = f"Compacted topic cannot accept message without key in topic partition {tp.topic}-{tp.partition}"
        shown = ", ".join(f"RecordError(batchIndex={index}, message='{reason}')" for index in keyless[:3])
        raise Refused(
            Code.INVALID_RECORD,
            f"One or more records have been rejected due to {len(keyless)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]",
            [(index, reason) for index in keyless],
            by_log=True,
        )


def _check_timestamps(rows: list[Any], greatest: int, config: LogConfig, now_ms: int) -> None:
    latest = now_ms + config.timestamp_after_max_ms
    earliest = now_ms - config.timestamp_before_max_ms
    if greatest <= latest and (
        config.timestamp_before_max_ms == _LONG_MAX or min(map(_timestamp_of, rows)) >= earliest
    ):
        return
    wrong = [
        (
            index,
            (
                f"Timestamp {row.timestamp} of message with offset {index} is out of range. "
                f"The timestamp should be within [{earliest}, {latest}]"
            ),
        )
        for index, row in enumerate(rows)
        if row.timestamp != NO_TIMESTAMP and not earliest <= row.timestamp <= latest
    ]
    if wrong:
        raise Refused(
            Code.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            wrong,
            by_log=True,
        )


def _with_append_time(data: Buffer, rows: list[Any], config: LogConfig, now_ms: int) -> Accepted:
    """Give the batch the broker's time; its records stay as they are."""
    copy = bytearray(data)
    assign_offsets(copy, 0, -1, append_time=now_ms)
    header = read_header(copy)
    assert header is not None
    wanted = _codec(config)
    if wanted is not None and wanted != header.codec:
        return _rewritten(rows, header, wanted, config, now_ms)
    return Accepted(copy, header, now_ms)


def _rewritten(
    rows: list[Any], header: BatchHeader, codec: int, config: LogConfig, append_time: int | None
) -> Accepted:
    """Encode the same records again, with another codec or with the right greatest timestamp."""
    level = config.compression_level if CODEC_NAMES.get(codec) == config.compression else None
    builder = BatchBuilder(2**31 - 1, codec, level)
    for row in rows:
        builder.append(row.timestamp, row.key, row.value, row.headers)
    sealed = builder.seal(
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        log_append_time=append_time,
    )
    if codec != header.codec and sealed.size > config.max_message_bytes:
        raise Refused(Code.MESSAGE_TOO_LARGE)
    data = sealed.data
    fresh = read_header(data)
    assert fresh is not None
    return Accepted(data, fresh, NO_TIMESTAMP if append_time is None else append_time)


def _accept_old(data: Buffer, config: LogConfig, tp: TopicPartition, now_ms: int, bounds: _Bounds) -> Accepted:
    """Take a message set of format v0 or v1, which becomes one batch of v2."""
    first = read_header(data)
    if first is not None and first.magic > 1:
        return _accept(data, _ZSTD_FROM, config, tp, now_ms, bounds)
    headers = list(scan(data))
    is_compressed = any(header.codec for header in headers)
    if is_compressed and len(headers) > 1:
        raise Refused(Code.INVALID_RECORD, by_log=True)
    bounds.check_count(len(headers))
    append_time = now_ms if config.append_time else None
    try:
        converted = up_convert(data, 0, -1, append_time=append_time, codec=_codec(config), limit=bounds.size)
    except CorruptRecordError:
        if bounds.is_quick and is_compressed:  # perhaps only because of the limit
            raise Heavy from None
        raise
    header = read_header(converted)
    assert header is not None
    if header.size > config.max_message_bytes:
        raise Refused(Code.MESSAGE_TOO_LARGE)
    rows = decode_batch(converted, header, check_crc=False)
    _check_keys(rows, config, tp)
    if append_time is None:
        _check_timestamps(rows, max(map(_timestamp_of, rows)), config, now_ms)
    return Accepted(converted, header, NO_TIMESTAMP if append_time is None else append_time)
