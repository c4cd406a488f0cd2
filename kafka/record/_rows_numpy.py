"""Records of a batch by way of numpy, for batches whose records differ in size.

Where they do not, :mod:`kafka.record._runs` is as fast. The whole batch is indexed at once, at 72 bytes per record,
and records are made from the index as they are taken: 0.9 µs each in batches of 4,000 and 1.1 in batches of 500,
against 1.4 in the loop (November 2026).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

import numpy as np

from kafka.errors import CorruptRecordError
from kafka.record._decode import Origin, make_rows
from kafka.record._fields_numpy import Array, Fields, decode_fields, find_starts, headers_of
from kafka.record._runs import Header, equal_headers, header_rows
from kafka.record.consumer_record import NO_HEADERS, ConsumerRecord


class BatchIndex:
    """Where everything is in a batch."""

    def __init__(self, data: bytes, start: int, end: int, count: int, origin: Origin) -> None:
        """Index ``count`` records in ``data[start:end]``; raises CorruptRecordError if that is not what is there."""
        starts = find_starts(data, start, end, count, origin.base_offset)
        ends = np.append(starts[1:], end)
        self._data = data
        self._every = np.frombuffer(data, np.uint8)
        self._origin = origin
        self._fields: Fields = decode_fields(data, starts, ends, origin.base_offset)
        self._any_header = bool(self._fields.header_counts.any())
        self._taken = 0
        self.left = count
        """Records that were not taken yet."""

    def take(self, count: int, rows: list[ConsumerRecord]) -> int:
        """Append the next records to ``rows``; return the position after them."""
        low, high = self._taken, self._taken + count
        fields = self._fields
        origin = self._origin
        keys, key_sizes = self._slices(fields.key_at[low:high], fields.key_sizes[low:high])
        values, value_sizes = self._slices(fields.value_at[low:high], fields.value_sizes[low:high])
        headers, header_sizes = self._headers(low, high)
        rows += make_rows(
            origin,
            count,
            (fields.offset_deltas[low:high] + origin.base_offset).tolist(),
            (fields.timestamp_deltas[low:high] + origin.base_timestamp).tolist(),
            keys,
            values,
            key_sizes,
            value_sizes,
            headers,
            header_sizes,
        )
        self._taken = high
        self.left -= count
        return int(fields.ends[high - 1])

    def _headers(self, low: int, high: int) -> tuple[Iterable[list[Header]], Iterable[int]]:
        """Return the headers of these records, and how many bytes of keys and values they have."""
        fields = self._fields
        if not self._any_header:
            return repeat(NO_HEADERS), repeat(-1)
        counts = fields.header_counts[low:high]
        if counts.all():
            begins, ends = (fields.headers_at[low:high] - 1).tolist(), fields.ends[low:high].tolist()
            tails = [self._data[begin:end] for begin, end in zip(begins, ends, strict=True)]
            # Numbers in several bytes are cut off here: then this is not right, or is not all of the record.
            found = equal_headers(tails) if (self._every[begins] == counts << 1).all() else None
            if found is not None:
                return header_rows(found[0], high - low), repeat(found[1])
        headers: list[list[Header]] = [NO_HEADERS] * (high - low)
        sizes = [-1] * (high - low)
        for at in np.flatnonzero(counts).tolist():
            try:
                headers[at], sizes[at] = headers_of(self._data, fields, low + at)
            except CorruptRecordError as err:  # noqa: PERF203 - free where nothing is raised
                err.offset = self._origin.base_offset
                raise
        return headers, sizes

    def _slices(self, at: Array, sizes: Array) -> tuple[list[bytes | None], list[int]]:
        """Cut fields out of the data."""
        data = self._data
        begins = at.tolist()
        lengths: list[int] = sizes.tolist()
        least = int(sizes.min())
        cut: list[bytes | None]
        if least >= 0:
            cut = [data[begin:end] for begin, end in zip(begins, (at + sizes).tolist(), strict=True)]
        elif int(sizes.max()) < 0:
            cut = [None] * len(lengths)
        else:
            cut = [
                None if size < 0 else data[begin : begin + size] for begin, size in zip(begins, lengths, strict=True)
            ]
        return cut, lengths
