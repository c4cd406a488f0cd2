"""The cases that only this library has: columns out of a fetch, and batches out of Arrow."""

from __future__ import annotations

from collections.abc import Callable

from records_content import NOW_MS, content
from records_impls import writer
from traffic import BATCH_BYTES
from workload import OURS

_RECORDS = 8000


def prepare(verb: str, kind: str, seed: int) -> tuple[Callable[[], object], int, int]:
    """What to run, and how many records and bytes one run handles."""
    from kafka.record.batch_reader import RecordReader

    if verb in ("arrow", "plainarrow"):
        return _from_arrow(kind, seed, plain=verb == "plainarrow")
    made = content(kind, seed, _RECORDS)
    fetched = made.fetched(writer(OURS, made)())
    numpy = verb == "columns"

    def columns() -> list[object]:
        found = RecordReader(fetched, "bench", 0, 0).columns(numpy=numpy)
        return [part.to_arrow() if numpy else part for part in found]

    values = [value for part in RecordReader(fetched, "bench", 0, 0).columns(numpy=numpy) for value in part.values]
    if values != [value for _, _, value, _ in made.expected()]:
        raise AssertionError("what was read is not what was written")
    return columns, made.count, made.size


def _from_arrow(kind: str, seed: int, *, plain: bool) -> tuple[Callable[[], object], int, int]:
    import pyarrow as pa

    from kafka.record.arrow_encoder import encode_arrow
    from kafka.record.batch_builder import FULL, BatchBuilder, SealedBatch
    from kafka.record.batch_reader import RecordReader

    made = content(kind, seed, _RECORDS)
    rows = made.expected()
    values = pa.array([value for _, _, value, _ in rows], pa.binary())
    keys = pa.array([key for _, key, _, _ in rows], pa.binary())

    def encode() -> list[SealedBatch]:  # header and body, which a sender writes one after the other
        if not plain:
            return [batch.seal() for batch in encode_arrow(values, keys, timestamps=NOW_MS, limit=BATCH_BYTES)]
        sealed, batch = [], BatchBuilder(BATCH_BYTES)
        for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
            if batch.append(NOW_MS, key, value) == FULL:
                sealed.append(batch.seal())
                batch = BatchBuilder(BATCH_BYTES)
                batch.append(NOW_MS, key, value)
        return [*sealed, batch.seal()]

    found = [row.value for batch in encode() for row in RecordReader(batch.data, "bench", 0, 0).take(1 << 30)]
    if found != values.to_pylist():
        raise AssertionError("what was read is not what was written")
    return encode, made.count, made.size
