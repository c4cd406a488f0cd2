"""What both readers have in common: what a task is given, and the part of a reader that runs in tasks.

A reader is pickled before it has planned anything, so what a task needs is in its options or in the partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from kafka.errors import KafkaError
from kafka.spark.errors import raise_concisely
from kafka.spark.offset_ranges import OffsetRange
from kafka.spark.options import SourceOptions

if TYPE_CHECKING:
    from kafka.spark.fetcher import ReadSettings

__all__ = ["KafkaPartition", "RangeReader"]


class KafkaPartition(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[OffsetRange, ...]) -> None:
        self.ranges = ranges

    def __repr__(self) -> str:
        return f"KafkaPartition{self.ranges!r}"


class RangeReader:
    """The part of both readers that runs in tasks."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self.options = options
        self.columns = columns

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the records of a task as Arrow batches."""
        # Spark makes a partition of its own where there is none.
        ranges = getattr(partition, "ranges", ())
        return _read(ranges, self.settings(), freeze=self.options.freeze)

    def settings(self) -> ReadSettings:
        """Return what a task has to know."""
        from kafka.spark.fetcher import ReadSettings

        options = self.options
        return ReadSettings(options.client, self.columns, options.fail_on_data_loss, options.poll_timeout)


def _read(ranges: tuple[OffsetRange, ...], settings: ReadSettings, *, freeze: bool) -> Iterator[Any]:
    from kafka.spark.client_cache import prepare_worker
    from kafka.spark.fetcher import read_ranges

    prepare_worker(freeze=freeze)
    try:
        yield from read_ranges(ranges, settings)
    except KafkaError as error:
        raise_concisely(error)
