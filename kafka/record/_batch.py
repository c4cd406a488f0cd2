"""One batch of format v2 that is being read: its records, as many at a time as are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka.errors import CorruptRecordError
from kafka.record._columns_plain import Section
from kafka.record._decode import Origin, check_framing, skip_rows, take_rows, take_runs
from kafka.record._errors import corrupt
from kafka.record._numpy import has_numpy, index_batch
from kafka.record._rows_runs import RunIndex
from kafka.record._runs import SHORTEST
from kafka.record.batch import origin_of

if TYPE_CHECKING:
    from kafka.record._rows_numpy import BatchIndex
    from kafka.record.batch import Body
    from kafka.record.consumer_record import ConsumerRecord
    from kafka.record.header import BatchHeader

__all__ = ["OpenBatch"]

#: From so many records on numpy gains more than its calls cost; with more the index would take more memory (5 MB)
#: than one should spend behind the user's back.
_WORTH_INDEXING: Final = range(128, 65_537)


class OpenBatch:
    """The records of a batch, from an offset on.

    >>> from kafka.record.batch import open_batch
    >>> from kafka.record.batch_builder import BatchBuilder
    >>> from kafka.record.header import read_header
    >>> batch = BatchBuilder(limit=1000)
    >>> batch.extend([b"a", b"b", b"c"], 1700000000000)
    3
    >>> data = batch.seal().data
    >>> header = read_header(data)
    >>> opened = OpenBatch(header, open_batch(data, header), offset=1)
    >>> rows = []
    >>> opened.take(1, "events", 0, rows)
    >>> [record.value for record in rows], opened.left
    ([b'b'], 1)
    """

    __slots__ = ("_at", "_framed", "_index", "_origin", "body", "header", "left")

    header: BatchHeader
    body: Body
    left: int
    """Records that were not taken yet."""

    def __init__(self, header: BatchHeader, body: Body, offset: int) -> None:
        self.header = header
        self.body = body
        self.left = header.count
        self._at = body.start
        self._origin: Origin | None = None
        self._index: BatchIndex | RunIndex | None = None
        self._framed = False
        if offset > header.base_offset:
            wanted = offset - header.base_offset
            skipped, self._at = skip_rows(body.data, body.start, body.end, header.count, wanted)
            self.left -= skipped

    @property
    def is_whole(self) -> bool:
        """Whether nothing was taken or passed."""
        return self.left == self.header.count

    def rest(self) -> Section:
        """Return what is left, for columns to be made of."""
        return Section(self.body.data, self._at, self.body.end, self.left, self.header)

    def take(self, count: int, topic: str, partition: int, rows: list[ConsumerRecord]) -> None:
        """Append records to ``rows``: so many at most, at least one. After damage nothing has been taken."""
        body, before = self.body, len(rows)
        origin = self._origin
        if origin is None:
            self._origin = origin = origin_of(self.header, topic, partition)
        wanted = min(count, self.left)
        try:
            if wanted < self.left and not self._framed:
                self._index_runs(origin)
            index = self._index
            if index is None:
                at = self._decode(origin, wanted, rows)
            else:
                wanted = min(wanted, index.left)
                at = index.take(wanted, rows)
                if not index.left:
                    self._index = None
            if wanted == self.left and at != body.end:
                raise corrupt(f"{body.end - at} bytes after the last record", self.header.base_offset)
        except CorruptRecordError:
            del rows[before:]
            raise
        self._at = at
        self.left -= wanted

    def _index_runs(self, origin: Origin) -> None:
        """Before the batch is taken in pieces: index what is in runs, and see whether it is whole."""
        if self._index is not None:
            return
        body, left = self.body, self.left
        even_only = left in _WORTH_INDEXING and has_numpy()
        runs = RunIndex(body.data, self._at, body.end, left, origin, even_only=even_only)
        if runs.left:
            check_framing(body.data, runs.end, body.end, left - runs.left, origin.base_offset)
            self._framed = True
            self._index = runs

    def _decode(self, origin: Origin, wanted: int, rows: list[ConsumerRecord]) -> int:
        """Decode records where there is no index, or from here on make one; return the position after them."""
        data, _, end = self.body
        pos, taken = take_runs(data, self._at, end, wanted, origin, rows)
        left = self.left - taken
        if left in _WORTH_INDEXING and wanted - taken >= SHORTEST and has_numpy():
            self._index = index = index_batch(data, pos, end, left, origin)
            return index.take(wanted - taken, rows)
        pos = take_rows(data, pos, end, wanted - taken, origin, rows)
        if wanted < self.left and not self._framed:
            check_framing(data, self._at, end, self.left, origin.base_offset)
            self._framed = True
        return pos
