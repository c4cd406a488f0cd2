"""What the reply to a fetch has for the ranges of a task: they move on, and what is theirs gets a reader.

Nothing is decoded here. A scan of the batches' headers tells where the next request begins, which is to leave first.
"""

from __future__ import annotations

from typing import Any, Final

from kafka.config import Config
from kafka.record.batch_reader import RecordReader
from kafka.spark.fetch_troubles import Troubles
from kafka.spark.range_position import RangePosition
from kafka.structs import TopicPartition

__all__ = ["Found", "Replies"]

Found = list[tuple[RangePosition, RecordReader]]

# Java's default of 1 MiB for a partition makes many small replies; what was given counts.
_PARTITION_BYTES: Final = 8 << 20


class Replies:
    """Those of one task."""

    def __init__(self, config: Config, troubles: Troubles) -> None:
        self._config = config
        self._troubles = troubles
        self._committed: bool = config["isolation_level"] == "read_committed"
        self.partition_bytes: int = _PARTITION_BYTES
        """How much of one partition a reply may have."""
        if "max_partition_fetch_bytes" in config.given:
            self.partition_bytes = config["max_partition_fetch_bytes"]

    def take(self, response: Any, ranges: list[RangePosition], began: float) -> Found:
        """Return readers of what a reply brought; ``began`` is when the task began to wait for it."""
        missing = {each.tp: each for each in ranges}
        found: Found = []
        empty: list[RangePosition] = []
        for topic in response.topics:
            for part in topic.partitions:
                each = missing.pop(TopicPartition(topic.topic, part.partition_index), None)
                if each is None:  # nobody has asked for it, or it comes twice
                    continue
                if part.error_code:
                    self._troubles.refused(each, part.error_code, began)
                    continue
                self._troubles.check_start(each, part)
                if part.preferred_read_replica >= 0 and each.replica is None:
                    each.replica = part.preferred_read_replica
                elif not each.is_done:
                    self._open(each, part, found, empty)
        empty += missing.values()
        for each in empty:
            if found:  # there may only have been no room for it; its leader answers
                each.failing_since = None
            else:  # alone there is nothing where there should be
                self._troubles.failed(each, None, began)
        return found

    def _open(self, each: RangePosition, part: Any, found: Found, empty: list[RangePosition]) -> None:
        """Find a reader of a reply's records, and move the range on to where they end."""
        position = each.position
        buffer = bytes(part.records or b"")
        end = each.advance(buffer)
        if each.position == position:
            if not each.needs_more(buffer, self.partition_bytes):
                empty.append(each)
            return
        reader = RecordReader(
            buffer if end == len(buffer) else buffer[:end],
            each.tp.topic,
            each.tp.partition,
            position,
            check_crcs=self._config["check_crcs"],
            read_committed=self._committed,
            aborted=[(entry.producer_id, entry.first_offset) for entry in part.aborted_transactions or ()],
            max_batch_bytes=self._config["max_decompressed_bytes"],
        )
        found.append((each, reader))
