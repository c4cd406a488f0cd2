"""``purekafka logs``: read segment files of a broker, without a broker."""

from __future__ import annotations

import struct
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from kafka.cli.arguments import UsageError
from kafka.cli.grammar import Noun, Verb, arg
from kafka.cli.output import complain, json_text
from kafka.errors import KafkaError

#: The layout of an entry by the end of a name, and its line, for the base offset of the file and the entry.
_INDEXES: Final[dict[str, tuple[struct.Struct, Callable[[int, int, int], str]]]] = {
    ".index": (struct.Struct(">ii"), lambda base, offset, at: f"offset: {base + offset} position: {at}"),
    ".timeindex": (struct.Struct(">qi"), lambda base, moment, offset: f"timestamp: {moment} offset: {base + offset}"),
}
_CODECS: Final = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


def internal_record(topic: str, key: bytes | None, value: bytes | None) -> dict[str, object] | None:
    """Return a record of __consumer_offsets or __transaction_state as JSON; None for one that is not known.

    >>> key = bytes.fromhex("0002 0007") + b"billing"
    >>> internal_record("__consumer_offsets", key, None)
    {'type': 'GroupMetadata', 'key': {'group': 'billing'}, 'value': None}
    """
    from kafka.errors import KafkaProtocolError
    from kafka.protocol.versioned import decode_group_log, decode_transaction_log

    decode = decode_transaction_log if topic == "__transaction_state" else decode_group_log
    try:
        entry = decode(key, value)
    except KafkaProtocolError:
        return None
    return {
        "type": type(entry.key).__name__.partition("Key")[0],
        "key": entry.key.to_json(),
        "value": None if entry.value is None else entry.value.to_json(),
    }


@Verb(
    "dump: print the batches and records of segments and the entries of indexes, and check their checksums",
    arg("files FILE...", "files that end in .log, .index, .timeindex", complete="file"),
    arg("-r, --records", "print the records of each batch too"),
    arg("--decode offsets|transaction-log", "decode the records of __consumer_offsets or __transaction_state"),
    arg("--skip-zeros", "ignore zeros at the end, of a file allocated in advance"),
    examples=[
        "/data/events-0/00000000000000000000.log --records",
        "/data/__consumer_offsets-7/00000000000000000000.log --decode offsets",
    ],
    connects=False,
)
def _dump(arguments: Namespace) -> int:
    code = 0
    for name in arguments.files:
        path = Path(name)
        if path.suffix not in {".log", *_INDEXES}:
            raise UsageError(f"{name}: a segment ends in .log, an index in .index or .timeindex")
        print(f"Dumping {path}")
        code |= (_segment if path.suffix == ".log" else _index)(arguments, path)
    return code


def _segment(arguments: Namespace, path: Path) -> int:
    from kafka.record import MemoryRecords

    data = path.read_bytes()
    if arguments.skip_zeros:
        data = data.rstrip(b"\0")  # a segment that was allocated in advance ends in zeros
    print(f"Starting offset: {int(path.stem) if path.stem.isdecimal() else 0}")
    records, position, code = MemoryRecords(data), 0, 0
    try:
        for batch in records:
            good = batch.validate_crc()
            print(_batch_line(batch, position, good))
            if not good:
                complain(arguments, f"{path}: the batch at position {position} has a wrong checksum")
                code = 1
            elif arguments.records or arguments.decode:
                for line in _records(arguments, batch):
                    print(line)
            position += batch.size_in_bytes
    except KafkaError as error:
        complain(arguments, f"{path}: damaged at position {position}: {error}")
        return 1
    if position < len(data):
        complain(arguments, f"{path}: {len(data) - position} bytes from position {position} on are not a whole batch")
        code = 1
    return code


def _batch_line(batch: Any, position: int, good: bool) -> str:
    fields = {
        "baseOffset": batch.base_offset,
        "lastOffset": getattr(batch, "last_offset", batch.base_offset),
        "count": getattr(batch, "records_count", None),
        "baseSequence": getattr(batch, "base_sequence", -1),
        "lastSequence": getattr(batch, "last_sequence", -1),
        "producerId": getattr(batch, "producer_id", -1),
        "producerEpoch": getattr(batch, "producer_epoch", -1),
        "partitionLeaderEpoch": getattr(batch, "leader_epoch", -1),
        "isTransactional": str(bool(getattr(batch, "is_transactional", False))).lower(),
        "isControl": str(bool(getattr(batch, "is_control_batch", False))).lower(),
        "position": position,
        "CreateTime" if not batch.timestamp_type else "LogAppendTime": getattr(batch, "max_timestamp", -1),
        "size": batch.size_in_bytes,
        "magic": getattr(batch, "magic", 2),
        "compresscodec": _CODECS.get(batch.compression_type, batch.compression_type),
        "crc": getattr(batch, "crc", None),
        "isvalid": str(good).lower(),
    }
    return " ".join(f"{name}: {value}" for name, value in fields.items() if value is not None)


def _records(arguments: Namespace, batch: Any) -> Iterator[str]:
    for record in batch:
        if arguments.decode:
            topic = "__transaction_state" if arguments.decode == "transaction-log" else "__consumer_offsets"
            found = (
                None if getattr(batch, "is_control_batch", False) else internal_record(topic, record.key, record.value)
            )
            if found is not None:
                yield f"| offset: {record.offset} {json_text(found)}"
                continue
        headers = ",".join(f"{name}:{_shown(data)}" for name, data in record.headers or ())
        yield (
            f"| offset: {record.offset} CreateTime: {record.timestamp} headers: [{headers}] "
            f"key: {_shown(record.key)} payload: {_shown(record.value)}"
        )


def _shown(data: bytes | None) -> str:
    from kafka._text import printable

    return "null" if data is None else printable(bytes(data).decode(errors="backslashreplace"))


def _index(arguments: Namespace, path: Path) -> int:
    """Print an index; its entries must grow, and zeros fill the rest of the file."""
    data, (layout, line) = path.read_bytes(), _INDEXES[path.suffix]
    base = int(path.stem) if path.stem.isdecimal() else 0
    whole = len(data) - len(data) % layout.size
    before: tuple[int, ...] = (-1, -1)
    for position in range(0, whole, layout.size):
        entry = layout.unpack_from(data, position)
        if not any(entry) and position:
            break
        if entry < before:
            complain(arguments, f"{path}: the entry at position {position} is out of order")
            return 1
        before = entry
        print(line(base, *entry))
    if whole < len(data):
        complain(arguments, f"{path}: {len(data) - whole} bytes at position {whole} are not an entry")
        return 1
    sys.stdout.flush()
    return 0


COMMAND = Noun("logs", [_dump])
