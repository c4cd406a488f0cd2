"""Control batches: the markers by which a broker ends a transaction in a partition's log.

A marker is a batch of one record. Its key has a version and the type; its value a version and the epoch of the
transaction coordinator that had it written.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from kafka.record.batch import decode_batch
from kafka.record.batch_builder import BatchBuilder
from kafka.record.header import BatchHeader, Buffer, corrupt

ABORT: Final = 0
COMMIT: Final = 1

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")


class Marker(NamedTuple):
    """The content of a control batch.

    >>> Marker(COMMIT, 5, -1).is_commit
    True
    """

    type: int
    """0 aborts, 1 commits; other types (leader changes, snapshots) concern no client."""
    coordinator_epoch: int
    """-1 in markers of other types."""
    timestamp: int

    @property
    def is_commit(self) -> bool:
        """Whether the transaction was committed."""
        return self.type == COMMIT


def encode_marker(
    marker_type: int, *, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp: int
) -> bytes:
    """Encode a control batch that ends the producer's transaction. Offset and leader epoch are set on append.

    >>> from kafka.record.header import scan
    >>> data = encode_marker(COMMIT, producer_id=7, producer_epoch=0, coordinator_epoch=3, timestamp=1700000000000)
    >>> header, = scan(data)
    >>> header.is_control, header.is_transactional, decode_marker(data, header).coordinator_epoch
    (True, True, 3)
    """
    builder = BatchBuilder(limit=0)
    builder.append(timestamp, _KEY.pack(0, marker_type), _VALUE.pack(0, coordinator_epoch))
    sealed = builder.seal(
        producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=-1, transactional=True, control=True
    )
    return sealed.data


def decode_marker(buffer: Buffer, header: BatchHeader) -> Marker:
    """Read the control batch with this header.

    >>> from kafka.record.header import scan
    >>> data = encode_marker(ABORT, producer_id=7, producer_epoch=0, coordinator_epoch=3, timestamp=5)
    >>> decode_marker(data, next(scan(data)))
    Marker(type=0, coordinator_epoch=3, timestamp=5)
    """
    record = next(iter(decode_batch(buffer, header)), None)
    if record is None or record.key is None or len(record.key) < _KEY.size:
        raise corrupt("a control batch without a marker", header.base_offset)
    marker_type = _KEY.unpack_from(record.key)[1]
    epoch = -1
    if marker_type in (ABORT, COMMIT):
        if record.value is None or len(record.value) < _VALUE.size:
            raise corrupt("a transaction's marker without an epoch", header.base_offset)
        epoch = _VALUE.unpack_from(record.value)[1]
    return Marker(marker_type, epoch, record.timestamp or 0)
