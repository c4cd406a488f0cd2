"""Where numpy and pyarrow are used if they are installed, and what happens if they are not. Both are optional."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from kafka.record._columns_plain import Section
from kafka.record._decode import Origin
from kafka.record.columns import Columns

if TYPE_CHECKING:
    from kafka.record._rows_numpy import BatchIndex


@lru_cache(maxsize=1)
def has_numpy() -> bool:
    """Whether numpy is installed. Does not import it."""
    return importlib.util.find_spec("numpy") is not None


def index_batch(data: bytes, pos: int, end: int, count: int, origin: Origin) -> BatchIndex:
    """Index what is left of a batch."""
    from kafka.record._rows_numpy import BatchIndex

    return BatchIndex(data, pos, end, count, origin)


def column_decoder(numpy: bool | None = None) -> Callable[[Sequence[Section]], Columns]:
    """Return what turns sections into columns: with numpy and pyarrow where both are installed, or as told.

    >>> column_decoder(numpy=False).__module__
    'kafka.record._columns_plain'
    """
    if numpy is not False:
        try:
            from kafka.record import _columns_numpy
        except ImportError:
            if numpy:
                raise
        else:
            return _columns_numpy.from_sections
    from kafka.record import _columns_plain

    return _columns_plain.from_sections
