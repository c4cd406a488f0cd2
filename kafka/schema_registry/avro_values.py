"""The bytes of many Avro values, one behind the other: numbers and slices of all of them at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

__all__ = ["Values"]

_PADDING: Final = 32
# Numbers of variable length have seven bits in each byte; pairs of them are put together, then pairs of pairs.
_ONE, _TWO, _FOUR, _FIFTY_SIX, _SIXTY_THREE = (np.uint64(number) for number in (1, 2, 4, 56, 63))
_ONES: Final = np.uint64(0x7F)
_TOPS: Final = np.uint64(0x8080808080808080)
_SEVENS: Final = (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00))
_FOURTEENS: Final = (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000))
_TWENTY_EIGHTS: Final = (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000))
_ZIGZAG: Final = np.array([(byte >> 1) ^ -(byte & 1) for byte in range(128)], np.int64)  # the numbers of one byte


class Values:
    """The bytes of all values, with zero bytes behind them; which rows are damaged."""

    def __init__(self, data: NDArray[np.uint8], ends: Numbers) -> None:
        self.size = len(data)
        self.data = np.concatenate([data, np.zeros(_PADDING, np.uint8)])
        self.words = np.ndarray((self.size + _PADDING - 7,), "<u8", self.data, strides=(1,))
        """The eight bytes from each place on, as a number."""
        self.buffer = pa.py_buffer(self.data)
        self.ends = ends
        self.bad = np.zeros(len(ends), np.bool_)

    def damage(self, rows: Numbers, which: NDArray[np.bool_]) -> None:
        """Mark some of these rows as damaged."""
        if which.any():
            self.bad[rows[which]] = True

    def ends_of(self, rows: Numbers) -> Numbers:
        """Return where rows end; they are in order, so as many as there are means all of them."""
        return self.ends if len(rows) == len(self.ends) else self.ends[rows]

    def longs(self, rows: Numbers, at: Numbers) -> tuple[Numbers, Numbers]:
        """Return the numbers of variable length that stand at places, and the places behind them."""
        byte = self.data[at]
        if not (byte & 0x80).any():
            return _ZIGZAG[byte], self.bounded(rows, at + 1)
        word = self.words[at]
        last = ~word & _TOPS  # the lowest bit of it is of the number's last byte
        last &= -last
        number = word & ((last << _ONE) - _ONE)  # of eight bytes without an end all bits
        number = (number & _SEVENS[0]) | ((number & _SEVENS[1]) >> _ONE)
        number = (number & _FOURTEENS[0]) | ((number & _FOURTEENS[1]) >> _TWO)
        number = (number & _TWENTY_EIGHTS[0]) | ((number & _TWENTY_EIGHTS[1]) >> _FOUR)
        length = np.frexp(last.astype(np.float64))[1] >> 3  # which is a power of two
        longer = np.flatnonzero(last == 0)
        if longer.size:
            ninth, tenth = (self.data[at[longer] + 8 + more].astype(np.uint64) for more in (0, 1))
            goes_on = ninth > 0x7F
            number[longer] |= (ninth & _ONES) << _FIFTY_SIX | np.where(goes_on, tenth << _SIXTY_THREE, 0)
            self.damage(rows[longer], goes_on & (tenth > 0x7F))
            length[longer] = np.where(goes_on, 10, 9)
        signed = (number >> _ONE).view(np.int64) ^ -(number & _ONE).view(np.int64)
        return signed, self.bounded(rows, at + length)

    def bounded(self, rows: Numbers, at: Numbers) -> Numbers:
        """Mark the rows whose values end before these places, and send them behind the data."""
        over = at > self.ends_of(rows)
        if over.any():
            self.bad[rows[over]] = True
            at = np.where(over, self.size, at)
        return at

    def sized(self, rows: Numbers, at: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return the begin and the end of values that have their size before them, and the places behind them."""
        size, begin = self.longs(rows, at)
        wrong = (size < 0) | (size > self.ends_of(rows) - begin)
        if wrong.any():
            self.bad[rows[wrong]] = True
            size, begin = np.where(wrong, 0, size), np.where(wrong, self.size, begin)
        end = begin + size
        return begin, end, end

    def slices(self, begin: Numbers, end: Numbers) -> Any:
        """Return the bytes between places as a binary array; rows are in order, except damaged ones."""
        if not len(begin):
            return pa.array([], pa.binary())
        places = np.empty(2 * len(begin), np.int64)
        places[0::2], places[1::2] = begin, end
        if (places[1:] >= places[:-1]).all():
            return self._taken(places)
        order = np.lexsort((end, begin))  # damaged rows are behind the data
        places[0::2], places[1::2] = begin[order], end[order]
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return self._taken(places).take(pa.array(back))

    def _taken(self, places: Numbers) -> Any:
        if places[-1] < 1 << 31:
            offsets, kind = pa.py_buffer(places.astype(np.int32)), pa.binary()
        else:
            offsets, kind = pa.py_buffer(places), pa.large_binary()
        between = pa.Array.from_buffers(kind, len(places) - 1, [None, offsets, self.buffer])
        found = between.take(pa.array(np.arange(0, len(places) - 1, 2)))
        return found if kind == pa.binary() else found.cast(pa.binary())
