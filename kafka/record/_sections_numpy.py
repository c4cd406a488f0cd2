"""Where the records of many batches begin: batches are often small, and a call of numpy for each would cost most.

Batches whose records are equally long are looked at together, as the length of each batch's first record says how
far apart its records have to be; all their lengths are read then and compared. Others are walked one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kafka.errors import CorruptRecordError
from kafka.record._columns_plain import Section
from kafka.record._fields_numpy import Array, find_starts, varints
from kafka.record._walk import walk


def find_bounds(data: bytes, sections: Sequence[Section]) -> tuple[Array, Array]:
    r"""Return where the records of all sections begin and end; that they fill these is checked.

    >>> from kafka.record.header import BatchHeader
    >>> header = BatchHeader(0, 0, 0, 0, 2, 0, 0, 1, 0, 0, -1, -1, -1, 2)
    >>> find_bounds(b"\x0c\0\0\0\1\1\0" * 2, [Section(b"", 0, 14, 2, header)])
    (array([0, 7]), array([ 7, 14]))
    """
    if sum([section.count for section in sections]) > _MANY * len(sections):
        return _one_by_one(data, sections)
    bounds = np.array([section[1:4] for section in sections], np.int64).reshape(-1, 3)
    begins, stops, counts = bounds[:, 0], bounds[:, 1], bounds[:, 2]
    firsts = np.cumsum(counts) - counts
    even, steps = _evenly_long(data, begins, stops, counts)
    distances = np.repeat(steps, counts)
    starts = np.repeat(begins - firsts * steps, counts) + np.arange(len(distances)) * distances
    ends = starts + distances
    if even.any():
        every = np.frombuffer(data, np.uint8)
        which = np.repeat(even, counts)
        whole = bool(which.all())
        wrong = _wrong_lengths(every, starts if whole else starts[which], ends if whole else ends[which])
        if whole and not wrong.any():
            return starts, ends
        belongs = np.repeat(np.arange(len(sections)), counts)
        even[belongs[which][wrong]] = False
    if not even.all():
        others = [sections[index] for index in np.flatnonzero(~even).tolist()]
        which = np.repeat(~even, counts)
        starts[which], ends[which] = _one_by_one(data, others)
    return starts, ends


def _one_by_one(data: bytes, sections: Sequence[Section]) -> tuple[Array, Array]:
    """Return the same, found for each section by itself."""
    parts: list[Array] = []
    few: list[int] = []
    for section in sections:
        if section.count <= _FEW:
            few += _walk(data, section)
            continue
        if few:
            parts.append(np.array(few, np.int64))
            few = []
        parts.append(find_starts(data, section.start, section.end, section.count, section.header.base_offset))
    parts.append(np.array(few, np.int64))
    starts = np.concatenate(parts)
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    ends[np.cumsum([section.count for section in sections]) - 1] = [section.end for section in sections]
    return starts, ends


def _evenly_long(data: bytes, begins: Array, stops: Array, counts: Array) -> tuple[Array, Array]:
    """Return of which sections the records may all be as long as the first one, and that length."""
    try:
        lengths, after = varints(np.frombuffer(data, np.uint8), begins)
    except (IndexError, CorruptRecordError):
        return np.zeros(len(begins), np.bool_), np.zeros(len(begins), np.int64)
    # Not what a damaged length says: multiplied, it could be as large as one likes.
    possible = (lengths >= 0) & (lengths < stops - begins)
    steps = np.where(possible, after - begins + lengths, 0)
    return possible & (steps * counts == stops - begins), steps


def _wrong_lengths(every: Array, starts: Array, ends: Array) -> Array:
    try:
        lengths, after = varints(every, starts)
    except (IndexError, CorruptRecordError):
        return np.ones(len(starts), np.bool_)
    wrong: Array = after + lengths != ends
    return wrong


#: More records than that are worth calls of numpy for each batch.
_FEW: Final = 64
#: If batches have more than that, it is not worth while to look at all of them together.
_MANY: Final = 256


def _walk(data: bytes, section: Section) -> list[int]:
    """Return where the records of one section begin."""
    _, begin, stop, count, header = section
    try:
        after = walk(data, begin, count)
    except IndexError:
        after = []
    if after and after[-1] == stop:
        return [begin, *after[:-1]]
    found: list[int] = find_starts(data, begin, stop, count, header.base_offset).tolist()
    return found
