"""What a record of either format shows of itself under the names of kafka-python."""

from __future__ import annotations

from kafka.record.consumer_record import ConsumerRecord

__all__ = ["RowView"]


class RowView:
    """A decoded record.

    >>> RowView(ConsumerRecord("events", 0, 5, 0, 0, None, b"v", None, -1, 1, [], -1, -1)).value
    b'v'
    """

    __slots__ = ("_row",)

    def __init__(self, row: ConsumerRecord) -> None:
        self._row = row

    offset = property(lambda self: self._row.offset)
    timestamp = property(lambda self: self._row.timestamp)
    timestamp_type = property(lambda self: self._row.timestamp_type)
    key = property(lambda self: self._row.key)
    value = property(lambda self: self._row.value)
    headers = property(lambda self: self._row.headers)
    checksum = property(lambda self: self._row.checksum)

    def validate_crc(self) -> bool:
        """Whether the checksum is right: what it is wrong for is not decoded."""
        return True
