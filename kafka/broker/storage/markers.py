"""The control batch that ends a transaction on a partition."""

from __future__ import annotations

from kafka.protocol.control_records import ControlRecordTypeSchema, EndTxnMarker
from kafka.record.builder import BatchBuilder

__all__ = ["marker_batch"]

_ABORT, _COMMIT = 0, 1


def marker_batch(
    producer_id: int, producer_epoch: int, timestamp: int, *, committed: bool, coordinator_epoch: int = 0
) -> bytes:
    """Return the batch with its one control record.

    >>> from kafka.record.header import read_header
    >>> header = read_header(marker_batch(7, 0, 1700000000000, committed=True))
    >>> header.is_control, header.is_transactional, header.producer_id
    (True, True, 7)
    """
    kind = _COMMIT if committed else _ABORT
    # Key and value are each preceded by the version of their schema.
    key = b"\0\0" + ControlRecordTypeSchema[0](type=kind).encode()
    value = b"\0\0" + EndTxnMarker[0](coordinator_epoch=coordinator_epoch).encode()
    builder = BatchBuilder(limit=1000)
    builder.append(timestamp, key, value)
    return builder.seal(producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True).data
