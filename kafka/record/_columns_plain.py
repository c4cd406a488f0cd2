"""Columns with nothing but Python: runs of equal shape without an object per record, the rest by way of rows."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import repeat
from operator import add
from typing import NamedTuple

from kafka.record._decode import decode_rows, find_run
from kafka.record._errors import corrupt
from kafka.record._runs import Pieces, Run
from kafka.record.batch import origin_of
from kafka.record.columns import BinaryColumn, Columns, HeaderColumn, packed
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.header import BatchHeader


class Section(NamedTuple):
    """Records of one batch: ``count`` of them in ``data[start:end]``."""

    data: bytes
    start: int
    end: int
    count: int  # type: ignore[assignment] # hides tuple.count, which nobody needs here
    header: BatchHeader


def from_rows(rows: Sequence[ConsumerRecord]) -> Columns:
    """Turn records into columns.

    >>> len(from_rows([]))
    0
    """
    gathered = _Gathered()
    gathered.add_rows(rows)
    return gathered.columns()


def from_sections(sections: Sequence[Section]) -> Columns:
    """Decode the records of several batches into columns.

    >>> len(from_sections([]))
    0
    """
    gathered = _Gathered()
    for section in sections:
        gathered.add_section(section)
    return gathered.columns()


class _Gathered:
    """The columns while they grow."""

    def __init__(self) -> None:
        self._offsets: array[int] = array("q")
        self._timestamps: array[int] = array("q")
        self._types: array[int] = array("b")
        self._keys = _Fields()
        self._values = _Fields()
        self._headers: list[Sequence[tuple[str, bytes | None]]] | None = None  # until a record has some

    def add_section(self, section: Section) -> None:
        data, pos, end, left, header = section
        origin = origin_of(header, "", 0)
        piece = 32
        while left:
            run = find_run(data, pos, end, left, views=True)
            if run is not None:
                self._add_run(run, header)
                pos = run.ends[-1]
                left -= run.count
                continue
            piece = min(piece * 2, left)
            rows: list[ConsumerRecord] = []
            pos = decode_rows(data, pos, end, piece, origin, rows)
            left -= piece
            self.add_rows(rows)
        if pos != end:
            raise corrupt(f"{end - pos} bytes after the last record", header.base_offset)

    def _add_run(self, run: Run, header: BatchHeader) -> None:
        count = run.count
        self._offsets += _shifted(run.offset_deltas, header.base_offset)
        if header.timestamp_type:
            self._timestamps += array("q", [header.max_timestamp]) * count
        elif len(run.timestamp_deltas) * 8 < count:
            for delta, times in run.timestamp_deltas:
                self._timestamps += array("q", [header.base_timestamp + delta]) * times
        else:
            self._timestamps += packed("q", list(run.timestamps(header.base_timestamp)))
        self._types += array("b", [header.timestamp_type or 0]) * count
        self._keys.add_run(run.keys, run.key_size, count)
        self._values.add_run(run.values, run.value_size, count)
        if run.headers and self._headers is None:
            self._headers = [()] * (len(self._offsets) - count)
        if self._headers is not None:
            self._headers += run.header_rows()

    def add_rows(self, rows: Sequence[ConsumerRecord]) -> None:
        if not rows:
            return
        _, _, offsets, timestamps, types, keys, values, _, _, _, headers, _, _ = zip(*rows, strict=True)
        if None in types:  # format v0
            timestamps = tuple([-1 if timestamp is None else timestamp for timestamp in timestamps])
            types = tuple([-1 if kind is None else kind for kind in types])
        if self._headers is None and any(headers):
            self._headers = [()] * len(self._offsets)
        if self._headers is not None:
            self._headers += headers
        self._offsets += packed("q", offsets)
        self._timestamps += packed("q", timestamps)
        self._types += packed("b", types)
        self._keys.add(keys)
        self._values.add(values)

    def columns(self) -> Columns:
        count = len(self._offsets)
        return Columns(
            self._offsets,
            self._timestamps,
            self._types,
            self._keys.column(),
            self._values.column(),
            HeaderColumn.none(count) if self._headers is None else HeaderColumn.from_rows(self._headers),
        )


class _Fields:
    """A column of keys or values while it grows."""

    def __init__(self) -> None:
        self._pieces: Pieces = []
        # Sizes of consecutive records, -1 for null: a list, or the one that so many have.
        self._sizes: list[list[int] | tuple[int, int]] = []

    def add(self, fields: Sequence[bytes | None]) -> None:
        self._sizes.append([-1 if field is None else len(field) for field in fields])
        self._pieces += filter(None, fields)

    def add_run(self, fields: Pieces | None, size: int | list[int], count: int) -> None:
        self._sizes.append((size, count) if isinstance(size, int) else size)
        if fields is not None:
            self._pieces += fields

    def column(self) -> BinaryColumn:
        data = b"".join(self._pieces)
        return BinaryColumn.from_sizes(data, self._sizes)


def _shifted(deltas: Sequence[int], base: int) -> array[int]:
    if isinstance(deltas, range):
        return packed("q", range(base + deltas.start, base + deltas.stop))
    return packed("q", list(map(add, deltas, repeat(base))))
