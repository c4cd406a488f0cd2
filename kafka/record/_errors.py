"""How the record layer says that bytes are damaged: always with the offset at which, and why."""

from __future__ import annotations

from kafka.errors import CorruptRecordError


def corrupt(reason: str, offset: int | None = None) -> CorruptRecordError:
    """Return, for raising, the error for damage in the batch or record at this offset.

    >>> str(corrupt("wrong checksum", 17)).partition("(")[2]
    'offset=17, reason=wrong checksum)'
    """
    return CorruptRecordError(offset=offset, reason=reason)
