"""The cases that only this library has: columns out of a fetch, and batches out of Arrow."""

from __future__ import annotations

from collections.abc import Callable

from records_content import NOW_MS, content

_PER_BATCH = 2000
_BATCHES = 4
_ROWS = 10_000


def prepare(verb: str, kind: str) -> tuple[Callable[[], object], int, int]:
    """What to run, and how many records and bytes one run handles."""
    from kafka.record.batch_builder import BatchBuilder
    from kafka.record.batch_reader import RecordReader

    if verb == "arrow":
        return _from_arrow(kind)
    made = content(kind, _PER_BATCH)
    builder = BatchBuilder(1 << 24, made.codec)
    for at, (timestamp, value) in enumerate(zip(made.timestamps(), made.values, strict=True)):
        builder.append(timestamp, made.keys[at] if made.keys else None, value)
    fetched = made.fetched(builder.seal().data, _BATCHES)
    numpy = verb == "columns"

    def columns() -> list[object]:
        found = RecordReader(fetched, "bench", 0, 0).columns(numpy=numpy)
        return [part.to_arrow() if numpy else part for part in found]

    values = [value for part in RecordReader(fetched, "bench", 0, 0).columns(numpy=numpy) for value in part.values]
    if values != made.values * _BATCHES:
        raise AssertionError("what was read is not what was written")
    return columns, _PER_BATCH * _BATCHES, made.size * _BATCHES


def _from_arrow(kind: str) -> tuple[Callable[[], object], int, int]:
    import pyarrow as pa

    from kafka.record.arrow_encoder import encode_arrow
    from kafka.record.batch_builder import SealedBatch
    from kafka.record.batch_reader import RecordReader

    made = content(kind, _ROWS)
    values = pa.array(made.values, pa.binary())
    keys = pa.array(made.keys, pa.binary()) if made.keys else None

    def encode() -> list[SealedBatch]:  # header and body, which a sender writes one after the other
        return [batch.seal() for batch in encode_arrow(values, keys, timestamps=NOW_MS, limit=1 << 20)]

    found = [row.value for batch in encode() for row in RecordReader(batch.data, "bench", 0, 0).take(1 << 30)]
    if found != made.values:
        raise AssertionError("what was read is not what was written")
    return encode, _ROWS, made.size
